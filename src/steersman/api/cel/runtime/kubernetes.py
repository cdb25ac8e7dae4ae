"""Kubernetes' CEL libraries of quantities, semantic versions, named formats and authorization."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import total_ordering
from typing import Any, ClassVar, Protocol

import msgspec

from steersman.api.cel.runtime.conversions import parse_timestamp
from steersman.api.cel.runtime.network import parse_request_uri
from steersman.api.cel.runtime.values import INT_MAX, INT_MIN, NONE, EvaluationError, NoOverload, Optional
from steersman.api.dns_names import NameRule, dns1035_label, dns1123_label, dns1123_subdomain
from steersman.api.go_quote import quote
from steersman.api.label_syntax import key_errors, value_errors
from steersman.api.quantity import NANO, Quantity

# -- quantities -----------------------------------------------------------------------------------


def _quantity(text: Any) -> Quantity:
    if type(text) is not str:
        raise NoOverload
    try:
        if text != text.strip():
            raise ValueError
        return Quantity.parse(text)
    except ValueError:
        raise EvaluationError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ) from None


def _both_quantities(one: Any, other: Any) -> tuple[Quantity, Quantity]:
    if type(one) is not Quantity:
        raise NoOverload
    if type(other) is int:
        other = Quantity.of(other)
    if type(other) is not Quantity:
        raise NoOverload
    return one, other


def _add(one: Any, other: Any) -> Quantity:
    quantity, added = _both_quantities(one, other)
    return quantity + added


def _sub(one: Any, other: Any) -> Quantity:
    quantity, taken = _both_quantities(one, other)
    return quantity - taken


def _is_integer(quantity: Quantity) -> bool:
    return quantity.nanos % NANO == 0 and INT_MIN <= quantity.nanos // NANO <= INT_MAX


def _as_integer(quantity: Quantity) -> int:
    if not _is_integer(quantity):
        raise EvaluationError("cannot convert value to integer")
    return quantity.nanos // NANO


# -- semantic versions ----------------------------------------------------------------------------

_ALPHANUMERIC = re.compile(r"[0-9A-Za-z-]*")


@total_ordering
class Semver(msgspec.Struct, frozen=True, eq=False):
    """A semantic version. Build metadata does not count when versions are compared."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...] = ()
    cel_type: ClassVar[str] = "kubernetes.Semver"

    @property
    def _order(self) -> tuple[object, ...]:
        # A release comes after its prereleases; numbers come before words.
        parts = tuple((0, int(one), "") if one.isdigit() else (1, 0, one) for one in self.prerelease)
        return self.major, self.minor, self.patch, not self.prerelease, parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._order == other._order

    def __hash__(self) -> int:
        return hash(self._order)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Semver):
            return NotImplemented
        return self._order < other._order


def parse_semver(text: str) -> Semver:
    """Parse a semantic version. Raises `EvaluationError`."""
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    head, plus, build = parts[2].partition("+")
    patch, dash, prerelease = head.partition("-")
    numbers = (
        _semver_number(parts[0], "major"),
        _semver_number(parts[1], "minor"),
        _semver_number(patch, "patch"),
    )
    identifiers = tuple(prerelease.split(".")) if dash else ()
    for one in identifiers:
        _check_prerelease(one)
    for one in build.split(".") if plus else ():
        if not one:
            raise EvaluationError("Build meta data is empty")
        if not _ALPHANUMERIC.fullmatch(one):
            raise EvaluationError(f"Invalid character(s) found in build meta data {quote(one)}")
    return Semver(*numbers, identifiers)


def _semver_number(text: str, name: str) -> int:
    if not text or not (text.isascii() and text.isdigit()):
        if text:
            raise EvaluationError(f"Invalid character(s) found in {name} number {quote(text)}")
        raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f"{name.capitalize()} number must not contain leading zeroes {quote(text)}")
    if len(text) > 20 or int(text) >= 2**64:
        raise EvaluationError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)


def _check_prerelease(text: str) -> None:
    if not text:
        raise EvaluationError("Prerelease is empty")
    if text.isascii() and text.isdigit():
        if len(text) > 1 and text[0] == "0":
            raise EvaluationError(f"Numeric PreRelease version must not contain leading zeroes {quote(text)}")
        if len(text) > 20:
            raise EvaluationError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    elif not _ALPHANUMERIC.fullmatch(text):
        raise EvaluationError(f"Invalid character(s) found in prerelease {quote(text)}")


