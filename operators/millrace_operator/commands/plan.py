"""`millrace plan`: what an apply would do, by the operator's own planner and the cluster's own validation."""

import asyncio
import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

from millrace.commands import Command
from millrace.errors import UserError
from millrace.resources import Resource
from millrace.resources.changes import Change, compare, worst
from millrace.resources.reading import parse_object, read_files
from millrace_operator.actions import Apply, Manifest
from millrace_operator.commands.reading import add_cluster_options, connect, explained, get, observe
from millrace_operator.desired.target import DEFAULTS
from millrace_operator.edge.api import Api, ApiError, UnreachableError, path_of
from millrace_operator.settings import JobDefaults, Settings
from millrace_operator.streamjobs.plan import Plan, plan
from millrace_operator.streamjobs.state import Observed, parse_resource

DESCRIPTION = """\
Shows what `kubectl apply -f` of these files would do, and does nothing: which fields change and what each change does,
whether the job restarts, whether its state is kept, and which objects are written. The cluster itself is asked whether
it would take the resource. Exit code 0: it would be taken; 2: it would be refused.

  millrace plan -f job.yaml"""

EFFECTS = {
    None: "nothing changes",
    "live": "takes effect while the job runs: no restart, state kept",
    "restart": "restart at a batch boundary; goes on from the checkpoint, state kept",
    "new-state": "restart with NEW, EMPTY STATE, from startFrom; the old state stays in its folder",
}


class PlanRefusedError(UserError):
    """The plan says no."""

    exit_code = 2


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("-f", "--file", dest="files", action="append", required=True, type=Path, metavar="FILE")
    add_cluster_options(parser)


def run(arguments: Namespace) -> int:
    resources = read_files(arguments.files)
    api, namespace = connect(arguments)
    try:
        return asyncio.run(_run(api, resources, arguments.namespace or namespace, arguments.namespace is not None))
    except (ApiError, UnreachableError) as error:
        raise explained(error) from None


async def _run(api: Api, resources: list[Resource], namespace: str, given: bool) -> int:
    refused = 0
    async with api:
        for resource in resources:
            place = namespace if given or resource.metadata.namespace == "default" else resource.metadata.namespace
            lines, good = await _one(api, resource, place)
            print("\n".join(lines))
            refused += not good
    return 2 if refused else 0


async def _one(api: Api, resource: Resource, namespace: str) -> tuple[list[str], bool]:
    kind, name = resource.kind, resource.metadata.name  # type: ignore[attr-defined]
    title = f"{kind} {namespace}/{name}"
    live = await get(api, kind, namespace, name)
    try:
        stored = await _would_store(api, resource, namespace, live)
    except ApiError as error:
        if error.status not in (400, 403, 404, 422):
            raise
        return [f"{title}: REFUSED by the cluster: {error}"], False
    if kind == "Topic":
        return list(topic_lines(title, live, stored)), True
    observed = await observe(api, live if live is not None else stored)
    new = parse_resource({**stored, "status": (live or {}).get("status")})
    made = plan(replace(observed, resource=replace(new, finalizers=("",))), Settings(jobs=_defaults(observed)))
    return list(job_lines(title, live is None, observed, made)), made.verdict.refusal is None


def _defaults(observed: Observed) -> JobDefaults:
    """What the operator that made the job fills in, as it wrote it down; our own for a new job."""
    for (kind, _), found in observed.objects.items():
        text = (found["metadata"].get("annotations") or {}).get(DEFAULTS)
        if kind == "ConfigMap" and text:
            known = {field.name for field in fields(JobDefaults)}
            return JobDefaults(**{key: value for key, value in json.loads(text).items() if key in known})
    return JobDefaults()


async def _would_store(api: Api, resource: Resource, namespace: str, live: Manifest | None) -> Manifest:
    """What the API server would keep, with its defaults, after its own checks; nothing is kept."""
    body = resource.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"status"})
    kind, name = body.get("kind", ""), resource.metadata.name
    body |= {"apiVersion": resource.api_version, "kind": resource.kind}  # type: ignore[attr-defined]
    body["metadata"] |= {"namespace": namespace}
    method, path = "POST", path_of(body["kind"] or kind, namespace)
    if live is not None:
        method, path = "PUT", path_of(body["kind"], namespace, name)
        body["metadata"] |= {"resourceVersion": live["metadata"]["resourceVersion"]}
    headers = {"Content-Type": "application/json"}
    stored: Manifest = json.loads(await api.request(method, path, {"dryRun": "All"}, headers, body))
    stored["metadata"].setdefault("uid", "not-yet")
    return stored


def job_lines(title: str, is_new: bool, observed: Observed, made: Plan) -> Iterator[str]:
    """The page for one job."""
    verdict = made.verdict
    if verdict.refusal is not None:
        yield f"{title}: REFUSED ({verdict.refusal.reason}): {verdict.refusal.message}"
        yield from (f"  {change}" for change in verdict.changes)
        return
    yield f"{title}: {'new job' if is_new else EFFECTS[worst(verdict.changes)]}"
    yield from (f"  {change}" for change in verdict.changes)
    for action in made.actions:
        if isinstance(action, Apply):
            yield f"  → {action}"


def topic_lines(title: str, live: Manifest | None, stored: Manifest) -> Iterator[str]:
    if live is None:
        yield f"{title}: new topic, made in Kafka unless it is there already"
        return
    changes = topic_changes(live, stored)
    yield f"{title}: {'changed in Kafka, nothing restarts' if changes else EFFECTS[None]}"
    yield from (f"  {change}" for change in changes)


def topic_changes(live: Manifest, stored: Manifest) -> tuple[Change, ...]:
    old, new = (
        parse_object({key: one[key] for key in ("apiVersion", "kind", "metadata", "spec")}) for one in (live, stored)
    )
    return compare(old.spec, new.spec)  # type: ignore[attr-defined]


COMMAND = Command("plan", "what an apply would do, without doing it", DESCRIPTION, add_arguments, run)
