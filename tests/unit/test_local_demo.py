"""The demo's bookkeeping: what was sent against what was read; requests to stop as things that can be waited for."""

import os
import signal
import time
from pathlib import Path

import pytest

from millrace.local.demo import compare, example_files, examples_folder
from millrace.local.results import newest
from millrace.local.signals import StopRequests
from millrace.local.statuses import Counts, JobStatus, Source
from millrace.local.tables import Row

pytestmark = pytest.mark.unit

SENT = {"pageviews": {"ordinary": 90, "malformed": 6, "ahead": 4}, "orders": {"ordinary": 10}}


def row(read: int, malformed: int = 6, future: int = 4, topic: str = "pageviews") -> Row:
    counts = Counts(read=read, malformed=malformed, future=future, on_time=read - malformed - future)
    return Row("shop/visits", Path("log"), JobStatus(sources={"views": Source(topic, counts)}))


def test_sent_and_read_agree_only_when_all_three_figures_do() -> None:
    assert [one.holds for one in compare([row(100)], SENT)] == [True]
    for wrong in (row(99), row(100, malformed=5), row(100, future=5)):
        assert [one.holds for one in compare([wrong], SENT)] == [False]


def test_only_the_shops_own_topics_are_compared() -> None:
    assert compare([row(7, topic="elsewhere")], SENT) == []


def test_the_examples_are_found_by_name() -> None:
    assert example_files(["visits"]) == [examples_folder() / "visits.yaml"]


def test_the_newest_results_come_first_and_of_a_window_the_largest() -> None:
    results = [{"window_end": "b", "n": 1}, {"window_end": "b", "n": 5}, {"window_end": "a", "n": 9}]
    assert [one["n"] for one in newest(results, 2)] == [5, 1]


def test_a_request_to_stop_ends_the_wait_and_is_counted() -> None:
    before = signal.getsignal(signal.SIGINT)
    with StopRequests() as requests:
        started = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)
        requests.wait(30)
        assert time.monotonic() - started < 10
        assert (requests.count, requests.terminated) == (1, False)
        os.kill(os.getpid(), signal.SIGTERM)
        requests.wait(30)
        assert (requests.count, requests.terminated) == (2, True)
    assert signal.getsignal(signal.SIGINT) is before
