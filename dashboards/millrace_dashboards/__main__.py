"""Writes what Prometheus, promtool and Grafana read: `python -m millrace_dashboards [--out DIR] [--check] …`.

The only module here that touches files. Other addresses or a faster pace give the files of one installation.
"""

import argparse
import sys
from pathlib import Path

from millrace_dashboards import (
    event_stories,
    fleet_board,
    job_board,
    lag_stories,
    operator_board,
    platform_stories,
    run_stories,
    topics_board,
)
from millrace_dashboards.alerts import Links
from millrace_dashboards.grafana import to_json
from millrace_dashboards.promql import Pace
from millrace_dashboards.rules import alerts, rule_file
from millrace_dashboards.stories import Story, test_file

BOARDS = (fleet_board.BOARD, job_board.BOARD, topics_board.BOARD, operator_board.BOARD)
STORIES: tuple[Story, ...] = (
    *lag_stories.STORIES,
    *run_stories.STORIES,
    *event_stories.STORIES,
    *platform_stories.STORIES,
)
HOME = Path(__file__).parents[1]
RULES = "rules/millrace.rules.yaml"
DEMO_RULES = "rules/demo.rules.yaml"
DEMO_PACE = Pace(faster=60)  # an hour becomes a minute


def files(links: Links) -> dict[str, str]:
    """Every generated file, by its path below the folder of the dashboards."""
    made = {RULES: rule_file(links), DEMO_RULES: rule_file(links, DEMO_PACE)}
    for alert in alerts():
        told = [story for story in STORIES if story.alert == alert.name]
        made[f"rules/tests/{alert.name}.yaml"] = test_file(told, alert, "../millrace.rules.yaml")
    for board in BOARDS:
        made[f"generated/{board.uid}.json"] = to_json(board, BOARDS, alerts(), links)
    return made


def drift(home: Path, made: dict[str, str]) -> list[str]:
    """Paths whose file is missing, differs, or is not made any more."""
    wrong = [path for path, text in made.items() if not (home / path).is_file() or (home / path).read_text() != text]
    there = [*home.glob("rules/**/*.yaml"), *home.glob("generated/*.json")]
    return sorted(wrong + [str(path.relative_to(home)) for path in there if str(path.relative_to(home)) not in made])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="millrace_dashboards", description=__doc__)
    parser.add_argument("--out", type=Path, default=HOME, help="folder to write to (default: the repository's own)")
    parser.add_argument("--runbooks", default=Links().runbooks, help="address before the name of a runbook's page")
    parser.add_argument("--grafana", default=Links().grafana, help="address before /d/… of a dashboard")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is not up to date")
    chosen = parser.parse_args(arguments)
    made = files(Links(chosen.runbooks.rstrip("/"), chosen.grafana.rstrip("/")))
    if chosen.check:
        wrong = drift(chosen.out, made)
        print(f"Not up to date: {', '.join(wrong)}. Run `make dashboards`." if wrong else "Up to date.")
        return 1 if wrong else 0
    for path, text in made.items():
        (chosen.out / path).parent.mkdir(parents=True, exist_ok=True)
        (chosen.out / path).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
