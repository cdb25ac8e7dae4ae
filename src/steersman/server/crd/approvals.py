"""Definitions in Kubernetes' own groups: who approved of them, if anybody."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from steersman.api.generated.apiextensions_v1 import CustomResourceDefinition
from steersman.server.validation.field_errors import FieldErrors

APPROVED = "api-approved.kubernetes.io"
"""The annotation by which definitions in protected groups say who approved of them."""

_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"


def is_protected(group: str) -> bool:
    """Whether a group is one of Kubernetes' own."""
    return any(group == own or group.endswith(f".{own}") for own in ("k8s.io", "kubernetes.io"))


def approval(annotations: Mapping[str, str]) -> tuple[str, str]:
    """How a definition in a protected group is approved of (the reason of its condition), and the words for it."""
    said = annotations.get(APPROVED, "")
    if not said:
        return "MissingAnnotation", f'protected groups must have approval annotation "{APPROVED}", {_SEE}'
    if said.startswith("unapproved"):
        return "UnapprovedAnnotation", f'not approved: "{said}"'
    try:
        url = urlsplit(said)
        sound = bool(url.scheme and url.netloc)
    except ValueError:
        sound = False
    if sound:
        return "ApprovedAnnotation", f"approved in {said}"
    return (
        "InvalidAnnotation",
        f'protected groups must have approval annotation "{APPROVED}" with either a URL or a reason starting '
        f'with "unapproved", {_SEE}',
    )


def check(
    definition: CustomResourceDefinition, old: CustomResourceDefinition | None, errors: FieldErrors
) -> None:
    """Complain of a definition in a protected group that was not approved of, unless it never was."""
    if not is_protected(definition.spec.group):
        return
    annotations = definition.metadata.annotations
    state, says = approval(annotations)
    if old is not None and approval(old.metadata.annotations)[0] == state:
        return
    path = f"metadata.annotations[{APPROVED}]"
    if state == "MissingAnnotation":
        errors.required(path, says)
    elif state == "InvalidAnnotation":
        errors.invalid(path, annotations.get(APPROVED, ""), says)
