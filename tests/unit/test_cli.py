"""The command line: help that helps, sentences instead of stack traces, and exit codes that scripts can rely on."""

from pathlib import Path

import pytest

from millrace import cli
from millrace.commands import commands

pytestmark = pytest.mark.unit

COMMANDS = {command.name: command for command in commands()}
BAD_SPEC = """
apiVersion: millrace.io/v1alpha1
kind: StreamJob
metadata: {name: bad, namespace: shop}
spec:
  sources:
    - {name: views, topic: pageviews, schema: "user string, at timestamp", eventTime: {column: att}}
  stragglers: {delay: soon, policy: aside}
  transform:
    - window: {type: tumbling, aggregates: {views: "count(*)"}}
  sinks:
    - {topic: views}
"""


def printed_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main([*arguments, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_help_names_every_command_with_what_it_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    told = printed_help([], capsys)
    for command in COMMANDS.values():
        assert command.name in told
        assert command.summary in told


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_with_a_description(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = printed_help([name], capsys)
    assert COMMANDS[name].description.strip() in told
    assert max(map(len, COMMANDS[name].description.splitlines())) <= 120


def test_run_tells_of_all_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    told = printed_help(["run"], capsys)
    for option in ("--bootstrap", "--until-caught-up", "--metrics-port", "--report", "--state"):
        assert option in told


def test_a_bad_spec_is_one_line_per_mistake_with_exit_code_2_and_nothing_has_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "bad.yaml"
    spec.write_text(BAD_SPEC)
    assert cli.main(["run", str(spec), "--state", str(tmp_path / "state")]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    fields = sorted(line.split(": ")[2] for line in shown.err.splitlines())
    assert fields == [
        "spec.sources[0].eventTime.column",
        "spec.stragglers.delay",
        "spec.stragglers.topic",
        "spec.transform[0].window.size",
    ]
    assert not (tmp_path / "state").exists()


def test_a_missing_file_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", str(tmp_path / "none.yaml")]) == 2
    assert "none.yaml: cannot be read: there is no such file" in capsys.readouterr().err


def test_an_example_that_does_not_exist_is_answered_with_those_that_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo", "no-such-example"]) == 2
    told = capsys.readouterr().err
    assert "'no-such-example'" in told
    assert "pageviews-per-minute" in told


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "x.yaml", "--bootstrap", "localhost"], "write HOST:PORT"),
        (["run", "x.yaml", "--metrics-port", "70000"], "is not a port"),
        (["demo", "--for", "soon"], "is not a duration"),
        (["demo", "--for", "0s"], "longer than zero"),
    ],
)
def test_a_wrong_value_says_what_would_be_right(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err
