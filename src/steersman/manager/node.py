"""``steersman node``: let simulated nodes fail, recover and reboot; drain nodes; list them.

Works on any API server whose nodes are simulated by `steersman.sim.kubelet`: their kubelets do what an
annotation of their Node says. Draining works on real nodes, too.
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
from steersman.client.connection import ConfigError, Connection
from steersman.client.http import HttpApi
from steersman.manager import event_loop
from steersman.manager.node_ops import Refusal, drain, fail, reboot, recover, show

DEFAULT = "steersman.kubeconfig"
"""Where ``steersman up`` leaves its kubeconfig."""

ABOUT = """\
Play fate with the nodes of a cluster, and watch what the control plane makes of it:

  steersman node list             which nodes there are, how they are, and how many pods they have
  steersman node fail node-2      its kubelet falls silent: no heartbeats, no news of its pods
  steersman node recover node-2   it is heard of again, and takes pods again
  steersman node reboot node-2    it goes down with all that runs on it, and comes back
  steersman node drain node-2     its pods are evicted, as far as their disruption budgets allow

Only simulated nodes can fail, recover and reboot. What to do about a silent node is decided by the
controllers: `kubectl get nodes,pods -A --watch` shows it.
"""
KUBECONFIG = f"a kubeconfig; by default ./{DEFAULT} if it is there, else $KUBECONFIG or ~/.kube/config"


def main(argv: Sequence[str]) -> int:
    """Entry point of ``steersman node``."""
    given = _parser().parse_args(argv)
    try:
        connection = connect(given.kubeconfig)
        event_loop.run(_do(connection, given))
    except (Refusal, ConfigError) as refusal:
        print(f"Error: {refusal}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def connect(path: str = "", environ: Mapping[str, str] = os.environ) -> Connection:
    """The cluster that is meant. Raises `ConfigError`."""
    if not path and Path(DEFAULT).is_file():
        path = DEFAULT
    return kubeconfig.load(path, environ=environ)


async def _do(connection: Connection, given: argparse.Namespace) -> None:
    async with HttpApi(connection, qps=0) as api:
        try:
            await _VERBS[given.verb](api, given)
        except Unreachable as error:
            origin = f" (from {connection.origin})" if connection.origin else ""
            raise Refusal(
                f"no answer from {connection.server}{origin}: {error.message}; is `steersman up` running?"
            ) from None
        except ApiError as error:
            raise Refusal(error.message) from None


# -- the command line -------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="steersman node", description=ABOUT, formatter_class=form)
    words = parser.add_subparsers(dest="verb", required=True, metavar="list|fail|recover|reboot|drain")
    for name, about in _ABOUT.items():
        verb = words.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
        verb.add_argument("--kubeconfig", default="", metavar="PATH", help=KUBECONFIG)
        if name != "list":
            verb.add_argument("names", nargs="+", metavar="NAME", help="a node; several are taken in turn")
        if name == "drain":
            verb.add_argument("--force", action="store_true", help="evict pods nobody would bring back, too")
            verb.add_argument(
                "--timeout",
                type=float,
                default=0.0,
                metavar="SECONDS",
                help="give up on a node after so long; by default never",
            )
    return parser


_ABOUT = {
    "list": "show all nodes",
    "fail": "let nodes fall silent: no heartbeats, no news of their pods",
    "recover": "let nodes be heard of again, and take pods again: undoes fail and drain",
    "reboot": "let nodes go down with all that runs on them and come back, and wait for it",
    "drain": "evict all pods of nodes as far as disruption budgets allow; they take no others",
}


async def _list(api: Api, given: argparse.Namespace) -> None:
    await show(api)


def _each(act: Callable[[Api, str], Coroutine[Any, Any, None]]) -> _Verb:
    async def verb(api: Api, given: argparse.Namespace) -> None:
        for name in given.names:
            await act(api, name)

    return verb


async def _drain(api: Api, given: argparse.Namespace) -> None:
    for name in given.names:
        await drain(api, name, force=given.force, timeout=given.timeout)


_Verb: TypeAlias = Callable[[Api, argparse.Namespace], Coroutine[Any, Any, None]]
_VERBS: Mapping[str, _Verb] = {
    "list": _list,
    "fail": _each(fail),
    "recover": _each(recover),
    "reboot": _each(reboot),
    "drain": _drain,
}
