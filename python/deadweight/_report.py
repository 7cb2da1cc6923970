"""A report as typed values: a view of its JSON. Fields of later versions are in ``Report.json``."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from deadweight import _html
from deadweight._command import output

T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """A row of the ledger. The rows add up to the wall time."""

    account: str = ""
    """A cost class or one of the fixed accounts."""
    group: str = ""
    ns: int = 0
    share: float = 0.0
    basis: str = "exact"
    """``exact`` if both ends of its time were recorded, else ``sampled``."""
    low_ns: int = 0
    high_ns: int = 0
    note: str = ""
    each_ns: tuple[int, ...] = ()


@dataclass(frozen=True)
class Site:
    """A place in the program."""

    function: str = ""
    file: str = ""
    line: int = 0
    image: str = ""
    share: float = 0.0
    count: int = 0
    chain: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True)
class Finding:
    """A hidden cost. Findings may overlap; rows never do."""

    title: str = ""
    text: str = ""
    process: str = ""
    amount_ns: int = 0
    saving_ns: int = 0
    saving_share: float = 0.0
    low: float = 0.0
    high: float = 0.0
    how: str = "estimate"
    """``exact``, ``estimate``, ``candidate`` or ``measured``."""
    sites: tuple[Site, ...] = ()
    evidence: tuple[str, ...] = ()
    remedy: str = ""
    class_: str = ""
    """The cost class; ``deadweight explain CLASS`` describes it."""


@dataclass(frozen=True)
class Count:
    """How often the program did something. Not a matter of the clock."""

    name: str = ""
    value: int = 0
    low: int = 0
    high: int = 0
    exact: bool = False


@dataclass(frozen=True)
class Hazard:
    """A reason why the measurement itself may mislead."""

    id: str = ""
    text: str = ""


@dataclass(frozen=True)
class Build:
    """A binary that code ran in."""

    path: str = ""
    build_id: str = ""
    language: str = ""
    producer: str = ""


@dataclass(frozen=True)
class CleanRuns:
    """Runs without tracing. All zero if there was none."""

    count: int = 0
    median_ns: int = 0
    low_ns: int = 0
    high_ns: int = 0
    each_ns: tuple[int, ...] = ()
    max_rss: int = 0


@dataclass(frozen=True)
class Report:
    """Where the wall time of a command went."""

    json: Mapping[str, Any] = field(repr=False)
    """All fields, as ``--export-json`` writes them."""
    command: tuple[str, ...] = ()
    subject: str = ""
    """The process whose time was divided."""
    language: str = ""
    exit_code: int = 0
    """128 + the number of the signal that ended the command."""
    rung: str = ""
    """How much could be recorded; empty if all."""
    wall_ns: int = 0
    net_ns: int = 0
    """The wall time that an undisturbed run would take."""
    cpu_ns: int = 0
    ledger: tuple[Row, ...] = ()
    cpu_ledger: tuple[Row, ...] = ()
    findings: tuple[Finding, ...] = ()
    withdrawn: tuple[Finding, ...] = ()
    """Findings that ``prove`` refuted."""
    counts: tuple[Count, ...] = ()
    builds: tuple[Build, ...] = ()
    hazards: tuple[Hazard, ...] = ()
    warnings: tuple[str, ...] = ()
    clean: CleanRuns = CleanRuns()

    @classmethod
    def from_json(cls, text: str | bytes) -> Report:
        """Read what ``--export-json`` wrote."""
        data = json.loads(text)
        subject, end = data.get("subject", {}), data.get("exit", {})
        signal = end.get("signal")
        plain = {key: data.get(key, 0) for key in ("wall_ns", "net_ns", "cpu_ns")}
        return cls(
            json=data,
            command=tuple(data.get("command", ())),
            subject=subject.get("name", ""),
            language=subject.get("language", ""),
            exit_code=end.get("code", 0) if signal is None else 128 + signal,
            rung=data.get("recording", {}).get("rung", ""),
            ledger=_all(Row, data.get("ledger")),
            cpu_ledger=_all(Row, data.get("cpu_ledger")),
            findings=tuple(map(_finding, data.get("findings", ()))),
            withdrawn=tuple(map(_finding, data.get("withdrawn", ()))),
            counts=_all(Count, data.get("counts")),
            builds=_all(Build, data.get("builds")),
            hazards=_all(Hazard, data.get("hazards")),
            warnings=tuple(data.get("warnings", ())),
            clean=_clean(data.get("runs", {}).get("clean", {})),
            **plain,
        )

    def row(self, account: str) -> Row:
        """Return the row of an account; one of 0 ns if the ledger has none."""
        of_account = (row for row in self.ledger if row.account == account)
        return next(of_account, Row(account=account))

    def __str__(self) -> str:
        """Return the report as the command prints it."""
        return self._text

    @functools.cached_property
    def _text(self) -> str:
        return output(
            ["report", "-", "--color", "never", "-o", "-"], json.dumps(self.json).encode()
        ).decode()

    def _repr_html_(self) -> str:
        """Return the ledger and the findings as HTML, for notebooks."""
        return _html.report(self)


def _made(kind: type[T], data: Mapping[str, Any], **more: object) -> T:
    """Make a value of the fields that are known."""
    known = {f.name for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    values = {key: _frozen(value) for key, value in data.items() if key in known}
    return kind(**{**values, **more})


def _all(kind: type[T], data: Iterable[Mapping[str, Any]] | None) -> tuple[T, ...]:
    return tuple(_made(kind, each) for each in data or ())


def _finding(data: Mapping[str, Any]) -> Finding:
    sites = _all(Site, data.get("sites"))
    return _made(Finding, data, sites=sites, class_=data.get("class", ""))


def _clean(data: Mapping[str, Any]) -> CleanRuns:
    wall = data.get("wall_ns", {})
    return _made(
        CleanRuns,
        data,
        median_ns=wall.get("median", 0),
        low_ns=wall.get("low", 0),
        high_ns=wall.get("high", 0),
    )


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
