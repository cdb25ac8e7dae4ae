"""serviceaccount-token, row by row."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from steersman.api.errors import Conflict, NotFound
from steersman.api.jwt import Verifier
from steersman.api.kinds import SERVICEACCOUNTS, ObjectMeta, SecretReference, ServiceAccount
from steersman.api.kinds.config import ACCOUNT_NAME, ACCOUNT_TOKENS, ACCOUNT_UID, Secret
from steersman.api.scheme import Key
from steersman.api.signing_keys import KeySet
from steersman.controllers.serviceaccounttoken import FillSecret, controller
from steersman.intent.actions import Action, Address, Delete, Read, ReadFile, ReadModifyWrite
from steersman.intent.controller import Change
from steersman.intent.settings import Settings
from steersman.intent.verdict import InvalidSpec, Rest, Verdict
from steersman.testing.decision_driver import USUAL, StaticCaches, walk

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = KeySet.generate()
SETTINGS = Settings({"service-account-private-key-file": "sa.key", "root-ca-file": "ca.crt"})
FILES = {"sa.key": KEYS.pem, "ca.crt": b"CA"}
MEANT = Key("d", "t")


def account(uid: str = "u1", *mentions: str) -> ServiceAccount:
    meta = ObjectMeta(name="builder", namespace="d", uid=uid, resourceVersion="4")
    return ServiceAccount(metadata=meta, secrets=tuple(SecretReference(name=name) for name in mentions))


def secret(uid: str = "", **data: str) -> Secret:
    annotations = {ACCOUNT_NAME: "builder", **({ACCOUNT_UID: uid} if uid else {})}
    return Secret(
        metadata=ObjectMeta(name="t", namespace="d", uid="s", resourceVersion="9", annotations=annotations),
        type="kubernetes.io/service-account-token",
        data={
            key.replace("_", "."): base64.b64encode(value.encode()).decode() for key, value in data.items()
        },
    )


def look(
    *objects: Any, key: Key = MEANT, live: object = None, files: dict[str, bytes] = FILES
) -> tuple[list[Action[Any]], Verdict]:
    configured = controller.configured(SETTINGS)
    assert configured is not None
    seen = configured.see(StaticCaches(configured, *objects), key)
    assert seen is not None

    def answer(action: Action[Any]) -> Any:
        if isinstance(action, ReadFile):
            return files[action.path]
        return live if isinstance(action, Read) else USUAL

    actions, verdict = walk(configured.decide(seen, NOW), answer)
    return [action for action in actions if not isinstance(action, ReadFile | Read)], verdict


def filled(action: Action[Any], **document: Any) -> dict[str, Any]:
    assert isinstance(action, ReadModifyWrite)
    made = {"metadata": {"resourceVersion": "9", "annotations": {"mine": "stays"}}, **document}
    action.mutate(made)
    return made


def test_an_empty_secret_gets_a_token_that_names_its_account_its_secret_and_no_end() -> None:
    (amend,), verdict = look(secret(), account())
    made = filled(amend)
    assert verdict == Rest("Secret filled in: ca.crt, namespace, token")
    assert base64.b64decode(made["data"]["ca.crt"]) == b"CA"
    assert base64.b64decode(made["data"]["namespace"]) == b"d"
    assert made["metadata"]["annotations"] == {"mine": "stays", ACCOUNT_NAME: "builder", ACCOUNT_UID: "u1"}
    token = base64.b64decode(made["data"]["token"]).decode()
    claims = Verifier(KEYS, ["kubernetes/serviceaccount"]).read(token)
    assert claims is not None
    assert claims.sub == "system:serviceaccount:d:builder"
    assert (claims.legacy_uid, claims.legacy_secret, claims.exp) == ("u1", "t", None)


def test_a_token_is_signed_by_rsa_keys_too() -> None:
    keys = KeySet.generate("RS256")
    (amend,), _ = look(secret(), account(), files={"sa.key": keys.pem, "ca.crt": b"CA"})
    token = base64.b64decode(filled(amend)["data"]["token"]).decode()
    assert Verifier(keys, ["kubernetes/serviceaccount"]).read(token) is not None


def test_only_what_is_missing_is_given_and_a_token_that_is_out_stays() -> None:
    (amend,), verdict = look(secret("u1", token="old", namespace="d", ca_crt="another"), account())
    assert verdict == Rest("Secret filled in: ca.crt")
    made = filled(amend, data={"token": "b2xk"})
    assert made["data"] == {"token": "b2xk", "ca.crt": base64.b64encode(b"CA").decode()}


def test_somebody_who_was_quicker_keeps_their_token() -> None:
    (amend,), _ = look(secret(), account())
    assert filled(amend, data={"token": "Zmlyc3Q="})["data"]["token"] == "Zmlyc3Q="


def test_a_secret_that_has_everything_is_left_alone() -> None:
    whole = secret("u1", token="t", namespace="d", ca_crt="CA")
    assert look(whole, account()) == ([], Rest("Secret is complete"))


@pytest.mark.parametrize("live", [NotFound("none"), account("u2")], ids=["none", "a namesake"])
def test_a_secret_whose_account_is_gone_goes(live: object) -> None:
    orphan = secret("u1")
    assert look(orphan, live=live) == ([Delete(orphan)], Rest("ServiceAccount is gone: Secret deleted"))


def test_a_cache_that_lags_behind_deletes_nothing() -> None:
    (amend,), _ = look(secret("u1"), live=account("u1"))
    assert isinstance(amend, ReadModifyWrite)


def test_a_namesake_of_its_account_is_not_its_account() -> None:
    orphan = secret("u1")
    assert look(orphan, account("u2"), live=account("u2"))[0] == [Delete(orphan)]


def test_a_secret_that_names_nobody_is_left_alone() -> None:
    nobodys = Secret(metadata=ObjectMeta(name="t", namespace="d"))
    assert look(nobodys) == ([], Rest("no service-account.name annotation"))


def test_an_account_forgets_a_secret_that_is_gone() -> None:
    configured = controller.configured(SETTINGS)
    assert configured is not None
    owner = account("u1", "t", "other")
    caches = StaticCaches(configured, owner)
    (key,) = configured.watches[0].to(caches, Change(secret("u1"), None))
    (amend,), verdict = look(owner, key=key)
    assert isinstance(amend, ReadModifyWrite)
    document: dict[str, Any] = {"secrets": [{"name": "t"}, {"name": "other"}]}
    amend.mutate(document)
    assert document["secrets"] == [{"name": "other"}]
    assert verdict == Rest("Secret deleted; removed from its ServiceAccount")


def test_a_secret_of_the_same_name_that_came_back_is_not_forgotten() -> None:
    configured = controller.configured(SETTINGS)
    assert configured is not None
    caches = StaticCaches(configured, account("u1", "t"), secret("u1"))
    (key,) = configured.watches[0].to(caches, Change(secret("u1"), None))
    assert configured.see(caches, key) is None


def removing_a_reference(error: Exception) -> Verdict:
    configured = controller.configured(SETTINGS)
    assert configured is not None
    caches = StaticCaches(configured, account("u1", "t"))
    (key,) = configured.watches[0].to(caches, Change(secret("u1"), None))
    seen = configured.see(caches, key)
    assert seen is not None
    return walk(configured.decide(seen, NOW), {ReadModifyWrite: error})[1]


def test_an_account_that_went_first_is_no_error() -> None:
    assert removing_a_reference(NotFound("gone")) == Rest("Secret deleted; ServiceAccount is gone, too")


def test_a_reference_that_other_writers_kept_from_being_removed_is_tried_again() -> None:
    with pytest.raises(Conflict):
        removing_a_reference(Conflict("changed"))


def test_a_key_that_is_none_fails_the_round_and_is_not_quoted() -> None:
    with pytest.raises(InvalidSpec) as caught:
        look(secret(), account(), files={"sa.key": b"-----SECRET-----", "ca.crt": b"CA"})
    assert "SECRET" not in str(caught.value)


def test_without_a_key_there_is_nothing_to_do() -> None:
    assert controller.configured(Settings({"root-ca-file": "ca.crt"})) is None


def test_an_account_that_changes_is_a_reason_to_look_at_its_secrets() -> None:
    caches = StaticCaches(controller, secret("u1"))
    assert list(controller.watches[1].to(caches, Change(account(), None))) == [MEANT]
    assert controller.watches[0].kind is ACCOUNT_TOKENS


def test_what_fills_a_secret_does_not_show_it() -> None:
    (amend,), _ = look(secret(), account())
    assert isinstance(amend, ReadModifyWrite)
    assert repr(amend.mutate) == "<fill Secret: ca.crt, namespace, token>"


# -- upstream's table: a change, what exists then, and the requests it leads to -------------------

LOOK_UP = Read(Address(SERVICEACCOUNTS, "d", "builder"))
COMPLETE = secret("u1", token="ABC", ca_crt="CA", namespace="d")
LACKING = {
    "token": secret("u1", ca_crt="CA", namespace="d"),
    "ca.crt": secret("u1", token="ABC", namespace="d"),
    "another ca.crt": secret("u1", token="ABC", ca_crt="mismatched", namespace="d"),
    "namespace": secret("u1", token="ABC", ca_crt="CA"),
}
CUSTOM = secret("u1", token="ABC", ca_crt="CA", namespace="custom")


def requests(event: str, changed: Any, *existing: Any) -> list[Any]:
    """The reads and deletions that a change leads to, and the keys of ``data`` that are written."""
    configured = controller.configured(SETTINGS)
    assert configured is not None
    deleted = event == "deleted"
    caches = StaticCaches(configured, *existing, *(() if deleted else (changed,)))
    change = Change(changed if event != "added" else None, None if deleted else changed)
    watch = configured.watches[0 if isinstance(changed, Secret) else 1]
    found: list[Any] = []
    for key in watch.to(caches, change):
        if (seen := configured.see(caches, key)) is None:
            continue
        answers: dict[type[Action[Any]], Any] = {
            ReadFile: lambda action: FILES[action.path],
            Read: NotFound("none"),
        }
        for action in walk(configured.decide(seen, NOW), answers)[0]:
            if isinstance(action, ReadModifyWrite):
                fill = action.mutate
                found += sorted(fill.entries) if isinstance(fill, FillSecret) else ["reference"]
            elif not isinstance(action, ReadFile):
                found.append(action)
    return found


@pytest.mark.parametrize("event", ["added", "updated"])
@pytest.mark.parametrize(
    ("changed", "existing", "expected"),
    [
        (account("u1"), (), []),
        (account("u1", "missing"), (), []),
        (account("u1", "t"), (COMPLETE,), []),
        (COMPLETE, (), [LOOK_UP, Delete(COMPLETE)]),
        (COMPLETE, (account("u1", "t"),), []),
        (LACKING["token"], (account("u1", "t"),), ["token"]),
        (LACKING["ca.crt"], (account("u1", "t"),), ["ca.crt"]),
        (LACKING["another ca.crt"], (account("u1", "t"),), ["ca.crt"]),
        (LACKING["namespace"], (account("u1", "t"),), ["namespace"]),
        (CUSTOM, (account("u1", "t"),), []),
    ],
    ids=[
        "account",
        "account with a missing Secret",
        "account with a Secret",
        "no account",
        "complete",
        *LACKING,
        "namespace of its own",
    ],
)
def test_a_change_of_an_account_or_a_secret_leads_to_these_requests(
    event: str, changed: Any, existing: tuple[Any, ...], expected: list[Any]
) -> None:
    assert requests(event, changed, *existing) == expected


@pytest.mark.parametrize(
    ("deleted", "existing", "expected"),
    [
        (account("u1"), (), []),
        (account("u1", "missing"), (), []),
        # differs: upstream deletes without reading the account again.
        (account("u1", "t"), (COMPLETE,), [LOOK_UP, Delete(COMPLETE)]),
        (COMPLETE, (), []),
        (COMPLETE, (account("u1", "t"),), ["reference"]),
        # differs: upstream reads the account before it finds that there is no reference.
        (COMPLETE, (account("u1"),), []),
        (COMPLETE, (account("u2", "t"),), []),
        (secret(), (account("u2", "t"),), ["reference"]),
    ],
    ids=[
        "account",
        "account with a missing Secret",
        "account with a Secret",
        "Secret without an account",
        "Secret with a reference",
        "Secret without a reference",
        "Secret of an account that was replaced",
        "Secret that names no uid",
    ],
)
def test_a_deletion_leads_to_these_requests(
    deleted: Any, existing: tuple[Any, ...], expected: list[Any]
) -> None:
    assert requests("deleted", deleted, *existing) == expected


@pytest.mark.parametrize("error", [NotFound("gone"), Conflict("changed")])
def test_a_secret_that_changed_or_went_is_not_filled_in(error: Exception) -> None:
    configured = controller.configured(SETTINGS)
    assert configured is not None
    seen = configured.see(StaticCaches(configured, secret(), account()), MEANT)
    assert seen is not None
    answers: dict[type[Action[Any]], Any] = {
        ReadFile: lambda action: FILES[action.path],
        ReadModifyWrite: error,
    }
    _, verdict = walk(configured.decide(seen, NOW), answers)
    assert verdict == Rest("Secret has changed or is gone")


def test_a_secret_that_was_given_to_another_account_is_not_given_back() -> None:
    (amend,), _ = look(secret(), account())
    assert isinstance(amend, ReadModifyWrite)
    live = {"metadata": {"resourceVersion": "10", "annotations": {ACCOUNT_NAME: "another"}}}
    with pytest.raises(Conflict):
        amend.mutate(live)
    assert live == {"metadata": {"resourceVersion": "10", "annotations": {ACCOUNT_NAME: "another"}}}
