"""The controllers that a shadow does not compare, each with the reason that its report gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steersman.intent.controller import Controller
from steersman.shadow.report import Excluded

KEYS = "signs with private keys, which a shadow is not given"
SECRETS = "works on the content of Secrets, which a shadow does not read"
CLOUD = "calls a cloud provider, which a shadow does not"

REASONS: Mapping[str, str] = {
    "bootstrap-signer-controller": SECRETS,
    "certificatesigningrequest-approving-controller": "asks for SubjectAccessReviews, which are POST requests",
    "certificatesigningrequest-signing-controller": KEYS,
    "legacy-serviceaccount-token-cleaner-controller": SECRETS,
    "selinux-warning-controller": "writes nothing but events and metrics",
    "serviceaccount-token-controller": KEYS,
    "token-cleaner-controller": SECRETS,
}
"""By the name of a controller."""


def select(
    controllers: Iterable[Controller[Any]],
) -> tuple[tuple[Controller[Any], ...], tuple[Excluded, ...]]:
    """The controllers that are compared, and those that are not."""
    compared: list[Controller[Any]] = []
    excluded: list[Excluded] = []
    for controller in controllers:
        reason = CLOUD if controller.cloud is not None else REASONS.get(controller.name, "")
        if reason:
            excluded.append(Excluded(controller.name, reason))
        else:
            compared.append(controller)
    return tuple(compared), tuple(excluded)
