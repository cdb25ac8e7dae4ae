from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from steersman.api.errors import Forbidden
from steersman.client import auth
from steersman.client.auth import (
    ExecPluginAuth,
    FetchedTokenAuth,
    NoCredentials,
    StaticAuth,
    Token,
    TokenFileAuth,
    authenticator,
)
from steersman.client.config import AuthInfo, ClientConfig, ExecPlugin, Pem, TlsConfig

V1 = "client.authentication.k8s.io/v1"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


async def header(made: auth.Authenticator) -> str:
    return (await made.credential()).authorization


@pytest.mark.parametrize(
    ("user", "sent"),
    [
        (AuthInfo(), ""),
        (AuthInfo(token="t"), "Bearer t"),
        (AuthInfo(username="u", password="p"), "Basic dTpw"),
    ],
)
async def test_a_fixed_credential_is_sent_and_never_renewed(user: AuthInfo, sent: str) -> None:
    made = authenticator(ClientConfig("https://x", user=user))
    assert await header(made) == sent
    assert not await made.renew(await made.credential())


# -- token files ------------------------------------------------------------------------------


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at files for every request, rather than once a second."""
    monkeypatch.setattr(TokenFileAuth, "CHECK_INTERVAL", 0.0)


def replaced(path: Path, content: str) -> None:
    """Replace a file the way the kubelet does: all at once."""
    fresh = path.with_suffix(".new")
    fresh.write_text(content)
    os.replace(fresh, path)


@pytest.mark.usefixtures("eager")
async def test_a_token_is_read_again_when_its_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    made = TokenFileAuth(str(path))
    assert await header(made) == "Bearer one"
    replaced(path, "two\n")
    assert await header(made) == "Bearer two"


@pytest.mark.usefixtures("eager")
async def test_a_token_is_read_again_after_a_while_even_if_the_file_looks_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    made = TokenFileAuth(str(path))
    await made.credential()
    dates = path.stat()
    path.write_text("two")
    os.utime(path, ns=(dates.st_atime_ns, dates.st_mtime_ns))
    assert await header(made) == "Bearer one"
    monkeypatch.setattr(TokenFileAuth, "REREAD_INTERVAL", 0.0)
    assert await header(made) == "Bearer two"


async def test_the_file_is_not_looked_at_for_every_request(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    made = TokenFileAuth(str(path))
    await made.credential()
    replaced(path, "two")
    assert await header(made) == "Bearer one"


async def test_a_refused_token_is_read_again_at_once(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    made = TokenFileAuth(str(path))
    refused = await made.credential()
    assert not await made.renew(refused), "the file still has the token that was refused"
    replaced(path, "two")
    assert await made.renew(refused)
    assert await header(made) == "Bearer two"


@pytest.mark.usefixtures("eager")
async def test_a_file_that_is_gone_or_empty_leaves_the_last_token_in_use(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    made = TokenFileAuth(str(path))
    await made.credential()
    path.write_text("")
    assert await header(made) == "Bearer one"
    path.unlink()
    assert await header(made) == "Bearer one"


async def test_without_any_token_the_error_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(NoCredentials, match="gone: no token"):
        await TokenFileAuth(str(tmp_path / "gone")).credential()


async def test_a_token_in_the_kubeconfig_serves_until_the_file_has_one(tmp_path: Path) -> None:
    user = AuthInfo(token="first", token_file=str(tmp_path / "token"))
    made = authenticator(ClientConfig("https://x", user=user))
    assert await header(made) == "Bearer first"
    (tmp_path / "token").write_text("second")
    assert await made.renew(await made.credential())
    assert await header(made) == "Bearer second"


# -- fetched tokens ---------------------------------------------------------------------------


class Issuer:
    """Issues tokens of an hour, numbered."""

    def __init__(self, clock: Clock, lifetime: timedelta = timedelta(hours=1)) -> None:
        self.clock = clock
        self.lifetime = lifetime
        self.issued = 0

    async def __call__(self) -> Token:
        self.issued += 1
        await asyncio.sleep(0)
        return Token(f"t{self.issued}", self.clock.now + self.lifetime)


async def test_a_fetched_token_is_kept_until_a_fifth_of_its_life_is_left() -> None:
    clock = Clock()
    made = FetchedTokenAuth(Issuer(clock), clock)
    assert await header(made) == "Bearer t1"
    clock.now += timedelta(minutes=47)
    assert await header(made) == "Bearer t1"
    clock.now += timedelta(minutes=1)
    assert await header(made) == "Bearer t2"


async def test_a_token_that_seems_to_have_ended_already_is_kept_some_minutes() -> None:
    clock = Clock()
    issuer = Issuer(clock, timedelta(minutes=-5))
    made = FetchedTokenAuth(issuer, clock)
    await made.credential()
    clock.now += timedelta(minutes=7)
    assert await header(made) == "Bearer t1"
    clock.now += timedelta(minutes=2)
    assert await header(made) == "Bearer t2"


async def test_requests_that_need_a_token_together_fetch_one() -> None:
    clock = Clock()
    issuer = Issuer(clock)
    made = FetchedTokenAuth(issuer, clock)
    got = await asyncio.gather(*(header(made) for _ in range(10)))
    assert got == ["Bearer t1"] * 10


async def test_requests_refused_together_renew_once() -> None:
    clock = Clock()
    issuer = Issuer(clock)
    made = FetchedTokenAuth(issuer, clock)
    refused = await made.credential()
    assert all(await asyncio.gather(*(made.renew(refused) for _ in range(10))))
    assert issuer.issued == 2


async def test_a_refusal_to_issue_a_token_is_not_taken_for_one_of_the_request() -> None:
    async def refuse() -> Token:
        raise Forbidden("no tokens for you")

    made = FetchedTokenAuth(refuse)
    with pytest.raises(NoCredentials, match="cannot get a token: no tokens for you") as caught:
        await made.credential()
    assert not isinstance(caught.value, Forbidden)
    assert not caught.value.uncertain


async def test_a_token_that_cannot_be_renewed_stays_refused() -> None:
    calls = [Token("t1", NOW + timedelta(hours=1))]

    async def once() -> Token:
        if calls:
            return calls.pop()
        raise Forbidden("no more")

    made = FetchedTokenAuth(once, Clock())
    assert not await made.renew(await made.credential())


# -- plugins ----------------------------------------------------------------------------------

SCRIPT = """
import json, os, sys
from pathlib import Path
home = Path(sys.argv[1])
count = home / "count"
number = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(number))
(home / "info").write_text(os.environ["KUBERNETES_EXEC_INFO"])
(home / "env").write_text(json.dumps({"REGION": os.environ.get("REGION"), "args": sys.argv[2:]}))
sys.stderr.write("speaking to a person\\n")
print((home / "answer").read_text().replace("NUMBER", str(number)))
sys.exit(int((home / "code").read_text()) if (home / "code").exists() else 0)
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Callable[..., ClientConfig]:
    """A connection whose plugin prints what the test writes."""
    (tmp_path / "login.py").write_text(SCRIPT)

    def make(status: Any = None, *, text: str | None = None, code: int = 0, **options: Any) -> ClientConfig:
        answer = {"apiVersion": V1, "kind": "ExecCredential", "status": status}
        (tmp_path / "answer").write_text(json.dumps(answer) if text is None else text)
        (tmp_path / "code").write_text(str(code))
        options.setdefault("interactive", "Never")
        args = (str(tmp_path / "login.py"), str(tmp_path), *options.pop("args", ()))
        made = ExecPlugin(sys.executable, V1, args=args, **options)
        return ClientConfig(
            "https://api.example",
            tls=TlsConfig(ca=Pem(data=b"authority"), server_name="other"),
            user=AuthInfo(plugin=made),
        )

    return make


