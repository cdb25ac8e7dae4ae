"""bootstrap-signer-controller and token-cleaner-controller (decisions): sign cluster-info, delete expired bootstrap tokens.

A bootstrap token is a Secret of type ``bootstrap.kubernetes.io/token`` in kube-system. A joining node verifies
``kube-public/cluster-info`` with it: the signer keeps a detached JWS for each token beside the kubeconfig.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from steersman.api.errors import Conflict, NotFound
from steersman.api.go_time import parse_rfc3339
from steersman.api.kinds.config import CONFIGMAPS, SECRETS, ConfigMap, Secret, plain
from steersman.api.scheme import Key
from steersman.intent.actions import Delete, Update
from steersman.intent.controller import Caches, Change, Controller, Watch
from steersman.intent.verdict import Rest, Verdict, Wake

CLUSTER_INFO = Key("kube-public", "cluster-info")
SIGNATURE_PREFIX = "jws-kubeconfig-"
TOKENS = SECRETS.where("type=bootstrap.kubernetes.io/token")
CLUSTER_INFO_CONFIGMAPS = CONFIGMAPS.where(
    f"metadata.name={CLUSTER_INFO.name},metadata.namespace={CLUSTER_INFO.namespace}"
)

_NAME = re.compile(r"bootstrap-token-([a-z0-9]{6})")


class Observation(msgspec.Struct, frozen=True):
    """The ConfigMap cluster-info and the bootstrap tokens."""

    info: ConfigMap
    tokens: tuple[Secret, ...]


def expiry(secret: Secret) -> datetime | None:
    """When a token expires; None for never. Raises `ValueError` for an invalid time."""
    text = plain(secret, "expiration").decode(errors="replace")
    return parse_rfc3339(text) if text else None


def is_expired(secret: Secret, now: datetime) -> bool:
    """Whether a token has expired. An invalid expiration counts as expired."""
    try:
        end = expiry(secret)
    except ValueError:
        return True
    return end is not None and end <= now


def signing_token(secret: Secret, now: datetime) -> tuple[str, bytes] | None:
    """The id and secret of a token that is valid and may sign; else None."""
    name = _NAME.fullmatch(secret.metadata.name)
    token = plain(secret, "token-id").decode(errors="replace")
    value = plain(secret, "token-secret")
    if name is None or name[1] != token or not value or is_expired(secret, now):
        return None
    return (token, value) if plain(secret, "usage-bootstrap-signing") == b"true" else None


def signature(content: str, token: str, secret: bytes) -> str:
    """A detached JWS (RFC 7515, appendix F): the content itself is left out."""
    header = json.dumps({"alg": "HS256", "kid": token}, separators=(",", ":")).encode()
    head, body = _base64(header), _base64(content.encode())
    digest = hmac.digest(secret, f"{head}.{body}".encode(), hashlib.sha256)
    return f"{head}..{_base64(digest)}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed_data(seen: Observation, now: datetime) -> Mapping[str, str] | None:
    """The data of cluster-info with all signatures; None without a kubeconfig."""
    content = seen.info.data.get("kubeconfig")
    if content is None:
        return None
    data = {key: value for key, value in seen.info.data.items() if not key.startswith(SIGNATURE_PREFIX)}
    for secret in seen.tokens:
        if (token := signing_token(secret, now)) is not None:
            data[SIGNATURE_PREFIX + token[0]] = signature(content, *token)
    return data


def observe(caches: Caches, key: Key) -> Observation | None:
    info = caches[CLUSTER_INFO_CONFIGMAPS].get(CLUSTER_INFO)
    if info is None:
        return None
    return Observation(info, tuple(caches[TOKENS].list("kube-system")))


async def sign(seen: Observation, now: datetime) -> Verdict:
    data = signed_data(seen, now)
    if data is None:
        return Rest("cluster-info has no kubeconfig")
    if data != dict(seen.info.data):
        info = seen.info
        await Update(
            ConfigMap(metadata=info.metadata, data=data, binaryData=info.binaryData, immutable=info.immutable)
        )
    # differs: upstream keeps the signature of an expired token until something else changes.
    ends = [
        end for secret in seen.tokens if signing_token(secret, now) and (end := expiry(secret)) is not None
    ]
    if ends:
        return Wake(min(ends) - now, "a signing token expires")
    return Rest("cluster-info signed by all signing tokens")


async def delete_expired(secret: Secret, now: datetime) -> Verdict:
    if not is_expired(secret, now):
        end = expiry(secret)
        return Rest("token has no expiration") if end is None else Wake(end - now, "token not expired")
    try:
        await Delete(secret)
    except (NotFound, Conflict):
        return Rest("Secret already gone")
    return Rest("token expired: Secret deleted")


def _enqueue_cluster_info(caches: Caches, change: Change[Secret]) -> Iterable[Key]:
    return (CLUSTER_INFO,) if change.obj.metadata.namespace == "kube-system" else ()


def _in_kube_system(secret: Secret) -> bool:
    return secret.metadata.namespace == "kube-system"


signer = Controller(
    name="bootstrap-signer-controller",
    aliases=("bootstrapsigner",),
    service_account="bootstrap-signer",
    watches=(Watch(CLUSTER_INFO_CONFIGMAPS), Watch(TOKENS, to=_enqueue_cluster_info)),
    workers=1,
    observe=observe,
    decide=sign,
    disabled_by_default=True,
)
cleaner = Controller(
    name="token-cleaner-controller",
    aliases=("tokencleaner",),
    service_account="token-cleaner",
    watches=(Watch(TOKENS, when=_in_kube_system),),
    workers=1,
    decide=delete_expired,
    disabled_by_default=True,
)
