"""The edge: spec files become resources, or one error that holds every mistake of every file.

One line for each mistake: `FILE: kind/name: path.to.field: what is wrong and what would be right`, in the order of the
file. Nothing stops at the first.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millrace.errors import UserError
from millrace.resources import documents
from millrace.resources.checking import check
from millrace.resources.ddl import nearest
from millrace.resources.documents import Document
from millrace.resources.fields import Problem
from millrace.resources.jobs import StreamJob
from millrace.resources.metadata import API_GROUP, API_VERSION, Resource
from millrace.resources.topics import Topic

KINDS: Mapping[str, type[Resource]] = {"StreamJob": StreamJob, "Topic": Topic}


class SpecError(UserError):
    """Everything that is wrong with the specs, one line for each mistake."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = tuple(lines)
        super().__init__("\n".join(self.lines))


@dataclass(frozen=True)
class _Read:
    """What one document came to: a resource, or lines that say why not."""

    where: str
    resource: Resource | None
    lines: tuple[str, ...] = ()


def read_files(paths: Iterable[Path | str]) -> list[Resource]:
    """Every resource of every file, in order; SpecError with every mistake of all of them."""
    reads = [read for path in paths for read in _read_file(Path(path))]
    lines = [line for read in reads for line in read.lines]
    lines += _repeated(reads)
    if lines:
        raise SpecError(lines)
    return [read.resource for read in reads if read.resource is not None]


def parse_object(data: Any, where: str = "") -> Resource:
    """Read a resource that was parsed before, such as one from the API server."""
    read = _read_document(where, Document(data))
    if read.resource is None:
        raise SpecError(read.lines)
    return read.resource


def _read_file(path: Path) -> list[_Read]:
    where = str(path)
    try:
        parsed = documents.parse(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        return [_Read(where, None, (f"{where}: cannot be read: {_reason(error)}",))]
    reads = [_read_document(where, document) for document in parsed.documents]
    reads += [_Read(where, None, (f"{where}: {line}",)) for line in parsed.broken]
    return reads or [_Read(where, None, (f"{where}: is empty; write a StreamJob or a Topic into it",))]


def _reason(error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file; check its path"
    return (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8 text"


def _read_document(where: str, document: Document) -> _Read:
    data = document.data
    if not isinstance(data, dict):
        says = "is not a resource; it starts with apiVersion, kind, metadata and spec"
        return _Read(where, None, (_line(where, "document", (), says),))
    mistakes = sorted((*document.mistakes, *_mistakes(data)), key=lambda mistake: document.place(mistake.path))
    if mistakes:
        return _Read(where, None, tuple(_line(where, _title(data), m.path, m.sentence) for m in mistakes))
    return _Read(where, KINDS[data["kind"]].model_validate(documents.without_nulls(data)))


def _mistakes(data: dict[Any, Any]) -> Iterator[Problem]:
    kind, version = data.get("kind"), data.get("apiVersion")
    if version != API_VERSION:
        yield Problem(("apiVersion",), _other_version(version))
    if not isinstance(kind, str) or kind not in KINDS:
        yield Problem(("kind",), _unknown_kind(kind))
        return
    yield from check(KINDS[kind], {**data, "apiVersion": API_VERSION})


def _other_version(version: Any) -> str:
    if version is None:
        return f"is missing; write apiVersion: {API_VERSION}"
    other = "a version that is not known here" if str(version).startswith(f"{API_GROUP}/") else "not ours"
    return f"is {version!r}, which is {other}; write apiVersion: {API_VERSION}"


def _repeated(reads: list[_Read]) -> Iterator[str]:
    """One name, one resource: of two, the later would silently replace the earlier.

    The same Topic twice, word for word, is fine: two jobs that share a topic may each bring it along.
    """
    seen: dict[tuple[str, str, str], _Read] = {}
    for read in reads:
        if (resource := read.resource) is None:
            continue
        kind, name = type(resource).__name__, resource.metadata.name
        first = seen.setdefault((kind, resource.metadata.namespace, name), read)
        if first is not read and not (isinstance(resource, Topic) and resource == first.resource):
            says = f"is {name!r} again, as in {first.where}; give each {kind} of a namespace its own name"
            yield _line(read.where, f"{kind.lower()}/{name}", ("metadata", "name"), says)


def _unknown_kind(kind: Any) -> str:
    if kind is None:
        return f"is missing; write one of {', '.join(KINDS)}"
    return f"is {kind!r}, which is not a kind of ours; {nearest(str(kind), KINDS, 'there are')}"


def _title(data: dict[str, Any]) -> str:
    """kind/name, as kubectl says it, with what is there of it."""
    metadata = data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{str(data.get('kind') or 'resource').lower()}/{name or '(no name)'}"


def _line(where: str, title: str, path: tuple[str | int, ...], sentence: str) -> str:
    at = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    return ": ".join(part for part in (where, title, at, sentence) if part)
