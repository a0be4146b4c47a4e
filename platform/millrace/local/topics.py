"""Which topics a set of specs needs: those it declares, and those its jobs name without declaring them.

Only plans; `millrace.kafka.topics` makes what is missing and never touches what is there.
"""

from collections.abc import Iterator, Sequence

from millrace.kafka.topics import TopicPlan
from millrace.resources import StreamJob, Topic
from millrace.resources.metadata import Resource


def plan_topics(resources: Sequence[Resource]) -> list[TopicPlan]:
    """One plan for each topic. A topic that nobody declared gets the defaults of local mode."""
    plans = {one.topic_name: declared_plan(one) for one in resources if isinstance(one, Topic)}
    for job in resources:
        if isinstance(job, StreamJob):
            for name in topics_of(job):
                plans.setdefault(name, TopicPlan(name))
    return list(plans.values())


def topics_of(job: StreamJob) -> Iterator[str]:
    """Every topic that the job reads or writes."""
    spec = job.spec
    yield from source_topics(job)
    yield from (sink.topic for sink in spec.sinks if sink.topic is not None)
    if spec.malformed is not None:
        yield spec.malformed.topic
    if spec.stragglers.topic is not None:
        yield spec.stragglers.topic


def source_topics(job: StreamJob) -> tuple[str, ...]:
    return tuple(source.topic for source in job.spec.sources)


def declared_plan(topic: Topic) -> TopicPlan:
    """A Topic resource in Kafka's own words."""
    spec = topic.spec
    config = {"cleanup.policy": spec.cleanup, **spec.config}
    if spec.retention.time is not None:
        config["retention.ms"] = str(int(spec.retention.time.total_seconds() * 1000))
    if spec.retention.bytes is not None:
        config["retention.bytes"] = str(spec.retention.bytes)
    return TopicPlan(topic.topic_name, spec.partitions, spec.replicas, config)
