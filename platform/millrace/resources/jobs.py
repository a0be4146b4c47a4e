"""The StreamJob resource: what a job reads, computes, writes and promises."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from millrace.resources import wiring
from millrace.resources.fields import Model, Problem, Rule, declared
from millrace.resources.metadata import API_VERSION, Resource
from millrace.resources.runs import Checkpoint, Driver, Executors, Remediation, Restart, Slo, Trigger, Upgrade
from millrace.resources.sinks import Sink
from millrace.resources.sources import KafkaCluster, Source
from millrace.resources.steps import Step, Window
from millrace.resources.stragglers import Malformed, Stragglers
from millrace.resources.types import JOB_NAME


class StreamJobSpec(Model):
    """What the job does and how it runs."""

    kafka: KafkaCluster = declared("The Kafka cluster that sources and sinks are in.", change="restart", default={})
    sources: Annotated[tuple[Source, ...], Field(strict=False, min_length=1, max_length=16)] = declared(
        "What the job reads.",
        change="new-state",
        schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    stragglers: Stragglers = declared("What becomes of late events.", change="restart", default={})
    malformed: Malformed | None = declared(
        "Where records go that cannot be read or come from the future. Without it they are counted and left out.",
        change="restart",
        default=None,
    )
    transform: Annotated[tuple[Step, ...], Field(strict=False, max_length=32)] = declared(
        "Steps in order. Without any, events go to the sinks as they were read.", change="restart", default=()
    )
    sinks: Annotated[tuple[Sink, ...], Field(strict=False, min_length=1, max_length=16)] = declared(
        "Where the results of the last step go.", change="restart"
    )
    trigger: Trigger = declared("When a batch starts.", change="restart", default={})
    slo: Slo = declared("What the job promises.", change="live", default={})
    checkpoint: Checkpoint = declared(
        "Where state and position are kept. Default: a folder of `millrace run`'s own, or the operator's default "
        "volume.",
        change="new-state",
        default={},
    )
    driver: Driver = declared("Size and image of the driver.", change="restart", default={})
    executors: Executors = declared("Number and size of the executors.", change="restart", default={})
    restart: Restart = declared("What happens when the job ends by itself.", change="live", default={})
    remediation: Remediation = declared(
        "What the platform may do by itself when an alert about this job fires.", change="live", default={}
    )
    upgrade: Upgrade = declared("How a new version takes over.", change="live", default={})
    suspend: bool = declared(
        "true stops the job at a batch boundary and keeps its state.", change="live", default=False
    )

    rules = (
        Rule(
            at="transform",
            says="has more than one window step; only one is possible now: put the second window into a job of its own "
            "that reads this one's sink",
            holds=lambda spec: sum(step.window is not None for step in spec.transform) <= 1,
            cel="!has(self.transform) || self.transform.filter(step, has(step.window)).size() <= 1",
        ),
        Rule(
            at="remediation.scaleOut.maxInstances",
            says="must not be less than executors.instances",
            holds=lambda spec: (
                spec.remediation.scale_out is None
                or spec.remediation.scale_out.max_instances >= spec.executors.instances
            ),
            cel="!has(self.remediation.scaleOut) || self.remediation.scaleOut.maxInstances >= self.executors.instances",
        ),
    )
    server_rules = (
        {
            "rule": "self.stragglers.policy == 'drop' "
            "|| (has(self.transform) && self.transform.exists(step, has(step.window)))",
            "message": "must be drop in a job without a window step: no event is late there",
            "fieldPath": ".stragglers.policy",
        },
        {
            "rule": "self.stragglers.policy != 'correct' || !has(self.transform) "
            "|| !self.transform.exists(step, has(step.window) && step.window.type == 'session') "
            "|| has(self.transform[self.transform.size() - 1].window)",
            "message": "must end with the session window: with policy 'correct' a session may be withdrawn, and later "
            "steps cannot follow it",
            "fieldPath": ".transform",
        },
        {
            "rule": "!has(self.transform) || !self.transform.exists(step, has(step.window)) "
            "|| self.sources.exists(source, has(source.eventTime))",
            "message": "has no eventTime, which a window needs: say which column tells when an event happened, "
            "for instance eventTime: {column: occurred_at}",
            "fieldPath": ".sources",
        },
        {
            "rule": "self.sources.all(source, self.sinks.all(sink, !has(sink.topic) || sink.topic != source.topic))",
            "message": "must not write to a topic that the job reads: it would read its own results; "
            "name another topic",
            "fieldPath": ".sinks",
        },
        {
            "rule": "!has(self.malformed) || self.sources.all(source, source.topic != self.malformed.topic)",
            "message": "must not be a topic that the job reads: it would read its own output; name another topic",
            "fieldPath": ".malformed.topic",
        },
        {
            "rule": "!has(self.stragglers.topic) || self.sources.all(source, source.topic != self.stragglers.topic)",
            "message": "must not be a topic that the job reads: it would read its own output; name another topic",
            "fieldPath": ".stragglers.topic",
        },
        {
            "rule": "!has(self.malformed) || self.sinks.all(sink, !has(sink.topic) "
            "|| sink.topic != self.malformed.topic)",
            "message": "must not be a topic that a sink writes to; name another topic",
            "fieldPath": ".malformed.topic",
        },
        {
            "rule": "!has(self.stragglers.topic) || ((!has(self.malformed) "
            "|| self.malformed.topic != self.stragglers.topic) "
            "&& self.sinks.all(sink, !has(sink.topic) || sink.topic != self.stragglers.topic))",
            "message": "must not be a topic that a sink or malformed writes to; name another topic",
            "fieldPath": ".stragglers.topic",
        },
    )

    @property
    def window(self) -> Window | None:
        """The window step's window, if there is one."""
        return next((step.window for step in self.transform if step.window is not None), None)

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        yield from wiring.problems(self)


class StreamJob(Resource):
    """A stream processing job."""

    api_version: Literal["millrace.io/v1alpha1"] = declared("", change="new-state", default=API_VERSION)
    kind: Literal["StreamJob"] = declared("", change="new-state", default="StreamJob")
    spec: StreamJobSpec = declared("What the job does and how it runs.", change="restart")

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if says := JOB_NAME.objection(self.metadata.name):
            yield Problem(("metadata", "name"), says)
