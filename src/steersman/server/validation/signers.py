"""Names of signers of certificates, and of what they publish."""

from __future__ import annotations

from steersman.server.validation import text
from steersman.server.validation.found import Found

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
    _labels(found, path, domain, parts, text.label)
    if len(parts) < 2:
        found.invalid(path, domain, "should be a domain with at least two segments separated by dots")
    _labels(found, path, rest, rest.split("."), text.subdomain)
    if len(name) > _MAX_NAME:
        found.too_long(path, _MAX_NAME)


def _labels(found: Found, path: str, whole: str, parts: list[str], rule: text.Rule) -> None:
    for part in parts:
        if errors := rule(part):
            for why in errors:
                found.invalid(path, whole, f'validating label "{part}": {why}')
            return


def is_kubernetes(name: str) -> bool:
    """Whether a signer is one of Kubernetes' own."""
    host = name.partition("/")[0]
    return host == "kubernetes.io" or host.endswith(".kubernetes.io")


def bundle_name(name: str, signer: str | None = None) -> tuple[str, ...]:
    """The name of a trust bundle: that of a signer's bundles begins with the signer's.

    Without ``signer`` the name itself says whose it is.
    """
    if signer is None:
        before, colon, _ = name.rpartition(":")
        signer = before.replace(":", "/") if colon else ""
    if not signer:
        if ":" in name:
            return ('ClusterTrustBundle without signer name must not have ":" in its name',)
        return text.subdomain(name)
    prefix = f"{signer.replace('/', ':')}:"
    if not name.startswith(prefix):
        return (f"ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}",)
    return text.subdomain(name.removeprefix(prefix))
