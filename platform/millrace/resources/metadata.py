"""The part of a resource that Kubernetes owns: its name, namespace and labels."""

from typing import Annotated, Any

from pydantic import Field

from millrace.resources.fields import Model, declared
from millrace.resources.types import DnsName, Namespace

API_GROUP = "millrace.io"
API_VERSION = f"{API_GROUP}/v1alpha1"


class Metadata(Model):
    """Kubernetes' own metadata. What only the API server writes is let through unread."""

    name: DnsName = declared("Name of the resource.", change="new-state")
    namespace: Namespace = declared("Namespace of the resource.", change="new-state", default="default")
    labels: dict[str, str] = declared("Labels.", change="live", default={})
    annotations: dict[str, str] = declared("Annotations.", change="live", default={})
    uid: str | None = declared("Written by the API server.", change="live", default=None)
    generation: int | None = declared("Written by the API server.", change="live", default=None)
    resource_version: str | None = declared("Written by the API server.", change="live", default=None)
    creation_timestamp: str | None = declared("Written by the API server.", change="live", default=None)
    deletion_timestamp: str | None = declared("Written by the API server.", change="live", default=None)
    deletion_grace_period_seconds: int | None = declared("Written by the API server.", change="live", default=None)
    finalizers: Annotated[tuple[str, ...], Field(strict=False)] = declared("Finalizers.", change="live", default=())
    owner_references: Annotated[tuple[Any, ...], Field(strict=False)] = declared("Owners.", change="live", default=())
    managed_fields: Annotated[tuple[Any, ...], Field(strict=False)] = declared(
        "Written by the API server.", change="live", default=()
    )
    generate_name: str | None = declared("Prefix for a generated name.", change="live", default=None)
    self_link: str | None = declared("Written by the API server.", change="live", default=None)


class Resource(Model):
    """What every resource has beside its spec."""

    metadata: Metadata = declared("Name, namespace, labels and annotations.", change="live")
    status: dict[str, Any] | None = declared("Written by the operator.", change="live", default=None)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace
