"""Alerts on events: too many late, more late than this job knows, from the future, or not readable."""

from millrace import metrics as m
from millrace_dashboards import job_board as board
from millrace_dashboards import straggler_panels as panels
from millrace_dashboards.alerts import JOB, Alert, worst
from millrace_dashboards.promql import PER_JOB, PER_TOPIC, Pace, agg, awake, increase, rate, select

SPIKE = 4  # times the job's own ratio of the day before
SPIKE_FLOOR_EVENTS = 20  # fewer stragglers than this are chance
SPIKE_FLOOR_RATIO = 0.001  # a job without any history of stragglers must not page for one in a million
MALFORMED_RATIO = 0.001  # no field of the spec sets this one


def alerts(pace: Pace) -> tuple[Alert, ...]:
    return (_over_slo(pace), _spiking(pace), _clock_ahead(pace), _malformed(pace))


def _late_ratio(window: str, ago: str = "") -> str:
    late, read = (
        agg("sum", PER_JOB, rate(select(metric), window, ago)) for metric in (m.JOB_EVENTS_LATE, m.JOB_EVENTS_READ)
    )
    return f"{late} / {read}"


def _over_slo(pace: Pace) -> Alert:
    goal = agg("max", PER_JOB, select(m.JOB_SLO_STRAGGLERS))
    return Alert(
        name="StreamJobStragglersOverSlo",
        severity="warning",
        labels=PER_JOB,
        expr=awake(f"{_late_ratio(pace.span(900))} > on ({PER_JOB}) {goal}"),
        hold_seconds=300,
        summary=f"{{{{ $value | humanizePercentage }}}} of the events of {JOB} are late, more than its goal.",
        description="More events come after their window could have closed than slo.stragglerRatio in the spec allows.",
        board=board.BOARD,
        panel=panels.LATE_RATIO,
    )


def _spiking(pace: Pace) -> Alert:
    window = pace.span(600)
    now = _late_ratio(window)
    usual = _late_ratio(pace.span(86400), ago=window)
    enough = f"{agg('sum', PER_JOB, increase(select(m.JOB_EVENTS_LATE), window))} > {SPIKE_FLOOR_EVENTS}"
    history = f"{agg('sum', PER_JOB, rate(select(m.JOB_EVENTS_READ), window, ago=pace.span(3600)))} > 0"
    return Alert(
        name="StreamJobStragglersSpiking",
        severity="warning",
        labels=PER_JOB,
        expr=awake(
            f"{now} > on ({PER_JOB}) {SPIKE} * ({usual})\n"
            f"and on ({PER_JOB}) ({now} > {SPIKE_FLOOR_RATIO})\n"
            f"and on ({PER_JOB}) ({enough})\n"
            f"and on ({PER_JOB}) ({history})"
        ),
        hold_seconds=120,
        summary=f"{JOB} has many more late events than it is used to: {{{{ $value | humanizePercentage }}}}.",
        description=f"The part of late events is more than {SPIKE} times that of the {pace.span(86400)} before. "
        "A producer or a link is slow.",
        board=board.BOARD,
        panel=panels.LATE,
    )


def _clock_ahead(pace: Pace) -> Alert:
    window = pace.span(600)
    partition = worst(m.JOB_EVENTS_FUTURE, "partition", PER_TOPIC, window)
    return Alert(
        name="StreamJobClockAhead",
        severity="warning",
        labels=PER_TOPIC,
        expr=awake(f"{agg('sum', PER_TOPIC, increase(select(m.JOB_EVENTS_FUTURE), window))} > 0"),
        hold_seconds=0,
        summary=f"A producer of {{{{ $labels.topic }}}} has a clock that runs ahead; {JOB} sets its events aside.",
        description=f"Events are further ahead than maxFutureSkew allows, most of them in partition {partition}.",
        board=board.BOARD,
        panel=panels.FUTURE,
    )


def _malformed(pace: Pace) -> Alert:
    window = pace.span(600)
    bad = agg("sum", PER_TOPIC, rate(select(m.JOB_EVENTS_MALFORMED), window))
    read = agg("sum", PER_TOPIC, rate(select(m.JOB_EVENTS_READ), window))
    reason = worst(m.JOB_EVENTS_MALFORMED, "reason", PER_TOPIC, window)
    return Alert(
        name="StreamJobMalformedEvents",
        severity="warning",
        labels=PER_TOPIC,
        expr=awake(f"{bad} / {read} > {MALFORMED_RATIO}"),
        hold_seconds=120,
        summary=f"{{{{ $value | humanizePercentage }}}} of {{{{ $labels.topic }}}} cannot be read by {JOB}.",
        description=f"These records do not count in any result. The most frequent reason is {reason}.",
        board=board.BOARD,
        panel=panels.MALFORMED,
    )
