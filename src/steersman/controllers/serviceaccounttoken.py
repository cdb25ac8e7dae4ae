"""serviceaccount-token-controller (a dialogue): keeps the token Secrets of ServiceAccounts.

A Secret of type ``kubernetes.io/service-account-token`` names its ServiceAccount in an annotation. The controller
fills in the token, the namespace and the CA. It deletes the Secret when the account is gone, and removes a
deleted Secret from ``secrets`` of its account.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from steersman.api.errors import Conflict, NotFound
from steersman.api.jwt import Claims, encode
from steersman.api.kinds import SERVICEACCOUNTS, ServiceAccount
from steersman.api.kinds.config import ACCOUNT_NAME, ACCOUNT_TOKENS, ACCOUNT_UID, Secret, plain
from steersman.api.scheme import Key
from steersman.api.signing_keys import KeySet
from steersman.controllers.shared.flags import ROOT_CA_FILE
from steersman.intent.actions import Address, Delete, Read, ReadFile, ReadModifyWrite
from steersman.intent.controller import Caches, Change, Controller, Flag, Settings, Watch
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import InvalidSpec, Rest, Verdict

ISSUER = "kubernetes/serviceaccount"

PRIVATE_KEY_FILE = Flag(
    "service-account-private-key-file", "", "PEM file of the key that signs service account tokens."
)
WORKERS = Flag("concurrent-serviceaccount-token-syncs", 5)


class Config(msgspec.Struct, frozen=True):
    """The controller's flags."""

    private_key_file: str
    root_ca_file: str


class TokenSecret(msgspec.Struct, frozen=True):
    """A Secret, and its ServiceAccount, if the cache has it."""

    secret: Secret
    account: ServiceAccount | None


class DeletedSecret(msgspec.Struct, frozen=True):
    """The name of a deleted Secret, and its ServiceAccount."""

    secret: str
    account: ServiceAccount


def observe(caches: Caches, key: Key) -> TokenSecret | DeletedSecret | None:
    secret = caches[ACCOUNT_TOKENS].get(key)
    if secret is not None:
        return TokenSecret(
            secret, _find_account(caches, secret.metadata.namespace, secret.metadata.annotations)
        )
    # The key of a deleted Secret names its account: see `_enqueue_secret`.
    name, _, rest = key.name.partition("/")
    account, _, uid = rest.partition("/")
    # differs: upstream also removes the reference if there is a new Secret of the same name.
    if not account or caches[ACCOUNT_TOKENS].get(Key(key.namespace, name)) is not None:
        return None
    found = _find_account(caches, key.namespace, {ACCOUNT_NAME: account, ACCOUNT_UID: uid})
    return None if found is None else DeletedSecret(name, found)


def _find_account(caches: Caches, namespace: str, names: Mapping[str, str]) -> ServiceAccount | None:
    """The account that annotations name; one of the same name with another uid is not it."""
    account = caches[SERVICEACCOUNTS].get(Key(namespace, names.get(ACCOUNT_NAME, "")))
    return (
        account
        if account is not None and names.get(ACCOUNT_UID) in (None, "", account.metadata.uid)
        else None
    )


def missing_data(secret: Secret, ca: bytes) -> tuple[str, ...]:
    """The keys of ``data`` that a Secret lacks, or whose value is outdated."""

    def keys() -> Iterator[str]:
        if ca and plain(secret, "ca.crt") != ca:
            yield "ca.crt"
        if not plain(secret, "namespace"):
            yield "namespace"
        if not plain(secret, "token"):
            yield "token"

    return tuple(keys())


def claims(account: ServiceAccount, secret: str) -> Claims:
    """The claims of a token in a Secret. It has no expiry: deleting the Secret revokes it."""
    meta = account.metadata
    return Claims(
        iss=ISSUER,
        sub=f"system:serviceaccount:{meta.namespace}:{meta.name}",
        legacy_namespace=meta.namespace,
        legacy_secret=secret,
        legacy_account=meta.name,
        legacy_uid=meta.uid,
    )


async def _remove_reference(seen: DeletedSecret) -> Verdict:
    """Removes a deleted Secret from ``secrets`` of its account."""
    if all(reference.name != seen.secret for reference in seen.account.secrets):
        return Rest("Secret deleted; ServiceAccount does not reference it")

    def change(document: dict[str, Any]) -> None:
        secrets = document.get("secrets", [])
        document["secrets"] = [one for one in secrets if one.get("name") != seen.secret]

    try:
        await ReadModifyWrite(seen.account, change)
    except NotFound:
        return Rest("Secret deleted; ServiceAccount is gone, too")
    return Rest("Secret deleted; removed from its ServiceAccount")


