"""Small specs for tests, and a way to change one field of them: `edited(JOB, {"spec.sinks.0.topic": "other"})`."""

from copy import deepcopy
from pathlib import Path
from typing import Any

from millrace.resources import StreamJob, Topic, parse_object

SPECS = Path(__file__).parent
GONE: Any = object()
"""The value of a field that is to be taken out."""

JOB: dict[str, Any] = {
    "apiVersion": "millrace.io/v1alpha1",
    "kind": "StreamJob",
    "metadata": {"name": "pageviews-per-minute", "namespace": "shop"},
    "spec": {
        "sources": [
            {
                "name": "views",
                "topic": "pageviews",
                "schema": "user string, url string, occurred_at timestamp, sent_at timestamp, received_at timestamp",
                "eventTime": {"column": "occurred_at"},
            }
        ],
        "stragglers": {"delay": "30s"},
        "transform": [
            {"window": {"type": "tumbling", "size": "1m", "by": ["url"], "aggregates": {"views": "count(*)"}}}
        ],
        "sinks": [{"topic": "pageviews-per-minute", "key": ["window_start", "url"]}],
    },
}
TOPIC: dict[str, Any] = {
    "apiVersion": "millrace.io/v1alpha1",
    "kind": "Topic",
    "metadata": {"name": "pageviews", "namespace": "shop"},
    "spec": {"partitions": 12, "retention": {"time": "7d"}},
}


def edited(base: dict[str, Any], edits: dict[str, Any]) -> dict[str, Any]:
    """A copy with some fields set, by their paths; lists are entered by number, '+' adds to their end."""
    made = deepcopy(base)
    for path, value in edits.items():
        *above, last = path.split(".")
        part: Any = made
        for step in above:
            part = part[int(step)] if isinstance(part, list) else part.setdefault(step, {})
        _set(part, last, value)
    return made


def _set(part: Any, last: str, value: Any) -> None:
    if isinstance(part, list):
        part[len(part) if last == "+" else int(last) : len(part) if last == "+" else int(last) + 1] = [deepcopy(value)]
    elif value is GONE:
        part.pop(last, None)
    else:
        part[last] = deepcopy(value)


def job(**edits: Any) -> StreamJob:
    """A good job; edits name fields of the spec with two underscores for a dot."""
    made = parse_object(edited(JOB, {f"spec.{path.replace('__', '.')}": value for path, value in edits.items()}))
    assert isinstance(made, StreamJob)
    return made


def topic(**edits: Any) -> Topic:
    made = parse_object(edited(TOPIC, {f"spec.{path.replace('__', '.')}": value for path, value in edits.items()}))
    assert isinstance(made, Topic)
    return made
