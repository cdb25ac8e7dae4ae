"""Client certificates at the socket: those that are not trusted are answered with 401, not with a broken handshake."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from steersman.http.client_certs import MAX_TRUSTED
from steersman.server.auth.ca import CertificateAuthority, CertificatePair, self_signed

PATH = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def stranger(plane: Any) -> CertificatePair:
    now = datetime.now(UTC)
    return CertificateAuthority(self_signed("another", now), lambda: now).client(
        "mallory", ("system:masters",)
    )


def expired(plane: Any) -> CertificatePair:
    authority = plane.boot.authority
    past = CertificateAuthority(authority.pair, lambda: datetime.now(UTC) - timedelta(days=20 * 365))
    return past.client("admin", ("system:masters",))


def trusted(plane: Any) -> CertificatePair:
    pair: CertificatePair = plane.boot.authority.client("alice", ("system:masters",))
    return pair


async def ask(plane: Any, directory: Path, pair: CertificatePair, **headers: str) -> tuple[int, str]:
    """The code, and the name of the user."""
    context = ssl.create_default_context(cadata=plane.boot.authority.pair.cert.decode())
    file = directory / "pair"
    file.write_bytes(pair.cert + pair.key)
    context.load_cert_chain(file)
    connector = aiohttp.TCPConnector(ssl=context)
    async with (
        aiohttp.ClientSession(plane.edge.url, connector=connector) as session,
        session.post(PATH, json={}, headers=headers) as answer,
    ):
        body = await answer.json()
        return answer.status, body["status"]["userInfo"]["username"] if answer.status == 201 else body[
            "message"
        ]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (trusted, (201, "alice")),
        (stranger, (401, "Unauthorized")),
        (expired, (401, "Unauthorized")),
    ],
)
async def test_a_certificate_is_trusted_or_answered_with_401(
    plane: Any, tmp_path: Path, make: Callable[[Any], CertificatePair], expected: tuple[int, str]
) -> None:
    pair = make(plane)
    for _ in range(2):
        assert await ask(plane, tmp_path, pair) == expected


async def test_a_token_counts_where_the_certificate_does_not(plane: Any, tmp_path: Path) -> None:
    answer = await ask(plane, tmp_path, stranger(plane), Authorization="Bearer viewer-token")
    assert answer == (201, "viewer")


async def test_many_strangers_do_not_become_trusted(plane: Any, tmp_path: Path) -> None:
    alice = trusted(plane)
    now = datetime.now(UTC)
    another = CertificateAuthority(self_signed("another", now), lambda: now)
    for number in range(MAX_TRUSTED + 2):
        pair = another.client(f"mallory-{number}", ("system:masters",))
        assert await ask(plane, tmp_path, pair) == (401, "Unauthorized")
    assert await ask(plane, tmp_path, alice) == (201, "alice")
