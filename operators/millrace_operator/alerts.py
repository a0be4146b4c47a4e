"""Alertmanager's notifications, turned into one annotation per job: pure, so that any replica may take them.

A notification may come twice, late, or in the wrong order; each alert's own times decide what is true.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from millrace.resources.metadata import API_VERSION
from millrace_operator.actions import Annotate, Ref
from millrace_operator.streamjobs.alerting import ALERTS, Alert, format_annotation, parse
from millrace_operator.streamjobs.state import format_time, parse_time

SUMMARY_LENGTH = 300
COMMON = frozenset(["alertname", "namespace", "job", "severity"])
"""Labels that say whose alert it is; the others tell two alerts of one name apart."""


@dataclass(frozen=True)
class Kept:
    """What is known of a job: its annotation, and the version of the resource that it was read from."""

    annotation: str = ""
    version: str | None = None


Jobs = Mapping[tuple[str, str], Kept]
"""The known jobs by namespace and name."""


class NotANotificationError(ValueError):
    """What came in is not what Alertmanager sends."""


def annotations(notification: Any, jobs: Jobs, now: datetime) -> list[Annotate]:
    """What changes by a notification: firing alerts come in, resolved ones are marked as ended."""
    changes: dict[tuple[str, str], list[Alert]] = defaultdict(list)
    for alert in _alerts(notification):
        labels = alert["labels"]
        key = (str(labels.get("namespace", "")), str(labels.get("job", "")))
        if key in jobs:
            changes[key].append(_parsed(alert, now))
    found = [_annotate(key, jobs[key], alerts) for key, alerts in changes.items()]
    return [one for one in found if one.value != (jobs[one.ref.namespace, one.ref.name].annotation or None)]


def _alerts(notification: Any) -> Iterable[Mapping[str, Any]]:
    alerts = notification.get("alerts") if isinstance(notification, dict) else None
    if not isinstance(alerts, list) or not all(_is_alert(one) for one in alerts):
        raise NotANotificationError(
            "Expected Alertmanager's webhook format: an object with a list 'alerts', each of them with a status of "
            "'firing' or 'resolved' and with labels, 'alertname' among them."
        )
    return alerts


def _is_alert(one: Any) -> bool:
    if not isinstance(one, dict) or one.get("status") not in ("firing", "resolved"):
        return False
    return isinstance(one.get("labels"), dict) and bool(one["labels"].get("alertname"))


def _parsed(alert: Mapping[str, Any], now: datetime) -> Alert:
    labels = {str(key): str(value) for key, value in alert["labels"].items()}
    said = alert.get("annotations")
    summary = str(said.get("summary") or "") if isinstance(said, dict) else ""
    return Alert(
        name=labels["alertname"],
        summary=(summary or labels["alertname"])[:SUMMARY_LENGTH],
        labels={key: value for key, value in labels.items() if key not in COMMON},
        severity=labels.get("severity", ""),
        since=_time(alert.get("startsAt"), now),
        until=_time(alert.get("endsAt"), now) if alert["status"] == "resolved" else None,
    )


def _time(text: Any, now: datetime) -> str:
    """As the status spells times; Alertmanager's own 'no time' and nonsense are now."""
    try:
        found = parse_time(str(text))
    except (ValueError, OverflowError):
        return format_time(now)
    return format_time(found if found > datetime(1970, 1, 1, tzinfo=UTC) else now)


def _annotate(key: tuple[str, str], kept: Kept, alerts: Iterable[Alert]) -> Annotate:
    known = parse(kept.annotation)
    for alert in alerts:
        changed = _merged(known.pop(alert.key, None), alert)
        if changed is not None:
            known[alert.key] = changed
    return Annotate(Ref(API_VERSION, "StreamJob", *key), ALERTS, format_annotation(known.values()), kept.version)


def _merged(old: Alert | None, new: Alert) -> Alert | None:
    """What is true of an alert after one more word about it. An end that nobody saw begin is still an end."""
    if old is None:
        return new
    if new.until is not None:
        return old if old.until is not None or old.since > new.until else replace(new, since=old.since or new.since)
    if old.until is not None:
        return new if new.since > old.until else old  # an old word that comes late
    return replace(new, since=old.since or new.since)  # it still fires; the text may be a newer one
