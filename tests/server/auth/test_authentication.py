"""Authentication as a whole: which credential counts, and what is refused."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from steersman.api.errors import Unauthorized, to_status
from steersman.api.generated.authentication_v1 import TokenRequest, TokenRequestSpec
from steersman.api.generated.core_v1 import Secret, ServiceAccount
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.jwt import Claims, InvalidCredential, encode
from steersman.api.signing_keys import KeySet, base64url_encode
from steersman.server.auth.authentication import Authenticator, Credentials
from steersman.server.auth.ca import CertificateAuthority, self_signed
from steersman.server.auth.lookup import ObjectLookup
from steersman.server.auth.service_accounts import LegacyUse
from steersman.server.auth.tokens import TokenIssuer
from steersman.server.auth.users import ANONYMOUS, User

NOW = datetime(2026, 11, 15, 20, 50, 38, tzinfo=UTC)
ISSUER = "https://kubernetes.default.svc"
KEYS = KeySet.generate()
BOT = ServiceAccount(metadata=ObjectMeta(namespace="ns", name="bot", uid="u-bot"))
LEGACY = encode(
    Claims(
        iss="kubernetes/serviceaccount",
        legacy_namespace="ns",
        legacy_secret="s",
        legacy_account="bot",
        legacy_uid="u-bot",
        sub="system:serviceaccount:ns:bot",
    ),
    KEYS.signer,
)
ADMIN = "a-long-random-admin-token"
JOINING = "foobar.0123456789abcdef"


def secret(namespace: str, name: str, type: str, **data: str) -> Secret:
    encoded = {key.replace("_", "-"): b64encode(value.encode()).decode() for key, value in data.items()}
    return Secret(metadata=ObjectMeta(namespace=namespace, name=name, uid="u"), type=type, data=encoded)


OBJECTS: tuple[Any, ...] = (
    BOT,
    secret("ns", "s", "kubernetes.io/service-account-token", token=LEGACY),
    secret(
        "kube-system",
        "bootstrap-token-foobar",
        "bootstrap.kubernetes.io/token",
        token_id="foobar",
        token_secret="0123456789abcdef",
        usage_bootstrap_authentication="true",
    ),
)


def lookup(*objects: Any) -> ObjectLookup:
    there = {(f"{type(obj).__name__.lower()}s", *obj.key): obj for obj in objects}
    return ObjectLookup(lambda *key: there.get(key))


def authenticator(**options: Any) -> Authenticator:
    settings: dict[str, Any] = {
        "keys": KEYS,
        "issuers": [ISSUER],
        "tokens": {ADMIN: User("admin", "1", ("system:masters",))},
    }
    return Authenticator(lookup(*OBJECTS), **(settings | options))


def mint(**spec: Any) -> str:
    body = TokenRequest(spec=TokenRequestSpec(**spec))
    minted = TokenIssuer(KEYS, ISSUER, (ISSUER,)).request(body, "ns", "bot", lookup(BOT), NOW, Random(1))
    return minted.answer.status.token


def bearing(token: str) -> Credentials:
    return Credentials(authorization=f"Bearer {token}")


def certificate(user: str, *groups: str) -> bytes:
    pair = CertificateAuthority(self_signed("ca", NOW), lambda: NOW).client(user, groups)
    return x509.load_pem_x509_certificate(pair.cert).public_bytes(Encoding.DER)


ACCOUNTS = ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")


@pytest.mark.parametrize(
    ("shown", "name", "groups", "audiences"),
    [
        (bearing(ADMIN), "admin", ("system:masters", "system:authenticated"), (ISSUER,)),
        (Credentials(f"bearer {ADMIN}"), "admin", ("system:masters", "system:authenticated"), (ISSUER,)),
        (Credentials(f" Bearer {ADMIN} x"), "admin", ("system:masters", "system:authenticated"), (ISSUER,)),
        (bearing(mint()), "system:serviceaccount:ns:bot", ACCOUNTS, (ISSUER,)),
        (bearing(LEGACY), "system:serviceaccount:ns:bot", ACCOUNTS, (ISSUER,)),
        (
            bearing(JOINING),
            "system:bootstrap:foobar",
            ("system:bootstrappers", "system:authenticated"),
            (ISSUER,),
        ),
        (
            Credentials(certificate=certificate("ann", "dev")),
            "ann",
            ("dev", "system:authenticated"),
            (),
        ),
        # A certificate counts before a token, even before one that is not good.
        (
            Credentials("Bearer nonsense", certificate("ann", "dev")),
            "ann",
            ("dev", "system:authenticated"),
            (),
        ),
        (
            Credentials(
                protocols=(
                    f"v4.channel.k8s.io, base64url.bearer.authorization.k8s.io.{base64url_encode(ADMIN.encode())}",
                )
            ),
            "admin",
            ("system:masters", "system:authenticated"),
            (ISSUER,),
        ),
        # What is no bearer token is nobody's.
        (Credentials(), "system:anonymous", ("system:unauthenticated",), (ISSUER,)),
        (Credentials("Basic YWJj"), "system:anonymous", ("system:unauthenticated",), (ISSUER,)),
        (Credentials("Bearer"), "system:anonymous", ("system:unauthenticated",), (ISSUER,)),
        (Credentials("Bearer "), "system:anonymous", ("system:unauthenticated",), (ISSUER,)),
        (
            Credentials(protocols=("v4.channel.k8s.io",)),
            "system:anonymous",
            ("system:unauthenticated",),
            (ISSUER,),
        ),
    ],
)
def test_a_request_is_its_senders(
    shown: Credentials, name: str, groups: tuple[str, ...], audiences: tuple[str, ...]
) -> None:
    found = authenticator().authenticate(shown, NOW)
    assert (found.user.name, found.user.groups, found.audiences) == (name, groups, audiences)


@pytest.mark.parametrize(
    "shown",
    [
        bearing("nonsense"),
        bearing("a.b.c"),
        bearing(ADMIN[:-1]),
        bearing(mint()[:-2]),
        bearing(mint(audiences=("elsewhere",))),
        bearing("foobar.0000000000000000"),
        Credentials(certificate=b"nonsense"),
        Credentials(protocols=("base64url.bearer.authorization.k8s.io.bm9uc2Vuc2U, x",)),
        bearing("\udcff"),
    ],
)
def test_a_credential_that_does_not_hold_is_refused_and_never_anonymous(shown: Credentials) -> None:
    with pytest.raises(Unauthorized) as refused:
        authenticator().authenticate(shown, NOW)
    assert to_status(refused.value) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


def test_anonymous_requests_are_refused_if_disabled() -> None:
    with pytest.raises(Unauthorized):
        authenticator(anonymous=False).authenticate(Credentials(), NOW)
    assert authenticator().authenticate(Credentials(), NOW).user == ANONYMOUS


@pytest.mark.parametrize(
    ("protocols", "error"),
    [
        (
            ("base64url.bearer.authorization.k8s.io.YQ,base64url.bearer.authorization.k8s.io.YQ",),
            "multiple base64.bearer.authorization tokens specified",
        ),
        (
            ("base64url.bearer.authorization.k8s.io.%,x",),
            "invalid base64.bearer.authorization token encoding",
        ),
        (("base64url.bearer.authorization.k8s.io._w,x",), "invalid base64.bearer.authorization token"),
        (("base64url.bearer.authorization.k8s.io.YQ",), "missing additional subprotocol"),
    ],
)
def test_a_token_among_protocols_must_be_put_rightly(protocols: tuple[str, ...], error: str) -> None:
    with pytest.raises(InvalidCredential) as refused:
        authenticator().authenticate_for(Credentials(protocols=protocols), NOW)
    assert refused.value.errors == (error,)


def test_a_space_too_many_is_warned_about() -> None:
    found = authenticator().authenticate(Credentials(f"Bearer  {ADMIN}"), NOW)
    assert found.user == ANONYMOUS
    assert found.warnings == (
        "the provided Authorization header contains extra space before the bearer token, and is ignored",
    )


@pytest.mark.parametrize(
    ("token", "asked", "audiences"),
    [
        (mint(audiences=("vault", "x")), ("vault",), ("vault",)),
        (mint(audiences=("vault", ISSUER)), (), (ISSUER,)),
        (LEGACY, ("vault", ISSUER), (ISSUER,)),
        (ADMIN, (ISSUER, "vault"), (ISSUER,)),
    ],
)
def test_a_token_may_be_asked_about_for_other_audiences(
    token: str, asked: tuple[str, ...], audiences: tuple[str, ...]
) -> None:
    assert authenticator().authenticate_for(bearing(token), NOW, asked).audiences == audiences


@pytest.mark.parametrize(
    ("token", "error"),
    [
        (mint(), f'token audiences ["{ISSUER}"] is invalid for the target audiences ["vault"]'),
        (LEGACY, f'token audiences ["{ISSUER}"] is invalid for the target audiences ["vault"]'),
        (ADMIN, "invalid bearer token"),
        (JOINING, "invalid bearer token"),
    ],
)
def test_a_token_for_others_is_refused(token: str, error: str) -> None:
    with pytest.raises(InvalidCredential) as refused:
        authenticator().authenticate_for(bearing(token), NOW, ("vault",))
    assert refused.value.errors == (error,)


def test_a_token_that_was_good_is_checked_again_each_time() -> None:
    there: dict[tuple[str, str, str], Any] = {("serviceaccounts", "ns", "bot"): BOT}
    auth = Authenticator(ObjectLookup(lambda *key: there.get(key)), keys=KEYS, issuers=[ISSUER])
    token = mint()
    assert auth.authenticate(bearing(token), NOW).user.uid == "u-bot"
    with pytest.raises(Unauthorized):
        auth.authenticate(bearing(token), NOW + timedelta(hours=2))
    there.clear()
    with pytest.raises(Unauthorized):
        auth.authenticate(bearing(token), NOW)


def test_the_use_of_a_legacy_token_is_told() -> None:
    used: list[LegacyUse] = []
    authenticator(used=used.append).authenticate(bearing(LEGACY), NOW)
    assert [use.secret.metadata.name for use in used] == ["s"]


def test_tokens_of_an_earlier_issuer_still_hold() -> None:
    auth = authenticator(issuers=["https://new", ISSUER])
    assert auth.authenticate(bearing(mint()), NOW).user.uid == "u-bot"
    assert auth.audiences == ("https://new", ISSUER)
