"""Specs with exactly one mistake each: where it is, what is said, and whether the API server refuses it too.

The unit tests hold the reader against this table, the tests on a cluster hold the CRDs against it.
"""

from dataclasses import dataclass
from typing import Any

from tests.unit.specs.builders import GONE, JOB, TOPIC, edited

_SESSION = {"type": "session", "gap": "30m", "by": ["url"], "aggregates": {"views": "count(*)"}}
_WINDOW = JOB["spec"]["transform"][0]
_SECOND = {"name": "clicks", "topic": "clicks", "schema": "user string, at timestamp", "eventTime": {"column": "at"}}
_TABLE = {"postgres": {"secret": {"name": "db"}, "table": "pages", "key": ["window_start", "url"]}}
_WINDOW_AT = "spec.transform.0.window"


@dataclass(frozen=True)
class Broken:
    """A good resource with some edits that break it."""

    edits: dict[str, Any]
    path: str
    says: str
    server: bool = True
    """Whether the API server refuses it too (unknown fields with strict validation, as kubectl asks for)."""
    base: str = "StreamJob"

    @property
    def document(self) -> dict[str, Any]:
        return edited(JOB if self.base == "StreamJob" else TOPIC, self.edits)

    def __str__(self) -> str:
        return f"{self.path}: {self.says[:40]}"


WRONG_FIELDS = (
    Broken({"metadata.name": "9lives"}, "metadata.name", "is not a name for a job"),
    Broken({"metadata.name": "x" * 46}, "metadata.name", "at most 45"),
    Broken({"metadata.name": GONE}, "metadata.name", "is missing"),
    Broken({"metadata.namespace": "Shop"}, "metadata.namespace", "is not a namespace"),
    Broken({"spec": GONE}, "spec", "is missing"),
    Broken({"spec": "all of it"}, "spec", "must be a mapping with fields such as kafka, sources, stragglers"),
    Broken({"spec.kafka.bootstrapServers": "kafka"}, "spec.kafka.bootstrapServers", "write host:port"),
    Broken({"spec.sources": GONE}, "spec.sources", "is missing"),
    Broken({"spec.sources": []}, "spec.sources", "needs at least one entry"),
    Broken({"spec.sources": {"name": "views"}}, "spec.sources", "must be a list"),
    Broken({"spec.sources.0.topic": GONE}, "spec.sources[0].topic", "is missing (Kafka topic to read)"),
    Broken({"spec.sources.0.topic": "page views"}, "spec.sources[0].topic", "is not a topic name"),
    Broken({"spec.sources.0.topic": 7}, "spec.sources[0].topic", "must be text: put it into quotes; it is 7"),
    Broken({"spec.sources.0.format": "avro"}, "spec.sources[0].format", "must be json; it is 'avro'"),
    Broken({"spec.sources.0.schema": ""}, "spec.sources[0].schema", "must not be empty"),
    Broken({"spec.sources.0.startFrom": "soon"}, "spec.sources[0].startFrom", "write earliest, latest or a time"),
    Broken({"spec.sources.0.maxRecordsPerBatch": 0}, "spec.sources[0].maxRecordsPerBatch", "must be at least 1"),
    Broken({"spec.sources.0.maxRecordsPerBatch": "5"}, "spec.sources[0].maxRecordsPerBatch", "whole number without"),
    Broken({"spec.sources.0.eventTime.maxFutureSkew": "0s"}, "spec.sources[0].eventTime.maxFutureSkew", "longer than"),
    Broken({"spec.stragglers.delay": "soon"}, "spec.stragglers.delay", "is not a duration"),
    Broken({"spec.stragglers.delay": 30}, "spec.stragglers.delay", "'30' is not a duration"),
    Broken({"spec.stragglers.policy": "dorp"}, "spec.stragglers.policy", "(did you mean 'drop'?)"),
    Broken({f"{_WINDOW_AT}.aggregates": {}}, "spec.transform[0].window.aggregates", "needs at least one entry"),
    Broken({f"{_WINDOW_AT}.aggregates.a b": "sum(x)"}, "spec.transform[0].window.aggregates.a b", "not a column name"),
    Broken({f"{_WINDOW_AT}.by": "url"}, "spec.transform[0].window.by", "must be a list, for instance [a, b]"),
    Broken({"spec.transform": [{"python": {"function": "views"}}]}, "spec.transform[0].python.function", "module:func"),
    Broken({"spec.trigger.interval": "-1s"}, "spec.trigger.interval", "is not a duration"),
    Broken({"spec.slo.stragglerRatio": 1.5}, "spec.slo.stragglerRatio", "must be at most 1"),
    Broken({"spec.slo.lagSeconds": 0}, "spec.slo.lagSeconds", "must be greater than 0"),
    Broken({"spec.checkpoint.uri": "bucket"}, "spec.checkpoint.uri", "write for instance s3a://bucket/folder"),
    Broken({"spec.driver.memory": "1 GB"}, "spec.driver.memory", "is not a size"),
    Broken({"spec.driver.cpu": "many"}, "spec.driver.cpu", "is not an amount of CPU"),
    Broken({"spec.executors.instances": 1.5}, "spec.executors.instances", "must be a whole number"),
    Broken({"spec.restart.policy": "always"}, "spec.restart.policy", "(did you mean 'Always'?)"),
    Broken({"spec.remediation.mode": "auto"}, "spec.remediation.mode", "must be one of advise, act"),
    Broken({"spec.remediation.extendRetention": {}}, "spec.remediation.extendRetention.max", "for instance 14d"),
    Broken({"spec.suspend": "no"}, "spec.suspend", "must be true or false; it is 'no'"),
    Broken({"spec.straglers": {}}, "spec.straglers", "is not a field; did you mean 'stragglers'?"),
    Broken({"spec.sources.0.event_time": {}}, "spec.sources[0].event_time", "did you mean 'eventTime'?"),
    Broken({"spec.partitions": 0}, "spec.partitions", "must be at least 1", base="Topic"),
    Broken({"spec.cleanup": "remove"}, "spec.cleanup", "must be one of delete, compact, compact,delete", base="Topic"),
    Broken({"spec.retention.bytes": "0"}, "spec.retention.bytes", "must be greater than 0", base="Topic"),
    Broken({"spec.config.compression.type": "lz4"}, "spec.config.compression", "must be text", base="Topic"),
)

