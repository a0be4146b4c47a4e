"""The operator's own machinery: election, queue, cache, alerts, and what it reads from the lag observer."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from millrace_operator.actions import Apply, Manifest, Ref, Warn, WriteStatus
from millrace_operator.edge.apply import NotLeaderError, Writer, event
from millrace_operator.edge.cache import Cache, Key
from millrace_operator.edge.lags import parse
from millrace_operator.edge.leader import Leader
from millrace_operator.edge.queues import WakeQueue
from millrace_operator.settings import Election
from millrace_operator.streamjobs.state import Lag
from tests.unit.operator.memory import MemoryApi

pytestmark = pytest.mark.unit

QUICK = Election(lease=1, renew=0.02, deadline=0.3, retry=0.02)


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


def test_one_of_two_leads_and_the_other_follows_when_it_dies() -> None:
    async def main() -> None:
        api = MemoryApi()
        first, second = (Leader(api, "home", name, QUICK) for name in ("first", "second"))
        await first.acquire()
        waiting = asyncio.create_task(second.acquire())
        keeping = asyncio.create_task(first.keep())
        await asyncio.sleep(0.2)
        assert (first.is_leader(), second.is_leader()) == (True, False)
        keeping.cancel()  # it dies without a word
        await asyncio.wait_for(waiting, 5)
        assert (first.is_leader(), second.is_leader()) == (False, True)

    run(main)


def test_a_leader_that_lets_go_is_followed_at_once() -> None:
    async def main() -> None:
        api = MemoryApi()
        slow = Election(lease=60, renew=0.02, deadline=30, retry=0.02)
        first, second = (Leader(api, "home", name, slow) for name in ("first", "second"))
        await first.acquire()
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(0.05)
        await first.release()
        await asyncio.wait_for(waiting, 2)
        assert not first.is_leader()

    run(main)


def test_a_leader_that_cannot_renew_stops_before_its_lease_is_over() -> None:
    async def main() -> None:
        api = MemoryApi()
        leader = Leader(api, "home", "first", QUICK)
        await leader.acquire()
        api.away = True
        await asyncio.wait_for(leader.keep(), 0.9)
        assert not leader.is_leader()

    run(main)


STATUS = WriteStatus(Ref("millrace.io/v1alpha1", "StreamJob", "shop", "views"), {"state": "Stalled"})
CONFIG = Apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}}, "create")


def test_a_refused_object_does_not_keep_the_status_from_being_written() -> None:
    async def main() -> None:
        api = MemoryApi()
        api.refuse["ConfigMap"] = 403
        done = await Writer(api, lambda: True).carry_out([CONFIG, STATUS])
        assert done.refusals == ("ConfigMap c: create: ConfigMap is refused",)
        assert [one["kind"] for one in done.written] == ["StreamJob"]

    run(main)


def test_without_the_lease_nothing_is_written() -> None:
    async def main() -> None:
        api = MemoryApi()
        with pytest.raises(NotLeaderError):
            await Writer(api, lambda: False).carry_out([CONFIG])
        assert api.objects == {}

    run(main)


def test_the_same_warning_is_one_event() -> None:
    warning = Warn(STATUS.ref, "u", "NoProgress", "stuck", "2026-03-01T12:00:00Z")

    async def main() -> None:
        api = MemoryApi()
        await Writer(api, lambda: True).carry_out([warning, warning])
        assert len(api.objects) == 1

    run(main)
    assert event(warning)["type"] == "Warning"


def test_a_key_is_worked_on_once_at_a_time_and_again_when_it_was_woken_meanwhile() -> None:
    async def main() -> None:
        queue: WakeQueue[str] = WakeQueue()
        queue.wake("a")
        queue.wake("a")
        assert await queue.take() == "a"
        queue.wake("a")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.take(), 0.05)
        queue.done("a")
        assert await asyncio.wait_for(queue.take(), 1) == "a"

    run(main)


def test_the_earliest_wish_counts() -> None:
    async def main() -> None:
        queue: WakeQueue[str] = WakeQueue()
        queue.wake("later", 60)
        queue.wake("soon", 0.05)
        queue.wake("later", 0.01)
        assert [await queue.take(), await queue.take()] == ["later", "soon"]

    run(main)


def part(version: int, uid: str = "u") -> Manifest:
    labels = {"millrace.io/job": "views"}
    meta = {"name": "c", "namespace": "shop", "uid": uid, "resourceVersion": str(version), "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"version": str(version)}}


def test_an_older_version_never_replaces_a_newer_one() -> None:
    cache, key = Cache(), Key("shop", "views")
    assert cache.put_part(part(7))
    assert not cache.put_part(part(5))
    assert cache.parts(key)["ConfigMap", "c"]["data"] == {"version": "7"}
    assert cache.put_part(part(3, uid="made again"))


def test_a_full_list_removes_what_is_gone() -> None:
    cache, key = Cache(), Key("shop", "views")
    cache.put_part(part(7))
    cache.replace_parts("ConfigMap", [])
    assert cache.parts(key) == {}


def test_lag_is_summed_in_records_and_worst_in_seconds() -> None:
    text = (
        '# HELP other x\nother{a="b"} 3\n'
        'millrace_job_lag_records{namespace="shop",job="views",topic="t",partition="0"} 5\n'
        'millrace_job_lag_records{namespace="shop",job="views",topic="t",partition="1"} 7\n'
        'millrace_job_lag_seconds{namespace="shop",job="views",topic="t",partition="0"} 2.5\n'
        'millrace_job_lag_seconds{namespace="shop",job="views",topic="t",partition="1"} 1\n'
        'millrace_job_verdict{namespace="shop",job="views",verdict="ok"} 0\n'
        'millrace_job_verdict{namespace="shop",job="views",verdict="catching-up"} 1\n'
    )
    assert parse(text) == {Key("shop", "views"): Lag(12, 2.5, "catching-up")}
