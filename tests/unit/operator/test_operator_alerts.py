"""Alerts from Alertmanager's word to the job's status: who may speak, what is kept, what is told. Replays included."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from millrace_operator.alerts import Kept, NotANotificationError, annotations
from millrace_operator.edge import server
from millrace_operator.edge.doors import Door
from millrace_operator.settings import AlertsDoor
from millrace_operator.streamjobs import alerting
from tests.unit.operator.worlds import NOW, World, condition, message

pytestmark = pytest.mark.unit
VIEWS = ("shop", "views")
BEGAN, ENDED = "2026-03-01T11:00:00Z", "2026-03-01T11:30:00Z"


def alert(status: str, name: str, since: str = BEGAN, until: str = ENDED, **labels: str) -> dict[str, Any]:
    """As Alertmanager sends it: what fires has an end in the year 1."""
    whole = {"alertname": name, "namespace": "shop", "job": "views", "severity": "warning"} | labels
    end = until if status == "resolved" else "0001-01-01T00:00:00Z"
    said = {"summary": f"{name} happened"}
    return {"status": status, "labels": whole, "annotations": said, "startsAt": since, "endsAt": end}


def hear(world: World, *alerts: dict[str, Any]) -> bool:
    """A notification about the world's job; whether it changed anything."""
    known = {VIEWS: Kept(world.annotations.get(alerting.ALERTS, ""), "7")}
    for one in annotations({"alerts": list(alerts)}, known, NOW):
        assert (one.key, one.version) == (alerting.ALERTS, "7")
        world.annotations[one.key] = one.value or ""
        return True
    return False


def events(world: World) -> list[tuple[str, str]]:
    return [(one.reason, one.message) for one in world.warnings if one.reason.startswith("Alert")]


def test_an_alert_comes_and_goes() -> None:
    world = World()
    assert hear(world, alert("firing", "StreamJobLagOverSlo"))
    made = world.settle()
    assert condition(made, "Alerting") == ("True", "StreamJobLagOverSlo")
    assert message(made, "Alerting") == "StreamJobLagOverSlo happened"
    assert hear(world, alert("resolved", "StreamJobLagOverSlo"))
    assert condition(world.settle(), "Alerting") == ("False", "NoAlerts")
    told = "StreamJobLagOverSlo: StreamJobLagOverSlo happened"
    assert events(world) == [("AlertFiring", told), ("AlertResolved", told)]
    assert [one.normal for one in world.warnings if one.reason == "AlertResolved"] == [True]
    (entry,) = world.status["alerts"]
    assert (entry["since"], entry["until"]) == (BEGAN, ENDED)


def test_the_same_notification_twice_is_one_alert() -> None:
    world = World()
    assert hear(world, alert("firing", "X"))
    world.settle()
    assert not hear(world, alert("firing", "X"))
    world.settle()
    assert len(events(world)) == 1


def test_a_late_firing_after_the_end_is_old_and_a_new_one_is_new() -> None:
    world = World()
    hear(world, alert("resolved", "X"))
    hear(world, alert("firing", "X"))
    assert condition(world.settle(), "Alerting")[0] == "False"
    hear(world, alert("firing", "X", since="2026-03-01T11:45:00Z"))
    assert condition(world.settle(), "Alerting") == ("True", "X")


def test_alerts_of_one_name_for_two_topics_end_apart() -> None:
    world = World()
    hear(world, alert("firing", "X", topic="a"), alert("firing", "X", topic="b"))
    hear(world, alert("resolved", "X", topic="a"))
    assert condition(world.settle(), "Alerting") == ("True", "X")
    assert [one.key for one in alerting.firing(world.observed().resource)] == ["X{topic=b}"]


def test_what_came_and_went_while_nobody_looked_is_told_too() -> None:
    world = World()
    hear(world, alert("firing", "X"))
    hear(world, alert("resolved", "X"))
    world.settle()
    assert [reason for reason, _ in events(world)] == ["AlertFiring", "AlertResolved"]


def test_an_operator_killed_before_the_status_posts_the_same_events_again() -> None:
    world = World()
    hear(world, alert("firing", "X"))
    first = world.look().actions
    world.now += timedelta(seconds=20)
    again = world.look().actions
    pick = [[one for one in made if getattr(one, "reason", "") == "AlertFiring"] for made in (first, again)]
    assert pick[0] == pick[1] != []


def test_the_worst_is_named_first_and_the_history_is_bounded() -> None:
    world = World()
    for minute in range(30):
        since, until = f"2026-03-01T10:{minute:02}:00Z", f"2026-03-01T10:{minute:02}:30Z"
        hear(world, alert("firing", "Mild", since=since))
        hear(world, alert("resolved", "Mild", since=since, until=until))
        world.settle()
    hear(world, alert("firing", "Mild"), alert("firing", "Bad", severity="critical"))
    assert message(world.settle(), "Alerting") == "Bad happened (and Mild)"
    assert len(world.status["alerts"]) == alerting.HISTORY
    assert len(json.loads(world.annotations[alerting.ALERTS])) <= alerting.ENDED + 2
    assert [reason for reason, _ in events(world)].count("AlertFiring") == 32


def test_an_annotation_taken_away_by_hand_ends_the_alert() -> None:
    world = World()
    hear(world, alert("firing", "X"))
    world.settle()
    world.annotations.clear()
    assert condition(world.settle(), "Alerting") == ("False", "NoAlerts")
    assert events(world)[-1][0] == "AlertResolved"


def test_jobs_that_are_not_here_are_nobodys_business() -> None:
    assert annotations({"alerts": [alert("firing", "X", job="nobody")]}, {VIEWS: Kept()}, NOW) == []


BAD: list[Any] = [
    None,
    [],
    {"alerts": 3},
    {"alerts": [3]},
    {"alerts": [{"status": "firing", "labels": 3}]},
    {"alerts": [{"status": "x", "labels": {"alertname": "X"}}]},
]


@pytest.mark.parametrize("sent", BAD)
def test_what_is_no_notification_is_refused(sent: object) -> None:
    with pytest.raises(NotANotificationError):
        annotations(sent, {}, NOW)


def ask(settings: AlertsDoor, body: str, token: str | None = None) -> tuple[int, str, list[str]]:
    """Post to a real server; its answer, and what it counted."""
    counted: list[str] = []

    async def take(sent: Any) -> int:
        return len(annotations(sent, {VIEWS: Kept()}, NOW))

    async def main() -> tuple[int, str]:
        pages = server.Pages(lambda: True, CollectorRegistry(), take, counted.append, Door(settings).objection)
        runner = await server.serve(pages, 0, "127.0.0.1")
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        port = runner.addresses[0][1]
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.post(f"http://127.0.0.1:{port}/alerts", data=body, headers=headers) as answer,
            ):
                return answer.status, await answer.text()
        finally:
            await runner.cleanup()

    return *asyncio.run(main()), counted


SENT = json.dumps({"alerts": [alert("firing", "X")]})


def test_without_a_token_file_everything_is_refused_unless_asked_for() -> None:
    status, text, counted = ask(AlertsDoor(), SENT, "anything")
    assert (status, counted) == (403, ["denied"])
    assert "--alerts-token-file" in text
    assert ask(AlertsDoor(open=True), SENT)[0] == 200


def test_only_the_token_of_the_file_opens_and_a_new_one_counts_at_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    door = AlertsDoor(file, open=True)  # a token file counts, whatever else was said
    assert ask(door, SENT, "")[0] == 503  # not there
    file.write_text("\n")
    assert ask(door, SENT, "")[0] == 503  # empty
    file.write_text("old\n")
    assert ask(door, SENT, "old")[::2] == (200, ["taken"])
    assert [ask(door, SENT, given)[0] for given in (None, "", "ol", "older")] == [401] * 4
    file.write_text("new")
    assert (ask(door, SENT, "old")[0], ask(door, SENT, "new")[0]) == (401, 200)


@pytest.mark.parametrize("body", ["", "{", "[]", '{"alerts": 3}', "\ud7ff\x00"])
def test_malformed_payloads_are_refused(body: str) -> None:
    assert ask(AlertsDoor(open=True), body)[::2] == (400, ["refused"])
