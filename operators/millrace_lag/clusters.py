"""The jobs of a Kubernetes cluster. The only file here that knows Kubernetes; its client is loaded in this mode."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from millrace.errors import UserError
from millrace.resources import StreamJob
from millrace.resources.metadata import API_VERSION
from millrace.resources.reading import SpecError, parse_object
from millrace_lag.subjects import Subject, subject

PLURAL = "streamjobs"
PAGE = 500
TIMEOUT_SECONDS = 20

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
