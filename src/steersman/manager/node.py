"""``steersman node``: fail, recover and reboot simulated nodes and their devices; drain and list nodes.

Works on any API server whose nodes are simulated by `steersman.sim.kubelet`: an annotation of the Node tells their kubelets
what to do. Draining works on real nodes, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from steersman.api.errors import ApiError, Unreachable
from steersman.client import kubeconfig
from steersman.client.api import Api
from steersman.client.config import ClientConfig, ConfigError
from steersman.client.http import HttpApi
from steersman.manager import process
from steersman.manager.connection_errors import explain
from steersman.manager.output import DOCUMENTS, document, table
from steersman.manager.verb import Given
from steersman.manager.verbs import KUBECONFIG
from steersman.sim.nodes import (
    NodeError,
    NodeRow,
    Output,
    drain,
    fail,
    fail_devices,
    list_nodes,
    reboot,
    recover,
    recover_devices,
)


def main(given: Given) -> int:
    """Entry point of ``steersman node``."""
    try:
        process.run(_do(connect(given.values["kubeconfig"]), given))
    except (NodeError, ConfigError) as refusal:
        print(f"Error: {refusal}", file=sys.stderr)
        return 1
    return 0


def connect(path: str = "", environ: Mapping[str, str] = os.environ) -> ClientConfig:
    """The cluster to connect to. Raises `ConfigError`."""
    if not path and Path(KUBECONFIG).is_file():
        path = KUBECONFIG
    return kubeconfig.load(path, environ=environ)


async def _do(connection: ClientConfig, given: Given) -> None:
    async with HttpApi(connection, qps=0) as api:
        try:
            await _VERBS[given.verb.name](api, given)
        except ApiError as error:
            hint = "; is `steersman up` running?" if type(error) is Unreachable else ""
            raise NodeError(f"{explain(error, connection)}{hint}") from None


# -- the verbs --------------------------------------------------------------------------------


async def _list(api: Api, given: Given) -> None:
    _print(await list_nodes(api), given.values["output"])


def _print(rows: tuple[NodeRow, ...], form: str) -> None:
    print(document(rows, form) if form in DOCUMENTS else "\n".join(_table(rows)))


def _table(rows: tuple[NodeRow, ...]) -> Iterator[str]:
    cells = [(row.name, row.status, row.simulated, str(row.pods)) for row in rows]
    return table([("NAME", "STATUS", "SIMULATED", "PODS"), *cells], right=(3,))


def _each(act: Callable[[Api, str, Output], Coroutine[Any, Any, None]]) -> _Verb:
    async def verb(api: Api, given: Given) -> None:
        for name in given.arguments:
            await act(api, name, _progress(given))
        await _show(api, given, given.arguments)

    return verb


async def _drain(api: Api, given: Given) -> None:
    force, timeout = given.values["force"], given.values["timeout"]
    for name in given.arguments:
        await drain(api, name, force=force, timeout=timeout, output=_progress(given))
    await _show(api, given, given.arguments)


async def _fail_device(api: Api, given: Given) -> None:
    await fail_devices(api, given.arguments[0], given.arguments[1:], _progress(given))
    await _show(api, given, given.arguments[:1])


async def _recover_device(api: Api, given: Given) -> None:
    await recover_devices(api, given.arguments[0], given.arguments[1:], _progress(given))
    await _show(api, given, given.arguments[:1])


def _progress(given: Given) -> Output:
    """Where a verb says what it does: standard error, where an output is asked for."""
    return partial(print, file=sys.stderr) if "output" in given.set else print


async def _show(api: Api, given: Given, names: Collection[str]) -> None:
    """Print the nodes as they are now, where an output is asked for."""
    if "output" in given.set:
        rows = tuple(row for row in await list_nodes(api) if row.name in names)
        _print(rows, given.values["output"])


_Verb: TypeAlias = Callable[[Api, Given], Coroutine[Any, Any, None]]
_VERBS: Mapping[str, _Verb] = {
    "list": _list,
    "fail": _each(fail),
    "recover": _each(recover),
    "reboot": _each(reboot),
    "drain": _drain,
    "fail-device": _fail_device,
    "recover-device": _recover_device,
}
