"""The alerts of a job: kept in one annotation, told as a condition, as events, and as a bounded history.

The annotation is written by whichever replica heard of an alert; all else is made from it by the leader. Pure.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from millrace.resources.metadata import API_GROUP
from millrace_operator.actions import Manifest, Warn
from millrace_operator.streamjobs.conditions import Condition
from millrace_operator.streamjobs.state import Observed, Resource, format_time

ALERTS = f"{API_GROUP}/alerts"
"""Annotation with the alerts that fire for the job, and the latest that did."""
SEVERITIES = ("critical", "warning", "info")
ENDED = 10  # ended alerts that the annotation keeps: by them a late notification is known to be old
HISTORY = 20  # alerts that the status keeps, those that fire among them
FIRING, RESOLVED = "AlertFiring", "AlertResolved"


@dataclass(frozen=True)
class Alert:
    """One alert about a job. The same rule may fire for several topics of it: those are several alerts."""

    name: str
    summary: str
    labels: Mapping[str, str] = field(default_factory=dict)
    """What tells it from other alerts of the same name."""
    severity: str = ""
    since: str = ""
    until: str | None = None
    """When it ended; None while it fires."""

    @property
    def key(self) -> str:
        more = ",".join(f"{name}={value}" for name, value in sorted(self.labels.items()))
        return f"{self.name}{{{more}}}" if more else self.name

    @property
    def rank(self) -> int:
        """The smaller, the worse."""
        return SEVERITIES.index(self.severity) if self.severity in SEVERITIES else len(SEVERITIES)


def parse(annotation: str) -> dict[str, Alert]:
    """The alerts by key; what somebody else wrote into the annotation counts as nothing."""
    try:
        found = json.loads(annotation) if annotation else {}
    except ValueError:
        return {}
    alerts = [_alert(str(key), value) for key, value in found.items()] if isinstance(found, dict) else []
    return {alert.key: alert for alert in alerts}


def _alert(key: str, value: Any) -> Alert:
    if not isinstance(value, dict):
        return Alert(key, str(value))
    labels = value.get("labels")
    return Alert(
        name=str(value.get("name", key)),
        summary=str(value.get("summary", "")),
        labels={str(k): str(v) for k, v in labels.items()} if isinstance(labels, dict) else {},
        severity=str(value.get("severity", "")),
        since=str(value.get("since", "")),
        until=str(value["until"]) if value.get("until") else None,
    )


def format_annotation(alerts: Iterable[Alert]) -> str | None:
    """What the annotation says then: all that fire, the latest of those that ended. None: nothing."""
    alerts = list(alerts)
    ended = sorted((one for one in alerts if one.until), key=lambda one: str(one.until))[-ENDED:]
    kept = [one for one in alerts if one.until is None] + ended
    said = {one.key: {key: value for key, value in asdict(one).items() if value} for one in kept}
    return json.dumps(said) if said else None


def known(resource: Resource) -> dict[str, Alert]:
    return parse(resource.annotations.get(ALERTS, ""))


def firing(resource: Resource) -> list[Alert]:
    """Worst first."""
    return sorted((one for one in known(resource).values() if one.until is None), key=lambda one: one.rank)


def condition(observed: Observed) -> Condition:
    alerts = firing(observed.resource)
    if not alerts:
        return Condition("Alerting", "False", "NoAlerts", "")
    more = f" (and {', '.join(one.key for one in alerts[1:])})" if len(alerts) > 1 else ""
    return Condition("Alerting", "True", alerts[0].name, f"{alerts[0].summary}{more}")


def history(observed: Observed) -> list[Manifest]:
    """The status's list of alerts, the latest last; one without `until` fires."""
    told = {_place(one): one for one in observed.resource.status.get("alerts") or []}
    for alert in known(observed.resource).values():
        told[alert.key, alert.since] = _entry(alert)
    alive = {(one.key, one.since) for one in firing(observed.resource)}
    now = format_time(observed.now)
    entries = [one if "until" in one or place in alive else {**one, "until": now} for place, one in told.items()]
    surplus = max(0, len(entries) - HISTORY)
    ended = [one for one in entries if "until" in one][:surplus]
    return [one for one in entries if one not in ended]


def events(observed: Observed, new: list[Manifest]) -> Iterator[Warn]:
    """One event when an alert comes and one when it goes, made from its own times so that it is never posted twice."""
    before = {_place(one): one for one in observed.resource.status.get("alerts") or []}
    resource, now = observed.resource, format_time(observed.now)
    for one in new:
        old = before.get(_place(one))
        said = f"{one['alert']}: {one['summary']}"
        if old is None:
            yield Warn(resource.ref, resource.uid, FIRING, said, one["since"] or now)
        if "until" in one and "until" not in (old or {}):
            yield Warn(resource.ref, resource.uid, RESOLVED, said, one["until"], normal=True)


def _place(entry: Manifest) -> tuple[str, str]:
    return str(entry.get("alert", "")), str(entry.get("since", ""))


def _entry(alert: Alert) -> Manifest:
    made = {"alert": alert.key, "since": alert.since, "summary": alert.summary}
    return made | ({"until": alert.until} if alert.until else {})
