"""What the operator does to topics: declared and seen in, changes and outcomes out."""

from dataclasses import replace
from typing import Any

import pytest

from millrace_operator.actions import Finalizers, Ref, Warn, WriteStatus
from millrace_operator.topics import status
from millrace_operator.topics.plan import Change, Outcome, TopicsPlan, plan
from millrace_operator.topics.state import Cluster, Declared, Kafka, Reader, Seen, parse_topic
from tests.unit.operator.worlds import NOW

pytestmark = pytest.mark.unit

DEFAULTS = {"retention.ms": "604800000", "retention.bytes": "-1", "cleanup.policy": "delete", "segment.ms": "1000"}


def topic(name: str = "views", **changes: Any) -> Declared:
    made = Declared(
        ref=Ref("millrace.io/v1alpha1", "Topic", "shop", name),
        uid=f"uid-{name}",
        generation=1,
        created="2026-01-01T00:00:00Z",
        cluster=Cluster("kafka:9092"),
        topic="views",
        partitions=4,
        config={"cleanup.policy": "delete"},
    )
    return replace(made, **changes)


def seen(**changes: Any) -> Seen:
    return replace(Seen(4, 1, {}, DEFAULTS), **changes)


def look(*declared: Declared, there: Seen | None = None, **more: Any) -> TopicsPlan:
    return plan(declared, Kafka({"views": there} if there is not None else {}), **more)


def reasons(made: TopicsPlan) -> list[str]:
    return [one.reason for one in made.outcomes]


def test_a_missing_topic_is_made() -> None:
    made = look(topic())
    assert [one.topic for one in made.create] == ["views"]
    assert reasons(made) == ["Creating"]


def test_a_topic_as_declared_is_left_alone() -> None:
    made = look(topic(), there=seen())
    assert made.is_quiet
    assert [(one.ready, one.reason) for one in made.outcomes] == [(True, "AsDeclared")]


def test_partitions_grow_and_never_shrink() -> None:
    assert look(topic(partitions=6), there=seen()).grow == (("views", 6),)
    made = look(topic(partitions=2), there=seen())
    assert made.is_quiet
    assert reasons(made) == ["PartitionsCannotShrink"]


def test_settings_are_set_drift_is_put_back_and_what_tools_set_for_a_while_is_left() -> None:
    declared = topic(config={"cleanup.policy": "compact", "min.insync.replicas": "2"})
    drifted = {
        "segment.ms": "5",
        "leader.replication.throttled.replicas": "*",
        "message.timestamp.type": "LogAppendTime",
    }
    made = look(declared, there=seen(config=drifted))
    assert made.alter == (Change("views", {"cleanup.policy": "compact", "min.insync.replicas": "2"}, ("segment.ms",)),)


def test_the_order_of_cleanup_policies_is_no_difference() -> None:
    declared = topic(config={"cleanup.policy": "compact,delete"})
    assert look(declared, there=seen(config={"cleanup.policy": "delete,compact"})).is_quiet


def test_the_older_resource_owns_the_topic() -> None:
    young = topic("young", created="2026-02-01T00:00:00Z", partitions=9)
    made = look(young, topic("old"), there=seen())
    assert made.is_quiet
    assert reasons(made) == ["OwnedByAnother", "AsDeclared"]
    assert "shop/old" in made.outcomes[0].message


def test_when_the_older_one_goes_the_younger_takes_over() -> None:
    young = topic("young", created="2026-02-01T00:00:00Z")
    made = look(young, topic("old", deleting=True, delete_with_resource=True, held=True), there=seen())
    assert made.delete == ()
    assert reasons(made) == ["AsDeclared", "Deleting"]


@pytest.mark.parametrize(("policy", "deleted"), [(False, ()), (True, ("views",))])
def test_a_deleted_resource_keeps_its_topic_unless_told_otherwise(policy: bool, deleted: tuple[str, ...]) -> None:
    made = look(topic(deleting=True, held=True, delete_with_resource=policy), there=seen())
    assert made.delete == deleted
    assert made.outcomes[0].release is not policy


def test_once_the_topic_is_gone_the_resource_may_go() -> None:
    made = look(topic(deleting=True, held=True, delete_with_resource=True))
    assert made.is_quiet
    assert made.outcomes[0].release


SHORTER = {"cleanup.policy": "delete", "retention.ms": "60000"}
BEHIND = {"views": (Reader("shop/counts", 500, 3600.0),)}
CAUGHT_UP = {"views": (Reader("shop/counts", 0, 0.0),)}


def test_a_shorter_retention_asks_who_reads_first() -> None:
    made = look(topic(config=SHORTER), there=seen())
    assert made.ask == ("views",)
    assert made.alter == ()


def test_a_shorter_retention_waits_for_unread_records() -> None:
    made = look(topic(config=SHORTER | {"segment.ms": "7"}), there=seen(), readers=BEHIND)
    assert made.alter == (Change("views", {"segment.ms": "7"}),)
    assert reasons(made) == ["UnreadRecords"]
    assert "shop/counts" in made.outcomes[0].message


