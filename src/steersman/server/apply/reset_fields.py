"""What a request cannot change, because the resource resets it; so nobody comes to own it that way.

By default a resource with a status keeps it from requests to the resource itself, and its spec from
requests to ``status``. What differs is in the tables.
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
"""Where it is easier to say what can be changed."""

CUSTOM_STATUS = ("spec", "metadata")
"""What a custom resource's ``status`` leaves alone."""


@cache
def allowed(resource: str, subresource: str, *, has_status: bool) -> Filter:
    """What of a change counts, for a built-in resource named as in ``deployments.apps``."""
    if (resource, subresource) in _ONLY:
        return only(_ONLY[resource, subresource])
    if subresource == "":
        return but(_MAIN.get(resource, ("status",) if has_status else ()))
    if subresource == "status":
        return but(_STATUS.get(resource, ("spec",)))
    return but(_OTHERS.get((resource, subresource), ()))


def but(paths: tuple[str, ...]) -> Filter:
    """Everything but some fields and what is in them."""
    return partial(_but, field_set.of(*paths))


def only(paths: tuple[str, ...]) -> Filter:
    """Nothing but some fields and what is in them."""
    return partial(_only, field_set.of(*paths))


def _but(ignored: field_set.FieldSet, fields: field_set.FieldSet) -> field_set.FieldSet:
    return field_set.without(fields, ignored) if ignored else fields


def _only(wanted: field_set.FieldSet, fields: field_set.FieldSet) -> field_set.FieldSet:
    return field_set.within(fields, wanted)
