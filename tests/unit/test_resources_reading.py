"""Spec files become resources, or one error that holds every mistake of every file."""

from pathlib import Path

import pytest
import yaml

from millrace.errors import UserError
from millrace.resources import SpecError, StreamJob, Topic, parse_object, read_files
from tests.unit.specs.builders import JOB, SPECS, TOPIC, edited

pytestmark = pytest.mark.unit


def written(folder: Path, text: str, name: str = "job.yaml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def refusal(*files: Path) -> list[str]:
    """The lines of the refusal, with the folder taken off the files' names."""
    with pytest.raises(UserError) as refused:
        read_files(files)
    return [line.replace(f"{files[0].parent}/", "") for line in str(refused.value).split("\n")]


def test_ten_mistakes_are_ten_lines_in_the_order_of_the_file() -> None:
    at = "ten-mistakes.yaml: streamjob/pageviews-per-minute: spec."
    assert refusal(SPECS / "ten-mistakes.yaml") == [
        f"{at}kafka.bootstrapServers: 'kafka' does not name brokers: write host:port, several separated by commas, "
        "for instance kafka:9092",
        f"{at}sources[0].schema: gives column 'occurred_at' the unknown type 'timestmp'; did you mean 'timestamp'?",
        f"{at}sources[0].startFrom: 'yesterday' is not a start: write earliest, latest or a time such as "
        "2026-01-31T08:00:00Z",
        f"{at}straglers: is not a field; did you mean 'stragglers'?",
        f"{at}stragglers.delay: '30' is not a duration: write a number and its unit (d, h, m, s, ms), for instance "
        "30s or 1h30m",
        f"{at}transform[0].input: names 'clicks', but there is no such source or earlier step; there is views",
        f"{at}transform[1].window.every: is missing: a hopping window needs how often one starts, for instance "
        "every: 1m",
        f"{at}sinks[0].topic: must not be 'pageviews', which the job reads: it would read its own output; name "
        "another topic",
        f"{at}sinks[0].delivery: must be one of exactly-once, at-least-once; it is 'exactly-one' "
        "(did you mean 'exactly-once'?)",
        f"{at}executors.instances: must be at least 1; it is 0",
    ]


def test_a_file_with_every_part_is_read_in_order_and_written_back_the_same() -> None:
    resources = read_files([SPECS / "whole.yaml"])
    assert [type(resource) for resource in resources] == [Topic, StreamJob]
    for resource, document in zip(resources, yaml.safe_load_all((SPECS / "whole.yaml").read_text()), strict=True):
        dumped = resource.model_dump(mode="json", by_alias=True, exclude_unset=True)
        assert parse_object(dumped) == resource
        if resource.metadata.name == "pageviews":
            assert dumped == document


def test_a_time_without_quotes_stays_a_time(tmp_path: Path) -> None:
    (_, job) = read_files([SPECS / "whole.yaml"])
    assert isinstance(job, StreamJob)
    assert str(job.spec.sources[0].start_from) == "2026-01-31 08:00:00+00:00"


def test_mistakes_of_all_files_and_documents_come_together(tmp_path: Path) -> None:
    bad_topic = yaml.safe_dump(edited(TOPIC, {"spec.partitions": 0}))
    bad_job = yaml.safe_dump(edited(JOB, {"spec.suspend": 1}))
    first = written(tmp_path, f"{bad_topic}---\n{bad_job}", "a.yaml")
    second = written(tmp_path, bad_topic, "b.yaml")
    assert refusal(first, second) == [
        "a.yaml: topic/pageviews: spec.partitions: must be at least 1; it is 0",
        "a.yaml: streamjob/pageviews-per-minute: spec.suspend: must be true or false; it is 1",
        "b.yaml: topic/pageviews: spec.partitions: must be at least 1; it is 0",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "job.yaml: is empty; write a StreamJob or a Topic into it"),
        ("---\n# nothing\n---\n", "job.yaml: is empty; write a StreamJob or a Topic into it"),
        ("spec: [1, 2", "job.yaml: line 1: is not YAML: expected ',' or ']', but got '<stream end>'"),
        ("a: 1\nb: c: 2\n", "job.yaml: line 2: is not YAML: mapping values are not allowed here"),
        (
            "a:\n\tb: 1\n",
            "job.yaml: line 2: is not YAML: found character a tab that cannot start any token; indent with spaces",
        ),
        (
            "a: !secret b\n",
            "job.yaml: line 1: is not YAML: could not determine a constructor for the tag '!secret'",
        ),
        ("- a\n- b\n", "job.yaml: document: is not a resource; it starts with apiVersion, kind, metadata and spec"),
        (
            "just words\n",
            "job.yaml: document: is not a resource; it starts with apiVersion, kind, metadata and spec",
        ),
    ],
)
def test_what_is_no_resource_at_all_is_one_line(tmp_path: Path, text: str, line: str) -> None:
    assert refusal(written(tmp_path, text)) == [line]


