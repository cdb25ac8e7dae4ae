"""Where services lead: Endpoints and EndpointSlices."""

from __future__ import annotations

from steersman.api.generated import core_v1 as v1
from steersman.api.generated import discovery_v1
from steersman.api.label_syntax import value_errors
from steersman.server.status_errors import IMMUTABLE
from steersman.server.validation import addresses
from steersman.server.validation import metadata as meta
from steersman.server.validation import names as text
from steersman.server.validation.field_errors import FieldErrors
from steersman.server.validation.pods.containers import PROTOCOLS

_TYPES = ("FQDN", "IPv4", "IPv6")
_ENDPOINTS = 1000
_ADDRESSES = 100
_PORTS = 20000
_HINTS = 8


def create(errors: FieldErrors, obj: v1.Endpoints) -> None:
    meta.check(errors, obj.metadata)
    _subsets(errors, obj.subsets)


def update(errors: FieldErrors, new: v1.Endpoints, old: v1.Endpoints) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    meta.again(errors, new.metadata, old.metadata, text.subdomain)
    if new.subsets != old.subsets:
        _subsets(errors, new.subsets)


def _subsets(errors: FieldErrors, subsets: tuple[v1.EndpointSubset, ...]) -> None:
    for i, subset in enumerate(subsets):
        path = f"subsets[{i}]"
        if not subset.addresses and not subset.notReadyAddresses:
            errors.required(path, "must specify `addresses` or `notReadyAddresses`")
        for name in ("addresses", "notReadyAddresses"):
            for j, address in enumerate(getattr(subset, name)):
                _address(errors, f"{path}.{name}[{j}]", address)
        for j, port in enumerate(subset.ports):
            _port(errors, f"{path}.ports[{j}]", port, len(subset.ports) > 1)


def _address(errors: FieldErrors, path: str, address: v1.EndpointAddress) -> None:
    addresses.valid(errors, f"{path}.ip", address.ip)
    if address.hostname:
        errors.invalid_each(f"{path}.hostname", address.hostname, text.label(address.hostname))
    if address.nodeName is not None:
        errors.invalid_each(f"{path}.nodeName", address.nodeName, text.subdomain(address.nodeName))
    addresses.endpoint(errors, f"{path}.ip", address.ip)


def _port(errors: FieldErrors, path: str, port: v1.EndpointPort, needs_name: bool) -> None:
    if port.name:
        errors.invalid_each(f"{path}.name", port.name, text.label(port.name))
    elif needs_name:
        errors.required(f"{path}.name")
    errors.invalid_each(f"{path}.port", port.port, text.port(port.port))
    errors.enum(f"{path}.protocol", port.protocol, PROTOCOLS)
    if port.appProtocol is not None:
        errors.invalid_each(f"{path}.appProtocol", port.appProtocol, text.qualified(port.appProtocol))


# -- EndpointSlices ---------------------------------------------------------------------------


def slice_create(errors: FieldErrors, obj: discovery_v1.EndpointSlice) -> None:
    meta.check(errors, obj.metadata)
    _slice(errors, obj, None)


def slice_update(
    errors: FieldErrors, new: discovery_v1.EndpointSlice, old: discovery_v1.EndpointSlice
) -> None:
    meta.again(errors, new.metadata, old.metadata, text.subdomain)
    _slice(errors, new, old)
    if new.addressType != old.addressType:
        errors.invalid("addressType", new.addressType, IMMUTABLE)


def _slice(
    errors: FieldErrors, obj: discovery_v1.EndpointSlice, old: discovery_v1.EndpointSlice | None
) -> None:
    errors.enum("addressType", obj.addressType, _TYPES)
    _ports(errors, obj.ports or ())
    endpoints = obj.endpoints or ()
    if old is not None and endpoints == (old.endpoints or ()):
        return
    if len(endpoints) > _ENDPOINTS:
        errors.too_many("endpoints", len(endpoints), _ENDPOINTS)
        return
    for i, endpoint in enumerate(endpoints):
        _endpoint(errors, f"endpoints[{i}]", endpoint, obj.addressType)


def _endpoint(errors: FieldErrors, path: str, endpoint: discovery_v1.Endpoint, type_: str) -> None:
    given = endpoint.addresses or ()
    at = f"{path}.addresses"
    if not given:
        errors.required(at, "must contain at least 1 address")
    elif len(given) > _ADDRESSES:
        errors.too_many(at, len(given), _ADDRESSES)
    for i, address in enumerate(given):
        _slice_address(errors, at, i, address, type_)
    if endpoint.nodeName is not None:
        errors.invalid_each(f"{path}.nodeName", endpoint.nodeName, text.subdomain(endpoint.nodeName))
    if endpoint.hostname is not None:
        errors.invalid_each(f"{path}.hostname", endpoint.hostname, text.label(endpoint.hostname))
    if endpoint.hints is not None:
        _hints(errors, f"{path}.hints", endpoint.hints)


def _slice_address(errors: FieldErrors, path: str, i: int, address: str, type_: str) -> None:
    at = f"{path}[{i}]"
    if type_ == "IPv4":
        if addresses.valid(errors, at, address):
            if not addresses.is_ipv4(address):
                errors.invalid(path, address, "must be an IPv4 address")
            addresses.endpoint(errors, at, address)
    elif type_ == "IPv6":
        if addresses.canonical(errors, at, address):
            if not addresses.is_ipv6(address):
                errors.invalid(path, address, "must be an IPv6 address")
            addresses.endpoint(errors, at, address)
    elif type_ == "FQDN":
        text.domain_name(errors, at, address)


def _ports(errors: FieldErrors, ports: tuple[discovery_v1.EndpointPort, ...]) -> None:
    if len(ports) > _PORTS:
        errors.too_many("ports", len(ports), _PORTS)
        return
    names: set[str] = set()
    for i, port in enumerate(ports):
        name = port.name or ""
        if name:
            errors.invalid_each(f"ports[{i}].name", name, text.label(name))
        if name in names:
            errors.duplicate(f"ports[{i}].name", name)
        names.add(name)
        if port.protocol is None:
            errors.required(f"ports[{i}].protocol")
        elif port.protocol not in PROTOCOLS:
            errors.not_supported(f"ports[{i}].protocol", port.protocol, PROTOCOLS)
        if port.appProtocol is not None:
            errors.invalid_each(f"ports[{i}].appProtocol", port.appProtocol, text.qualified(port.appProtocol))


def _hints(errors: FieldErrors, path: str, hints: discovery_v1.EndpointHints) -> None:
    for name, rule in (("forZones", value_errors), ("forNodes", text.subdomain)):
        given = getattr(hints, name)
        if len(given) > _HINTS:
            errors.too_many(f"{path}.{name}", len(given), _HINTS)
            return
        seen: list[str] = []
        for i, hint in enumerate(given):
            at = f"{path}.{name}[{i}].name"
            if hint.name in seen:
                errors.duplicate(at, hint.name)
            seen.append(hint.name)
            errors.invalid_each(at, hint.name, rule(hint.name))
