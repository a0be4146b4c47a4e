"""The resources people write, StreamJob and Topic: parsed once at the edge, frozen after."""

from millrace.resources.jobs import StreamJob, StreamJobSpec
from millrace.resources.metadata import API_GROUP, API_VERSION, Metadata, Resource
from millrace.resources.reading import SpecError, parse_object, read_files
from millrace.resources.runs import Checkpoint, Driver, Executors, Remediation, Restart, Slo, Trigger, Upgrade
from millrace.resources.sinks import Postgres, Sink
from millrace.resources.sources import Clock, EventTime, KafkaCluster, SecretRef, Source
from millrace.resources.steps import PythonFunction, Step, Window
from millrace.resources.stragglers import Malformed, Stragglers
from millrace.resources.topics import Retention, Topic, TopicSpec

__all__ = [
    "API_GROUP",
    "API_VERSION",
    "Checkpoint",
    "Clock",
    "Driver",
    "EventTime",
    "Executors",
    "KafkaCluster",
    "Malformed",
    "Metadata",
    "Postgres",
    "PythonFunction",
    "Remediation",
    "Resource",
    "Restart",
    "Retention",
    "SecretRef",
    "Sink",
    "Slo",
    "Source",
    "SpecError",
    "Step",
    "Stragglers",
    "StreamJob",
    "StreamJobSpec",
    "Topic",
    "TopicSpec",
    "Trigger",
    "Upgrade",
    "Window",
    "parse_object",
    "read_files",
]
