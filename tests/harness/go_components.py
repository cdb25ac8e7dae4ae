"""Go's own kube-controller-manager and kube-scheduler under a mixed load, on the embedded plane or on a real one.

``python -m tests.harness.go_components --minutes 60`` steers `steersman up` for an hour and prints the classes of errors in
the components' logs; ``--real`` does the same with a kube-apiserver and etcd.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import yaml

from steersman.api.clock import RealClock
from steersman.api.errors import ApiError, NotFound
from steersman.api.generated import load
from steersman.api.scheme import Kind
from steersman.client import kubeconfig
from steersman.client.api import Api
from steersman.client.http import HttpApi
from steersman.sim.kubelet import Kubelets, KubeletSettings
from tests.harness.assets import assets
from tests.harness.child_process import Child
from tests.harness.envtest import RealPlane
from tests.harness.follow import beside

COMPONENTS = {"kube-controller-manager": ("--use-service-account-credentials",), "kube-scheduler": ()}
"""The components and their flags: the manager's own user has few rights, so each controller has its ServiceAccount."""
NODES = ("node-1", "node-2", "node-3")
SETTLED = 60.0
"""Seconds within which what was asked for must be there."""


# -- planes -----------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def embedded(directory: Path) -> AsyncIterator[dict[str, Path]]:
    """``steersman up`` without controllers and scheduler; the kubeconfigs by user."""
    admin = directory / "admin.kubeconfig"
    command = [sys.executable, "-m", "steersman.manager.cli", "up", "--port=0", f"--nodes={len(NODES)}"]
    flags = ["--no-controllers", "--no-scheduler", f"--kubeconfig={admin}"]
    up = Child([*command, *flags], directory / "up.log")
    try:
        async with asyncio.timeout(SETTLED):
            while not admin.exists():
                await asyncio.sleep(0.05)
        yield {"admin": admin} | {name: impersonated(admin, f"system:{name}") for name in COMPONENTS}
    finally:
        up.stop()


@contextlib.asynccontextmanager
async def real(directory: Path) -> AsyncIterator[dict[str, Path]]:
    """A kube-apiserver and etcd, with simulated kubelets of this process."""
    with RealPlane.start() as plane:
        async with HttpApi(kubeconfig.load(str(plane.admin)), qps=-1) as api:
            settings = KubeletSettings(start_delay=1.0, shutdown=0.2)
            async with beside(Kubelets(api, RealClock(), NODES, settings=settings).run()):
                yield {"admin": plane.admin} | {
                    name: plane.kubeconfig(f"system:{name}") for name in COMPONENTS
                }


def impersonated(admin: Path, user: str) -> Path:
    """A kubeconfig with which the administrator acts as a component."""
    document = yaml.safe_load(admin.read_text())
    document["users"][0]["user"]["as"] = user
    path = admin.with_name(f"{user.replace(':', '-')}.kubeconfig")
    path.write_text(yaml.safe_dump(document))
    return path


@contextlib.contextmanager
def components(configs: Mapping[str, Path], directory: Path) -> Any:
    """The components with their defaults, which ask for protobuf; their logs by name."""
    started = []
    try:
        for name, flags in COMPONENTS.items():
            command = [str(assets(name) / name), f"--kubeconfig={configs[name]}", "--secure-port=0", *flags]
            started.append(Child(command, directory / f"{name}.log"))
        yield {name: directory / f"{name}.log" for name in COMPONENTS}
    finally:
        for child in started:
            child.stop()


# -- load -------------------------------------------------------------------------------------


def pod_spec(**fields: Any) -> dict[str, Any]:
    return {
        "containers": [{"name": "c", "image": "app:1", "resources": {"requests": {"cpu": "10m"}}}],
        "terminationGracePeriodSeconds": 0,
        **fields,
    }


def workload(name: str, **fields: Any) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec()},
            **fields,
        },
    }


def crd(number: int) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {"name": f"things.load{number}.example.com"},
        "spec": {
            "group": f"load{number}.example.com",
            "names": {"plural": "things", "kind": "Thing"},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


def volume(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "load",
            "hostPath": {"path": f"/tmp/{name}"},
            "persistentVolumeReclaimPolicy": "Retain",
        },
    }


