"""`python -m millrace_operator.commands.tiny`: applies a tiny job, waits for the operator to do its part, cleans up.

The chart's `helm test` runs it in a pod. It looks at the resources only, as a user would.
"""

import argparse
import asyncio
import sys
import time
import uuid
from collections.abc import Callable, Sequence

from millrace.errors import UserError
from millrace.resources.metadata import API_VERSION
from millrace_operator.actions import Manifest, Ref
from millrace_operator.commands.reading import SECONDS, explained
from millrace_operator.edge import credentials
from millrace_operator.edge.api import Api, ApiError, UnreachableError

SEEN_SECONDS = 60.0
RUNNING_SECONDS = 240.0
GONE_SECONDS = 150.0  # a driver may take 120 s to finish its batch


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m millrace_operator.commands.tiny", description=__doc__)
    parser.add_argument("--namespace", required=True, help="where to apply it")
    parser.add_argument("--run", action="store_true", help="make a topic and run the job; needs a broker")
    chosen = parser.parse_args(words)
    try:
        asyncio.run(_check(chosen.namespace, chosen.run))
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def manifests(namespace: str, name: str, runs: bool) -> list[Manifest]:
    """The job, and where it shall run the topics that it reads and writes."""
    topics = [f"{name}-in", f"{name}-out"]
    job = {
        "suspend": not runs,
        "sources": [{"name": "events", "topic": topics[0], "schema": "word string"}],
        "transform": [{"sql": "SELECT word FROM events"}],
        "sinks": [{"topic": topics[1], "key": ["word"]}],
        "checkpoint": {"volumeClaim": {"size": "1Gi"}, "deletionPolicy": "Delete"},
        "driver": {"cpu": "200m", "memory": "1Gi"},
        "executors": {"instances": 1, "cpu": "200m", "memory": "1Gi"},
    }
    topic = {"partitions": 1, "replicas": 1, "deletionPolicy": "Delete"}
    made = [_named("Topic", namespace, one, topic) for one in topics] if runs else []
    return [*made, _named("StreamJob", namespace, name, job)]


def _named(kind: str, namespace: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


async def _check(namespace: str, runs: bool) -> None:
    name = f"tiny-{uuid.uuid4().hex[:6]}"
    made = manifests(namespace, name, runs)
    state, seconds = ("Running", RUNNING_SECONDS) if runs else ("Suspended", SEEN_SECONDS)
    async with Api(credentials.find(), SECONDS) as api:
        try:
            for one in made:
                await api.create(one)
            job = Ref(API_VERSION, "StreamJob", namespace, name)
            await _wait(api, job, f"state {state}", lambda found: _state(found) == state, seconds)
            print(f"{namespace}/{name} is {state}")
        except (ApiError, UnreachableError) as error:
            raise explained(error) from error
        finally:
            await _clean(api, made)


async def _clean(api: Api, made: Sequence[Manifest]) -> None:
    """The job first: its topics are in use until it is gone."""
    for one in reversed(made):
        ref = Ref(API_VERSION, one["kind"], one["metadata"]["namespace"], one["metadata"]["name"])
        await api.delete(ref)
        await _wait(api, ref, "its end", lambda found: found is None, GONE_SECONDS)


async def _wait(api: Api, ref: Ref, what: str, holds: Callable[[Manifest | None], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds(found := await api.get(ref)):
        if time.monotonic() > deadline:
            raise UserError(
                f"{ref.kind} {ref.namespace}/{ref.name} did not get to {what} in {seconds:.0f} s: see the operator's"
                f" log, and this status: {(found or {}).get('status')}"
            )
        await asyncio.sleep(0.5)


def _state(found: Manifest | None) -> str:
    return str(((found or {}).get("status") or {}).get("state", ""))


if __name__ == "__main__":
    sys.exit(main())
