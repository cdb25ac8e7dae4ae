"""Unifies types: reports whether types are assignable to each other, and binds their type parameters."""

from __future__ import annotations

from collections.abc import Sequence

from steersman.api.cel.types import DYN, Sort, Type

_SIMPLE = frozenset(
    (
        Sort.BOOL,
        Sort.BYTES,
        Sort.DOUBLE,
        Sort.INT,
        Sort.STRING,
        Sort.UINT,
        Sort.DURATION,
        Sort.TIMESTAMP,
        Sort.STRUCT,
    )
)
_COMPOUND = frozenset((Sort.OPAQUE, Sort.LIST, Sort.MAP))
_MAY_BE_NULL = frozenset((Sort.NULL, Sort.OPAQUE, Sort.STRUCT, Sort.DURATION, Sort.TIMESTAMP))


class Bindings:
    """The bindings of type parameters. Only successful comparisons add bindings."""

    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}
        self._count = 0

    def fresh(self) -> Type:
        """Return a new unbound type parameter."""
        made = Type(Sort.PARAMETER, f"_var{self._count}")
        self._count += 1
        return made

    def fit(self, ones: Sequence[Type], others: Sequence[Type]) -> bool:
        """Report whether types are pairwise assignable. If they are, the resulting bindings are kept."""
        attempt = _Attempt(self._bound)
        if attempt.all(ones, others):
            return True
        attempt.undo()
        return False

    def resolved(self, type_: Type, settle: bool = False) -> Type:
        """Replace the parameters of a type by their bindings; with ``settle``, unbound ones by `DYN`."""
        return substituted(type_, self._bound, settle)


def substituted(type_: Type, bound: dict[str, Type], settle: bool = False) -> Type:
    """Replace the parameters of a type by other types."""
    while type_.sort is Sort.PARAMETER:
        found = bound.get(type_.name)
        if found is None:
            return DYN if settle else type_
        type_ = found
    if not type_.open:
        return type_
    return Type(type_.sort, type_.name, tuple(substituted(one, bound, settle) for one in type_.of))


def more_general(one: Type, other: Type) -> Type:
    """Return the more general of two assignable types."""
    return one if _no_more_specific(one, other) else other


def _no_more_specific(one: Type, other: Type) -> bool:
    if one.dynamic or one.sort is Sort.PARAMETER:
        return True
    if other.dynamic or other.sort is Sort.PARAMETER or one.sort is not other.sort:
        return False
    if one.sort is Sort.TYPE:
        return True
    if one.sort in _COMPOUND:
        same = one.name == other.name and len(one.of) == len(other.of)
        return same and all(map(_no_more_specific, one.of, other.of))
    return one == other


class _Attempt:
    """One comparison, whose bindings are undone if it fails: copying them all each time would take quadratic time."""

    def __init__(self, bound: dict[str, Type]) -> None:
        self.bound = bound
        self._former: list[tuple[str, Type | None]] = []

    def undo(self) -> None:
        """Restore the bindings from before the comparison."""
        for name, former in reversed(self._former):
            if former is None:
                del self.bound[name]
            else:
                self.bound[name] = former

    def _set(self, name: str, type_: Type) -> None:
        self._former.append((name, self.bound.get(name)))
        self.bound[name] = type_

    def all(self, ones: Sequence[Type], others: Sequence[Type]) -> bool:
        return len(ones) == len(others) and all(map(self._one, ones, others))

    def _one(self, one: Type, other: Type) -> bool:
        if other.sort is Sort.PARAMETER:
            fits, known = self._bind(other, one)
            if fits or known:
                return fits
        if one.sort is Sort.PARAMETER:
            return self._bind(one, other)[0]
        if one.lenient or other.lenient:
            return True
        if one.sort is Sort.NULL:
            return other.sort in _MAY_BE_NULL
        if other.sort is Sort.NULL:
            return one.sort in _MAY_BE_NULL
        if one.sort in _SIMPLE:
            return one == other
        if one.sort is Sort.TYPE:
            return other.sort is Sort.TYPE
        same = one.sort in _COMPOUND and one.sort is other.sort and one.name == other.name
        return same and self.all(one.of, other.of)

    def _bind(self, parameter: Type, type_: Type) -> tuple[bool, bool]:
        """Report whether a parameter can be bound to a type, and whether it was bound already."""
        if type_ == parameter:
            return True, True
        known = self.bound.get(parameter.name)
        if known is None:
            free = self._is_free_of(parameter, type_)
            if free:
                self._set(parameter.name, type_)
            return free, False
        if known == type_:
            return True, True
        if not self._one(type_, known):
            return False, True
        general = more_general(type_, known)
        if self._is_free_of(parameter, general):
            self._set(parameter.name, general)
        return True, True

    def _is_free_of(self, parameter: Type, type_: Type) -> bool:
        """Report whether a type does not contain a parameter (occurs check)."""
        if type_ == parameter:
            return False
        if type_.sort is Sort.PARAMETER:
            known = self.bound.get(type_.name)
            return known is None or self._is_free_of(parameter, known)
        return all(self._is_free_of(parameter, one) for one in type_.of)