async def test_a_plugins_token_is_sent_and_kept(plugin: Callable[..., ClientConfig]) -> None:
    made = authenticator(plugin({"token": "tNUMBER"}))
    assert await header(made) == "Bearer t1"
    assert await header(made) == "Bearer t1"


async def test_a_plugin_is_asked_again_when_its_credential_has_expired(
    plugin: Callable[..., ClientConfig],
) -> None:
    clock = Clock()
    status = {"token": "tNUMBER", "expirationTimestamp": "2026-01-01T01:00:00Z"}
    made = ExecPluginAuth(plugin(status), clock)
    assert await header(made) == "Bearer t1"
    clock.now += timedelta(minutes=59)
    assert await header(made) == "Bearer t1"
    clock.now += timedelta(minutes=1)
    assert await header(made) == "Bearer t2"


async def test_a_plugin_is_asked_again_once_when_its_token_is_refused(
    plugin: Callable[..., ClientConfig],
) -> None:
    made = authenticator(plugin({"token": "tNUMBER"}))
    refused = await made.credential()
    assert all(await asyncio.gather(*(made.renew(refused) for _ in range(5))))
    assert await header(made) == "Bearer t2"


async def test_a_plugin_may_hand_out_a_certificate(plugin: Callable[..., ClientConfig]) -> None:
    status = {"clientCertificateData": "CERT", "clientKeyData": "KEY"}
    got = await authenticator(plugin(status)).credential()
    assert (got.authorization, got.cert, got.key) == ("", b"CERT", b"KEY")


