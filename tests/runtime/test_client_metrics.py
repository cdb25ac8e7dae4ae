"""What clients of the API server count, under the names of client-go."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from steersman.api.prometheus import Registry, exposition
from steersman.client.auth import ExecPluginAuth, NoCredentials
from steersman.client.config import AuthInfo, ClientConfig, ExecPlugin
from steersman.client.http import HttpApi
from steersman.client.round_trip import RequestAttempt
from steersman.runtime.client_metrics import RestMetrics

SERVER = "https://127.0.0.1:1"


def lines(registry: Registry) -> dict[str, str]:
    """Each sample and its value, but those about metrics."""
    found = (line.rpartition(" ") for line in exposition(registry).decode().splitlines() if line[0] != "#")
    return {name: value for name, _, value in found}


def request(code: int, attempt: int = 0) -> RequestAttempt:
    return RequestAttempt("create", "POST", "pods", code, 0.01, 100, 2000, 0.2, attempt)


def test_each_attempt_is_counted_by_its_outcome() -> None:
    registry = Registry()
    count = RestMetrics(registry).counting("host:1")
    for done in (request(201), request(201), request(0), request(429, attempt=1)):
        count(done)
    found = lines(registry)
    assert found['rest_client_requests_total{code="201",host="host:1",method="POST"}'] == "2"
    assert found['rest_client_requests_total{code="<error>",host="host:1",method="POST"}'] == "1"
    assert found['rest_client_request_retries_total{code="429",host="host:1",verb="POST"}'] == "1"
    for name, total in (
        ("rest_client_request_duration_seconds", "0.04"),
        ("rest_client_rate_limiter_duration_seconds", "0.8"),
        ("rest_client_request_size_bytes", "400"),
        ("rest_client_response_size_bytes", "8000"),
    ):
        assert found[f'{name}_count{{host="host:1",verb="POST"}}'] == "4"
        assert float(found[f'{name}_sum{{host="host:1",verb="POST"}}']) == pytest.approx(float(total))


async def test_clients_that_share_sockets_are_told_from_those_that_do_not() -> None:
    registry = Registry()
    metrics = RestMetrics(registry)
    certified = ClientConfig(SERVER, user=AuthInfo(token="a"))
    async with HttpApi(certified) as root:
        metrics.follow(root)
        same = [root.with_user_agent("a"), root.with_user_agent("b")]
        found = lines(registry)
        assert found['rest_client_transport_create_calls_total{result="miss"}'] == "1"
        assert found['rest_client_transport_create_calls_total{result="hit"}'] == "2"
        assert found["rest_client_transport_cache_entries"] == "1"
        assert found["rest_client_exec_plugin_ttl_seconds"] == "+Inf"
        for each in same:
            await each.close()


PROGRAM = """
import json, sys
status = {"clientCertificateData": "cert", "clientKeyData": "key", "expirationTimestamp": "2020-01-01T00:00:00Z"}
json.dump({"apiVersion": sys.argv[1], "kind": "ExecCredential", "status": status}, sys.stdout)
"""
VERSION = "client.authentication.k8s.io/v1"


@pytest.mark.parametrize(
    ("command", "args", "line"),
    [
        (sys.executable, ("-c", PROGRAM, VERSION), '{call_status="no_error",code="0"}'),
        (
            sys.executable,
            ("-c", "import sys; sys.exit(3)"),
            '{call_status="plugin_execution_error",code="3"}',
        ),
        ("/does/not/exist", (), '{call_status="plugin_not_found_error",code="1"}'),
        (sys.executable, ("-c", "print('?')"), '{call_status="client_internal_error",code="1"}'),
    ],
)
async def test_calls_of_a_plugin_are_counted_by_how_they_ended(
    command: str, args: tuple[str, ...], line: str, tmp_path: Path
) -> None:
    plugin = ExecPlugin(command, VERSION, args, interactive="Never")
    registry = Registry()
    async with HttpApi(ClientConfig(SERVER, user=AuthInfo(plugin=plugin))) as root:
        RestMetrics(registry).follow(root)
        assert isinstance(root.plugin, ExecPluginAuth)
        for _ in range(2):
            try:
                await root.plugin.credential()
            except NoCredentials:
                pass
        found = lines(registry)
        assert found[f"rest_client_exec_plugin_call_total{line}"] == "2"
        printed = "no_error" in line
        assert found["rest_client_exec_plugin_certificate_rotation_age_count"] == ("1" if printed else "0")
        assert found["rest_client_exec_plugin_ttl_seconds"].startswith("-") is printed, "it ended long ago"
