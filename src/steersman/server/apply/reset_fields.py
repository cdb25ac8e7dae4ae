"""Reset fields: fields the strategy of a resource resets, so that a request never becomes their manager.

By default requests to a resource with a status cannot change ``status``, and requests to its ``status``
cannot change ``spec``. The tables list the exceptions, as the strategies' ``GetResetFields`` upstream.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial

from steersman.server.apply import field_set
from steersman.server.apply.ownership import Filter

_MAIN: Mapping[str, tuple[str, ...]] = {
    "certificatesigningrequests.certificates.k8s.io": ("spec", "status"),
}

_STATUS: Mapping[str, tuple[str, ...]] = {
    "apiservices.apiregistration.k8s.io": ("spec", "metadata"),
    "certificatesigningrequests.certificates.k8s.io": ("spec", "status.conditions"),
    "deployments.apps": ("spec", "metadata.labels"),
    "flowschemas.flowcontrol.apiserver.k8s.io": ("spec", "metadata"),
    "pods": ("spec", "metadata.deletionTimestamp", "metadata.ownerReferences"),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": ("spec", "metadata"),
    "resourceclaims.resource.k8s.io": ("spec", "metadata"),
    "servicecidrs.networking.k8s.io": ("spec", "metadata"),
    "validatingadmissionpolicies.admissionregistration.k8s.io": ("spec", "metadata"),
    "volumeattachments.storage.k8s.io": ("spec", "metadata"),
}

_OTHERS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("certificatesigningrequests.certificates.k8s.io", "approval"): ("spec", "status.certificate"),
    ("namespaces", "finalize"): ("status",),
}

_ONLY: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("pods", "ephemeralcontainers"): ("spec.ephemeralContainers",),
}
"""The only fields a request can change, for subresources that reset everything else."""

CUSTOM_STATUS = ("spec", "metadata")
"""The fields that requests to a custom resource's ``status`` cannot change."""


@cache
def reset_fields_filter(resource: str, subresource: str, *, has_status: bool) -> Filter:
    """The filter that drops the reset fields of a built-in resource, named as in ``deployments.apps``."""
    if (resource, subresource) in _ONLY:
        return include_fields(_ONLY[resource, subresource])
    if subresource == "":
        return exclude_fields(_MAIN.get(resource, ("status",) if has_status else ()))
    if subresource == "status":
        return exclude_fields(_STATUS.get(resource, ("spec",)))
    return exclude_fields(_OTHERS.get((resource, subresource), ()))


def exclude_fields(paths: tuple[str, ...]) -> Filter:
    """A filter that drops some fields and all below them."""
    return partial(_but, field_set.of(*paths))


def include_fields(paths: tuple[str, ...]) -> Filter:
    """A filter that keeps only some fields and all below them."""
    return partial(_only, field_set.of(*paths))


def _but(ignored: field_set.FieldSet, fields: field_set.FieldSet) -> field_set.FieldSet:
    return field_set.recursive_difference(fields, ignored) if ignored else fields


def _only(wanted: field_set.FieldSet, fields: field_set.FieldSet) -> field_set.FieldSet:
    return field_set.include(fields, wanted)
