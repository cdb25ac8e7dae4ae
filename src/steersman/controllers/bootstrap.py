"""bootstrap-signer and token-cleaner (decisions): bootstrap tokens vouch for cluster-info, and expire.

A bootstrap token is a secret of type ``bootstrap.kubernetes.io/token`` in kube-system. Whoever joins a
cluster with one can check ``kube-public/cluster-info`` by it: the signer keeps a detached JWS for each
token beside the kubeconfig. The cleaner deletes tokens whose time has passed.
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
from steersman.api.kinds.config import CONFIGMAPS, SECRETS, ConfigMap, Secret, plain
from steersman.api.scheme import Key
from steersman.intent.actions import Delete, Update
from steersman.intent.controller import Caches, Change, Controller, Watch
from steersman.intent.verdict import Rest, Verdict, Wake

INFO = Key("kube-public", "cluster-info")
SIGNATURE = "jws-kubeconfig-"
TOKENS = SECRETS.where("type=bootstrap.kubernetes.io/token")
INFOS = CONFIGMAPS.where(f"metadata.name={INFO.name},metadata.namespace={INFO.namespace}")

_NAME = re.compile(r"bootstrap-token-([a-z0-9]{6})")
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


class Seen(msgspec.Struct, frozen=True):
    info: ConfigMap
    tokens: tuple[Secret, ...]


def expiry(secret: Secret) -> datetime | None:
    """When a token expires; None for never. Raises `ValueError` where nobody can tell."""
    text = plain(secret, "expiration").decode(errors="replace")
    if not text:
        return None
    if not _RFC3339.fullmatch(text):
        raise ValueError("not a time in RFC 3339")
    return datetime.fromisoformat(text)


def expired(secret: Secret, now: datetime) -> bool:
    """Whether a token has expired. One whose end cannot be read has."""
    try:
        end = expiry(secret)
    except ValueError:
        return True
    return end is not None and end <= now


def signing(secret: Secret, now: datetime) -> tuple[str, bytes] | None:
    """A token's id and secret, where it may sign."""
    name = _NAME.fullmatch(secret.metadata.name)
    token = plain(secret, "token-id").decode(errors="replace")
    value = plain(secret, "token-secret")
    if name is None or name[1] != token or not value or expired(secret, now):
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


def signed(seen: Seen, now: datetime) -> Mapping[str, str] | None:
    """What cluster-info should hold, or None where there is nothing to sign."""
    content = seen.info.data.get("kubeconfig")
    if content is None:
        return None
    data = {key: value for key, value in seen.info.data.items() if not key.startswith(SIGNATURE)}
    for secret in seen.tokens:
        if (token := signing(secret, now)) is not None:
            data[SIGNATURE + token[0]] = signature(content, *token)
    return data


def observe(caches: Caches, key: Key) -> Seen | None:
    info = caches[INFOS].get(INFO)
    if info is None:
        return None
    return Seen(info, tuple(caches[TOKENS].list("kube-system")))


async def sign(seen: Seen, now: datetime) -> Verdict:
    data = signed(seen, now)
    if data is None:
        return Rest("there is no kubeconfig to sign")
    if data != dict(seen.info.data):
        info = seen.info
        await Update(
            ConfigMap(metadata=info.metadata, data=data, binaryData=info.binaryData, immutable=info.immutable)
        )
    # differs: upstream leaves the signature of an expired token in place until something else happens.
    ends = [end for secret in seen.tokens if signing(secret, now) and (end := expiry(secret)) is not None]
    if ends:
        return Wake(min(ends) - now, "a token that signs expires")
    return Rest("signed by every token that may")


async def clean(secret: Secret, now: datetime) -> Verdict:
    if not expired(secret, now):
        end = expiry(secret)
        return Rest("does not expire") if end is None else Wake(end - now, "has not expired")
    try:
        await Delete(secret)
    except (NotFound, Conflict):
        return Rest("already gone")
    return Rest("expired")


def _info(caches: Caches, change: Change[Secret]) -> Iterable[Key]:
    return (INFO,) if change.obj.metadata.namespace == "kube-system" else ()


def _in_kube_system(secret: Secret) -> bool:
    return secret.metadata.namespace == "kube-system"


signer = Controller(
    name="bootstrap-signer-controller",
    aliases=("bootstrapsigner",),
    service_account="bootstrap-signer",
    watches=(Watch(INFOS), Watch(TOKENS, to=_info)),
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
    decide=clean,
    disabled_by_default=True,
)
