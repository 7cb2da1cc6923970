"""Thousands of recordings in storage: turned into tables by many tasks, and counted.

``weigh_all`` maps recordings to partitioned Parquet files, ``query`` reduces them. Needs
``pip install deadweight[fleet]``.
"""

from deadweight.fleet._engines import Engine, Plan, Result, finish, plan, weigh_all
from deadweight.fleet._queries import connect, queries, query
from deadweight.fleet._shards import Shard, Trace
from deadweight.fleet._weighing import Job, Summary, weigh_shard

__all__ = [
    "Engine",
    "Job",
    "Plan",
    "Result",
    "Shard",
    "Summary",
    "Trace",
    "connect",
    "finish",
    "plan",
    "queries",
    "query",
    "weigh_all",
    "weigh_shard",
]
