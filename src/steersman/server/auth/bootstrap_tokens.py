"""Bootstrap tokens: what a machine shows before it has a certificate. Each is a secret in kube-system."""

from __future__ import annotations

import hmac
import re
from datetime import UTC, datetime

from steersman.server.auth.lookup import Objects, secret_data
from steersman.server.auth.users import User

TYPE = "bootstrap.kubernetes.io/token"
NAMESPACE = "kube-system"
DEFAULT_GROUP = "system:bootstrappers"

_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}([.,]\d+)?(Z|[+-]\d{2}:\d{2})")


def joiner(token: str, objects: Objects, now: datetime) -> User | None:
    """Who bears a bootstrap token; None where it is none that holds."""
    shaped = _TOKEN.fullmatch(token)
    if shaped is None:
        return None
    id, password = shaped[1], shaped[2]
    secret = objects.secret(NAMESPACE, f"bootstrap-token-{id}")
    if secret is None or secret.metadata.deletionTimestamp is not None or secret.type != TYPE:
        return None

    def told(key: str) -> str:
        return secret_data(secret, key).decode("utf-8", "replace")

    if not hmac.compare_digest(secret_data(secret, "token-secret"), password.encode()):
        return None
    if told("token-id") != id or told("usage-bootstrap-authentication") != "true":
        return None
    if _expired(told("expiration"), now):
        return None
    groups = _groups(told("auth-extra-groups"))
    return None if groups is None else User(f"system:bootstrap:{id}", groups=groups)


def _expired(expiration: str, now: datetime) -> bool:
    """What cannot be read has expired; what does not say never does."""
    if not expiration:
        return False
    if not _TIME.fullmatch(expiration):
        return True
    try:
        return datetime.fromisoformat(expiration).astimezone(UTC) <= now
    except (ValueError, OverflowError):
        return True


def _groups(extra: str) -> tuple[str, ...] | None:
    """The groups of a token, sorted; None where one of them is not for such tokens."""
    groups = {DEFAULT_GROUP: None}
    for group in extra.split(",") if extra else ():
        if not _GROUP.fullmatch(group):
            return None
        groups[group] = None
    return tuple(sorted(groups))
