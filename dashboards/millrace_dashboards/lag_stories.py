"""The promtool stories of the alerts on lag."""

from millrace import metrics as m
from millrace_dashboards.stories import JOB, OBSERVED, Quiet, Series, Story, instead, series

PAGEVIEWS = {"topic": "pageviews"}
NEVER = " ".join(["+Inf"] * 90)  # promtool cannot repeat an infinity


def _verdict(verdict: str, values: str) -> Series:
    return series(m.JOB_VERDICT, values, verdict=verdict)


FALLING_BEHIND = Story(
    alert="StreamJobFallingBehind",
    series=(_verdict("falling-behind", "0x5 1x20 0x20"), _verdict("ok", "1x5 0x20 1x20"), OBSERVED),
    before=15,
    fires=17,
    resolved=28,
    labels=JOB,
    summary="shop/views is falling behind.",
    description="New records come faster than the job does them. If that goes on, its lag only grows.",
    quiet=(
        Quiet("it catches up", (_verdict("falling-behind", "0x40"), _verdict("catching-up", "1x40"), OBSERVED), 30),
        Quiet("a burst that is over soon", (_verdict("falling-behind", "0x5 1x5 0x30"), OBSERVED), 17),
    ),
)

_LAG = (
    series(m.JOB_LAG_SECONDS, "5x5 90x10 5x20", partition="0", **PAGEVIEWS),
    series(m.JOB_LAG_SECONDS, "5x40", partition="1", **PAGEVIEWS),
    series(m.JOB_SLO_LAG, "60x40"),
    OBSERVED,
)
LAG_OVER_SLO = Story(
    alert="StreamJobLagOverSlo",
    series=_LAG,
    before=10,
    fires=12,
    resolved=18,
    labels=JOB,
    summary="shop/views is 1m 30s behind, more than its goal.",
    description="The oldest record that the job has not done yet is older than slo.lagSeconds in its spec allows.",
    quiet=(
        Quiet("the goal is wider", instead(_LAG, m.JOB_SLO_LAG, "120x40"), 12),
        Quiet("the job has no goal", tuple(one for one in _LAG if one.metric != m.JOB_SLO_LAG), 12),
    ),
)

_MARGIN = (
    series(m.JOB_RETENTION_MARGIN, "7200-60x70 90000x10", partition="0", **PAGEVIEWS),
    series(m.JOB_RETENTION_MARGIN, NEVER, partition="1", **PAGEVIEWS),
    _verdict("stalled", "1x90"),
    OBSERVED,
)
DATA_LOSS_AHEAD = Story(
    alert="StreamJobDataLossAhead",
    series=_MARGIN,
    before=60,
    fires=65,
    resolved=72,
    labels=JOB | PAGEVIEWS,
    summary="shop/views will lose records of pageviews in 55m 0s.",
    description="Retention is about to delete records that the job has not done yet, and it does not catch up.",
    quiet=(
        Quiet("the job keeps up with a short retention", instead(_MARGIN, m.JOB_VERDICT, "0x90"), 65),
        Quiet("nothing is ever deleted", instead(_MARGIN, m.JOB_RETENTION_MARGIN, NEVER), 65),
    ),
)

_LOST = (
    series(m.JOB_RECORDS_LOST, "0x10 50x100", partition="0", **PAGEVIEWS),
    series(m.JOB_RECORDS_LOST, "0x110", partition="1", **PAGEVIEWS),
)
DATA_LOST = Story(
    alert="StreamJobDataLost",
    series=_LOST,
    before=10,
    fires=70,
    resolved=75,
    labels=JOB | PAGEVIEWS,
    summary="shop/views lost about 50 records of pageviews.",
    description="Within 1h retention deleted records before the job had read them. They are gone.",
    quiet=(
        Quiet("what was lost long ago is known", instead(_LOST, m.JOB_RECORDS_LOST, "50x110"), 40),
        Quiet("the observer started again and counts from zero", instead(_LOST, m.JOB_RECORDS_LOST, "50x60 0x50"), 65),
    ),
)

_STILL = (series(m.JOB_LAST_PROGRESS, "0+60x10 600x10 1260+60x20"), OBSERVED)
_SLOW = (
    series(m.JOB_BATCH_DURATION, "0+60x60", suffix="_sum"),
    series(m.JOB_BATCH_DURATION, "0+0.2x60", suffix="_count"),
)
NOT_PROGRESSING = Story(
    alert="StreamJobNotProgressing",
    series=_STILL,
    before=16,
    fires=18,
    resolved=22,
    labels=JOB,
    summary="shop/views has not moved for 8m 0s.",
    description="There are records to read, and the job's position does not move: it hangs, or it is not there.",
    quiet=(
        Quiet("there is nothing to read", instead(_STILL, m.JOB_LAST_PROGRESS, "0+60x40"), 18),
        Quiet("its batches always take five minutes", (*_STILL, *_SLOW), 18),
    ),
)

FOUND_LOST = Story(
    alert=DATA_LOST.alert,
    series=(
        series(m.JOB_RECORDS_LOST, "_x5 50x40", partition="0", **PAGEVIEWS),
        _verdict("losing-data", "_x5 1x10 0x30"),
    ),
    fires=8,
    resolved=20,
    labels=DATA_LOST.labels,
    summary=DATA_LOST.summary,
    description=DATA_LOST.description,
)

STORIES = (FALLING_BEHIND, LAG_OVER_SLO, DATA_LOSS_AHEAD, DATA_LOST, FOUND_LOST, NOT_PROGRESSING)
