"""legacy-serviceaccount-token-cleaner-controller (a dialogue): invalidates and deletes unused auto-generated tokens.

Before 1.24 every ServiceAccount got a token in a Secret. The API server labels a token Secret with the day of
its last use, and a ConfigMap says since when it does. A token that is unused for the clean-up period is labelled
invalid, and deleted after another period.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import partial

import msgspec

from steersman.api.errors import ApiError, Conflict, NotFound
from steersman.api.kinds import PODS, SERVICEACCOUNTS, ServiceAccount
from steersman.api.kinds.config import ACCOUNT_NAME, ACCOUNT_TOKENS, ACCOUNT_UID, CONFIGMAPS, Secret
from steersman.api.scheme import Key
from steersman.intent.actions import Address, Delete, List, Patch, Read
from steersman.intent.controller import Caches, Controller, Flag, Settings, Watch
from steersman.intent.settings import DEFAULTS, Misconfigured
from steersman.intent.verdict import InvalidSpec, Verdict, Wake

TRACKING = Key("kube-system", "kube-apiserver-legacy-service-account-token-tracking")
LAST_USED = "kubernetes.io/legacy-token-last-used"
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"

PERIOD = Flag(
    "legacy-service-account-token-clean-up-period",
    8760 * 3600.0,
    "How long an auto-generated token may be unused before it is invalid, and invalid before it is deleted.",
)
INTERVAL = timedelta(hours=24)
ROUND = Key("", "legacy tokens")
"""The one key of this controller."""
_SECRET_FIELDS = ("secret", "secretRef", "secretKeyRef", "SecretRef", "azureFile")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Config(msgspec.Struct, frozen=True):
    """The controller's flags."""

    period: timedelta = timedelta(seconds=PERIOD.default)


class Token(msgspec.Struct, frozen=True):
    """A token Secret, and its ServiceAccount, if it exists."""

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


def parse_date(text: str | None) -> date | None:
    """Parses a date in the format of labels; None where it is invalid."""
    if not _DATE.fullmatch(text or ""):
        return None
    try:
        return date.fromisoformat(text or "")
    except ValueError:
        return None


def is_unused(token: Token, before: datetime) -> bool:
    """Whether an auto-generated token was created before a time, and not used since."""
    meta = token.secret.metadata
    if (
        meta.creationTimestamp is None
        or meta.creationTimestamp >= before
        or meta.deletionTimestamp is not None
    ):
        return False
    if LAST_USED in meta.labels:
        used = parse_date(meta.labels[LAST_USED])
        if used is None or used >= before.date():
            return False
    # Auto-generated tokens are those in ``secrets`` of their account.
    account = token.account
    return account is not None and any(one.name == meta.name for one in account.secrets)


def secret_names(document: object) -> Iterator[str]:
    """The names of all Secrets that a pod spec refers to; a few too many rather than too few."""
    if isinstance(document, list):
        for one in document:
            yield from secret_names(one)
    elif isinstance(document, dict):
        for key, value in document.items():
            # A key may also be a label, as in a nodeSelector: then its value is a text.
            if key.endswith(_SECRET_FIELDS) and isinstance(value, dict):
                yield from (value[name] for name in ("name", "secretName") if name in value)
            elif key == "imagePullSecrets" and isinstance(value, list):
                yield from (one["name"] for one in value if isinstance(one, dict) and "name" in one)
            yield from secret_names(value)


async def decide(tokens: tuple[Token, ...], now: datetime, config: Config = Config()) -> Verdict:
    try:
        tracking = await Read(Address(CONFIGMAPS, TRACKING.namespace, TRACKING.name))
    except NotFound:
        return Wake(INTERVAL, "token use is not tracked")
    since = parse_date(tracking.data.get("since"))
    if since is None:
        raise InvalidSpec("tracking ConfigMap has no valid 'since'")
    # The first day is only partly tracked, and does not count.
    tracked = datetime.combine(since + timedelta(days=1), time(), UTC)
    if now < tracked + config.period:
        return Wake(INTERVAL, "token use is not tracked for long enough yet")
    before = now - config.period
    used: dict[str, frozenset[str]] = {}
    failure: ApiError | None = None
    for token in tokens:
        if not is_unused(token, before):
            continue
        namespace = token.secret.metadata.namespace
        try:
            if namespace not in used:
                used[namespace] = await _used_secrets(namespace)
            if token.secret.metadata.name not in used[namespace]:
                await _invalidate_or_delete(token.secret, before, now)
        except ApiError as error:
            # One token that cannot be written must not keep the others from it.
            failure = failure or error
    if failure is not None:
        raise failure
    return Wake(INTERVAL, "tokens checked")


async def _used_secrets(namespace: str) -> frozenset[str]:
    """The names of the Secrets that the pods of a namespace refer to."""
    pods = await List(PODS.untyped, namespace, as_manager=True)
    return frozenset(name for pod in pods for name in secret_names(pod.get("spec")))


async def _invalidate_or_delete(secret: Secret, before: datetime, now: datetime) -> None:
    """Labels an unused token invalid; deletes one that has been invalid for the clean-up period."""
    meta = secret.metadata
    invalid = parse_date(meta.labels.get(INVALID_SINCE))
    try:
        if invalid is None:
            label = {INVALID_SINCE: now.strftime("%Y-%m-%d")}
            await Patch(secret, {"metadata": {"uid": meta.uid, "labels": label}})
        elif invalid < before.date():
            await Delete(secret, exact=True)
    except (NotFound, Conflict):
        # The Secret has changed or is gone: the next round checks again.
        return


def configure(settings: Settings) -> Controller[tuple[Token, ...]]:
    config = Config(period=timedelta(seconds=settings[PERIOD]))
    if config.period <= timedelta():
        raise Misconfigured(f"--{PERIOD.name} must be greater than 0")
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
