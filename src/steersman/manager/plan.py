"""``steersman plan``: what the control loops of a cluster would do after a change, before anyone makes it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from steersman.api.errors import ApiError
from steersman.api.printable import one_line
from steersman.client.config import ClientConfig, ConfigError
from steersman.client.http import HttpApi
from steersman.manager import output, process
from steersman.manager.connection_errors import explain
from steersman.manager.flag_table import FLAGS, declared
from steersman.manager.flags import UsageError, collect
from steersman.manager.node import connect
from steersman.manager.progress import ProgressBar
from steersman.manager.verb import Given
from steersman.plan import assumptions
from steersman.plan.change import ChangeError, read_steps
from steersman.plan.model import Report
from steersman.plan.rehearsal import Rehearsal
from steersman.plan.render import markdown, text
from steersman.server.storage.durable.errors import DataDirError
from steersman.server.storage.watch import Selection
from steersman.sim.kubelet.behaviour import seconds
from steersman.snapshot.loading import StoreBuilder, load_file
from steersman.snapshot.model import LoadedSnapshot
from steersman.snapshot.read_cluster import Progress, read_cluster
from steersman.snapshot.redaction import Redactor

MANAGER = "kube-controller-manager"
ADDRESSES = ("allocate-node-cidrs", "cluster-cidr", "service-cluster-ip-range", "cluster-name")
MAX_AHEAD = 28 * 86400.0
"""Seconds: every heartbeat and every round of that time is rehearsed, twice."""
READING = 0.4
"""The share of reading in the progress."""


def main(given: Given) -> int:
    """Entry point; the exit code is 0 where the change converges, 2 where it does not, and 1 for errors."""
    values = given.values
    if values["from"] and "kubeconfig" in given.set:
        raise UsageError("--from is a snapshot and --kubeconfig a cluster: pass one of them")
    try:
        ahead = seconds(values["for"])
        if not ahead:
            raise ChangeError(f"--for: {values['for']!r} is no duration, such as 30m")
        if ahead > MAX_AHEAD:
            raise ChangeError(
                f"--for: {values['for']} is too long: a plan looks at most 4 weeks ahead ({MAX_AHEAD / 3600:g}h)"
            )
        steps = read_steps(
            files=values["filename"],
            deletes=values["delete"],
            scales=values["scale"],
            images=values["set-image"],
            drains=values["drain"],
            fails=values["fail"],
            stdin=sys.stdin.read,
        )
        assumed = assumptions.parse(values["assume"])
        connection = None if values["from"] else connect(values["kubeconfig"])
        namespace = (
            values["namespace"] or (connection.namespace if connection is not None else "") or "default"
        )
        with ProgressBar("plan") as bar:
            loaded = (
                load_file(
                    Path(values["from"]),
                    lambda done, total: bar.update(READING * done, total, f"{done:,} objects"),
                )
                if connection is None
                else process.run(_read(connection, bar))
            )
            with (
                _errors_only(),
                Rehearsal(
                    loaded,
                    steps,
                    seconds=ahead,
                    namespace=namespace,
                    assumptions=assumed,
                    force=values["force"],
                    flags=manager_flags(loaded),
                    progress=lambda phase, share: bar.update(READING + (1 - READING) * share, 1.0, phase),
                ) as rehearsal,
            ):
                report = rehearsal.run()
    except (ChangeError, ConfigError, DataDirError, ValueError) as error:
        raise UsageError(one_line(str(error))) from None
    print(_page(report, values["output"]))
    return report.exit_code


@contextmanager
def _errors_only() -> Iterator[None]:
    """Keep the warnings of rehearsed controllers off the console: the report has what was refused, and how often."""
    log = logging.getLogger("steersman")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


async def _read(connection: ClientConfig, bar: ProgressBar) -> LoadedSnapshot:
    """Read a cluster into memory with get and list only. The data of Secrets never leave this function as they are."""

    def told(progress: Progress) -> None:
        share = READING * progress.done / max(progress.total, 1)
        bar.update(share, 1.0, f"reading {progress.objects:,} objects {progress.resource}")

    builder = StoreBuilder()
    async with HttpApi(connection, qps=0) as api:
        try:
            found = await read_cluster(api, builder, redactor=Redactor(), progress=told)
        except ApiError as error:
            raise ChangeError(explain(error, connection)) from None
    return LoadedSnapshot(
        builder.build(), datetime.now(UTC).replace(microsecond=0), found.server, found.unread, builder.unknown
    )


# -- the cluster's own manager ----------------------------------------------------------------


def manager_flags(loaded: LoadedSnapshot) -> dict[str, Any] | None:
    """The flags of the cluster's kube-controller-manager, where it runs as a pod, as kubeadm's does; None where they are not known.

    Paths of files, and addresses of pods and Services, belong to the real machine.
    """
    for pod in loaded.store.table("pods").select(Selection("kube-system")):
        if pod.metadata.labels.get("component") != MANAGER:
            continue
        words = [word for each in pod.spec.containers for word in (*each.command, *each.args)]
        try:
            given, _ = collect(FLAGS, [word for word in words if word.startswith("--")])
        except UsageError:
            return None  # of another version
        known = declared()
        return {
            name: value
            for name, value in given.items()
            if name in known and not name.endswith("-file") and name not in ADDRESSES
        }
    return None


def _page(report: Report, form: str) -> str:
    if form in output.DOCUMENTS:
        return output.document(report.document(), form)
    return markdown(report) if form == "markdown" else text(report, output.paint_for_stdout())
