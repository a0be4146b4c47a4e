"""The board of one job: how far behind it is, what it does, what comes too late, what went wrong."""

from millrace import metrics as m
from millrace_dashboards.boards import RANGE_WINDOW, RATE_WINDOW, Board, Panel, Query, Row, Variable, chosen
from millrace_dashboards.promql import PER_JOB, agg, increase, rate
from millrace_dashboards.straggler_panels import (
    CHECKPOINT,
    FUTURE,
    LATE,
    LATE_RATIO,
    LATENESS,
    MALFORMED,
    PHASE,
    REMEDIATIONS,
    RESTARTS,
    STATE_BYTES,
    STATE_ROWS,
)

VERDICT = Panel(
    "Verdict",
    "What the lag observer makes of the job's lag, without thresholds.",
    (Query(f"{agg('max', 'verdict', chosen(m.JOB_VERDICT))} == 1", "{{verdict}}", instant=True),),
    kind="number",
    size="small",
)
LAG_NOW = Panel(
    "Lag now",
    "Age of the oldest record that the job has not done yet, over all partitions.",
    (Query(f"max({chosen(m.JOB_LAG_SECONDS)})", "lag", instant=True),),
    unit="s",
    kind="number",
    size="small",
)
CATCH_UP = Panel(
    "Caught up in",
    "Predicted from the last minutes; infinite when the job does not come nearer.",
    (Query(f"max({chosen(m.JOB_CATCH_UP)})", "caught up in", instant=True),),
    unit="s",
    kind="number",
    size="small",
)
LATE_NOW = Panel(
    "Late events",
    "Part of the events in the chosen time that came too late for a window.",
    (
        Query(
            f"sum({increase(chosen(m.JOB_EVENTS_LATE), RANGE_WINDOW)}) / "
            f"sum({increase(chosen(m.JOB_EVENTS_READ), RANGE_WINDOW)})",
            "late",
            instant=True,
        ),
    ),
    unit="percentunit",
    kind="number",
    size="small",
)

LAG_SECONDS = Panel(
    "Lag in seconds",
    "Age of the oldest record not done yet, per partition, against the job's own goal. It comes from the broker.",
    (
        Query(f"topk(10, {agg('max', 'topic, partition', chosen(m.JOB_LAG_SECONDS))})", "{{topic}} {{partition}}"),
        Query(agg("max", PER_JOB, chosen(m.JOB_SLO_LAG)), "goal of {{job}}"),
    ),
    unit="s",
    size="half",
)
LAG_RECORDS = Panel(
    "Lag in records",
    "Records not done yet, per topic.",
    (Query(agg("sum", "topic", chosen(m.JOB_LAG_RECORDS)), "{{topic}}"),),
    size="half",
)
MARGIN = Panel(
    "Time until data is lost",
    "Time until retention may delete the oldest record that the job has not done yet. Zero means that data is lost.",
    (Query(agg("min", "topic", chosen(m.JOB_RETENTION_MARGIN)), "{{topic}}"),),
    unit="s",
)
LOST = Panel(
    "Records lost",
    "Records that retention deleted before the job read them, since the observer counts.",
    (Query(agg("sum", "topic", chosen(m.JOB_RECORDS_LOST)), "{{topic}}"),),
)
PROGRESS = Panel(
    "Since the last progress",
    "Time since the position last moved, or since there was last nothing to read.",
    (Query(f"time() - {agg('max', PER_JOB, chosen(m.JOB_LAST_PROGRESS))}", "{{job}}"),),
    unit="s",
)

EVENTS = Panel(
    "Events",
    "What was read, and what became of it: read = on time + late + malformed + from the future.",
    (
        Query(f"sum({rate(chosen(m.JOB_EVENTS_READ), RATE_WINDOW)})", "read"),
        Query(f"sum({rate(chosen(m.JOB_EVENTS_ON_TIME), RATE_WINDOW)})", "on time"),
        Query(f"sum({rate(chosen(m.JOB_EVENTS_LATE), RATE_WINDOW)})", "late"),
        Query(f"sum({rate(chosen(m.JOB_EVENTS_MALFORMED), RATE_WINDOW)})", "malformed"),
        Query(f"sum({rate(chosen(m.JOB_EVENTS_FUTURE), RATE_WINDOW)})", "from the future"),
    ),
    unit="eps",
)
RESULTS = Panel(
    "Results",
    "Records written, per sink.",
    (Query(agg("sum", "sink", rate(chosen(m.JOB_SINK_RECORDS), RATE_WINDOW)), "{{sink}}"),),
    unit="wps",
)
SINKS = Panel(
    "Sinks",
    "1 when the last write succeeded; failed writes per second beside it.",
    (
        Query(agg("min", "sink", chosen(m.JOB_SINK_UP)), "{{sink}} up"),
        Query(agg("sum", "sink", rate(chosen(m.JOB_SINK_FAILURES), RATE_WINDOW)), "{{sink}} failures/s"),
    ),
)
PHASES = Panel(
    "Batch time by phase",
    "Where an average batch spends its time.",
    (
        Query(
            f"{agg('sum', 'phase', rate(chosen(m.JOB_BATCH_PHASE), RATE_WINDOW))} / on () group_left () "
            f"sum({rate(chosen(m.JOB_BATCHES), RATE_WINDOW)})",
            "{{phase}}",
        ),
    ),
    unit="s",
    kind="stack",
)
BATCH_TIME = Panel(
    "Batch time",
    "Median and slowest hundredth of the batches.",
    tuple(
        Query(
            f"histogram_quantile({quantile}, "
            f"{agg('sum', 'le', rate(chosen(m.JOB_BATCH_DURATION, '_bucket'), RATE_WINDOW))})",
            name,
        )
        for quantile, name in ((0.5, "median"), (0.99, "99th percentile"))
    ),
    unit="s",
)
WATERMARK = Panel(
    "Watermark behind the clock",
    "How far event time is behind: windows are closed up to now minus this.",
    (
        Query(f"time() - {agg('min', PER_JOB, chosen(m.JOB_WATERMARK))}", "watermark of {{job}}"),
        Query(f"time() - {agg('max', PER_JOB, chosen(m.JOB_LAST_BATCH))}", "last batch of {{job}}"),
    ),
    unit="s",
)

BOARD = Board(
    uid="millrace-job",
    title="Millrace: one job",
    description="Lag, throughput, batches, stragglers, state and restarts of a job.",
    variables=(
        Variable("namespace", m.JOB_INFO, several=False),
        Variable("job", m.JOB_INFO, within="namespace", several=False),
    ),
    rows=(
        Row("Now", (VERDICT, LAG_NOW, CATCH_UP, LATE_NOW)),
        Row("Lag", (LAG_SECONDS, LAG_RECORDS, MARGIN, LOST, PROGRESS)),
        Row("Throughput and batches", (EVENTS, RESULTS, SINKS, PHASES, BATCH_TIME, WATERMARK)),
        Row("Stragglers", (LATE, LATE_RATIO, LATENESS, MALFORMED, FUTURE)),
        Row("State and restarts", (STATE_ROWS, STATE_BYTES, CHECKPOINT, RESTARTS, PHASE, REMEDIATIONS)),
    ),
)
