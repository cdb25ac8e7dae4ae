"""The declarations that Kubernetes 1.36 adds to CEL: its own libraries, and extensions of cel-go."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.cel.signatures import Overload, merged, signatures
from steersman.api.cel.standard import FUNCTIONS, NAMES, OPERATORS, OPTIONALS
from steersman.api.cel.types import Sort, Type, struct, type_of

AUTHORIZER = struct("kubernetes.authorization.Authorizer")

RESOURCE_CHECK = struct("kubernetes.authorization.ResourceCheck")

_NAMED = {
    "Authorizer": AUTHORIZER,
    "PathCheck": struct("kubernetes.authorization.PathCheck"),
    "GroupCheck": struct("kubernetes.authorization.GroupCheck"),
    "ResourceCheck": RESOURCE_CHECK,
    "Decision": struct("kubernetes.authorization.Decision"),
    "URL": struct("kubernetes.URL"),
    "Quantity": struct("kubernetes.Quantity"),
    "Format": struct("kubernetes.NamedFormat"),
    "Semver": struct("kubernetes.Semver"),
    "IP": Type(Sort.OPAQUE, "net.IP"),
    "CIDR": Type(Sort.OPAQUE, "net.CIDR"),
}
_TEMPLATES = {
    "comparable": ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"),
    "summable": ("int", "uint", "double", "duration"),
}


def _library(text: str) -> dict[str, tuple[Overload, ...]]:
    return signatures(text, named=_NAMED, templates=_TEMPLATES)


URLS = _library(
    """
    url(string): URL
    URL::getScheme(): string
    URL::getHost(): string
    URL::getHostname(): string
    URL::getPort(): string
    URL::getEscapedPath(): string
    URL::getQuery(): map<string, list<string>>
    isURL(string): bool
    """
)
REGEX = _library(
    """
    string::find(string): string
    string::findAll(string): list<string>
    string::findAll(string, int): list<string>
    """
)
LISTS = _library(
    """
    list<{comparable}>::isSorted(): bool
    list<{summable}>::sum(): {summable}
    list<{comparable}>::max(): {comparable}
    list<{comparable}>::min(): {comparable}
    list<A>::indexOf(A): int
    list<A>::lastIndexOf(A): int
    """
)
AUTHORIZATION = _library(
    """
    Authorizer::path(string): PathCheck
    Authorizer::group(string): GroupCheck
    Authorizer::serviceAccount(string, string): Authorizer
    GroupCheck::resource(string): ResourceCheck
    ResourceCheck::subresource(string): ResourceCheck
    ResourceCheck::namespace(string): ResourceCheck
    ResourceCheck::name(string): ResourceCheck
    PathCheck::check(string): Decision
    ResourceCheck::check(string): Decision
    Decision::errored(): bool
    Decision::error(): string
    Decision::allowed(): bool
    Decision::reason(): string
    ResourceCheck::fieldSelector(string): ResourceCheck
    ResourceCheck::labelSelector(string): ResourceCheck
    """
)
QUANTITY = _library(
    """
    quantity(string): Quantity
    isQuantity(string): bool
    sign(Quantity): int
    Quantity::isGreaterThan(Quantity): bool
    Quantity::isLessThan(Quantity): bool
    Quantity::compareTo(Quantity): int
    Quantity::asApproximateFloat(): double
    Quantity::asInteger(): int
    Quantity::isInteger(): bool
    Quantity::add(Quantity): Quantity
    Quantity::add(int): Quantity
    Quantity::sub(Quantity): Quantity
    Quantity::sub(int): Quantity
    """
)
STRINGS = _library(
    """
    string::charAt(int): string
    string::indexOf(string): int
    string::indexOf(string, int): int
    string::lastIndexOf(string): int
    string::lastIndexOf(string, int): int
    string::lowerAscii(): string
    string::replace(string, string): string
    string::replace(string, string, int): string
    string::split(string): list<string>
    string::split(string, int): list<string>
    string::substring(int): string
    string::substring(int, int): string
    string::trim(): string
    string::upperAscii(): string
    string::format(list<dyn>): string
    strings.quote(string): string
    list<string>::join(): string
    list<string>::join(string): string
    """
)
SETS = _library(
    """
    sets.contains(list<T>, list<T>): bool
    sets.equivalent(list<T>, list<T>): bool
    sets.intersects(list<T>, list<T>): bool
    """
)
ADDRESSES = _library(
    """
    ip(string): IP
    IP::family(): int
    ip.isCanonical(string): bool
    IP::isUnspecified(): bool
    IP::isLoopback(): bool
    IP::isLinkLocalMulticast(): bool
    IP::isLinkLocalUnicast(): bool
    IP::isGlobalUnicast(): bool
    isIP(string): bool
    string(IP): string
    cidr(string): CIDR
    CIDR::containsIP(string): bool
    CIDR::containsIP(IP): bool
    CIDR::containsCIDR(string): bool
    CIDR::containsCIDR(CIDR): bool
    CIDR::ip(): IP
    CIDR::prefixLength(): int
    CIDR::masked(): CIDR
    isCIDR(string): bool
    string(CIDR): string
    """
)
FORMAT = _library(
    """
    Format::validate(string): optional<list<string>>
    format.named(string): optional<Format>
    format.dns1123Label(): Format
    format.dns1123Subdomain(): Format
    format.dns1035Label(): Format
    format.qualifiedName(): Format
    format.dns1123LabelPrefix(): Format
    format.dns1123SubdomainPrefix(): Format
    format.dns1035LabelPrefix(): Format
    format.labelValue(): Format
    format.uri(): Format
    format.uuid(): Format
    format.byte(): Format
    format.date(): Format
    format.datetime(): Format
    """
)
JSON_PATCH = _library(
    """
    jsonpatch.escapeKey(string): string
    """
)
"""Only in the expressions of MutatingAdmissionPolicies."""
LOOPS = _library(
    """
    cel.@mapInsert(map<K, V>, K, V): map<K, V>
    cel.@mapInsert(map<K, V>, map<K, V>): map<K, V>
    """
)
SEMVER = _library(
    """
    semver(string): Semver
    semver(string, bool): Semver
    isSemver(string): bool
    isSemver(string, bool): bool
    Semver::isGreaterThan(Semver): bool
    Semver::isLessThan(Semver): bool
    Semver::compareTo(Semver): int
    Semver::major(): int
    Semver::minor(): int
    Semver::patch(): int
    """
)
MORE_LISTS = _library(
    """
    list<T>::slice(int, int): list<T>
    list<list<T>>::flatten(): list<T>
    list<dyn>::flatten(int): list<dyn>
    list<{comparable}>::sort(): list<{comparable}>
    list<T>::@sortByAssociatedKeys(list<{comparable}>): list<T>
    lists.range(int): list<int>
    list<T>::reverse(): list<T>
    list<T>::distinct(): list<T>
    """
)

LIBRARY: Mapping[str, tuple[Overload, ...]] = merged(
    OPERATORS,
    FUNCTIONS,
    URLS,
    REGEX,
    LISTS,
    AUTHORIZATION,
    OPTIONALS,
    QUANTITY,
    STRINGS,
    SETS,
    ADDRESSES,
    FORMAT,
    LOOPS,
    SEMVER,
    MORE_LISTS,
)
"""All functions available to expressions on a Kubernetes 1.36 API server."""

TYPE_NAMES: Mapping[str, Type] = {
    **NAMES,
    **{one.name: type_of(one) for one in (_NAMED["IP"], _NAMED["CIDR"])},
}
