"""What the observer watches: the few facts of a StreamJob that lag is about. Parsed once, frozen after."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

from millrace import naming
from millrace.errors import UserError
from millrace.lag import Start
from millrace.resources import StreamJob
from millrace.resources.metadata import Resource
from millrace.resources.reading import read_files


@dataclass(frozen=True)
class Door:
    """Brokers by their address, and the Secret with which they are asked."""

    address: str
    namespace: str = ""
    secret: str = ""

    def __str__(self) -> str:
        """How it is called in metrics and messages: two Secrets for one address are two watches."""
        return f"{self.address} as {self.namespace}/{self.secret}" if self.secret else self.address


@dataclass(frozen=True)
class Subject:
    """One watched job. `cluster` is the address of its brokers; `topics` says where it begins in each."""

    namespace: str
    job: str
    cluster: str
    topics: Mapping[str, Start] = field(default_factory=lambda: MappingProxyType({}))
    suspended: bool = False
    trigger_seconds: float = 1.0
    stragglers: str = "drop"
    slo_lag_seconds: float | None = None
    slo_straggler_ratio: float | None = None
    secret: str = ""
    """Name of the Secret with which the brokers are asked, in the job's namespace; empty where they ask for none."""

    @property
    def door(self) -> Door:
        return Door(self.cluster, self.namespace, self.secret) if self.secret else Door(self.cluster)

    @property
    def group(self) -> str:
        return naming.consumer_group(self.namespace, self.job)

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.job


def subject(job: StreamJob, cluster: str) -> Subject:
    """The job as the observer sees it; `cluster` is taken where the spec names no brokers."""
    spec = job.spec
    return Subject(
        namespace=job.metadata.namespace,
        job=job.metadata.name,
        cluster=spec.kafka.bootstrap_servers or cluster,
        topics=MappingProxyType({source.topic: _start(source.start_from) for source in spec.sources}),
        suspended=spec.suspend,
        trigger_seconds=spec.trigger.interval.total_seconds(),
        stragglers=spec.stragglers.policy,
        slo_lag_seconds=spec.slo.lag_seconds,
        slo_straggler_ratio=spec.slo.straggler_ratio,
        secret=spec.kafka.auth_secret.name if spec.kafka.auth_secret is not None else "",
    )


def subjects(resources: Iterable[Resource], cluster: str, only_cluster: bool = False) -> tuple[Subject, ...]:
    """Every StreamJob among the resources. With `only_cluster`, whatever brokers the specs name are not asked."""
    found = [subject(one, cluster) for one in resources if isinstance(one, StreamJob)]
    return tuple(_moved(one, cluster) if only_cluster else one for one in found)


def read_path(path: Path, cluster: str, only_cluster: bool = False) -> tuple[Subject, ...]:
    """The jobs of a spec file, or of every YAML file in a folder."""
    if not path.exists():
        raise UserError(f"There is no file or folder {path}: give the spec files of the jobs to watch.")
    files = sorted((*path.glob("*.yaml"), *path.glob("*.yml"))) if path.is_dir() else [path]
    return subjects(read_files(files), cluster, only_cluster)


def _start(start: str | datetime) -> Start:
    if isinstance(start, datetime):
        return start.timestamp()
    return "latest" if start == "latest" else "earliest"


def _moved(one: Subject, cluster: str) -> Subject:
    """To brokers that the caller names, who asks them in his own way."""
    return replace(one, cluster=cluster, secret="")
