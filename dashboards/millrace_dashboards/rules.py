"""Every alert of the platform, and the rule file that Prometheus loads. One static file serves all jobs."""

import yaml

from millrace_dashboards import lag_alerts, platform_alerts, run_alerts, straggler_alerts
from millrace_dashboards.alerts import Alert, Links
from millrace_dashboards.promql import Pace

GROUPS = {
    "millrace-lag": lag_alerts.alerts,
    "millrace-runs": run_alerts.alerts,
    "millrace-events": straggler_alerts.alerts,
    "millrace-platform": platform_alerts.alerts,
}
USUAL = Pace()
HEADER = """\
# Alert rules of Millrace, made by `make dashboards` from dashboards/millrace_dashboards. Do not edit.
# Scrape with `honor_labels: true`: `job` and `namespace` are those of the stream job, not of the scraped target.
"""


def alerts(pace: Pace = USUAL) -> tuple[Alert, ...]:
    return tuple(alert for make in GROUPS.values() for alert in make(pace))


def rule_file(links: Links | None = None, pace: Pace = USUAL) -> str:
    links = links or Links()
    groups = [
        {"name": name, "rules": [alert.rule(links, pace) for alert in make(pace)]} for name, make in GROUPS.items()
    ]
    return HEADER + to_yaml({"groups": groups})


class _Readable(yaml.SafeDumper):
    """Expressions as blocks, so that a reader of the file sees them as they were written."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Readable.add_representer(str, _text)


def to_yaml(document: object) -> str:
    return yaml.dump(document, Dumper=_Readable, sort_keys=False, width=10_000, allow_unicode=True)
