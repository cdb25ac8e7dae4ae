"""serviceaccount-token (a dialogue): secrets that ask for a ServiceAccount's token get it, and go with the account.

A secret of type ``kubernetes.io/service-account-token`` names its account in an annotation. It is given
the token, the namespace and the CA; it is deleted when the account is gone; and when it is deleted, the
account no longer mentions it.
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
from steersman.api.signing_keys import Keys
from steersman.controllers.shared.flags import ROOT_CA_FILE
from steersman.intent.actions import Address, Delete, Read, ReadFile, ReadModifyWrite
from steersman.intent.controller import Caches, Change, Controller, Flag, Settings, Watch
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import InvalidSpec, Rest, Verdict

ISSUER = "kubernetes/serviceaccount"

KEY = Flag("service-account-private-key-file", "", "PEM file of the key that signs service account tokens.")
WORKERS = Flag("concurrent-serviceaccount-token-syncs", 5)


class Config(msgspec.Struct, frozen=True):
    """The controller's flags."""

    private_key_file: str
    root_ca_file: str


class Present(msgspec.Struct, frozen=True):
    """A secret, and the account it is for, as far as the cache knows one."""

    secret: Secret
    account: ServiceAccount | None


class Gone(msgspec.Struct, frozen=True):
    """The name of a secret that is no more, and the account it was for."""

    secret: str
    account: ServiceAccount


def observe(caches: Caches, key: Key) -> Present | Gone | None:
    secret = caches[ACCOUNT_TOKENS].get(key)
    if secret is not None:
        return Present(secret, _named(caches, secret.metadata.namespace, secret.metadata.annotations))
    # See `_looked_at`: a secret that is gone is looked at by what it was for.
    name, _, rest = key.name.partition("/")
    account, _, uid = rest.partition("/")
    if not account or caches[ACCOUNT_TOKENS].get(Key(key.namespace, name)) is not None:
        return None
    found = _named(caches, key.namespace, {ACCOUNT_NAME: account, ACCOUNT_UID: uid})
    return None if found is None else Gone(name, found)


def _named(caches: Caches, namespace: str, names: Mapping[str, str]) -> ServiceAccount | None:
    """The account some annotations name. A namesake that came later is not it."""
    account = caches[SERVICEACCOUNTS].get(Key(namespace, names.get(ACCOUNT_NAME, "")))
    return (
        account
        if account is not None and names.get(ACCOUNT_UID) in (None, "", account.metadata.uid)
        else None
    )


def missing(secret: Secret, ca: bytes) -> tuple[str, ...]:
    """The entries a secret still needs."""

    def keys() -> Iterator[str]:
        if ca and plain(secret, "ca.crt") != ca:
            yield "ca.crt"
        if not plain(secret, "namespace"):
            yield "namespace"
        if not plain(secret, "token"):
            yield "token"

    return tuple(keys())


def claims(account: ServiceAccount, secret: str) -> Claims:
    """What a token that lives in a secret says. It does not expire: the secret is deleted."""
    meta = account.metadata
    return Claims(
        iss=ISSUER,
        sub=f"system:serviceaccount:{meta.namespace}:{meta.name}",
        legacy_namespace=meta.namespace,
        legacy_secret=secret,
        legacy_account=meta.name,
        legacy_uid=meta.uid,
    )


async def _forget(seen: Gone) -> Verdict:
    """Take a secret that is gone out of its account."""
    if all(reference.name != seen.secret for reference in seen.account.secrets):
        return Rest("gone, and its account does not mention it")

    def change(document: dict[str, Any]) -> None:
        secrets = document.get("secrets", [])
        document["secrets"] = [one for one in secrets if one.get("name") != seen.secret]

    try:
        await ReadModifyWrite(seen.account, change)
    except (NotFound, Conflict):
        return Rest("its account is gone, too")
    return Rest("gone, and taken out of its account")