async def test_a_plugin_gets_its_arguments_its_environment_and_its_task(
    plugin: Callable[..., ClientConfig], tmp_path: Path
) -> None:
    connection = plugin({"token": "t"}, args=("--quiet",), env=(("REGION", "eu"),))
    await authenticator(connection).credential()
    assert json.loads((tmp_path / "env").read_text()) == {"REGION": "eu", "args": ["--quiet"]}
    assert json.loads((tmp_path / "info").read_text()) == {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "spec": {"interactive": False},
    }


async def test_a_plugin_that_wants_it_is_told_of_the_cluster(
    plugin: Callable[..., ClientConfig], tmp_path: Path
) -> None:
    connection = plugin({"token": "t"}, provide_cluster_info=True, config=b'{"audience":"x"}')
    await authenticator(connection).credential()
    assert json.loads((tmp_path / "info").read_text())["spec"]["cluster"] == {
        "server": "https://api.example",
        "tls-server-name": "other",
        "certificate-authority-data": "YXV0aG9yaXR5",
        "config": {"audience": "x"},
    }


async def test_a_plugins_words_reach_the_person(
    plugin: Callable[..., ClientConfig], capfd: pytest.CaptureFixture[str]
) -> None:
    await authenticator(plugin({"token": "t"})).credential()
    out, err = capfd.readouterr()
    assert err == "speaking to a person\n"
    assert out == ""


OTHER = json.dumps({"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential"})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"code": 3, "status": {"token": "hidden"}}, "failed with exit code 3"),
        ({"text": "hidden"}, "did not print an ExecCredential"),
        ({"text": '{"status": "hidden"}'}, "did not print an ExecCredential"),
        ({"text": OTHER}, "is configured for client.authentication.k8s.io/v1 but printed .*v1beta1"),
        ({"status": None}, "printed neither a token nor a certificate"),
        ({"status": {"clientCertificateData": "hidden"}}, "a certificate without a key"),
        ({"status": {"token": "hidden"}, "interactive": "Always"}, "requires a terminal"),
    ],
)
async def test_a_plugin_that_fails_is_one_line_that_names_it_and_hides_what_it_printed(
    plugin: Callable[..., ClientConfig], options: dict[str, Any], says: str
) -> None:
    with pytest.raises(NoCredentials, match=says) as caught:
        await authenticator(plugin(**options)).credential()
    assert sys.executable in caught.value.message
    assert "hidden" not in caught.value.message
    assert "\n" not in caught.value.message


async def test_a_plugin_that_is_not_there_is_an_error_with_the_hint_made_harmless() -> None:
    made = ExecPlugin("no-such-command", V1, install_hint="run \x1b[31mthis", interactive="Never")
    connection = ClientConfig("https://x", user=AuthInfo(plugin=made))
    with pytest.raises(NoCredentials, match=r'"no-such-command" is not installed: run U\+001B\[31mthis'):
        await authenticator(connection).credential()


async def test_a_plugin_that_cannot_be_run_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "login"
    path.write_text("")
    connection = ClientConfig(
        "https://x", user=AuthInfo(plugin=ExecPlugin(str(path), V1, interactive="Never"))
    )
    with pytest.raises(NoCredentials, match="cannot be run: permission denied"):
        await authenticator(connection).credential()


async def test_a_plugin_that_fails_when_renewing_leaves_the_credential_refused(
    plugin: Callable[..., ClientConfig], tmp_path: Path
) -> None:
    made = authenticator(plugin({"token": "t"}))
    refused = await made.credential()
    (tmp_path / "code").write_text("1")
    assert not await made.renew(refused)


@pytest.mark.parametrize("token", ["hidden\nX-Other: y", "hidden\r\n", "hidden\x00"])
async def test_a_token_that_would_break_out_of_its_header_is_never_sent(tmp_path: Path, token: str) -> None:
    with pytest.raises(NoCredentials, match="contains a line break") as caught:
        StaticAuth(f"Bearer {token}")
    assert "hidden" not in str(caught.value)
    (tmp_path / "token").write_text(f"x{token}y")
    with pytest.raises(NoCredentials, match="no token can be read"):
        await TokenFileAuth(str(tmp_path / "token")).credential()


async def test_no_credential_shows_in_a_repr() -> None:
    assert "secret" not in repr(await StaticAuth("Bearer secret").credential())
    assert "secret" not in repr(Token("secret", NOW))
