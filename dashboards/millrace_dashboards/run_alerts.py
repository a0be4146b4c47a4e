"""Alerts on how a job runs: it keeps ending, cannot write its results, cannot write its checkpoint."""

from millrace import metrics as m
from millrace_dashboards import job_board as board
from millrace_dashboards import straggler_panels as panels
from millrace_dashboards.alerts import JOB, Alert, worst
from millrace_dashboards.promql import PER_JOB, PER_SINK, Pace, agg, awake, increase, select

RESTARTS_SECONDS = 1200  # with the longest default wait of 5 m between restarts, still more than two


def alerts(pace: Pace) -> tuple[Alert, ...]:
    return (_crash_looping(pace), _sink_unavailable(), _checkpoint_failing(pace))


def _crash_looping(pace: Pace) -> Alert:
    window = pace.span(RESTARTS_SECONDS)
    cause = worst(m.JOB_RESTARTS, "cause", PER_JOB, window)
    return Alert(
        name="StreamJobCrashLooping",
        severity="critical",
        labels=PER_JOB,
        expr=awake(f"{agg('sum', PER_JOB, increase(select(m.JOB_RESTARTS), window))} > 2"),
        hold_seconds=0,
        summary=f"{JOB} keeps restarting.",
        description=f"Its driver ended more than twice within {window}. The most frequent cause is {cause}.",
        board=board.BOARD,
        panel=panels.RESTARTS,
    )


def _sink_unavailable() -> Alert:
    return Alert(
        name="StreamJobSinkUnavailable",
        severity="critical",
        labels=PER_SINK,
        expr=awake(f"{agg('min', PER_SINK, select(m.JOB_SINK_UP))} == 0"),
        hold_seconds=120,
        summary=f"{JOB} cannot write to its sink {{{{ $labels.sink }}}}.",
        description="No write has succeeded since the last one failed. The job waits, its lag grows, nothing is lost.",
        board=board.BOARD,
        panel=board.SINKS,
    )


def _checkpoint_failing(pace: Pace) -> Alert:
    failures = agg("sum", PER_JOB, increase(select(m.JOB_CHECKPOINT_FAILURES), pace.span(600)))
    return Alert(
        name="StreamJobCheckpointFailing",
        severity="critical",
        labels=PER_JOB,
        expr=awake(f"{failures} > 0"),
        hold_seconds=60,
        summary=f"{JOB} cannot write its checkpoint.",
        description="Writes to the checkpoint or the ledger failed lately. Without them no batch ends.",
        board=board.BOARD,
        panel=panels.CHECKPOINT,
    )