BROKEN_RULES = (
    Broken({f"{_WINDOW_AT}.size": GONE}, "spec.transform[0].window.size", "is missing: this window needs its length"),
    Broken({_WINDOW_AT: {**_SESSION, "size": "1m"}}, "spec.transform[0].window.size", "does not belong to a session"),
    Broken({f"{_WINDOW_AT}.type": "hopping"}, "spec.transform[0].window.every", "is missing: a hopping window"),
    Broken({f"{_WINDOW_AT}.every": "30s"}, "spec.transform[0].window.every", "belongs to hopping windows only"),
    Broken(
        {f"{_WINDOW_AT}.type": "hopping", f"{_WINDOW_AT}.every": "2m"},
        "spec.transform[0].window.every",
        "must not be longer than size",
    ),
    Broken(
        {f"{_WINDOW_AT}.type": "hopping", f"{_WINDOW_AT}.every": "2d"},
        "spec.transform[0].window.every",
        "must not be longer than size",
        server=False,
    ),
    Broken({_WINDOW_AT: {**_SESSION, "gap": None}}, "spec.transform[0].window.gap", "is missing: a session window"),
    Broken({f"{_WINDOW_AT}.gap": "5m"}, "spec.transform[0].window.gap", "belongs to session windows only"),
    Broken({f"{_WINDOW_AT}.by": ["url", "url"]}, "spec.transform[0].window.by[1]", "twice", server=False),
    Broken({f"{_WINDOW_AT}.aggregates.url": "max(url)"}, "spec.transform[0].window.aggregates.url", "name", False),
    Broken({"spec.transform": [{"join": {}}], "spec.sinks.0.key": GONE}, "spec.transform[0].join", "is not built yet"),
    Broken(
        {"spec.transform.0.sql": "SELECT 1"}, "spec.transform[0]", "must have exactly one of window, sql and python"
    ),
    Broken({"spec.stragglers.policy": "aside"}, "spec.stragglers.topic", "is missing: policy 'aside'"),
    Broken({"spec.stragglers.topic": "late"}, "spec.stragglers.topic", "belongs to policy 'aside' only"),
    Broken({"spec.stragglers.policy": "correct"}, "spec.stragglers.allowedLateness", "is missing: policy 'correct'"),
    Broken({"spec.stragglers.allowedLateness": "1m"}, "spec.stragglers.allowedLateness", "belongs to policy 'correct'"),
    Broken({"spec.sinks.0.topic": GONE}, "spec.sinks[0]", "must have exactly one of topic and postgres"),
    Broken({"spec.sinks.0": {**_TABLE, "key": ["url"]}}, "spec.sinks[0].key", "belongs to topics only"),
    Broken(
        {"spec.checkpoint": {"uri": "s3a://shop/state", "volumeClaim": {"size": "1Gi"}}},
        "spec.checkpoint.uri",
        "must not stand beside volumeClaim",
    ),
    Broken({"spec.restart.maxBackoff": "1s"}, "spec.restart.maxBackoff", "must not be shorter than backoff"),
    Broken({"spec.transform.+": _WINDOW}, "spec.transform", "has more than one window step"),
    Broken(
        {"spec.executors.instances": 4, "spec.remediation.scaleOut": {"maxInstances": 2}},
        "spec.remediation.scaleOut.maxInstances",
        "must not be less than executors.instances",
    ),
    Broken(
        {"spec.config": {"retention.ms": "1"}},
        "spec.config",
        "it has a field of its own, retention.time",
        True,
        "Topic",
    ),
    Broken({"spec.config": {"retention.bytes": "1"}}, "spec.config", "of its own, retention.bytes", True, "Topic"),
    Broken({"spec.config": {"cleanup.policy": "delete"}}, "spec.config", "a field of its own, cleanup", True, "Topic"),
)

