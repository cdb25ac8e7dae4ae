"""Validation of DeviceClasses, ResourceClaims and ResourceClaimTemplates: what is asked for, what is allocated, and what drivers report.

differs: CEL expressions of selectors are not compiled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from steersman.api.generated import resource_v1 as v1
from steersman.api.ip_addresses import parse_cidr, parse_ip
from steersman.api.label_syntax import MAX_SUBDOMAIN, value_errors
from steersman.server.validation import metadata as meta
from steersman.server.validation import names
from steersman.server.validation.field_errors import NULL, FieldErrors, go_struct
from steersman.server.validation.resources import is_extended
from steersman.server.validation.rules import AnyRules, GroupKind, Rules
from steersman.server.validation.selectors import validate_node_selector
from steersman.server.validation.volumes import validate_csi_driver_name

T = TypeVar("T")
RequestNames = Mapping[str, frozenset[str]]
"""The requests of a claim, each with the names of its subrequests."""

MAX_REQUESTS = MAX_RESULTS = MAX_CONSTRAINTS = MAX_CONFIGS = MAX_SELECTORS = 32
MAX_SUBREQUESTS = 8
MAX_CONSUMERS = 256
MAX_BINDING_CONDITIONS = 4
MAX_DEVICE_CONDITIONS = 8
MAX_ADDRESSES = 16
MAX_EXPRESSION = MAX_JSON = 10 * 1024
"""Bytes."""
MAX_IDENTIFIER = 32
"""Characters of the name of an attribute, without its domain."""
_NAMES_A_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_is_identifier = re.compile(_IDENTIFIER).fullmatch
_NOT_AN_IDENTIFIER = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
    f"characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '{_IDENTIFIER}')"
)
_is_uuid = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}").fullmatch


def each(
    errors: FieldErrors,
    path: str,
    items: Sequence[T],
    most: int,
    validate: Callable[[FieldErrors, str, T], None],
    key: Callable[[T], Hashable] | None = None,
    shown: Callable[[T], object] | None = None,
) -> None:
    """Validates a list: its length, then its items, then that no two have the same key."""
    if len(items) > most:
        errors.too_many(path, len(items), most)
        return
    for i, item in enumerate(items):
        validate(errors, f"{path}[{i}]", item)
    seen: set[Hashable] = set()
    for i, item in enumerate(items if key is not None else ()):
        assert key is not None
        if (value := key(item)) in seen:
            errors.duplicate(f"{path}[{i}]", value if shown is None else shown(item))
        seen.add(value)


def _itself(text: str) -> str:
    return text


# -- claims ---------------------------------------------------------------------------------------


def validate_claim(errors: FieldErrors, obj: v1.ResourceClaim) -> None:
    meta.validate_object_meta(errors, obj.metadata)
    _validate_spec(errors, "spec", obj.spec)


def validate_claim_update(errors: FieldErrors, new: v1.ResourceClaim, old: v1.ResourceClaim) -> None:
    meta.validate_changed_object_meta(errors, new.metadata, old.metadata, names.dns1123_subdomain)
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    errors.immutable("spec", new.spec, old.spec)


def validate_template(errors: FieldErrors, obj: v1.ResourceClaimTemplate) -> None:
    meta.validate_object_meta(errors, obj.metadata)
    meta.validate_template_meta(errors, "spec.metadata", obj.spec.metadata)
    _validate_spec(errors, "spec.spec", obj.spec.spec)


def validate_template_update(
    errors: FieldErrors, new: v1.ResourceClaimTemplate, old: v1.ResourceClaimTemplate
) -> None:
    """Validates the new template as a whole, too, though it cannot be another."""
    validate_template(errors, new)
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    errors.immutable("spec", new.spec, old.spec)


def _validate_spec(errors: FieldErrors, path: str, spec: v1.ResourceClaimSpec) -> None:
    path, claim, known = f"{path}.devices", spec.devices, request_names(spec.devices)
    each(
        errors,
        f"{path}.requests",
        claim.requests or (),
        MAX_REQUESTS,
        _validate_request,
        lambda one: one.name,
    )

    def constraint(errors: FieldErrors, at: str, one: v1.DeviceConstraint) -> None:
        _validate_request_refs(errors, f"{at}.requests", one.requests, known)
        if one.matchAttribute is not None:
            _validate_attribute(errors, f"{at}.matchAttribute", one.matchAttribute)
        elif one.distinctAttribute is not None:
            _validate_attribute(errors, f"{at}.distinctAttribute", one.distinctAttribute)
        else:
            # As upstream, which has the words of another case here.
            message = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
            errors.required(at, message)

    def config(errors: FieldErrors, at: str, one: v1.DeviceClaimConfiguration) -> None:
        _validate_request_refs(errors, f"{at}.requests", one.requests, known)
        _validate_opaque(errors, f"{at}.opaque", one.opaque)

    each(errors, f"{path}.constraints", claim.constraints, MAX_CONSTRAINTS, constraint)
    each(errors, f"{path}.config", claim.config, MAX_CONFIGS, config)


def request_names(claim: v1.DeviceClaim) -> RequestNames:
    return {
        request.name: frozenset(each.name for each in request.firstAvailable)
        for request in claim.requests or ()
    }


def _validate_request(errors: FieldErrors, path: str, request: v1.DeviceRequest) -> None:
    errors.invalid_each(f"{path}.name", request.name, names.dns1123_label(request.name))
    exactly, alternatives = request.exactly, request.firstAvailable
    if exactly is None and not alternatives:
        errors.required(path, "exactly one of `exactly` or `firstAvailable` is required")
    elif exactly is not None and alternatives:
        message = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
        errors.invalid(path, NULL, message)
    elif exactly is not None:
        _validate_choice(errors, f"{path}.exactly", exactly)
    else:
        at = f"{path}.firstAvailable"
        each(errors, at, alternatives, MAX_SUBREQUESTS, _validate_alternative, lambda one: one.name)


def _validate_alternative(errors: FieldErrors, path: str, request: v1.DeviceSubRequest) -> None:
    errors.invalid_each(f"{path}.name", request.name, names.dns1123_label(request.name))
    _validate_choice(errors, path, request)


def _validate_choice(
    errors: FieldErrors, path: str, request: v1.ExactDeviceRequest | v1.DeviceSubRequest
) -> None:
    class_name = request.deviceClassName
    if not class_name:
        errors.required(f"{path}.deviceClassName")
    else:
        errors.invalid_each(f"{path}.deviceClassName", class_name, names.dns1123_subdomain(class_name))
    each(errors, f"{path}.selectors", request.selectors, MAX_SELECTORS, _validate_selector)
    match request.allocationMode:
        case "All":
            if request.count:
                message = "must not be specified when allocationMode is 'All'"
                errors.invalid(f"{path}.count", request.count, message)
        case "ExactCount":
            errors.positive(f"{path}.count", request.count)
        case mode:
            errors.not_supported(f"{path}.allocationMode", mode, ("All", "ExactCount"))
    for i, toleration in enumerate(request.tolerations):
        _validate_toleration(errors, f"{path}.tolerations[{i}]", toleration)


def _validate_selector(errors: FieldErrors, path: str, selector: v1.DeviceSelector) -> None:
    if selector.cel is None:
        errors.required(f"{path}.cel")
    elif len(selector.cel.expression.encode()) > MAX_EXPRESSION:
        errors.too_long(f"{path}.cel.expression", MAX_EXPRESSION)


def _validate_toleration(errors: FieldErrors, path: str, toleration: v1.DeviceToleration) -> None:
    if toleration.key:
        errors.invalid_each(f"{path}.key", toleration.key, names.qualified_name(toleration.key))
    match toleration.operator:
        case "Exists":
            if toleration.value:
                errors.invalid(f"{path}.value", toleration.value, "must be empty for operator `Exists`")
        case "Equal":
            errors.invalid_each(f"{path}.value", toleration.value, value_errors(toleration.value))
        case operator:
            errors.enum(f"{path}.operator", operator, ("Equal", "Exists"))
    if toleration.effect:
        errors.enum(f"{path}.effect", toleration.effect, ("NoExecute", "NoSchedule", "None"))


def _validate_attribute(errors: FieldErrors, path: str, name: str) -> None:
    """The name of an attribute with its domain."""
    validate_qualified_name(errors, path, name)
    if "/" not in name:
        message = "a fully qualified name must be a domain and a name separated by a slash"
        errors.invalid(path, name, message)


def validate_qualified_name(errors: FieldErrors, path: str, name: str) -> None:
    """The name of an attribute or a capacity, with a domain or without. As upstream, one with two slashes will do."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        _validate_identifier(errors, path, name)
    elif "/" not in identifier:
        if not domain:
            errors.invalid(path, "", "the domain must not be empty")
        else:
            validate_csi_driver_name(errors, path, domain)
        if not identifier:
            errors.invalid(path, "", "the name must not be empty")
        else:
            _validate_identifier(errors, path, identifier)


