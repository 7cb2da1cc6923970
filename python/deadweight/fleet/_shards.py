"""Shards: recordings that one task turns into tables.

A shard's name is a hash of its inputs and of all that decides its output. So the same task, done
again, writes the same files, and a shard that was done before need not be done again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deadweight.fleet._storage import Folder

ENDINGS = (".dwt", ".json")


@dataclass(frozen=True)
class Trace:
    """A recording or report in storage."""

    path: str
    """Its path in the file system."""
    name: str
    """Its path below the source."""
    size: int
    time: int
    """When it was last changed, in nanoseconds since 1970; taken as the time of the run."""


@dataclass(frozen=True)
class Shard:
    """Recordings that one task reads."""

    name: str
    traces: tuple[Trace, ...]


def shards(source: Folder, rules: str, traces_per_shard: int) -> list[Shard]:
    """Divide what is in the source. ``rules`` is all else that decides what is written."""
    return [
        Shard(_name(rules, part), tuple(part)) for part in _parts(_traces(source), traces_per_shard)
    ]


def _traces(source: Folder) -> list[Trace]:
    return [
        Trace(file.path, source.relative(file.path), file.size, file.mtime_ns or 0)
        for file in source.files()
        if file.path.endswith(ENDINGS)
    ]


def _parts(traces: Sequence[Trace], size: int) -> Iterator[Sequence[Trace]]:
    for at in range(0, len(traces), size):
        yield traces[at : at + size]


def _name(rules: str, traces: Sequence[Trace]) -> str:
    digest = hashlib.sha256(rules.encode())
    for trace in traces:
        digest.update(f"\0{trace.name}\0{trace.size}\0{trace.time}".encode())
    return digest.hexdigest()[:16]
