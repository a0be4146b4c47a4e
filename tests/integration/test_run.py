"""`millrace run` on real Kafka and real Spark: every example is a test, and every way to end is a clean one."""

import json
import signal
import socket
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from millrace.kafka.clients import admin
from tests.integration.local.commands import alive, is_java, running
from tests.integration.local.shops import EXAMPLES, Example, fill

pytestmark = pytest.mark.integration

SPEC = """
apiVersion: millrace.io/v1alpha1
kind: StreamJob
metadata: {{name: {name}, namespace: test}}
spec:
  sources:
    - {{name: events, topic: {name}-in, schema: "n bigint"}}
  transform:
    - {step}
  sinks:
    - {{topic: {name}-out}}
"""


@pytest.fixture(scope="module")
def sent(broker: str) -> dict[str, int]:
    return fill(broker)


def write_spec(folder: Path, name: str, step: str) -> Path:
    spec = folder / f"{name}.yaml"
    spec.write_text(SPEC.format(name=name, step=step))
    return spec


def read_report(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())["jobs"]
    return report


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_gives_exactly_what_the_oracle_expects(
    file: Path, broker: str, sent: dict[str, int], tmp_path: Path
) -> None:
    example = Example.of(file)
    arguments = ["run", str(file), "--bootstrap", broker, "--until-caught-up"]
    with running([*arguments, "--report", "report.json"], tmp_path) as command:
        assert command.wait() == 0, command.output()
    report = read_report(tmp_path)[example.name]
    counts = report["sources"][example.source["name"]]
    assert counts["read"] == sent[example.source["topic"]]
    assert counts["read"] == sum(counts[verdict] for verdict in ("malformed", "future", "on_time", "late"))
    assert counts["late"] == sum(counts[outcome] for outcome in ("dropped", "aside", "corrected"))
    assert min(counts["malformed"], counts["future"], counts["late"]) > 0, "the shop sends some of each"
    differences = example.differences(broker, report)
    assert differences == [], f"{len(differences)} differences, the first ones: {differences[:20]}"
    assert f"{counts['read']:,}" in command.output()
    for row in (json.loads(one.value) for one in example.results(broker) if one.value is not None):
        if "mean_order" in row:
            assert row["mean_order"] == pytest.approx(row["revenue"] / row["orders"], abs=0.006)
        if "visitors" in row:
            # a sketch: its error is 5 % (one standard deviation), to either side
            assert 1 <= row["visitors"] <= 1.25 * row["views"] + 1


def test_a_job_that_fails_says_why_where_its_log_is_and_ends_with_1(broker: str, tmp_path: Path) -> None:
    (tmp_path / "beside_the_spec.py").write_text("def fail(rows):\n    raise ValueError('no such thing')\n")
    spec = write_spec(tmp_path, "run-fails", "{python: {function: 'beside_the_spec:fail'}}")
    arguments = ["run", str(spec), "--bootstrap", broker, "--until-caught-up", "--report", "report.json"]
    with running(arguments, tmp_path) as command:
        assert command.wait() == 1, command.output()
    told = command.output()
    assert "test/run-fails failed" in told
    assert "no such thing" in told
    assert ".millrace/runs/test.run-fails/driver.log" in told
    report = read_report(tmp_path)["test/run-fails"]
    assert (report["state"], report["exit_code"]) == ("failed", 3)


def test_ctrl_c_ends_everything_at_a_batch_boundary_and_the_next_run_goes_on(tmp_path: Path) -> None:
    spec = write_spec(tmp_path, "run-stops", "{sql: 'SELECT n, n + 1 AS more FROM input'}")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with running(["run", str(spec), "--metrics-port", str(port)], tmp_path) as command:
        command.wait_for_text("test/run-stops running")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
            assert b'job="run-stops"' in page.read()
        family = command.descendants()
        assert sum(map(is_java, family)) == 2, "a broker and a driver"
        command.send(signal.SIGINT)
        assert command.wait() == 0, command.output()
        assert alive(family) == set()
    assert "Stopping at the next batch boundary" in command.output()
    assert "What became of every event" in command.output()
    with running(["run", str(spec), "--until-caught-up"], tmp_path) as command:
        assert command.wait() == 0, command.output()
    assert "Made the topics" not in command.output(), "the broker's data is kept"


def test_nothing_starts_when_no_broker_answers(tmp_path: Path) -> None:
    spec = write_spec(tmp_path, "run-nowhere", "{sql: 'SELECT n FROM input'}")
    with running(["run", str(spec), "--bootstrap", "127.0.0.1:1"], tmp_path) as command:
        assert command.wait() == 1
    assert "No Kafka broker answers at 127.0.0.1:1" in command.output()
    assert "Traceback" not in command.output()


def test_declared_topics_are_made_as_declared(broker: str, sent: dict[str, int]) -> None:
    made = admin(broker).list_topics(timeout=30).topics
    assert len(made["pageviews"].partitions) == 4
    assert len(made["pageviews-late"].partitions) == 1
    assert len(made["orders-per-product"].partitions) == 4, "named by a job only: the default"
