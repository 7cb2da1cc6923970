"""Plans what there is to do, does it on Ray or here, and removes what it replaces."""

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
class Plan:
    """What there is to do."""

    job: Job
    shards: tuple[Shard, ...]
    """Those that no earlier call has done."""
    done: tuple[Summary, ...]
    """What earlier calls have done."""


@dataclass(frozen=True)
class Result:
    """The numbers of all recordings in the source."""

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
    workers: int | None = None,
    **options: Any,  # noqa: ANN401
) -> Result:
    """Turn all recordings and reports below ``source`` into five tables at ``destination``.

    ``workers`` limits how many tasks run at a time; ``options`` are those of ``plan``. Done again,
    it goes on where it stopped, weighs what is new or changed, and removes what is gone.
    """
    what = plan(source, destination, **options)
    if engine == "ray":
        return finish(what, _with_ray(what, workers))
    return finish(what, (weigh_shard(what.job, shard) for shard in what.shards))


def plan(
    source: Place,
    destination: Place,
    *,
    partition_by: Sequence[str] = ("date",),
    labels: Sequence[str] = ("team",),
    workload: str | None = None,
    commit: str = "",
    traces_per_shard: int = 100,
    seconds: float = 120.0,
    memory: int = 4 << 30,
) -> Plan:
    """Divide the source into shards, for ``weigh_shard``.

    ``labels`` are columns of ``runs`` with the parts ``label=value`` of a recording's path;
    ``partition_by`` names folders of the destination: ``date`` (UTC), a label, or a column of text.
    ``seconds`` and ``memory`` (bytes) are what the command may take for one recording.
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
    every = shards(where, rules, traces_per_shard)
    names = {file.base_name for file in job.destination.files(DONE)}
    done = {shard.name for shard in every if job.mark(shard.name) in names}
    return Plan(
        job,
        tuple(shard for shard in every if shard.name not in done),
        tuple(done_before(job, shard) for shard in every if shard.name in done),
    )


def finish(what: Plan, summaries: Iterable[Summary]) -> Result:
    """Remove files of earlier states of the source, so that a recording is in one file only."""
    every = [*what.done, *summaries]
    job, wanted = what.job, set[str]()
    for summary in every:
        wanted.update(summary.files, [f"{DONE}/{job.mark(summary.shard)}"])
    others = [
        file.path
        for file in job.destination.files()
        if file.base_name.startswith(f"{job.prefix}-")
        and job.destination.relative(file.path) not in wanted
    ]
    for path in others:
        job.destination.fs.delete_file(path)
    return Result(
        runs=sum(summary.runs for summary in every),
        damaged=sum(summary.damaged for summary in every),
        unread=sum(summary.unread for summary in every),
        shards=len(every),
        shards_done_before=len(what.done),
        files_removed=len(others),
    )


def _with_ray(what: Plan, workers: int | None) -> Iterator[Summary]:
    """Do each shard in a task. Ray decides where, and repeats those whose worker died."""
    import ray

    if not what.shards:
        return
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False)
    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    limit = workers or max(1, 2 * int(resources.get("CPU", 1)))
    options: dict[str, Any] = {"max_retries": RETRIES, "retry_exceptions": [OSError]}
    task: Any = ray.remote(num_cpus=1, **options)(weigh_shard)
    shared = ray.put(what.job)
    running: list[Any] = []
    for shard in what.shards:
        if len(running) == limit:
            done, running = ray.wait(running)
            yield from ray.get(done)
        running.append(task.remote(shared, shard))
    yield from ray.get(running)
