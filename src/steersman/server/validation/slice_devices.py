"""Validation of what a device of a ResourceSlice has: attributes, capacity, and the counters that devices share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from steersman.api.generated import resource_v1 as v1
from steersman.api.generated.base import Quantity as Amount
from steersman.api.quantity import Quantity
from steersman.server.validation import names
from steersman.server.validation.devices import each, validate_qualified_name
from steersman.server.validation.field_errors import FieldErrors, go_struct
from steersman.server.validation.resources import parse_quantity

T = TypeVar("T")
MAX_VALUES = 48
"""Values of all attributes of a device; each item of a list counts."""
MAX_TEXT = 64
"""Bytes of an attribute."""
MAX_COUNTER_SETS, MAX_COUNTERS, MAX_CONSUMPTIONS, MAX_OPTIONS = 8, 32, 2, 10
_SHORTEST = 16
"""Bytes of a key that paths show in any case."""
_is_version = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-((0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(\+([0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*))?",
    re.ASCII,
).fullmatch
_ONE_VALUE = "exactly one value must be specified"
_KINDS: Mapping[str, str] = {
    "int": "IntValue",
    "bool": "BoolValue",
    "string": "StringValue",
    "version": "VersionValue",
    "ints": "IntValues",
    "bools": "BoolValues",
    "strings": "StringValues",
    "versions": "VersionValues",
}
"""The fields of an attribute and their names in Go, in Go's order."""


def _validate_map(
    errors: FieldErrors,
    path: str,
    items: Mapping[str, T],
    longest: int,
    validate_key: Callable[[FieldErrors, str, str], None],
    validate: Callable[[FieldErrors, str, T], None],
) -> None:
    """Validates a map by key. Upstream has no order for them. Paths show at most so many bytes of a key."""
    longest = max(longest, _SHORTEST)
    for key, item in items.items():
        validate_key(errors, path, key)
        shown = key
        if len(key) > longest:
            rest = longest - 3
            shown = f"{key[: (rest + 1) // 2]}...{key[len(key) - rest // 2 :]}"
        validate(errors, f"{path}[{shown}]", item)


# -- attributes -------------------------------------------------------------------------------


def validate_contents(errors: FieldErrors, path: str, device: v1.Device) -> None:
    """Validates the attributes and the capacity of a device."""
    count = sum(
        len(attribute.bools) + len(attribute.ints) + len(attribute.strings) + len(attribute.versions)
        + sum(getattr(attribute, name) is not None for name in ("bool", "int", "string", "version"))
        for attribute in device.attributes.values()
    )  # fmt: skip
    if count > MAX_VALUES:
        errors.invalid(path, count, f"the total number of attribute values must not exceed {MAX_VALUES}")
    longest = 63 + 1 + 32
    attributes, capacity = f"{path}.attributes", f"{path}.capacity"
    _validate_map(
        errors, attributes, device.attributes, longest, validate_qualified_name, _validate_attribute
    )
    validate = _validate_shared_capacity if device.allowMultipleAllocations else _validate_whole_capacity
    _validate_map(errors, capacity, device.capacity, longest, validate_qualified_name, validate)


def _validate_attribute(errors: FieldErrors, path: str, attribute: v1.DeviceAttribute) -> None:
    if attribute.string is not None:
        _validate_text(errors, f"{path}.string", attribute.string)
    if attribute.version is not None:
        _validate_version(errors, f"{path}.version", attribute.version)
    for i, text in enumerate(attribute.strings):
        _validate_text(errors, f"{path}.strings[{i}]", text)
    for i, text in enumerate(attribute.versions):
        _validate_version(errors, f"{path}.versions[{i}]", text)
    values = {name: getattr(attribute, name) for name in _KINDS}
    given = {name: value for name, value in values.items() if value is not None and value != ()}
    if not given:
        errors.invalid(path, "", _ONE_VALUE)
    elif len(given) > 1:
        shown = {go: given.get(name) for name, go in _KINDS.items()}
        errors.invalid(path, go_struct(**shown), _ONE_VALUE)


def _validate_text(errors: FieldErrors, path: str, text: str) -> None:
    if len(text.encode()) > MAX_TEXT:
        errors.too_long(path, MAX_TEXT)


def _validate_version(errors: FieldErrors, path: str, text: str) -> None:
    if not _is_version(text):
        errors.invalid(path, text, "must be a string compatible with semver.org spec 2.0.0")
    _validate_text(errors, path, text)


# -- capacity ---------------------------------------------------------------------------------


def _validate_whole_capacity(errors: FieldErrors, path: str, capacity: v1.DeviceCapacity) -> None:
    if capacity.requestPolicy is not None:
        errors.forbidden(f"{path}.requestPolicy", "allowMultipleAllocations must be true")


