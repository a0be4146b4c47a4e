"""The jobs of a Kubernetes cluster. The only file here that knows Kubernetes; its client is loaded in this mode."""

import base64
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from millrace.errors import UserError
from millrace.kafka.security import KEYS, Security, parse_security
from millrace.resources import StreamJob
from millrace.resources.metadata import API_VERSION
from millrace.resources.reading import SpecError, parse_object
from millrace_lag.logins import Logins
from millrace_lag.subjects import Door, Subject, subject

PLURAL = "streamjobs"
PAGE = 500
TIMEOUT_SECONDS = 20
FRESH_SECONDS = 15.0  # how long a Secret is taken to be what it was: it is asked for with every poll

log = logging.getLogger(__name__)


def kubernetes_lister(cluster: str, namespaces: Sequence[str] = ()) -> Callable[[], tuple[Subject, ...]]:
    """A function that lists the StreamJobs of the cluster, or of some namespaces."""
    from kubernetes import client, config  # heavy, and only there with the extra `operator`

    try:
        config.load_incluster_config()
    except config.ConfigException:
        config.load_kube_config()
    api = client.CustomObjectsApi()

    def listed() -> tuple[Subject, ...]:
        try:
            places: Sequence[str | None] = namespaces or (None,)
            return from_objects([one for place in places for one in list_objects(api, place)], cluster)
        except (client.ApiException, OSError) as error:
            raise UserError(f"The StreamJobs cannot be listed: {error}") from error

    return listed


def kubernetes_logins() -> Logins:
    """A function that reads the Secrets which jobs name, each by its name. Call it after `kubernetes_lister`."""
    from kubernetes import client

    api = client.CoreV1Api()
    known: dict[Door, tuple[float, Security]] = {}

    def read(door: Door) -> Security | None:
        if not door.secret:
            return None
        at, security = known.get(door, (0.0, None))
        if security is not None and time.monotonic() - at < FRESH_SECONDS:
            return security
        where = f"Secret {door.namespace}/{door.secret}"
        try:
            found = api.read_namespaced_secret(door.secret, door.namespace, _request_timeout=TIMEOUT_SECONDS)
        except client.ApiException as error:  # its text has the whole answer in it: say only what it is
            hint = {403: "; set kafka.readSecrets of the chart", 404: ": make it, or name another"}.get(error.status)
            raise UserError(f"{where} cannot be read ({error.reason}){hint or ''}.") from None
        except OSError as error:
            raise UserError(f"{where} cannot be read: {type(error).__name__}.") from None
        known[door] = (time.monotonic(), secret_of(found.data or {}, where))
        return known[door][1]

    return read


def secret_of(data: Mapping[str, str | bytes], where: str) -> Security:
    """The credentials in the data of a Secret. Keys that are not ours may hold anything."""
    try:
        values = {key: base64.b64decode(value).decode() for key, value in data.items() if key in KEYS}
    except ValueError:
        raise UserError(f"{where} cannot be used for Kafka: one of {', '.join(KEYS)} is not text.") from None
    return parse_security(values, where)


def list_objects(api: Any, namespace: str | None) -> list[dict[str, Any]]:
    """Every StreamJob, page by page."""
    group, version = API_VERSION.split("/")
    found: list[dict[str, Any]] = []
    more: str | None = ""
    while more is not None:
        options = {"limit": PAGE, "_request_timeout": TIMEOUT_SECONDS} | ({"_continue": more} if more else {})
        if namespace:
            page = api.list_namespaced_custom_object(group, version, namespace, PLURAL, **options)
        else:
            page = api.list_cluster_custom_object(group, version, PLURAL, **options)
        found += [{"apiVersion": API_VERSION, "kind": "StreamJob", **one} for one in page["items"]]
        more = page.get("metadata", {}).get("continue") or None
    return found


def from_objects(objects: list[dict[str, Any]], cluster: str) -> tuple[Subject, ...]:
    """The jobs to watch. One that this version cannot read is left out and said so; the others are watched."""
    found = []
    for one in objects:
        try:
            resource = parse_object(one)
        except SpecError as error:
            log.warning("a job is not watched, its spec cannot be read: %s", error)
            continue
        if isinstance(resource, StreamJob):
            found.append(subject(resource, cluster))
    return tuple(found)
