"""What both managers show of themselves, on the same API server; and how they name themselves to it."""

from __future__ import annotations

import csv
import re
import ssl
import urllib.request
from pathlib import Path
from typing import get_args

import pytest

from tests.harness.assets import Binary
from tests.harness.child_process import Child, until
from tests.harness.envtest import MANAGER, RealPlane

TABLE = Path(__file__).parent.parent / "manager" / "metrics.tsv"
# Upstream shows two histograms of nodelifecycle even where it does not run.
CONTROLLERS = (
    "job,deployment,replicaset,ttl-after-finished,garbagecollector,namespace,nodelifecycle,"
    "root-ca-cert-publisher,serviceaccount"
)
QUEUES = ("deployment", "job", "namespace", "replicaset", "serviceaccount", "ttl_jobs_to_delete")
_HEAD = re.compile(r"^# HELP (\S+) (?:\[(\w+)\] )?.*\n# TYPE \S+ (\w+)$", re.M)


def rows() -> dict[str, dict[str, str]]:
    with TABLE.open() as file:
        return {row["metric"]: row for row in csv.DictReader(file, delimiter="\t")}


class Scraped:
    """An exposition, and what the API server heard of who made it."""

    def __init__(self, text: str, agents: dict[str, None]) -> None:
        self.heads = {name: (kind, stability or "") for name, stability, kind in _HEAD.findall(text)}
        self.agents = list(agents)
        self._text = text

    def labels(self, name: str) -> str:
        """The labels that a metric's samples have."""
        found = re.search(rf"^{name}(?:_bucket)?{{(.*)}} ", self._text, re.M)
        words = re.findall(r'(\w+)="', found[1]) if found else []
        return ",".join(sorted(word for word in words if word != "le"))

    def values(self, name: str, label: str) -> list[str]:
        return sorted(set(re.findall(rf'^{name}{{.*\b{label}="([^"]*)"', self._text, re.M)))


def scrape(plane: RealPlane, binary: Binary) -> Scraped:
    port, mark = plane.free_port(), plane.mark()
    manager = plane.manager(
        f"--secure-port={port}",
        "--permit-port-sharing=true",
        "--bind-address=127.0.0.1",
        "--authorization-always-allow-paths=/metrics",
        f"--authentication-kubeconfig={plane.kubeconfig(MANAGER)}",
        f"--authorization-kubeconfig={plane.kubeconfig(MANAGER)}",
        f"--root-ca-file={plane.ca}",
        "--use-service-account-credentials=true",
        f"--leader-elect-resource-name=metrics-of-{binary}",
        f"--controllers={CONTROLLERS}",
        binary=binary,
    )
    try:
        # On a server that other tests have used, there may be nothing else to write.
        plane.kubectl("create", "namespace", f"metrics-of-{binary}")
        text = _read(manager, f"https://127.0.0.1:{port}/metrics")
        by_accounts = f"a write by an account of {binary}"
        until(lambda: any(ACCOUNTS in agent for agent in _agents(plane, mark)), manager, 60, by_accounts)
    finally:
        manager.stop()
    return Scraped(text, dict.fromkeys(_agents(plane, mark)))


ACCOUNTS = "system:serviceaccount:kube-system:"


def _agents(plane: RealPlane, mark: int) -> list[str]:
    """How the clients of managers named themselves since a mark."""
    return [entry.agent for entry in plane.audit(mark) if entry.agent.startswith("kube-controller-manager/")]


def _read(manager: Child, url: str) -> str:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    found: list[str] = []

    def ready() -> bool:
        try:
            with urllib.request.urlopen(url, context=context, timeout=5) as answer:
                found[:] = [answer.read().decode()]
        except OSError:
            return False
        # A write has been answered, every queue is there, and what counts its rounds has had one: all are at work.
        wrote = re.search(r'rest_client_requests_total{code="201",host="\S+",method="POST"}', found[0])
        queues = all(f'workqueue_depth{{name="{name}"}}' in found[0] for name in QUEUES)
        return wrote is not None and queues and "root_ca_cert_publisher_sync_total{" in found[0]

    until(ready, manager, 60, "metrics are served", step=0.1)
    return found[0]


@pytest.fixture(scope="module")
def scraped(plane: RealPlane) -> dict[str, Scraped]:
    return {binary: scrape(plane, binary) for binary in get_args(Binary)}


STALE_SYNCS = "_stale_sync_skips_total"
"""Shown from the first skipped sync on, here by every controller; chance decides in which a cache lags behind its own write."""


@pytest.mark.parametrize("binary", get_args(Binary))
def test_the_table_of_metrics_is_what_is_shown(scraped: dict[str, Scraped], binary: str) -> None:
    known = rows()
    shown = scraped[binary]
    for name, (kind, stability) in shown.heads.items():
        if name.startswith(("go_", "steersman_")) or (
            name not in known and binary == "steersman" and name.endswith(STALE_SYNCS)
        ):
            continue
        row = known[name]
        assert (kind, stability, shown.labels(name)) == (row["type"], row["stability"], row["labels"]), name


def test_what_the_reference_shows_is_shown_here_or_known_to_be_missing(scraped: dict[str, Scraped]) -> None:
    theirs, ours = (scraped[name].heads for name in ("kube-controller-manager", "steersman"))
    missing = {name for name in theirs if name not in ours and not name.startswith("go_")}
    unexplained = {name for name in missing if not rows()[name]["missing"] and not name.endswith(STALE_SYNCS)}
    assert unexplained == set()


def test_queues_have_the_names_of_upstreams(scraped: dict[str, Scraped]) -> None:
    theirs, ours = (
        scraped[name].values("workqueue_adds_total", "name")
        for name in ("kube-controller-manager", "steersman")
    )
    assert [name for name in ours if name not in theirs] == []


def test_clients_name_themselves_in_upstreams_form(scraped: dict[str, Scraped]) -> None:
    def form(agent: str) -> str:
        # Which accounts had something to write by then differs; that each is a real one, RBAC sees to.
        told = re.sub(r"(system:serviceaccount:kube-system:).+", r"\1ACCOUNT", agent)
        # A binary built without version stamps calls itself v0.0.0 and its commit $Format.
        told = re.sub(r"^kube-controller-manager/v[\d.]+", "kube-controller-manager/VERSION", told)
        return re.sub(r" (kubernetes/[\w$]+|steersman/[\w.]+)", " PROGRAM", told)

    theirs, ours = (
        dict.fromkeys(map(form, scraped[name].agents)) for name in ("kube-controller-manager", "steersman")
    )
    assert any(one.endswith("ACCOUNT") for one in ours)
    # Those of the door ask about clients.
    odd = [
        one for one in ours if one not in theirs and not one.endswith(("/authentication", "/authorization"))
    ]
    assert odd == []
