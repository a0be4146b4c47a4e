"""How a job runs: trigger, goals, checkpoint, sizes, restarts, upgrades, remedies. Nothing about what it computes."""

from typing import Literal

from millrace.resources.fields import Model, Rule, declared
from millrace.resources.types import ByteSize, Cpu, DnsName, ImageName, PositiveDuration, Uri


class Trigger(Model):
    """When a batch starts."""

    interval: PositiveDuration = declared(
        "Shortest time (duration) from the start of a batch to the start of the next.", change="restart", default="1s"
    )


class Slo(Model):
    """What the job promises; alerts compare it with what was measured."""

    lag_seconds: float | None = declared(
        "The oldest unread record may be so old (seconds).", change="live", default=None, gt=0, le=31_536_000
    )
    straggler_ratio: float | None = declared(
        "So large a part of the events may be late (0 to 1).", change="live", default=None, ge=0, le=1
    )


class VolumeClaim(Model):
    """A volume that driver and executors share, so it must be ReadWriteMany."""

    size: ByteSize = declared(
        "Size of the volume (bytes). It can grow, not shrink: a smaller one is a new volume.",
        change="new-state",
        eased="it grows",
        example="10Gi",
    )
    storage_class: DnsName | None = declared(
        "StorageClass of the volume; it must offer ReadWriteMany. Default: the cluster's own.",
        change="new-state",
        default=None,
    )

    server_rules = (
        {
            "rule": "quantity(string(self.size)).compareTo(quantity(string(oldSelf.size))) >= 0",
            "message": "cannot shrink: a volume only grows; make a new job for a smaller one",
            "fieldPath": ".size",
        },
    )


class Checkpoint(Model):
    """Where the job keeps its state and position: at most one of volumeClaim and uri."""

    volume_claim: VolumeClaim | None = declared("A volume made for this job.", change="new-state", default=None)
    uri: Uri | None = declared("A folder that driver and executors can reach.", change="new-state", default=None)
    deletion_policy: Literal["Retain", "Delete"] = declared(
        "What happens to the volume when the job is deleted: Retain keeps state and position, so that a job of the "
        "same name goes on from there; Delete throws them away. What is under `uri` is never deleted.",
        change="live",
        default="Retain",
    )

    rules = (
        Rule(
            at="uri",
            says="must not stand beside volumeClaim: the checkpoint is in one place; take one of them out",
            holds=lambda c: c.volume_claim is None or c.uri is None,
            cel="!has(self.volumeClaim) || !has(self.uri)",
        ),
    )


class Driver(Model):
    """The one process that plans batches."""

    cpu: Cpu = declared("CPU of the driver (cores).", change="restart", default="1")
    memory: ByteSize = declared("Memory of the driver (bytes).", change="restart", default="1Gi")
    image: ImageName | None = declared(
        "Image of driver and executors, where the job brings code of its own. Default: the platform's job image.",
        change="restart",
        default=None,
    )


class Executors(Model):
    """The processes that do the work."""

    instances: int = declared("How many executors.", change="live", default=1, ge=1, le=1000)
    cpu: Cpu = declared("CPU of each executor (cores).", change="restart", default="1")
    memory: ByteSize = declared("Memory of each executor (bytes).", change="restart", default="1Gi")


class Restart(Model):
    """What happens when the job ends by itself."""

    policy: Literal["Always", "OnFailure", "Never"] = declared(
        "When to start the job again after it ended.", change="live", default="Always"
    )
    backoff: PositiveDuration = declared(
        "Wait (duration) before the first restart; it doubles with each further one.", change="live", default="10s"
    )
    max_backoff: PositiveDuration = declared("Longest wait (duration) before a restart.", change="live", default="5m")
    stable_after: PositiveDuration = declared(
        "After a run of so long (duration) without failure, earlier failures are forgotten: the next wait is `backoff` "
        "again.",
        change="live",
        default="10m",
    )
    max_failures: int = declared(
        "So many failures of the job's own making in a row (its code raised, its spec does not fit), and it stays "
        "stopped and says why, until it is edited or restarted by hand. Failures of brokers, nodes and databases do "
        "not count: after those it is started again for ever.",
        change="live",
        default=5,
        ge=1,
        le=1000,
    )
    stalled_after: PositiveDuration = declared(
        "A job whose batches did not advance for so long (duration) though there is something to read counts as hung: "
        "it is Stalled, and started again as `policy` says.",
        change="live",
        default="5m",
    )

    rules = (
        Rule(
            at="maxBackoff",
            says="must not be shorter than backoff",
            holds=lambda r: r.max_backoff >= r.backoff,
            cel="self.backoff.contains('d') || self.maxBackoff.contains('d') "
            "|| duration(self.backoff) <= duration(self.maxBackoff)",
        ),
    )


class Upgrade(Model):
    """How a new version of the job takes over."""

    mode: Literal["resume", "restart-empty"] = declared(
        "resume goes on from the checkpoint and refuses a change that does not fit it; restart-empty starts such a "
        "change with new state, from startFrom.",
        change="live",
        default="resume",
    )


class ExtendRetention(Model):
    """Keep a topic's records for longer while the job is about to lose some that it has not read."""

    max: PositiveDuration = declared(
        "The topic's retention is raised to at most this (duration), and put back when the job has caught up.",
        change="live",
        example="14d",
    )


class ScaleOut(Model):
    """Add executors while the job falls behind."""

    max_instances: int = declared(
        "At most so many executors; `executors.instances` is what it goes back to.",
        change="live",
        example="8",
        ge=1,
        le=1000,
    )


class Remediation(Model):
    """What the platform may do by itself when an alert fires."""

    mode: Literal["advise", "act"] = declared(
        "advise only says, as an event, what it would do; act does it.", change="live", default="advise"
    )
    extend_retention: ExtendRetention | None = declared(
        "Allows to hold the retention of the topics that the job reads, before unread records are deleted.",
        change="live",
        default=None,
    )
    scale_out: ScaleOut | None = declared(
        "Allows to add executors while the job is falling behind.", change="live", default=None
    )
