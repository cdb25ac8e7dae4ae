"""``steersman node``: fail, recover and reboot simulated nodes and their devices; drain and list nodes.

Works on any API server whose nodes are simulated by `steersman.sim.kubelet`: an annotation of the Node tells their kubelets
what to do. Draining works on real nodes, too.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from steersman.api.errors import ApiError, Unreachable
from steersman.client import kubeconfig
from steersman.client.api import Api
from steersman.client.config import ClientConfig, ConfigError
from steersman.client.http import HttpApi
from steersman.manager import process
from steersman.sim.nodes import (
    NodeError,
    drain,
    fail,
    fail_devices,
    list_nodes,
    reboot,
    recover,
    recover_devices,
)

DEFAULT = "steersman.kubeconfig"
"""The default path of the kubeconfig that ``steersman up`` writes."""

DESCRIPTION = """\
Operate the nodes of a cluster and watch how the control plane reacts:

  steersman node list             show all nodes, their status and their number of pods
  steersman node fail node-2      stop its kubelet: no heartbeats, no pod status updates
  steersman node recover node-2   start its kubelet again, and uncordon the node
  steersman node reboot node-2    restart the node with all its pods, and wait for it
  steersman node drain node-2     cordon the node and evict its pods, respecting PodDisruptionBudgets
  steersman node fail-device node-2 device-0      make a simulated device unhealthy, and evict its pods
  steersman node recover-device node-2 device-0   make it healthy again

Only simulated nodes can fail, recover and reboot, and only with `steersman up --dra` they have devices. The controllers decide how to handle a failed node:
`kubectl get nodes,pods -A --watch` shows it.
"""
KUBECONFIG = f"path of a kubeconfig; default: ./{DEFAULT} if it exists, else $KUBECONFIG or ~/.kube/config"


def main(argv: Sequence[str]) -> int:
    """Entry point of ``steersman node``."""
    given = _parser().parse_args(argv)
    try:
        connection = connect(given.kubeconfig)
        process.run(_do(connection, given))
    except (NodeError, ConfigError) as refusal:
        print(f"Error: {refusal}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def connect(path: str = "", environ: Mapping[str, str] = os.environ) -> ClientConfig:
    """The cluster to connect to. Raises `ConfigError`."""
    if not path and Path(DEFAULT).is_file():
        path = DEFAULT
    return kubeconfig.load(path, environ=environ)


async def _do(connection: ClientConfig, given: argparse.Namespace) -> None:
    async with HttpApi(connection, qps=0) as api:
        try:
            await _VERBS[given.verb](api, given)
        except Unreachable as error:
            origin = f" (from {connection.origin})" if connection.origin else ""
            raise NodeError(
                f"no answer from {connection.server}{origin}: {error.message}; is `steersman up` running?"
            ) from None
        except ApiError as error:
            raise NodeError(error.message) from None


# -- the command line -------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="steersman node", description=DESCRIPTION, formatter_class=form)
    words = parser.add_subparsers(dest="verb", required=True, metavar="|".join(_HELP))
    for name, text in _HELP.items():
        verb = words.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        verb.add_argument("--kubeconfig", default="", metavar="PATH", help=KUBECONFIG)
        if name.endswith("-device"):
            verb.add_argument("node", metavar="NODE")
            verb.add_argument("devices", nargs="+", metavar="DEVICE", help="such as device-0")
        elif name != "list":
            verb.add_argument("names", nargs="+", metavar="NAME", help="a node; several are handled in turn")
        if name == "drain":
            verb.add_argument("--force", action="store_true", help="also evict pods that have no controller")
            verb.add_argument(
                "--timeout",
                type=float,
                default=0.0,
                metavar="SECONDS",
                help="give up on a node after this many seconds; default: never",
            )
    return parser


_HELP = {
    "list": "show all nodes",
    "fail": "stop the kubelets of nodes: no heartbeats, no pod status updates",
    "recover": "start the kubelets of failed nodes again, and uncordon nodes: undoes fail and drain",
    "reboot": "restart nodes with all their pods, and wait until they are back",
    "drain": "cordon nodes and evict their pods, respecting PodDisruptionBudgets",
    "fail-device": "make simulated devices of a node unhealthy: they get a taint with the effect NoExecute",
    "recover-device": "make simulated devices of a node healthy again",
}


async def _list(api: Api, given: argparse.Namespace) -> None:
    await list_nodes(api)


def _each(act: Callable[[Api, str], Coroutine[Any, Any, None]]) -> _Verb:
    async def verb(api: Api, given: argparse.Namespace) -> None:
        for name in given.names:
            await act(api, name)

    return verb


async def _drain(api: Api, given: argparse.Namespace) -> None:
    for name in given.names:
        await drain(api, name, force=given.force, timeout=given.timeout)


async def _fail_device(api: Api, given: argparse.Namespace) -> None:
    await fail_devices(api, given.node, given.devices)


async def _recover_device(api: Api, given: argparse.Namespace) -> None:
    await recover_devices(api, given.node, given.devices)


_Verb: TypeAlias = Callable[[Api, argparse.Namespace], Coroutine[Any, Any, None]]
_VERBS: Mapping[str, _Verb] = {
    "list": _list,
    "fail": _each(fail),
    "recover": _each(recover),
    "reboot": _each(reboot),
    "drain": _drain,
    "fail-device": _fail_device,
    "recover-device": _recover_device,
}
