"""Names of signers of certificates."""

from __future__ import annotations

from steersman.server.validation import names
from steersman.server.validation.field_errors import Found

_MAX_DOMAIN = 253
_MAX_NAME = 571


def signer_name(found: Found, path: str, name: str) -> None:
    """A domain and a path, such as ``example.com/signer-name``."""
    if not name:
        found.required(path)
        return
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        form = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        found.invalid(path, name, form)
        return
    if len(domain) > _MAX_DOMAIN:
        found.too_long(path, _MAX_DOMAIN)
    parts = domain.split(".")
    _labels(found, path, domain, parts, names.label)
    if len(parts) < 2:
        found.invalid(path, domain, "should be a domain with at least two segments separated by dots")
    _labels(found, path, rest, rest.split("."), names.subdomain)
    if len(name) > _MAX_NAME:
        found.too_long(path, _MAX_NAME)


def _labels(found: Found, path: str, whole: str, parts: list[str], rule: names.Rule) -> None:
    for part in parts:
        if errors := rule(part):
            for why in errors:
                found.invalid(path, whole, f'validating label "{part}": {why}')
            return
