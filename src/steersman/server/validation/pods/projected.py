"""Files that are projected into a pod: several sources in one volume."""

from __future__ import annotations

from steersman.api.generated import core_v1 as v1
from steersman.server.validation import signers, text
from steersman.server.validation.found import Found
from steersman.server.validation.pods import environment
from steersman.server.validation.selectors import label_selector
from steersman.server.validation.volumes import mode

_MINUTES = 10 * 60
_KEY_TYPES = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_CLASH = "conflicting duplicate paths"


def key_to_path(found: Found, path: str, item: v1.KeyToPath) -> None:
    """A key that becomes a file."""
    if not item.key:
        found.required(f"{path}.key")
    if not item.path:
        found.required(f"{path}.path")
    text.local(found, f"{path}.path", item.path)
    mode(found, f"{path}.mode", item.mode)


def downward_file(found: Found, path: str, file: v1.DownwardAPIVolumeFile) -> None:
    """A fact about the pod that becomes a file."""
    if not file.path:
        found.required(f"{path}.path")
    text.local(found, f"{path}.path", file.path)
    if file.fieldRef is not None:
        environment.field(found, f"{path}.fieldRef", file.fieldRef, environment.VOLUME_FIELDS)
        if file.resourceFieldRef is not None:
            both = "fieldRef and resourceFieldRef can not be specified simultaneously"
            found.invalid(path, "resource", both)
    elif file.resourceFieldRef is not None:
        environment.resource_field(
            found, f"{path}.resourceFieldRef", file.resourceFieldRef, needs_container=True
        )
    else:
        found.required(path, "one of fieldRef and resourceFieldRef is required")
    mode(found, f"{path}.mode", file.mode)


def projected(found: Found, path: str, source: v1.ProjectedVolumeSource) -> None:
    mode(found, f"{path}.defaultMode", source.defaultMode)
    taken: set[str] = set()
    for i, one in enumerate(source.sources or ()):
        _projection(found, path, f"{path}.sources[{i}]", one, taken)


def _projection(found: Found, path: str, at: str, one: v1.VolumeProjection, taken: set[str]) -> None:
    def file(name: str, shown: str) -> None:
        """No two sources may make the same file."""
        if name and name in taken:
            found.invalid(path, shown, _CLASH)
        taken.add(name)

    count = 0
    for name in ("secret", "configMap"):
        source: v1.SecretProjection | v1.ConfigMapProjection | None = getattr(one, name)
        if source is None:
            continue
        count += 1
        if not source.name:
            found.required(f"{at}.{name}.name")
        for i, item in enumerate(source.items):
            key_to_path(found, f"{at}.{name}.items[{i}]", item)
            file(item.path, source.name)
    if one.downwardAPI is not None:
        count += 1
        for downward in one.downwardAPI.items:
            downward_file(found, f"{at}.downwardAPI", downward)
            file(downward.path, downward.path)
    if one.serviceAccountToken is not None:
        count += 1
        _token(found, path, f"{at}.serviceAccountToken", one.serviceAccountToken)
    if one.clusterTrustBundle is not None:
        count += 1
        _bundle(found, f"{at}.clusterTrustBundle", one.clusterTrustBundle)
        file(one.clusterTrustBundle.path, one.clusterTrustBundle.path)
    if one.podCertificate is not None:
        count += 1
        certificate = one.podCertificate
        _certificate(found, f"{at}.podCertificate", certificate)
        for name in ("credentialBundlePath", "keyPath", "certificateChainPath"):
            where = getattr(certificate, name)
            if where:
                text.local(found, f"{at}.podCertificate.{name}", where)
                file(where, where)
    if count > 1:
        found.forbidden(at, "may not specify more than 1 volume type per source")


def _token(found: Found, volume: str, path: str, source: v1.ServiceAccountTokenProjection) -> None:
    seconds = source.expirationSeconds
    if seconds is not None and seconds < _MINUTES:
        short = "may not specify a duration less than 10 minutes"
        found.invalid(f"{path}.expirationSeconds", seconds, short)
    if seconds is not None and seconds > 1 << 32:
        long = "may not specify a duration larger than 2^32 seconds"
        found.invalid(f"{path}.expirationSeconds", seconds, long)
    if not source.path:
        found.required(f"{volume}.path")
    else:
        text.local(found, f"{volume}.path", source.path)


def _bundle(found: Found, path: str, source: v1.ClusterTrustBundleProjection) -> None:
    name, signer = source.name, source.signerName
    if name is not None and signer is not None:
        found.invalid(path, source, "only one of name and signerName may be used")
    elif name is not None:
        if not name:
            found.required(f"{path}.name", "must be a valid object name")
        for why in signers.bundle_name(name):
            found.invalid(f"{path}.name", name, f"not a valid clustertrustbundlename: {why}")
        if source.labelSelector is not None:
            alone = "labelSelector must be unset if name is specified"
            found.invalid(f"{path}.labelSelector", source.labelSelector, alone)
    elif signer is not None:
        if not signer:
            found.required(f"{path}.signerName", "must be a valid signer name")
        signers.signer_name(found, f"{path}.signerName", signer)
        label_selector(found, f"{path}.labelSelector", source.labelSelector)
    else:
        found.required(path, "either name or signerName must be specified")
    if not source.path:
        found.required(f"{path}.path")
    text.local(found, f"{path}.path", source.path)


def _certificate(found: Found, path: str, source: v1.PodCertificateProjection) -> None:
    signers.signer_name(found, f"{path}.signerName", source.signerName)
    if source.keyType not in _KEY_TYPES:
        found.unsupported(f"{path}.keyType", source.keyType, _KEY_TYPES)
    seconds = source.maxExpirationSeconds
    if seconds is not None:
        most = 86400 if signers.is_kubernetes(source.signerName) else 7862400
        if seconds < 3600:
            short = "if provided, maxExpirationSeconds must be >= 3600"
            found.invalid(f"{path}.maxExpirationSeconds", seconds, short)
        if seconds > most:
            long = f"if provided, maxExpirationSeconds must be <= {most}"
            found.invalid(f"{path}.maxExpirationSeconds", seconds, long)
    if not (source.credentialBundlePath or source.keyPath or source.certificateChainPath):
        some = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
        found.required(path, some)