async def _verified(seen: Present) -> ServiceAccount | None:
    """The account of a secret; the server has the last word that there is none."""
    if seen.account is not None:
        return seen.account
    meta = seen.secret.metadata
    try:
        live = await Read(Address(SERVICEACCOUNTS, meta.namespace, meta.annotations[ACCOUNT_NAME]))
    except NotFound:
        return None
    return live if meta.annotations.get(ACCOUNT_UID) in (None, "", live.metadata.uid) else None


async def decide(seen: Present | Gone, now: datetime, config: Config) -> Verdict:
    if isinstance(seen, Gone):
        return await _forget(seen)
    secret = seen.secret
    if not secret.metadata.annotations.get(ACCOUNT_NAME):
        return Rest("names no account")
    if secret.metadata.deletionTimestamp is not None:
        return Rest("is going away")
    account = await _verified(seen)
    if account is None:
        try:
            await Delete(secret)
        except (NotFound, Conflict):
            return Rest("already gone")
        return Rest("its account is gone")
    bundle = await ReadFile(config.root_ca_file) if config.root_ca_file else b""
    wanted = missing(secret, bundle)
    if not wanted:
        return Rest("has all it needs")
    given = {"ca.crt": bundle, "namespace": secret.metadata.namespace.encode()}
    if "token" in wanted:
        try:
            signer = Keys.load(await ReadFile(config.private_key_file)).signer
        except ValueError as error:
            raise InvalidSpec(f"{config.private_key_file}: {error}") from None
        given["token"] = encode(claims(account, secret.metadata.name), signer).encode()
    await ReadModifyWrite(secret, Filling({name: given[name] for name in wanted}, account))
    return Rest(f"given: {', '.join(wanted)}")


class Filling(msgspec.Struct, frozen=True):
    """Puts entries into a live secret, and says whose they are."""

    entries: Mapping[str, bytes]
    account: ServiceAccount

    def __call__(self, document: dict[str, Any]) -> None:
        data = document["data"] = {**(document.get("data") or {})}
        for name, value in self.entries.items():
            # Somebody may have been quicker: a token that is out is not replaced.
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
        return f"<filling {', '.join(self.entries)}>"


def _looked_at(caches: Caches, change: Change[Secret]) -> Iterable[Key]:
    secret = change.obj
    if change.new is not None:
        return (secret.key,)
    # The object is gone, and what it was for with it: the key has to say.
    annotations = secret.metadata.annotations
    name = f"{secret.metadata.name}/{annotations.get(ACCOUNT_NAME, '')}/{annotations.get(ACCOUNT_UID, '')}"
    return (Key(secret.metadata.namespace, name),)


def _account_of(secret: Secret) -> Iterable[tuple[str, str]]:
    name = secret.metadata.annotations.get(ACCOUNT_NAME)
    return ((secret.metadata.namespace, name),) if name else ()


def _tokens_of(caches: Caches, change: Change[ServiceAccount]) -> Iterable[Key]:
    meta = change.obj.metadata
    return (secret.key for secret in caches[ACCOUNT_TOKENS].by("account", (meta.namespace, meta.name)))


def configure(settings: Settings) -> Controller[Present | Gone]:
    config = Config(private_key_file=settings[KEY], root_ca_file=settings[ROOT_CA_FILE])
    return Controller(
        name="serviceaccount-token-controller",
        aliases=("serviceaccount-token",),
        service_account="tokens-controller",
        as_manager=True,
        watches=(
            Watch(ACCOUNT_TOKENS, to=_looked_at, indexes={"account": _account_of}),
            Watch(SERVICEACCOUNTS, to=_tokens_of),
        ),
        workers=WORKERS,
        observe=observe,
        decide=partial(decide, config=config),
        flags=(KEY, ROOT_CA_FILE),
        configure=configure,
        enabled=lambda settings: bool(settings[KEY]),
    )


controller = configure(DEFAULTS)
