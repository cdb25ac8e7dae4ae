"""What may be an object's name, by resource, in the words upstream refuses the others with."""

from __future__ import annotations

import re

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SERVICE = "[a-z]([-a-z0-9]*[a-z0-9])?"
_is_label = re.compile(_LABEL).fullmatch
_is_service = re.compile(_SERVICE).fullmatch


def segment_errors(name: str) -> tuple[str, ...]:
    """Whatever fits between two slashes of a path."""
    if name in (".", ".."):
        return (f"may not be '{name}'",)
    return tuple(f"may not contain '{part}'" for part in ("/", "%") if part in name)


def label_errors(name: str) -> tuple[str, ...]:
    """One DNS label: namespaces."""
    errors = []
    if len(name) > 63:
        errors.append("must be no more than 63 bytes")
    if not _is_label(name):
        errors.append(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
            "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for "
            f"validation is '{_LABEL}')"
        )
    return tuple(errors)


def service_errors(name: str) -> tuple[str, ...]:
    """One DNS label that starts with a letter: services."""
    errors = []
    if len(name) > 63:
        errors.append("must be no more than 63 bytes")
    if not _is_service(name):
        errors.append(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
            "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
            f"regex used for validation is '{_SERVICE}')"
        )
    return tuple(errors)
