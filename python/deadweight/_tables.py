"""Recordings and reports as Arrow tables. Needs pyarrow: ``pip install deadweight[tables]``."""

from __future__ import annotations

import functools
import importlib
import os
import subprocess
import tempfile
from types import ModuleType
from typing import IO, TYPE_CHECKING, Literal

from deadweight._command import DeadweightError, binary, output, run, sentence

if TYPE_CHECKING:
    import pyarrow as pa

TableName = Literal["runs", "rows", "findings", "counts", "builds"]

TABLES: tuple[TableName, ...] = ("runs", "rows", "findings", "counts", "builds")
"""The names of the tables."""

DAMAGED = 1
"""Exit status if an input could not be read; its row of ``runs`` says why."""


def rows(
    source: bytes | str | os.PathLike[str],
    table: TableName = "rows",
    *,
    workload: str | None = None,
    commit: str = "",
) -> pa.Table:
    """Return a table of a recording, a report, or a directory of both.

    ``source`` is a path, or the content of one file as bytes. What cannot be read is a row of
    ``runs`` with an ``error``, and no exception.
    """
    content = source if isinstance(source, bytes) else None
    name = "-" if isinstance(source, bytes) else os.fspath(source)
    words = ["--format", "arrow", "--table", table, *labels(workload, commit)]
    with tempfile.TemporaryFile() as written:
        done = subprocess.run(
            [binary(), "rows", *words, "--", name],
            input=content or b"",
            stdout=written,
            stderr=subprocess.PIPE,
            check=False,
        )
        if done.returncode not in (0, DAMAGED):
            raise DeadweightError(sentence(done.stderr, done.returncode))
        written.seek(0)
        return read(written)[table]


def labels(workload: str | None, commit: str) -> list[str]:
    """Return the options that say what was measured."""
    return [
        *([f"--workload={workload}"] if workload is not None else []),
        *([f"--commit={commit}"] if commit else []),
    ]


def read(source: IO[bytes]) -> dict[str, pa.Table]:
    """Read streams of Arrow, one after another: tables by their names."""
    ipc = _pyarrow().ipc
    size = os.fstat(source.fileno()).st_size
    streams: dict[str, list[pa.Table]] = {}
    while source.tell() < size:
        with ipc.open_stream(source) as stream:
            name = stream.schema.metadata[b"deadweight.table"].decode()
            streams.setdefault(name, []).append(stream.read_all())
    return {name: _pyarrow().concat_tables(tables) for name, tables in streams.items()}


@functools.cache
def _empty() -> dict[str, pa.Table]:
    """Return what the command says of an empty input: its error in ``runs``, no other row."""
    with tempfile.TemporaryFile() as written:
        done = run(["rows", "-", "--format", "arrow"], b"")
        if done.returncode != DAMAGED:
            raise DeadweightError(sentence(done.stderr, done.returncode))
        written.write(done.stdout)
        written.seek(0)
        return read(written)


def schema(table: TableName = "rows") -> pa.Schema:
    """Return the columns of a table."""
    return _empty()[table].schema


def failed(run_id: str, source: str, error: str) -> dict[str, pa.Table]:
    """Return the tables of an input that the command could not answer for."""
    pa = _pyarrow()
    tables = dict(_empty())
    for name, value in {"run": run_id, "source": source, "error": error}.items():
        tables["runs"] = replaced(tables["runs"], name, pa.array([value]))
    return tables


def replaced(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """Return the table with other values in a column."""
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), values)


def version() -> str:
    """Return the version of the command."""
    return output(["--version"]).decode().strip()


def _pyarrow() -> ModuleType:
    try:
        importlib.import_module("pyarrow.ipc")
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise DeadweightError(
            "tables need pyarrow, which is not installed: pip install deadweight[tables]"
        ) from error
