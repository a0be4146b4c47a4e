"""State in, actions out: what the operator does to a job's objects."""

import json
from typing import Any

import pytest

from millrace_operator.streamjobs.plan import covers
from tests.unit.operator.worlds import SETTINGS, World, condition, driver, executor, message, moving, spec, writes

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> World:
    """A job that runs."""
    made = World()
    made.settle()
    return made


def running(**more: Any) -> dict[str, Any]:
    return {"pods": (driver(), executor()), "progress": moving(), **more}


def test_a_new_job_gets_all_its_objects_and_the_driver_last() -> None:
    world = World(finalizers=())
    made = world.settle()
    assert writes(made) == [
        "StreamJob views: hold it until it has stopped",
        "ConfigMap views-spec: create",
        "ServiceAccount views-driver: create",
        "Role views-driver: create",
        "RoleBinding views-driver: create",
        "Service views-driver: create",
        "PersistentVolumeClaim views-state: create",
        "StatefulSet views-driver: create",
    ]
    assert made.status["state"] == "Starting"
    assert made.status["observedGeneration"] == 1


def test_with_nothing_to_do_nothing_is_written(world: World) -> None:
    world.settle(**running())
    assert world.look(**running()).actions == ()


def test_what_the_api_server_adds_is_no_difference(world: World) -> None:
    world.objects["Service", "views-driver"]["spec"] |= {"sessionAffinity": "None", "type": "ClusterIP"}
    world.objects["StatefulSet", "views-driver"]["spec"]["template"]["spec"]["dnsPolicy"] = "ClusterFirst"
    assert writes(world.look(**running())) == []


@pytest.mark.parametrize(
    ("kind", "name", "path", "value"),
    [
        ("StatefulSet", "views-driver", ("spec", "replicas"), 3),
        ("Service", "views-driver", ("spec", "publishNotReadyAddresses"), False),
        ("ConfigMap", "views-spec", ("data", "spark-defaults.conf"), ""),
    ],
)
def test_what_someone_else_changed_is_put_back(
    world: World, kind: str, name: str, path: tuple[str, str], value: object
) -> None:
    world.objects[kind, name][path[0]][path[1]] = value
    assert writes(world.look(**running()))[0] == f"{kind} {name}: put back what someone else changed"


def test_a_deleted_object_is_made_again(world: World) -> None:
    del world.objects["Role", "views-driver"]
    assert writes(world.look(**running())) == ["Role views-driver: create"]


LIVE = [
    {"slo": {"lagSeconds": 30}},
    {"executors": {"instances": 4}},
    {"restart": {"backoff": "20s"}},
    {"upgrade": {"mode": "restart-empty"}},
]


@pytest.mark.parametrize("change", LIVE, ids=lambda change: next(iter(change)))
def test_a_live_change_reaches_the_file_and_restarts_nothing(world: World, change: dict[str, Any]) -> None:
    before = dict(world.pod_annotations)
    world.edit(**change)
    made = world.settle(**running())
    assert writes(made) == [
        "ConfigMap views-spec: change",
        "Pod views-driver-0: annotation millrace.io/fingerprint",  # so that the kubelet brings it at once
    ]
    assert json.loads(world.objects["ConfigMap", "views-spec"]["data"]["job.json"])["spec"] == world.spec
    assert world.pod_annotations == before


RESTART = [
    {"trigger": {"interval": "5s"}},
    {"executors": {"instances": 1, "memory": "2Gi"}},
    {"stragglers": {"delay": "30s"}},
]


@pytest.mark.parametrize("change", RESTART, ids=lambda change: next(iter(change)))
def test_a_restart_change_starts_the_driver_anew_with_the_same_state(world: World, change: dict[str, Any]) -> None:
    world.edit(**change)
    made = world.settle(**running())
    assert writes(made)[:2] == ["ConfigMap views-spec: change", "StatefulSet views-driver: change"]
    assert world.pod_annotations["millrace.io/revision"] == "2"
    assert checkpoint(world) == "/var/lib/millrace/state/epoch-1"
    assert world.look(**running()).status["revision"] == 2


