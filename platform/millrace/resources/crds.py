"""The CustomResourceDefinitions, made from the models: `python -m millrace.resources.crds` writes them into the chart.

Nothing in the written files is by hand; a test compares them with what this module makes.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from millrace.resources.fields import Effect, Model
from millrace.resources.jobs import StreamJobSpec
from millrace.resources.metadata import API_GROUP, API_VERSION
from millrace.resources.schemas import CHANGES, Schema, defaults, structural
from millrace.resources.statuses import CONDITION_READY, STREAMJOB_STATUS, TOPIC_STATUS
from millrace.resources.topics import TopicSpec
from millrace.resources.types import JOB_NAME

HEADER = "# Made from platform/millrace/resources by `make generate`; edit the models, not this file.\n"
_TOPIC_CHANGES: dict[Effect, str] = {
    "live": "takes effect at once",
    "restart": "takes effect at once",
    "new-state": "is not possible: make a new Topic",
}


@dataclass(frozen=True)
class Column:
    """One column of `kubectl get`; those that are not `wide` are always shown."""

    name: str
    path: str
    type: str = "string"
    says: str = ""
    wide: bool = False

    def rendered(self) -> Schema:
        made: Schema = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return made | ({"description": self.says} if self.says else {}) | ({"priority": 1} if self.wide else {})


_AGE = Column("Age", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True)
class Definition:
    """What a CRD is made of."""

    kind: str
    short: str
    spec: type[Model]
    says: str
    status: Schema
    columns: tuple[Column, ...]
    changes: dict[Effect, str] = field(default_factory=lambda: CHANGES)
    name: Schema | None = None
    scale: Schema | None = None
    spec_needed: bool = True

    @property
    def plural(self) -> str:
        return f"{self.kind.lower()}s"

    def rendered(self) -> Schema:
        names = {
            "kind": self.kind,
            "listKind": f"{self.kind}List",
            "plural": self.plural,
            "singular": self.kind.lower(),
            "shortNames": [self.short],
            "categories": ["millrace"],
        }
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{self.plural}.{API_GROUP}"},
            "spec": {"group": API_GROUP, "names": names, "scope": "Namespaced", "versions": [self._version()]},
        }

    def _version(self) -> Schema:
        return {
            "name": API_VERSION.removeprefix(f"{API_GROUP}/"),
            "served": True,
            "storage": True,
            "subresources": {"status": {}} | ({"scale": self.scale} if self.scale else {}),
            "additionalPrinterColumns": [column.rendered() for column in self.columns],
            "schema": {"openAPIV3Schema": self._schema()},
        }

    def _schema(self) -> Schema:
        metadata: Schema = {"type": "object"}
        if self.name:
            metadata["properties"] = {"name": self.name}
        spec = structural(self.spec, self.changes)
        # a spec without any required field may be left out whole, and then gets all its defaults
        default: Schema = {} if self.spec_needed else {"default": defaults(spec)}
        return {
            "type": "object",
            "description": self.says,
            "required": ["spec"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": metadata,
                "spec": {**spec, **default},
                "status": self.status,
            },
        }


STREAMJOB = Definition(
    kind="StreamJob",
    short="sj",
    spec=StreamJobSpec,
    says="A stream processing job: what it reads, computes, writes and promises.",
    status=STREAMJOB_STATUS,
    name={"type": "string", "maxLength": JOB_NAME.longest, "pattern": JOB_NAME.pattern.replace(r"\Z", "$")},
    scale={
        "specReplicasPath": ".spec.executors.instances",
        "statusReplicasPath": ".status.executors",
        "labelSelectorPath": ".status.selector",
    },
    columns=(
        Column("State", ".status.state", says="What the job does now."),
        Column("Ready", CONDITION_READY.format("status"), says="True while batches advance."),
        Column("Lag", ".status.lag", says="Age of the oldest record that was not read yet."),
        Column("Dropped", ".status.dropped", "integer", "Late events that were left out."),
        Column("Restarts", ".status.restarts", "integer", "How often the driver was started again."),
        _AGE,
        Column("Cause", CONDITION_READY.format("reason"), says="Why the job is ready or not.", wide=True),
        Column("Message", CONDITION_READY.format("message"), says="The cause in a sentence.", wide=True),
    ),
)
TOPIC = Definition(
    kind="Topic",
    short="tp",
    spec=TopicSpec,
    says="A Kafka topic: its partitions, how long it keeps records, and its settings.",
    status=TOPIC_STATUS,
    changes=_TOPIC_CHANGES,
    spec_needed=False,
    columns=(
        Column("Topic", ".status.topicName", says="Name of the topic in Kafka."),
        Column("Partitions", ".spec.partitions", "integer"),
        Column("Replicas", ".spec.replicas", "integer"),
        Column("Retention", ".spec.retention.time"),
        Column("Ready", CONDITION_READY.format("status"), says="True when the topic is as declared."),
        _AGE,
        Column("Cause", CONDITION_READY.format("reason"), says="Why the topic is ready or not.", wide=True),
        Column("Message", CONDITION_READY.format("message"), says="The cause in a sentence.", wide=True),
    ),
)
DEFINITIONS = (STREAMJOB, TOPIC)


class _Dumper(yaml.SafeDumper):
    """Writes the same part twice rather than by reference: the files are for people too."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def rendered(definition: Definition) -> str:
    """The text of a CRD's file."""
    return HEADER + yaml.dump(definition.rendered(), Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for definition in DEFINITIONS:
        (folder / f"{definition.plural}.yaml").write_text(rendered(definition), encoding="utf-8")


if __name__ == "__main__":
    main(Path(*sys.argv[1:2]) if sys.argv[1:] else Path("charts/millrace/crds"))
