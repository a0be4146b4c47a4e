"""The schema of what the operator reports about a resource: what kubectl's columns and other tools rely on.

Only the stable part is spelled out; the operator may report more, which the API server keeps as it is.
"""

from typing import Any

Schema = dict[str, Any]

CONDITION_READY = '.status.conditions[?(@.type=="Ready")].{}'


def _text(says: str, **more: Any) -> Schema:
    return {"type": "string", "description": says, **more}


def _count(says: str) -> Schema:
    return {"type": "integer", "format": "int64", "description": says}


def _status(says: str, **properties: Schema) -> Schema:
    return {
        "type": "object",
        "description": says,
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {
            "observedGeneration": _count("The version of the spec that this status is about."),
            "conditions": _CONDITIONS,
            **properties,
        },
    }


_CONDITION: Schema = {
    "type": "object",
    "required": ["type", "status", "lastTransitionTime", "reason", "message"],
    "properties": {
        "type": _text("Which question this answers.", maxLength=316),
        "status": _text("The answer.", enum=["True", "False", "Unknown"]),
        "reason": _text("The cause as one word.", maxLength=1024),
        "message": _text("The cause as a sentence.", maxLength=32768),
        "lastTransitionTime": _text("When the answer last changed.", format="date-time"),
        "observedGeneration": _count("The version of the spec that the answer is about."),
    },
}
_CONDITIONS: Schema = {
    "type": "array",
    "description": "Answers to the questions people ask, each with its cause.",
    "items": _CONDITION,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}

STREAMJOB_STATUS = _status(
    "What the operator and the lag observer saw last.",
    state=_text("What the job does now, as one word."),
    lag=_text("Age of the oldest record that was not read yet, as a duration."),
    lagSeconds={"type": "number", "description": "The same in seconds."},
    lagRecords=_count("Number of records that were not read yet."),
    dropped=_count("Late events that were left out, since the job has its state."),
    restarts=_count("How often the driver was started again."),
    executors=_count("Number of executors that run."),
    selector=_text("Labels of the executors' pods, for autoscalers."),
)

TOPIC_STATUS = _status(
    "What the operator saw last.",
    topicName=_text("Name of the topic in Kafka."),
    partitions=_count("Number of partitions that the topic has."),
    replicas=_count("Number of brokers that hold each partition."),
)
