"""The alert rules, held to their stories by promtool, and promtool's tests held to be able to fail."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from millrace_dashboards.__main__ import HOME
from millrace_dashboards.rules import alerts

pytestmark = pytest.mark.integration

RULES = HOME / "rules"
NAMES = [alert.name for alert in alerts()]


@pytest.fixture(scope="module")
def promtool() -> str:
    found = shutil.which("promtool")
    assert found, "promtool is missing: run 'platform/tools/ensure prometheus'"
    return found


def _run(*command: str | Path) -> tuple[int, str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def test_prometheus_accepts_both_rule_files(promtool: str) -> None:
    for path in ("millrace.rules.yaml", "demo.rules.yaml"):
        code, said = _run(promtool, "check", "rules", "--lint=all", "--lint-fatal", RULES / path)
        assert code == 0, said
        assert f"{len(NAMES)} rules found" in said


@pytest.mark.parametrize("name", NAMES)
def test_an_alert_fires_stays_quiet_and_resolves(promtool: str, name: str) -> None:
    code, said = _run(promtool, "test", "rules", RULES / "tests" / f"{name}.yaml")
    assert code == 0, said


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("StreamJob")])
def test_the_test_of_a_jobs_alert_fails_without_its_silence(promtool: str, name: str, tmp_path: Path) -> None:
    _break(tmp_path, r"\n\s+unless on \(namespace, job\) \(millrace_job_suspended.*", "")
    code, said = _run(promtool, "test", "rules", tmp_path / "tests" / f"{name}.yaml")
    assert code != 0
    failed = set(re.findall(r"name: (.*),$", said, re.MULTILINE))
    assert failed == {"stays quiet: the job is suspended", "stays quiet: the job is upgrading"}, said


@pytest.mark.parametrize("name", NAMES)
def test_the_test_of_an_alert_fails_when_it_never_fires(promtool: str, name: str, tmp_path: Path) -> None:
    _break(tmp_path, r"(?m)^    for: \w+$", "    for: 10d")
    code, _ = _run(promtool, "test", "rules", tmp_path / "tests" / f"{name}.yaml")
    assert code != 0


def _break(folder: Path, pattern: str, replacement: str) -> None:
    """A copy of rules and tests in which the rules are wrong in one respect."""
    shutil.copytree(RULES, folder, dirs_exist_ok=True)
    whole = (RULES / "millrace.rules.yaml").read_text()
    broken = re.sub(pattern, replacement, whole)
    assert broken != whole
    (folder / "millrace.rules.yaml").write_text(broken)
