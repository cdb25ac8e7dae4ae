"""Every request that a controller sends is one that its role in a fresh cluster allows.

Simulated clusters decide by the roles that a real API server creates for itself, and each controller has those of its own
account. So it is enough to live through everything there is to live through, and to listen.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from steersman.api.errors import Forbidden
from steersman.api.kinds import PODS
from steersman.api.kinds.certificates import CERTIFICATESIGNINGREQUESTS
from steersman.controllers import CONTROLLERS
from steersman.explore.scenario import catalogue
from steersman.server.auth.attributes import Attributes, Decision
from steersman.server.auth.bootstrap_policy import bootstrap_policy
from steersman.testing.cluster import Cluster
from steersman.testing.process import ROOT

OWN = "system:serviceaccount:kube-system:"
ALL = tuple(each.name for each in CONTROLLERS)
UNSERVED = {
    "kube-apiserver-serving-clustertrustbundle-publisher",
    "podcertificaterequestcleaner",
    "podgroup-protection-controller",
    "resourcepoolstatusrequest-controller",
    "storage-version-garbage-collector",
    "storage-version-migrator-controller",
}
"""Accounts whose controllers need what no server serves by default; so their roles are not there, either."""


class Heard:
    """What was asked for, and by whom."""

    def __init__(self) -> None:
        self.asked: dict[str, dict[tuple[str, ...], None]] = {}
        self.refused: list[str] = []
        self._doubt: tuple[object, ...] | None = None

    @contextmanager
    def at(self, cluster: Cluster) -> Iterator[None]:
        """Listen to a cluster's requests. What was allowed once is not asked again: this hears it once."""
        decide = cluster._authorizer.authorize

        def listen(asked: Attributes) -> Decision:
            decision = decide(asked)
            self.asked.setdefault(asked.user.name, {})[asked[1:5]] = None
            # Whether it may be done to any object is asked first, and to the one that is meant after that.
            if not decision.allowed and self._doubt == asked[:6]:
                self.refused.append(f"{asked.user.name}: {asked.verb} {asked.resource} {asked.name}")
            self._doubt = None if decision.allowed else asked[:6]
            return decision

        cluster._authorizer.authorize = listen  # type: ignore[method-assign, assignment]
        yield


def accounts() -> set[str]:
    """The accounts of all controllers that have one of their own."""
    return {each.service_account or each.name for each in CONTROLLERS if not each.as_manager}


def test_every_controller_has_a_role_of_its_own() -> None:
    there = {each.metadata.name for each in bootstrap_policy()}
    # Those of bootstrap tokens are about single namespaces.
    without = {f"{name}" for name in accounts() if f"system:controller:{name}" not in there}
    assert without == UNSERVED


@pytest.mark.parametrize("name", ["", "web"])
def test_a_refusal_is_heard(name: str) -> None:
    heard = Heard()
    with Cluster(1, nodes=0) as cluster, heard.at(cluster):
        nobody = cluster.as_user("nobody")
        request = nobody.get(PODS, "default", name) if name else nobody.create(PODS, "default", {})
        with pytest.raises(Forbidden):
            cluster.run(request)
    assert heard.refused == [f"nobody: {'get' if name else 'create'} pods {name}"]


def test_whatever_happens_in_a_scenario_nobody_is_refused() -> None:
    heard = Heard()
    for scenario in catalogue():
        with (
            Cluster(
                1,
                nodes=scenario.nodes,
                controllers=scenario.selected_controllers,
                flags=scenario.flags,
                gates=dict.fromkeys(scenario.gates, True),
                settings=scenario.settings,
                cloud=scenario.cloud_provider(),
                dra=scenario.dra,
            ) as cluster,
            heard.at(cluster),
        ):
            scenario.play(cluster)
    assert heard.refused == []
    assert len(heard.asked) > 10


def signing_request() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    names = ((NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, "system:node:n"))
    subject = x509.Name([x509.NameAttribute(oid, value) for oid, value in names])
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return base64.b64encode(made.public_bytes(Encoding.PEM)).decode()


def secret(name: str, kind: str, annotations: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "annotations": annotations or {}},
        "type": kind,
        "stringData": {key.replace("_", "-"): value for key, value in data.items()},
    }