def _validate_identifier(errors: FieldErrors, path: str, name: str) -> None:
    if len(name.encode()) > MAX_IDENTIFIER:
        errors.too_long(path, MAX_IDENTIFIER)
    if not _is_identifier(name):
        errors.invalid(path, name, _NOT_AN_IDENTIFIER)


def _validate_request_refs(
    errors: FieldErrors, path: str, requests: Sequence[str], known: RequestNames
) -> None:
    each(
        errors,
        path,
        requests,
        MAX_REQUESTS,
        lambda errors, at, name: _validate_request_ref(errors, at, name, known),
        _itself,
    )


def _validate_request_ref(errors: FieldErrors, path: str, name: str, known: RequestNames) -> None:
    """A request of the claim, or a subrequest: ``request/subrequest``."""
    request, *rest = name.split("/")
    if len(rest) > 1:
        errors.invalid(path, name, _NAMES_A_REQUEST)
        return
    for part in (request, *rest):
        errors.invalid_each(path, part, names.dns1123_label(part))
    if request not in known or not known[request].issuperset(rest):
        errors.invalid(path, name, _NAMES_A_REQUEST)


def _validate_opaque(errors: FieldErrors, path: str, config: v1.OpaqueDeviceConfiguration | None) -> None:
    if config is None:
        errors.required(path)
        return
    validate_csi_driver_name(errors, f"{path}.driver", config.driver)
    _validate_json_object(errors, f"{path}.parameters", config.parameters)


