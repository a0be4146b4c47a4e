"""Jobs by what the broker knows of them, for when no spec is at hand: groups of ours and what they committed."""

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka.admin import AdminClient

from millrace import naming
from millrace.errors import UserError
from millrace.kafka.clients import REQUEST_SECONDS, admin
from millrace_lag.subjects import Subject


def discover(bootstrap: str) -> tuple[Subject, ...]:
    """Every job that ever committed a position in the cluster, whether it runs or not."""
    client = admin(bootstrap)
    try:
        listed = client.list_consumer_groups(request_timeout=REQUEST_SECONDS).result(REQUEST_SECONDS)
        jobs = {one.group_id: job for one in listed.valid if (job := job_of(one.group_id)) is not None}
        topics = _topics(client, sorted(jobs))
    except (KafkaException, TimeoutError) as error:
        raise UserError(f"No Kafka broker answers at {bootstrap}: check the address and that it is up.") from error
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
    return group.endswith("." + naming.progress_group("", "", "").rpartition(".")[2])


def _topics(client: AdminClient, groups: list[str]) -> dict[str, set[str]]:
    asked = {one: client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(one)]) for one in groups}
    answers = {one: answer[one].result(REQUEST_SECONDS).topic_partitions for one, answer in asked.items()}
    return {one: {each.topic for each in found} for one, found in answers.items() if found}
