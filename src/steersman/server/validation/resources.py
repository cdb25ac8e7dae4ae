"""Validation of resource names, quantities, and requests against limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from steersman.api.bounded_cache import short_cache
from steersman.api.generated import core_v1 as v1
from steersman.api.generated.base import Quantity as Amount
from steersman.api.label_syntax import key_errors
from steersman.api.quantity import NANO, Quantity
from steersman.server.validation import names
from steersman.server.validation.field_errors import MUST_BE_NONNEGATIVE, FieldErrors

ResourceNameRule: TypeAlias = Callable[[FieldErrors, str, str], None]

HUGE_PAGES = "hugepages-"
_COMPUTE = ("cpu", "memory")
_CONTAINER = ("cpu", "memory", "ephemeral-storage")
_COUNTS = (
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
)
_QUOTA = frozenset(
    {
        *_COUNTS,
        *_CONTAINER,
        *(f"{side}.{name}" for side in ("requests", "limits") for name in _CONTAINER),
        "requests.storage",
    }
)
_STANDARD = _QUOTA | {"storage"}
_POD_LEVEL = ("cpu", "hugepages-", "memory")


@short_cache(4096)
def parse_quantity(amount: Amount) -> Quantity:
    """A quantity as a number. Defaulting has refused unparseable ones, which count as zero here."""
    try:
        return Quantity.parse(amount)
    except ValueError:
        return Quantity(0)


# -- names ------------------------------------------------------------------------------------


@short_cache(1024)
def is_native(name: str) -> bool:
    """Whether a resource is Kubernetes' own (upstream's IsNativeResource)."""
    return "/" not in name or "kubernetes.io/" in name


@short_cache(1024)
def is_extended(name: str) -> bool:
    """Whether a resource is an extended one, counted in whole numbers (IsExtendedResourceName)."""
    return not is_native(name) and not name.startswith("requests.") and not key_errors(f"requests.{name}")


def is_overcommit_allowed(name: str) -> bool:
    """Whether a resource's limit may exceed its request."""
    return is_native(name) and not name.startswith(HUGE_PAGES)


def is_quota_name(name: str) -> bool:
    """Whether a quota can count a resource."""
    return name in _QUOTA or name.startswith((HUGE_PAGES, f"requests.{HUGE_PAGES}"))


def validate_resource_name(errors: FieldErrors, path: str, name: str) -> bool:
    """Validates the name of any resource; returns whether it is valid."""
    if messages := key_errors(name):
        errors.invalid_each(path, name, messages)
        return False
    if (
        "/" not in name
        and name not in _STANDARD
        and not name.startswith((HUGE_PAGES, f"requests.{HUGE_PAGES}"))
    ):
        errors.invalid(path, name, "must be a standard resource type or fully qualified")
        return False
    return True


