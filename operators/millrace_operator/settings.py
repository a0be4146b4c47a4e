"""The operator's settings: small groups, each value with its unit, its meaning and the reason for its default.

They are read once from the command line and passed down. Nothing here reads the environment.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from millrace_operator.version import VERSION


@dataclass(frozen=True)
class JobDefaults:
    """What a StreamJob gets where its spec is silent."""

    image: str = f"millrace/job:{VERSION}"
    """Image of driver and executors."""
    bootstrap_servers: str = "kafka:9092"
    """The platform's own Kafka cluster."""
    checkpoint_size: str = "1Gi"
    """Size of a checkpoint volume: state of most jobs is far below it."""
    checkpoint_class: str | None = None
    """StorageClass of a checkpoint volume (ReadWriteMany). None: the cluster's default."""
    pull_policy: str = "IfNotPresent"
    """Images carry their version, so a pull for each start would only cost time."""
    stop_seconds: int = 120
    """How long a driver may take to finish its batch when it is stopped, before it is killed."""


@dataclass(frozen=True)
class Patience:
    """How long things may take before they count as wrong."""

    start: timedelta = timedelta(minutes=3)
    """From the pod's start to the first batch: image, JVM, executors."""
    executors: timedelta = timedelta(seconds=60)
    """Executors may be fewer than declared for so long: a node is added, a pod moves."""


@dataclass(frozen=True)
class Pace:
    """How often the operator looks and writes, in seconds."""

    look: float = 10.0
    """Between two looks at a job that runs: its driver is asked for progress."""
    figures: float = 30.0
    """Shortest time between two status writes that only change figures, to spare the API server."""
    topics: float = 60.0
    """Between two looks at the topics of a Kafka cluster, which find drift."""
    coalesce: float = 0.2
    """Topic changes that come within this time go to the broker together."""
    resync: float = 300.0
    """Between two full lists, which find what a broken watch did not tell."""
    workers: int = 8
    """StreamJobs that are reconciled at the same time; more only queue at the API server."""


@dataclass(frozen=True)
class Election:
    """Leader election by a Lease, in seconds. A dead leader is replaced after `lease` plus `retry` at most."""

    name: str = "millrace-operator"
    lease: int = 12
    """A leader that did not renew for so long is dead."""
    renew: float = 3.0
    """Between two renewals: three may fail before the lease is lost."""
    deadline: float = 9.0
    """Without a successful renewal for so long the leader stops acting, before anyone else may start."""
    retry: float = 2.0
    """Between two looks of a candidate."""


@dataclass(frozen=True)
class Deadlines:
    """Upper bounds of single requests, in seconds: nothing waits for ever."""

    api: float = 15.0
    driver: float = 2.0
    """A driver that needs longer to say its status is busy; its group's position is looked at instead."""
    kafka: float = 10.0
    observer: float = 5.0


@dataclass(frozen=True)
class AlertsDoor:
    """Who may post alerts. Whoever may can make the operator act on a job, so nobody may without being told."""

    token_file: Path | None = None
    """A file with the bearer token; read for each request, so that a new token counts at once. None: no token."""
    open: bool = False
    """Take alerts from anyone who reaches the port, where there is no token."""


@dataclass(frozen=True)
class Settings:
    """Everything together."""

    namespaces: tuple[str, ...] = ()
    """Namespaces to watch; none means all."""
    home: str = "default"
    """The operator's own namespace: its Lease and its canary."""
    lag_observer: str | None = None
    """Address of the lag observer's metrics. None: LagHealthy stays Unknown."""
    through_api: bool = False
    """Ask drivers through the API server, for an operator outside of the cluster's network."""
    jobs: JobDefaults = field(default_factory=JobDefaults)
    alerts: AlertsDoor = field(default_factory=AlertsDoor)
    patience: Patience = field(default_factory=Patience)
    pace: Pace = field(default_factory=Pace)
    election: Election = field(default_factory=Election)
    deadlines: Deadlines = field(default_factory=Deadlines)
