"""Jobs by what the broker knows of them, for when no spec is at hand: groups of ours and what they committed."""

from confluent_kafka import KafkaException

from millrace import naming
from millrace.errors import UserError
from millrace.kafka.clients import REQUEST_SECONDS, admin
from millrace.kafka.positions import committed_topics
from millrace.kafka.refusals import refusal
from millrace.kafka.security import Security
from millrace_lag.subjects import Subject


def discover(bootstrap: str, security: Security | None = None) -> tuple[Subject, ...]:
    """Every job that ever committed a position in the cluster, whether it runs or not."""
    client = admin(bootstrap, security)
    try:
        listed = client.list_consumer_groups(request_timeout=REQUEST_SECONDS).result(REQUEST_SECONDS)
    except (KafkaException, TimeoutError) as error:
        why = refusal(bootstrap, security)
        if why is not None:
            raise UserError(f"The brokers at {bootstrap} do not let us in: {why}.") from error
        raise UserError(f"No Kafka broker answers at {bootstrap}: check the address and that it is up.") from error
    jobs = {one.group_id: job for one in listed.valid if (job := job_of(one.group_id)) is not None}
    topics = committed_topics(bootstrap, sorted(jobs), security)
    return tuple(
        Subject(*jobs[group], bootstrap, dict.fromkeys(sorted(found), "earliest")) for group, found in topics.items()
    )


def job_of(group: str) -> tuple[str, str] | None:
    """Namespace and name of the job whose group it is; None for other groups and for the books of sinks."""
    namespace, _, job = group.partition(".")[2].partition(".")
    is_ours = bool(job) and naming.consumer_group(namespace, job) == group
    return (namespace, job) if is_ours and not is_books(group) else None


def is_books(group: str) -> bool:
    """Whether a sink keeps the numbers of its batches there, see `naming.progress_group`."""
    return naming.is_progress_group(group)
