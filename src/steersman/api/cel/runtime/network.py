"""Kubernetes' CEL libraries of URLs, IP addresses and CIDRs, with the errors of Go's net/url and net/netip."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_address, ip_interface
from typing import Any, ClassVar
from urllib.parse import quote, unquote

import msgspec

from steersman.api.cel.runtime.values import EvaluationError, NoOverload
from steersman.api.go_query import parse_query
from steersman.api.go_quote import quote as go_quote

# -- URLs -----------------------------------------------------------------------------------------


class URL(msgspec.Struct, frozen=True):
    """A URL, absolute or with an absolute path."""

    text: str
    scheme: str
    host: str
    """The host with its port."""
    path: str
    """The path, escaped."""
    query: str
    cel_type: ClassVar[str] = "kubernetes.URL"

    @property
    def hostname(self) -> str:
        host = self.host
        if host.startswith("["):
            return host[1:].partition("]")[0]
        return host.rpartition(":")[0] if ":" in host else host

    @property
    def port(self) -> str:
        tail = self.host.rpartition("]")[2]
        return tail.rpartition(":")[2] if ":" in tail else ""


_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*")
_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2}).{0,2}", re.DOTALL)
_PORT = re.compile(r"(?::[0-9]*)?")
_HOST_CHARACTER = re.compile(r"[ <>\"\\^`{|}#?/]")
_PATH_SAFE = "/:@!$&'()*+,;=-._~"


def parse_request_uri(text: str) -> URL:
    """Parses a URL as Go's ParseRequestURI. Raises `ValueError` with Go's message."""

    def invalid(why: str) -> ValueError:
        return ValueError(f"parse {go_quote(text)}: {why}")

    if any(char < " " or char == "\x7f" for char in text):
        raise invalid("net/url: invalid control character in URL")
    if not text:
        raise invalid("empty url")
    if text == "*":
        return URL(text, "", "", "*", "")
    scheme, rest = "", text
    if ":" in text and not text.startswith("/"):
        head = text.partition(":")[0]
        if text.startswith(":"):
            raise invalid("missing protocol scheme")
        if _SCHEME.fullmatch(head):
            scheme, rest = head.lower(), text[len(head) + 1 :]
        elif head[0].isalpha() and "/" not in head:
            raise invalid("invalid URI for request")
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return URL(text, scheme, "", "", query)
        raise invalid("invalid URI for request")
    host = ""
    if (scheme or not rest.startswith("///")) and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        host = authority.rpartition("@")[2]
        problem = _host_problem(host)
        if problem:
            raise invalid(problem)
    bad = _ESCAPE.search(rest)
    if bad is not None:
        raise invalid(f"invalid URL escape {go_quote(bad[0])}")
    return URL(text, scheme, unquote(host), _escaped(rest), query)


def _host_problem(host: str) -> str:
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            return "missing ']' in host"
        port = host[end + 1 :]
    else:
        colon = host.rfind(":")
        port = host[colon:] if colon >= 0 else ""
        if host.count(":") > 1:
            port = host[host.index(":") :]
    if not _PORT.fullmatch(port):
        return f"invalid port {go_quote(port)} after host"
    bad = _HOST_CHARACTER.search(host)
    return f"invalid character {go_quote(bad[0])} in host name" if bad is not None else ""


def _escaped(path: str) -> str:
    """A path with what has to be escaped, escaped; what is escaped stays so."""
    return quote(path, safe=_PATH_SAFE + "%[]")


def _url(text: Any) -> URL:
    if type(text) is not str:
        raise NoOverload
    try:
        return parse_request_uri(text)
    except ValueError as error:
        raise EvaluationError(f"URL parse error during conversion from string: {error}") from None


def _is_url(text: Any) -> bool:
    if type(text) is not str:
        raise NoOverload
    try:
        parse_request_uri(text)
    except ValueError:
        return False
    return True


# -- addresses ------------------------------------------------------------------------------------


class IP(msgspec.Struct, frozen=True):
    """An IP address."""

    address: IPv4Address | IPv6Address
    cel_type: ClassVar[str] = "net.IP"

    @property
    def cel_string(self) -> str:
        return str(self.address)

    @property
    def cel_size(self) -> int:
        return 4 if self.address.version == 4 else 16


class CIDR(msgspec.Struct, frozen=True):
    """An IP address and the length of a prefix."""

    prefix: IPv4Interface | IPv6Interface
    cel_type: ClassVar[str] = "net.CIDR"

    @property
    def cel_string(self) -> str:
        return str(self.prefix)

    @property
    def cel_size(self) -> int:
        # As upstream: the bytes that the prefix has.
        return -(-self.prefix.network.prefixlen // 8)


def _address_error(text: str, why: str, at: str = "") -> str:
    where = f" (at {go_quote(at)})" if at else ""
    return f"ParseAddr({go_quote(text)}): {why}{where}"


def _parse_address(text: str) -> IPv4Address | IPv6Address:
    """Parses an address as Go's netip.ParseAddr. Raises `ValueError` with Go's message."""
    for char in text:
        if char == ".":
            problem = _ipv4_problem(text, text)
            break
        if char == ":":
            problem = _ipv6_problem(text)
            break
        if char == "%":
            problem = _address_error(text, "missing IPv6 address")
            break
    else:
        problem = _address_error(text, "unable to parse IP")
    if problem:
        raise ValueError(problem)
    return ip_address(text)


def _ipv4_problem(text: str, fields: str) -> str:
    value = position = digits = 0
    for index, char in enumerate(fields):
        if "0" <= char <= "9":
            if digits == 1 and value == 0:
                return _address_error(text, "IPv4 field has octet with leading zero")
            value, digits = value * 10 + int(char), digits + 1
            if value > 255:
                return _address_error(text, "IPv4 field has value >255")
        elif char == ".":
            if index in (0, len(fields) - 1) or fields[index - 1] == ".":
                return _address_error(text, "IPv4 field must have at least one digit", fields[index:])
            if position == 3:
                return _address_error(text, "IPv4 address too long")
            position, value, digits = position + 1, 0, 0
        else:
            return _address_error(text, "unexpected character", fields[index:])
    return _address_error(text, "IPv4 address too short") if position < 3 else ""


_HEX = frozenset("0123456789abcdefABCDEF")


def _ipv6_problem(text: str) -> str:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        return _address_error(text, "zone must be a non-empty string")
    ellipsis = -1
    if rest.startswith("::"):
        ellipsis, rest = 0, rest[2:]
        if not rest:
            return ""
    count = 0
    while count < 16:
        length = next((index for index, char in enumerate(rest) if char not in _HEX), len(rest))
        if length > 4:
            if int(rest[:length][:5], 16) > 0xFFFF:
                return _address_error(text, "IPv6 field has value >=2^16", rest)
            return _address_error(text, "each group must have 4 or less digits", rest)
        if length == 0:
            return _address_error(text, "each colon-separated field must have at least one digit", rest)
        if rest[length : length + 1] == ".":
            if ellipsis < 0 and count != 12:
                return _address_error(
                    text, "embedded IPv4 address must replace the final 2 fields of the address", rest
                )
            if count + 4 > 16:
                return _address_error(
                    text, "too many hex fields to fit an embedded IPv4 at the end of the address", rest
                )
            problem = _ipv4_problem(text, rest)
            if problem:
                return problem
            rest, count = "", count + 4
            break
        count += 2
        rest = rest[length:]
        if not rest:
            break
        if rest[0] != ":":
            return _address_error(text, "unexpected character, want colon", rest)
        if len(rest) == 1:
            return _address_error(text, "colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis >= 0:
                return _address_error(text, "multiple :: in address", rest)
            ellipsis, rest = count, rest[1:]
            if not rest:
                break
    if rest:
        return _address_error(text, "trailing garbage after address", rest)
    if count < 16 and ellipsis < 0:
        return _address_error(text, "address string too short")
    if count == 16 and ellipsis >= 0:
        return _address_error(text, "the :: must expand to at least one field of zeros")
    return ""


def _ip_of(text: str) -> IP:
    """Raises `EvaluationError`."""
    try:
        address = _parse_address(text)
    except ValueError as error:
        raise EvaluationError(
            f"IP Address {go_quote(text)} parse error during conversion from string: {error}"
        ) from None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise EvaluationError(f"IP address {go_quote(text)} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise EvaluationError(f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return IP(address)


def _cidr_of(text: str) -> CIDR:
    try:
        address, length = _prefix(text)
    except ValueError as error:
        raise EvaluationError(f"network address parse error during conversion from string: {error}") from None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(
            "network address parse error during conversion from string: "
            f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed"
        )
    return CIDR(ip_interface(f"{address}/{length}"))


def _prefix(text: str) -> tuple[IPv4Address | IPv6Address, int]:
    def invalid(why: str) -> ValueError:
        # The library's parser wraps the error a second time.
        return ValueError(
            f"network address parse error during conversion from string: netip.ParsePrefix({go_quote(text)}): {why}"
        )

    head, slash, bits = text.rpartition("/")
    if not slash:
        raise invalid("no '/'")
    try:
        address = _parse_address(head)
    except ValueError as error:
        raise invalid(str(error)) from None
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        raise invalid("IPv6 zones cannot be present in a prefix")
    if (len(bits) > 1 and not "1" <= bits[0] <= "9") or not (bits.isascii() and bits.isdigit()):
        raise invalid(f"bad bits after slash: {go_quote(bits)}")
    if len(bits) > 3 or int(bits) > address.max_prefixlen:
        raise invalid("prefix length out of range")
    return address, int(bits)


def _text(function: Callable[[str], Any]) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:
        if type(value) is not str:
            raise NoOverload
        return function(value)

    return call


def _succeeds(function: Callable[[str], Any]) -> Callable[[Any], bool]:
    def call(value: Any) -> bool:
        if type(value) is not str:
            raise NoOverload
        try:
            function(value)
        except EvaluationError:
            return False
        return True

    return call


def _on(type_: type, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:
        if type(value) is not type_:
            raise NoOverload
        return function(value)

    return call


def _contains_ip(cidr: Any, other: Any) -> bool:
    if type(other) is str:
        other = _ip_of(other)
    if type(cidr) is not CIDR or type(other) is not IP:
        raise NoOverload
    return other.address in cidr.prefix.network


def _contains_cidr(cidr: Any, other: Any) -> bool:
    if type(other) is str:
        other = _cidr_of(other)
    if type(cidr) is not CIDR or type(other) is not CIDR:
        raise NoOverload
    mine, theirs = cidr.prefix.network, other.prefix.network
    return mine.version == theirs.version and theirs.subnet_of(mine)  # type: ignore[arg-type]


def _is_global_unicast(ip: IP) -> bool:
    address = ip.address
    plain = not (address.is_unspecified or address.is_loopback or address.is_multicast)
    return plain and not _is_link_local(ip) and str(address) != "255.255.255.255"


def _is_link_local(ip: IP) -> bool:
    return bool(ip.address.is_link_local)


def _is_link_local_multicast(ip: IP) -> bool:
    packed = ip.address.packed
    if len(packed) == 4:
        return packed[:3] == bytes((224, 0, 0))
    return packed[0] == 0xFF and packed[1] & 0x0F == 2


def _ip(value: Any) -> IP:
    if type(value) is CIDR:
        return IP(value.prefix.ip)
    if type(value) is str:
        return _ip_of(value)
    raise NoOverload


NETWORK: dict[str, Callable[..., Any]] = {
    "url": _url,
    "isURL": _is_url,
    "getScheme": _on(URL, lambda url: url.scheme),
    "getHost": _on(URL, lambda url: url.host),
    "getHostname": _on(URL, lambda url: url.hostname),
    "getPort": _on(URL, lambda url: url.port),
    "getEscapedPath": _on(URL, lambda url: url.path),
    "getQuery": _on(URL, lambda url: parse_query(url.query)),
    "ip": _ip,
    "isIP": _succeeds(_ip_of),
    "ip.isCanonical": _text(lambda text: _ip_of(text).cel_string == text),
    "family": _on(IP, lambda ip: ip.address.version),
    "isUnspecified": _on(IP, lambda ip: ip.address.is_unspecified),
    "isLoopback": _on(IP, lambda ip: ip.address.is_loopback),
    "isLinkLocalMulticast": _on(IP, _is_link_local_multicast),
    "isLinkLocalUnicast": _on(IP, _is_link_local),
    "isGlobalUnicast": _on(IP, _is_global_unicast),
    "cidr": _text(_cidr_of),
    "isCIDR": _succeeds(_cidr_of),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "prefixLength": _on(CIDR, lambda cidr: cidr.prefix.network.prefixlen),
    "masked": _on(CIDR, lambda cidr: CIDR(ip_interface(str(cidr.prefix.network)))),
}
