"""Every name that is derived from a job's name, in one place: in Kafka, in Kubernetes and in the environment.

Two parts of the platform that must agree on a name both ask here. It opens no connection and knows no model.
"""

PREFIX = "millrace"
_BATCHES = "batches"


def consumer_group(namespace: str, job: str) -> str:
    """The group that a job commits its position to, so that every Kafka tool can see it."""
    return f"{PREFIX}.{namespace}.{job}"


def transactional_id(namespace: str, job: str, sink: str, slot: int) -> str:
    """One writer of a sink; a new attempt with the same id fences the old one."""
    return f"{PREFIX}.{namespace}.{job}.{sink}.{slot}"


def progress_group(namespace: str, job: str, sink: str, slot: int, state: str) -> str:
    """The group in which a writer's transactions write down the number of the batch they belong to.

    Numbers start anew with each new state of the job, so the state's own name is part of it.
    """
    return f"{transactional_id(namespace, job, sink, slot)}.{state}.{_BATCHES}"


def is_progress_group(group: str) -> bool:
    """Whether a group holds numbers of batches, and not how far somebody has read."""
    return group.startswith(f"{PREFIX}.") and group.endswith(f".{_BATCHES}")


def job_key(namespace: str, job: str) -> str:
    """How a job is called where namespaces are mixed: folders of local mode, tables, logs."""
    return f"{namespace}.{job}"


def driver(job: str) -> str:
    """The StatefulSet of the driver; its only pod is called the same with '-0'."""
    return f"{job}-driver"


def driver_pod(job: str) -> str:
    return f"{driver(job)}-0"


def headless_service(job: str) -> str:
    """The service by which executors find their driver."""
    return f"{job}-driver"


def config_map(job: str) -> str:
    """The ConfigMap that holds the job's spec."""
    return f"{job}-spec"


def service_account(job: str) -> str:
    return f"{job}-driver"


def checkpoint_claim(job: str) -> str:
    return f"{job}-state"


def executor_prefix(job: str) -> str:
    """Executor pods are called this, '-exec-' and a number; Spark adds the two."""
    return job


def secret_variable(secret: str) -> str:
    """The environment variable that stands for a Secret without a cluster: MILLRACE_SECRET_DB_MAIN for db-main."""
    return "MILLRACE_SECRET_" + secret.upper().replace("-", "_").replace(".", "_")


SECRETS_FOLDER_VARIABLE = "MILLRACE_SECRETS"
"""The environment variable that names the folder of Secrets: one folder for each, in it one file for each key."""

SECRETS_FOLDER = "/etc/millrace/secrets"
"""Where the operator mounts the Secrets of a job."""
