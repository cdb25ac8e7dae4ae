"""``steersman shadow``: decide beside the controller manager of a cluster, write nothing, and report where the two differ."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from steersman.api.clock import RealClock
from steersman.api.errors import ApiError, Forbidden, NotFound
from steersman.client import kubeconfig
from steersman.client.api import Api
from steersman.client.config import ClientConfig, ConfigError
from steersman.client.http import HttpApi
from steersman.client.read_only import ReadOnlyApi
from steersman.intent.controller import Controller, Settings
from steersman.manager import console, files, output, process
from steersman.manager.connection_errors import explain
from steersman.manager.flags import UsageError
from steersman.manager.late_start import served
from steersman.manager.node import connect
from steersman.manager.options import Options, options
from steersman.manager.output import DOCUMENTS
from steersman.manager.verb import Given
from steersman.manager.version import user_agent
from steersman.server.auth.ca import write_public
from steersman.shadow import report as reports
from steersman.shadow.exclusions import select
from steersman.shadow.report import Difference, Excluded, Report
from steersman.shadow.shadow import NOT_LISTED, NOT_SYNCED, Shadow
from steersman.shadow.their_events import EVENTS

if TYPE_CHECKING:
    from rich.live import Live

METRICS_INTERVAL = 15.0
"""Seconds between two writes of ``--metrics-file``."""
REFRESH = 0.5
"""Seconds between two updates of the progress on a terminal."""
STOP = 10.0
"""Seconds to stop after a signal."""
QPS, BURST = 100.0, 200
"""The rate of live reads, unless flags say otherwise: there are no writes to throttle."""


def main(given: Given) -> int:
    """Entry point of ``steersman shadow``: 0 agreed, 2 differences, 1 something could not be compared."""
    requested = options(given.values)
    if not requested.controllers:
        raise UsageError("--controllers selects no controller; `steersman controllers` lists all")
    if given.values["grace"] <= 0:
        raise UsageError("--grace must be more than 0, such as 30s")
    for flag in ("report", "metrics-file"):
        folder = Path(given.values[flag]).parent
        if not folder.is_dir():
            raise UsageError(f"--{flag}: there is no directory {folder}")
    console.configure(quiet=not given.values["v"])
    try:
        connection = _connection(requested)
        found = process.run(_compare(requested, connection, given))
    except ConfigError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    if found is None:
        return 1
    form, path = given.values["output"], given.values["report"]
    written = not path or _write(path, _page(found, form, to_file=True) + "\n")
    print(_page(found, form))
    return found.exit_code if written else 1


def _connection(requested: Options) -> ClientConfig:
    if requested.kubeconfig or requested.master:
        return kubeconfig.from_flags(requested.kubeconfig, requested.master)
    return connect()


def _page(report: Report, form: str, *, to_file: bool = False) -> str:
    if form in DOCUMENTS:
        return output.document(report, form)
    if form == "markdown":
        return "\n".join(reports.markdown(report))
    return "\n".join(reports.text(report, reports.plain if to_file else output.paint_for_stdout()))


async def _compare(requested: Options, connection: ClientConfig, given: Given) -> Report | None:
    """Run the shadow until its time is over or a signal comes; None where the cluster cannot be read."""
    throttled = "kube-api-qps" in given.set
    async with HttpApi(
        connection,
        qps=requested.qps if throttled else QPS,
        burst=requested.burst if throttled else BURST,
        user_agent=f"{user_agent()}/shadow",
        # Twice refused: the shadow reads through a client that has no writes, and this one sends none.
        fence=lambda: False,
    ) as http:
        api = ReadOnlyApi(http)
        try:
            shadow = await _prepare(requested, connection, api, given)
        except ApiError as error:
            print(f"Error: {explain(error, connection)}", file=sys.stderr)
            return None
        if shadow is None:
            return None
        with _progress(shadow) as told:
            shadow.on_difference = told
            await process.run_until_signal(_run(shadow, given), STOP)
        return shadow.report()


async def _prepare(
    requested: Options, connection: ClientConfig, api: ReadOnlyApi, given: Given
) -> Shadow | None:
    settings, reader = files.with_root_ca(_here(requested.settings), connection.tls.ca)
    configured = tuple(one for one in requested.controllers if one.configured(settings) is not None)
    present, absent = await served(configured, api)
    compared, excluded = select(present)
    try:
        await api.list(EVENTS, limit=1)
    except Forbidden as error:
        # Without events, refused creates would be differences.
        raise Forbidden(f"{error.message}; deploy/rbac-read-only.yaml has the rights of a shadow") from None
    compared, unreadable = await _readable(compared, api)
    if not compared:
        print("Error: no controller is left to compare", file=sys.stderr)
        for left in (*excluded, *unreadable):
            print(f"  {left.name}: {left.reason}", file=sys.stderr)
        return None
    off = (
        Excluded(one.name, "off by these flags and feature gates")
        for one in requested.controllers
        if one not in configured
    )
    unserved = (Excluded(one.name, "the server does not serve the resources it needs") for one in absent)
    return Shadow(
        compared,
        api,
        RealClock(),
        grace=given.values["grace"],
        settings=settings,
        workers=requested.workers,
        files=reader,
        excluded=(*excluded, *unreadable, *unserved, *off),
        server=connection.server,
    )


def _here(settings: Settings) -> Settings:
    """The settings without the manager's own CA file, where that is on another machine: the kubeconfig has the same CA."""
    path = settings.flags.get("root-ca-file")
    if not path or Path(path).is_file():
        return settings
    return replace(settings, flags={**settings.flags, "root-ca-file": ""})


