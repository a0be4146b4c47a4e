"""Alerts on the platform itself: a topic not as declared, an operator that does not act, an observer that is blind."""

from millrace import metrics as m
from millrace.metrics import Metric
from millrace_dashboards import operator_board, topics_board
from millrace_dashboards.alerts import Alert
from millrace_dashboards.promql import STALE_SECONDS, Pace, agg, increase, select

TOPIC = "namespace, topic"
LIST_STALE_SECONDS = 600  # new and changed jobs may be unknown for so long


def alerts(pace: Pace) -> tuple[Alert, ...]:
    return (_not_as_declared(), _not_reconciling(pace), _blind(pace))


def _gone(metric: Metric) -> str:
    """What was there within the last day and is not there now. Silent where there has never been one."""
    return f"max(max_over_time({select(metric)}[1d])) unless max({select(metric)})"


def _not_as_declared() -> Alert:
    return Alert(
        name="TopicNotAsDeclared",
        severity="warning",
        labels=TOPIC,
        expr=f"{agg('min', TOPIC, select(m.TOPIC_READY))} == 0",
        hold_seconds=300,
        summary="Topic {{ $labels.namespace }}/{{ $labels.topic }} is not as declared.",
        description="The topic in Kafka differs from its resource, and the operator could not change that.",
        board=topics_board.BOARD,
        panel=topics_board.READY,
    )


def _not_reconciling(pace: Pace) -> Alert:
    window = pace.span(900)
    failed, fine = (
        agg("sum", "", increase(select(m.OPERATOR_RECONCILIATIONS, result=result), window)) + " > 0"
        for result in ("failed", "~done|waiting")
    )
    old = f"time() - {agg('max', '', select(m.OPERATOR_LAST_RECONCILE))} > {pace.seconds(900)}"
    waiting = f"{agg('sum', '', select(m.OPERATOR_QUEUE_DEPTH))} > 0"
    leaderless = f"{agg('sum', '', select(m.OPERATOR_LEADER))} == 0"
    return Alert(
        name="StreamOperatorNotReconciling",
        severity="critical",
        labels="",
        expr=(
            f"({failed} unless {fine})\nor\n({old} and {waiting})\nor\n({leaderless})\nor\n({_gone(m.OPERATOR_LEADER)})"
        ),
        hold_seconds=300,
        summary="The operator does not reconcile.",
        description="Every reconciliation fails, or resources wait and none is done, or no operator acts or is there. "
        "Jobs go on running; changes to resources have no effect.",
        board=operator_board.BOARD,
        panel=operator_board.RECONCILIATIONS,
    )


def _blind(pace: Pace) -> Alert:
    unseen = f"time() - {agg('max', 'cluster', select(m.OBSERVER_LAST_SUCCESS))} > {STALE_SECONDS}"
    unlisted = f"time() - {agg('max', '', select(m.OBSERVER_JOBS_LISTED))} > {pace.seconds(LIST_STALE_SECONDS)}"
    return Alert(
        name="StreamObserverBlind",
        severity="critical",
        labels="cluster",
        expr=f"({unseen})\nor\n({unlisted})\nor\n({_gone(m.OBSERVER_JOBS_LISTED)})",
        hold_seconds=120,
        summary="The lag observer sees nothing{{ with $labels.cluster }} of Kafka at {{ . }}{{ end }}.",
        description="Lag, retention margins and verdicts are stale. Alerts on them are silent until it sees again.",
        board=operator_board.BOARD,
        panel=operator_board.SIGHT,
    )
