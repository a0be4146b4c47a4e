"""The promtool stories of the alerts on how a job runs."""

from millrace import metrics as m
from millrace_dashboards.stories import JOB, Quiet, Story, instead, series

_RESTARTS = (
    series(m.JOB_RESTARTS, "0x5 1 1 2 2 3 3 4x60", cause="OutOfMemory"),
    series(m.JOB_RESTARTS, "0x8 1x60", cause="Evicted"),
)
CRASH_LOOPING = Story(
    alert="StreamJobCrashLooping",
    series=_RESTARTS,
    before=6,
    fires=13,
    resolved=35,
    labels=JOB,
    summary="shop/views keeps restarting.",
    description="Its driver ended more than twice within 20m. The most frequent cause is OutOfMemory.",
    quiet=(
        Quiet("it ended once", (series(m.JOB_RESTARTS, "0x5 1x60", cause="OutOfMemory"),), 13),
        Quiet("it ends once an hour", (series(m.JOB_RESTARTS, "0x59 1x59 2x59 3x59", cause="Evicted"),), 200),
    ),
)

_SINK = (series(m.JOB_SINK_UP, "1x5 0x10 1x20", sink="results"), series(m.JOB_SINK_UP, "1x40", sink="archive"))
SINK_UNAVAILABLE = Story(
    alert="StreamJobSinkUnavailable",
    series=_SINK,
    before=7,
    fires=9,
    resolved=18,
    labels=JOB | {"sink": "results"},
    summary="shop/views cannot write to its sink results.",
    description="No write has succeeded since the last one failed. The job waits, its lag grows, nothing is lost.",
    quiet=(Quiet("one write failed and the next succeeded", instead(_SINK, m.JOB_SINK_UP, "1x5 0 1x30"), 9),),
)

_CHECKPOINT = (series(m.JOB_CHECKPOINT_FAILURES, "0x5 1+1x5 6x60"),)
CHECKPOINT_FAILING = Story(
    alert="StreamJobCheckpointFailing",
    series=_CHECKPOINT,
    before=6,
    fires=10,
    resolved=24,
    labels=JOB,
    summary="shop/views cannot write its checkpoint.",
    description="Writes to the checkpoint or the ledger failed lately. Without them no batch ends.",
    quiet=(
        Quiet("failures of long ago", instead(_CHECKPOINT, m.JOB_CHECKPOINT_FAILURES, "6x60"), 30),
        Quiet("the driver started again", instead(_CHECKPOINT, m.JOB_CHECKPOINT_FAILURES, "6x20 0x20"), 25),
    ),
)

STORIES = (CRASH_LOOPING, SINK_UNAVAILABLE, CHECKPOINT_FAILING)
