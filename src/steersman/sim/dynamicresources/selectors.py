"""CEL selectors on devices: the variable ``device`` of a selector, and whether a device matches.

``device.attributes`` and ``device.capacity`` are maps by domain; a name without a domain has that of the driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.api.bounded_cache import BoundedCache
from steersman.api.cel import CelError, parse
from steersman.api.cel.evaluator import EvaluationError, compiled
from steersman.api.cel.program import Program
from steersman.api.cel.runtime.kubernetes import parse_semver
from steersman.api.generated import resource_v1 as v1
from steersman.api.quantity import Quantity

_programs: BoundedCache[str, Program | CelError] = BoundedCache(256)


class SelectorError(Exception):
    """A selector that cannot be compiled or evaluated. The message has upstream's beginning."""


class _Domains(dict[str, dict[str, Any]]):
    """Names by domain. A domain that a device does not have is an empty map, as upstream."""

    def __missing__(self, domain: str) -> dict[str, Any]:
        return {}


def matches(selector: v1.DeviceSelector, driver: str, device: v1.Device) -> bool:
    """Whether a device matches a selector. Raises `SelectorError`."""
    if selector.cel is None:
        raise SelectorError("CEL expression empty (unsupported selector type?)")
    program = _compiled(selector.cel.expression)
    try:
        found = program.evaluate(variable(driver, device)).value
    except EvaluationError as error:
        raise SelectorError(f"CEL runtime error: {error}") from None
    if not isinstance(found, bool):
        raise SelectorError("CEL runtime error: CEL result could not be converted to bool")
    return found


def _compiled(source: str) -> Program:
    found = _programs.get(source)
    if found is None:
        try:
            found = compiled(parse(source), "device")
        except CelError as error:
            found = error
        _programs.put(source, found)
    if isinstance(found, CelError):
        raise SelectorError(f"CEL compile error: compilation failed: {found}")
    return found


def variable(driver: str, device: v1.Device) -> Mapping[str, object]:
    """The variable ``device``. Raises `SelectorError` where an attribute has no value that is known here."""
    attributes, capacity = _Domains(), _Domains()
    for name, attribute in device.attributes.items():
        domain, short = qualified(name, driver)
        attributes.setdefault(domain, {})[short] = _value(name, attribute)
    for name, amount in device.capacity.items():
        domain, short = qualified(name, driver)
        capacity.setdefault(domain, {})[short] = Quantity.parse(str(amount.value))
    return {
        "driver": driver,
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": bool(device.allowMultipleAllocations),
    }


def qualified(name: str, driver: str) -> tuple[str, str]:
    """The domain and the identifier of an attribute or a capacity."""
    domain, slash, short = name.rpartition("/")
    return (domain, short) if slash else (driver, name)


def _value(name: str, attribute: v1.DeviceAttribute) -> object:
    for value in (attribute.int, attribute.bool, attribute.string):
        if value is not None:
            return value
    if attribute.version is not None:
        try:
            return parse_semver(attribute.version)
        except EvaluationError as error:
            raise SelectorError(f"attribute {name}: parse semantic version: {error}") from None
    raise SelectorError(f"attribute {name}: unsupported attribute value")
