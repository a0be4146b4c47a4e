"""The judged events that windows still need: which files hold them, which may go, and when small ones are merged.

The list of files is part of the ledger's entry. A file is dropped from the list when no window can need it any more,
and deleted only after an entry without it has been written.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from millrace_jobs.accounts import StateFile
from millrace_jobs.files import Folder, TableWriter
from millrace_jobs.intake import REPORT, TIME
from millrace_jobs.windows import WindowQuery

MERGE_AT = 16
"""So many files of about the same size are merged into one: reading stays cheap, and a row is rewritten rarely."""


def still_needed(query: WindowQuery, grace: int, files: Sequence[StateFile], watermark: int | None) -> list[StateFile]:
    """The files with an event that some window, not yet final at this watermark, may need."""
    if watermark is None or query.rule.type == "session":
        return list(files)  # a session may reach back without bound; merging looks at its events one by one
    return [file for file in files if file.newest + query.rule.size > watermark - grace]


def in_reach(query: WindowQuery, files: Sequence[StateFile], after: int, upto: int) -> list[StateFile]:
    """The files that results closing within (after, upto] can be made of."""
    if query.rule.type == "session":
        return list(files)
    return [file for file in files if file.newest + query.rule.size > after and file.oldest <= upto]


def to_merge(query: WindowQuery, grace: int, files: Sequence[StateFile], watermark: int | None) -> list[StateFile]:
    """Files of one source and about one size, once there are enough of them; else none.

    For sessions also those whose events are all so old that most of their sessions must be final.
    """
    tiers: defaultdict[tuple[str, int], list[StateFile]] = defaultdict(list)
    for file in files:
        tiers[file.source, file.rows.bit_length() // 2].append(file)
    for (source, _), tier in tiers.items():
        if len(tier) >= MERGE_AT:
            return [
                file
                for file in files
                if file.source == source and (file in tier or _is_stale(query, grace, file, watermark))
            ]
    return []


def _is_stale(query: WindowQuery, grace: int, file: StateFile, watermark: int | None) -> bool:
    if query.rule.type != "session" or watermark is None:
        return False
    return file.newest + 2 * query.rule.size + grace <= watermark


def rewrite(rows: DataFrame, folder: Folder, source: str, schema: pa.Schema, batch: int) -> list[StateFile]:
    """Put rows down as few new files."""
    reports = (
        rows.select(*schema.names).coalesce(1).mapInArrow(_rewriter(folder, source, schema, batch), "report string")
    )
    return [file for row in reports.collect() for file in msgspec.json.decode(row["report"], type=list[StateFile])]


def _rewriter(
    folder: Folder, source: str, schema: pa.Schema, batch: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writer = TableWriter(folder, f"state/{batch:012d}-{source}-merged", schema)
        spans: list[tuple[int, int]] = []
        for one in batches:
            if one.num_rows:
                writer.write(one.cast(schema))
                low, high = (pc.min(one.column(TIME)).as_py(), pc.max(one.column(TIME)).as_py())
                spans.append((low, high))
        writer.close()
        files = []
        if spans:
            oldest, newest = min(span[0] for span in spans), max(span[1] for span in spans)
            files = [StateFile(source, writer.name, writer.rows, oldest, newest, writer.bytes)]
        yield pa.RecordBatch.from_pylist([{"report": msgspec.json.encode(files).decode()}], schema=REPORT)

    return write
