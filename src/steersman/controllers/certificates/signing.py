"""certificatesigningrequest-signing (a service): approved requests get their certificate.

Four signers of Kubernetes' own, each with its rules (`requests.RULES`) and its key pair. A request that
breaks the rules of its signer fails for good, and says why.
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
from steersman.api.meta import truncate
from steersman.controllers.certificates.authority import Refusal, lifetime, load, sign
from steersman.controllers.certificates.requests import (
    CLIENT,
    KUBELET_CLIENT,
    KUBELET_SERVING,
    LEGACY,
    RULES,
    Malformed,
    parse,
    read,
)
from steersman.intent.actions import RandomBits, ReadFile, UpdateStatus
from steersman.intent.controller import Controller, Flag, Settings, Watch
from steersman.intent.settings import DEFAULTS, Misconfigured
from steersman.intent.verdict import InvalidSpec, Rest, Verdict

YEAR = 8760 * 3600.0


class KeyPair(msgspec.Struct, frozen=True):
    """Where a signer's certificate and key are."""

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


DURATION = Flag("cluster-signing-duration", YEAR, "The longest that signed certificates live.")
GENERAL = _flags("", "that all signers use")
OWN = {
    KUBELET_SERVING: _flags("kubelet-serving", f"of {KUBELET_SERVING}"),
    KUBELET_CLIENT: _flags("kubelet-client", f"of {KUBELET_CLIENT}"),
    CLIENT: _flags("kube-apiserver-client", f"of {CLIENT}"),
    LEGACY: _flags("legacy-unknown", f"of {LEGACY}"),
}
FLAGS: tuple[Flag[Any], ...] = (*GENERAL, DURATION, *(flag for pair in OWN.values() for flag in pair))


def key_pairs(settings: Settings) -> Mapping[str, KeyPair]:
    """Which signer signs with what. Those that have nothing do not sign. Raises `Misconfigured`."""
    general = KeyPair(*(settings[flag] for flag in GENERAL))
    own = {signer: KeyPair(settings[cert], settings[key]) for signer, (cert, key) in OWN.items()}
    for signer, pair in own.items():
        cert, key = OWN[signer]
        if bool(pair.cert) != bool(pair.key):
            given, missing = (cert, key) if pair.cert else (key, cert)
            raise Misconfigured(f"--{given.name} is given without --{missing.name}")
    if any(own.values()):
        if general.cert or general.key:
            raise Misconfigured(
                "cannot specify --cluster-signing-{cert,key}-file and other --cluster-signing-*-file flags "
                "at the same time"
            )
        return {signer: pair for signer, pair in own.items() if pair}
    return dict.fromkeys(own, general) if general else {}


class Config(msgspec.Struct, frozen=True):
    """The controller's flags."""

    key_pairs: Mapping[str, KeyPair]
    """By signer."""
    duration: timedelta
    """The longest a signed certificate is valid."""


def _approved(request: CertificateSigningRequest) -> bool:
    types = [condition.type for condition in request.status.conditions]
    return "Approved" in types and "Denied" not in types


def _failed(request: CertificateSigningRequest) -> bool:
    return any(one.type == "Failed" and one.status in ("", "True") for one in request.status.conditions)


async def decide(request: CertificateSigningRequest, now: datetime, config: Config) -> Verdict:
    if request.status.certificate:
        return Rest("is issued")
    if not _approved(request) or _failed(request):
        return Rest("is not approved, or has failed")
    pair = config.key_pairs.get(request.spec.signerName)
    if pair is None:
        return Rest("is for another signer")
    try:
        asked = read(request)
    except Malformed as error:
        raise InvalidSpec(str(error)) from None
    wrong = RULES[request.spec.signerName](asked, request.spec.usages)
    if wrong:
        await UpdateStatus(request, _refused(request.status, wrong, now))
        return Rest(f"failed: {wrong}")
    cert, key = await ReadFile(pair.cert), await ReadFile(pair.key)
    serial = await RandomBits(128)
    try:
        certificate = sign(
            load(cert, key),
            parse(request),
            request.spec.usages,
            serial=serial or 1,
            now=now,
            ttl=lifetime(config.duration, request.spec.expirationSeconds),
        )
    except Refusal as error:
        raise InvalidSpec(f"{pair.cert}: {error}") from None
    issued = CertificateSigningRequestStatus(
        conditions=request.status.conditions, certificate=base64.b64encode(certificate).decode()
    )
    await UpdateStatus(request, issued)
    return Rest("issued")


def _refused(
    status: CertificateSigningRequestStatus, wrong: str, now: datetime
) -> CertificateSigningRequestStatus:
    failed = Condition(
        type="Failed",
        status="True",
        reason="SignerValidationFailure",
        message=wrong,
        lastUpdateTime=truncate(now),
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
        flags=FLAGS,
        configure=configure,
        enabled=lambda settings: bool(key_pairs(settings)),
    )


controller = configure(DEFAULTS)
