"""certificatesigningrequest-signing-controller (a service): issues the certificates of approved requests.

There are four Kubernetes signers, each with its rules (`requests.RULES`) and its key pair. A request that
breaks the rules of its signer gets the condition Failed.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from steersman.api.kinds import Condition
from steersman.api.kinds.certificates import (
    CERTIFICATESIGNINGREQUESTS,
    CertificateSigningRequest,
    CertificateSigningRequestStatus,
)
from steersman.api.meta import truncate_to_seconds
from steersman.api.pem import InvalidCertificateRequest, parse_csr
from steersman.controllers.certificates.authority import SigningError, lifetime, load, sign
from steersman.controllers.certificates.requests import (
    CLIENT,
    KUBELET_CLIENT,
    KUBELET_SERVING,
    LEGACY,
    MIN_BACKOFF,
    RULES,
    read,
)
from steersman.intent.actions import RandomBits, ReadFile, UpdateStatus
from steersman.intent.controller import Controller, Flag, Settings, Watch
from steersman.intent.settings import DEFAULTS, Misconfigured
from steersman.intent.verdict import InvalidSpec, Rest, Verdict

ONE_YEAR = 8760 * 3600.0
"""In seconds."""


class KeyPair(msgspec.Struct, frozen=True):
    """The paths of a signer's certificate and key."""

    cert: str
    key: str

    def __bool__(self) -> bool:
        return bool(self.cert and self.key)


def _flags(name: str, about: str) -> tuple[Flag[str], Flag[str]]:
    prefix = f"cluster-signing-{name}-" if name else "cluster-signing-"
    return (
        Flag(f"{prefix}cert-file", "", f"PEM file of the CA certificate {about}."),
        Flag(f"{prefix}key-file", "", f"PEM file of the CA key {about}."),
    )


DURATION = Flag("cluster-signing-duration", ONE_YEAR, "The longest lifetime of signed certificates.")
ALL_SIGNERS = _flags("", "that all signers use")
PER_SIGNER = {
    KUBELET_SERVING: _flags("kubelet-serving", f"of {KUBELET_SERVING}"),
    KUBELET_CLIENT: _flags("kubelet-client", f"of {KUBELET_CLIENT}"),
    CLIENT: _flags("kube-apiserver-client", f"of {CLIENT}"),
    LEGACY: _flags("legacy-unknown", f"of {LEGACY}"),
}
FLAGS: tuple[Flag[Any], ...] = (
    *ALL_SIGNERS,
    DURATION,
    *(flag for pair in PER_SIGNER.values() for flag in pair),
)


def key_pairs(settings: Settings) -> Mapping[str, KeyPair]:
    """The key pair of each signer that has one. Raises `Misconfigured`."""
    shared = KeyPair(*(settings[flag] for flag in ALL_SIGNERS))
    own = {signer: KeyPair(settings[cert], settings[key]) for signer, (cert, key) in PER_SIGNER.items()}
    for signer, pair in own.items():
        cert, key = PER_SIGNER[signer]
        if bool(pair.cert) != bool(pair.key):
            given, missing = (cert, key) if pair.cert else (key, cert)
            raise Misconfigured(f"--{given.name} is given without --{missing.name}")
    if any(own.values()):
        if shared.cert or shared.key:
            raise Misconfigured(
                "cannot specify --cluster-signing-{cert,key}-file and other --cluster-signing-*-file flags "
                "at the same time"
            )
        return {signer: pair for signer, pair in own.items() if pair}
    return dict.fromkeys(own, shared) if shared else {}


class Config(msgspec.Struct, frozen=True):
    """The controller's flags."""

    key_pairs: Mapping[str, KeyPair]
    """By signer."""
    duration: timedelta
    """The longest a signed certificate is valid."""


def _is_approved(request: CertificateSigningRequest) -> bool:
    types = [condition.type for condition in request.status.conditions]
    return "Approved" in types and "Denied" not in types


def _has_failed(request: CertificateSigningRequest) -> bool:
    return any(one.type == "Failed" and one.status in ("", "True") for one in request.status.conditions)


async def decide(request: CertificateSigningRequest, now: datetime, config: Config) -> Verdict:
    if request.status.certificate:
        return Rest("certificate already issued")
    if not _is_approved(request) or _has_failed(request):
        return Rest("not approved, or failed")
    pair = config.key_pairs.get(request.spec.signerName)
    if pair is None:
        return Rest("signerName of another signer")
    try:
        csr = parse_csr(request.spec.request)
        requested = read(csr)
    except InvalidCertificateRequest as malformed:
        raise InvalidSpec(str(malformed)) from None
    error = RULES[request.spec.signerName](requested, request.spec.usages)
    if error:
        await UpdateStatus(request, _failed_status(request.status, error, now))
        return Rest(f"failed: {error}")
    cert, key = await ReadFile(pair.cert), await ReadFile(pair.key)
    serial = await RandomBits(128)
    try:
        certificate = sign(
            load(cert, key),
            csr,
            request.spec.usages,
            serial=serial or 1,
            now=now,
            ttl=lifetime(config.duration, request.spec.expirationSeconds),
        )
    except SigningError as failure:
        raise InvalidSpec(f"{pair.cert}: {failure}") from None
    issued = CertificateSigningRequestStatus(
        conditions=request.status.conditions, certificate=base64.b64encode(certificate).decode()
    )
    await UpdateStatus(request, issued)
    return Rest("certificate issued")


def _failed_status(
    status: CertificateSigningRequestStatus, error: str, now: datetime
) -> CertificateSigningRequestStatus:
    failed = Condition(
        type="Failed",
        status="True",
        reason="SignerValidationFailure",
        message=error,
        lastUpdateTime=truncate_to_seconds(now),
    )
    return CertificateSigningRequestStatus(conditions=(*status.conditions, failed))


def configure(settings: Settings) -> Controller[CertificateSigningRequest]:
    config = Config(key_pairs(settings), timedelta(seconds=settings[DURATION]))
    return Controller(
        name="certificatesigningrequest-signing-controller",
        aliases=("csrsigning",),
        service_account="certificate-controller",
        watches=(Watch(CERTIFICATESIGNINGREQUESTS),),
        workers=5,
        decide=partial(decide, config=config),
        min_backoff=MIN_BACKOFF,
        flags=FLAGS,
        configure=configure,
        enabled=lambda settings: bool(key_pairs(settings)),
    )


controller = configure(DEFAULTS)
