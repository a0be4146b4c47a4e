"""The board of the platform itself: the operator that acts and the observer that watches."""

from millrace import metrics as m
from millrace_dashboards.boards import RATE_WINDOW, Board, Panel, Query, Row
from millrace_dashboards.promql import agg, rate, select

LEADER = Panel(
    "Leader",
    "How many operators act. Anything but one is wrong.",
    (Query(f"sum({select(m.OPERATOR_LEADER)})", "leaders", instant=True),),
    kind="number",
    size="small",
)
VERSION = Panel(
    "Version",
    "Of the operators that run.",
    (Query(agg("count", "version", select(m.OPERATOR_INFO)), "{{version}}", instant=True),),
    kind="number",
    size="small",
)
JOBS = Panel(
    "Jobs watched",
    "By the lag observer, over all clusters.",
    (Query(f"sum({select(m.OBSERVER_JOBS)})", "jobs", instant=True),),
    kind="number",
    size="small",
)
UP = Panel(
    "Clusters seen",
    "1 when the last poll of the Kafka cluster succeeded.",
    (Query(agg("max", "cluster", select(m.OBSERVER_UP)), "{{cluster}}", instant=True),),
    kind="number",
    size="small",
)
RECONCILIATIONS = Panel(
    "Reconciliations",
    "By kind of resource and result.",
    (Query(agg("sum", "kind, result", rate(select(m.OPERATOR_RECONCILIATIONS), RATE_WINDOW)), "{{kind}} {{result}}"),),
    unit="ops",
    size="half",
)
DURATION = Panel(
    "Time of a reconciliation",
    "99th percentile, by kind of resource.",
    (
        Query(
            "histogram_quantile(0.99, "
            f"{agg('sum', 'kind, le', rate(select(m.OPERATOR_RECONCILE_DURATION, '_bucket'), RATE_WINDOW))})",
            "{{kind}}",
        ),
    ),
    unit="s",
    size="half",
)
QUEUE = Panel(
    "Waiting for reconciliation",
    "Resources in the queue.",
    (Query(f"sum({select(m.OPERATOR_QUEUE_DEPTH)})", "waiting"),),
)
LAST = Panel(
    "Since the last success",
    "Time since a reconciliation last succeeded, by kind of resource.",
    (Query(f"time() - {agg('max', 'kind', select(m.OPERATOR_LAST_RECONCILE))}", "{{kind}}"),),
    unit="s",
)
WEBHOOKS = Panel(
    "Alerts that came in",
    "Notifications from Alertmanager, by what became of them.",
    (Query(agg("sum", "result", rate(select(m.OPERATOR_WEBHOOKS), RATE_WINDOW)), "{{result}}"),),
    unit="ops",
)
SIGHT = Panel(
    "Since the cluster was last seen",
    "Time since the last good poll, per Kafka cluster, and since the list of jobs was read.",
    (
        Query(f"time() - {agg('max', 'cluster', select(m.OBSERVER_LAST_SUCCESS))}", "{{cluster}}"),
        Query(f"time() - max({select(m.OBSERVER_JOBS_LISTED)})", "list of jobs"),
    ),
    unit="s",
)
POLLS = Panel(
    "Polls and their time",
    "Seconds that the last poll took, and failed polls per second.",
    (
        Query(agg("max", "cluster", select(m.OBSERVER_POLL_DURATION)), "{{cluster}} seconds"),
        Query(
            agg("sum", "cluster, result", rate(select(m.OBSERVER_POLLS), RATE_WINDOW)), "{{cluster}} {{result}} polls/s"
        ),
    ),
)
REQUESTS = Panel(
    "Questions to the brokers",
    "Batched, so they do not grow with partitions. Partitions whose lag in seconds is only a bound stand beside them.",
    (
        Query(agg("sum", "cluster, question", rate(select(m.OBSERVER_REQUESTS), RATE_WINDOW)), "{{question}}/s"),
        Query(agg("sum", "cluster", select(m.OBSERVER_UNTIMED)), "partitions without a time"),
    ),
)

BOARD = Board(
    uid="millrace-operator",
    title="Millrace: operator and observer",
    description="Whether the platform itself is well.",
    variables=(),
    rows=(
        Row("Now", (LEADER, VERSION, JOBS, UP)),
        Row("Operator", (RECONCILIATIONS, DURATION, QUEUE, LAST, WEBHOOKS)),
        Row("Observer", (SIGHT, POLLS, REQUESTS)),
    ),
)
