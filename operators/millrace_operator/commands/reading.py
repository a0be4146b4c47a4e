"""What the commands need from a cluster: credentials from the options, and a job with everything that belongs to it."""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from millrace.errors import UserError
from millrace.resources.metadata import API_VERSION
from millrace_operator.actions import Manifest, Ref
from millrace_operator.desired.target import JOB_LABEL
from millrace_operator.edge import credentials
from millrace_operator.edge.api import Api, ApiError, UnreachableError
from millrace_operator.edge.watches import PARTS
from millrace_operator.streamjobs.state import Observed, parse_pod, parse_resource

SECONDS = 15.0


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kubeconfig", metavar="FILE", help="reach the cluster by this file (default: KUBECONFIG)")
    parser.add_argument("--context", metavar="NAME", help="context of the kubeconfig")
    parser.add_argument("-n", "--namespace", metavar="NAME", help="namespace (default: the context's own)")


def connect(options: argparse.Namespace) -> tuple[Api, str]:
    """A client, not yet open, and the namespace that is meant."""
    found = credentials.find(options.kubeconfig, options.context)
    return Api(found, SECONDS), options.namespace or found.namespace


async def observe(api: Api, body: Mapping[str, Any]) -> Observed:
    """A job as it is on the cluster, without asking its driver."""
    resource = parse_resource(body)
    objects: dict[tuple[str, str], Manifest] = {}
    pods = []
    for kind in PARTS:
        label = f"{JOB_LABEL}={resource.ref.name}"
        for found in await api.list(kind, resource.ref.namespace, labelSelector=label):
            if kind == "Pod":
                pods.append(parse_pod(found))
            else:
                objects[kind, found["metadata"]["name"]] = found
    return replace(Observed(resource, datetime.now(UTC)), objects=objects, pods=tuple(pods))


async def get(api: Api, kind: str, namespace: str, name: str) -> Manifest | None:
    return await api.get(Ref(API_VERSION, kind, namespace, name))


def explained(error: ApiError | UnreachableError) -> UserError:
    """The API server's sentence, for a person."""
    if isinstance(error, UnreachableError):
        return UserError(f"The cluster cannot be asked: {error}. Check the kubeconfig and that the cluster is up.")
    return UserError(f"The cluster refused: {error}")
