"""Which topics a run makes: what is declared as it is declared, the rest with defaults."""

from typing import Any

import pytest

from millrace.kafka.topics import TopicPlan, fit_to_brokers
from millrace.local.topics import plan_topics, source_topics
from millrace.resources import StreamJob
from millrace.resources.reading import parse_object

pytestmark = pytest.mark.unit


def resource(kind: str, name: str, spec: dict[str, Any]) -> Any:
    return parse_object({"apiVersion": "millrace.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})


JOB = resource(
    "StreamJob",
    "views",
    {
        "sources": [
            {"name": "v", "topic": "in", "schema": "user string, at timestamp", "eventTime": {"column": "at"}},
        ],
        "stragglers": {"policy": "aside", "topic": "late"},
        "malformed": {"topic": "bad"},
        "transform": [{"window": {"type": "tumbling", "size": "1m", "aggregates": {"n": "count(*)"}}}],
        "sinks": [
            {"topic": "out"},
            {"postgres": {"secret": {"name": "db"}, "table": "views", "key": ["window_start"]}},
        ],
    },
)


def planned(*resources: Any) -> dict[str, TopicPlan]:
    return {plan.name: plan for plan in plan_topics(resources)}


def test_every_topic_that_a_job_names_is_planned_and_tables_are_not() -> None:
    assert set(planned(JOB)) == {"in", "out", "late", "bad"}
    assert planned(JOB)["in"] == TopicPlan("in")


def test_a_declared_topic_is_made_as_declared() -> None:
    spec = {
        "name": "in",
        "partitions": 12,
        "replicas": 3,
        "retention": {"time": "7d", "bytes": "1Gi"},
        "cleanup": "compact",
        "config": {"min.insync.replicas": "2"},
    }
    plan = planned(JOB, resource("Topic", "something-else", spec))["in"]
    assert (plan.partitions, plan.replicas) == (12, 3)
    assert dict(plan.config) == {
        "cleanup.policy": "compact",
        "retention.ms": str(7 * 24 * 3600 * 1000),
        "retention.bytes": str(2**30),
        "min.insync.replicas": "2",
    }


def test_a_topic_for_production_fits_on_one_broker() -> None:
    spec = {"replicas": 3, "config": {"min.insync.replicas": "2"}}
    (plan,) = fit_to_brokers(plan_topics([resource("Topic", "t", spec)]), brokers=1)
    assert (plan.replicas, plan.config["min.insync.replicas"]) == (1, "1")


def test_lag_is_asked_for_the_topics_that_are_read() -> None:
    assert isinstance(JOB, StreamJob)
    assert source_topics(JOB) == ("in",)