def _validate_json_object(errors: FieldErrors, path: str, value: Any) -> None:
    if value is None:
        errors.required(path)
    elif len(msgspec.json.encode(value, enc_hook=dict)) > MAX_JSON:
        errors.too_long(path, MAX_JSON)
    elif not isinstance(value, Mapping):
        errors.invalid(path, "<value omitted>", "must be a valid JSON object")


# -- status ---------------------------------------------------------------------------------------


def validate_claim_status(errors: FieldErrors, new: v1.ResourceClaim, old: v1.ResourceClaim) -> None:
    """An allocation is made as a whole and does not change; consumers and reports of devices depend on it."""
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    status, allocation = new.status, new.status.allocation
    each(
        errors,
        "status.reservedFor",
        status.reservedFor,
        MAX_CONSUMERS,
        _validate_consumer,
        lambda one: one.uid,
    )
    allocated = {_identity(each) for each in allocation.devices.results} if allocation is not None else set()

    def device(errors: FieldErrors, path: str, one: v1.AllocatedDeviceStatus) -> None:
        _validate_device(errors, path, one, allocated=_identity(one) in allocated)

    each(errors, "status.devices", status.devices, len(status.devices), device, _identity, _shown_identity)
    if status.reservedFor and allocation is None:
        errors.forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
    elif new.metadata.deletionTimestamp is not None and not set(old.status.reservedFor).issuperset(
        status.reservedFor
    ):
        message = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        errors.forbidden("status.reservedFor", message)
    if allocation is not None and old.status.allocation is not None:
        errors.immutable("status.allocation", allocation, old.status.allocation)
    elif allocation is not None:
        _validate_allocation(errors, "status.allocation", allocation, request_names(new.spec.devices))


