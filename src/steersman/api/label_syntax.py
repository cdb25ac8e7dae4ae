"""Validates label keys, label values, DNS subdomains and path segments, with upstream's error messages."""

from __future__ import annotations

import json
import re

from steersman.api.bounded_cache import short_cache
from steersman.api.go_quote import quote

_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"

_is_name = re.compile(_NAME).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch

MAX_NAME = 63
MAX_SUBDOMAIN = 253

_NAME_ERROR = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    f"character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_KEY_ERROR = (
    f"a valid label key {_NAME_ERROR} with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)
_VALUE_ERROR = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    f"for validation is '({_NAME})?')"
)
_SUBDOMAIN_ERROR = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{_SUBDOMAIN}')"
)


def _too_long(most: int) -> str:
    return f"must be no more than {most} bytes"


def _byte_length(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


@short_cache(4096)
def key_errors(key: str) -> tuple[str, ...]:
    """Return the errors of a label key (a "qualified name"); empty if it is valid."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return (_KEY_ERROR,)
    errors = []
    if slash and not prefix:
        errors.append("prefix part must be non-empty")
    elif slash:
        errors += [f"prefix part {error}" for error in subdomain_errors(prefix)]
    if not name:
        errors.append("name part must be non-empty")
    elif _byte_length(name) > MAX_NAME:
        errors.append(f"name part {_too_long(MAX_NAME)}")
    if not _is_name(name):
        errors.append(f"name part {_NAME_ERROR}")
    return tuple(errors)


@short_cache(4096)
def value_errors(value: str) -> tuple[str, ...]:
    """Return the errors of a label value; empty if it is valid."""
    errors = []
    if _byte_length(value) > MAX_NAME:
        errors.append(_too_long(MAX_NAME))
    if value and not _is_name(value):
        errors.append(_VALUE_ERROR)
    return tuple(errors)


def subdomain_errors(name: str) -> tuple[str, ...]:
    """Return the errors of a DNS subdomain, the syntax of most names; empty if it is valid."""
    errors = []
    if _byte_length(name) > MAX_SUBDOMAIN:
        errors.append(_too_long(MAX_SUBDOMAIN))
    if not _is_subdomain(name):
        errors.append(_SUBDOMAIN_ERROR)
    return tuple(errors)


def path_segment_errors(name: str) -> tuple[str, ...]:
    """Return the errors of a name that is to be one segment of a URL path (IsValidPathSegmentName); empty if it is valid."""
    if name in (".", ".."):
        return (f"may not be '{name}'",)
    return tuple(f"may not contain '{part}'" for part in ("/", "%") if part in name)


def invalid(path: str, value: object, detail: str) -> str:
    """Format a field error as upstream does: ``key: Invalid value: "a b": …``."""
    shown = (
        quote(value)
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    )
    return f"{path}: Invalid value: {shown}: {detail}"
