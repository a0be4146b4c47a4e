"""The panels of a job about events that come too late or cannot be read, and about its state and restarts."""

from millrace import metrics as m
from millrace_dashboards.boards import RANGE_WINDOW, RATE_WINDOW, Panel, Query, chosen
from millrace_dashboards.promql import PER_JOB, agg, increase, rate

LATE = Panel(
    "Stragglers",
    "Events that came too late for a window, by what became of them; those of idle partitions apart.",
    (
        Query(agg("sum", "outcome", rate(chosen(m.JOB_EVENTS_LATE), RATE_WINDOW)), "{{outcome}}"),
        Query(f"sum({rate(chosen(m.JOB_EVENTS_LATE_IDLE), RATE_WINDOW)})", "of these by an idle partition"),
        Query(f"sum({rate(chosen(m.JOB_WINDOWS_MISSED), RATE_WINDOW)})", "windows missed"),
    ),
    unit="eps",
)
LATE_RATIO = Panel(
    "Part of the events that is late",
    "Against the job's own goal.",
    (
        Query(
            f"sum({rate(chosen(m.JOB_EVENTS_LATE), RATE_WINDOW)}) / "
            f"sum({rate(chosen(m.JOB_EVENTS_READ), RATE_WINDOW)})",
            "late",
        ),
        Query(agg("max", PER_JOB, chosen(m.JOB_SLO_STRAGGLERS)), "goal of {{job}}"),
    ),
    unit="percentunit",
)
LATENESS = Panel(
    "What a longer delay would have saved",
    "Of the stragglers in the chosen time, the part that a delay longer by so many seconds would have kept on time.",
    (
        Query(
            f"{agg('sum', 'le', increase(chosen(m.JOB_EVENT_LATENESS, '_bucket'), RANGE_WINDOW))} "
            f"/ on () group_left () sum({increase(chosen(m.JOB_EVENT_LATENESS, '_count'), RANGE_WINDOW)})",
            "{{le}} s",
            instant=True,
        ),
    ),
    unit="percentunit",
    kind="bars",
)
MALFORMED = Panel(
    "Malformed events",
    "Records that could not be read as events, by topic and reason.",
    (Query(agg("sum", "topic, reason", rate(chosen(m.JOB_EVENTS_MALFORMED), RATE_WINDOW)), "{{topic}}: {{reason}}"),),
    unit="eps",
    size="half",
)
FUTURE = Panel(
    "Events from the future",
    "A producer's clock runs ahead. The partition leads to the producer.",
    (
        Query(
            f"topk(10, {agg('sum', 'topic, partition', rate(chosen(m.JOB_EVENTS_FUTURE), RATE_WINDOW))})",
            "{{topic}} {{partition}}",
        ),
    ),
    unit="eps",
    size="half",
)

STATE_ROWS = Panel(
    "State in rows",
    "Open windows and sessions that the job keeps.",
    (Query(agg("sum", PER_JOB, chosen(m.JOB_STATE_ROWS)), "{{job}}"),),
)
STATE_BYTES = Panel(
    "State in bytes",
    "Size of what the job keeps.",
    (Query(agg("sum", PER_JOB, chosen(m.JOB_STATE_BYTES)), "{{job}}"),),
    unit="bytes",
)
CHECKPOINT = Panel(
    "Failed checkpoint writes",
    "Writes to the checkpoint or the ledger that failed, in the chosen time.",
    (Query(agg("sum", PER_JOB, increase(chosen(m.JOB_CHECKPOINT_FAILURES), RANGE_WINDOW)), "{{job}}"),),
)
RESTARTS = Panel(
    "Restarts by cause",
    "Restarts of the driver since the operator counts.",
    (Query(agg("sum", "cause", chosen(m.JOB_RESTARTS)), "{{cause}}"),),
)
PHASE = Panel(
    "Phase",
    "What the operator says about the job; suspended and upgrading jobs raise no alert.",
    (
        Query(f"{agg('max', 'phase', chosen(m.JOB_PHASE))} == 1", "{{phase}}"),
        Query(f"{agg('max', PER_JOB, chosen(m.JOB_SUSPENDED))} == 1", "suspended"),
        Query(f"{agg('max', PER_JOB, chosen(m.JOB_UPGRADING))} == 1", "upgrading"),
    ),
    kind="states",
)
REMEDIATIONS = Panel(
    "What alerts led to",
    "Actions by the operator, and those it only advised.",
    (Query(agg("sum", "action, mode", chosen(m.JOB_REMEDIATIONS)), "{{action}} ({{mode}})"),),
)
