"""Estimates what a checked expression can cost, from the sizes that its variables are declared with.

The estimate decides which rules a CustomResourceDefinition may have, so it follows cel-go's estimator and Kubernetes' own step
by step: sizes are known of literals, of declared fields by their path, and of the results of some calls; an unknown size is
the largest there is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import NamedTuple, TypeAlias

from steersman.api.cel.call_costs import AUTHORIZATION_CHECK, LIST, MAP, REGEX, STRUCT, TRAVERSAL
from steersman.api.cel.checker import Checked
from steersman.api.cel.macros import ACCUMULATOR, OLD_ACCUMULATOR
from steersman.api.cel.syntax import (
    Call,
    Expr,
    Fold,
    Ident,
    ListOf,
    Literal,
    MapOf,
    Select,
    StructOf,
    qualified,
)
from steersman.api.cel.types import DYN, Sort, Type

MAX = 2**64 - 1

Path: TypeAlias = tuple[str, ...]
SizeOf: TypeAlias = Callable[[Path], int | None]
"""Returns the largest size of the value at a path, whose first name is a variable; None if it is unknown."""


class Range(NamedTuple):
    """The smallest and the largest cost, or size. Sums and products end at the largest number of 64 bits."""

    min: int
    max: int

    def plus(self, other: Range) -> Range:
        return Range(min(self.min + other.min, MAX), min(self.max + other.max, MAX))

    def times(self, other: Range) -> Range:
        return Range(min(self.min * other.min, MAX), min(self.max * other.max, MAX))

    def scaled(self, factor: float) -> Range:
        """Multiplied by a factor and rounded up."""
        return Range(_scaled(self.min, factor), _scaled(self.max, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.min, other.min), max(self.max, other.max))


def _scaled(number: int, factor: float) -> int:
    return MAX if number > 0 and number > MAX / factor else min(ceil(float(number) * factor), MAX)


ZERO, ONE, UNKNOWN = Range(0, 0), Range(1, 1), Range(0, MAX)


class _Entry(NamedTuple):
    """The sizes of the keys and values of a list or map."""

    is_list: bool
    key: Range
    value: Range

    def union(self, other: _Entry | None) -> _Entry | None:
        if other is None:
            return None
        return _Entry(self.is_list, self.key.union(other.key), self.value.union(other.value))


class _Variable(NamedTuple):
    path: Path
    size: Range | None
    entry: _Entry | None


class _Call(NamedTuple):
    cost: Range
    size: Range | None = None


def estimate(checked: Checked, size_of: SizeOf) -> Range:
    """The cost of an expression."""
    return _Estimator(checked.types, size_of).cost(checked.expr)


_SCALARS = frozenset((Sort.BOOL, Sort.DOUBLE, Sort.DURATION, Sort.INT, Sort.TIMESTAMP, Sort.UINT))
_UNIT_EQUALITY = frozenset(
    (
        "net.IP",
        "net.CIDR",
        "kubernetes.Quantity",
        "kubernetes.Semver",
        "kubernetes.authorization.Authorizer",
        "kubernetes.authorization.PathCheck",
        "kubernetes.authorization.GroupCheck",
        "kubernetes.authorization.ResourceCheck",
        "kubernetes.authorization.Decision",
    )
)

_SMALL_EQUALITY = {"kubernetes.NamedFormat": 64, "kubernetes.URL": 1}
"""Types whose values are compared as texts of a bounded length."""


class _Estimator:
    def __init__(self, types: Mapping[Expr, Type], size_of: SizeOf) -> None:
        self._types = types
        self._size_of = size_of
        self._paths: dict[Expr, Path] = {}
        self._sizes: dict[Expr, Range] = {}
        self._entries: dict[Expr, _Entry] = {}
        self._locals: dict[str, list[_Variable]] = {}

    def cost(self, expr: Expr) -> Range:
        match expr:
            case Literal():
                return ZERO
            case Ident():
                local = self._local(expr.name)
                self._paths[expr] = local.path if local is not None else (expr.name,)
                return ONE
            case Select():
                return self._select(expr)
            case Call():
                return self._call(expr)
            case ListOf():
                return self._list(expr)
            case MapOf():
                return self._map(expr)
            case StructOf():
                return _sum(self.cost(each.value) for each in expr.fields).plus(Range(STRUCT, STRUCT))
            case Fold():
                return self._fold(expr)
        raise AssertionError(expr)

    def _type(self, expr: Expr) -> Type:
        return self._types.get(expr, DYN)

    # -- sizes --------------------------------------------------------------------------------

    def _local(self, name: str) -> _Variable | None:
        found = self._locals.get(name)
        return found[-1] if found else None

    def _path(self, expr: Expr) -> Path:
        if isinstance(expr, Ident):
            local = self._local(expr.name)
            if local is not None:
                return local.path
        return self._paths.get(expr, ())

    def _declared(self, path: Path) -> Range | None:
        if not path or path[0] in (ACCUMULATOR, OLD_ACCUMULATOR):
            return None
        found = self._size_of(path)
        return None if found is None else Range(0, found)

    def _known_size(self, expr: Expr) -> Range | None:
        known = self._sizes.get(expr) or _literal_size(expr) or self._declared(self._path(expr))
        if known is not None:
            return known
        if _is_scalar(self._type(expr)):
            return ONE
        if isinstance(expr, Ident):
            local = self._local(expr.name)
            return local.size if local is not None else None
        return None

    def _size(self, expr: Expr) -> Range:
        known = self._known_size(expr)
        return UNKNOWN if known is None else known

    def _entry(self, expr: Expr) -> _Entry | None:
        known = self._entries.get(expr)
        if known is None and isinstance(expr, Ident):
            local = self._local(expr.name)
            return local.entry if local is not None else None
        return known

    # -- parts --------------------------------------------------------------------------------

    def _select(self, expr: Select) -> Range:
        total = self.cost(expr.operand)
        if expr.test:
            return total
        if self._type(expr.operand).sort in (Sort.MAP, Sort.STRUCT, Sort.PARAMETER):
            total = total.plus(ONE)
        self._paths[expr] = (*self._path(expr.operand), expr.field)
        return total

    def _list(self, expr: ListOf) -> Range:
        total, item = ZERO, Range(MAX, 0) if expr.elements else ZERO
        for element in expr.elements:
            total = total.plus(self.cost(element))
            item = item.union(self._size(element))
        self._entries[expr] = _Entry(True, ONE, item)
        return total.plus(Range(LIST, LIST))

    def _map(self, expr: MapOf) -> Range:
        total = ZERO
        key = value = Range(MAX, 0) if expr.entries else ZERO
        for entry in expr.entries:
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            key, value = key.union(self._size(entry.key)), value.union(self._size(entry.value))
        self._entries[expr] = _Entry(False, key, value)
        return total.plus(Range(MAP, MAP))

    def _fold(self, expr: Fold) -> Range:
        total = self.cost(expr.range).plus(self.cost(expr.init))
        bound = _Variable(self._path(expr.init), self._known_size(expr.init), self._entry(expr.init))
        is_bind = (
            isinstance(expr.range, ListOf) and not expr.range.elements and expr.accumulator != ACCUMULATOR
        )
        self._push(expr.accumulator, bound)
        if is_bind:
            total = total.plus(self.cost(expr.result))
            self._pop(expr.accumulator)
            self._copy(expr, expr.result)
            return total
        names = self._push_loop_variables(expr)
        loop = self.cost(expr.condition).plus(self.cost(expr.step))
        for name in names:
            self._pop(name)
        total = total.plus(self.cost(expr.result))
        self._pop(expr.accumulator)
        count = self._size(expr.range)
        total = total.plus(count.times(loop))
        if isinstance(expr.init, Literal):
            self._set(expr, self._known_size(expr.init))
        elif isinstance(expr.init, ListOf | MapOf):
            self._set(expr, count)
            entry = self._entry(expr.step)
            if entry is not None:
                self._entries[expr] = entry
        return total

    def _push_loop_variables(self, expr: Fold) -> tuple[str, ...]:
        entry, path = self._entry(expr.range), self._path(expr.range)
        is_list = entry.is_list if entry is not None else self._type(expr.range).sort is Sort.LIST
        key = None if entry is None else entry.key
        value = None if entry is None else entry.value
        if expr.second:
            self._push(expr.variable, _Variable((*path, "@indices" if is_list else "@keys"), key, None))
            self._push(expr.second, _Variable((*path, "@items" if is_list else "@values"), value, None))
            return expr.variable, expr.second
        single = _Variable((*path, "@items" if is_list else "@keys"), value if is_list else key, None)
        self._push(expr.variable, single)
        return (expr.variable,)

    def _push(self, name: str, variable: _Variable) -> None:
        self._locals.setdefault(name, []).append(variable)

    def _pop(self, name: str) -> None:
        self._locals[name].pop()

    def _set(self, expr: Expr, size: Range | None) -> None:
        if size is not None:
            self._sizes[expr] = size

    def _copy(self, target: Expr, source: Expr) -> None:
        self._set(target, self._known_size(source))
        entry = self._entry(source)
        if entry is not None:
            self._entries[target] = entry

    # -- calls --------------------------------------------------------------------------------

    def _call(self, expr: Call) -> Range:
        name, target = expr.function.removeprefix("."), expr.target
        if target is not None and qualified(target) and target not in self._types:
            # A namespaced function: its prefix was never typed.
            name, target = f"{qualified(target)}.{name}", None
        args = list(expr.args)
        if name in ("_&&_", "_||_"):
            return self._logical(args)
        costs = [self.cost(arg) for arg in args]
        if name == "dyn" and target is None:
            self._copy(expr, args[0])
            return costs[0].plus(ONE)
        total = self.cost(target) if target is not None else ZERO
        if name == "_?_:_":
            return self._conditional(expr, args, costs)
        made = self._function(expr, name, target, args)
        size = made.size
        if name == "_[_]":
            kind = self._type(args[0]).sort
            if kind in (Sort.LIST, Sort.MAP, Sort.DYN):
                entry = self._entry(args[0])
                size = None if entry is None else entry.value
                step = "@values" if kind is Sort.MAP or kind is Sort.DYN else "@items"
                self._paths[expr] = (*self._path(args[0]), step)
        self._set(expr, size if size is not None else self._known_size(expr))
        return total.plus(_sum(costs)).plus(made.cost)

    def _logical(self, args: list[Expr]) -> Range:
        # A chain is taken in pairs: at least the first term is evaluated, at most all of them.
        costs = [self.cost(arg) for arg in args]
        return Range(costs[0].min, _sum(costs).max)

    def _conditional(self, expr: Call, args: list[Expr], costs: list[Range]) -> Range:
        self._sizes[expr] = self._size(args[1]).union(self._size(args[2]))
        one = self._entry(args[1])
        entry = one.union(self._entry(args[2])) if one is not None else None
        if entry is not None:
            self._entries[expr] = entry
        return costs[0].plus(costs[1].union(costs[2]))

    def _function(self, expr: Call, name: str, target: Expr | None, args: list[Expr]) -> _Call:
        method = _FUNCTIONS.get(name)
        found = method(self, target, args) if method is not None else None
        if found is not None:
            return found
        if name == "_+_":
            return self._add(expr, args)
        return _Call(ONE)

    def _add(self, expr: Call, args: list[Expr]) -> _Call:
        sorts = {self._type(arg).sort for arg in args} - {Sort.DYN}
        textual = not sorts or bool(sorts & {Sort.STRING, Sort.BYTES})
        if sorts and not textual and Sort.LIST not in sorts:
            return _Call(ONE)
        size = self._size(args[0]).plus(self._size(args[1]))
        one = self._entry(args[0])
        entry = one.union(self._entry(args[1])) if one is not None else None
        if entry is not None:
            self._entries[expr] = entry
        cost = size.scaled(TRAVERSAL) if textual else ONE
        return _Call(cost if sorts else cost.union(ONE), size)

    def _equality(self, target: Expr | None, args: list[Expr]) -> _Call | None:
        one, other = (self._type(arg) for arg in args)
        if one == other and one.name in _UNIT_EQUALITY:
            return _Call(ONE)
        if one == other and one.name in _SMALL_EQUALITY:
            return _Call(Range(1, _SMALL_EQUALITY[one.name]).scaled(TRAVERSAL))
        return self._comparison(args)

    def _comparison(self, args: list[Expr]) -> _Call:
        most = min(self._size(args[0]).max, self._size(args[1]).max)
        return _Call(Range(1 if most > 0 else 0, most).scaled(TRAVERSAL))

    def _order(self, target: Expr | None, args: list[Expr]) -> _Call | None:
        sorts = {self._type(arg).sort for arg in args}
        if sorts <= {Sort.STRING, Sort.BYTES}:
            return self._comparison(args)
        return _Call(self._comparison(args).cost.union(ONE)) if Sort.DYN in sorts else None

    def _membership(self, target: Expr | None, args: list[Expr]) -> _Call | None:
        if self._type(args[1]).sort is Sort.MAP:
            return None
        return _Call(self._size(args[1]).scaled(1))

    def _element(self, items: Expr) -> tuple[Type, Range] | None:
        """The type and the size of a list's elements; None if it is no list."""
        type_ = self._type(items)
        if type_.sort is not Sort.LIST or not type_.of:
            return None
        path = self._path(items)
        declared = self._declared((*path, "@items")) if path else None
        return type_.of[0], UNKNOWN if declared is None else declared

    def _traversed_list(self, target: Expr | None, args: list[Expr]) -> _Call | None:
        if target is None:
            return None
        element = self._element(target)
        if element is None:
            return _Call(self._size(target).scaled(TRAVERSAL))
        each = ONE
        if element[0].sort in (Sort.STRING, Sort.BYTES):
            each = each.plus(element[1].scaled(TRAVERSAL))
        return _Call(self._size(target).times(each))

    def _replace(self, target: Expr | None, args: list[Expr]) -> _Call | None:
        if target is None or len(args) < 2:
            return None
        size, old, new = self._size(target), self._size(args[0]), self._size(args[1])
        if old.min == 0:
            most = min(size.max + 1, MAX), size.max
        elif new.max <= old.min:
            most = 0, size.max
        else:
            most = _divided(size.max, old.min), 0
        if old.max == 0:
            least = min(size.min + 1, MAX), size.min
        elif old.max <= new.min:
            least = 0, size.min
        else:
            least = _divided(size.min, old.max), 0
        counts, kept = Range(least[0], most[0]), Range(least[1], most[1])
        return _Call(size.scaled(2 * TRAVERSAL), counts.times(new).plus(kept))

    def _split(self, target: Expr | None, args: list[Expr]) -> _Call | None:
        if target is None:
            return None
        size = self._size(target)
        most = size.max
        if len(args) > 1 and isinstance(args[1], Literal) and isinstance(args[1].value, int):
            most = args[1].value % (MAX + 1)
        return _Call(size.scaled(2 * TRAVERSAL), Range(0, most))

    def _join(self, target: Expr | None, args: list[Expr]) -> _Call | None:
        if target is None:
            return None
        count, size = self._size(target), ZERO
        element = self._element(target)
        if element is not None:
            size = count.times(element[1])
        if args:
            gaps = Range(max(count.min - 1, 0), max(count.max - 1, 0))
            size = size.plus(self._size(args[0]).times(gaps))
        return _Call(size.scaled(TRAVERSAL), size)

    def _regex(self, target: Expr | None, args: list[Expr], *, finds: bool) -> _Call | None:
        text, pattern = (args[0], args[1]) if target is None else (target, args[0])
        size = self._size(text)
        cost = size.plus(ONE).scaled(TRAVERSAL).times(self._size(pattern).scaled(REGEX))
        return _Call(cost, Range(0, size.max) if finds else None)

    def _contains(self, target: Expr | None, args: list[Expr]) -> _Call | None:
        if target is None:
            return None
        return _Call(self._size(target).scaled(TRAVERSAL).times(self._size(args[0]).scaled(TRAVERSAL)))

    def _selector(self, target: Expr | None, args: list[Expr]) -> _Call | None:
        size = self._size(args[0])
        requirements = size.scaled(0.5).scaled(LIST + STRUCT)
        return _Call(Range(LIST, LIST).plus(size.scaled(TRAVERSAL)).plus(requirements))

    def _within(self, target: Expr | None, args: list[Expr], *, cidr: bool) -> _Call | None:
        bits = Range(4, 16)
        cost = bits.plus(bits).scaled(TRAVERSAL)
        if cidr:
            cost = cost.plus(bits.scaled(TRAVERSAL)).plus(ONE)
        if self._type(args[0]).sort is Sort.STRING:
            cost = cost.plus(self._size(args[0]).scaled(TRAVERSAL))
        return _Call(cost)

    def _ip(self, target: Expr | None, args: list[Expr]) -> _Call | None:
        return _Call(ONE) if target is not None else _Call(self._size(args[0]).scaled(TRAVERSAL))

    def _validate(self, target: Expr | None, args: list[Expr]) -> _Call | None:
        return _Call(self._size(args[0]).scaled(TRAVERSAL).scaled(128 * REGEX))

    def _allocated(self, factor: float, size: Range) -> _Call:
        return _Call(size.scaled(factor).plus(Range(1 + LIST, 1 + LIST)), size)

    def _slice(self, target: Expr | None, args: list[Expr]) -> _Call | None:
        if target is None:
            return None
        start, end = _number(args[0], 0), _number(args[1], self._size(target).max)
        size = (end - start) % (MAX + 1)
        return self._allocated(1, Range(size, size))

    def _flatten(self, target: Expr | None, args: list[Expr]) -> _Call | None:
        if target is None:
            return None
        depth = _number(args[0], MAX) if args else 1
        return self._allocated(float(depth), self._size(target))

    def _range(self, target: Expr | None, args: list[Expr]) -> _Call | None:
        size = _number(args[0], MAX)
        return self._allocated(1, Range(size, size))

    def _sorted(self, target: Expr | None, args: list[Expr], *, distinct: bool = False) -> _Call | None:
        items = args[0] if args else target
        if items is None:
            return None
        size = self._size(items)
        element = self._type(items).of
        textual = bool(element) and element[0].sort in (Sort.STRING, Sort.BYTES) and not distinct
        return self._allocated(2 + TRAVERSAL if textual else 2.0, size.times(size))

    def _sets(self, target: Expr | None, args: list[Expr], *, factor: int) -> _Call | None:
        return _Call(self._size(args[0]).times(self._size(args[1])).scaled(factor).plus(ONE))

    def _affix(self, target: Expr | None, args: list[Expr]) -> _Call | None:
        return _Call(self._size(args[0]).scaled(TRAVERSAL))

    def _format(self, target: Expr | None, args: list[Expr]) -> _Call | None:
        return None if target is None else _Call(self._size(target).scaled(TRAVERSAL))

    def _quote(self, target: Expr | None, args: list[Expr]) -> _Call | None:
        size = self._size(args[0])
        return _Call(size.scaled(TRAVERSAL), Range(min(size.min + 2, MAX), min(size.max * 2 + 2, MAX)))

    def _traversed(
        self, target: Expr | None, args: list[Expr], *, times: float = 1, sized: bool = True
    ) -> _Call:
        size = self._size(args[0] if target is None else target)
        return _Call(size.scaled(times * TRAVERSAL), size if sized else None)

    def _converted(self, target: Expr | None, args: list[Expr], *, to_bytes: bool) -> _Call | None:
        if self._type(args[0]).sort is not (Sort.STRING if to_bytes else Sort.BYTES):
            return None
        size = self._size(args[0])
        made = Range(size.min, min(size.max * 4, MAX)) if to_bytes else Range(size.min // 4, size.max)
        return _Call(size.scaled(TRAVERSAL), made)


def _sum(costs: object) -> Range:
    total = ZERO
    for cost in costs:  # type: ignore[attr-defined]
        total = total.plus(cost)
    return total


def _divided(size: int, by: int) -> int:
    return min(ceil(size / by), MAX)


def _number(expr: Expr, otherwise: int) -> int:
    if isinstance(expr, Literal) and expr.type.sort is Sort.INT and isinstance(expr.value, int):
        return max(expr.value, 0)
    return otherwise


def _literal_size(expr: Expr) -> Range | None:
    match expr:
        case Literal():
            size = len(expr.value) if isinstance(expr.value, str | bytes) else 1
            return Range(size, size)
        case ListOf():
            return Range(len(expr.elements), len(expr.elements))
        case MapOf():
            return Range(len(expr.entries), len(expr.entries))
    return None


def _is_scalar(type_: Type) -> bool:
    if type_.sort in _SCALARS:
        return True
    return type_.name == "optional_type" and bool(type_.of) and _is_scalar(type_.of[0])


_Function: TypeAlias = Callable[[_Estimator, Expr | None, list[Expr]], _Call | None]


def _fixed(cost: int) -> _Function:
    return lambda estimator, target, args: _Call(Range(cost, cost))


def _traversed(times: float = 1, *, sized: bool = True) -> _Function:
    return lambda estimator, target, args: estimator._traversed(target, args, times=times, sized=sized)


_FUNCTIONS: Mapping[str, _Function] = {
    **dict.fromkeys(
        ("url", "jsonpatch.escapeKey", "lowerAscii", "upperAscii", "substring", "trim"), _traversed()
    ),
    **dict.fromkeys(
        ("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _traversed(sized=False)
    ),
    "ip.isCanonical": _traversed(2, sized=False),
    "ip": _Estimator._ip,
    "check": _fixed(AUTHORIZATION_CHECK),
    "fieldSelector": _Estimator._selector,
    "labelSelector": _Estimator._selector,
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _Estimator._traversed_list),
    "replace": _Estimator._replace,
    "split": _Estimator._split,
    "join": _Estimator._join,
    "find": lambda estimator, target, args: estimator._regex(target, args, finds=True),
    "findAll": lambda estimator, target, args: estimator._regex(target, args, finds=True),
    "matches": lambda estimator, target, args: estimator._regex(target, args, finds=False),
    "contains": _Estimator._contains,
    "startsWith": _Estimator._affix,
    "endsWith": _Estimator._affix,
    "format": _Estimator._format,
    "strings.quote": _Estimator._quote,
    "bytes": lambda estimator, target, args: estimator._converted(target, args, to_bytes=True),
    "string": lambda estimator, target, args: estimator._converted(target, args, to_bytes=False),
    "_==_": _Estimator._equality,
    "_!=_": _Estimator._equality,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _Estimator._order),
    "@in": _Estimator._membership,
    "containsIP": lambda estimator, target, args: estimator._within(target, args, cidr=False),
    "containsCIDR": lambda estimator, target, args: estimator._within(target, args, cidr=True),
    "validate": _Estimator._validate,
    "slice": _Estimator._slice,
    "flatten": _Estimator._flatten,
    "lists.range": _Estimator._range,
    "reverse": lambda estimator, target, args: (
        None if target is None else estimator._allocated(1, estimator._size(target))
    ),
    "distinct": lambda estimator, target, args: estimator._sorted(target, args, distinct=True),
    "sort": lambda estimator, target, args: estimator._sorted(target, args),
    "@sortByAssociatedKeys": lambda estimator, target, args: estimator._sorted(target, args),
    "sets.contains": lambda estimator, target, args: estimator._sets(target, args, factor=1),
    "sets.intersects": lambda estimator, target, args: estimator._sets(target, args, factor=1),
    "sets.equivalent": lambda estimator, target, args: estimator._sets(target, args, factor=2),
}
