"""What a change does follows from the field's own declaration; what the state depends on can be kept and compared."""

import json
from typing import Any

import pytest

from millrace.resources import StreamJobSpec, parse_object
from millrace.resources.changes import Change, compare, fingerprint, misfits, worst
from millrace.resources.fields import Effect
from tests.unit.specs.builders import GONE, JOB, edited, job, topic

pytestmark = pytest.mark.unit

_SQL = {"name": "kept", "sql": "SELECT * FROM input"}
_WINDOW = "transform.0.window"
_VOLUME = {"checkpoint": {"volumeClaim": {"size": "10Gi"}}}
_CORRECT = {"stragglers": {"policy": "correct", "allowedLateness": "10m"}}
_SCHEMA = JOB["spec"]["sources"][0]["schema"]

CASES: list[tuple[dict[str, Any], dict[str, Any], list[tuple[str, Effect]]]] = [
    ({}, {}, []),
    ({}, {"slo.lagSeconds": 30}, [("slo.lagSeconds", "live")]),
    ({}, {"executors.instances": 3}, [("executors.instances", "live")]),
    ({}, {"suspend": True}, [("suspend", "live")]),
    ({}, {"remediation.scaleOut": {"maxInstances": 9}}, [("remediation.scaleOut", "live")]),
    ({}, {"restart.stalledAfter": "1m"}, [("restart.stalledAfter", "live")]),
    ({}, {"upgrade.mode": "restart-empty"}, [("upgrade.mode", "live")]),
    ({}, {"checkpoint.deletionPolicy": "Delete"}, [("checkpoint.deletionPolicy", "live")]),
    (_VOLUME, {"checkpoint.volumeClaim.size": "20Gi"}, [("checkpoint.volumeClaim.size", "live")]),
    (_VOLUME, {"checkpoint.volumeClaim.size": "5Gi"}, [("checkpoint.volumeClaim.size", "new-state")]),
    (_VOLUME, {"checkpoint.volumeClaim.size": "10240Mi"}, []),
    ({}, {"checkpoint.uri": "s3a://shop/state"}, [("checkpoint.uri", "new-state")]),
    ({}, {"executors.memory": "4Gi"}, [("executors.memory", "restart")]),
    ({}, {"stragglers.delay": "1m"}, [("stragglers.delay", "restart")]),
    ({}, {"stragglers.delay": "30000ms"}, []),
    ({}, {"malformed": {"topic": "bad"}}, [("malformed", "restart")]),
    ({}, {"kafka.bootstrapServers": "kafka:9093"}, [("kafka.bootstrapServers", "restart")]),
    ({}, {"sources.0.maxRecordsPerBatch": 5}, [("sources[views].maxRecordsPerBatch", "restart")]),
    ({}, {"sources.0.topic": "other"}, [("sources[views].topic", "new-state")]),
    ({}, {"sources.0.schema": f"{_SCHEMA}, more int"}, [("sources[views].schema", "restart")]),
    ({}, {"sources.0.schema": _SCHEMA.replace("user string", "user int")}, [("sources[views].schema", "new-state")]),
    ({}, {"sources.0.schema": _SCHEMA.replace("user string, ", "")}, [("sources[views].schema", "new-state")]),
    ({}, {"sources.0.eventTime.column": "sent_at"}, [("sources[views].eventTime.column", "new-state")]),
    ({}, {"sources.0.eventTime.maxFutureSkew": "1m"}, [("sources[views].eventTime.maxFutureSkew", "restart")]),
    ({}, {"sources.0.name": "pages"}, [("sources[views]", "new-state"), ("sources[pages]", "new-state")]),
    ({}, {f"{_WINDOW}.size": "2m"}, [("transform[window].window.size", "new-state")]),
    ({}, {f"{_WINDOW}.aggregates.n": "sum(1)"}, [("transform[window].window.aggregates", "new-state")]),
    ({}, {"transform.0.name": "counted"}, [("transform[window].name", "restart")]),
    ({"transform": [_SQL]}, {"transform.0.sql": "SELECT 1 FROM input"}, [("transform[kept].sql", "restart")]),
    ({"transform": [_SQL]}, {"transform": []}, [("transform[kept]", "restart")]),
    ({}, {"transform": [_SQL, *JOB["spec"]["transform"]]}, [("transform[kept]", "restart")]),
    ({}, {"transform": GONE}, [("transform[window]", "new-state")]),
    (
        {"transform": [_SQL, {"name": "more", "sql": "SELECT * FROM input"}]},
        {"transform": [{"name": "more", "sql": "SELECT * FROM input"}, _SQL]},
        [("transform", "restart")],
    ),
    ({}, {"sinks.+": {"topic": "second"}}, [("sinks[second]", "restart")]),
    ({}, {"sinks.0.delivery": "at-least-once"}, [("sinks[pageviews-per-minute].delivery", "restart")]),
    (
        {},
        {"stragglers.policy": "aside", "stragglers.topic": "late"},
        [("stragglers.policy", "restart"), ("stragglers.topic", "restart")],
    ),
    (
        {},
        {"stragglers.policy": "correct", "stragglers.allowedLateness": "1m"},
        [("stragglers.policy", "new-state"), ("stragglers.allowedLateness", "new-state")],
    ),
    (_CORRECT, {"stragglers.allowedLateness": "5m"}, [("stragglers.allowedLateness", "restart")]),
    (_CORRECT, {"stragglers.allowedLateness": "20m"}, [("stragglers.allowedLateness", "new-state")]),
    (
        {},
        {"slo.lagSeconds": 9, "trigger.interval": "5s"},
        [("trigger.interval", "restart"), ("slo.lagSeconds", "live")],
    ),
]


