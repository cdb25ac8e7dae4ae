"""Validation of names, ports, keys and paths.

A rule takes a value and returns the messages of what is wrong with it. The messages are upstream's, down to
which of its two libraries says "bytes" and which "characters".
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

from steersman.api import dns_names
from steersman.api.bounded_cache import MAX_SHORT, short_cache
from steersman.api.dns_names import (
    SUBDOMAIN,
    VALID,
    byte_length,
    match,
    max_length_message,
    regex_message,
)
from steersman.api.label_syntax import key_errors, path_segment_errors, subdomain_errors
from steersman.server.validation.field_errors import FieldErrors

NameRule: TypeAlias = dns_names.NameRule

_UNDERSCORE = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH = rf"{_UNDERSCORE}(\.{_UNDERSCORE})*"
_WILDCARD = rf"\*\.{SUBDOMAIN}"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_PERCENT = "[0-9]+%"
_HEADER = "[-A-Za-z0-9]+"
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"

_is_search = re.compile(_SEARCH).fullmatch
_is_wildcard = re.compile(_WILDCARD).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_is_percent = re.compile(_PERCENT).fullmatch
_is_header = re.compile(_HEADER).fullmatch
_is_http_path = re.compile(_HTTP_PATH).fullmatch
_is_port_name = re.compile("[-a-z0-9]+").fullmatch
_has_letter = re.compile("[a-z]").search
_is_env_var_name = re.compile("[ -<>-~]+").fullmatch


_SEARCH_MESSAGE = regex_message(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and "
    "must start and end with an alphanumeric character",
    _SEARCH,
    "example.com",
)
_WILDCARD_MESSAGE = regex_message(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must "
    "consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    _WILDCARD,
    "*.example.com",
)
_CONFIG_KEY_MESSAGE = regex_message(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)
_PERCENT_MESSAGE = regex_message(
    "a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%"
)
_HEADER_MESSAGE = regex_message(
    "a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name"
)
_PORT_RANGE = "must be between 1 and 65535, inclusive"


# -- names ------------------------------------------------------------------------------------


dns1123_subdomain: NameRule = dns_names.dns1123_subdomain
dns1123_label: NameRule = dns_names.dns1123_label
dns1035_label: NameRule = dns_names.dns1035_label


def wildcard_subdomain(name: str) -> tuple[str, ...]:
    """A host name whose first label is ``*`` (IsWildcardDNS1123Subdomain)."""
    return match(name, 253, _is_wildcard, _WILDCARD_MESSAGE)


def dns_search_domain(name: str) -> tuple[str, ...]:
    """A DNS search domain, which may have underscores (IsDNS1123SubdomainWithUnderscore)."""
    return match(name, 253, _is_search, _SEARCH_MESSAGE)


def path_segment(name: str) -> tuple[str, ...]:
    """A name that can be one segment of a URL path (IsValidPathSegmentName)."""
    return path_segment_errors(name)


def any_name(name: str) -> tuple[str, ...]:
    return VALID


qualified_name: NameRule = key_errors
"""A name with an optional domain prefix, such as a label key (IsQualifiedName)."""

subdomain_in_bytes: NameRule = subdomain_errors
"""A DNS subdomain, for kinds whose message counts bytes."""


def generate_name(rule: NameRule, name: str) -> tuple[str, ...]:
    """Applies a rule to a generateName, which may end with a dash since a suffix follows."""
    return (_generate_name if len(name) <= MAX_SHORT else _generate_name.__wrapped__)(rule, name)


@lru_cache(maxsize=4096)
def _generate_name(rule: NameRule, name: str) -> tuple[str, ...]:
    if rule is path_segment:
        return tuple(detail for detail in path_segment(name) if detail.startswith("may not contain"))
    if len(name) > 1 and name.endswith("-"):
        return rule(name[:-2] + "a")
    return rule(name)


# -- other values--------------------------------------------------------------------------------


def port_number(number: int) -> tuple[str, ...]:
    return VALID if 1 <= number <= 65535 else (_PORT_RANGE,)


@short_cache(1024)
def port_name(name: str) -> tuple[str, ...]:
    messages = []
    if byte_length(name) > 15:
        messages.append(max_length_message(15))
    if not _is_port_name(name):
        messages.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _has_letter(name):
        messages.append("must contain at least one letter (a-z)")
    if "--" in name:
        messages.append("must not contain consecutive hyphens")
    if name and (name[0] == "-" or name[-1] == "-"):
        messages.append("must not begin or end with a hyphen")
    return tuple(messages)


def percent(text: str) -> tuple[str, ...]:
    return VALID if _is_percent(text) else (_PERCENT_MESSAGE,)


def http_header(name: str) -> tuple[str, ...]:
    return VALID if _is_header(name) else (_HEADER_MESSAGE,)


def env_var_name(name: str) -> tuple[str, ...]:
    """The name of an environment variable: printable ASCII without ``=`` (IsRelaxedEnvVarName)."""
    if _is_env_var_name(name):
        return VALID
    return (
        "a valid environment variable name must consist only of printable ASCII characters other than '='",
    )


def config_map_key(key: str) -> tuple[str, ...]:
    """A key of a ConfigMap or Secret, which may become a file name (IsConfigMapKey)."""
    # An object may have more than a hundred thousand keys, most of them plain.
    if len(key) <= 253 and _is_config_key(key) and not key.startswith("."):
        return VALID
    messages = match(key, 253, _is_config_key, _CONFIG_KEY_MESSAGE)
    if key.startswith(".."):
        messages += ("must not be '..'" if key == ".." else "must not start with '..'",)
    elif key == ".":
        messages += ("must not be '.'",)
    return messages


def inclusive_range(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


# -- with a field path---------------------------------------------------------------------------


def validate_webhook_name(errors: FieldErrors, path: str, name: str) -> None:
    """Validates the name of a webhook: a domain of three labels or more (IsFullyQualifiedName)."""
    if not name:
        errors.required(path)
    elif messages := dns1123_subdomain(name):
        errors.invalid(path, name, ",".join(messages))
    elif name.count(".") < 2:
        errors.invalid(path, name, "should be a domain with at least three segments separated by dots")


def validate_fully_qualified_domain_name(errors: FieldErrors, path: str, name: str) -> None:
    """Validates a domain name of two labels or more (IsFullyQualifiedDomainName)."""
    if not name:
        errors.required(path)
        return
    name = name.removesuffix(".")
    if messages := dns1123_subdomain(name):
        errors.invalid(path, name, ",".join(messages))
        return
    parts = name.split(".")
    if len(parts) < 2:
        errors.invalid(path, name, "should be a domain with at least two segments separated by dots")
        return
    for part in parts:
        if messages := dns1123_label(part):
            errors.invalid(path, part, ",".join(messages))
            return


def validate_domain_prefixed_path(errors: FieldErrors, path: str, text: str) -> None:
    """Validates a path with a domain prefix, such as ``acme.io/foo`` (IsDomainPrefixedPath)."""
    if not text:
        errors.required(path)
        return
    host, _, rest = text.partition("/")
    if not host or not rest:
        errors.invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    errors.invalid_each(path, host, dns1123_subdomain(host))
    if not _is_http_path(rest):
        errors.invalid(path, rest, regex_message("Invalid path", _HTTP_PATH))


def validate_path_no_backsteps(errors: FieldErrors, path: str, text: str) -> None:
    """Validates that a file path has no ``..`` segment."""
    if ".." in text and ".." in text.split("/"):
        errors.invalid(path, text, "must not contain '..'")


def validate_descending_path(errors: FieldErrors, path: str, text: str) -> None:
    """Validates a relative file path without ``..`` segments."""
    if text.startswith("/"):
        errors.invalid(path, text, "must be a relative path")
    validate_path_no_backsteps(errors, path, text)


def validate_nonreserved_path(errors: FieldErrors, path: str, text: str) -> None:
    """Validates a descending path that does not start with ``..``, a prefix that atomic writers of volumes use."""
    validate_descending_path(errors, path, text)
    if text.startswith("..") and not text.startswith("../"):
        errors.invalid(path, text, "must not start with '..'")