def checkpoint(world: World) -> str:
    arguments = world.objects["StatefulSet", "views-driver"]["spec"]["template"]["spec"]["containers"][0]["args"]
    return str(arguments[arguments.index("--checkpoint") + 1])


def other_window(size: str = "5m") -> list[dict[str, Any]]:
    return [{"window": {**spec()["transform"][0]["window"], "size": size}}]


def test_a_change_that_needs_new_state_is_refused_and_the_old_version_runs_on(world: World) -> None:
    good = dict(world.objects)
    world.edit(transform=other_window())
    made = world.settle(**running())
    assert writes(made) == []
    assert world.objects == good
    assert condition(made, "Progressing") == ("False", "NeedsNewState")
    assert condition(made, "Ready") == ("True", "Moving")
    assert "transform[window].window.size" in message(made, "Progressing")
    assert "restart-empty" in message(made, "Progressing")
    assert [one.reason for one in world.warnings] == ["NeedsNewState"]
    assert made.status["observedGeneration"] == 2


def test_with_restart_empty_it_starts_in_a_new_folder(world: World) -> None:
    world.edit(transform=other_window(), upgrade={"mode": "restart-empty"})
    world.settle(**running())
    assert checkpoint(world) == "/var/lib/millrace/state/epoch-2"
    assert world.pod_annotations["millrace.io/revision"] == "2"
    assert world.objects["PersistentVolumeClaim", "views-state"]["metadata"]["annotations"]["millrace.io/epoch"] == "2"


def test_an_invalid_edit_keeps_the_last_good_version_and_says_so(world: World) -> None:
    world.settle(**running())
    world.edit(trigger={"interval": "soon"})
    made = world.settle(**running())
    assert writes(made) == []
    assert condition(made, "Progressing") == ("False", "InvalidSpec")
    assert "trigger.interval" in message(made, "Progressing")
    assert condition(made, "Ready") == ("True", "Moving")
    assert "not in effect" in message(made, "Ready")
    world.edit(trigger={"interval": "1s"})
    assert condition(world.look(**running()), "Progressing") == ("False", "Settled")


def test_a_job_that_was_never_valid_makes_nothing_and_says_why() -> None:
    world = World(spec={"sources": [], "sinks": []})
    made = world.settle()
    assert writes(made) == []
    assert made.status["state"] == "Invalid"
    assert condition(made, "Progressing") == ("False", "InvalidSpec")


def test_suspend_stops_and_resume_goes_on_with_the_same_state(world: World) -> None:
    world.edit(suspend=True)
    assert world.settle(**running()).status["state"] == "Stopping"
    assert world.replicas == 0
    assert world.settle().status["state"] == "Suspended"
    world.edit(suspend=False)
    world.settle()
    assert world.replicas == 1
    assert checkpoint(world) == "/var/lib/millrace/state/epoch-1"
    assert world.pod_annotations["millrace.io/revision"] == "1"


def test_a_restart_by_annotation_changes_only_the_pod(world: World) -> None:
    world.annotations["millrace.io/restart"] = "now"
    made = world.settle(**running())
    assert writes(made) == ["StatefulSet views-driver: change"]
    assert world.pod_annotations["millrace.io/restart"] == "now"


def test_the_pause_annotation_keeps_the_operator_away(world: World) -> None:
    world.annotations["millrace.io/pause"] = "true"
    world.edit(suspend=True)
    made = world.settle(**running())
    assert writes(made) == []
    assert made.status["state"] == "Paused"


def test_deletion_stops_first_and_keeps_the_volume(world: World) -> None:
    world.deleting = True
    assert writes(world.settle(**running())) == ["StatefulSet views-driver: change"]
    assert world.replicas == 0
    assert writes(world.look(pods=(driver(deleting=True),))) == []
    assert writes(world.look()) == ["StreamJob views: let it go"]