async def _live_account(seen: TokenSecret) -> ServiceAccount | None:
    """The account of a Secret, read live where the cache lacks it."""
    if seen.account is not None:
        return seen.account
    meta = seen.secret.metadata
    # differs: upstream deletes the tokens of an account whose deletion it watched without reading it again.
    try:
        live = await Read(Address(SERVICEACCOUNTS, meta.namespace, meta.annotations[ACCOUNT_NAME]))
    except NotFound:
        return None
    return live if meta.annotations.get(ACCOUNT_UID) in (None, "", live.metadata.uid) else None


async def decide(seen: TokenSecret | DeletedSecret, now: datetime, config: Config) -> Verdict:
    if isinstance(seen, DeletedSecret):
        return await _remove_reference(seen)
    secret = seen.secret
    if not secret.metadata.annotations.get(ACCOUNT_NAME):
        return Rest("no service-account.name annotation")
    if secret.metadata.deletionTimestamp is not None:
        # differs: upstream fills it in, with a token that no server accepts.
        return Rest("Secret terminating")
    account = await _live_account(seen)
    if account is None:
        try:
            await Delete(secret)
        except (NotFound, Conflict):
            return Rest("Secret already gone")
        return Rest("ServiceAccount is gone: Secret deleted")
    bundle = await ReadFile(config.root_ca_file) if config.root_ca_file else b""
    missing = missing_data(secret, bundle)
    if not missing:
        return Rest("Secret is complete")
    data = {"ca.crt": bundle, "namespace": secret.metadata.namespace.encode()}
    if "token" in missing:
        try:
            signer = KeySet.load(await ReadFile(config.private_key_file)).signer
        except ValueError as error:
            raise InvalidSpec(f"{config.private_key_file}: {error}") from None
        data["token"] = encode(claims(account, secret.metadata.name), signer).encode()
    fill = FillSecret({name: data[name] for name in missing}, account, secret.metadata.resourceVersion)
    try:
        await ReadModifyWrite(secret, fill)
    except (NotFound, Conflict):
        return Rest("Secret has changed or is gone")
    return Rest(f"Secret filled in: {', '.join(missing)}")


class FillSecret(msgspec.Struct, frozen=True):
    """Sets data and annotations of a live Secret. Raises `Conflict` if the Secret is not as the cache shows it: it may
    name another account by now, and its next event leads to another round."""

    entries: Mapping[str, bytes]
    account: ServiceAccount
    resource_version: str

    def __call__(self, document: dict[str, Any]) -> None:
        if document["metadata"].get("resourceVersion") != self.resource_version:
            raise Conflict("Secret is not up to date in the cache")
        data = document["data"] = {**(document.get("data") or {})}
        for name, value in self.entries.items():
            # Another writer may have been faster: an existing token is never replaced.
            if name == "ca.crt" or not data.get(name):
                data[name] = base64.b64encode(value).decode()
        meta = document["metadata"]
        owner = self.account.metadata
        meta["annotations"] = {
            **(meta.get("annotations") or {}),
            ACCOUNT_NAME: owner.name,
            ACCOUNT_UID: owner.uid,
        }

    def __repr__(self) -> str:
        return f"<fill Secret: {', '.join(self.entries)}>"


def _enqueue_secret(caches: Caches, change: Change[Secret]) -> Iterable[Key]:
    secret = change.obj
    if change.new is not None:
        return (secret.key,)
    # The deleted object is no longer cached: the key carries what a round needs.
    annotations = secret.metadata.annotations
    name = f"{secret.metadata.name}/{annotations.get(ACCOUNT_NAME, '')}/{annotations.get(ACCOUNT_UID, '')}"
    return (Key(secret.metadata.namespace, name),)


def _account_of(secret: Secret) -> Iterable[tuple[str, str]]:
    name = secret.metadata.annotations.get(ACCOUNT_NAME)
    return ((secret.metadata.namespace, name),) if name else ()


def _enqueue_secrets_of(caches: Caches, change: Change[ServiceAccount]) -> Iterable[Key]:
    meta = change.obj.metadata
    return (secret.key for secret in caches[ACCOUNT_TOKENS].by("account", (meta.namespace, meta.name)))


def configure(settings: Settings) -> Controller[TokenSecret | DeletedSecret]:
    config = Config(private_key_file=settings[PRIVATE_KEY_FILE], root_ca_file=settings[ROOT_CA_FILE])
    return Controller(
        name="serviceaccount-token-controller",
        aliases=("serviceaccount-token",),
        service_account="tokens-controller",
        as_manager=True,
        watches=(
            Watch(ACCOUNT_TOKENS, to=_enqueue_secret, indexes={"account": _account_of}),
            Watch(SERVICEACCOUNTS, to=_enqueue_secrets_of),
        ),
        workers=WORKERS,
        observe=observe,
        decide=partial(decide, config=config),
        flags=(PRIVATE_KEY_FILE, ROOT_CA_FILE),
        configure=configure,
        enabled=lambda settings: bool(settings[PRIVATE_KEY_FILE]),
    )


controller = configure(DEFAULTS)
