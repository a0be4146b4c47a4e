"""The promtool stories of the alerts on events: late, from the future, malformed."""

from millrace import metrics as m
from millrace_dashboards.stories import JOB, Quiet, Series, Story, instead, series

PAGEVIEWS = {"topic": "pageviews"}


def _read(values: str) -> Series:
    return series(m.JOB_EVENTS_READ, values, **PAGEVIEWS)


def _late(values: str, outcome: str = "dropped") -> Series:
    return series(m.JOB_EVENTS_LATE, values, outcome=outcome, **PAGEVIEWS)


# 1000 events a minute; from minute 20 on 30 of them late for half an hour, then none.
_OVER = (
    _read("0+1000x120"),
    _late("0x20 0+30x30 900x60"),
    _late("0x120", "aside"),
    series(m.JOB_SLO_STRAGGLERS, "0.01x120"),
)
OVER_SLO = Story(
    alert="StreamJobStragglersOverSlo",
    series=_OVER,
    before=24,
    fires=45,
    resolved=66,
    labels=JOB,
    summary="3% of the events of shop/views are late, more than its goal.",
    description="More events come after their window could have closed than slo.stragglerRatio in the spec allows.",
    quiet=(
        Quiet("the goal is wider", instead(_OVER, m.JOB_SLO_STRAGGLERS, "0.05x120"), 45),
        Quiet("the job has no goal", tuple(one for one in _OVER if one.metric != m.JOB_SLO_STRAGGLERS), 45),
        Quiet("a job that reads nothing", instead(_OVER, m.JOB_EVENTS_READ, "1000x120"), 100),
    ),
)

# Three hours with 2 late events in 1000, then half an hour with 20.
_SPIKE = (_read("0+1000x240"), _late("0+2x180 380+20x30 960+2x30"))
_BUSY = (_read("0+1000x180 190000+10000x60"), _late("0+2x180 380+20x60"))
SPIKING = Story(
    alert="StreamJobStragglersSpiking",
    series=_SPIKE,
    before=181,
    fires=205,
    resolved=230,
    labels=JOB,
    summary="shop/views has many more late events than it is used to: 2%.",
    description="The part of late events is more than 4 times that of the 1d before. A producer or a link is slow.",
    quiet=(
        Quiet("it always has so many", (_read("0+1000x240"), _late("0+20x240")), 205),
        Quiet("a new job has no past to compare with", (_read("0+1000x40"), _late("0x20 0+20x20")), 35),
        Quiet("a handful of events", (_read("0+10x240"), _late("0x180 1x60")), 185),
        Quiet("ten times the traffic, the same part of it late", _BUSY, 205),
    ),
)

_AHEAD = (
    series(m.JOB_EVENTS_FUTURE, "0x10 0+1x5 5x60", partition="0", **PAGEVIEWS),
    series(m.JOB_EVENTS_FUTURE, "0x10 0+9x5 45x60", partition="3", **PAGEVIEWS),
)
CLOCK_AHEAD = Story(
    alert="StreamJobClockAhead",
    series=_AHEAD,
    before=10,
    fires=15,
    resolved=30,
    labels=JOB | PAGEVIEWS,
    summary="A producer of pageviews has a clock that runs ahead; shop/views sets its events aside.",
    description="Events are further ahead than maxFutureSkew allows, most of them in partition 3.",
    quiet=(
        Quiet("no event is from the future", instead(_AHEAD, m.JOB_EVENTS_FUTURE, "0x60"), 15),
        Quiet("the driver was away and counts on", instead(_AHEAD, m.JOB_EVENTS_FUTURE, "5x20 _x3 5x30"), 26),
    ),
)

_BAD = (
    _read("0+1000x90"),
    series(m.JOB_EVENTS_MALFORMED, "0x10 0+50x20 1000x60", reason="unparsable", **PAGEVIEWS),
    series(m.JOB_EVENTS_MALFORMED, "0x90", reason="no-event-time", **PAGEVIEWS),
)
_SILENT = instead(instead(_BAD, m.JOB_EVENTS_READ, "9x90"), m.JOB_EVENTS_MALFORMED, "9x90")
MALFORMED = Story(
    alert="StreamJobMalformedEvents",
    series=_BAD,
    before=12,
    fires=25,
    resolved=45,
    labels=JOB | PAGEVIEWS,
    summary="5% of pageviews cannot be read by shop/views.",
    description="These records do not count in any result. The most frequent reason is unparsable.",
    quiet=(
        Quiet("one in ten thousand", instead(_BAD, m.JOB_EVENTS_MALFORMED, "0+0.1x90"), 60),
        Quiet("the topic is silent", _SILENT, 25),
    ),
)

STORIES = (OVER_SLO, SPIKING, CLOCK_AHEAD, MALFORMED)
