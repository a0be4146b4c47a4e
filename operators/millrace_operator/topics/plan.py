"""What to do to a Kafka cluster so that it has the declared topics, and what to tell of each. All topics at once.

Nothing is ever made smaller, and what is only in Kafka is not touched.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from millrace_operator.topics import guard
from millrace_operator.topics.state import CLEANUP, Declared, Kafka, Reader, Seen

BROKER_TIME = MappingProxyType({"message.timestamp.type": "LogAppendTime"})
"""For topics that we make: with the broker's time in each record no producer's clock distorts lag or retention."""

OTHERS = frozenset(["leader.replication.throttled.replicas", "follower.replication.throttled.replicas"])
"""Settings that tools set for a while when they move partitions; not drift."""


@dataclass(frozen=True)
class Change:
    """Settings of one topic: what to set, and what to give back to the broker's default."""

    topic: str
    put: Mapping[str, str] = field(default_factory=dict)
    reset: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What is told about one resource."""

    declared: Declared
    ready: bool
    reason: str
    message: str
    seen: Seen | None = None
    release: bool = False
    """Nothing holds the resource any more."""


@dataclass(frozen=True)
class TopicsPlan:
    create: tuple[Declared, ...] = ()
    grow: tuple[tuple[str, int], ...] = ()
    alter: tuple[Change, ...] = ()
    delete: tuple[str, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    ask: tuple[str, ...] = ()
    """Topics whose readers must be known before their retention may get shorter."""

    def topics(self) -> set[str]:
        """The topics that something is to be done to."""
        created, altered = {one.topic for one in self.create}, {one.topic for one in self.alter}
        return created | altered | {name for name, _ in self.grow} | set(self.delete)

    @property
    def is_quiet(self) -> bool:
        return not (self.create or self.grow or self.alter or self.delete or self.ask)


@dataclass
class _Draft:
    create: list[Declared] = field(default_factory=list)
    grow: list[tuple[str, int]] = field(default_factory=list)
    alter: list[Change] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)
    ask: list[str] = field(default_factory=list)


def plan(
    declared: Iterable[Declared],
    kafka: Kafka,
    readers: Mapping[str, tuple[Reader, ...]] | None = None,
    errors: Mapping[str, str] | None = None,
) -> TopicsPlan:
    """`readers` are known for the topics that were asked for; `errors` is what the broker said to the last try."""
    declared = list(declared)
    if kafka.problem is not None:
        return TopicsPlan(outcomes=tuple(_unreachable(one, kafka.reason, kafka.problem) for one in declared))
    draft = _Draft()
    winners = _winners(declared)
    outcomes = [
        _one(
            one,
            winners.get(one.topic),
            kafka.topics.get(one.topic),
            draft,
            readers or {},
            (errors or {}).get(one.topic),
        )
        for one in declared
    ]
    return TopicsPlan(
        tuple(draft.create),
        tuple(draft.grow),
        tuple(draft.alter),
        tuple(draft.delete),
        tuple(outcomes),
        tuple(draft.ask),
    )


def _winners(declared: Iterable[Declared]) -> dict[str, Declared]:
    """For each topic, the oldest resource that is not on its way out decides."""
    found: dict[str, Declared] = {}
    for one in declared:
        if one.invalid is None and not one.deleting and (one.topic not in found or one.age < found[one.topic].age):
            found[one.topic] = one
    return found


def _unreachable(one: Declared, reason: str, problem: str) -> Outcome:
    if one.deleting and not one.delete_with_resource:
        return Outcome(one, False, "Deleting", "", release=True)
    return Outcome(one, False, reason, problem)


def _one(
    one: Declared,
    winner: Declared | None,
    seen: Seen | None,
    draft: _Draft,
    readers: Mapping[str, tuple[Reader, ...]],
    error: str | None,
) -> Outcome:
    if one.deleting:
        return _deleted(one, winner, seen, draft, error)
    if one.invalid is not None:
        return Outcome(one, False, "InvalidSpec", one.invalid, seen)
    if winner is not None and winner.uid != one.uid:
        owner = f"{winner.ref.namespace}/{winner.ref.name}"
        return Outcome(one, False, "OwnedByAnother", f"Topic {one.topic} belongs to the older Topic {owner}.", seen)
    if one.paused:
        return Outcome(one, seen is not None, "Paused", "The pause annotation is set; nothing is changed.", seen)
    if seen is None:
        draft.create.append(one)
        return Outcome(one, False, "BrokerRefused" if error else "Creating", error or "")
    return _existing(one, seen, draft, readers, error)


def _existing(
    one: Declared, seen: Seen, draft: _Draft, readers: Mapping[str, tuple[Reader, ...]], error: str | None
) -> Outcome:
    if one.partitions > seen.partitions:
        draft.grow.append((one.topic, one.partitions))
    change = difference(one, seen)
    refused = None
    if guard.shortens(change.put, change.reset, seen) and not one.forced:
        if one.topic not in readers:
            draft.ask.append(one.topic)
            return Outcome(one, False, "Changing", "", seen)
        refused = guard.objection(change.put, change.reset, seen, readers[one.topic])
        change = guard.without_retention(change.put, change.reset, one.topic, Change) if refused else change
    if change.put or change.reset:
        draft.alter.append(change)
    return _judged(one, seen, refused, error, bool(change.put or change.reset))


def _judged(one: Declared, seen: Seen, refused: str | None, error: str | None, changing: bool) -> Outcome:
    if error is not None:
        return Outcome(one, False, "BrokerRefused", error, seen)
    if one.partitions < seen.partitions:
        message = (
            f"The topic has {seen.partitions} partitions and cannot shrink to {one.partitions}: "
            "Kafka cannot take partitions away; make a new topic and move the jobs to it."
        )
        return Outcome(one, False, "PartitionsCannotShrink", message, seen)
    if refused is not None:
        return Outcome(one, False, "UnreadRecords", refused, seen)
    if one.replicas != seen.replicas:
        message = f"The topic has {seen.replicas} replicas, not {one.replicas}: this version does not move replicas."
        return Outcome(one, False, "ReplicasDiffer", message, seen)
    if changing or one.partitions > seen.partitions:
        return Outcome(one, False, "Changing", "", seen)
    return Outcome(one, True, "AsDeclared", "", seen)


def difference(one: Declared, seen: Seen) -> Change:
    """What is set in Kafka and what is declared, compared: both ways, so that drift goes back."""
    put = {key: value for key, value in one.config.items() if not _same(key, seen.value(key), value)}
    kept = one.config.keys() | OTHERS | BROKER_TIME.keys()
    reset = tuple(sorted(key for key in seen.config if key not in kept and seen.config[key] != seen.defaults.get(key)))
    return Change(one.topic, put, reset)


def _same(key: str, one: str | None, other: str) -> bool:
    if key == CLEANUP and one is not None:
        return set(one.split(",")) == set(other.split(","))
    return one == other


def _deleted(one: Declared, winner: Declared | None, seen: Seen | None, draft: _Draft, error: str | None) -> Outcome:
    """The topic goes only where the spec says so and no other resource declares it."""
    if not one.delete_with_resource or winner is not None or seen is None or one.invalid is not None:
        return Outcome(one, False, "Deleting", "", seen, release=True)
    draft.delete.append(one.topic)
    return Outcome(one, False, "BrokerRefused" if error else "Deleting", error or "", seen)