def test_deletion_takes_the_volume_where_the_spec_says_so() -> None:
    world = World(spec=spec(checkpoint={"deletionPolicy": "Delete"}))
    world.settle()
    world.deleting = True
    world.settle(**running())
    assert writes(world.look()) == ["PersistentVolumeClaim views-state: the spec says so", "StreamJob views: let it go"]


def test_a_job_that_is_made_again_goes_on_in_its_volume(world: World) -> None:
    world.edit(transform=other_window(), upgrade={"mode": "restart-empty"})
    world.settle(**running())
    volume = world.objects["PersistentVolumeClaim", "views-state"]
    again = World(spec=world.spec, objects={("PersistentVolumeClaim", "views-state"): volume})
    again.settle()
    assert checkpoint(again) == "/var/lib/millrace/state/epoch-2"


def test_a_checkpoint_elsewhere_needs_no_volume() -> None:
    world = World(spec=spec(checkpoint={"uri": "s3a://bucket/views/"}))
    made = world.settle()
    assert not any("PersistentVolumeClaim" in one for one in writes(made))
    assert checkpoint(world) == "s3a://bucket/views/epoch-1"


def test_secrets_are_mounted_for_driver_and_executors() -> None:
    sink = {"postgres": {"secret": {"name": "db-main"}, "table": "views", "key": ["url"]}}
    world = World(spec=spec(sinks=[sink]))
    world.settle()
    pod = world.objects["StatefulSet", "views-driver"]["spec"]["template"]["spec"]
    assert {"name": "secret-db-main", "secret": {"secretName": "db-main"}} in pod["volumes"]
    settings = world.objects["ConfigMap", "views-spec"]["data"]["spark-defaults.conf"]
    assert "spark.kubernetes.executor.secrets.db-main /etc/millrace/secrets/db-main\n" in settings


def test_the_driver_is_told_where_the_credentials_of_the_brokers_lie() -> None:
    world = World(spec=spec(kafka={"bootstrapServers": "kafka:9093", "authSecret": {"name": "kafka-client"}}))
    world.settle()
    pod = world.objects["StatefulSet", "views-driver"]["spec"]["template"]["spec"]
    (container,), place = pod["containers"], "/etc/millrace/secrets/kafka-client"
    assert container["args"][-2:] == ["--kafka-auth", place]
    assert {"name": "secret-kafka-client", "mountPath": place, "readOnly": True} in container["volumeMounts"]
    settings = world.objects["ConfigMap", "views-spec"]["data"]["spark-defaults.conf"]
    assert f"spark.kubernetes.executor.secrets.kafka-client {place}\n" in settings


def test_heap_and_the_rest_add_up_to_the_declared_memory() -> None:
    world = World(spec=spec(executors={"instances": 2, "memory": "2Gi"}))
    world.settle()
    lines = world.objects["ConfigMap", "views-spec"]["data"]["spark-defaults.conf"].splitlines()
    pairs = dict(line.split(" ", 1) for line in lines)
    heap, rest = (int(pairs[key].rstrip("m")) for key in ("spark.executor.memory", "spark.executor.memoryOverhead"))
    assert heap + rest == 2048
    assert pairs["spark.executor.instances"] == "2"


@pytest.mark.parametrize(
    ("found", "wanted", "same"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([{"a": 1, "x": 0}], [{"a": 1}], True),
        ([{"a": 1}, {"a": 2}], [{"a": 1}], False),
        ({}, {"a": {}}, True),
        (None, "x", False),
    ],
)
def test_covers(found: object, wanted: object, same: bool) -> None:
    assert covers(found, wanted) is same


def test_it_looks_again_soon_while_the_job_runs_and_never_while_it_is_suspended(world: World) -> None:
    assert world.look(**running()).look_again == SETTINGS.pace.look
    world.edit(suspend=True)
    assert world.look().look_again is None
