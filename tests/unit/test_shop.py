"""The made-up shop: repeatable, keyed steadily, and wrong in exactly the ways it says."""

import json
import math
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

import pytest

from millrace.shop import ORDERS, PAGEVIEWS, Burst, Mix, Record, Shop, records

pytestmark = pytest.mark.unit

OPENED = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
FIELDS = {
    PAGEVIEWS: {"user", "url", "occurred_at", "sent_at", "received_at"},
    ORDERS: {"order_id", "user", "product", "amount", "occurred_at"},
}


def some(shop: Shop, count: int = 6_000) -> list[Record]:
    return list(islice(records(shop, OPENED), count))


def seconds(text: str) -> float:
    return (datetime.fromisoformat(text) - OPENED).total_seconds()


def event_seconds(record: Record) -> float:
    """The event's time as a job sees it: for page views corrected by the three clocks."""
    event = json.loads(record.value)
    occurred = seconds(event["occurred_at"])
    return occurred if record.topic == ORDERS else occurred + seconds(event["received_at"]) - seconds(event["sent_at"])


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert some(Shop(seed=7)) == some(Shop(seed=7))
    assert some(Shop(seed=7)) != some(Shop(seed=8))


def test_each_event_has_the_fields_of_its_topic_and_its_user_as_key() -> None:
    for record in some(Shop(mix=Mix(malformed=0))):
        event = json.loads(record.value)
        assert set(event) == FIELDS[record.topic]
        assert record.key.decode() == event["user"]


def test_the_shares_are_those_of_the_mix() -> None:
    mix = Mix(offline=0.1, malformed=0.05, ahead=0.02)
    kinds: Counter[str] = Counter(record.kind for record in some(Shop(mix=mix)))
    for kind, share in (("offline", 0.1), ("malformed", 0.05), ("ahead", 0.02)):
        assert math.isclose(kinds[kind] / 6_000, share, rel_tol=0.25), kind


def test_an_ordinary_event_is_a_moment_old_even_from_a_device_with_a_wrong_clock() -> None:
    wrong_devices = 0
    for record in some(Shop(mix=Mix(wrong_clocks=0.5))):
        if record.kind == "ordinary":
            assert -0.01 < record.due_seconds - event_seconds(record) < 2
            wrong_devices += record.topic == PAGEVIEWS and abs(seconds(json.loads(record.value)["occurred_at"])) > 3600
    assert wrong_devices > 300


def test_an_offline_device_is_late_and_a_clock_ahead_is_hours_ahead() -> None:
    for record in some(Shop()):
        if record.kind == "offline":
            assert 19 < record.due_seconds - event_seconds(record) < 1000
        if record.kind == "ahead":
            assert event_seconds(record) - record.due_seconds > 3600


def test_malformed_events_are_malformed_in_three_ways() -> None:
    ways: Counter[str] = Counter()
    for record in some(Shop(mix=Mix(malformed=0.1))):
        if record.kind != "malformed":
            continue
        try:
            event = json.loads(record.value)
        except ValueError:
            ways["broken JSON"] += 1
            continue
        ways["no time" if "occurred_at" not in event else "wrong type"] += 1
        assert event.get("occurred_at", "yesterday, around noon").startswith("yesterday")
    assert set(ways) == {"broken JSON", "no time", "wrong type"}


def test_history_comes_first_and_the_rate_is_kept() -> None:
    shop = Shop(events_per_second=50, history=timedelta(minutes=1))
    before = list(takewhile(lambda record: record.due_seconds < 0, records(shop, OPENED)))
    assert math.isclose(before[0].due_seconds, -60)
    assert len(before) == pytest.approx(3000, abs=1)
    assert [record.due_seconds for record in before] == sorted(record.due_seconds for record in before)


def test_a_burst_brings_its_stragglers_at_its_time_and_once() -> None:
    shop = Shop(events_per_second=50, mix=Mix(offline=0), burst=Burst(at_seconds=10, events=300, late_seconds=240))
    burst = [record for record in some(shop, 5000) if record.kind == "offline"]
    assert len(burst) == 300
    for record in burst:
        assert record.due_seconds == pytest.approx(10, abs=0.1)
        assert record.due_seconds - event_seconds(record) == pytest.approx(240, abs=1)


def test_users_share_the_records_steadily() -> None:
    users = Counter(record.key for record in some(Shop(users=20)))
    assert len(users) == 20
    assert max(users.values()) < 1.6 * min(users.values())
