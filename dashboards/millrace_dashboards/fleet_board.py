"""The board of all jobs: which of them needs somebody, at one glance."""

from millrace import metrics as m
from millrace_dashboards.boards import RANGE_WINDOW, RATE_WINDOW, Board, Panel, Query, Row, Variable, chosen
from millrace_dashboards.promql import PER_JOB, agg, any_of, increase, rate

NAME = "{{namespace}}/{{job}}"
NOT_WELL = any_of(verdict for verdict in m.VERDICTS if verdict not in ("ok", "catching-up"))

VERDICTS = Panel(
    "Jobs by verdict",
    "How many jobs are in which state of lag.",
    (Query(agg("sum", "verdict", chosen(m.JOB_VERDICT)), "{{verdict}}", instant=True),),
    kind="number",
    size="half",
)
ALERTS = Panel(
    "Firing alerts",
    "Alerts of this platform that fire now; each one's page says what to do.",
    (
        Query(
            'sum by (alertname, severity, namespace, job) (ALERTS{alertstate="firing", alertname=~"Stream.+|Topic.+"})',
            "{{alertname}} {{namespace}}/{{job}}",
            instant=True,
        ),
    ),
    kind="table",
    size="half",
)
NEEDS_CARE = Panel(
    "Jobs that are not well",
    "Every job whose verdict is neither ok nor catching up.",
    (
        Query(
            f"{agg('max', 'namespace, job, verdict', chosen(m.JOB_VERDICT, verdict=NOT_WELL))} == 1",
            NAME + " {{verdict}}",
            instant=True,
        ),
    ),
    kind="table",
    size="half",
)
LAG = Panel(
    "Lag in seconds",
    "Age of the oldest record not done yet, per job: the ten that are furthest behind.",
    (Query(f"topk(10, {agg('max', PER_JOB, chosen(m.JOB_LAG_SECONDS))})", NAME),),
    unit="s",
    size="half",
)
LAG_OF_GOAL = Panel(
    "Lag as part of the goal",
    "Over 100 % breaks the promise that the job's spec makes.",
    (
        Query(
            f"topk(10, {agg('max', PER_JOB, chosen(m.JOB_LAG_SECONDS))} / "
            f"{agg('max', PER_JOB, chosen(m.JOB_SLO_LAG))})",
            NAME,
        ),
    ),
    unit="percentunit",
)
MARGIN = Panel(
    "Time until data is lost",
    "The ten jobs whose oldest unread record is nearest to deletion.",
    (Query(f"bottomk(10, {agg('min', PER_JOB, chosen(m.JOB_RETENTION_MARGIN))})", NAME),),
    unit="s",
)
EVENTS = Panel(
    "Events read",
    "Per job.",
    (Query(f"topk(10, {agg('sum', PER_JOB, rate(chosen(m.JOB_EVENTS_READ), RATE_WINDOW))})", NAME),),
    unit="eps",
)
LATE = Panel(
    "Part of the events that is late",
    "The ten jobs with the most stragglers for their size.",
    (
        Query(
            f"topk(10, {agg('sum', PER_JOB, rate(chosen(m.JOB_EVENTS_LATE), RATE_WINDOW))} / "
            f"{agg('sum', PER_JOB, rate(chosen(m.JOB_EVENTS_READ), RATE_WINDOW))})",
            NAME,
        ),
    ),
    unit="percentunit",
)
DROPPED = Panel(
    "Events dropped as stragglers",
    "In the chosen time.",
    (
        Query(
            f"topk(10, {agg('sum', PER_JOB, increase(chosen(m.JOB_EVENTS_LATE, outcome='dropped'), RANGE_WINDOW))})",
            NAME,
        ),
    ),
)
RESTARTS = Panel(
    "Restarts",
    "Of the driver, in the chosen time.",
    (Query(f"topk(10, {agg('sum', PER_JOB, increase(chosen(m.JOB_RESTARTS), RANGE_WINDOW))})", NAME),),
)

BOARD = Board(
    uid="millrace-fleet",
    title="Millrace: all jobs",
    description="Every job at one glance: verdicts, alerts, lag, stragglers, restarts.",
    variables=(Variable("namespace", m.JOB_INFO), Variable("job", m.JOB_INFO, within="namespace")),
    rows=(
        Row("Now", (VERDICTS, ALERTS)),
        Row("Lag", (NEEDS_CARE, LAG, LAG_OF_GOAL, MARGIN, EVENTS)),
        Row("Stragglers and restarts", (LATE, DROPPED, RESTARTS)),
    ),
)
