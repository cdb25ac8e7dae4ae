"""Which types fit each other, and what the parameters among them stand for."""

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
    """What is known of type parameters so far. It only grows, and only by comparisons that succeed."""

    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}
        self._count = 0

    def fresh(self) -> Type:
        """A parameter nothing is known of yet."""
        made = Type(Sort.PARAMETER, f"_var{self._count}")
        self._count += 1
        return made

    def fit(self, ones: Sequence[Type], others: Sequence[Type]) -> bool:
        """Whether types fit each other one by one. What that says of parameters is remembered if they do."""
        attempt = _Attempt(self._bound.copy())
        if not attempt.all(ones, others):
            return False
        self._bound = attempt.bound
        return True

    def resolved(self, type_: Type, settle: bool = False) -> Type:
        """A type with what its parameters stand for; ``settle`` makes those nothing is known of `DYN`."""
        return substituted(type_, self._bound, settle)


def substituted(type_: Type, bound: dict[str, Type], settle: bool = False) -> Type:
    """A type with other types in the place of its parameters."""
    while type_.sort is Sort.PARAMETER:
        found = bound.get(type_.name)
        if found is None:
            return DYN if settle else type_
        type_ = found
    if not type_.of:
        return type_
    return Type(type_.sort, type_.name, tuple(substituted(one, bound, settle) for one in type_.of))


def more_general(one: Type, other: Type) -> Type:
    """Of two types that fit, the one that says less."""
    return one if _no_more_specific(one, other) else other


def _no_more_specific(one: Type, other: Type) -> bool:
    if one.loose or one.sort is Sort.PARAMETER:
        return True
    if other.loose or other.sort is Sort.PARAMETER or one.sort is not other.sort:
        return False
    if one.sort is Sort.TYPE:
        return True
    if one.sort in _COMPOUND:
        same = one.name == other.name and len(one.of) == len(other.of)
        return same and all(map(_no_more_specific, one.of, other.of))
    return one == other


class _Attempt:
    """One comparison, on a copy: what it binds counts only if all of it succeeds."""

    def __init__(self, bound: dict[str, Type]) -> None:
        self.bound = bound

    def all(self, ones: Sequence[Type], others: Sequence[Type]) -> bool:
        return len(ones) == len(others) and all(map(self._one, ones, others))

    def _one(self, one: Type, other: Type) -> bool:
        if other.sort is Sort.PARAMETER:
            fits, known = self._stands_for(other, one)
            if fits or known:
                return fits
        if one.sort is Sort.PARAMETER:
            return self._stands_for(one, other)[0]
        if one.vague or other.vague:
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

    def _stands_for(self, open_: Type, type_: Type) -> tuple[bool, bool]:
        """Whether a parameter may stand for a type, and whether it stands for something already."""
        if type_ == open_:
            return True, True
        known = self.bound.get(open_.name)
        if known is None:
            free = self._free_of(open_, type_)
            if free:
                self.bound[open_.name] = type_
            return free, False
        if known == type_:
            return True, True
        if not self._one(type_, known):
            return False, True
        general = more_general(type_, known)
        if self._free_of(open_, general):
            self.bound[open_.name] = general
        return True, True

    def _free_of(self, open_: Type, type_: Type) -> bool:
        """Whether a parameter is no part of a type: one that was would never end."""
        if type_ == open_:
            return False
        if type_.sort is Sort.PARAMETER:
            known = self.bound.get(type_.name)
            return known is None or self._free_of(open_, known)
        return all(self._free_of(open_, one) for one in type_.of)
