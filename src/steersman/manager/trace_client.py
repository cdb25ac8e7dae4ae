"""The client of a trace: where verbs read ``/debug/rounds`` from, and what it means when there is no answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from steersman.api.errors import ApiError, Forbidden, NotFound, Unreachable
from steersman.client.config import ClientConfig, Pem
from steersman.client.http import HttpApi
from steersman.manager.connection_errors import explain
from steersman.manager.flags import UsageError
from steersman.manager.verb import Given
from steersman.runtime.trace_view import PATH


class NoTrace(Exception):
    """There is no answer of ``/debug/rounds``; the message says why, and the way out."""


def trace_connection(connection: ClientConfig, given: Given) -> ClientConfig:
    """The connection to the secure port that ``--trace-url`` names, with the credentials of the kubeconfig.

    Without the flag it is the API server's. Raises `UsageError`.
    """
    url, path = given.values["trace-url"], given.values["trace-ca"]
    if not url:
        if path:
            raise UsageError("--trace-ca is the CA of the port that --trace-url names, which is missing")
        return connection
    if not url.startswith("https://"):
        raise UsageError(f"--trace-url must begin with https://, but got {url!r}")
    ca = Pem(path=path) if path else connection.tls.ca
    # The server name of the kubeconfig is that of the API server.
    return replace(connection, server=url.rstrip("/"), tls=replace(connection.tls, ca=ca, server_name=""))


async def read_rounds(api: HttpApi, query: Mapping[str, str]) -> dict[str, Any]:
    """The document of ``/debug/rounds`` for a query. Raises `NoTrace`."""
    try:
        return await api.document(f"{PATH}?{urlencode(query)}")
    except NotFound:
        raise NoTrace(_absent(api.config)) from None
    except Forbidden as error:
        right = f"the user needs the verb get on the non-resource URL {PATH}"
        raise NoTrace(f"{explain(error, api.config)}; {right}") from None
    except ApiError as error:
        hint = "; is it running?" if type(error) is Unreachable else ""
        raise NoTrace(f"{explain(error, api.config)}{hint}") from None


def _absent(connection: ClientConfig) -> str:
    return (
        f"{connection.server} has no trace of rounds: it is neither a `steersman up` nor the secure port of a `steersman run`. "
        "Name that port with --trace-url=https://HOST:10257 (and --trace-ca). Go's kube-controller-manager keeps no trace; "
        "`steersman why KIND/NAME` works without one"
    )