async def _readable(
    controllers: tuple[Controller[Any], ...], api: Api
) -> tuple[tuple[Controller[Any], ...], tuple[Excluded, ...]]:
    """The controllers whose resources may be listed; the others with the right that is missing."""
    refused: dict[str, str] = {}
    kinds = {watch.kind.resource: watch.kind for one in controllers for watch in one.watches}
    for resource, kind in kinds.items():
        try:
            await api.list(kind, limit=1)
        except Forbidden:
            refused[resource] = NOT_LISTED
        except NotFound:
            refused[resource] = "is not served"
    left: list[Excluded] = []
    for one in controllers:
        missing = [f"{each} {refused[each]}" for each in _watched(one) if each in refused]
        if missing:
            left.append(Excluded(one.name, "; ".join(missing)))
    names = {each.name for each in left}
    return tuple(one for one in controllers if one.name not in names), tuple(left)


def _watched(controller: Controller[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(watch.kind.resource for watch in controller.watches))


async def _run(shadow: Shadow, given: Given) -> None:
    """Run until the time is over, with the metrics written meanwhile."""
    path, limit = given.values["metrics-file"], given.values["for"]
    writer = asyncio.create_task(_write_metrics(shadow, path)) if path else None
    try:
        async with asyncio.timeout(limit or None):
            await shadow.run(lambda: _synced(shadow))
    except TimeoutError:
        pass
    finally:
        if writer is not None:
            writer.cancel()
            _write(path, reports.metrics(shadow.report()))


def _synced(shadow: Shadow) -> None:
    if not sys.stderr.isatty():
        count = len(shadow.group.runners)
        print(
            f"comparing {count} controllers with the acting manager; Ctrl-C ends with the report",
            file=sys.stderr,
        )


async def _write_metrics(shadow: Shadow, path: str) -> None:
    while True:
        _write(path, reports.metrics(shadow.report()))
        await asyncio.sleep(METRICS_INTERVAL)


def _write(path: str, text: str) -> bool:
    """Write a file as a whole, so that a collector never reads half of it; returns whether that succeeded."""
    try:
        write_public(Path(path), text.encode())
    except OSError as error:
        print(f"Error: cannot write {path}: {error.strerror}", file=sys.stderr)
        return False
    return True


# -- progress ---------------------------------------------------------------------------------


@contextmanager
def _progress(shadow: Shadow) -> Iterator[Callable[[Difference], None]]:
    """Show what happens on standard error: a live line on a terminal, else the differences alone."""
    if not sys.stderr.isatty():
        yield lambda difference: print(reports.brief(difference), file=sys.stderr, flush=True)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        refresher = asyncio.get_running_loop().create_task(_refresh(live, shadow))
        try:
            yield lambda difference: live.console.print(reports.brief(difference), markup=False)
        finally:
            refresher.cancel()


async def _refresh(live: Live, shadow: Shadow) -> None:
    from rich.text import Text

    while True:
        live.update(Text(progress(shadow.report())), refresh=True)
        await asyncio.sleep(REFRESH)


def progress(report: Report) -> str:
    """The figures in one line."""
    total = report.total
    unsynced = sum(1 for each in report.errors if each.error == NOT_SYNCED)
    if unsynced:
        return f"{report.server}: {unsynced} caches are not synced yet"
    return (
        f"{report.server}: {report.seconds:.0f} s, {total.rounds:,} rounds, {total.open:,} writes open, "
        f"{total.fulfilled:,} fulfilled, {total.late:,} late, {total.differences:,} differences; Ctrl-C ends with the report"
    )