OBJECTS = """
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {serviceName: db, replicas: 2,
  selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: a}]},
  }}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, selector: {matchLabels: {app: web}},
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: a, resources: {requests: {cpu: 1m}}}]}}}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {minReplicas: 2, maxReplicas: 4,
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web},
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: p}, spec: {
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]},
  validations: [{expression: "object.spec.replicas < 9"}]}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: bot}, secrets: [{name: bot-token}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: renews}, roleRef: {
  apiGroup: rbac.authorization.k8s.io, kind: ClusterRole,
  name: "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"},
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:node:n"}]}
"""

OUTSIDE = """
{apiVersion: v1, kind: Service, metadata: {name: outside}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Endpoints, metadata: {name: outside}, subsets: [{addresses: [{ip: 192.0.2.1}], ports: [{port: 80}]}]}
---
{apiVersion: networking.k8s.io/v1, kind: ServiceCIDR, metadata: {name: more}, spec: {cidrs: [192.168.48.0/20]}}
"""

TRACKING = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "kube-apiserver-legacy-service-account-token-tracking"},
    "data": {"since": "2025-01-01"},
}
"""Since when the server notes which tokens are used; a real one says so itself."""


def test_in_a_cluster_with_something_for_everybody_nobody_is_refused() -> None:
    heard = Heard()
    flags = {"legacy-service-account-token-clean-up-period": 86_400.0}
    with Cluster(2, controllers=ALL, flags=flags) as cluster, heard.at(cluster):
        # What is there from the start was made before anybody listened.
        cluster.apply(OBJECTS)
        front = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
        cluster.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": front})
        cluster.delete("ConfigMap", "kube-root-ca.crt")
        cluster.patch("Node", "node-1", {"metadata": {"annotations": {"node.alpha.kubernetes.io/ttl": None}}})
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        of_bot = {"kubernetes.io/service-account.name": "bot"}
        cluster.create(secret("bot-token", "kubernetes.io/service-account-token", of_bot))
        expires = (cluster.now + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        token = secret(
            "bootstrap-token-abcdef",
            "bootstrap.kubernetes.io/token",
            token_id="abcdef",
            token_secret="0123456789abcdef",
            usage_bootstrap_signing="true",
            expiration=expires,
        )
        cluster.create(token, "kube-system")
        info = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cluster-info"}}
        cluster.create({**info, "data": {"kubeconfig": "x"}}, "kube-public")
        cluster.create(TRACKING, "kube-system")
        cluster.apply(OUTSIDE)
        request = {"request": signing_request(), "signerName": "kubernetes.io/kube-apiserver-client-kubelet"}
        usages = ["digital signature", "client auth"]
        spec = {**request, "usages": usages, "username": "system:node:n"}
        csr = {"metadata": {"name": "node"}, "spec": spec}
        cluster.run(cluster.client.create(CERTIFICATESIGNINGREQUESTS, "", csr))
        cluster.settle()
        cluster.advance(minutes=1)
        assert cluster.get("CertificateSigningRequest", "node").status.certificate, (
            "it was approved and signed"
        )
        assert cluster.get("Deployment", "web").spec.replicas > 1, "it was scaled"
        cluster.delete("HorizontalPodAutoscaler", "web")
        cluster.advance(days=4)
        assert cluster.get("StatefulSet", "db").status.replicas == 2
        assert cluster.list("CertificateSigningRequest") == [], "old requests are cleaned up"
        assert cluster.list("Secret", "kube-system") == [], "old tokens are cleaned up"
        assert cluster.list("Secret") == [], "tokens nobody uses are cleaned up"
    assert heard.refused == []
    busy = {name.removeprefix(OWN) for name in heard.asked if name.startswith(OWN)}
    quiet = {
        each.name
        for each in CONTROLLERS
        if not each.as_manager and (each.service_account or each.name) not in busy | UNSERVED
    }
    in_scenarios = {name for scenario in catalogue() for name in scenario.controllers}
    assert quiet - in_scenarios == set(), "a controller without work here has some in a scenario"
    assert ROOT in heard.asked
