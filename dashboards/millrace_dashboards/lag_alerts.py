"""Alerts on lag: behind, over the goal, about to lose data, data lost, no progress. All from the observer's figures."""

from millrace import metrics as m
from millrace_dashboards import job_board as board
from millrace_dashboards.alerts import JOB, Alert
from millrace_dashboards.promql import PER_JOB, PER_TOPIC, Pace, agg, any_of, awake, increase, rate, seen, select

LOSS_HORIZON_SECONDS = 3600  # an hour is enough to raise a retention by hand
STILL_SECONDS = 300
NOT_COMING_NEARER = any_of(("falling-behind", "stalled", "losing-data"))


def alerts(pace: Pace) -> tuple[Alert, ...]:
    return (
        _falling_behind(),
        _lag_over_slo(),
        _data_loss_ahead(),
        _data_lost(pace),
        _not_progressing(pace),
    )


def _falling_behind() -> Alert:
    verdict = agg("max", PER_JOB, select(m.JOB_VERDICT, verdict="falling-behind"))
    return Alert(
        name="StreamJobFallingBehind",
        severity="warning",
        labels=PER_JOB,
        expr=awake(seen(f"{verdict} == 1")),
        hold_seconds=600,
        summary=f"{JOB} is falling behind.",
        description="New records come faster than the job does them. If that goes on, its lag only grows.",
        board=board.BOARD,
        panel=board.LAG_RECORDS,
    )


def _lag_over_slo() -> Alert:
    lag = agg("max", PER_JOB, select(m.JOB_LAG_SECONDS))
    goal = agg("max", PER_JOB, select(m.JOB_SLO_LAG))
    return Alert(
        name="StreamJobLagOverSlo",
        severity="critical",
        labels=PER_JOB,
        expr=awake(seen(f"{lag} > on ({PER_JOB}) {goal}")),
        hold_seconds=300,
        summary=f"{JOB} is {{{{ $value | humanizeDuration }}}} behind, more than its goal.",
        description="The oldest record that the job has not done yet is older than slo.lagSeconds in its spec allows.",
        board=board.BOARD,
        panel=board.LAG_SECONDS,
    )


def _data_loss_ahead() -> Alert:
    margin = agg("min", PER_TOPIC, select(m.JOB_RETENTION_MARGIN))
    stuck = f"{agg('max', PER_JOB, select(m.JOB_VERDICT, verdict=NOT_COMING_NEARER))} == 1"
    # A short retention alone is no danger: a job that keeps up lives with it. Both must hold.
    return Alert(
        name="StreamJobDataLossAhead",
        severity="critical",
        labels=PER_TOPIC,
        expr=awake(seen(f"{margin} < {LOSS_HORIZON_SECONDS}\nand on ({PER_JOB}) ({stuck})")),
        hold_seconds=60,
        summary=f"{JOB} will lose records of {{{{ $labels.topic }}}} in {{{{ $value | humanizeDuration }}}}.",
        description="Retention is about to delete records that the job has not done yet, and it does not catch up.",
        board=board.BOARD,
        panel=board.MARGIN,
    )


def _data_lost(pace: Pace) -> Alert:
    new = agg("sum", PER_TOPIC, increase(select(m.JOB_RECORDS_LOST), pace.span(3600)))
    known = agg("sum", PER_TOPIC, select(m.JOB_RECORDS_LOST))
    still = f"{agg('max', PER_JOB, select(m.JOB_VERDICT, verdict='losing-data'))} == 1"
    # A series that begins above zero has no increase: what an observer finds lost as it starts, its verdict tells.
    return Alert(
        name="StreamJobDataLost",
        severity="critical",
        labels=PER_TOPIC,
        expr=awake(f"({new} > 0\nor {known} > 0 and on ({PER_JOB}) ({still}))"),
        hold_seconds=0,
        summary=f"{JOB} lost about {{{{ $value | humanize }}}} records of {{{{ $labels.topic }}}}.",
        description=f"Within {pace.span(3600)} retention deleted records before the job had read them. They are gone.",
        board=board.BOARD,
        panel=board.LOST,
    )


def _not_progressing(pace: Pace) -> Alert:
    still = f"time() - {agg('max', PER_JOB, select(m.JOB_LAST_PROGRESS))}"
    total, count = (
        agg("sum", PER_JOB, rate(select(m.JOB_BATCH_DURATION, part), pace.span(3600))) for part in ("_sum", "_count")
    )
    # A job whose batches usually take longer than the limit is given three of them.
    usual = f"{still} < 3 * {total} / {count}"
    return Alert(
        name="StreamJobNotProgressing",
        severity="critical",
        labels=PER_JOB,
        expr=awake(seen(f"{still} > {pace.seconds(STILL_SECONDS)}\nunless on ({PER_JOB}) ({usual})")),
        hold_seconds=60,
        summary=f"{JOB} has not moved for {{{{ $value | humanizeDuration }}}}.",
        description="There are records to read, and the job's position does not move: it hangs, or it is not there.",
        board=board.BOARD,
        panel=board.PROGRESS,
    )
