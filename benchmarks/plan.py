"""What a snapshot and a plan of a large cluster cost: seconds, CPU and peak memory, each in a process of its own.

    python benchmarks/plan.py --pods 5000 --nodes 500

The cluster is `steersman up --from` a file that is made here: Deployments of 50 pods, ready on all nodes. `steersman snapshot save`
reads it over HTTPS, and `steersman plan` looks 30 minutes ahead after the roll of one Deployment, from the snapshot and from the
cluster. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

if not __package__:
    # Run as a file: the package it belongs to is beside it.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import msgspec

from steersman.api.scheme import encode_hook
from steersman.sim.kubelet.node import Shape, node
from steersman.snapshot.file import FileWriter
from steersman.snapshot.model import SnapshotKind

EACH = 50
"""Pods of a Deployment."""
NOW = datetime(2026, 6, 1, tzinfo=UTC)
WHEN = "2026-06-01T00:00:00Z"
REQUESTS = {"cpu": "100m", "memory": "128Mi"}
NOISE = {
    f"example.com/annotation-{number}": "some words that people write into annotations" for number in range(8)
}
STEERSMAN = (sys.executable, "-m", "steersman.manager.cli")


@dataclass(frozen=True)
class Cost:
    """What a process took."""

    what: str
    seconds: float
    cpu: float
    peak_mb: float
    code: int


# -- the cluster ------------------------------------------------------------------------------


def uid(kind: int, number: int) -> str:
    return f"{kind:08x}-0000-4000-8000-{number:012x}"


def meta(name: str, id: str, version: int, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": "default",
        "uid": id,
        "resourceVersion": str(version),
        "creationTimestamp": WHEN,
        "generation": 1,
        **more,
    }


def owner(kind: str, name: str, id: str) -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": "apps/v1",
            "kind": kind,
            "name": name,
            "uid": id,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def template(name: str, hash_: str = "") -> dict[str, Any]:
    labels = {"app": name, **({"pod-template-hash": hash_} if hash_ else {})}
    probe = {
        "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    container = {
        "name": "main",
        "image": f"registry.example.com/{name}:v1",
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": REQUESTS, "limits": REQUESTS},
        "env": [
            {"name": f"VARIABLE_{number}", "value": f"value of variable {number}"} for number in range(10)
        ],
        "readinessProbe": probe,
        "livenessProbe": probe,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    return {
        "metadata": {"labels": labels, "annotations": NOISE},
        "spec": {
            "containers": [container],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "schedulerName": "default-scheduler",
            "securityContext": {},
        },
    }


def deployments(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        name = f"web-{number}"
        status: dict[str, Any] = {
            "observedGeneration": 1,
            "replicas": EACH,
            "updatedReplicas": EACH,
            "readyReplicas": EACH,
            "availableReplicas": EACH,
        }
        status["conditions"] = [
            {
                "type": "Available",
                "status": "True",
                "reason": "MinimumReplicasAvailable",
                "message": "Deployment has minimum availability.",
                "lastUpdateTime": WHEN,
                "lastTransitionTime": WHEN,
            },
            {
                "type": "Progressing",
                "status": "True",
                "reason": "NewReplicaSetAvailable",
                "message": f'ReplicaSet "{name}-5d4f" has successfully progressed.',
                "lastUpdateTime": WHEN,
                "lastTransitionTime": WHEN,
            },
        ]
        yield {
            "metadata": meta(
                name, uid(1, number), 1000 + number, annotations={"deployment.kubernetes.io/revision": "1"}
            ),
            "spec": {
                "replicas": EACH,
                "selector": {"matchLabels": {"app": name}},
                "template": template(name),
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
                },
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
            },
            "status": status,
        }


def replicasets(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        name = f"web-{number}"
        notes = {
            "deployment.kubernetes.io/revision": "1",
            "deployment.kubernetes.io/desired-replicas": str(EACH),
            "deployment.kubernetes.io/max-replicas": str(EACH + 13),
        }
        labels = {"app": name, "pod-template-hash": "5d4f"}
        yield {
            "metadata": meta(
                f"{name}-5d4f",
                uid(2, number),
                2000 + number,
                annotations=notes,
                labels=labels,
                ownerReferences=owner("Deployment", name, uid(1, number)),
            ),
            "spec": {
                "replicas": EACH,
                "selector": {"matchLabels": labels},
                "template": template(name, "5d4f"),
            },
            "status": {
                "observedGeneration": 1,
                "replicas": EACH,
                "fullyLabeledReplicas": EACH,
                "readyReplicas": EACH,
                "availableReplicas": EACH,
            },
        }


def pods(count: int, nodes: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        workload, place = divmod(number, EACH)
        name = f"web-{workload}"
        body = template(name, "5d4f")
        address = f"10.{128 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"
        state = {"running": {"startedAt": WHEN}}
        image = body["spec"]["containers"][0]["image"]
        yield {
            "metadata": meta(
                f"{name}-5d4f-{place:05d}",
                uid(3, number),
                10_000 + number,
                generateName=f"{name}-5d4f-",
                **body["metadata"],
                ownerReferences=owner("ReplicaSet", f"{name}-5d4f", uid(2, workload)),
            ),
            "spec": {
                **body["spec"],
                "nodeName": f"node-{number % nodes}",
                "serviceAccountName": "default",
                "serviceAccount": "default",
                "priority": 0,
                "preemptionPolicy": "PreemptLowerPriority",
                "enableServiceLinks": True,
                "tolerations": [
                    {
                        "key": f"node.kubernetes.io/{key}",
                        "operator": "Exists",
                        "effect": "NoExecute",
                        "tolerationSeconds": 300,
                    }
                    for key in ("not-ready", "unreachable")
                ],
            },
            "status": {
                "phase": "Running",
                "startTime": WHEN,
                "podIP": address,
                "podIPs": [{"ip": address}],
                "hostIP": "172.16.0.1",
                "qosClass": "Guaranteed",
                "conditions": [
                    {"type": type_, "status": "True", "lastTransitionTime": WHEN, "observedGeneration": 1}
                    for type_ in (
                        "PodReadyToStartContainers",
                        "Initialized",
                        "Ready",
                        "ContainersReady",
                        "PodScheduled",
                    )
                ],
                "containerStatuses": [
                    {
                        "name": "main",
                        "image": image,
                        "imageID": f"{image}@sha256:{number:064x}",
                        "containerID": f"containerd://{number:064x}",
                        "ready": True,
                        "started": True,
                        "restartCount": 0,
                        "state": state,
                    }
                ],
            },
        }


def write_cluster(file: Path, count: int, nodes: int) -> None:
    """Write a snapshot of a cluster at rest."""
    with FileWriter(file) as writer:
        made: list[tuple[SnapshotKind, Iterator[dict[str, Any]]]] = [
            (SnapshotKind("", "v1", "Node", "nodes", False), _nodes(nodes)),
            (
                SnapshotKind("", "v1", "Namespace", "namespaces", False),
                iter(
                    (
                        {
                            "metadata": {
                                "name": "default",
                                "uid": uid(9, 0),
                                "resourceVersion": "5",
                                "creationTimestamp": WHEN,
                            },
                            "spec": {"finalizers": ["kubernetes"]},
                            "status": {"phase": "Active"},
                        },
                    )
                ),
            ),
            (SnapshotKind("apps", "v1", "Deployment", "deployments", True), deployments(count // EACH)),
            (SnapshotKind("apps", "v1", "ReplicaSet", "replicasets", True), replicasets(count // EACH)),
            (SnapshotKind("", "v1", "Pod", "pods", True), pods(count, nodes)),
        ]
        for kind, documents in made:
            writer.begin(kind)
            for document in documents:
                writer.add(
                    msgspec.json.encode({"apiVersion": kind.api_version, "kind": kind.kind, **document})
                )
            writer.end(str(10_000 + count))
        writer.finish(tool="benchmark", server="v1.36.4", time=NOW, redacted=True, unread={}, omitted={})


def _nodes(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        made = msgspec.json.decode(
            msgspec.json.encode(node(f"node-{number}", number + 1, Shape(), NOW), enc_hook=encode_hook)
        )
        made["metadata"] |= {
            "uid": uid(4, number),
            "resourceVersion": str(100 + number),
            "creationTimestamp": WHEN,
        }
        made["spec"]["providerID"] = f"example://{number}"
        yield made


# -- measuring --------------------------------------------------------------------------------


def measure(what: str, *words: str) -> Cost:
    """Run steersman in a process of its own."""
    begin = time.monotonic()
    child = subprocess.Popen([*STEERSMAN, *words], stdout=subprocess.DEVNULL, env=_environment())
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return Cost(
        what,
        time.monotonic() - begin,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss / 1024,
        child.returncode,
    )


def _environment() -> dict[str, str]:
    source = str(Path(__file__).resolve().parent.parent / "src")
    return {**os.environ, "PYTHONPATH": source}


def run(count: int, nodes: int) -> list[Cost]:
    """Measure a snapshot, and plans from it and from the cluster."""
    roll = ("--set-image", "deploy/web-0=registry.example.com/web-0:v2", "--for=30m", "-ojson")
    with tempfile.TemporaryDirectory(prefix="steersman-plan-") as directory:
        source, target, kubeconfig = (Path(directory, name) for name in ("source", "target", "kubeconfig"))
        write_cluster(source, count, nodes)
        up = subprocess.Popen(
            [
                *STEERSMAN,
                "up",
                f"--from={source}",
                "--port=0",
                f"--kubeconfig={kubeconfig}",
                "--no-controllers",
                "--no-scheduler",
            ],
            stdout=subprocess.PIPE,
            text=True,
            env=_environment(),
        )
        try:
            assert up.stdout is not None
            while "export KUBECONFIG" not in (line := up.stdout.readline()):
                if not line:
                    raise SystemExit("the control plane did not start")
            costs = [measure("snapshot save", "snapshot", "save", str(target), f"--kubeconfig={kubeconfig}")]
            costs.append(measure("plan from the snapshot", "plan", f"--from={target}", *roll))
            costs.append(measure("plan from the cluster", "plan", f"--kubeconfig={kubeconfig}", *roll))
        finally:
            up.terminate()
            up.wait()
    return costs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    given = parser.parse_args()
    costs = run(given.pods, given.nodes)
    if given.json:
        print(json.dumps([vars(cost) for cost in costs], indent=1))
        return
    print(f"{given.pods:,} pods, {given.nodes:,} nodes")
    for cost in costs:
        print(
            f"{cost.what:<24} {cost.seconds:6.1f} s  {cost.cpu:6.1f} s CPU  {cost.peak_mb:6.0f} MB  exit code {cost.code}"
        )


if __name__ == "__main__":
    main()