def _validate_consumer(errors: FieldErrors, path: str, ref: v1.ResourceClaimConsumerReference) -> None:
    for name in ("resource", "name", "uid"):
        if not getattr(ref, name):
            errors.required(f"{path}.{name}")


def _identity(device: v1.AllocatedDeviceStatus | v1.DeviceRequestAllocationResult) -> tuple[str | None, ...]:
    """The device, and the share of it that is allocated."""
    return device.driver, device.pool, device.device, device.shareID


def _shown_identity(device: v1.AllocatedDeviceStatus) -> object:
    return go_struct(
        Driver=device.driver, Pool=device.pool, Device=device.device, ShareID=device.shareID or ""
    )


def _validate_allocation(
    errors: FieldErrors, path: str, allocation: v1.AllocationResult, known: RequestNames
) -> None:
    def result(errors: FieldErrors, at: str, one: v1.DeviceRequestAllocationResult) -> None:
        _validate_request_ref(errors, f"{at}.request", one.request, known)
        _validate_device_name(errors, at, one)
        validate_binding_conditions(errors, at, one.bindingConditions, one.bindingFailureConditions)
        _validate_share(errors, f"{at}.shareID", one.shareID)

    def config(errors: FieldErrors, at: str, one: v1.DeviceAllocationConfiguration) -> None:
        errors.enum(f"{at}.source", one.source, ("FromClaim", "FromClass"))
        _validate_request_refs(errors, f"{at}.requests", one.requests, known)
        _validate_opaque(errors, f"{at}.opaque", one.opaque)

    each(errors, f"{path}.devices.results", allocation.devices.results, MAX_RESULTS, result)
    # Those of the claim, and those of its class.
    each(errors, f"{path}.devices.config", allocation.devices.config, 2 * MAX_CONFIGS, config)
    if allocation.nodeSelector is not None:
        validate_node_selector(errors, f"{path}.nodeSelector", allocation.nodeSelector)


def _validate_device_name(
    errors: FieldErrors, path: str, device: v1.AllocatedDeviceStatus | v1.DeviceRequestAllocationResult
) -> None:
    validate_csi_driver_name(errors, f"{path}.driver", device.driver)
    validate_pool(errors, f"{path}.pool", device.pool)
    errors.invalid_each(f"{path}.device", device.device, names.dns1123_label(device.device))


def validate_pool(errors: FieldErrors, path: str, name: str) -> None:
    """DNS subdomains separated by slashes."""
    if not name:
        errors.required(path)
        return
    if len(name.encode()) > MAX_SUBDOMAIN:
        errors.too_long(path, MAX_SUBDOMAIN)
    for part in name.split("/"):
        errors.invalid_each(path, part, names.dns1123_subdomain(part))


def _validate_share(errors: FieldErrors, path: str, share: str | None) -> None:
    if share is None:
        return
    if not _is_uuid(share):
        # differs: upstream also reads UUIDs in braces, with a prefix and without dashes, to refuse them in other words.
        size = len(share.encode())
        problem = "invalid UUID format" if size == 36 else f"invalid UUID length: {size}"
        errors.invalid(path, share, f"error validating uid: {problem}")
    elif share != share.lower():
        message = (
            "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` "
            "with lowercase hexadecimal characters"
        )
        errors.invalid(path, share, message)


def validate_binding_conditions(
    errors: FieldErrors, path: str, conditions: Sequence[str], failures: Sequence[str]
) -> None:
    at, failures_at = f"{path}.bindingConditions", f"{path}.bindingFailureConditions"

    def name(errors: FieldErrors, at: str, condition: str) -> None:
        errors.invalid_each(at, condition, names.qualified_name(condition))

    each(errors, at, conditions, MAX_BINDING_CONDITIONS, name)
    each(errors, failures_at, failures, MAX_BINDING_CONDITIONS, name)
    for i, condition in enumerate(conditions):
        if condition in conditions[:i]:
            errors.duplicate(f"{at}[{i}]", condition)
    for i, condition in enumerate(failures):
        if condition in failures[:i]:
            errors.duplicate(f"{failures_at}[{i}]", condition)
        if condition in conditions:
            message = "bindingFailureConditions must not overlap with bindingConditions"
            errors.invalid(f"{failures_at}[{i}]", condition, message)
    if failures and not conditions:
        errors.invalid(at, NULL, "bindingConditions are required to use bindingFailureConditions")
    if conditions and not failures:
        errors.invalid(failures_at, NULL, "bindingFailureConditions are required to use bindingConditions")


