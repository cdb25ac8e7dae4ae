"""``steersman run``: manage a real cluster, as kube-controller-manager does."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from steersman.api.errors import ApiError, Forbidden, ServerError, TooManyRequests, Unauthorized, Unreachable
from steersman.api.kinds import NAMESPACES
from steersman.client import kubeconfig
from steersman.client.connection import ConfigError, Connection
from steersman.client.http import HttpApi
from steersman.intent.controller import Controller
from steersman.manager import build_info, controller_selection, event_loop, files, logs, migration
from steersman.manager.client_builder import Accounts
from steersman.manager.election import Election
from steersman.manager.flag_table import FLAGS, described
from steersman.manager.flags import UsageError, parse, usage, warnings
from steersman.manager.late_start import arrivals, served
from steersman.manager.options import Options, options
from steersman.manager.serving import setup as serving
from steersman.manager.shutdown import until_told
from steersman.manager.version import AS_KUBERNETES, VERSION, raw, user_agent
from steersman.runtime.clock import LiveClock
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.leader_election import LostLease
from steersman.runtime.metrics import Metrics

log = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds that the API server has to come up; as upstream."""
KNOCK = 1.0
"""Seconds between two tries to reach it."""

HEAD = """\
Run the control loops of Kubernetes against an API server, as kube-controller-manager does.

Usage: steersman run --kubeconfig=PATH [flags]
"""


class Refused(Exception):
    """The cluster cannot be managed. The message is one line and says what to do."""


def main(argv: Sequence[str]) -> int:
    """Entry point; answers the exit code."""
    try:
        values = parse(FLAGS, argv)
        for line in warnings(FLAGS, argv):
            print(line, file=sys.stderr)
        if values["help"]:
            print(HEAD + "\n" + usage(described()))
            return 0
        asked = options(values)
        if values["version"] in ("true", "raw"):
            print(AS_KUBERNETES if values["version"] == "true" else raw())
            return 0
        flush = logs.begin(asked.logging)
        try:
            connection = kubeconfig.from_flags(asked.kubeconfig, asked.master)
            event_loop.run(until_told(manage(asked, connection), _limit(asked)))
        finally:
            flush()
    except (UsageError, ConfigError, Refused) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except LostLease:
        # It has been logged.
        return 1
    return 0


def _limit(options: Options) -> float | None:
    """Seconds to end in: for the controllers, and to release the lease. None: as long as it takes."""
    releasing = options.election.renew_deadline if options.election.enabled else 0.0
    return options.shutdown + releasing if options.shutdown else None


async def manage(options: Options, connection: Connection) -> None:
    """Reach the server, win the lease, run the controllers. Ends with `Refused` or `LostLease`."""
    files.examine(options.settings, options.controllers)
    table = migration.chosen(options.migration.enabled, options.migration.config)
    clock = LiveClock()
    metrics = Metrics()
    root = HttpApi(
        connection,
        qps=options.qps,
        burst=options.burst,
        user_agent=user_agent(),
        on_request=metrics.rest.counting(urlsplit(connection.server).netloc),
    )
    metrics.shown = build_info.shown(options.metrics)
    build_info.describe(metrics, options.features, root)
    accounts = Accounts(root, own=options.own_accounts)
    routes = serving.routes(options, table, clock, metrics)
    server: serving.Server | None = None
    try:
        if options.serving.secure_port:
            server = serving.Server(options, clock, metrics, routes)
        await reach(root)
        if server is not None:
            await server.open()
        _introduce(options, connection)
        settings, named = files.settle(options.settings, connection.tls.ca)

        async def lead(
            controllers: tuple[Controller[Any], ...],
            fence: Callable[[], bool] = lambda: True,
            started: Callable[[], None] = lambda: None,
        ) -> None:
            def synced() -> None:
                _synced()
                started()

            wanted = tuple(one for one in controllers if one.configured(settings) is not None)
            present, absent = await served(wanted, root)
            fleet = ControllerGroup(
                present,
                root.with_agent("shared-informers"),
                clock,
                api_of=lambda controller: accounts.client(controller, fence),
                workers=options.workers,
                fence=fence,
                metrics=metrics,
                resync=options.resync,
                settings=settings,
                files=named,
                pause=options.start,
            )
            routes.follow(fleet)
            beside = (
                # While the caches are being filled.
                asyncio.create_task(accounts.warm()),
                asyncio.create_task(arrivals(fleet, absent, root, lambda: routes.follow(fleet))),
            )
            try:
                await fleet.run(synced)
            finally:
                for task in beside:
                    task.cancel()

        if options.election.enabled:
            async with root.with_agent("leader-election") as api:
                election = Election(options, table, api, clock, metrics)
                routes.health.add({"leaderElection": election.check})
                await election.run(lead)
        else:
            await lead(options.controllers)
    finally:
        if server is not None:
            await server.close()
        await accounts.close()
        await root.close()


def _introduce(options: Options, connection: Connection) -> None:
    """Say who this is, and what it was asked for that it does not do."""
    names = ", ".join(controller.name for controller in options.controllers)
    log.info("%s at %s: %s", VERSION, connection.server, names or "no controllers")
    missing = controller_selection.missing(options.values["controllers"])
    if missing:
        log.info("not there yet, so somebody else has to run them: %s", ", ".join(missing))
    for line in options.features.warnings():
        log.warning("%s", line)


async def reach(api: HttpApi, patience: float = PATIENCE, pause: float = KNOCK) -> None:
    """Wait until the server answers. Raises `Refused` when it does not in so many seconds, or says no."""
    server = api.connection.server
    origin = f" (from {api.connection.origin})" if api.connection.origin else ""
    try:
        async with asyncio.timeout(patience or None):
            await _knock(api, origin, patience, pause)
    except TimeoutError:
        raise Refused(f"no answer from the API server at {server}{origin} in {patience:g} s") from None


async def _knock(api: HttpApi, origin: str, patience: float, pause: float) -> None:
    """Ask until there is an answer. One that means "not now" is put up with for so long, too."""
    server = api.connection.server
    deadline = asyncio.get_running_loop().time() + patience
    while True:
        try:
            await api.list(NAMESPACES, limit=1)
            return
        except Unauthorized:
            raise Refused(f"{server} does not accept the credentials{origin}: are they expired?") from None
        except Forbidden as error:
            raise Refused(f"{server} refuses this user{origin}: {error}") from None
        except (Unreachable, ServerError, TooManyRequests) as error:
            if asyncio.get_running_loop().time() + pause > deadline:
                raise Refused(f"no answer from the API server{origin}: {error}") from None
            log.info("waiting for the API server: %s", error)
        except ApiError as error:
            raise Refused(f"{server} does not answer as an API server does: {error}") from None
        await asyncio.sleep(pause)


def _synced() -> None:
    """The caches are filled: what lives for ever need not be looked at by the collector again."""
    log.info("caches are filled: controllers start")
    gc.collect()
    gc.freeze()
