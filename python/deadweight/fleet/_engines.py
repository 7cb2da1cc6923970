"""Does the tasks of all shards, on Ray or here, and removes what they replace."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from deadweight._tables import version
from deadweight.fleet._shards import Shard, shards
from deadweight.fleet._storage import Folder, Place
from deadweight.fleet._weighing import DONE, Job, Summary, done_before, weigh_shard

Engine = Literal["ray", "local"]

RETRIES = 5
"""How often Ray repeats a task whose worker died or whose storage failed."""


@dataclass(frozen=True)
class Result:
    """What ``weigh_all`` did. The numbers are those of all recordings in the source."""

    runs: int
    damaged: int
    unread: int
    shards: int
    shards_done_before: int
    files_removed: int


def weigh_all(
    source: Place,
    destination: Place,
    *,
    engine: Engine = "ray",
    partition_by: Sequence[str] = ("date",),
    labels: Sequence[str] = ("team",),
    workload: str | None = None,
    commit: str = "",
    workers: int | None = None,
    traces_per_shard: int = 100,
    seconds: float = 120.0,
    memory: int = 4 << 30,
) -> Result:
    """Turn all recordings and reports below ``source`` into five tables at ``destination``.

    ``labels`` are columns of ``runs`` with the parts ``label=value`` of a recording's path;
    ``partition_by`` names folders of the destination: ``date`` (UTC), a label, or a column of text.
    ``workers`` limits how many tasks run at a time, ``seconds`` and ``memory`` (bytes) what
    the command may take for one recording. Done again, it goes on where it stopped, weighs what is
    new or changed, and removes what is gone.
    """
    rules = f"{version()} {partition_by} {labels} {workload} {commit} {seconds} {memory}"
    where = Folder.of(source)
    job = Job(
        source=where,
        destination=Folder.of(destination),
        prefix=hashlib.sha256(where.path.encode()).hexdigest()[:8],
        partition_by=tuple(partition_by),
        labels=tuple(labels),
        workload=workload,
        commit=commit,
        seconds=seconds,
        memory=memory,
    )
    return _all(job, shards(where, rules, traces_per_shard), engine, workers)


def _all(job: Job, every: list[Shard], engine: Engine, workers: int | None) -> Result:
    done = {file.base_name for file in job.destination.files(DONE)}
    before = [shard for shard in every if f"{job.prefix}-{shard.name}.json" in done]
    new = [shard for shard in every if shard not in before]
    summaries = [done_before(job, shard) for shard in before]
    summaries += _with_ray(job, new, workers) if engine == "ray" else _here(job, new)
    return Result(
        runs=sum(summary.runs for summary in summaries),
        damaged=sum(summary.damaged for summary in summaries),
        unread=sum(summary.unread for summary in summaries),
        shards=len(every),
        shards_done_before=len(before),
        files_removed=_remove_others(job, summaries),
    )


def _here(job: Job, every: Iterable[Shard]) -> Iterator[Summary]:
    return (weigh_shard(job, shard) for shard in every)


def _with_ray(job: Job, every: Iterable[Shard], workers: int | None) -> Iterator[Summary]:
    """Do each shard in a task. Ray decides where, and repeats those whose worker died."""
    import ray  # noqa: PLC0415

    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False)
    limit = workers or max(1, 2 * int(ray.cluster_resources().get("CPU", 1)))
    task: Any = ray.remote(num_cpus=1, max_retries=RETRIES, retry_exceptions=[OSError])(weigh_shard)
    shared, running = ray.put(job), []
    for shard in every:
        if len(running) == limit:
            done, running = ray.wait(running)
            yield from ray.get(done)
        running.append(task.remote(shared, shard))
    yield from ray.get(running)


def _remove_others(job: Job, summaries: Iterable[Summary]) -> int:
    """Remove files from earlier states of the source: a recording is in one file only."""
    wanted: set[str] = set()
    for summary in summaries:
        wanted.update(summary.files, [f"{DONE}/{job.prefix}-{summary.shard}.json"])
    others = [
        file.path
        for file in job.destination.files()
        if file.base_name.startswith(f"{job.prefix}-")
        and job.destination.relative(file.path) not in wanted
    ]
    for path in others:
        job.destination.fs.delete_file(path)
    return len(others)


