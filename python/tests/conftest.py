"""Shared by the tests: a corpus of recordings, a real S3 server, Ray."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
# Ray would start its workers with this environment.
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")])
)

os.environ["PYSPARK_PYTHON"] = sys.executable

import corpus
from deadweight._command import binary

COUNT = int(os.environ.get("DEADWEIGHT_TEST_TRACES", "60"))
DAMAGED = 10


def pytest_collection_modifyitems(items):
    """Without root no rung but one can be chosen."""
    if os.getuid() != 0:
        for item in items:
            if {"traces", "recording"} & set(getattr(item, "fixturenames", ())):
                item.add_marker(
                    pytest.mark.skip(reason="SKIPPED: recording on each rung needs root")
                )


@pytest.fixture(scope="session")
def traces(tmp_path_factory):
    """A folder with recordings."""
    folder = tmp_path_factory.mktemp("traces")
    corpus.make(folder, COUNT, DAMAGED, binary())
    return folder


@pytest.fixture(scope="session")
def expected(traces):
    """Single reports of all recordings, and the ids of those that are damaged."""
    return corpus.reports(traces, binary())


@pytest.fixture(scope="session")
def s3():
    """A file system on a real S3 server of this machine."""
    from pyarrow import fs

    from s3 import Server

    with Server() as server:
        yield fs.S3FileSystem(**server.options)


@pytest.fixture(scope="session")
def ray():
    """Ray with two workers."""
    import ray

    ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20
    )
    yield ray
    ray.shutdown()


def pytest_terminal_summary(terminalreporter):
    """The outcome as `cargo test` prints it, for scripts that add up all tests."""
    count = {
        word: len(terminalreporter.stats.get(word, ())) for word in ("passed", "failed", "error")
    }
    failed = count["failed"] + count["error"]
    word = "FAILED" if failed else "ok"
    terminalreporter.write_line(
        f"test result: {word}. {count['passed']} passed; {failed} failed; "
        f"{len(terminalreporter.stats.get('skipped', ()))} ignored; python"
    )
