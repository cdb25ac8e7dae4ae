"""legacy-serviceaccount-token-cleaner (a dialogue): tokens that were made on their own and that nobody uses go.

Until 1.24 every ServiceAccount got a token in a secret. The API server notes when one is used, and since
when it has been noting. One that has not been used for a year is marked invalid, and a year later deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any

import msgspec

from steersman.api.errors import Conflict, NotFound
from steersman.api.kinds import PODS, SERVICEACCOUNTS, ServiceAccount
from steersman.api.kinds.config import ACCOUNT_NAME, ACCOUNT_TOKENS, ACCOUNT_UID, CONFIGMAPS, Secret
from steersman.api.scheme import Key
from steersman.intent.actions import Address, Delete, List, Patch, Read
from steersman.intent.controller import Caches, Controller, Flag, Settings, Watch
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import InvalidSpec, Verdict, Wake

TRACKING = Key("kube-system", "kube-apiserver-legacy-service-account-token-tracking")
LAST_USED = "kubernetes.io/legacy-token-last-used"
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"

PERIOD = Flag(
    "legacy-service-account-token-clean-up-period",
    8760 * 3600.0,
    "How long a token that was made on its own is kept unused, and then invalid.",
)
EVERY = timedelta(hours=24)
ROUND = Key("", "legacy tokens")


class Config(msgspec.Struct, frozen=True):
    """The controller's flags."""

    period: timedelta = timedelta(seconds=PERIOD.default)


class Token(msgspec.Struct, frozen=True):
    secret: Secret
    account: ServiceAccount | None


def observe(caches: Caches, key: Key) -> tuple[Token, ...]:
    def tokens() -> Iterator[Token]:
        for secret in caches[ACCOUNT_TOKENS].list():
            names = secret.metadata.annotations
            account = caches[SERVICEACCOUNTS].get(Key(secret.metadata.namespace, names.get(ACCOUNT_NAME, "")))
            if account is not None and names.get(ACCOUNT_UID) not in (None, "", account.metadata.uid):
                account = None
            yield Token(secret, account)

    return tuple(tokens())


def day(text: str | None) -> date | None:
    """A day as labels carry it; None where that is not one."""
    try:
        return datetime.strptime(text or "", "%Y-%m-%d").replace(tzinfo=UTC).date()
    except ValueError:
        return None


def unused(token: Token, before: datetime) -> bool:
    """Whether a token is old, was made on its own, and was not used lately, as far as can be told."""
    meta = token.secret.metadata
    if (
        meta.creationTimestamp is None
        or meta.creationTimestamp >= before
        or meta.deletionTimestamp is not None
    ):
        return False
    if LAST_USED in meta.labels:
        used = day(meta.labels[LAST_USED])
        if used is None or used >= before.date():
            return False
    # Only those that their account mentions were made on their own.
    account = token.account
    return account is not None and any(one.name == meta.name for one in account.secrets)


def mentioned(document: Any) -> Iterator[str]:
    """Every secret that a pod mentions, wherever it may: rather one too many."""
    if isinstance(document, list):
        for one in document:
            yield from mentioned(one)
    elif isinstance(document, dict):
        for key, value in document.items():
            if key.endswith(("secret", "secretRef", "secretKeyRef", "SecretRef", "azureFile")):
                yield from (value[name] for name in ("name", "secretName") if name in value)
            elif key == "imagePullSecrets":
                yield from (one.get("name", "") for one in value)
            yield from mentioned(value)


async def decide(tokens: tuple[Token, ...], now: datetime, config: Config = Config()) -> Verdict:
    try:
        tracking = await Read(Address(CONFIGMAPS, TRACKING.namespace, TRACKING.name))
    except NotFound:
        return Wake(EVERY, "nobody tracks the use of tokens")
    since = day(tracking.data.get("since"))
    if since is None:
        raise InvalidSpec("since when tokens are tracked cannot be read")
    # The day it began counts as not tracked.
    tracked = datetime.combine(since + timedelta(days=1), time(), UTC)
    if now < tracked + config.period:
        return Wake(EVERY, "tokens have not been tracked for long enough")
    before = now - config.period
    used: dict[str, frozenset[str]] = {}
    for token in tokens:
        if not unused(token, before):
            continue
        namespace = token.secret.metadata.namespace
        if namespace not in used:
            pods = await List(PODS.untyped, namespace, as_manager=True)
            used[namespace] = frozenset(name for pod in pods for name in mentioned(pod.get("spec")))
        if token.secret.metadata.name not in used[namespace]:
            await _invalidate(token.secret, before, now)
    return Wake(EVERY, "every token has been looked at")


async def _invalidate(secret: Secret, before: datetime, now: datetime) -> None:
    """First no longer valid, then, after as long again, no longer there."""
    meta = secret.metadata
    invalid = day(meta.labels.get(INVALID_SINCE))
    try:
        if invalid is None:
            label = {INVALID_SINCE: now.strftime("%Y-%m-%d")}
            await Patch(secret, {"metadata": {"uid": meta.uid, "labels": label}})
        elif invalid < before.date():
            await Delete(secret, exact=True)
    except (NotFound, Conflict):
        # It is not what it was: tomorrow is another day.
        return


def configure(settings: Settings) -> Controller[tuple[Token, ...]]:
    config = Config(period=timedelta(seconds=settings[PERIOD]))
    return Controller(
        name="legacy-serviceaccount-token-cleaner-controller",
        aliases=("legacy-service-account-token-cleaner",),
        service_account="legacy-service-account-token-cleaner",
        watches=(
            Watch(ACCOUNT_TOKENS, to=lambda caches, change: ()),
            Watch(SERVICEACCOUNTS, to=lambda caches, change: ()),
        ),
        workers=1,
        initial_keys=(ROUND,),
        observe=observe,
        decide=partial(decide, config=config),
        flags=(PERIOD,),
        configure=configure,
    )


controller = configure(DEFAULTS)
