"""Runs programs under deadweight, and reads reports."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Literal

from deadweight._command import DeadweightError, binary, output, sentence
from deadweight._report import Report

Stream = int | IO[bytes] | IO[str] | None
"""As in ``subprocess``: a file, ``subprocess.DEVNULL``, or ``None`` for the stream of Python."""


def weigh(
    command: str | Sequence[str | os.PathLike[str]],
    *,
    runs: int | Literal["auto"] | None = None,
    warmup: int = 0,
    prove: bool = False,
    of: str | None = None,
    inside: str | None = None,
    ignore_failure: bool = False,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    stdin: Stream = None,
    stdout: Stream = None,
    stderr: Stream = None,
) -> Report:
    """Run a command and return where its wall time went.

    A string with spaces goes through ``/bin/sh``. It runs once, traced; with ``runs`` so many times
    without tracing, and some with. ``prove`` measures savings by removing blamed code from a copy.
    ``of`` and ``inside`` are ``--of`` and ``--in``. The program's streams are those of Python, or
    those given. A program that fails has a report with its exit code.
    """
    options = {"--warmup": warmup or None, "--of": of, "--in": inside, "--runs": runs}
    words = [f"{name}={value}" for name, value in options.items() if value is not None]
    words += ["--prove"] * prove + ["--ignore-failure"] * ignore_failure
    program = [command] if isinstance(command, str) else [os.fspath(word) for word in command]
    with tempfile.TemporaryDirectory(prefix="deadweight-") as folder:
        to, failed = Path(folder, "report.json"), Path(folder, "failure")
        status = subprocess.run(
            [binary(), "-q", *words, "--export-json", to, "--failure-to", failed, "--", *program],
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            check=False,
        ).returncode
        if failed.is_file() and failed.stat().st_size:
            raise DeadweightError(sentence(failed.read_bytes(), status))
        if not to.is_file():
            raise DeadweightError(sentence(b"", status))
        return Report.from_json(to.read_bytes())


def report(source: bytes | str | os.PathLike[str]) -> Report:
    """Return the report of a recording, or the report in a file of ``--export-json``.

    ``source`` is a path, or the content as bytes.
    """
    content = source if isinstance(source, bytes) else None
    name = "-" if isinstance(source, bytes) else os.fspath(source)
    return Report.from_json(output(["report", "-q", "--export-json", "-", "--", name], content))
