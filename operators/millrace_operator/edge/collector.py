"""The operator's metrics: one snapshot of what it knows, made when somebody asks."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from millrace import metrics
from millrace.metrics import Labels, Metric, Value
from millrace_operator.actions import Manifest
from millrace_operator.edge.cache import Cache
from millrace_operator.edge.counts import Counts
from millrace_operator.edge.topics import TopicController
from millrace_operator.streamjobs.status import STATES
from millrace_operator.topics.state import CLEANUP
from millrace_operator.version import VERSION

Samples = dict[Labels, Value]


class OperatorCollector(Collector):
    def __init__(
        self,
        cache: Cache,
        topics: TopicController,
        counts: Counts,
        is_leader: Callable[[], bool],
        depth: Callable[[], int],
    ) -> None:
        self._cache, self._topics, self._counts = cache, topics, counts
        self._is_leader, self._depth = is_leader, depth

    def collect(self) -> Iterator[Family]:
        yield from metrics.families({**self._own(), **self._jobs(), **self._of_topics()})

    def _own(self) -> Mapping[Metric, Samples]:
        counts = self._counts
        return {
            metrics.OPERATOR_INFO: {(VERSION,): 1},
            metrics.OPERATOR_LEADER: {(): float(self._is_leader())},
            metrics.OPERATOR_RECONCILIATIONS: {key: float(n) for key, n in counts.reconciliations.items()},
            metrics.OPERATOR_RECONCILE_DURATION: {(kind,): one for kind, one in counts.durations.items()},
            metrics.OPERATOR_LAST_RECONCILE: {(kind,): at for kind, at in counts.last.items()},
            metrics.OPERATOR_QUEUE_DEPTH: {(): float(self._depth())},
            metrics.OPERATOR_WEBHOOKS: {(result,): float(n) for result, n in counts.webhooks.items()},
        }

    def _jobs(self) -> Mapping[Metric, Samples]:
        phases: Samples = {}
        upgrading: Samples = {}
        restarts: Samples = {}
        for key, body in self._cache.jobs.items():
            status: Manifest = body.get("status") or {}
            state = status.get("state", "")
            phases |= metrics.one_hot(tuple(key), STATES, state)
            upgrading[tuple(key)] = float(state == "Upgrading")
            causes = (status.get("failures") or {}).get("causes") or {}
            restarts |= {(*key, cause): float(count) for cause, count in causes.items()}
        return {metrics.JOB_PHASE: phases, metrics.JOB_UPGRADING: upgrading, metrics.JOB_RESTARTS: restarts}

    def _of_topics(self) -> Mapping[Metric, Samples]:
        info: Samples = {}
        ready: Samples = {}
        declared: Samples = {}
        there: Samples = {}
        for one in self._topics.outcomes():
            topic = one.declared
            key = (topic.ref.namespace, topic.ref.name)
            info[(*key, topic.topic, topic.config.get(CLEANUP, ""))] = 1
            ready[key] = float(one.ready)
            declared[key] = float(topic.partitions)
            there[key] = float(one.seen.partitions if one.seen is not None else 0)
        return {
            metrics.TOPIC_INFO: info,
            metrics.TOPIC_READY: ready,
            metrics.TOPIC_DECLARED_PARTITIONS: declared,
            metrics.TOPIC_PARTITIONS: there,
        }
