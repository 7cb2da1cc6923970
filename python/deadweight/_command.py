"""The command ``deadweight``: where it is, and its failures as exceptions."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path


class DeadweightError(Exception):
    """deadweight failed. The text is its one sentence; a program that fails is no such error."""


@functools.cache
def binary() -> str:
    """Return the path of the command.

    The environment variable ``DEADWEIGHT`` names another one, for development.
    """
    here = Path(sysconfig.get_path("scripts"), "deadweight")
    found = os.environ.get("DEADWEIGHT") or (
        str(here) if here.is_file() else shutil.which("deadweight")
    )
    if not found:
        raise DeadweightError(
            f"the command deadweight is neither in {here.parent} nor on the PATH: "
            "install the package again"
        )
    return found


def output(arguments: Sequence[str], content: bytes | None = None) -> bytes:
    """Run the command, which runs no program, and return its standard output."""
    done = run(arguments, content)
    if done.returncode:
        raise DeadweightError(sentence(done.stderr, done.returncode))
    return done.stdout


def run(
    arguments: Sequence[str], content: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the command, which runs no program, with ``content`` as its standard input."""
    return subprocess.run(
        [binary(), *arguments], input=content or b"", capture_output=True, check=False
    )


def sentence(said: bytes, status: int) -> str:
    """Return the sentence that the command ended with."""
    lines = said.decode(errors="replace").strip().splitlines()
    if lines:
        return lines[0].removeprefix("deadweight: ")
    how = f"signal {-status}" if status < 0 else f"status {status}"
    return f"deadweight ended with {how} and said nothing"
