"""``steersman run``: run the controllers against a cluster, as kube-controller-manager does."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from steersman.api.clock import RealClock
from steersman.api.cloud import CloudProvider, offers
from steersman.api.errors import (
    ApiError,
    Forbidden,
    ServerError,
    TLSFailed,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from steersman.api.go_quote import quote
from steersman.api.kinds import NAMESPACES
from steersman.client import kubeconfig
from steersman.client.config import ClientConfig, ConfigError
from steersman.client.http import HttpApi
from steersman.client.round_trip import RequestAttempt
from steersman.cloud import InvalidProvider, UnknownProvider, make_provider
from steersman.intent.actions import FileUnreadable
from steersman.intent.controller import Controller
from steersman.manager import build_info, controller_selection, files, logs, migration, process
from steersman.manager.client_builder import ClientBuilder
from steersman.manager.connection_errors import explain
from steersman.manager.election import LeaderElection
from steersman.manager.election_thread import ElectionThread, post
from steersman.manager.flag_table import FLAGS
from steersman.manager.flags import UsageError, warnings
from steersman.manager.late_start import served, start_late
from steersman.manager.options import Options, options
from steersman.manager.serving import setup as serving
from steersman.manager.serving.dashboard import ManagerSite
from steersman.manager.tracing import make_tracing
from steersman.manager.verb import Given
from steersman.manager.version import as_kubernetes, full, raw, user_agent
from steersman.runtime.action_table import LocalDirectories, read_file
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.leader_election import LostLease
from steersman.runtime.metrics import Metrics
from steersman.runtime.python_gc import freeze
from steersman.runtime.trace_view import TraceView

log = logging.getLogger(__name__)

API_SERVER_TIMEOUT = 10.0
"""Seconds to wait for the API server at start, as upstream."""
RETRY_PERIOD = 1.0
"""Seconds between two attempts to reach it."""


class StartupError(Exception):
    """The cluster cannot be managed. The message is one line and says what to do."""


def main(given: Given) -> int:
    """Entry point; returns the exit code."""
    try:
        for line in warnings(FLAGS, given.set):
            print(line, file=sys.stderr)
        requested = options(given.values)
        if given.values["version"] in ("true", "raw"):
            print(as_kubernetes() if given.values["version"] == "true" else raw())
            return 0
        _require_controllers(requested)
        flush = logs.configure(requested.logging)
        try:
            connection = kubeconfig.from_flags(requested.kubeconfig, requested.master)
            process.run(process.run_until_signal(manage(requested, connection), _shutdown_timeout(requested)))
        finally:
            flush()
    except (ConfigError, StartupError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except LostLease:
        # Already logged.
        return 1
    return 0


def _require_controllers(options: Options) -> None:
    """Refuse flags that leave no controller to run. Raises `UsageError`."""
    selection = quote(",".join(options.values["controllers"]))
    if not options.controllers:
        raise UsageError(
            f"--controllers={selection} selects no controller; '*' selects those that run by default, and "
            "`steersman controllers` lists all"
        )
    if all(each.configured(options.settings) is None for each in options.controllers):
        names = ", ".join(each.name for each in options.controllers)
        raise UsageError(
            f"--controllers={selection} leaves no controller to run: {names} lack flags or feature gates; "
            "`steersman controllers NAME` shows them"
        )


def _shutdown_timeout(options: Options) -> float | None:
    """Seconds to stop the controllers and release the lease. None: no limit."""
    releasing = options.election.renew_deadline if options.election.enabled else 0.0
    return options.shutdown_timeout + releasing if options.shutdown_timeout else None


async def manage(options: Options, connection: ClientConfig) -> None:
    """Connect to the server, acquire the lease, run the controllers. Raises `StartupError` or `LostLease`."""
    files.validate_files(options.settings, options.controllers)
    cloud = _cloud_provider(options)
    leader_migration = migration.configuration(options.migration.enabled, options.migration.config)
    clock = RealClock()
    metrics = Metrics()
    count = metrics.rest.counting(urlsplit(connection.server).netloc)
    root = HttpApi(
        connection, qps=options.qps, burst=options.burst, user_agent=user_agent(), on_request=count
    )
    metrics.options = build_info.exposed(options.metrics)
    build_info.describe(metrics, options.features, root)
    clients = ClientBuilder(root, use_service_accounts=options.use_service_accounts)
    tracing = make_tracing()
    rounds = TraceView(tracing.trace, clock)
    routes = serving.routes(options, leader_migration, clock, metrics, rounds)
    server: serving.SecureServing | None = None
    try:
        if options.serving.secure_port:
            site = ManagerSite(connection, clock, rounds, count)
            server = serving.SecureServing(options, clock, metrics, routes, site)
        await wait_for_server(root)
        if server is not None:
            await server.open()
        _log_start(options, connection, cloud)
        settings, reader = files.with_root_ca(options.settings, connection.tls.ca)

        async def lead(
            controllers: tuple[Controller[Any], ...],
            fence: Callable[[], bool] = lambda: True,
            started: Callable[[], None] = lambda: None,
        ) -> None:
            def synced() -> None:
                _synced()
                started()

            configured = tuple(one for one in controllers if one.configured(settings) is not None)
            present, absent = await served(configured, root)
            fleet = ControllerGroup(
                present,
                root.with_user_agent("shared-informers"),
                clock,
                api_of=lambda controller: clients.client(controller, fence),
                workers=options.workers,
                fence=fence,
                metrics=metrics,
                trace=tracing.trace,
                resync=options.resync,
                settings=settings,
                files=reader,
                pause=options.start_interval,
                cloud=cloud,
                directories=LocalDirectories(),
            )
            routes.follow(fleet)
            background = (
                # Tokens are fetched while the caches sync.
                asyncio.create_task(clients.fetch_tokens()),
                asyncio.create_task(start_late(fleet, absent, root, lambda: routes.follow(fleet))),
            )
            try:
                await fleet.run(synced)
            finally:
                for task in background:
                    task.cancel()

        if options.election.enabled:
            api = _election_client(options, connection, count)
            election = LeaderElection(options, leader_migration, api, clock, metrics)
            routes.health.add({"leaderElection": election.check})
            await ElectionThread(election, api).run(lead)
        else:
            await lead(options.controllers)
    finally:
        if server is not None:
            await server.close()
        await clients.close()
        await root.close()
        if tracing.close is not None:
            # Spans that are left are sent, which may take a while.
            await asyncio.to_thread(tracing.close)


def _election_client(
    options: Options, connection: ClientConfig, count: Callable[[RequestAttempt], None]
) -> HttpApi:
    """Create the client that leases are renewed with: it shares neither connections nor credentials with others."""
    main = asyncio.get_running_loop()
    return HttpApi(
        connection,
        qps=options.qps,
        burst=options.burst,
        user_agent=f"{user_agent()}/leader-election",
        # Metrics are counted on the main loop, without locks.
        on_request=lambda attempt: post(main, count, attempt),
    )


def _cloud_provider(options: Options) -> CloudProvider | None:
    """The provider that ``--cloud-provider`` names, with the configuration of ``--cloud-config``. Raises `StartupError`."""
    name, path = options.values["cloud-provider"], options.values["cloud-config"]
    try:
        config = read_file(path) if name and path else None
        return make_provider(name, config)
    except (FileUnreadable, InvalidProvider, UnknownProvider) as error:
        raise StartupError(str(error)) from None


def _log_start(options: Options, connection: ClientConfig, cloud: CloudProvider | None) -> None:
    """Log the version, the controllers and warnings about flags."""
    running = [each for each in options.controllers if each.cloud is None or offers(cloud, each.cloud)]
    names = ", ".join(controller.name for controller in running)
    log.info("%s at %s: %s", full(), connection.server, names or "no controllers")
    unmanaged = controller_selection.unmanaged(options.values["controllers"])
    if unmanaged:
        # Another manager may run them, unless this one holds the lease by which it would.
        level = logging.WARNING if options.election.enabled else logging.INFO
        log.log(
            level,
            "left to another manager, though kube-controller-manager runs them by default: %s",
            ", ".join(unmanaged),
        )
    for line in options.features.warnings():
        log.warning("%s", line)


async def wait_for_server(
    api: HttpApi, timeout: float = API_SERVER_TIMEOUT, pause: float = RETRY_PERIOD
) -> None:
    """Wait until the API server answers. Raises `StartupError` after ``timeout`` seconds, or where it refuses."""
    server = api.config.server
    origin = f" (from {api.config.origin})" if api.config.origin else ""
    try:
        async with asyncio.timeout(timeout or None):
            await _retry(api, origin, timeout, pause)
    except TimeoutError:
        raise StartupError(f"no answer from the API server at {server}{origin} in {timeout:g} s") from None


async def _retry(api: HttpApi, origin: str, timeout: float, pause: float) -> None:
    """Send requests until one succeeds. Temporary errors are retried until the timeout."""
    server = api.config.server
    deadline = asyncio.get_running_loop().time() + timeout
    while True:
        try:
            await api.list(NAMESPACES, limit=1)
            return
        except (Unauthorized, Forbidden, TLSFailed) as error:
            raise StartupError(explain(error, api.config)) from None
        except (Unreachable, ServerError, TooManyRequests) as error:
            if asyncio.get_running_loop().time() + pause > deadline:
                raise StartupError(f"no answer from the API server{origin}: {error}") from None
            log.info("waiting for the API server: %s", error)
        except ApiError as error:
            raise StartupError(f"{server} does not answer as an API server does: {error}") from None
        await asyncio.sleep(pause)


def _synced() -> None:
    """Called when the caches have synced: freeze their objects, so that the garbage collector skips them."""
    log.info("caches synced: controllers start")
    freeze()
