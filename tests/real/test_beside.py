"""Controllers beside an API server as envtest starts it: what docs/guides/deploy.md shows, tried."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.harness.child_process import until
from tests.harness.envtest import RealPlane

DOCS = Path(__file__).parents[2] / "docs" / "guides" / "deploy.md"

ENVTEST = ("--disable-admission-plugins=ServiceAccount", "--service-cluster-ip-range=10.0.0.0/24")
"""Flags by which envtest's server differs from one in a cluster."""


def documented() -> list[str]:
    """The arguments that the docs show for this."""
    command = re.search(
        r"steersman run (--kubeconfig=envtest\.kubeconfig(?: |\\\n|[^`\n])*)", DOCS.read_text()
    )
    assert command is not None
    return [word for word in command[1].replace("\\\n", " ").split() if not word.startswith("--kubeconfig")]


def test_owners_namespaces_and_replicas_behave_as_in_a_cluster() -> None:
    with RealPlane.start(apiserver=ENVTEST) as plane:
        manager = plane.manager(*documented(), user="admin")

        def there(*what: str) -> bool:
            try:
                return bool(plane.kubectl("get", "--ignore-not-found", "-o", "name", *what))
            except subprocess.CalledProcessError:
                return False

        plane.kubectl("create", "namespace", "shop")
        plane.kubectl("-n", "shop", "create", "deployment", "web", "--image=app")
        until(lambda: there("-n", "shop", "pods"), manager, 30, "the Deployment has pods")
        plane.kubectl("-n", "shop", "delete", "deployment", "web", "--wait=false")
        until(lambda: not there("-n", "shop", "replicasets,pods"), manager, 30, "what it owned goes with it")
        plane.kubectl("-n", "shop", "create", "configmap", "left")
        plane.kubectl("delete", "namespace", "shop", "--wait=false")
        until(
            lambda: not there("namespace", "shop"), manager, 30, "the namespace goes, and all that is in it"
        )
