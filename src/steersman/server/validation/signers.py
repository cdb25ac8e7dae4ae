"""Names of signers of certificates."""

from __future__ import annotations

from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors

_MAX_DOMAIN = 253
_MAX_NAME = 571


def signer_name(errors: FieldErrors, path: str, name: str) -> None:
    """A domain and a path, such as ``example.com/signer-name``."""
    if not name:
        errors.required(path)
        return
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        form = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        errors.invalid(path, name, form)
        return
    if len(domain) > _MAX_DOMAIN:
        errors.too_long(path, _MAX_DOMAIN)
    parts = domain.split(".")
    _labels(errors, path, domain, parts, names.label)
    if len(parts) < 2:
        errors.invalid(path, domain, "should be a domain with at least two segments separated by dots")
    _labels(errors, path, rest, rest.split("."), names.subdomain)
    if len(name) > _MAX_NAME:
        errors.too_long(path, _MAX_NAME)


def _labels(errors: FieldErrors, path: str, whole: str, parts: list[str], rule: names.Rule) -> None:
    for part in parts:
        if messages := rule(part):
            for why in messages:
                errors.invalid(path, whole, f'validating label "{part}": {why}')
            return
