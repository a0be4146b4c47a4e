"""The note that a job leaves with each committed position, so that an observer that was away knows what it missed.

Kafka keeps a short text beside each committed offset. Here it is JSON with fixed keys. Commits of others, without a
note or with a text of their own, are read as commits without a note.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Note:
    """What the job says about the commit."""

    at: float
    """When it was made, in seconds since 1970, by the job's clock."""
    took: float = 0.0
    """How long the batch took, in seconds."""
    lost: int = 0
    """Records of this partition that retention deleted before the job read them, since the job began."""


@dataclass(frozen=True)
class Commit:
    """A committed offset: the next one to read."""

    offset: int
    note: Note | None = None


def note(at: float, took: float = 0.0, lost: int = 0) -> str:
    """The text to commit beside the offset."""
    return json.dumps({"at": round(at, 3), "took": round(took, 3), "lost": lost}, separators=(",", ":"))


def read_note(text: str | None) -> Note | None:
    """The note in the text, or None when it is not one of ours."""
    if not text:
        return None
    try:
        found = json.loads(text.rstrip("\0"))  # librdkafka commits the end of its string too
    except ValueError:
        return None
    if not isinstance(found, Mapping):
        return None
    return _checked(found)


def _checked(found: Mapping[Any, Any]) -> Note | None:
    values: list[Any] = [found.get("at"), found.get("took", 0.0), found.get("lost", 0)]
    if not all(isinstance(one, int | float) and math.isfinite(one) and one >= 0 for one in values):
        return None
    at, took, lost = values
    return Note(float(at), float(took), int(lost))