@pytest.mark.parametrize(
    ("declared", "readers"),
    [
        (topic(config=SHORTER), CAUGHT_UP),
        (topic(config=SHORTER), {"views": ()}),
        (topic(config=SHORTER, forced=True), None),
    ],
    ids=["caught up", "nobody reads", "forced"],
)
def test_a_shorter_retention_is_set_when_nothing_is_lost_or_it_is_forced(
    declared: Declared, readers: dict[str, tuple[Reader, ...]] | None
) -> None:
    made = look(declared, there=seen(), readers=readers)
    assert made.alter == (Change("views", {"retention.ms": "60000"}),)


@pytest.mark.parametrize(
    ("config", "asks"),
    [
        ({"retention.ms": "700000000"}, False),
        ({"retention.ms": "-1"}, False),
        ({"retention.bytes": "1000"}, True),
        ({"retention.ms": "600000000"}, True),
    ],
)
def test_only_what_deletes_more_is_asked_about(config: dict[str, str], asks: bool) -> None:
    made = look(topic(config={"cleanup.policy": "delete"} | config), there=seen())
    assert bool(made.ask) is asks


def test_an_unreachable_broker_is_told_and_nothing_is_tried() -> None:
    made = plan([topic(), topic("gone", topic="gone", deleting=True, held=True)], Kafka(problem="No broker answers."))
    assert made.is_quiet
    assert reasons(made) == ["BrokerUnreachable", "Deleting"]
    assert made.outcomes[1].release  # with Retain nobody needs the broker


def test_what_the_broker_refused_is_told_with_its_words() -> None:
    made = look(topic(replicas=3), errors={"views": "Replication factor: 3 larger than available brokers: 1."})
    assert reasons(made) == ["BrokerRefused"]
    assert "larger than available" in made.outcomes[0].message


def test_a_paused_topic_is_not_changed() -> None:
    assert look(topic(paused=True, partitions=9), there=seen()).is_quiet


def test_an_invalid_resource_owns_nothing() -> None:
    made = look(topic("wrong", invalid="spec.partitions: must be at least 1"), there=seen())
    assert made.is_quiet
    assert reasons(made) == ["InvalidSpec"]


def test_a_resource_is_read_with_its_settings() -> None:
    body = {
        "apiVersion": "millrace.io/v1alpha1",
        "kind": "Topic",
        "metadata": {"name": "views", "namespace": "shop", "uid": "u", "annotations": {"millrace.io/pause": "true"}},
        "spec": {"partitions": 3, "retention": {"time": "1h", "bytes": "1Gi"}, "config": {"segment.ms": "9"}},
    }
    made = parse_topic(body, "kafka:9092")
    assert made.cluster == Cluster("kafka:9092")
    assert made.paused
    assert made.config == {
        "cleanup.policy": "delete",
        "retention.ms": "3600000",
        "retention.bytes": "1073741824",
        "segment.ms": "9",
    }


def outcome(declared: Declared, ready: bool = True, reason: str = "AsDeclared", **more: Any) -> Outcome:
    return Outcome(declared, ready, reason, "", seen(), **more)


def test_a_status_that_says_the_same_is_not_written_again() -> None:
    first = list(status.actions(outcome(topic()), NOW))
    assert [type(one) for one in first] == [WriteStatus]
    written = first[0]
    assert isinstance(written, WriteStatus)
    assert written.status["partitions"] == 4
    assert list(status.actions(outcome(topic(status=written.status)), NOW)) == []


def test_a_warning_comes_with_a_new_reason_only() -> None:
    bad = outcome(topic(), False, "BrokerUnreachable")
    first = list(status.actions(bad, NOW))
    assert [type(one) for one in first] == [WriteStatus, Warn]
    assert isinstance(first[0], WriteStatus)
    other = Outcome(topic(status=first[0].status), False, "BrokerUnreachable", "still", seen())
    assert [type(one) for one in status.actions(other, NOW)] == [WriteStatus]


@pytest.mark.parametrize(
    ("declared", "names"),
    [(topic(delete_with_resource=True), ("millrace.io/topic",)), (topic(held=True), ())],
    ids=["taken", "given back"],
)
def test_only_a_topic_that_goes_with_its_resource_is_held(declared: Declared, names: tuple[str, ...]) -> None:
    found = [one for one in status.actions(outcome(declared), NOW) if isinstance(one, Finalizers)]
    assert [one.names for one in found] == [names]


def test_a_default_that_nobody_knows_counts_as_shorter() -> None:
    unknown = {key: value for key, value in DEFAULTS.items() if key != "retention.ms"}
    made = look(topic(), there=seen(config={"retention.ms": "3600000"}, defaults=unknown))
    assert made.ask == ("views",)