def spec(*edits: dict[str, Any]) -> StreamJobSpec:
    """The job's spec after these edits; keys that ask for more than the table needs are taken off the sinks."""
    document = JOB
    for part in edits:
        document = edited(document, {f"spec.{path}": value for path, value in part.items()})
    if not any("window" in step for step in document["spec"].get("transform", [])):
        document = edited(document, {"spec.sinks.0.key": GONE})
    made = parse_object(document).spec  # type: ignore[attr-defined]
    assert isinstance(made, StreamJobSpec)
    return made


@pytest.mark.parametrize(("before", "edits", "expected"), CASES, ids=lambda value: "")
def test_what_a_change_does(before: dict[str, Any], edits: dict[str, Any], expected: list[tuple[str, Effect]]) -> None:
    changes = [change for change in compare(spec(before), spec(before, edits)) if not change.path.endswith(".key")]
    assert [(change.path, change.effect) for change in changes] == expected


@pytest.mark.parametrize(("before", "edits", "expected"), CASES, ids=lambda value: "")
def test_a_fingerprint_tells_the_changes_that_the_state_does_not_fit(
    before: dict[str, Any], edits: dict[str, Any], expected: list[tuple[str, Effect]]
) -> None:
    stored = json.loads(json.dumps(fingerprint(spec(before))))
    found = [change.path for change in misfits(stored, spec(before, edits))]
    # where the state lies is not part of what it is
    assert found == [p for p, effect in expected if effect == "new-state" and not p.startswith("checkpoint")]


def test_the_worst_change_counts() -> None:
    def made(*effects: Effect) -> list[Change]:
        return [Change("x", 1, 2, effect) for effect in effects]

    assert worst([]) is None
    assert worst(made("live")) == "live"
    assert worst(made("restart", "live")) == "restart"
    assert worst(made("live", "new-state", "restart")) == "new-state"


def test_a_change_prints_as_people_write_it() -> None:
    (change,) = compare(job().spec, job(stragglers__delay="1m30s").spec)
    assert str(change) == "stragglers.delay: 30s → 1m30s (restart)"
    (change,) = compare(job().spec, job(malformed={"topic": "bad"}).spec)
    assert str(change) == "malformed: nothing → {'topic': 'bad'} (restart)"


def test_topics_are_compared_by_the_same_code() -> None:
    (change,) = compare(topic().spec, topic(partitions=24).spec)
    assert change == Change("partitions", 12, 24, "live")


def test_a_fingerprint_of_an_older_version_is_compared_by_what_both_know() -> None:
    stored = fingerprint(job().spec)
    del stored["stragglers"]
    stored["was_there_once"] = 1
    assert misfits(stored, job(stragglers__policy="correct", stragglers__allowedLateness="1m").spec) == ()
