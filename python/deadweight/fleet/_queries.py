"""Counts over the tables with DuckDB: queries that come with the package, or any other."""

from __future__ import annotations

import re
from importlib import resources
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs

from deadweight._command import DeadweightError
from deadweight._tables import TABLES
from deadweight.fleet._storage import Folder, Place

_PARAMETER = re.compile(r"^-- \$(\w+) = (\S+):", re.MULTILINE)


def queries() -> dict[str, str]:
    """Return the queries by their names, as SQL. The first line of each says what it answers."""
    folder = resources.files("deadweight") / "queries"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return {
        file.name.removesuffix(".sql"): file.read_text()
        for file in files
        if file.name.endswith(".sql")
    }


def query(name: str, folder: Place, **parameters: object) -> pa.Table:
    """Answer a query over the tables in a folder.

    ``parameters`` replace those that the query names at its top.
    """
    known = queries()
    if name not in known:
        raise DeadweightError(f"there is no query {name!r}: choose one of {', '.join(known)}")
    values: dict[str, object] = {
        key: float(value) for key, value in _PARAMETER.findall(known[name])
    }
    if unknown := parameters.keys() - values.keys():
        raise DeadweightError(
            f"the query {name!r} has no parameter {min(unknown)!r}: "
            f"it has {', '.join(values) or 'none'}"
        )
    with connect(folder) as connection:
        answer = connection.sql(known[name], params={**values, **parameters})
        return answer.to_arrow_table()


def connect(folder: Place) -> duckdb.DuckDBPyConnection:
    """Open DuckDB with the five tables in a folder as views."""
    where = Folder.of(folder)
    connection = duckdb.connect()
    for table in TABLES:
        if isinstance(where.fs, pafs.LocalFileSystem):
            files = f"{where.path}/{table}/**/*.parquet".replace("'", "''")
            connection.execute(
                f"CREATE VIEW {table} AS SELECT * FROM "
                f"read_parquet('{files}', hive_partitioning = true, union_by_name = true)"
            )
        else:
            connection.register(table, _dataset(where, table))
    return connection


def _dataset(where: Folder, table: str) -> Any:  # noqa: ANN401
    """Return a table in storage that DuckDB does not read itself."""
    path = f"{where.path}/{table}"
    return ds.dataset(path, filesystem=where.fs, format="parquet", partitioning="hive")