def _validate_shared_capacity(errors: FieldErrors, path: str, capacity: v1.DeviceCapacity) -> None:
    """Validates how much of a capacity can be requested."""
    policy, path = capacity.requestPolicy, f"{path}.requestPolicy"
    if policy is None:
        return
    named = "validValues" if policy.validValues else "validRange"
    if policy.validValues and policy.validRange is not None:
        both = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        errors.forbidden(path, both)
    elif policy.default is None:
        if policy.validValues or policy.validRange is not None:
            errors.required(f"{path}.default", f"required when {named} is defined")
    elif policy.validValues:
        default, whole = parse_quantity(policy.default), parse_quantity(capacity.value)
        _validate_options(errors, f"{path}.{named}", policy.validValues, default, whole)
    elif policy.validRange is not None:
        default, whole = parse_quantity(policy.default), parse_quantity(capacity.value)
        _validate_range(errors, f"{path}.{named}", policy.validRange, default, whole)


def _validate_options(
    errors: FieldErrors, path: str, values: Sequence[Amount], default: Quantity, whole: Quantity
) -> None:
    options = [parse_quantity(value) for value in values]
    for i, (option, following) in enumerate(pairwise(options)):
        if option.nanos > following.nanos:
            errors.invalid(f"{path}[{i + 1}]", str(following), "values must be sorted in ascending order")

    def option_is_there(errors: FieldErrors, at: str, option: Quantity) -> None:
        if option.nanos > whole.nanos:
            errors.invalid(at, str(option), f"option is larger than capacity value: {whole}")

    each(errors, path, options, MAX_OPTIONS, option_is_there, lambda one: one.value(), _rounded)
    if len(options) > MAX_OPTIONS or all(option.nanos != default.nanos for option in options):
        errors.invalid(path, str(default), "default value is not valid according to the requestPolicy")


def _rounded(option: Quantity) -> str:
    return str(option.value())


def _validate_range(
    errors: FieldErrors,
    path: str,
    given: v1.CapacityRequestPolicyRange,
    default: Quantity,
    whole: Quantity,
) -> None:
    if given.min is None:
        errors.required(f"{path}.min", "required when validRange is defined")
        return
    least = parse_quantity(given.min)
    if least.nanos > whole.nanos:
        errors.invalid(f"{path}.min", str(least), f"min is larger than capacity value: {whole}")
    if default.nanos < least.nanos:
        errors.invalid(f"{path}.min", str(default), f"default is less than min: {least}")
    most = None if given.max is None else parse_quantity(given.max)
    if most is not None:
        if least.nanos > most.nanos:
            errors.invalid(f"{path}.max", str(least), f"min is larger than max: {most}")
        if most.nanos > whole.nanos:
            errors.invalid(f"{path}.max", str(most), f"max is larger than capacity value: {whole}")
        if default.nanos > most.nanos:
            errors.invalid(f"{path}.max", str(default), f"default is more than max: {most}")
    if given.step is None:
        return
    step, at = parse_quantity(given.step), f"{path}.step"
    if least.nanos + step.nanos > whole.nanos:
        added = Quantity(least.nanos + step.nanos, least.format)
        errors.invalid(at, str(step), f"one step {added} is larger than capacity value: {whole}")
    for value in (default, most):
        # differs: upstream panics where a step is zero, and answers 500
        if value is not None and step.value() and (value.value() - least.value()) % step.value():
            why = f"value is not a multiple of a given step ({step}) from ({least})"
            errors.invalid(at, str(value), why)


# -- counters ---------------------------------------------------------------------------------


def validate_shared_counters(errors: FieldErrors, path: str, sets: Sequence[v1.CounterSet]) -> None:
    def counter_set(errors: FieldErrors, at: str, one: v1.CounterSet) -> None:
        _validate_counters(errors, at, "name", one.name, one.counters)

    each(errors, path, sets, MAX_COUNTER_SETS, counter_set, lambda one: one.name)


def validate_consumed_counters(
    errors: FieldErrors, path: str, consumed: Sequence[v1.DeviceCounterConsumption]
) -> None:
    def consumption(errors: FieldErrors, at: str, one: v1.DeviceCounterConsumption) -> None:
        _validate_counters(errors, at, "counterSet", one.counterSet, one.counters)

    each(errors, path, consumed, MAX_CONSUMPTIONS, consumption, lambda one: one.counterSet)


def _validate_counters(
    errors: FieldErrors, path: str, field: str, name: str, counters: Mapping[str, v1.Counter]
) -> None:
    """Validates a set of counters, and the field that names it."""
    if not name:
        errors.required(f"{path}.{field}")
    else:
        _validate_counter_name(errors, f"{path}.{field}", name)
    if not counters:
        errors.required(f"{path}.counters")
    elif len(counters) > MAX_COUNTERS:
        errors.too_many(f"{path}.counters", len(counters), MAX_COUNTERS)
    else:
        _validate_map(errors, f"{path}.counters", counters, 63, _validate_counter_name, _validate_nothing)


def _validate_counter_name(errors: FieldErrors, path: str, name: str) -> None:
    errors.invalid_each(path, name, names.dns1123_label(name))


def _validate_nothing(errors: FieldErrors, path: str, counter: v1.Counter) -> None:
    """Any quantity will do."""
