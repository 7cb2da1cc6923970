"""One task: the recordings of a shard into Parquet files.

Recordings are streamed to the command one by one, so a worker holds the rows of a shard and no
recording. What the command cannot answer for, in time and within its memory, is a row with an
error. All files of a shard have its name: done twice, it overwrites and never doubles.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import resource
import subprocess
import tempfile
import threading
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from deadweight._command import binary, sentence
from deadweight._tables import DAMAGED, TABLES, failed, labels, read, replaced
from deadweight.fleet._shards import Shard, Trace
from deadweight.fleet._storage import Folder

PIECE = 1 << 20
DONE = "_shards"
"""The folder of what was done. Engines skip names with an underscore."""

Tables = dict[str, pa.Table]
Partition = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Job:
    """What all tasks have in common."""

    source: Folder
    destination: Folder
    prefix: str
    """The beginning of the names of all files that come from this source."""
    partition_by: tuple[str, ...] = ("date",)
    labels: tuple[str, ...] = ("team",)
    workload: str | None = None
    commit: str = ""
    seconds: float = 120.0
    memory: int = 4 << 30

    def mark(self, shard: str) -> str:
        """Return the name of the file that says that a shard is done."""
        return f"{self.prefix}-{shard}.json"


@dataclass(frozen=True)
class Summary:
    """What a task did."""

    shard: str
    files: tuple[str, ...]
    runs: int
    damaged: int
    unread: int
    """How many of them could not be read from storage: they are tried again next time."""


def weigh_shard(job: Job, shard: Shard) -> Summary:
    """Write the tables of a shard's recordings."""
    parts: dict[Partition, dict[str, list[pa.Table]]] = {}
    damaged = unread = 0
    for trace in shard.traces:
        try:
            tables = _weigh(job, trace)
        except OSError as error:
            unread += 1
            tables = _failed(trace, f"cannot be read from storage: {error}")
        tables = _placed(job, trace, tables)
        damaged += tables["runs"]["error"][0].as_py() != ""
        part = parts.setdefault(_partition(job, tables["runs"]), {name: [] for name in TABLES})
        for name, table in tables.items():
            part[name].append(table)
    files = [
        file
        for partition, part in sorted(parts.items())
        for file in _write(job, shard, partition, part)
    ]
    summary = Summary(shard.name, tuple(files), len(shard.traces), damaged, unread)
    if not unread:
        job.destination.write(f"{DONE}/{job.mark(shard.name)}", json.dumps(vars(summary)).encode())
    return summary


def done_before(job: Job, shard: Shard) -> Summary:
    """Return what an earlier task did."""
    before = json.loads(job.destination.read(f"{DONE}/{job.mark(shard.name)}"))
    return Summary(**{**before, "files": tuple(before["files"])})


def _weigh(job: Job, trace: Trace) -> Tables:
    """Return the tables of a recording."""
    digest = hashlib.sha256()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
        words = ["rows", "-", "--format", "arrow", *labels(job.workload, job.commit)]
        process = subprocess.Popen(
            [binary(), *words], stdin=subprocess.PIPE, stdout=out, stderr=said, bufsize=0
        )
        late = threading.Event()
        timer = threading.Timer(job.seconds, _end, (process, late))
        timer.start()
        try:
            resource.prlimit(process.pid, resource.RLIMIT_AS, (job.memory, job.memory))
            _feed(cast(IO[bytes], process.stdin), _pieces(job, trace), digest)
            status = process.wait()
        finally:
            timer.cancel()
            process.kill()
            process.wait()
        if status in (0, DAMAGED) and not late.is_set():
            out.seek(0)
            return read(out)
        said.seek(0)
        why = (
            f"took longer than {job.seconds:g} s"
            if late.is_set()
            else sentence(said.read(), status)
        )
    return failed(digest.hexdigest()[:32], trace.name, why)


def _end(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    process.kill()


def _pieces(job: Job, trace: Trace) -> Iterator[bytes]:
    with job.source.fs.open_input_stream(trace.path) as stream:
        while piece := stream.read(PIECE):
            yield piece


def _feed(to: IO[bytes], pieces: Iterator[bytes], digest: hashlib._Hash) -> None:
    """Write the pieces, as far as they are wanted."""
    with to:
        for piece in pieces:
            digest.update(piece)
            try:
                to.write(piece)
            except BrokenPipeError:
                return


def _failed(trace: Trace, why: str) -> Tables:
    """Return the tables of a recording that was not read. Its id is one of its name."""
    return failed(hashlib.sha256(trace.name.encode()).hexdigest()[:32], trace.name, why)


def _placed(job: Job, trace: Trace, tables: Tables) -> Tables:
    """Add what the recording's place says: its source, time and labels."""
    runs = replaced(tables["runs"], "source", pa.array([trace.name]))
    runs = replaced(runs, "time", pa.array([trace.time // 10**9]))
    parts = (part.split("=", 1) for part in trace.name.split("/")[:-1] if "=" in part)
    given = {key: urllib.parse.unquote(value) for key, value in parts}
    for label in job.labels:
        value = pa.array([given.get(label, "")])
        if label not in runs.column_names:
            runs = runs.append_column(pa.field(label, pa.string(), nullable=False), value)
        elif label in given:
            runs = replaced(runs, label, value)
    return {**tables, "runs": runs}


def _partition(job: Job, runs: pa.Table) -> Partition:
    def value(key: str) -> str:
        if key == "date":
            seconds = runs["time"][0].as_py()
            return (
                datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).date().isoformat()
            )
        return str(runs[key][0].as_py())

    return tuple((key, value(key)) for key in job.partition_by)


def _folder(value: str) -> str:
    """Return a value as engines expect it in a path. They read the name for nothing as null."""
    return urllib.parse.quote(value, safe="") or "__HIVE_DEFAULT_PARTITION__"


def _write(
    job: Job, shard: Shard, partition: Partition, part: dict[str, list[pa.Table]]
) -> Iterator[str]:
    """Write the files of a partition. Out: their names."""
    folders = "".join(f"{key}={_folder(value)}/" for key, value in partition)
    for name, tables in part.items():
        table = pa.concat_tables(tables)
        kept = [column for column in table.column_names if column not in dict(partition)]
        to = pa.BufferOutputStream()
        pq.write_table(table.select(kept), to, compression="zstd")
        file = f"{name}/{folders}{job.prefix}-{shard.name}.parquet"
        job.destination.write(file, to.getvalue())
        yield file
