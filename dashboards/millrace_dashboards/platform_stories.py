"""The promtool stories of the alerts on the platform itself."""

from millrace import metrics as m
from millrace_dashboards.stories import Quiet, Series, Story, instead, series

_TOPIC = (
    series(m.TOPIC_READY, "1x5 0x10 1x20", namespace="shop", topic="pageviews"),
    series(m.TOPIC_READY, "1x40", namespace="shop", topic="orders"),
)
NOT_AS_DECLARED = Story(
    alert="TopicNotAsDeclared",
    series=_TOPIC,
    before=10,
    fires=12,
    resolved=18,
    labels={"namespace": "shop", "topic": "pageviews"},
    summary="Topic shop/pageviews is not as declared.",
    description="The topic in Kafka differs from its resource, and the operator could not change that.",
    quiet=(Quiet("it was being made", instead(_TOPIC, m.TOPIC_READY, "0x3 1x30"), 6),),
)


def _reconciled(result: str, values: str) -> Series:
    return series(m.OPERATOR_RECONCILIATIONS, values, kind="StreamJob", result=result)


# It works for 10 minutes, then everything fails for 30, then it works again.
_OPERATOR = (
    _reconciled("done", "0+1x10 10x30 10+1x60"),
    _reconciled("failed", "0x10 0+1x30 30x60"),
    series(m.OPERATOR_LAST_RECONCILE, "0+60x10 600x30 2460+60x60", kind="StreamJob"),
    series(m.OPERATOR_QUEUE_DEPTH, "0x10 2x30 0x60"),
    series(m.OPERATOR_LEADER, "1x100"),
)
_IDLE = instead(instead(_OPERATOR, m.OPERATOR_RECONCILIATIONS, "5x100"), m.OPERATOR_LAST_RECONCILE, "60x100")
NOT_RECONCILING = Story(
    alert="StreamOperatorNotReconciling",
    series=_OPERATOR,
    before=20,
    fires=38,
    resolved=50,
    labels={},
    summary="The operator does not reconcile.",
    description="Every reconciliation fails, or resources wait and none is done, or no operator acts or is there. "
    "Jobs go on running; changes to resources have no effect.",
    quiet=(
        Quiet("there is nothing to do", instead(_IDLE, m.OPERATOR_QUEUE_DEPTH, "0x100"), 60),
        Quiet("some fail and others are done", (_reconciled("done", "0+1x90"), _reconciled("failed", "0+1x90")), 60),
        Quiet("there is no operator: local mode", (), 60),
    ),
)
OPERATOR_GONE = Story(
    alert=NOT_RECONCILING.alert,
    series=(series(m.OPERATOR_LEADER, "1x10 stale _x20 1x30"),),
    before=14,
    fires=20,
    resolved=35,
    labels={},
    summary=NOT_RECONCILING.summary,
    description=NOT_RECONCILING.description,
)

_SIGHT = (
    series(m.OBSERVER_LAST_SUCCESS, "0+60x10 600x10 1260+60x30", cluster="kafka:9092"),
    series(m.OBSERVER_LAST_SUCCESS, "0+60x60", cluster="other:9092"),
    series(m.OBSERVER_JOBS_LISTED, "0+60x60"),
)
_BLIND_SAYS = "Lag, retention margins and verdicts are stale. Alerts on them are silent until it sees again."
BLIND = Story(
    alert="StreamObserverBlind",
    series=_SIGHT,
    before=13,
    fires=16,
    resolved=22,
    labels={"cluster": "kafka:9092"},
    summary="The lag observer sees nothing of Kafka at kafka:9092.",
    description=_BLIND_SAYS,
    quiet=(
        Quiet("it sees every cluster", instead(_SIGHT, m.OBSERVER_LAST_SUCCESS, "0+60x60"), 16),
        Quiet("a poll took two minutes", instead(_SIGHT, m.OBSERVER_LAST_SUCCESS, "0+60x10 600x2 780+60x40"), 14),
        Quiet("a cluster that nobody uses any more", instead(_SIGHT, m.OBSERVER_LAST_SUCCESS, "0+60x10 stale"), 16),
    ),
)
OBSERVER_GONE = Story(
    alert=BLIND.alert,
    series=(series(m.OBSERVER_JOBS_LISTED, "0+60x10 stale _x20 1860+60x30"),),
    before=12,
    fires=15,
    resolved=35,
    labels={},
    summary="The lag observer sees nothing.",
    description=_BLIND_SAYS,
)

STORIES = (NOT_AS_DECLARED, NOT_RECONCILING, OPERATOR_GONE, BLIND, OBSERVER_GONE)