CLAIM = {
    "metadata": {"name": "data"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "load",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


class Load:
    """Rounds of a mixed load: each in a namespace of its own, which the next one deletes."""

    def __init__(self, api: Api, seed: int) -> None:
        self.api = api
        self.random = Random(seed)
        self.rounds = 0

    async def run(self, seconds: float) -> None:
        """Runs rounds until the time is up, and at least two."""
        end = time.monotonic() + seconds
        while self.rounds < 2 or time.monotonic() < end:
            await self.round(self.rounds)
            self.rounds += 1
        await self.gone("", "v1", "Namespace", "", f"load-{self.rounds - 2}")

    async def round(self, number: int) -> None:
        namespace, random = f"load-{number}", self.random
        create = self.create
        await create("", "v1", "Namespace", "", {"metadata": {"name": namespace}})
        await self.there("", "v1", "ServiceAccount", namespace, "default", lambda _: True)
        for index in range(2):
            await create("", "v1", "PersistentVolume", "", volume(f"load-{number}-{index}"))
        await create("apps", "v1", "Deployment", namespace, workload("web", replicas=random.randint(2, 6)))
        await create("apps", "v1", "DaemonSet", namespace, workload("agent"))
        sets = workload("db", replicas=2, serviceName="db", volumeClaimTemplates=[CLAIM])
        await create("apps", "v1", "StatefulSet", namespace, sets)
        service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
        await create("", "v1", "Service", namespace, service)
        job = {"template": {"spec": pod_spec(restartPolicy="Never")}, "completions": 3, "parallelism": 2}
        job["template"]["spec"]["containers"][0]["command"] = ["true"]
        await create("batch", "v1", "Job", namespace, {"metadata": {"name": "task"}, "spec": job})
        cron = {"schedule": "* * * * *", "jobTemplate": {"spec": {**job, "ttlSecondsAfterFinished": 5}}}
        await create("batch", "v1", "CronJob", namespace, {"metadata": {"name": "cron"}, "spec": cron})
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        hpa = {"minReplicas": 2, "maxReplicas": 6, "scaleTargetRef": target}
        await create(
            "autoscaling",
            "v2",
            "HorizontalPodAutoscaler",
            namespace,
            {"metadata": {"name": "web"}, "spec": hpa},
        )
        budget = {
            "metadata": {"name": "web"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        }
        await create("policy", "v1", "PodDisruptionBudget", namespace, budget)
        quota = {"metadata": {"name": "all"}, "spec": {"hard": {"pods": "100"}}}
        await create("", "v1", "ResourceQuota", namespace, quota)
        await self.custom(namespace, number)
        await self.there(
            "apps", "v1", "Deployment", namespace, "web", lambda d: d["status"].get("readyReplicas", 0) >= 2
        )
        await self.there(
            "apps", "v1", "StatefulSet", namespace, "db", lambda d: d["status"].get("readyReplicas") == 2
        )
        await self.there(
            "apps",
            "v1",
            "DaemonSet",
            namespace,
            "agent",
            lambda d: d["status"].get("numberReady") == len(NODES),
        )
        await self.there("batch", "v1", "Job", namespace, "task", lambda d: d["status"].get("succeeded") == 3)
        image = {
            "spec": {
                "replicas": 3,
                "template": {"spec": {"containers": [{"name": "c", "image": f"app:{number}"}]}},
            }
        }
        await self.api.patch(
            self.kind("apps", "v1", "Deployment"),
            namespace,
            "web",
            image,
            content_type="application/strategic-merge-patch+json",
        )
        await self.there(
            "apps",
            "v1",
            "Deployment",
            namespace,
            "web",
            lambda d: d["status"].get("updatedReplicas") == d["status"].get("readyReplicas") == 3,
        )
        await self.api.delete(
            self.kind("apps", "v1", "DaemonSet"), namespace, "agent", propagation="Foreground"
        )
        await self.api.delete(
            Kind(f"load{number}.example.com", "v1", "Thing", "things", True, dict), namespace, "parent"
        )
        if number:
            await self.api.delete(self.kind("", "v1", "Namespace"), "", f"load-{number - 1}")
            await self.api.delete(
                self.kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
                "",
                f"things.load{number - 1}.example.com",
            )
        if number > 1:
            await self.gone("", "v1", "Namespace", "", f"load-{number - 2}")
            for index in range(2):
                await self.api.delete(
                    self.kind("", "v1", "PersistentVolume"), "", f"load-{number - 2}-{index}"
                )

    async def custom(self, namespace: str, number: int) -> None:
        """A CustomResourceDefinition, and an object that owns another."""
        await self.create("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", crd(number))
        things = Kind(f"load{number}.example.com", "v1", "Thing", "things", True, dict)
        named = {"apiVersion": things.api_version, "kind": "Thing"}
        async with asyncio.timeout(SETTLED):
            while True:
                try:
                    parent = await self.api.create(
                        things, namespace, {**named, "metadata": {"name": "parent"}}
                    )
                    break
                except NotFound:
                    await asyncio.sleep(0.1)
        owner = {**named, "name": "parent", "uid": parent["metadata"]["uid"]}
        child = {**named, "metadata": {"name": "child", "ownerReferences": [owner]}}
        await self.api.create(things, namespace, child)

    def kind(self, group: str, version: str, kind: str) -> Kind[dict[str, Any]]:
        return load(group, version, kind).untyped

    async def create(
        self, group: str, version: str, kind: str, namespace: str, body: Mapping[str, Any]
    ) -> None:
        api_version = f"{group}/{version}" if group else version
        await self.api.create(
            self.kind(group, version, kind), namespace, {"apiVersion": api_version, "kind": kind, **body}
        )

    async def there(self, group: str, version: str, kind: str, namespace: str, name: str, when: Any) -> None:
        """Waits until an object is as it should be."""
        seen: Any = None
        try:
            async with asyncio.timeout(SETTLED):
                while True:
                    with contextlib.suppress(ApiError):
                        seen = await self.api.get(self.kind(group, version, kind), namespace, name)
                        if when(seen):
                            return
                    await asyncio.sleep(0.2)
        except TimeoutError:
            status = seen and seen.get("status")
            raise AssertionError(f"{kind} {namespace}/{name} after {SETTLED} s: {status}") from None

    async def gone(self, group: str, version: str, kind: str, namespace: str, name: str) -> None:
        """Waits until an object is deleted."""
        seen: Any = None
        try:
            async with asyncio.timeout(SETTLED):
                while True:
                    seen = await self.api.get(self.kind(group, version, kind), namespace, name)
                    await asyncio.sleep(0.2)
        except NotFound:
            return
        except TimeoutError:
            raise AssertionError(f"{kind} {name} is still there: {seen.get('status')}") from None


# -- logs -------------------------------------------------------------------------------------

_ERROR = re.compile(r"^E\d{4} [\d:.]+ +\d+ ([\w.]+:\d+)\] (.*)$")
_NAMES = re.compile(r'"(?:[^"\\]|\\.)*"|\b[\w-]*\d[\w.:/-]*|\bload-\S+')


def error_classes(logs: Iterable[Path]) -> Counter[str]:
    """The error lines of logs, without what differs from one to the next: names, numbers, times."""
    found: Counter[str] = Counter()
    for path in logs:
        for line in path.read_text(errors="replace").splitlines():
            match = _ERROR.match(line)
            if match is not None:
                where, text = match.groups()
                message = text.partition('" ')[0].strip('"') if text.startswith('"') else ""
                err = re.search(r'\berr="((?:[^"\\]|\\.)*)"', text)
                rest = (err[1].replace('\\"', '"') if err else "") if message else text
                found[f"{path.stem} {where} {message}: {_NAMES.sub('_', rest)}"] += 1
    return found


RACES = (
    "Operation cannot be fulfilled on",
    "is not as new as written version",
    "because it is being terminated",
    "broadcaster already stopped",
)
"""Parts of errors that depend on who is faster, on a real server too: a cache behind a write, or a namespace that goes."""
SERVER_FAULTS = (
    "decod",
    "unmarshal",
    "proto:",
    "couldn't get version/kind",
    "no kind ",
    "no matches for kind",
    "could not find the requested resource",
    "cannot be handled",
    "is invalid",
    "unknown field",
    "forbidden",
    "unauthorized",
    "internal error",
    "media type",
    "not acceptable",
    "too many requests",
    "timed out waiting for",
)
"""Parts of errors that a server causes which answers otherwise than the component expects. Other errors say how the objects of the
load stand at that moment (a claim that is being deleted, a pod without metrics), which differs from run to run on any server."""


def server_faults(errors: Iterable[str]) -> set[str]:
    """Classes of errors that the server may be at fault for."""
    return {
        text
        for text in errors
        if any(each in text.lower() for each in SERVER_FAULTS) and not any(each in text for each in RACES)
    }


# -- running ----------------------------------------------------------------------------------


async def steer(
    *, real_server: bool, seconds: float, directory: Path, seed: int = 1
) -> tuple[Counter[str], int]:
    """Runs the components under load; the classes of errors in their logs, and the number of rounds."""
    async with (real if real_server else embedded)(directory) as configs:
        with components(configs, directory) as logs:
            async with HttpApi(kubeconfig.load(str(configs["admin"])), qps=-1) as api:
                driver = Load(api, seed)
                await driver.run(seconds)
            return error_classes(logs.values()), driver.rounds


def main() -> None:
    """Runs for some minutes and prints what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--real", action="store_true", help="against a kube-apiserver and etcd")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--logs", type=Path, help="directory to leave the logs in")
    given = parser.parse_args()
    directory = given.logs or Path(tempfile.mkdtemp(prefix="go-components-"))
    directory.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    errors, rounds = asyncio.run(
        steer(real_server=given.real, seconds=given.minutes * 60, directory=directory, seed=given.seed)
    )
    lines = [f"{rounds} rounds in {time.monotonic() - begin:.0f} s; logs in {directory}"]
    lines += [f"{count:6} {text}" for text, count in sorted(errors.items())]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
