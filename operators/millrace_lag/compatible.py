"""The same figures under the names that Kafka's exporters use, so that dashboards people already have light up.

These names are not ours and mean what they mean there; they are only exported when asked for.
"""

from collections.abc import Iterable

from millrace.metrics import Labels, Metric, Value
from millrace_lag.polling import ClusterView

_OF_GROUP = ("consumergroup", "topic", "partition")
_OF_LOG = ("topic", "partition")

GROUP_LAG = Metric("kafka_consumergroup_lag", "gauge", "Lag of a consumer group at a partition.", _OF_GROUP, "observer")
GROUP_LAG_SECONDS = Metric(
    "kafka_consumergroup_group_lag_seconds",
    "gauge",
    "Age of the oldest unread record of a consumer group at a partition.",
    ("group", "topic", "partition"),
    "observer",
)
GROUP_OFFSET = Metric(
    "kafka_consumergroup_current_offset", "gauge", "Offset of a consumer group at a partition.", _OF_GROUP, "observer"
)
LOG_END = Metric("kafka_topic_partition_current_offset", "gauge", "End of a partition's log.", _OF_LOG, "observer")
LOG_START = Metric("kafka_topic_partition_oldest_offset", "gauge", "Start of a partition's log.", _OF_LOG, "observer")
NAMES = (GROUP_LAG, GROUP_LAG_SECONDS, GROUP_OFFSET, LOG_END, LOG_START)


def samples(views: Iterable[ClusterView]) -> dict[Metric, dict[Labels, Value]]:
    """Every figure that such an exporter would give for the watched jobs."""
    found: dict[Metric, dict[Labels, Value]] = {name: {} for name in NAMES}
    for view in views:
        for who in view.subjects:
            job = view.jobs.get(who.key)
            for (topic, number), one in job.partitions.items() if job else ():
                log = (topic, str(number))
                group = (who.group, *log)
                found[GROUP_LAG][group] = one.place.records
                found[GROUP_LAG_SECONDS][group] = one.seconds
                found[GROUP_OFFSET][group] = one.place.position
                found[LOG_END][log] = one.place.log.end
                found[LOG_START][log] = one.place.log.start
    return found