def _validate_device(
    errors: FieldErrors, path: str, device: v1.AllocatedDeviceStatus, *, allocated: bool
) -> None:
    _validate_device_name(errors, path, device)
    _validate_share(errors, f"{path}.shareID", device.shareID)
    if not allocated:
        errors.invalid(path, _shown_identity(device), "must be an allocated device in the claim")
    conditions = device.conditions or ()
    if len(conditions) > MAX_DEVICE_CONDITIONS:
        errors.too_many(f"{path}.conditions", len(conditions), MAX_DEVICE_CONDITIONS)
    meta.validate_conditions(errors, f"{path}.conditions", conditions)
    if device.data is not None:
        _validate_json_object(errors, f"{path}.data", device.data)
    network, at = device.networkData, f"{path}.networkData"
    if network is None:
        return
    if len(network.interfaceName.encode()) > 256:
        errors.too_long(f"{at}.interfaceName", 256)
    if len(network.hardwareAddress.encode()) > 128:
        errors.too_long(f"{at}.hardwareAddress", 128)
    each(errors, f"{at}.ips", network.ips, MAX_ADDRESSES, _validate_interface_address, _itself)


def _validate_interface_address(errors: FieldErrors, path: str, text: str) -> None:
    """An address with the prefix length of its network, in canonical form."""
    block, address = parse_cidr(text), parse_ip(text.partition("/")[0])
    if block is None or address is None:
        message = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        errors.invalid(path, text, message)
    elif text != (canonical := f"{address}/{block.prefixlen}"):
        errors.invalid(path, text, f'must be in canonical form ("{canonical}")')


# -- classes --------------------------------------------------------------------------------------


def validate_class(errors: FieldErrors, obj: v1.DeviceClass) -> None:
    meta.validate_object_meta(errors, obj.metadata, _long_name, namespaced=False)
    _validate_class_spec(errors, obj.spec)


def _long_name(name: str) -> tuple[str, ...]:
    """The errors of a class's name: where one is too long, upstream counts bytes here and characters elsewhere."""
    return tuple(
        why.replace("characters", "bytes") if "no more than" in why else why
        for why in names.dns1123_subdomain(name)
    )


def validate_class_update(errors: FieldErrors, new: v1.DeviceClass, old: v1.DeviceClass) -> None:
    meta.validate_changed_object_meta(
        errors, new.metadata, old.metadata, names.dns1123_subdomain, namespaced=False
    )
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    _validate_class_spec(errors, new.spec)


def _validate_class_spec(errors: FieldErrors, spec: v1.DeviceClassSpec) -> None:
    def config(errors: FieldErrors, at: str, one: v1.DeviceClassConfiguration) -> None:
        _validate_opaque(errors, f"{at}.opaque", one.opaque)

    each(errors, "spec.selectors", spec.selectors, MAX_SELECTORS, _validate_selector)
    each(errors, "spec.config", spec.config, MAX_CONFIGS, config)
    name = spec.extendedResourceName
    if name is not None and not is_extended(name):
        errors.invalid("spec.extendedResourceName", name, "must be a valid extended resource name")


RULES: Mapping[GroupKind, AnyRules] = {
    ("resource.k8s.io", "DeviceClass"): Rules(validate_class, validate_class_update),
    ("resource.k8s.io", "ResourceClaim"): Rules(
        validate_claim, validate_claim_update, status=validate_claim_status
    ),
    ("resource.k8s.io", "ResourceClaimTemplate"): Rules(validate_template, validate_template_update),
}