def test_documents_before_a_syntax_error_are_still_judged(tmp_path: Path) -> None:
    text = yaml.safe_dump(edited(TOPIC, {"spec.partitions": 0})) + "---\nspec: [1\n"
    first, second = refusal(written(tmp_path, text))
    assert "must be at least 1" in first
    assert "is not YAML" in second


def test_a_key_that_is_given_twice_is_a_mistake_beside_the_others(tmp_path: Path) -> None:
    text = yaml.safe_dump(edited(TOPIC, {"spec.replicas": 0}), sort_keys=False) + "  partitions: 3\n"
    at = "job.yaml: topic/pageviews: spec."
    assert refusal(written(tmp_path, text)) == [
        f"{at}partitions: is given twice, in line 7 and in line 11; keep one",
        f"{at}replicas: must be at least 1; it is 0",
    ]


@pytest.mark.parametrize(
    ("edits", "line"),
    [
        (
            {"kind": "SteamJob"},
            "steamjob/x: kind: is 'SteamJob', which is not a kind of ours; did you mean 'StreamJob'?",
        ),
        ({"kind": "Pod"}, "pod/x: kind: is 'Pod', which is not a kind of ours; there are StreamJob, Topic"),
        ({"kind": None}, "resource/x: kind: is missing; write one of StreamJob, Topic"),
        (
            {"apiVersion": "millrace.io/v1"},
            "topic/x: apiVersion: is 'millrace.io/v1', which is a version that is not known here; "
            "write apiVersion: millrace.io/v1alpha1",
        ),
        (
            {"apiVersion": "v1"},
            "topic/x: apiVersion: is 'v1', which is not ours; write apiVersion: millrace.io/v1alpha1",
        ),
        ({"apiVersion": None}, "topic/x: apiVersion: is missing; write apiVersion: millrace.io/v1alpha1"),
    ],
)
def test_another_kind_or_version_is_a_sentence(edits: dict[str, object], line: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_object(edited(TOPIC, {"metadata.name": "x", **edits}))
    assert refused.value.lines == (line,)


def test_a_file_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no.yaml") == ["no.yaml: cannot be read: there is no such file; check its path"]
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    assert refusal(binary) == ["binary.yaml: cannot be read: it is not UTF-8 text"]


def test_two_resources_of_one_name_are_refused(tmp_path: Path) -> None:
    one = written(tmp_path, yaml.safe_dump(TOPIC), "one.yaml")
    two = written(tmp_path, yaml.safe_dump(edited(TOPIC, {"spec.partitions": 3})), "two.yaml")
    (line,) = refusal(one, two)
    assert line.startswith("two.yaml: topic/pageviews: metadata.name: is 'pageviews' again, as in one.yaml")
    same = written(tmp_path, yaml.safe_dump(TOPIC), "two.yaml")
    assert len(read_files([one, same])) == 2, "the same topic word for word may come twice"
    other = written(tmp_path, yaml.safe_dump(edited(TOPIC, {"metadata.namespace": "other"})), "two.yaml")
    assert len(read_files([one, other])) == 2


def test_a_field_that_says_nothing_counts_as_absent(tmp_path: Path) -> None:
    (topic,) = read_files([written(tmp_path, yaml.safe_dump(edited(TOPIC, {"spec.retention": None})))])
    assert isinstance(topic, Topic)
    assert topic.spec.retention.time is None


def test_what_the_api_server_adds_is_let_through() -> None:
    stored = edited(
        JOB, {"metadata.managedFields": [{"manager": "kubectl"}], "metadata.uid": "1", "status.state": "Ok"}
    )
    assert parse_object(stored).status == {"state": "Ok"}


def test_anchors_and_merged_keys_work(tmp_path: Path) -> None:
    text = """
apiVersion: millrace.io/v1alpha1
kind: Topic
metadata: &names {name: a}
spec: {partitions: 2}
---
apiVersion: millrace.io/v1alpha1
kind: Topic
metadata: {name: b}
spec:
  retention: &kept {time: 1d}
  cluster: {}
"""
    assert [resource.metadata.name for resource in read_files([written(tmp_path, text)])] == ["a", "b"]
