"""What a person sees of a run: in the live table, in plain lines, in the summary."""

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from millrace.kafka.positions import Lag
from millrace.local.drivers import Failure
from millrace.local.screens import PlainScreen
from millrace.local.statuses import Counts, JobStatus, Source
from millrace.local.tables import Row, line, live, seconds, summary

pytestmark = pytest.mark.unit

COUNTS = Counts(read=12_345, malformed=45, future=5, on_time=12_000, late=295, dropped=200, aside=0, corrected=95)
STATUS = JobStatus(
    state="running",
    batch=9,
    batch_seconds=1.23,
    sources={"views": Source("pageviews", COUNTS)},
    written={"visits": 678},
)
ROW = Row("shop/visits", Path("driver.log"), STATUS, Lag(4_321, 12.3))


def drawn(what: RenderableType, width: int = 100) -> str:
    console = Console(file=StringIO(), width=width)
    console.print(what)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_the_live_table_shows_every_figure_and_fits_on_a_terminal() -> None:
    text = drawn(live([ROW], "Kafka here"), width=100)
    for figure in ("running", "12,345", "678", "4,321", "12 s", "295", "45", "5", "1.2 s"):
        assert figure in text
    assert all(len(one) <= 100 for one in text.splitlines())
    assert len(text.splitlines()) == 3, "headline, header, one line for the job"


def test_the_table_still_shows_all_figures_on_a_narrow_terminal() -> None:
    text = drawn(live([ROW], "Kafka here"), width=80)
    for figure in ("12,345", "678", "4,321", "12 s", "295", "1.2 s"):
        assert figure in text


def test_unknown_lag_is_not_shown_as_zero() -> None:
    assert "lag" not in line(replace(ROW, lag=None))
    assert "lag 0, behind 0.0 s" in line(replace(ROW, lag=Lag(0, 0.0)))


def test_a_job_that_waits_says_why() -> None:
    waiting = replace(ROW, status=replace(STATUS, state="waiting", cause="SinkUnavailable", message="No broker."))
    assert "SinkUnavailable: No broker." in drawn(live([waiting], ""))


def test_a_job_that_failed_says_why_and_where_its_log_is() -> None:
    failed = replace(ROW, failure=Failure(3, "UserCode", "f raised ValueError."), ended=True)
    for text in (drawn(live([failed], "")), drawn(summary([failed]))):
        assert "UserCode: f raised ValueError. Its log: driver.log" in text
    assert failed.state == "failed"


def test_the_summary_holds_the_whole_equation_and_the_records_of_each_sink() -> None:
    text = drawn(summary([ROW]), width=140)
    for figure in ("12,345", "45", "12,000", "295", "200", "95", "visits", "678"):
        assert figure in text
    assert "do not add up" not in text


def test_counts_that_do_not_add_up_are_not_hidden() -> None:
    broken = replace(STATUS, sources={"views": Source("pageviews", replace(COUNTS, late=294))})
    assert "do not add up" in drawn(summary([replace(ROW, status=broken)]))


def test_lost_records_are_told() -> None:
    lossy = replace(STATUS, sources={"views": Source("pageviews", replace(COUNTS, lost=17))})
    assert "17 records of source views were deleted before they were read" in drawn(
        summary([replace(ROW, status=lossy)])
    )


@pytest.mark.parametrize(("value", "said"), [(0, "0.0 s"), (9.94, "9.9 s"), (61, "61 s"), (600, "10 min")])
def test_lengths_of_time(value: float, said: str) -> None:
    assert seconds(value) == said


def test_plain_lines_come_when_the_state_changes_and_not_each_time() -> None:
    console = Console(file=StringIO(), width=140)
    screen = PlainScreen(console)
    screen.show([ROW], "")
    screen.show([ROW], "")
    screen.show([replace(ROW, ended=True)], "")
    assert isinstance(console.file, StringIO)
    lines = console.file.getvalue().splitlines()
    assert [one.split()[2] for one in lines] == ["running:", "stopped:"]
