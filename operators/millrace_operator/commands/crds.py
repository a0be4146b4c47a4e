"""`python -m millrace_operator.commands.crds`: makes the cluster's CRDs those of this version.

Helm installs CRDs once and never upgrades them, so the chart runs this before each upgrade. It replaces and does not
apply: that would leave behind what an older version, written by Helm itself, had and this one does not have.
"""

import asyncio
import json
import sys

from millrace.errors import UserError
from millrace.resources.crds import DEFINITIONS, Definition
from millrace_operator.actions import Manifest
from millrace_operator.commands.reading import SECONDS, explained
from millrace_operator.edge import credentials
from millrace_operator.edge.api import Api, ApiError, UnreachableError

FOLDER = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TRIES = 5  # the API server writes the status of a CRD itself, and may be faster once or twice


def main() -> int:
    try:
        asyncio.run(_upgrade_all())
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


async def _upgrade_all() -> None:
    async with Api(credentials.find(), SECONDS) as api:
        for definition in DEFINITIONS:
            try:
                print(await upgrade(api, definition))
            except (ApiError, UnreachableError) as error:
                raise explained(error) from error


async def upgrade(api: Api, definition: Definition) -> str:
    """What was done, in words."""
    wanted: Manifest = definition.rendered()
    name = wanted["metadata"]["name"]
    for turn in range(TRIES):
        found: Manifest = json.loads(await api.request("GET", f"{FOLDER}/{name}"))
        body = {**found, "spec": {**wanted["spec"], "conversion": found["spec"]["conversion"]}}
        try:
            stored = json.loads(
                await api.request("PUT", f"{FOLDER}/{name}", headers={"Content-Type": "application/json"}, body=body)
            )
        except ApiError as error:
            if error.status != 409 or turn == TRIES - 1:
                raise
        else:
            was = found["metadata"]["generation"]
            return f"{name}: {'as it was' if stored['metadata']['generation'] == was else 'brought up to date'}"
    raise AssertionError("unreachable: the last turn returns or raises")


if __name__ == "__main__":
    sys.exit(main())