def _normalized(text: str) -> str:
    """A version with a ``v`` in front, leading zeros, or without minor or patch, made a whole one."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped[:1].isdigit() else f"0{stripped}"
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise EvaluationError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _semver(text: Any, normalize: Any = False) -> Semver:
    if type(text) is not str or type(normalize) is not bool:
        raise NoOverload
    return parse_semver(_normalized(text) if normalize else text)


def _succeeds(parse: Callable[..., object]) -> Callable[..., bool]:
    def function(*args: Any) -> bool:
        try:
            parse(*args)
        except NoOverload:
            raise
        except EvaluationError:
            return False
        return True

    return function


def _compared(accept: Callable[[int], object]) -> Callable[[Any, Any], object]:
    """A method that compares two quantities, or two versions."""

    def function(one: Any, other: Any) -> object:
        if type(one) is not type(other) or type(one) not in (Quantity, Semver):
            raise NoOverload
        return accept((one > other) - (one < other))

    return function


def _on(type_: type, read: Callable[[Any], object]) -> Callable[[Any], object]:
    def function(value: Any) -> object:
        if type(value) is not type_:
            raise NoOverload
        return read(value)

    return function


# -- named formats --------------------------------------------------------------------------------


class Format(msgspec.Struct, frozen=True, eq=False):
    """A named format."""

    name: str
    problems: NameRule
    regex_size: int
    """The characters of its regular expression, as the cost of a validation counts them."""
    cel_type: ClassVar[str] = "kubernetes.NamedFormat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and self.name == other.name

    __hash__ = None  # type: ignore[assignment]


def _prefix(rule: NameRule) -> NameRule:
    """A rule for a generateName, which may end with a dash."""
    return lambda text: rule(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)


def _uri_problems(text: str) -> tuple[str, ...]:
    try:
        parse_request_uri(text)
    except ValueError as error:
        return (str(error),)
    return ()


def _byte_problems(text: str) -> tuple[str, ...]:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ("invalid base64",)
    return () if text else ("invalid base64",)


def _date_problems(text: str) -> tuple[str, ...]:
    try:
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            date.fromisoformat(text)
            return ()
    except ValueError:
        pass
    return ("invalid date",)


def _datetime_problems(text: str) -> tuple[str, ...]:
    try:
        parse_timestamp(text)
    except EvaluationError:
        return ("invalid datetime",)
    return ()


FORMATS: Mapping[str, Format] = {
    "dns1123Label": Format("DNS1123Label", dns1123_label, 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", dns1123_subdomain, 60),
    "dns1035Label": Format("DNS1035Label", dns1035_label, 30),
    "qualifiedName": Format("QualifiedName", key_errors, 60),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _prefix(dns1123_label), 30),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", _prefix(dns1123_subdomain), 60),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", _prefix(dns1035_label), 30),
    "labelValue": Format("LabelValue", value_errors, 40),
    "uri": Format("URI", _uri_problems, 1190),
    "uuid": Format(
        "UUID", lambda text: () if _UUID.fullmatch(text) else ("does not match the UUID format",), 79
    ),
    "byte": Format("Byte", _byte_problems, 62),
    "date": Format("Date", _date_problems, 60),
    "datetime": Format("DateTime", _datetime_problems, 99),
}


def _constant(format_: Format) -> Callable[[], Format]:
    return lambda: format_


def _named(name: Any) -> Optional:
    if type(name) is not str:
        raise NoOverload
    found = FORMATS.get(name)
    return NONE if found is None else Optional(found, True)


def _validate(format_: Any, text: Any) -> Optional:
    if type(format_) is not Format or type(text) is not str:
        raise NoOverload
    problems = format_.problems(text)
    return Optional(list(problems), True) if problems else NONE


# -- authorization --------------------------------------------------------------------------------


class Decision(msgspec.Struct, frozen=True):
    """The answer of an authorizer to a check."""

    allowed: bool
    reason: str = ""
    error: str = ""
    cel_type: ClassVar[str] = "kubernetes.authorization.Decision"


class Check(msgspec.Struct, frozen=True):
    """A question to an authorizer: whether a user may do something to a resource, or at a path."""

    verb: str = ""
    path: str | None = None
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""
    service_account: tuple[str, str] | None = None
    """The namespace and the name of the ServiceAccount that is asked about; None for the user of the request."""


class Ask(Protocol):
    """Answers a check."""

    def __call__(self, check: Check) -> Decision: ...


class Authorizer(msgspec.Struct, frozen=True, eq=False):
    """The variable ``authorizer``."""

    ask: Ask
    service_account: tuple[str, str] | None = None
    cel_type: ClassVar[str] = "kubernetes.authorization.Authorizer"


class _PathCheck(msgspec.Struct, frozen=True, eq=False):
    ask: Ask
    check: Check
    cel_type: ClassVar[str] = "kubernetes.authorization.PathCheck"


class _GroupCheck(msgspec.Struct, frozen=True, eq=False):
    ask: Ask
    check: Check
    cel_type: ClassVar[str] = "kubernetes.authorization.GroupCheck"


class ResourceCheck(msgspec.Struct, frozen=True, eq=False):
    """A check of a resource: of ``authorizer.group(g).resource(r)``, and the variable ``authorizer.requestResource``."""

    ask: Ask
    check: Check
    cel_type: ClassVar[str] = "kubernetes.authorization.ResourceCheck"


def _path(authorizer: Any, path: Any) -> _PathCheck:
    if type(authorizer) is not Authorizer or type(path) is not str:
        raise NoOverload
    if not path.strip():
        raise EvaluationError("path must not be empty")
    return _PathCheck(authorizer.ask, Check(path=path, service_account=authorizer.service_account))


def _group(authorizer: Any, group: Any) -> _GroupCheck:
    if type(authorizer) is not Authorizer or type(group) is not str:
        raise NoOverload
    return _GroupCheck(authorizer.ask, Check(group=group, service_account=authorizer.service_account))


def _service_account(authorizer: Any, namespace: Any, name: Any) -> Authorizer:
    if type(authorizer) is not Authorizer or type(namespace) is not str or type(name) is not str:
        raise NoOverload
    if dns1123_subdomain(name):
        raise EvaluationError("Invalid service account name")
    if dns1123_label(namespace):
        raise EvaluationError("Invalid service account namespace")
    return Authorizer(authorizer.ask, (namespace, name))


def _resource(group: Any, resource: Any) -> ResourceCheck:
    if type(group) is not _GroupCheck or type(resource) is not str:
        raise NoOverload
    if not resource.strip():
        raise EvaluationError("resource must not be empty")
    return ResourceCheck(group.ask, msgspec.structs.replace(group.check, resource=resource))


def _set(field: str) -> Callable[[Any, Any], ResourceCheck]:
    def function(check: Any, value: Any) -> ResourceCheck:
        if type(check) is not ResourceCheck or type(value) is not str:
            raise NoOverload
        return ResourceCheck(check.ask, msgspec.structs.replace(check.check, **{field: value}))

    return function


def _check(check: Any, verb: Any) -> Decision:
    if type(check) not in (_PathCheck, ResourceCheck) or type(verb) is not str:
        raise NoOverload
    decision: Decision = check.ask(msgspec.structs.replace(check.check, verb=verb))
    return decision


KUBERNETES: dict[str, Callable[..., Any]] = {
    "quantity": _quantity,
    "isQuantity": _succeeds(_quantity),
    "sign": _on(Quantity, lambda quantity: quantity.sign),
    "asApproximateFloat": _on(Quantity, float),
    "asInteger": _on(Quantity, _as_integer),
    "isInteger": _on(Quantity, _is_integer),
    "add": _add,
    "sub": _sub,
    "compareTo": _compared(lambda order: order),
    "isGreaterThan": _compared(lambda order: order > 0),
    "isLessThan": _compared(lambda order: order < 0),
    "semver": _semver,
    "isSemver": _succeeds(_semver),
    "major": _on(Semver, lambda version: version.major),
    "minor": _on(Semver, lambda version: version.minor),
    "patch": _on(Semver, lambda version: version.patch),
    "format.named": _named,
    "validate": _validate,
    **{f"format.{name}": _constant(format_) for name, format_ in FORMATS.items()},
    "path": _path,
    "group": _group,
    "serviceAccount": _service_account,
    "resource": _resource,
    "subresource": _set("subresource"),
    "namespace": _set("namespace"),
    "name": _set("name"),
    "fieldSelector": _set("field_selector"),
    "labelSelector": _set("label_selector"),
    "check": _check,
    "allowed": _on(Decision, lambda decision: decision.allowed),
    "reason": _on(Decision, lambda decision: decision.reason),
    "errored": _on(Decision, lambda decision: bool(decision.error)),
    "error": _on(Decision, lambda decision: decision.error),
}
