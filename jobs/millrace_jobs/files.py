"""The job's folder of judged events and ledger entries: on a volume, or in an object store, by the same calls.

A file is written once and never changed. What counts is what the ledger names; everything else may be swept away.
"""

import contextlib
import os
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

COMPRESSION = "lz4"


@dataclass(frozen=True)
class Folder:
    """A folder by its address: an absolute path, or an address such as s3a://bucket/folder."""

    address: str

    def at(self, name: str) -> str:
        """The address of something below this folder, as Spark and our own readers take it."""
        return f"{self.address.rstrip('/')}/{name}"

    def read(self, name: str) -> bytes | None:
        """The content, or None where there is no such file."""
        system, path = _open(self.at(name))
        try:
            with system.open_input_stream(path) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Put a whole file in place at once: a reader sees the old content or the new one, never a part."""
        system, path = _open(self.at(name))
        if not isinstance(system, fs.LocalFileSystem):
            with system.open_output_stream(path) as stream:  # an object appears when its stream is closed
                stream.write(content)
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        fresh = f"{path}.{uuid.uuid4().hex}.tmp"
        with open(fresh, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)

    def names(self, below: str) -> list[str]:
        """Names of the files in one folder below, relative to this folder."""
        system, path = _open(self.at(below))
        found = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return [f"{below}/{one.base_name}" for one in found if one.type == fs.FileType.File]

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            system, path = _open(self.at(name))
            with contextlib.suppress(FileNotFoundError):
                system.delete_file(path)


class TableWriter:
    """Writes batches of one schema to one new file; without any rows there is no file."""

    def __init__(self, folder: Folder, prefix: str, schema: pa.Schema) -> None:
        self.name = f"{prefix}-{uuid.uuid4().hex}.parquet"
        self._address = folder.at(self.name)
        self._schema = schema
        self._writer: pq.ParquetWriter | None = None
        self.rows = self.bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        if self._writer is None:
            system, path = _open(self._address)
            if isinstance(system, fs.LocalFileSystem):
                os.makedirs(os.path.dirname(path), exist_ok=True)
            self._writer = pq.ParquetWriter(path, self._schema, filesystem=system, compression=COMPRESSION)
        self._writer.write_batch(batch)
        self.rows += batch.num_rows

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            system, path = _open(self._address)
            self.bytes = int(system.get_file_info(path).size or 0)


def _open(address: str) -> tuple[fs.FileSystem, str]:
    if "://" not in address:
        return fs.LocalFileSystem(), address
    system, path = fs.FileSystem.from_uri(address.replace("s3a://", "s3://", 1))
    return system, path
