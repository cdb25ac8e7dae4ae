"""Label selectors of workloads: compiles ``spec.selector`` and refuses selectors that no workload can act on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from steersman.api.kinds import LabelSelector, Object
from steersman.api.label_selectors import NOTHING, Selector, compile_selector


class SelectorSpec(Protocol):
    """A workload's spec, as far as it selects pods."""

    @property
    def selector(self) -> LabelSelector | Mapping[str, str] | None: ...


class Workload(Protocol):
    """An object whose ``spec.selector`` says which objects it may own."""

    @property
    def spec(self) -> SelectorSpec: ...


def selector_of(workload: Workload) -> Selector:
    """The compiled selector. Raises ValueError where it is missing, empty or malformed."""
    # differs: upstream relies on validation alone. A workload that selects every pod of its namespace
    # would adopt and delete pods of others; one that selects none would create pods for ever.
    if workload.spec.selector is None:
        raise ValueError("spec.selector is missing")
    compiled = compile_selector(workload.spec.selector)
    if compiled.empty:
        raise ValueError("spec.selector is empty and would select every pod")
    return compiled


def selector_or_nothing(workload: Workload) -> Selector:
    """The compiled selector, or one that matches nothing where `selector_of` would raise."""
    try:
        return selector_of(workload)
    except ValueError:
        return NOTHING


def selects(workload: Workload, obj: Object) -> bool:
    """Whether the workload's selector matches an object; False for an invalid selector."""
    return selector_or_nothing(workload).matches(obj.metadata.labels)
