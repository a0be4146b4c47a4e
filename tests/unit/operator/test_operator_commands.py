"""The pages of `millrace plan` and `millrace explain`, made from states in memory."""

from dataclasses import replace
from typing import Any

import pytest

from millrace_operator.commands.explain import Facts, page
from millrace_operator.commands.plan import job_lines, topic_lines
from tests.unit.operator.worlds import World, driver, ended, executor, moving, spec

pytestmark = pytest.mark.unit


def planned(world: World, is_new: bool = False) -> list[str]:
    return list(job_lines("StreamJob shop/views", is_new, world.observed(), world.look()))


def test_plan_names_the_objects_of_a_new_job() -> None:
    lines = planned(World(), is_new=True)
    assert lines[0] == "StreamJob shop/views: new job"
    assert "  → StatefulSet views-driver: create" in lines


EDITS: list[tuple[dict[str, Any], str, str]] = [
    ({}, "nothing changes", ""),
    ({"slo": {"lagSeconds": 30}}, "takes effect while the job runs", "slo.lagSeconds: nothing → 30.0 (live)"),
    ({"trigger": {"interval": "5s"}}, "state kept", "trigger.interval: 1s → 5s (restart)"),
]


@pytest.mark.parametrize(("edit", "headline", "line"), EDITS, ids=["nothing", "live", "restart"])
def test_plan_says_what_a_change_does(edit: dict[str, Any], headline: str, line: str) -> None:
    world = World()
    world.settle()
    world.edit(**edit)
    lines = planned(world)
    assert headline in lines[0]
    assert not line or f"  {line}" in lines
    assert any("StatefulSet" in one for one in lines) == ("trigger" in edit)


def test_plan_says_that_it_would_be_refused() -> None:
    world = World()
    world.settle()
    world.edit(transform=[{"window": {**spec()["transform"][0]["window"], "size": "5m"}}])
    lines = planned(world)
    assert "REFUSED (NeedsNewState)" in lines[0]
    assert lines[1:] == ["  transform[window].window.size: 1m → 5m (new-state)"]


def topic(**fields: Any) -> dict[str, Any]:
    meta = {"name": "views", "namespace": "shop"}
    return {"apiVersion": "millrace.io/v1alpha1", "kind": "Topic", "metadata": meta, "spec": fields}


def test_plan_of_a_topic() -> None:
    assert "new topic" in next(topic_lines("Topic shop/views", None, topic()))
    lines = list(topic_lines("Topic shop/views", topic(partitions=2), topic(partitions=4)))
    assert lines == ["Topic shop/views: changed in Kafka, nothing restarts", "  partitions: 2 → 4 (live)"]


def explained(world: World, **seen: Any) -> str:
    world.settle(**seen)
    observed = world.observed(**seen)
    said = {"state": "running", "batch": 7, "sources": {"views": {"topic": "pageviews", "read": 9}}}
    return "\n".join(page(Facts(observed, driver=said if observed.progress else None)))


def test_explain_names_the_most_likely_cause_first_and_what_to_do() -> None:
    world = World()
    world.settle()
    last = ended(3, cause="UserCodeRaised", message="KeyError: 'user'")
    text = explained(world, pods=(driver(running_since=None, ended=last),))
    assert text.splitlines()[1] == "  Most likely cause: UserCodeRaised: KeyError: 'user'"
    assert "What to do: Correct the job's own code" in text
    assert "ended with 3: KeyError: 'user'" in text


def test_explain_of_a_job_that_is_well() -> None:
    world = World()
    world.settle()
    text = explained(world, pods=(driver(), executor()), progress=moving())
    assert "Nothing is wrong." in text
    assert "source views: topic pageviews, read 9" in text


def test_explain_tells_of_an_edit_that_is_not_in_effect() -> None:
    world = World()
    world.settle()
    world.edit(trigger={"interval": "soon"})
    text = explained(world, pods=(driver(), executor()), progress=replace(moving(), batch=3))
    assert "Most likely cause: InvalidSpec" in text
