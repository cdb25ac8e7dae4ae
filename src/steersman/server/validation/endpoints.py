"""Validation of Endpoints and EndpointSlices."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.generated import core_v1 as v1
from steersman.api.generated import discovery_v1
from steersman.api.label_syntax import value_errors
from steersman.server.status_errors import IMMUTABLE
from steersman.server.validation import addresses, names
from steersman.server.validation import metadata as meta
from steersman.server.validation.field_errors import FieldErrors
from steersman.server.validation.pods.containers import PROTOCOLS
from steersman.server.validation.rules import AnyRules, GroupKind, Rules

_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_MAX_ENDPOINTS = 1000
_MAX_ADDRESSES = 100
_MAX_PORTS = 20000
_MAX_HINTS = 8


def validate_endpoints(errors: FieldErrors, obj: v1.Endpoints) -> None:
    meta.validate_object_meta(errors, obj.metadata)
    _validate_subsets(errors, obj.subsets)


def validate_endpoints_update(errors: FieldErrors, new: v1.Endpoints, old: v1.Endpoints) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    meta.validate_changed_object_meta(errors, new.metadata, old.metadata, names.dns1123_subdomain)
    if new.subsets != old.subsets:
        _validate_subsets(errors, new.subsets)


def _validate_subsets(errors: FieldErrors, subsets: tuple[v1.EndpointSubset, ...]) -> None:
    for i, subset in enumerate(subsets):
        path = f"subsets[{i}]"
        if not subset.addresses and not subset.notReadyAddresses:
            errors.required(path, "must specify `addresses` or `notReadyAddresses`")
        for name, value in (("addresses", subset.addresses), ("notReadyAddresses", subset.notReadyAddresses)):
            for j, address in enumerate(value):
                _validate_endpoint_address(errors, f"{path}.{name}[{j}]", address)
        for j, port in enumerate(subset.ports):
            _validate_endpoint_port(errors, f"{path}.ports[{j}]", port, len(subset.ports) > 1)


def _validate_endpoint_address(errors: FieldErrors, path: str, address: v1.EndpointAddress) -> None:
    addresses.validate_ip(errors, f"{path}.ip", address.ip)
    if address.hostname:
        errors.invalid_each(f"{path}.hostname", address.hostname, names.dns1123_label(address.hostname))
    if address.nodeName is not None:
        errors.invalid_each(f"{path}.nodeName", address.nodeName, names.dns1123_subdomain(address.nodeName))
    addresses.validate_endpoint_ip(errors, f"{path}.ip", address.ip)


def _validate_endpoint_port(errors: FieldErrors, path: str, port: v1.EndpointPort, needs_name: bool) -> None:
    if port.name:
        errors.invalid_each(f"{path}.name", port.name, names.dns1123_label(port.name))
    elif needs_name:
        errors.required(f"{path}.name")
    errors.invalid_each(f"{path}.port", port.port, names.port_number(port.port))
    errors.enum(f"{path}.protocol", port.protocol, PROTOCOLS)
    if port.appProtocol is not None:
        errors.invalid_each(f"{path}.appProtocol", port.appProtocol, names.qualified_name(port.appProtocol))


# -- EndpointSlices ---------------------------------------------------------------------------


def validate_endpoint_slice(errors: FieldErrors, obj: discovery_v1.EndpointSlice) -> None:
    meta.validate_object_meta(errors, obj.metadata)
    _validate_slice(errors, obj, None)


def validate_endpoint_slice_update(
    errors: FieldErrors, new: discovery_v1.EndpointSlice, old: discovery_v1.EndpointSlice
) -> None:
    meta.validate_changed_object_meta(errors, new.metadata, old.metadata, names.dns1123_subdomain)
    _validate_slice(errors, new, old)
    if new.addressType != old.addressType:
        errors.invalid("addressType", new.addressType, IMMUTABLE)


def _validate_slice(
    errors: FieldErrors, obj: discovery_v1.EndpointSlice, old: discovery_v1.EndpointSlice | None
) -> None:
    errors.enum("addressType", obj.addressType, _ADDRESS_TYPES)
    _validate_slice_ports(errors, obj.ports or ())
    endpoints = obj.endpoints or ()
    if old is not None and endpoints == (old.endpoints or ()):
        return
    if len(endpoints) > _MAX_ENDPOINTS:
        errors.too_many("endpoints", len(endpoints), _MAX_ENDPOINTS)
        return
    for i, endpoint in enumerate(endpoints):
        _validate_endpoint(errors, f"endpoints[{i}]", endpoint, obj.addressType)


def _validate_endpoint(errors: FieldErrors, path: str, endpoint: discovery_v1.Endpoint, type_: str) -> None:
    ips = endpoint.addresses or ()
    at = f"{path}.addresses"
    if not ips:
        errors.required(at, "must contain at least 1 address")
    elif len(ips) > _MAX_ADDRESSES:
        errors.too_many(at, len(ips), _MAX_ADDRESSES)
    for i, address in enumerate(ips):
        _validate_slice_address(errors, at, i, address, type_)
    if endpoint.nodeName is not None:
        errors.invalid_each(f"{path}.nodeName", endpoint.nodeName, names.dns1123_subdomain(endpoint.nodeName))
    if endpoint.hostname is not None:
        errors.invalid_each(f"{path}.hostname", endpoint.hostname, names.dns1123_label(endpoint.hostname))
    if endpoint.hints is not None:
        _validate_endpoint_hints(errors, f"{path}.hints", endpoint.hints)


def _validate_slice_address(errors: FieldErrors, path: str, i: int, address: str, type_: str) -> None:
    at = f"{path}[{i}]"
    if type_ == "IPv4":
        if addresses.validate_ip(errors, at, address):
            if not addresses.is_ipv4(address):
                errors.invalid(path, address, "must be an IPv4 address")
            addresses.validate_endpoint_ip(errors, at, address)
    elif type_ == "IPv6":
        if addresses.validate_canonical_ip(errors, at, address):
            if not addresses.is_ipv6(address):
                errors.invalid(path, address, "must be an IPv6 address")
            addresses.validate_endpoint_ip(errors, at, address)
    elif type_ == "FQDN":
        names.validate_fully_qualified_domain_name(errors, at, address)


def _validate_slice_ports(errors: FieldErrors, ports: tuple[discovery_v1.EndpointPort, ...]) -> None:
    if len(ports) > _MAX_PORTS:
        errors.too_many("ports", len(ports), _MAX_PORTS)
        return
    seen: set[str] = set()
    for i, port in enumerate(ports):
        name = port.name or ""
        if name:
            errors.invalid_each(f"ports[{i}].name", name, names.dns1123_label(name))
        if name in seen:
            errors.duplicate(f"ports[{i}].name", name)
        seen.add(name)
        if port.protocol is None:
            errors.required(f"ports[{i}].protocol")
        elif port.protocol not in PROTOCOLS:
            errors.not_supported(f"ports[{i}].protocol", port.protocol, PROTOCOLS)
        if port.appProtocol is not None:
            errors.invalid_each(
                f"ports[{i}].appProtocol", port.appProtocol, names.qualified_name(port.appProtocol)
            )


def _validate_endpoint_hints(errors: FieldErrors, path: str, hints: discovery_v1.EndpointHints) -> None:
    for name, rule in (("forZones", value_errors), ("forNodes", names.dns1123_subdomain)):
        hint_list = getattr(hints, name)
        if len(hint_list) > _MAX_HINTS:
            errors.too_many(f"{path}.{name}", len(hint_list), _MAX_HINTS)
            return
        seen: list[str] = []
        for i, hint in enumerate(hint_list):
            at = f"{path}.{name}[{i}].name"
            if hint.name in seen:
                errors.duplicate(at, hint.name)
            seen.append(hint.name)
            errors.invalid_each(at, hint.name, rule(hint.name))


RULES: Mapping[GroupKind, AnyRules] = {
    ("", "Endpoints"): Rules[v1.Endpoints](validate_endpoints, validate_endpoints_update),
    ("discovery.k8s.io", "EndpointSlice"): Rules[discovery_v1.EndpointSlice](
        validate_endpoint_slice, validate_endpoint_slice_update
    ),
}
