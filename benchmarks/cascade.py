"""How fast and at what cost a manager deletes: a full namespace, and cascades over many pods.

    python benchmarks/cascade.py --objects 5000 --pods 5000

Both managers on a fresh API server each; see benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import sys
from pathlib import Path
from typing import Any

if not __package__:
    # Run as a file: the package it belongs to is beside it.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.measure import Cost, Meter
from benchmarks.phases import watchdog
from benchmarks.rounds import Phases, arguments, compare, flags
from benchmarks.workload import each
from steersman.api.errors import NotFound
from steersman.api.generated import load
from steersman.api.kinds import NAMESPACES, SERVICEACCOUNTS
from steersman.api.partial_object import PartialObject, partial_kind
from steersman.api.scheme import Kind
from steersman.client.api import EventType
from steersman.client.http import HttpApi
from tests.harness.assets import Binary
from tests.harness.envtest import RealPlane
from tests.harness.follow import beside, follow, gone, until

CONTROLLERS = "namespace-controller,garbage-collector-controller,serviceaccount-controller"
FULL, CASCADE = "full", "cascade"
SPACES = partial_kind("", "v1", "Namespace", "namespaces", False)
PODS = partial_kind("", "v1", "Pod", "pods", True)
DEFINITIONS = load("apiextensions.k8s.io", "v1", "CustomResourceDefinition").untyped
CUSTOM = 6

Body = dict[str, Any]
Documents = Kind[Body]

_POD: Body = {"spec": {"containers": [{"name": "main", "image": "app:1"}]}}
_RULE: Body = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "some"}
BUILT_IN: tuple[tuple[str, str, str, Body], ...] = (
    ("", "v1", "ConfigMap", {"data": {"key": "value"}}),
    ("", "v1", "Secret", {"stringData": {"key": "value"}}),
    ("", "v1", "Service", {"spec": {"clusterIP": "None", "ports": [{"port": 80}]}}),
    ("", "v1", "ServiceAccount", {}),
    ("", "v1", "PodTemplate", {"template": {"metadata": {"labels": {"a": "b"}}, **_POD}}),
    ("", "v1", "LimitRange", {"spec": {"limits": []}}),
    ("apps", "v1", "ControllerRevision", {"revision": 1, "data": {"a": "b"}}),
    ("coordination.k8s.io", "v1", "Lease", {}),
    ("networking.k8s.io", "v1", "NetworkPolicy", {"spec": {"podSelector": {}}}),
    ("policy", "v1", "PodDisruptionBudget", {"spec": {"selector": {"matchLabels": {"a": "b"}}}}),
    ("rbac.authorization.k8s.io", "v1", "Role", {}),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding", {"roleRef": _RULE}),
    (
        "networking.k8s.io",
        "v1",
        "Ingress",
        {"spec": {"defaultBackend": {"resource": {"kind": "A", "name": "b"}}}},
    ),
    ("discovery.k8s.io", "v1", "EndpointSlice", {"addressType": "IPv4", "endpoints": []}),
)


def custom(number: int) -> Documents:
    return Kind("bench.example.com", "v1", f"Thing{number}", f"thing{number}s", True, dict)


def definition(kind: Documents) -> Body:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.resource},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"plural": kind.plural, "kind": kind.name},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


class Run:
    """One manager on one API server."""

    def __init__(self, api: HttpApi, plane: RealPlane, name: Binary, options: argparse.Namespace) -> None:
        self._api = api
        self._plane = plane
        self._name = name
        self._options = options

    async def run(self) -> list[Cost]:
        options = self._options
        for number in range(CUSTOM):
            await self._define(custom(number))
        for namespace in (FULL, CASCADE):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await self._api.create(NAMESPACES, "", body)
        manager = self._plane.manager(*flags(options, CONTROLLERS), binary=self._name)
        phases = Phases(Meter(manager, self._plane), options.timeout)
        try:
            async with beside(watchdog(manager)):
                await phases.run("start", 0, self._start)
                await phases.run("fill", options.objects, self._fill)
                await phases.run("namespace", options.objects, self._empty)
                for way in ("Background", "Foreground", "Orphan"):
                    await phases.run(f"{way} made", options.pods, functools.partial(self._own, way))
                    await phases.run(way, options.pods, functools.partial(self._cascade, way))
        finally:
            manager.stop()
        return phases.costs

    async def _start(self) -> None:
        await until(self._api, SERVICEACCOUNTS, CASCADE, "default", lambda account: True)

    async def _define(self, kind: Documents) -> None:
        await self._api.create(DEFINITIONS, "", definition(kind))
        while True:
            try:
                await self._api.list(kind)
                return
            except NotFound:
                await asyncio.sleep(0.1)

    async def _fill(self) -> None:
        kinds: list[tuple[Documents, Body]] = [
            (load(group, version, kind).untyped, body) for group, version, kind, body in BUILT_IN
        ]
        kinds += [(custom(number), {"spec": {"number": number}}) for number in range(CUSTOM)]

        async def create(number: str) -> None:
            kind, body = kinds[int(number) % len(kinds)]
            head = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": f"one-{number}"}}
            await self._api.create(kind, FULL, {**head, **body})

        await each([str(number) for number in range(self._options.objects)], create)

    async def _empty(self) -> None:
        await self._api.delete(NAMESPACES, "", FULL)
        await gone(self._api, SPACES, "", FULL)

    async def _own(self, way: str) -> None:
        """Pods that no node will ever run, owned by one object."""
        maps: Documents = load("", "v1", "ConfigMap").untyped
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": way.lower()}}
        owner = (await self._api.create(maps, CASCADE, body))["metadata"]
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner["name"],
            "uid": owner["uid"],
            "blockOwnerDeletion": True,
        }

        async def create(name: str) -> None:
            meta = {"name": name, "ownerReferences": [reference], "labels": {"way": way}}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, **_POD}
            await self._api.create(load("", "v1", "Pod").untyped, CASCADE, pod)

        await each([f"{way.lower()}-{number}" for number in range(self._options.pods)], create)

    async def _cascade(self, way: str) -> None:
        """Delete the owner, and wait until its pods are as they should be and it is gone."""
        left: dict[str, None] = {}
        maps = partial_kind("", "v1", "ConfigMap", "configmaps", True)

        def pending(pod: PartialObject) -> bool:
            return bool(pod.metadata.ownerReferences) and pod.metadata.name.startswith(way.lower())

        async with contextlib.aclosing(follow(self._api, PODS, CASCADE)) as changes:
            page: Any = await self._api.list(PODS, CASCADE)
            left.update(dict.fromkeys(pod.metadata.name for pod in page.items if pending(pod)))
            await self._api.delete(maps, CASCADE, way.lower(), propagation=way)
            async for event, pod in changes:
                if event is EventType.DELETED or not pending(pod):
                    left.pop(pod.metadata.name, None)
                if not left:
                    break
        await gone(self._api, maps, CASCADE, way.lower())


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--objects", type=int, default=5000, help="in the namespace that is deleted")
    parser.add_argument("--pods", type=int, default=5000, help="of one owner, for each way to delete it")
    options = parser.parse_args()
    what = f"{options.objects} objects, {options.pods} pods"
    compare(options, what, lambda api, plane, name: Run(api, plane, name, options).run())


if __name__ == "__main__":
    main()