def validate_container_resource_name(errors: FieldErrors, path: str, name: str) -> None:
    """Validates the name of a resource that a container may request."""
    if name in _CONTAINER:
        return
    validate_resource_name(errors, path, name)
    if "/" not in name:
        if not name.startswith(HUGE_PAGES):
            errors.invalid(path, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        errors.invalid(path, name, "doesn't follow extended resource name standard")


def validate_pod_resource_name(errors: FieldErrors, path: str, name: str) -> None:
    """Validates the name of a resource that pod-level resources may name."""
    if (
        validate_resource_name(errors, path, name)
        and name not in _COMPUTE
        and not name.startswith(HUGE_PAGES)
    ):
        errors.not_supported(path, name, _POD_LEVEL)


def validate_quota_resource_name(errors: FieldErrors, path: str, name: str) -> None:
    validate_resource_name(errors, path, name)
    if "/" not in name and not is_quota_name(name):
        errors.invalid(path, name, "must be a standard resource for quota")


# -- quantities -----------------------------------------------------------------------------------


def validate_resource_quantity(errors: FieldErrors, path: str, name: str, amount: Amount) -> None:
    """Validates the quantity of a resource: not negative, and whole where the resource is counted."""
    exact = parse_quantity(amount)
    if exact.nanos < 0:
        errors.invalid(path, str(exact), MUST_BE_NONNEGATIVE)
    if (name in _COUNTS or is_extended(name)) and exact.milli() % 1000:
        errors.invalid(path, str(exact), "must be an integer")


def validate_positive_quantity(errors: FieldErrors, path: str, amount: Amount) -> bool:
    exact = parse_quantity(amount)
    if exact.nanos <= 0:
        errors.invalid(path, str(exact), "must be greater than zero")
        return False
    return True


def validate_nonnegative_quantity(errors: FieldErrors, path: str, amount: Amount) -> None:
    exact = parse_quantity(amount)
    if exact.nanos < 0:
        errors.invalid(path, str(exact), MUST_BE_NONNEGATIVE)


def validate_basic_resource(errors: FieldErrors, path: str, amount: Amount) -> None:
    rounded = parse_quantity(amount).value()
    if rounded < 0:
        errors.invalid(path, rounded, "must be a valid resource quantity")


# -- requests and limits ----------------------------------------------------------------------


def validate_resource_requirements(
    errors: FieldErrors,
    path: str,
    limits: Mapping[str, Amount],
    requests: Mapping[str, Amount],
    name_check: ResourceNameRule = validate_container_resource_name,
) -> None:
    """Validates requests and limits: names, quantities, and no request above its limit."""
    huge = False
    for name, amount in limits.items():
        if name not in _COMPUTE or parse_quantity(amount).nanos < 0:
            _validate_resource(errors, f"{path}.limits[{name}]", name, amount, name_check)
            huge = huge or name.startswith(HUGE_PAGES)
    for name, amount in requests.items():
        if name not in _COMPUTE or parse_quantity(amount).nanos < 0:
            _validate_resource(errors, f"{path}.requests[{name}]", name, amount, name_check)
            huge = huge or name.startswith(HUGE_PAGES)
        limit = limits.get(name)
        if limit is None:
            if not is_overcommit_allowed(name):
                errors.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif amount != limit:
            _validate_request_within_limit(
                errors, f"{path}.requests", name, parse_quantity(amount), parse_quantity(limit)
            )
    if huge and not any(name in limits or name in requests for name in _COMPUTE):
        errors.forbidden(path, "HugePages require cpu or memory")


def _validate_resource(
    errors: FieldErrors, path: str, name: str, amount: Amount, name_check: ResourceNameRule
) -> None:
    name_check(errors, path, name)
    validate_resource_quantity(errors, path, name, amount)
    if name.startswith(HUGE_PAGES):
        exact = parse_quantity(amount)
        size = parse_quantity(name.removeprefix(HUGE_PAGES))
        if size.nanos <= 0 or size.nanos % NANO or exact.value() % size.value():
            errors.invalid(path, str(exact), f"{exact} is not positive integer multiple of {name}")


def _validate_request_within_limit(
    errors: FieldErrors, path: str, name: str, request: Quantity, limit: Quantity
) -> None:
    if request != limit and not is_overcommit_allowed(name):
        errors.invalid(path, str(request), f"must be equal to {name} limit of {limit}")
    elif request > limit:
        errors.invalid(path, str(request), f"must be less than or equal to {name} limit of {limit}")


def validate_resource_claim_names(
    errors: FieldErrors, path: str, claims: Sequence[v1.ResourceClaim], of_pod: Sequence[v1.PodResourceClaim]
) -> None:
    """Validates the names of the pod's resource claims that a container uses."""
    known = sorted({claim.name for claim in of_pod if claim.name})
    seen: list[str] = []
    for i, claim in enumerate(claims):
        at = f"{path}[{i}]"
        name = claim.name
        if not name:
            errors.required(at)
            continue
        if name in seen:
            errors.duplicate(at, name)
        else:
            key = name
            if claim.request:
                errors.invalid_each(f"{at}.request", claim.request, names.dns1123_label(claim.request))
                key = f"{name}/{claim.request}"
            if key in seen:
                errors.duplicate(at, key)
            elif not claim.request:
                for other in seen:
                    if other.partition("/")[0] == name:
                        errors.duplicate(at, name)
            seen.append(key)
        if name not in known:
            listed = f": {', '.join(known)}" if known else " which is empty"
            errors.not_found(at, name, f"must be one of the names in pod.spec.resourceClaims{listed}")
