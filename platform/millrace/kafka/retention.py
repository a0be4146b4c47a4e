"""How long topics keep their records, by the settings that hold for them. One request for all topics; never writes."""

import math
from collections.abc import Iterable, Mapping
from concurrent.futures import wait
from typing import Any

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from millrace.kafka.clients import REQUEST_SECONDS
from millrace.lag import Keep

SLACK_SECONDS = 1.0  # the client keeps its own deadline; this is for a busy machine


def keeps(client: AdminClient, topics: Iterable[str], timeout: float = REQUEST_SECONDS) -> dict[str, Keep]:
    """What holds for each topic. One that is gone, or that we may not look at, is left out."""
    wanted = [ConfigResource(ResourceType.TOPIC, topic) for topic in sorted(set(topics))]
    if not wanted:
        return {}
    answers = client.describe_configs(wanted, request_timeout=timeout)
    wait(answers.values(), timeout + SLACK_SECONDS)
    found = {one.name: future for one, future in answers.items() if future.done() and future.exception() is None}
    return {name: keep({key: entry.value for key, entry in future.result().items()}) for name, future in found.items()}


def keep(settings: Mapping[str, Any]) -> Keep:
    """The meaning of a topic's settings: only `delete` deletes, and -1 is no bound."""
    if "delete" not in str(settings.get("cleanup.policy") or "delete"):
        return Keep()
    return Keep(
        seconds=_bound(settings.get("retention.ms")) / 1000,
        bytes=_bound(settings.get("retention.bytes")),
        segment_bytes=_bound(settings.get("segment.bytes")),
    )


def _bound(value: Any) -> float:
    number = float(value) if value is not None else -1.0
    return math.inf if number < 0 else number
