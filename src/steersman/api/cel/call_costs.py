"""The costs of function calls when an expression is evaluated, in upstream's units: some 50 ns of Go each.

A cost is a number, or a function of the arguments. It is charged before the call, so that a call that would take long is
never begun. Functions that are not listed cost 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import Any, TypeAlias

from steersman.api.cel.runtime.kubernetes import Authorizer, Decision, Format, ResourceCheck, Semver
from steersman.api.cel.runtime.network import CIDR, IP, URL
from steersman.api.cel.runtime.values import size_of
from steersman.api.quantity import Quantity

CallCost: TypeAlias = int | Callable[[Any], int]

TRAVERSAL = 0.1
"""The cost of one character, where a text is traversed once."""
REGEX = 0.25
"""The cost of one character of a regular expression, for each character it is applied to."""
LIST, MAP, STRUCT = 10, 30, 40
"""The costs of making a list, a map and a struct."""
AUTHORIZATION_CHECK = 350_000
"""An expression can afford two."""
_UNIT_EQUALITY = (Quantity, IP, CIDR, Format, URL, Semver, Authorizer, ResourceCheck, Decision)


def _text(args: Any, times: float = 1) -> int:
    return ceil(size_of(args[0]) * times * TRAVERSAL)


def _equality(args: Any) -> int:
    one, other = args
    if type(one) in _UNIT_EQUALITY:
        return 1
    return ceil(min(size_of(one), size_of(other)) * TRAVERSAL)


def _order(args: Any) -> int:
    one, other = args
    if isinstance(one, str | bytes):
        return ceil(min(size_of(one), size_of(other)) * TRAVERSAL)
    return 1


def _sum(args: Any) -> int:
    one, other = args
    if isinstance(one, str | bytes):
        return ceil((size_of(one) + size_of(other)) * TRAVERSAL)
    return 1


def _membership(args: Any) -> int:
    return size_of(args[1]) if isinstance(args[1], list | tuple) else 1


def _regex(args: Any) -> int:
    return ceil((1 + size_of(args[0])) * TRAVERSAL) * ceil(size_of(args[1]) * REGEX)


def _contains(args: Any) -> int:
    return ceil(size_of(args[0]) * TRAVERSAL) * ceil(size_of(args[1]) * TRAVERSAL)


def _join(args: Any) -> int:
    items = args[0]
    if not isinstance(items, list | tuple):
        return 1
    separator = len(args[1]) if len(args) > 1 and isinstance(args[1], str) else 0
    total = sum(len(each) for each in items if isinstance(each, str)) + separator * max(len(items) - 1, 0)
    return ceil(total * 2 * TRAVERSAL)


def traversal(value: Any) -> int:
    """The cost of traversing a value with all of its parts."""
    if isinstance(value, str | bytes):
        return int(len(value) * TRAVERSAL)
    if isinstance(value, list | tuple):
        return sum(map(traversal, value))
    if isinstance(value, Mapping):
        return sum(traversal(key) + traversal(each) for key, each in value.items())
    return 1


def _self_comparison(items: Any) -> int:
    size = size_of(items)
    textual = bool(size) and isinstance(items, list | tuple) and isinstance(items[0], str | bytes)
    return int(size * size * (2 + TRAVERSAL if textual else 2)) + 1 + LIST


def _sets(factor: int) -> CallCost:
    return lambda args: 1 + size_of(args[0]) * size_of(args[1]) * factor


def _number(value: Any) -> int:
    return max(value, 0) if isinstance(value, int) else 0


def _selector(args: Any) -> int:
    size = size_of(args[1])
    return LIST + ceil(size * TRAVERSAL) + ceil(ceil(size * 0.5) * (LIST + STRUCT))


def _contains_ip(args: Any) -> int:
    cost = ceil(2 * size_of(args[0]) * TRAVERSAL)
    return cost + (ceil(len(args[1]) * TRAVERSAL) if isinstance(args[1], str) else 0)


def _contains_cidr(args: Any) -> int:
    return _contains_ip(args) + ceil(size_of(args[0]) * TRAVERSAL) + 1


def _ip(args: Any) -> int:
    return 1 if isinstance(args[0], CIDR) else _text(args)


def _validate(args: Any) -> int:
    format_, text = args
    if not isinstance(format_, Format):
        return 1
    return ceil((1 + size_of(text)) * TRAVERSAL) * ceil(format_.regex_size * REGEX)


def _conversion(args: Any) -> int:
    return _text(args) if isinstance(args[0], bytes) else 1


_ONE_TRAVERSAL = (
    "startsWith",
    "endsWith",
    "strings.quote",
    "format",
    "url",
    "lowerAscii",
    "upperAscii",
    "substring",
    "trim",
    "jsonpatch.escapeKey",
    "cidr",
    "isIP",
    "isCIDR",
    "quantity",
    "isQuantity",
    "semver",
    "isSemver",
)
COSTS: Mapping[str, CallCost] = {
    **dict.fromkeys(_ONE_TRAVERSAL, _text),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), lambda args: _text(args, 2)),
    **dict.fromkeys(("_==_", "_!=_"), _equality),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _order),
    **dict.fromkeys(("matches", "find", "findAll"), _regex),
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), lambda args: traversal(args[0])
    ),
    **dict.fromkeys(("distinct", "sort"), lambda args: _self_comparison(args[0])),
    "@sortByAssociatedKeys": lambda args: _self_comparison(args[1]),
    "slice": lambda args: max(_number(args[2]) - _number(args[1]), 0) + 1 + LIST,
    "flatten": lambda args: size_of(args[0]) * (_number(args[1]) if len(args) > 1 else 1) + 1 + LIST,
    "lists.range": lambda args: _number(args[0]) + 1 + LIST,
    "reverse": lambda args: size_of(args[0]) + 1 + LIST,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    "_+_": _sum,
    "@in": _membership,
    "contains": _contains,
    "join": _join,
    "bytes": lambda args: _text(args) if isinstance(args[0], str) else 1,
    "string": _conversion,
    "fieldSelector": _selector,
    "labelSelector": _selector,
    "check": AUTHORIZATION_CHECK,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "ip": _ip,
    "validate": _validate,
}
