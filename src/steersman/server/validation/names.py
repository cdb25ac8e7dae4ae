"""What texts may look like: names of all sorts, ports, keys, paths. Each rule answers with what is wrong.

The words are the real server's, down to which of its two libraries says "bytes" and which "characters".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from steersman.api.label_syntax import key_errors, subdomain_errors
from steersman.server.validation.field_errors import FieldErrors

NameRule: TypeAlias = Callable[[str], tuple[str, ...]]

VALID: tuple[str, ...] = ()

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_UNDERSCORE = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH = rf"{_UNDERSCORE}(\.{_UNDERSCORE})*"
_WILDCARD = rf"\*\.{_SUBDOMAIN}"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_PERCENT = "[0-9]+%"
_HEADER = "[-A-Za-z0-9]+"
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_label_1035 = re.compile(_LABEL_1035).fullmatch
_is_search = re.compile(_SEARCH).fullmatch
_is_wildcard = re.compile(_WILDCARD).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_is_percent = re.compile(_PERCENT).fullmatch
_is_header = re.compile(_HEADER).fullmatch
_is_http_path = re.compile(_HTTP_PATH).fullmatch
_is_port_name = re.compile("[-a-z0-9]+").fullmatch
_has_letter = re.compile("[a-z]").search
_is_env_var_name = re.compile("[ -<>-~]+").fullmatch


def _regex_message(says: str, regex: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{says} ({f'e.g. {shown}' if shown else ''}regex used for validation is '{regex}')"


_LABEL_MESSAGE = _regex_message(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_MESSAGE = _regex_message(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_SEARCH_MESSAGE = _regex_message(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and "
    "must start and end with an alphanumeric character",
    _SEARCH,
    "example.com",
)
_LABEL_1035_MESSAGE = _regex_message(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_WILDCARD_MESSAGE = _regex_message(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must "
    "consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    _WILDCARD,
    "*.example.com",
)
_CONFIG_KEY_MESSAGE = _regex_message(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)
_PERCENT_MESSAGE = _regex_message(
    "a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%"
)
_HEADER_MESSAGE = _regex_message(
    "a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name"
)
_PORT_RANGE = "must be between 1 and 65535, inclusive"


def _max_length_message(most: int) -> str:
    return f"must be no more than {most} characters"


def _byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _match(text: str, most: int, fits: Callable[[str], object], wrong: str) -> tuple[str, ...]:
    long = _byte_length(text) > most
    if fits(text):
        return (_max_length_message(most),) if long else VALID
    return (_max_length_message(most), wrong) if long else (wrong,)


# -- names ------------------------------------------------------------------------------------


def dns1123_subdomain(name: str) -> tuple[str, ...]:
    """Labels and dots: what most objects are called."""
    return _match(name, 253, _is_subdomain, _SUBDOMAIN_MESSAGE)


def dns1123_label(name: str) -> tuple[str, ...]:
    """One DNS label."""
    if _is_label(name) and len(name) <= 63:
        return VALID
    return _match(name, 63, _is_label, "must not contain dots" if _is_subdomain(name) else _LABEL_MESSAGE)


def dns1035_label(name: str) -> tuple[str, ...]:
    """One DNS label that starts with a letter."""
    return _match(name, 63, _is_label_1035, _LABEL_1035_MESSAGE)


def wildcard_subdomain(name: str) -> tuple[str, ...]:
    """A host name whose first label is a star."""
    return _match(name, 253, _is_wildcard, _WILDCARD_MESSAGE)


def dns_search_domain(name: str) -> tuple[str, ...]:
    """A domain to search in, where underscores are taken too."""
    return _match(name, 253, _is_search, _SEARCH_MESSAGE)


def path_segment(name: str) -> tuple[str, ...]:
    """Whatever fits between two slashes of a path."""
    if name in (".", ".."):
        return (f"may not be '{name}'",)
    return tuple(f"may not contain '{part}'" for part in ("/", "%") if part in name)


def any_name(name: str) -> tuple[str, ...]:
    return VALID


qualified_name: NameRule = key_errors
"""A name with an optional domain before it, as label keys are."""

subdomain_in_bytes: NameRule = subdomain_errors
"""A subdomain, where the real server counts bytes."""


@lru_cache(maxsize=4096)
def generate_name(rule: NameRule, name: str) -> tuple[str, ...]:
    """A ``generateName``: what is added to it lets it end with a dash."""
    if rule is path_segment:
        return tuple(why for why in path_segment(name) if why.startswith("may not contain"))
    if len(name) > 1 and name.endswith("-"):
        return rule(name[:-2] + "a")
    return rule(name)


# -- others -----------------------------------------------------------------------------------


def port_number(number: int) -> tuple[str, ...]:
    return VALID if 1 <= number <= 65535 else (_PORT_RANGE,)


@lru_cache(maxsize=1024)
def port_name(name: str) -> tuple[str, ...]:
    messages = []
    if _byte_length(name) > 15:
        messages.append(_max_length_message(15))
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
    """The name of an environment variable; no longer must it be an identifier."""
    if _is_env_var_name(name):
        return VALID
    return (
        "a valid environment variable name must consist only of printable ASCII characters other than '='",
    )


def config_map_key(key: str) -> tuple[str, ...]:
    """A key of a ConfigMap or a Secret, which may become a file."""
    messages = _match(key, 253, _is_config_key, _CONFIG_KEY_MESSAGE)
    if key.startswith(".."):
        messages += ("must not be '..'" if key == ".." else "must not start with '..'",)
    elif key == ".":
        messages += ("must not be '.'",)
    return messages


def inclusive_range(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


# -- with a path ------------------------------------------------------------------------------


def validate_webhook_name(errors: FieldErrors, path: str, name: str) -> None:
    """A domain of three labels or more: what webhooks are called."""
    if not name:
        errors.required(path)
    elif messages := dns1123_subdomain(name):
        errors.invalid(path, name, ",".join(messages))
    elif name.count(".") < 2:
        errors.invalid(path, name, "should be a domain with at least three segments separated by dots")


def validate_fully_qualified_domain_name(errors: FieldErrors, path: str, name: str) -> None:
    """A host name of two labels or more."""
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
    """A path with a domain before it, such as ``acme.io/foo``."""
    if not text:
        errors.required(path)
        return
    host, _, rest = text.partition("/")
    if not host or not rest:
        errors.invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    errors.invalid_each(path, host, dns1123_subdomain(host))
    if not _is_http_path(rest):
        errors.invalid(path, rest, _regex_message("Invalid path", _HTTP_PATH))


def validate_path_no_backsteps(errors: FieldErrors, path: str, text: str) -> None:
    """A path of files that does not climb."""
    if ".." in text and ".." in text.split("/"):
        errors.invalid(path, text, "must not contain '..'")


def validate_descending_path(errors: FieldErrors, path: str, text: str) -> None:
    """A relative path that does not climb."""
    if text.startswith("/"):
        errors.invalid(path, text, "must be a relative path")
    validate_path_no_backsteps(errors, path, text)


def validate_nonreserved_path(errors: FieldErrors, path: str, text: str) -> None:
    """The same, and not named like the files that volumes use for themselves."""
    validate_descending_path(errors, path, text)
    if text.startswith("..") and not text.startswith("../"):
        errors.invalid(path, text, "must not start with '..'")
