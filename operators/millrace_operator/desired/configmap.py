"""The ConfigMap of a job: its accepted spec and Spark's settings. It is also the memory of what was accepted last.

It is mounted as a folder, so that a change of it reaches the running driver.
"""

import json
from dataclasses import asdict

from millrace import naming
from millrace.resources.metadata import API_VERSION
from millrace_operator.actions import Manifest
from millrace_operator.desired import spark
from millrace_operator.desired.target import CLAIM, DEFAULTS, EPOCH, REVISION, SPEC_FILE, Target, metadata
from millrace_operator.settings import JobDefaults


def spec(target: Target, defaults: JobDefaults) -> Manifest:
    meta = metadata(target, naming.config_map(target.name), "spec")
    meta["annotations"] = {
        REVISION: str(target.revision),
        EPOCH: str(target.epoch),
        CLAIM: str(target.claim),
        DEFAULTS: json.dumps(asdict(defaults), sort_keys=True),
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": meta,
        "data": {
            SPEC_FILE: _resource(target),
            "spark-defaults.conf": spark.defaults(target, defaults),
            spark.TEMPLATE_FILE: spark.executor_template(),
        },
    }


def _resource(target: Target) -> str:
    named = {"name": target.name, "namespace": target.namespace}
    resource = {"apiVersion": API_VERSION, "kind": "StreamJob", "metadata": named, "spec": target.spec}
    return json.dumps(resource, indent=1, sort_keys=True)
