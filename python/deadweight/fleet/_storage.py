"""Places in storage: a file system of pyarrow and a path in it."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

Place = str | os.PathLike[str] | tuple[Any, str]
"""A path, a URI (``s3://bucket/folder``), or a file system of pyarrow or fsspec with a path."""


@dataclass(frozen=True)
class Folder:
    """A folder of a file system."""

    fs: pafs.FileSystem
    path: str

    @classmethod
    def of(cls, place: Place) -> Folder:
        """Find the file system of a place. fsspec is asked for what pyarrow does not know."""
        if isinstance(place, tuple):
            fs, path = place
            return cls(_pyarrow(fs), path.rstrip("/"))
        text = os.fspath(place)
        if "://" not in text:
            return cls(pafs.LocalFileSystem(), os.path.abspath(text))
        try:
            fs, path = pafs.FileSystem.from_uri(text)
        except pa.ArrowInvalid:
            import fsspec

            fs, path = fsspec.core.url_to_fs(text)
        return cls(_pyarrow(fs), path.rstrip("/"))

    def files(self, folder: str = "") -> list[pafs.FileInfo]:
        """Return all files in it, or below a folder of it, in order of their paths."""
        below = f"{self.path}/{folder}".rstrip("/")
        selector = pafs.FileSelector(below, recursive=True, allow_not_found=True)
        found = [f for f in self.fs.get_file_info(selector) if f.type == pafs.FileType.File]
        return sorted(found, key=lambda file: file.path)

    def relative(self, path: str) -> str:
        """Return the part of a path below the folder."""
        return path.removeprefix(f"{self.path}/")

    def write(self, name: str, content: bytes | pa.Buffer) -> None:
        """Replace a file: a reader sees all of it or nothing.

        An object store publishes an object when it is complete; a local file is renamed.
        """
        path = f"{self.path}/{name}"
        local = isinstance(self.fs, pafs.LocalFileSystem)
        to = f"{os.path.dirname(path)}/.{uuid.uuid4().hex}.part" if local else path
        if local:
            self.fs.create_dir(os.path.dirname(path), recursive=True)
        with self.fs.open_output_stream(to) as stream:
            stream.write(content)
        if local:
            self.fs.move(to, path)

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        with self.fs.open_input_stream(f"{self.path}/{name}") as stream:
            content: bytes = stream.read()
            return content


def _pyarrow(fs: Any) -> pafs.FileSystem:  # noqa: ANN401
    return fs if isinstance(fs, pafs.FileSystem) else pafs.PyFileSystem(pafs.FSSpecHandler(fs))
