"""Which step takes what, read from the spec alone, and good jobs of every shape that must not be refused."""

from typing import Any

import pytest

from millrace.resources import graph
from tests.unit.specs.builders import GONE, JOB, job

pytestmark = pytest.mark.unit

_WINDOW = JOB["spec"]["transform"][0]
_CLICKS = {"name": "clicks", "topic": "clicks", "schema": "user string, at timestamp", "eventTime": {"column": "at"}}
_PRICES = {"name": "prices", "topic": "prices", "schema": "url string, price double"}


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT * FROM input", {"input"}),
        ("select a from Views v join clicks AS c on v.a = c.a where x = 'from nowhere'", {"views", "clicks"}),
        ("SELECT * FROM `views`, clicks c", {"views", "clicks"}),
        ("SELECT * FROM (SELECT * FROM views) LEFT JOIN prices USING (url)", {"views", "prices"}),
        ("SELECT 1 -- FROM views\n FROM clicks /* JOIN prices */", {"clicks"}),
        ("SELECT extract(day FROM at) FROM views", {"at", "views"}),
        ("SELECT 1", set()),
    ],
)
def test_the_tables_of_a_query(query: str, names: set[str]) -> None:
    assert graph.tables(query) == names


@pytest.mark.parametrize(
    "edits",
    [
        {"transform": GONE, "sinks__0__key": ["user"]},
        {"transform": [{"python": {"function": "shop.views:transform"}}], "sinks__0__key": ["anything"]},
        {"transform": [{"sql": "SELECT * FROM views"}, _WINDOW]},
        {"transform": [{"name": "pages", "sql": "SELECT * FROM input"}, {**_WINDOW, "input": "pages"}]},
        {"transform": [_WINDOW, {"sql": "SELECT url, views FROM input"}], "sinks__0__key": ["url"]},
        {"sources__+": _CLICKS, "transform": [{"sql": "SELECT url FROM views JOIN clicks USING (user)"}, _WINDOW]},
        # a source that only enriches what the window gets later needs no event time
        {
            "sources__+": _PRICES,
            "transform": [{**_WINDOW, "input": "views"}, {"sql": "SELECT * FROM input JOIN prices"}],
        },
        {"stragglers": {"policy": "aside", "topic": "late"}, "malformed": {"topic": "bad"}},
        {"stragglers": {"policy": "correct", "allowedLateness": "1m"}, "sinks__0__key": ["window_end", "url"]},
        {"checkpoint": {"deletionPolicy": "Delete"}},
    ],
    ids=str,
)
def test_good_jobs_are_not_refused(edits: dict[str, Any]) -> None:
    assert job(**edits).spec.sources[0].name == "views"


def test_the_sources_that_feed_a_step_are_found_through_the_steps_before_it() -> None:
    steps = [
        {"name": "both", "sql": "SELECT * FROM views JOIN clicks USING (user)"},
        {"name": "kept", "python": {"function": "shop.views:keep"}},
        {**_WINDOW, "input": "kept"},
    ]
    spec = job(sources__0=JOB["spec"]["sources"][0], **{"sources__+": _CLICKS}, transform=steps).spec
    assert graph.feeding(spec, 2) == {"views", "clicks"}
    assert graph.taken(spec, 2) == {1}
    assert graph.window_index(spec) == 2
