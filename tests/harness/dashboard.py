"""A ``steersman up`` process with its dashboard, for tests in a browser, benchmarks and pictures."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from steersman.client import kubeconfig
from steersman.client.api import Api
from steersman.client.http import HttpApi
from tests.harness.child_process import Child, until
from tests.harness.stuck import KINDS, Document

T = TypeVar("T")

_ADDRESS = re.compile(r"dashboard: ((https?://[^/\s]+)/ui/#token=(\S+))")
_START = 60
"""Seconds in which a control plane starts, on a busy machine."""


class DashboardPlane:
    """A running control plane."""

    def __init__(self, child: Child, config: Path) -> None:
        found = _ADDRESS.search(child.log())
        assert found is not None
        self.child = child
        self.address, self.origin, self.token = found.groups()
        """The address that is printed, with the token; its origin; the token."""
        self._config = config

    def page(self, route: str = "/") -> str:
        """The address of a view, without the token."""
        return f"{self.origin}/ui/#{route}"

    def ask(self, work: Callable[[Api], Awaitable[T]]) -> T:
        """Do something with the API."""

        async def run() -> T:
            async with asyncio.timeout(_START), HttpApi(kubeconfig.load(str(self._config)), qps=0) as api:
                return await work(api)

        return asyncio.run(run())

    def create(self, *documents: Document, namespace: str = "default") -> None:
        """Create objects."""

        async def work(api: Api) -> None:
            for document in documents:
                kind = KINDS[document["kind"]]
                await api.create(kind, namespace if kind.namespaced else "", document)

        self.ask(work)

    def patch(self, kind: str, name: str, body: Mapping[str, Any], namespace: str = "default") -> None:
        """Change an object by a merge patch."""
        content_type = "application/merge-patch+json"
        place = namespace if KINDS[kind].namespaced else ""
        self.ask(lambda api: api.patch(KINDS[kind], place, name, body, content_type=content_type))

    def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        """Delete an object."""
        place = namespace if KINDS[kind].namespaced else ""
        self.ask(lambda api: api.delete(KINDS[kind], place, name))


def named(document: Document, name: str) -> Document:
    """A workload of `tests.harness.stuck` under another name, with labels of its own."""
    spec, template = document["spec"], document["spec"]["template"]
    labels = {"app": name}
    meta = {**template["metadata"], "labels": labels}
    body = {**spec, "selector": {"matchLabels": labels}, "template": {**template, "metadata": meta}}
    return {**document, "metadata": {**document["metadata"], "name": name}, "spec": body}


@contextmanager
def dashboard_plane(home: Path, argv: Sequence[str] = ()) -> Iterator[DashboardPlane]:
    """Start ``steersman up``; its files are in ``home``."""
    config = home / "kubeconfig"
    command = [
        sys.executable,
        "-m",
        "steersman.manager.cli",
        "up",
        "--port=0",
        f"--kubeconfig={config}",
        *argv,
    ]
    child = Child(command, home / "up.log")
    try:
        until(lambda: _ADDRESS.search(child.log()) is not None, child, _START, "the dashboard's address")
        yield DashboardPlane(child, config)
    finally:
        child.stop()
