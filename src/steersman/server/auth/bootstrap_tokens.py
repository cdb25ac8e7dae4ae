"""Bootstrap tokens, by which a node authenticates before it has a certificate. Each is a Secret in kube-system."""

from __future__ import annotations

import hmac
import re
from datetime import datetime

from steersman.api.go_time import parse_rfc3339
from steersman.server.auth.lookup import ObjectGetter, secret_data
from steersman.server.auth.users import User

TYPE = "bootstrap.kubernetes.io/token"
NAMESPACE = "kube-system"
DEFAULT_GROUP = "system:bootstrappers"

_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")


def bootstrap_token_user(token: str, objects: ObjectGetter, now: datetime) -> User | None:
    """The user of a bootstrap token; None if it is not a valid one."""
    shaped = _TOKEN.fullmatch(token)
    if shaped is None:
        return None
    id, password = shaped[1], shaped[2]
    secret = objects.secret(NAMESPACE, f"bootstrap-token-{id}")
    if secret is None or secret.metadata.deletionTimestamp is not None or secret.type != TYPE:
        return None

    def values(key: str) -> str:
        return secret_data(secret, key).decode("utf-8", "replace")

    if not hmac.compare_digest(secret_data(secret, "token-secret"), password.encode()):
        return None
    if values("token-id") != id or values("usage-bootstrap-authentication") != "true":
        return None
    if _expired(values("expiration"), now):
        return None
    groups = _groups(values("auth-extra-groups"))
    return None if groups is None else User(f"system:bootstrap:{id}", groups=groups)


def _expired(expiration: str, now: datetime) -> bool:
    """Whether a token has expired: malformed times have, an empty one never does."""
    if not expiration:
        return False
    try:
        return parse_rfc3339(expiration) <= now
    except ValueError:
        return True


def _groups(extra: str) -> tuple[str, ...] | None:
    """The groups of a token, sorted; None if one of them is not a bootstrap group."""
    groups = {DEFAULT_GROUP: None}
    for group in extra.split(",") if extra else ():
        if not _GROUP.fullmatch(group):
            return None
        groups[group] = None
    return tuple(sorted(groups))
