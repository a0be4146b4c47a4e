"""A short hash of what something is made from: the key under which the cache keeps it."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

SKIPPED = {"__pycache__", ".mypy_cache", ".ruff_cache"}


def of_files(roots: Iterable[Path], *words: str) -> str:
    """The hash of all files below the roots (names and content) and of the words."""
    digest = hashlib.sha256()
    for word in words:
        _add(digest, word.encode())
    for root in roots:
        for path in files_of(root):
            _add(digest, str(path.relative_to(root.parent)).encode())
            _add(digest, path.read_bytes())
    return digest.hexdigest()[:12]


def files_of(root: Path) -> list[Path]:
    """A file itself, or all files of a folder in a fixed order, without what tools leave behind."""
    if root.is_file():
        return [root]
    found = (path for path in root.rglob("*") if path.is_file() and not SKIPPED & set(path.parts))
    return sorted(path for path in found if path.suffix != ".pyc")


def _add(digest: "hashlib._Hash", part: bytes) -> None:
    digest.update(len(part).to_bytes(8, "big"))  # so that no two lists of parts can run into the same bytes
    digest.update(part)