BROKEN_WIRES = (
    Broken({"spec.sources.0.schema": "user string, url text"}, "spec.sources[0].schema", "unknown type 'text'", False),
    Broken({"spec.sources.0.key": "usr"}, "spec.sources[0].key", "did you mean 'user'?", False),
    Broken({"spec.sources.0.eventTime.column": "at"}, "spec.sources[0].eventTime.column", "does not have", False),
    Broken({"spec.sources.0.eventTime.column": "url"}, "spec.sources[0].eventTime.column", "'url' is string", False),
    Broken({"spec.sources.0.eventTime": GONE}, "spec.sources[0].eventTime", "a window needs it"),
    Broken({"spec.sources.0.name": "input"}, "spec.sources[0].name", "a sql step calls its own input so", False),
    Broken({"spec.transform.0.name": "Views"}, "spec.transform[0].name", "again, as sources[0].name is", False),
    Broken({"spec.transform.0.input": "view"}, "spec.transform[0].input", "did you mean 'views'?", False),
    Broken(
        {"spec.transform.0.input": "later", "spec.transform.+": {"name": "later", "input": "views", "sql": "SELECT 1"}},
        "spec.transform[0].input",
        "is not before this step",
        False,
    ),
    Broken({"spec.sources.+": _SECOND}, "spec.transform[0].input", "is missing: there are several sources", False),
    Broken(
        {"spec.sources.+": _SECOND, "spec.transform": GONE, "spec.sinks.0.key": GONE},
        "spec.transform",
        "several",
        False,
    ),
    Broken(
        {"spec.sources.+": _SECOND, "spec.transform.0.input": "views"}, "spec.sources[1]", "is used by no step", False
    ),
    Broken(
        {"spec.transform": [{"sql": "SELECT 1"}, {**_WINDOW, "input": "views"}]},
        "spec.transform[0]",
        "has a result that no later step takes",
        False,
    ),
    Broken(
        {
            "spec.sources.+": {**_SECOND, "topic": "pageviews"},
            "spec.transform.0": {"sql": "SELECT * FROM views JOIN clicks"},
            "spec.transform.+": _WINDOW,
        },
        "spec.sources[1].topic",
        "read it once",
        False,
    ),
    Broken({"spec.sinks.0.topic": "pageviews"}, "spec.sinks[0].topic", "it would read its own output"),
    Broken({"spec.malformed": {"topic": "pageviews"}}, "spec.malformed.topic", "it would read its own output"),
    Broken(
        {"spec.stragglers": {"policy": "aside", "topic": "pageviews"}},
        "spec.stragglers.topic",
        "it would read its own output",
    ),
    Broken({"spec.malformed": {"topic": "pageviews-per-minute"}}, "spec.malformed.topic", "writes to it already"),
    Broken(
        {"spec.malformed": {"topic": "odd"}, "spec.stragglers": {"policy": "aside", "topic": "odd"}},
        "spec.stragglers.topic",
        "malformed.topic writes to it already",
    ),
    Broken({"spec.sinks.+": {"topic": "pageviews-per-minute"}}, "spec.sinks[1].topic", "writes to it already", False),
    Broken({"spec.sinks.+": _TABLE, "spec.sinks": [_TABLE, _TABLE]}, "spec.sinks[1].postgres.table", "another", False),
    Broken({f"{_WINDOW_AT}.by": ["ulr"], "spec.sinks.0.key": GONE}, "spec.transform[0].window.by[0]", "'url'?", False),
    Broken({"spec.sinks.0.key": ["start"]}, "spec.sinks[0].key[0]", "it has window_start, window_end, url", False),
    Broken({"spec.sinks.0.key": ["url", "url"]}, "spec.sinks[0].key[1]", "names column 'url' again", False),
    Broken(
        {"spec.transform": GONE, "spec.sinks.0.key": ["page"]},
        "spec.sinks[0].key[0]",
        "which its input does not",
        False,
    ),
    Broken(
        {"spec.transform": GONE, "spec.sinks.0.key": GONE, "spec.stragglers": {"policy": "aside", "topic": "late"}},
        "spec.stragglers.policy",
        "without a window step no event is late",
    ),
    Broken(
        {
            "spec.stragglers": {"policy": "correct", "allowedLateness": "1m"},
            _WINDOW_AT: _SESSION,
            "spec.transform.+": {"sql": "SELECT * FROM input"},
        },
        "spec.transform[0].window",
        "must be the last step",
    ),
    Broken(
        {"spec.stragglers": {"policy": "correct", "allowedLateness": "1m"}, "spec.sinks.0.key": ["url"]},
        "spec.sinks[0].key",
        "lacks window_start",
        False,
    ),
    Broken(
        {
            "spec.stragglers": {"policy": "correct", "allowedLateness": "1m"},
            "spec.sinks.0.key": ["url", "window_end", "revision"],
        },
        "spec.sinks[0].key",
        "must not have 'revision'",
        False,
    ),
)
BROKEN = (*WRONG_FIELDS, *BROKEN_RULES, *BROKEN_WIRES)
