"""Alertmanager's notifications, turned into one annotation per job: pure, so that any replica may take them.

The annotation is what counts; the job's `Alerting` condition is made from it.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from millrace.resources.metadata import API_VERSION
from millrace_operator.actions import Annotate, Ref
from millrace_operator.streamjobs.health import ALERTS, firing_alerts

SEVERITIES = ("critical", "warning", "info")
Jobs = Mapping[tuple[str, str], str]
"""The known jobs by namespace and name, each with the annotation that it has now."""


class NotANotificationError(ValueError):
    """What came in is not what Alertmanager sends."""


def annotations(notification: Any, jobs: Jobs) -> list[Annotate]:
    """What changes by a notification: firing alerts come in, resolved ones go."""
    changes: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for alert in _alerts(notification):
        labels = alert.get("labels") or {}
        key = (str(labels.get("namespace", "")), str(labels.get("job", "")))
        if key in jobs and labels.get("alertname"):
            changes[key].append(alert)
    found = [_annotate(key, jobs[key], alerts) for key, alerts in changes.items()]
    return [one for one in found if one.value != (jobs[one.ref.namespace, one.ref.name] or None)]


def _alerts(notification: Any) -> Iterable[Mapping[str, Any]]:
    alerts = notification.get("alerts") if isinstance(notification, dict) else None
    if not isinstance(alerts, list) or not all(isinstance(one, dict) for one in alerts):
        raise NotANotificationError("expected Alertmanager's webhook format: an object with a list 'alerts'")
    return alerts


def _annotate(key: tuple[str, str], before: str, alerts: Iterable[Mapping[str, Any]]) -> Annotate:
    firing = firing_alerts(before)
    ordered = sorted(alerts, key=lambda one: _severity(one))
    for alert in ordered:
        name = str(alert["labels"]["alertname"])
        firing.pop(name, None)
        if alert.get("status") == "firing":
            firing[name] = str((alert.get("annotations") or {}).get("summary") or name)
    value = json.dumps(firing) if firing else None
    return Annotate(Ref(API_VERSION, "StreamJob", *key), ALERTS, value)


def _severity(alert: Mapping[str, Any]) -> int:
    severity = alert["labels"].get("severity")
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)
