"""What an owner of pods selects, and what is no use as a selector."""

from __future__ import annotations

from typing import Any, Protocol

from steersman.api.kinds import Object
from steersman.api.label_selectors import Selector, compile_selector


class Selecting(Protocol):
    """An owner that says in its spec which pods are its own."""

    @property
    def spec(self) -> Any: ...


def selector_of(owner: Selecting) -> Selector:
    """Which pods an owner selects. Raises ValueError when that cannot be told."""
    # differs: upstream relies on validation alone. An owner that selects every pod of its namespace
    # would adopt and delete what is not its own; one that selects none would create for ever.
    if owner.spec.selector is None:
        raise ValueError("it is missing")
    compiled = compile_selector(owner.spec.selector)
    if compiled.empty:
        raise ValueError("it is empty and would select every pod")
    return compiled


def selects(owner: Selecting, obj: Object) -> bool:
    """Whether an owner selects an object; no, where nobody can tell."""
    try:
        return selector_of(owner).matches(obj.metadata.labels)
    except ValueError:
        return False
