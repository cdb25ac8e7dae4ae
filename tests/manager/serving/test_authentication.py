"""Who asks at a manager's door: by certificate, by a proxy, by a token that the API server knows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman.api.clock import RealClock
from steersman.api.jwt import InvalidCredential
from steersman.api.kinds.config import CONFIGMAPS
from steersman.api.prometheus import Registry
from steersman.http.head import Headers
from steersman.manager.serving.authentication import Authenticator, Credentials, TokenReviewer, proxied_user
from steersman.manager.serving.ca_bundles import (
    NAME,
    NAMESPACE,
    ClusterAuthentication,
    RequestHeaderConfig,
    RequestHeaderNames,
)
from steersman.manager.serving.metrics import ServingMetrics
from steersman.manager.serving.reviews import subject
from steersman.server.auth.ca import CertificateAuthority
from steersman.server.auth.cert_verify import authorities
from steersman.server.auth.users import ANONYMOUS, User


def der(authority: CertificateAuthority, user: str, *groups: str) -> tuple[bytes, ...]:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    pem = authority.client(user, groups).cert
    return (x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER),)


def bearer(token: str, scheme: str = "Bearer") -> Credentials:
    return Credentials(Headers([("Authorization", f"{scheme} {token}")]))


# -- tokens -----------------------------------------------------------------------------------


async def test_a_token_is_whose_the_api_server_says(plane: Any) -> None:
    async with plane.api("manager") as api:
        authenticator = Authenticator(
            RealClock(), tokens=TokenReviewer(api, RealClock(), 10, ServingMetrics(Registry()))
        )
        user = await authenticator.authenticate(bearer("monitor", "bearer"))
        assert (user.name, user.groups) == ("monitor", ("system:monitoring", "system:authenticated"))
        with pytest.raises(InvalidCredential, match="invalid bearer token"):
            await authenticator.authenticate(bearer("wrong"))
        for nothing in (bearer("wrong", "Token"), bearer("", "Bearer"), Credentials(Headers())):
            assert await authenticator.authenticate(nothing) == ANONYMOUS


async def test_what_the_api_server_said_holds_for_its_time_yes_and_no(plane: Any, wound: Any) -> None:
    async with plane.api("manager") as api:
        tokens = TokenReviewer(api, wound, 10, ServingMetrics(Registry()))

        async def ask() -> int:
            await tokens.authenticate("monitor")
            with pytest.raises(InvalidCredential):
                await tokens.authenticate("wrong")
            return len(plane.asked)

        assert [await ask(), await ask()] == [2, 2]
        wound.at = 9.9
        assert await ask() == 2
        wound.at = 10.0
        assert await ask() == 4


async def test_that_the_api_server_did_not_answer_is_not_remembered(plane: Any) -> None:
    async with plane.api("wrong itself") as api:
        tokens = TokenReviewer(api, RealClock(), 10, ServingMetrics(Registry()))
        for _ in range(2):
            with pytest.raises(InvalidCredential, match="Unauthorized"):
                await tokens.authenticate("monitor")
    assert len(plane.asked) == 2


async def test_nobody_is_asked_about_tokens_where_that_is_not_configured() -> None:
    assert await Authenticator(RealClock()).authenticate(bearer("anything")) == ANONYMOUS


# -- certificates and proxies -----------------------------------------------------------------


async def test_a_certificate_says_who_its_bearer_is(
    authority: CertificateAuthority, stranger: CertificateAuthority
) -> None:
    roots = authorities(authority.pair.cert)
    authenticator = Authenticator(RealClock(), clients=lambda: roots)
    user = await authenticator.authenticate(Credentials(Headers(), der(authority, "me", "a", "b")))
    assert (user.name, user.groups) == ("me", ("a", "b", "system:authenticated"))
    with pytest.raises(InvalidCredential, match="unknown authority"):
        await authenticator.authenticate(Credentials(Headers(), der(stranger, "me")))


async def test_a_good_token_makes_up_for_a_bad_certificate(
    plane: Any, stranger: CertificateAuthority
) -> None:
    async with plane.api("manager") as api:
        roots = authorities(plane.boot.authority.pair.cert)
        authenticator = Authenticator(
            RealClock(),
            clients=lambda: roots,
            tokens=TokenReviewer(api, RealClock(), 10, ServingMetrics(Registry())),
        )
        shown = Credentials(bearer("monitor").headers, der(stranger, "me"))
        assert (await authenticator.authenticate(shown)).name == "monitor"


async def test_until_authorities_are_known_a_certificate_says_nothing(stranger: CertificateAuthority) -> None:
    authenticator = Authenticator(RealClock(), clients=lambda: (), proxies=lambda: None)
    assert await authenticator.authenticate(Credentials(Headers(), der(stranger, "me"))) == ANONYMOUS


SPOKEN = [
    ("X-Remote-User", "somebody"),
    ("X-Remote-Group", "a"),
    ("x-remote-group", "b"),
    ("X-Remote-Uid", "42"),
    ("X-Remote-Extra-Acme.com%2Fproject", "x"),
    ("X-Remote-Extra-Acme.com%2Fproject", "y"),
]


@pytest.mark.parametrize(
    ("names", "proxy", "expected"),
    [
        ((), "anyone", "somebody"),
        (("front",), "front", "somebody"),
        (("front", "other"), "other", "somebody"),
        (("front",), "anyone", None),
    ],
)
async def test_a_proxy_speaks_for_others_if_it_is_one_of_those(
    authority: CertificateAuthority, names: tuple[str, ...], proxy: str, expected: str | None
) -> None:
    believed = RequestHeaderConfig(authorities(authority.pair.cert), names)
    authenticator = Authenticator(RealClock(), proxies=lambda: believed)
    shown = Credentials(Headers(SPOKEN), der(authority, proxy))
    if expected is None:
        with pytest.raises(InvalidCredential, match=f"cn={proxy} is not in the allowed list"):
            await authenticator.authenticate(shown)
    else:
        assert (await authenticator.authenticate(shown)).name == expected


async def test_nobody_else_speaks_for_others(
    authority: CertificateAuthority, stranger: CertificateAuthority
) -> None:
    believed = RequestHeaderConfig(authorities(authority.pair.cert))
    authenticator = Authenticator(RealClock(), proxies=lambda: believed)
    assert await authenticator.authenticate(Credentials(Headers(SPOKEN))) == ANONYMOUS
    with pytest.raises(InvalidCredential):
        await authenticator.authenticate(Credentials(Headers(SPOKEN), der(stranger, "front")))


def test_a_proxy_says_all_there_is_to_say_of_somebody() -> None:
    names = RequestHeaderNames(uid=("x-remote-uid",))
    user = proxied_user(Headers(SPOKEN), names)
    assert user == User("somebody", "42", ("a", "b"), {"acme.com/project": ("x", "y")})
    assert user is not None
    assert dict(user.extra) == {"acme.com/project": ("x", "y")}
    assert subject(user) == {
        "user": "somebody",
        "groups": ["a", "b"],
        "uid": "42",
        "extra": {"acme.com/project": ["x", "y"]},
    }
    assert proxied_user(Headers([("X-Remote-Group", "a")]), names) is None


# -- what the cluster publishes ---------------------------------------------------------------


async def test_whom_the_cluster_trusts_is_read_and_followed(
    plane: Any, authority: CertificateAuthority
) -> None:
    async with plane.api("manager") as api, asyncio.TaskGroup() as group:
        published = ClusterAuthentication(api, RealClock())
        await published.load()
        assert published.clients() == authorities(plane.boot.authority.pair.cert)
        before = published.proxies()
        assert before is not None
        assert before.names == ("front-proxy-client",)
        following = group.create_task(published.run())
        data = {
            "client-ca-file": authority.pair.cert.decode(),
            "requestheader-client-ca-file": authority.pair.cert.decode(),
            "requestheader-allowed-names": '["front"]',
            "requestheader-username-headers": '["X-User"]',
            "requestheader-uid-headers": '["X-Uid"]',
            "requestheader-group-headers": '["X-Group"]',
            "requestheader-extra-headers-prefix": '["X-Extra-"]',
        }
        await _write(plane, data)
        async with asyncio.timeout(10):
            while published.proxies() == before:
                await asyncio.sleep(0)
        roots = authorities(authority.pair.cert)
        assert published.clients() == roots
        headers = RequestHeaderNames(("X-User",), ("X-Uid",), ("X-Group",), ("X-Extra-",))
        assert published.proxies() == RequestHeaderConfig(roots, ("front",), headers)
        following.cancel()


async def test_what_cannot_be_read_of_it_changes_nothing(
    plane: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with plane.api("manager") as api:
        published = ClusterAuthentication(api, RealClock())
        await published.load()
        before = published.clients()
        await _write(plane, {"client-ca-file": "nonsense"})
        await published.load()
    assert published.clients() == before
    assert f"configmap {NAMESPACE}/{NAME} is invalid" in caplog.text


async def _write(plane: Any, data: dict[str, str]) -> None:
    """As the API server itself does."""
    async with plane.api("admin") as api:
        await api.patch(CONFIGMAPS, NAMESPACE, NAME, {"data": data})
