"""Warnings: the messages for a write that was carried out, but may not do what its author expects."""

from __future__ import annotations

from typing import Any

from steersman.api.generated.apiextensions_v1 import CustomResourceDefinition
from steersman.server.codec.convert import CODECS
from steersman.server.crd.custom import CustomResource
from steersman.server.registry.resources import REVIEWS
from steersman.server.rest.request import Request, Result
from steersman.server.server import AdmissionAttributes, Server
from steersman.server.validation.warnings import warnings_for

_ORPHANED_PODS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to "
    "remove them or set propagationPolicy=Orphan to suppress this warning"
)


def write_warnings(server: Server, request: Request, result: Result, old: Any) -> list[str]:
    """The warnings for a create, update, patch or apply. ``old`` is the object before it, as it was stored."""
    found = list(result.warnings)
    resource, obj = request.resource, result.obj
    if request.subresource and (request.verb != "patch" or request.subresource == "scale"):
        return found
    if resource.id in REVIEWS or resource.id == "bindings":
        return found
    if server.admission is not None:
        attributes = AdmissionAttributes(
            "CREATE" if result.created else "UPDATE",
            resource,
            request.subresource,
            request.namespace,
            request.name,
            obj,
            old,
            request.user,
        )
        found += server.admission.warnings(attributes)
    if not request.subresource:
        found += warnings_for(resource.kind if resource.type not in CODECS else "", obj, old)
    if isinstance(obj, CustomResourceDefinition):
        from steersman.server.crd import warnings as crd_warnings

        found += crd_warnings.warnings(obj, old)
    elif isinstance(obj, CustomResource) and obj.metadata.finalizers:
        from steersman.server.crd import warnings as crd_warnings

        found += crd_warnings.finalizers(obj.metadata, None if old is None else old.metadata)
    return found


def deletion_warnings(request: Request) -> list[str]:
    """The warnings for a delete or deletecollection."""
    if request.resource.id == "jobs.batch" and request.deletion.propagation is None:
        return [_ORPHANED_PODS]
    return []
