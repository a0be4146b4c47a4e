"""What is told about a job: its state, its conditions, and the one cause that explains why it does not move."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from millrace_operator.streamjobs.state import Lag, TopicProblem, parse_pod
from tests.unit.operator.worlds import NOW, World, condition, driver, ended, executor, message, moving, spec, writes

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> World:
    made = World()
    made.settle()
    return made


def waiting(reason: str, text: str = "says Kubernetes") -> dict[str, Any]:
    pod = driver(running_since=None, ready=False, phase="Pending", waiting=reason, waiting_message=text)
    return {"pods": (pod,)}


STALLED: list[tuple[str, dict[str, Any], str]] = [
    ("ImageCannotBePulled", waiting("ImagePullBackOff", "no such image x:1"), "no such image x:1"),
    ("ConfigMissing", waiting("CreateContainerConfigError", 'secret "db" not found'), 'secret "db" not found'),
    ("QuotaExceeded", {"complaints": ("pods is forbidden: exceeded quota: small",)}, "quota"),
    ("PodRefused", {"complaints": ("violates PodSecurity",)}, "violates PodSecurity"),
    (
        "Unschedulable",
        {"pods": (driver(running_since=None, unschedulable="0/2 nodes: Insufficient memory"),)},
        "Insufficient memory",
    ),
    (
        "VolumeNotBound",
        {"pods": (driver(running_since=None, unschedulable="pod has unbound immediate PersistentVolumeClaims"),)},
        "unbound",
    ),
    (
        "PodCannotStart",
        {"pods": (driver(running_since=None),), "complaints": ("MountVolume failed",)},
        "MountVolume failed",
    ),
    (
        "BrokerUnreachable",
        {
            "pods": (driver(), executor()),
            "progress": moving(state="waiting", cause="BrokerUnreachable", message="no broker at kafka:9092"),
        },
        "no broker at kafka:9092",
    ),
    ("ExecutorsMissing", {"pods": (driver(600),), "progress": moving()}, "0 of 1 executors run"),
    (
        "ExecutorsMissing",
        {
            "pods": (driver(600), executor(120, running_since=None, unschedulable="Insufficient cpu")),
            "progress": moving(),
        },
        "Insufficient cpu",
    ),
    ("NoProgress", {"pods": (driver(900), executor()), "progress": moving(healthy=False)}, "no batch was finished"),
    (
        "NoProgress",
        {
            "pods": (driver(900), executor()),
            "progress": moving(told_by="group", healthy=None, advanced=NOW - timedelta(minutes=6)),
        },
        "does not answer",
    ),
    ("UserCodeRaised", {"pods": (driver(ended=ended(3, message="ValueError: no"), running_since=None),)}, "ValueError"),
    ("SpecRefused", {"pods": (driver(ended=ended(2, message="does not fit"), running_since=None),)}, "does not fit"),
    ("OutOfMemory", {"pods": (driver(ended=ended(137, reason="OOMKilled"), running_since=None),)}, "memory"),
    ("Killed", {"pods": (driver(ended=ended(137), running_since=None),)}, "exit code 137"),
    (
        "CheckpointDoesNotFit",
        {"pods": (driver(ended=ended(2, cause="CheckpointDoesNotFit", message="window.size"), running_since=None),)},
        "window.size",
    ),
    ("ObjectRefused", {"refusals": ("PersistentVolumeClaim views-state: change: is forbidden",)}, "is forbidden"),
]


@pytest.mark.parametrize(("reason", "seen", "words"), STALLED, ids=[f"{one[0]}-{n}" for n, one in enumerate(STALLED)])
def test_every_cause_is_named_with_its_words(world: World, reason: str, seen: dict[str, Any], words: str) -> None:
    made = world.settle(**seen)
    assert condition(made, "Stalled") == ("True", reason)
    assert condition(made, "Ready") == ("False", reason)
    assert words in message(made, "Stalled")
    assert [one.reason for one in world.warnings] == [reason]
    world.settle(**seen)
    assert len(world.warnings) == 1  # the same thing is not said twice


HEALTHY: list[tuple[str, dict[str, Any], str]] = [
    ("Moving", {"pods": (driver(), executor()), "progress": moving()}, "Running"),
    ("WaitingForData", {"pods": (driver(), executor()), "progress": moving(batch=None)}, "Running"),
    ("Starting", {"pods": (driver(20), executor(10)), "progress": moving(batch=None)}, "Starting"),
    (
        "WaitingForData",
        {"pods": (driver(20), executor(10)), "progress": moving(batch=None), "lag": Lag(0, 0.0)},
        "Running",
    ),
    ("Starting", {"pods": (driver(5, ready=False),), "progress": moving(state="starting", batch=None)}, "Starting"),
    ("Starting", {"pods": (driver(5),), "progress": moving(batch=None)}, "Starting"),
    ("Starting", {}, "Starting"),
]


@pytest.mark.parametrize(("reason", "seen", "state"), HEALTHY, ids=[f"{one[0]}-{n}" for n, one in enumerate(HEALTHY)])
def test_nothing_is_stalled_without_a_cause(world: World, reason: str, seen: dict[str, Any], state: str) -> None:
    made = world.settle(**seen)
    assert condition(made, "Stalled") == ("False", "NothingWrong")
    assert condition(made, "Ready") == ("True" if state == "Running" else "False", reason)
    assert made.status["state"] == state


def test_a_first_batch_that_has_work_is_not_ready(world: World) -> None:
    seen = {"pods": (driver(30), executor()), "progress": moving(batch=None), "lag": Lag(100, 5.0)}
    assert condition(world.look(**seen), "Ready") == ("False", "Starting")


def test_after_a_failure_a_driver_must_prove_that_it_moves(world: World) -> None:
    fail(world, 1, cause="Unknown", message="boom")
    again = {"pods": (driver(20, ended=ended(1)), executor(10))}
    assert condition(world.settle(**again, progress=moving()), "Stalled") == ("True", "Unknown")
    assert condition(world.settle(**again, progress=moving(moved=True)), "Stalled") == ("False", "NothingWrong")
    assert len(world.warnings) == 1


def test_a_hung_driver_is_started_again(world: World) -> None:
    made = world.settle(pods=(driver(900), executor()), progress=moving(healthy=False))
    assert writes(made) == ["Pod views-driver-0: no progress: start it again"]
    assert made.status["restarts"] == 1
    assert made.status["failures"]["causes"] == {"NoProgress": 1}


def test_a_driver_that_names_its_trouble_is_not_taken_as_hung(world: World) -> None:
    trouble = moving(healthy=False, cause="BrokerUnreachable", message="away", advanced=NOW - timedelta(hours=1))
    made = world.settle(pods=(driver(9000), executor()), progress=trouble)
    assert writes(made) == []
    assert condition(made, "Stalled") == ("True", "BrokerUnreachable")


def fail(world: World, code: int = 3, **more: Any) -> Any:
    return world.settle(pods=(driver(running_since=None, ended=ended(code, at=world.now, **more)),))


def test_the_first_restart_is_kubernetes_own_and_further_ones_wait_twice_as_long_each(world: World) -> None:
    fail(world, 1)
    assert world.replicas == 1
    waits = []
    for _ in range(4):
        world.now += timedelta(seconds=1000)
        failed = world.now
        made = fail(world, 1)
        assert world.replicas == 0
        assert made.status["state"] == "Restarting"
        waits.append(made.status["failures"]["retryAt"])
        while world.replicas == 0:
            world.now += timedelta(seconds=5)
            world.settle()
        waits[-1] = (world.now - failed).total_seconds()
    assert waits == [10, 20, 40, 80]


def test_own_failures_end_in_failed_with_the_last_words_and_an_edit_gives_a_new_chance(world: World) -> None:
    for _ in range(5):
        world.now += timedelta(minutes=6)
        made = fail(world, 3, cause="UserCodeRaised", message="ValueError: bad row 7")
    assert made.status["state"] == "Failed"
    assert condition(made, "Stalled") == ("True", "UserCodeRaised")
    assert "ValueError: bad row 7" in message(made, "Stalled")
    assert world.replicas == 0
    world.now += timedelta(days=1)
    assert world.settle().status["state"] == "Failed"
    world.edit(trigger={"interval": "2s"})
    assert world.settle().status["state"] == "Starting"
    assert world.replicas == 1


def test_infrastructure_failures_never_end_the_retries(world: World) -> None:
    for _ in range(40):
        world.now += timedelta(minutes=6)
        made = fail(world, 1, cause="BrokerUnreachable")
    assert made.status["state"] == "Restarting"
    assert made.status["failures"]["inARow"] == 40


def test_a_stable_run_is_forgiven(world: World) -> None:
    for _ in range(4):
        world.now += timedelta(minutes=6)
        fail(world, 3)
    world.now += timedelta(minutes=6)
    made = fail(world, 3, ran=timedelta(minutes=11))
    assert made.status["failures"]["inARow"] == 1
    assert made.status["failures"]["own"] == 1
    assert made.status["restarts"] == 5


@pytest.mark.parametrize(
    ("policy", "code", "state"), [("Never", 1, "Failed"), ("OnFailure", 0, "Completed"), ("Always", 0, "Starting")]
)
def test_the_policy_decides(policy: str, code: int, state: str) -> None:
    world = World(spec=spec(restart={"policy": policy}))
    world.settle()
    assert fail(world, code).status["state"] == state
    assert world.replicas == (state == "Starting")


def test_a_pod_on_its_way_out_is_no_failure(world: World) -> None:
    made = world.settle(pods=(driver(deleting=True, running_since=None, ended=ended(143)),))
    assert made.status["restarts"] == 0


LAGS = [(None, "Unknown", "NotObserved"), (Lag(10, 30.0), "True", "WithinGoal"), (Lag(10, 90.0), "False", "Behind")]


@pytest.mark.parametrize(("lag", "status", "reason"), LAGS)
def test_lag_is_held_against_the_goal(lag: Lag | None, status: str, reason: str) -> None:
    world = World(spec=spec(slo={"lagSeconds": 60}))
    made = world.settle(pods=(driver(), executor()), progress=moving(), lag=lag)
    assert condition(made, "LagHealthy") == (status, reason)
    if lag is not None:
        assert (made.status["lag"], made.status["lagRecords"]) == ("30s" if lag.seconds == 30 else "1m30s", 10)


@pytest.mark.parametrize(
    ("ratio", "status", "reason"),
    [(None, "Unknown", "NotObserved"), (0.005, "True", "WithinGoal"), (0.2, "False", "TooManyLate")],
)
def test_stragglers_are_held_against_the_goal(ratio: float | None, status: str, reason: str) -> None:
    world = World(spec=spec(slo={"stragglerRatio": 0.01}))
    made = world.settle(pods=(driver(), executor()), progress=moving(late_ratio=ratio))
    assert condition(made, "StragglersHealthy") == (status, reason)


def test_a_missing_topic_is_named(world: World) -> None:
    made = world.settle(topic_problems=(TopicProblem("pageviews", "TopicMissing", "Topic pageviews is not there."),))
    assert condition(made, "TopicsReady") == ("False", "TopicMissing")
    assert condition(world.look(topic_problems=()), "TopicsReady") == ("True", "AllThere")


def test_alerts_come_from_the_annotation(world: World) -> None:
    world.annotations["millrace.io/alerts"] = '{"StreamJobLagTooHigh": "Lag is 5 min"}'
    made = world.settle()
    assert condition(made, "Alerting") == ("True", "StreamJobLagTooHigh")
    assert message(made, "Alerting") == "Lag is 5 min"
    world.annotations.clear()
    assert condition(world.look(), "Alerting") == ("False", "NoAlerts")


def test_the_time_of_a_condition_is_that_of_its_last_change(world: World) -> None:
    def at(made: Any) -> str:
        return str(next(one for one in made.status["conditions"] if one["type"] == "Ready")["lastTransitionTime"])

    first = at(world.settle())
    world.now += timedelta(minutes=1)
    assert at(world.settle()) == first
    assert at(world.settle(pods=(driver(), executor()), progress=moving())) == "2026-03-01T12:01:00Z"


def test_the_history_is_bounded(world: World) -> None:
    for number in range(30):
        world.now += timedelta(minutes=1)
        world.edit(suspend=number % 2 == 0)
        world.settle()
    assert len(world.status["history"]) == 10
    assert world.status["history"][-1]["state"] == "Starting"


def test_while_the_new_version_waits_for_the_old_one_to_end_the_job_is_upgrading(world: World) -> None:
    world.edit(trigger={"interval": "5s"})
    world.settle()
    made = world.settle(pods=(driver(deleting=True),))
    assert made.status["state"] == "Upgrading"
    assert condition(made, "Progressing") == ("True", "Upgrading")


def test_a_pod_is_read_with_the_driver_s_last_words() -> None:
    body = {
        "metadata": {
            "name": "views-driver-0",
            "uid": "u",
            "creationTimestamp": "2026-03-01T11:00:00Z",
            "labels": {"millrace.io/role": "driver"},
            "annotations": {"millrace.io/revision": "4"},
        },
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "containerStatuses": [
                {
                    "restartCount": 2,
                    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
                    "lastState": {
                        "terminated": {
                            "exitCode": 3,
                            "startedAt": "2026-03-01T11:00:00Z",
                            "finishedAt": "2026-03-01T11:05:00Z",
                            "message": 'noise\n{"cause": "UserCodeRaised", "message": "KeyError: x"}',
                        }
                    },
                }
            ],
        },
    }
    pod = parse_pod(body)
    assert (pod.role, pod.revision, pod.ip, pod.restarts) == ("driver", 4, "10.0.0.1", 2)
    assert pod.ended is not None
    assert replace(pod.ended, reason="") == replace(
        ended(3, cause="UserCodeRaised", message="KeyError: x", ran=timedelta(minutes=5)),
        at=NOW - timedelta(minutes=55),
        reason="",
    )
