"""The string formats of schemas, and their checks.

An unknown format is not an error: it is ignored, and the author of the definition gets a warning.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import cache, partial
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import urlsplit

_NUMBERS = {"integer": ("int32", "int64"), "number": ("float", "double")}


def normalize(format_: str) -> str:
    """The normalized name of a format, without dashes."""
    return format_.replace("-", "")


def is_supported(format_: str, type_: str) -> bool:
    """Whether a format is supported for a type; an untyped schema has the empty type."""
    if type_ in ("", "string"):
        return normalize(format_) in FORMAT_CHECKS
    return format_ in _NUMBERS.get(type_, ())


# -- text -------------------------------------------------------------------------------------

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"


def _matches(pattern: str, flags: int = 0) -> Callable[[str], bool]:
    # Compiled when it is first used: most clusters use few formats, or none.
    compiled = cache(lambda: re.compile(pattern, flags | re.ASCII))
    return lambda text: compiled().fullmatch(text) is not None


def _uuid(version: str = "[0-9a-f]", variant: str = "[0-9a-f]") -> Callable[[str], bool]:
    return _matches(
        f"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{version}[0-9a-f]{{3}}-?{variant}[0-9a-f]{{3}}-?[0-9a-f]{{12}}", re.I
    )


_is_short_name = _matches(_LABEL)
_is_long_name = _matches(rf"{_LABEL}(\.{_LABEL})*")
_is_hostname = re.compile(
    r"[^\W_](-?[^\W_]{0,62})?|([^\W_](([^\W_]|-){0,61}[^\W_])?\.)+[^\W\d_]{2,63}"
).fullmatch
_is_email = re.compile(
    r"""(?:(?:"[^"]*"|[^<>@,;:\\"]*?)\s*<)?
        (?:[\w!\#$%&'*+/=?^`{|}~-]+(?:\.[\w!\#$%&'*+/=?^`{|}~-]+)*|"(?:[^"\\]|\\.)+")
        @(?:[\w!\#$%&'*+/=?^`{|}~-]+(?:\.[\w!\#$%&'*+/=?^`{|}~-]+)*|\[[^\[\]]*\])(?:>)?""",
    re.VERBOSE,
).fullmatch
_is_ssn = _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}")
_is_card = _matches(
    r"4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(0[0-5]|[68][0-9])[0-9]{11}|(2131|1800|35\d{3})\d{11}"
)
_is_mac = _matches(
    "|".join(
        [f"[0-9a-f]{{2}}({mark}[0-9a-f]{{2}}){{{count - 1}}}" for count in (6, 8, 20) for mark in (":", "-")]
        + [rf"[0-9a-f]{{4}}(\.[0-9a-f]{{4}}){{{count - 1}}}" for count in (3, 4, 10)]
    ),
    re.I,
)
_CHANNEL = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"


def _hostname(text: str) -> bool:
    parts = (part.encode() for part in text.split("."))
    return bool(_is_hostname(text)) and len(text.encode()) <= 255 and all(len(part) <= 63 for part in parts)


def _email(text: str) -> bool:
    return bool(_is_email(text)) and text.endswith(">") == ("<" in text)


def _uri(text: str) -> bool:
    """Whether a text is a URI with a scheme or an absolute path, as Go's ParseRequestURI accepts."""
    if not text or any(char < " " or char == "\x7f" for char in text) or not _escapes(text):
        return False
    if text == "*" or text.startswith("/"):
        return True
    scheme, colon, rest = text.partition(":")
    if not colon or not re.fullmatch("[a-zA-Z][a-zA-Z0-9+.-]*", scheme):
        return False
    if not rest.startswith("//"):
        return True
    try:
        host = urlsplit(text)
        return host.port is not False and " " not in host.netloc and '"' not in host.netloc
    except ValueError:
        return False


def _escapes(text: str) -> bool:
    path = text.partition("?")[0]
    return all(re.match("[0-9a-fA-F]{2}", part) for part in path.split("%")[1:])


def _object_id(text: str) -> bool:
    try:
        return len(binascii.unhexlify(text)) == 12
    except ValueError:
        return False


def _isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{9}[0-9X]", digits):
        return False
    values = [10 if digit == "X" else int(digit) for digit in digits]
    return sum(place * value for place, value in enumerate(values, 1)) % 11 == 0


def _isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{13}", digits):
        return False
    total = sum((1, 3)[place % 2] * int(digit) for place, digit in enumerate(digits[:12]))
    return int(digits[12]) == (10 - total % 10) % 10


def _credit_card(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return _is_card(digits) and sum(value // 10 + value % 10 for value in doubled) % 10 == 0


# -- addresses --------------------------------------------------------------------------------


def _address(text: str) -> int:
    """The number of bits of an IP address: 32 or 128, or 0 if it is invalid. IPv4 may have leading zeros."""
    try:
        if ":" in text:
            return 0 if "%" in text else bool(IPv6Address(_without_zeros(text))) * 128
        IPv4Address(_without_zeros(text))
    except AddressValueError:
        return 0
    return 32


def _without_zeros(text: str) -> str:
    head, colon, tail = text.rpartition(":")
    if "." not in tail:
        return text
    return head + colon + ".".join(part.lstrip("0") or part[:1] for part in tail.split("."))


def _ipv6(text: str) -> bool:
    # Unlike the other formats, ipv6 refuses leading zeros.
    return ":" in text and _address(text) == 128 and _without_zeros(text) == text


def _cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    if not slash or not re.fullmatch("[0-9]{1,3}", bits):
        return False
    most = _address(address)
    return most > 0 and int(bits) <= most


# -- time -------------------------------------------------------------------------------------

_is_date = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch
_is_time = re.compile("([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})").fullmatch
_is_duration = _matches(r"[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)")
_quantities = re.compile(r"\d+\s*([A-Za-zµ]+)", re.ASCII).findall
_UNITS = ("ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk")
_UNIT_PREFIXES = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")


def _date(text: str) -> bool:
    try:
        return bool(_is_date(text)) and bool(date.fromisoformat(text))
    except ValueError:
        # Go accepts the year 0.
        return text.startswith("0000-") and _date(f"2000{text[4:]}")


def _date_time(text: str) -> bool:
    parts = text.lower().split("t")
    if len(parts) < 2 or not _date(parts[0]):
        return False
    found = _is_time(parts[1])
    return found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _duration(text: str) -> bool:
    """Whether a text is a Go duration, or words such as "2 weeks"."""
    if _is_duration(text):
        return True
    units = [unit.lower() for unit in _quantities(text)]
    return any(unit in _UNITS or unit.startswith(_UNIT_PREFIXES) for unit in units)


def _short_name(text: str, most: int = 63, fits: Callable[[str], bool] = _is_short_name) -> bool:
    return len(text) <= most and fits(text)


FORMAT_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "bsonobjectid": _object_id,
    "byte": _matches("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "cidr": _cidr,
    "creditcard": _credit_card,
    "date": _date,
    "datetime": _date_time,
    "duration": _duration,
    "email": _email,
    "hexcolor": _matches("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _hostname,
    "ipv4": lambda text: "." in text and _address(text) > 0,
    "ipv6": _ipv6,
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "k8slongname": partial(_short_name, most=253, fits=_is_long_name),
    "k8sshortname": _short_name,
    "mac": _is_mac,
    "password": lambda text: True,
    "rgbcolor": _matches(rf"rgb\({_CHANNEL},{_CHANNEL},{_CHANNEL}\)"),
    "ssn": lambda text: len(text) == 11 and _is_ssn(text),
    "uri": _uri,
    "uuid": _uuid(),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4", "[89ab]"),
    "uuid5": _uuid("5", "[89ab]"),
}
"""Checks by normalized format name."""
