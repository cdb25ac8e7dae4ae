"""What `why` says, as a stranger reads it: objects that are not among the listed situations, and commands that work when copied."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.explain.asking import Question, ask
from steersman.explain.collect import UnknownKind, find_kind
from steersman.explain.explanation import explain
from steersman.explain.model import Snapshot
from steersman.explain.render import text
from steersman.testing import Cluster
from tests.explain.test_findings import NOON

META = {"namespace": "shop", "uid": "u1", "creationTimestamp": "2026-01-02T11:00:00Z"}


def obj(kind: str, name: str = "web", spec: Any = None, status: Any = None, **meta: Any) -> dict[str, Any]:
    """An object in the namespace shop."""
    return {
        "kind": kind,
        "metadata": {**META, "name": name, **meta},
        "spec": spec or {},
        "status": status or {},
    }


def event(kind: str, reason: str, message: str) -> dict[str, Any]:
    """An event about the object web of a kind."""
    about = {"kind": kind, "namespace": "shop", "name": "web"}
    return {**obj("Event", reason.lower()), "involvedObject": about, "reason": reason, "message": message}


def page(document: dict[str, Any], *others: dict[str, Any]) -> str:
    """The whole page about an object."""
    return text(explain(Snapshot(NOON, [document, *others]), document))


def ended(name: str, state: dict[str, Any] | None = None) -> dict[str, Any]:
    """The status of a container that has ended."""
    over = {"terminated": {"exitCode": 3, "reason": "Error", "finishedAt": "2026-01-02T11:59:55Z"}}
    return {"name": name, "restartCount": 2, "lastState": over, "state": state or over}


WAITING = {"waiting": {"reason": "CrashLoopBackOff"}}
PODS: list[tuple[str, dict[str, Any], list[str]]] = [
    (
        "an init container that crashes is named in the command",
        obj(
            "Pod",
            spec={"nodeName": "n", "initContainers": [{"name": "prep"}], "containers": [{"name": "main"}]},
            status={"phase": "Pending", "initContainerStatuses": [ended("prep", WAITING)]},
        ),
        [
            "Pod web: init container prep keeps ending with exit code 3 (CrashLoopBackOff), 2 restarts so far.",
            "the kubelet starts it again at 12:00:15 (in 15 s); the pause doubles each time, up to 5 min",
            "read its log: kubectl logs web -n shop -c prep --previous",
        ],
    ),
    (
        "the only container needs no name",
        obj(
            "Pod",
            spec={"nodeName": "n", "containers": [{"name": "main"}]},
            status={"phase": "Running", "containerStatuses": [ended("main", WAITING)]},
        ),
        ["read its log: kubectl logs web -n shop --previous\n"],
    ),
    (
        "an init container that failed for good is no container",
        obj(
            "Pod",
            spec={"nodeName": "n", "initContainers": [{"name": "prep"}], "containers": [{"name": "main"}]},
            status={"phase": "Failed", "initContainerStatuses": [ended("prep")]},
        ),
        [
            "Pod web: init container prep ended with exit code 3 (Error).",
            "nothing: a pod that has failed is not started again",
            "kubectl logs web -n shop -c prep\n",
        ],
    ),
]
OTHERS: list[tuple[str, list[dict[str, Any]], list[str]]] = [
    (
        "an imagePullSecret that does not exist",
        [
            obj(
                "Pod",
                spec={"nodeName": "n", "containers": [{"name": "main", "image": "private:v1"}]},
                status={
                    "phase": "Pending",
                    "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}],
                },
            ),
            event(
                "Pod",
                "FailedToRetrieveImagePullSecret",
                "Unable to retrieve some image pull secrets (registry); attempting to pull the image may not succeed.",
            ),
        ],
        [
            "Pod web: the image private:v1 of container main cannot be pulled (ImagePullBackOff); "
            "its imagePullSecret registry does not exist.",
            "to do: create Secret registry, or correct the imagePullSecrets",
        ],
    ),
    (
        "a time zone that the controller manager does not know",
        [
            obj("CronJob", spec={"schedule": "0 3 * * *", "timeZone": "Europe/Nowhere"}),
            event("CronJob", "UnknownTimeZone", 'invalid timeZone: "Europe/Nowhere"'),
        ],
        [
            "CronJob web: its time zone Europe/Nowhere is not known to the controller manager.",
            "to do: correct spec.timeZone",
        ],
    ),
    (
        "a certificate request that waits for its approval",
        [obj("CertificateSigningRequest", spec={"signerName": "kubernetes.io/kube-apiserver-client"})],
        [
            "CertificateSigningRequest web: it is neither approved nor denied.",
            "to do: kubectl certificate approve web, or deny it",
        ],
    ),
    (
        "a certificate request whose signer does not run",
        [
            obj(
                "CertificateSigningRequest",
                spec={"signerName": "example.com/signer"},
                status={"conditions": [{"type": "Approved", "status": "True"}]},
            )
        ],
        ["CertificateSigningRequest web: it is approved, but its signer example.com/signer has issued no certificate."],
    ),
    (
        "a certificate request that was denied",
        [
            obj(
                "CertificateSigningRequest",
                status={"conditions": [{"type": "Denied", "status": "True", "message": "not this one"}]},
            )
        ],
        ["CertificateSigningRequest web: it is denied: not this one."],
    ),
    (
        "a budget with a pod that is not healthy and none to spare",
        [
            obj(
                "PodDisruptionBudget",
                spec={"minAvailable": 3},
                status={"expectedPods": 4, "currentHealthy": 3, "desiredHealthy": 3},
            )
        ],
        ["only 3 of its 4 pods are healthy, and it demands 3 (minAvailable 3), so none of them may be evicted"],
    ),
    (
        "a paused Deployment that never had a pod",
        [obj("Deployment", spec={"paused": True, "replicas": 1}, status={"observedGeneration": 1})],
        [
            "Deployment web: its rollout is paused, and it has no ReplicaSet yet, so there are no pods.",
            "next:  nothing until it is resumed",
            "kubectl rollout resume deployment/web -n shop",
        ],
    ),
    (
        "a budget that demands more pods than there are",
        [obj("PodDisruptionBudget", status={"expectedPods": 2, "currentHealthy": 2, "desiredHealthy": 5})],
        [
            "PodDisruptionBudget web: it demands 5 healthy pods, but only 2 pods match its selector, so none may ever be "
            "evicted.",
            "to do: run more replicas, or lower minAvailable",
        ],
    ),
    (
        "a budget whose pods are not healthy",
        [obj("PodDisruptionBudget", status={"expectedPods": 5, "currentHealthy": 2, "desiredHealthy": 4})],
        ["only 2 of the 4 pods that it demands are healthy, so none may be evicted"],
    ),
    (
        "an autoscaler whose target is missing, before its controller has looked",
        [obj("HorizontalPodAutoscaler", spec={"scaleTargetRef": {"kind": "Deployment", "name": "gone"}, "maxReplicas": 3})],
        [
            "HorizontalPodAutoscaler web: its target Deployment gone does not exist.",
            "to do: correct spec.scaleTargetRef, or create the target",
        ],
    ),
    (
        "an autoscaler that is new",
        [
            obj("HorizontalPodAutoscaler", spec={"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 3}),
            obj("Deployment", status={"readyReplicas": 1, "updatedReplicas": 1, "replicas": 1}),
        ],
        ["HorizontalPodAutoscaler web: its controller has not looked at it yet.", "next:  it looks every 15 s"],
    ),
    (
        "a suspended CronJob that never ran",
        [obj("CronJob", spec={"schedule": "* * * * *", "suspend": True})],
        [
            "CronJob shop/web wants a Job at * * * * *: there was none so far.",
            """kubectl patch cronjob web -n shop --type=merge -p '{"spec":{"suspend":false}}'""",
        ],
    ),
    (
        "an Ingress to a Service that is missing, and to a port that is missing",
        [
            obj(
                "Ingress",
                spec={
                    "defaultBackend": {"service": {"name": "api", "port": {"name": "grpc"}}},
                    "rules": [
                        {"http": {"paths": [{"backend": {"service": {"name": "gone", "port": {"number": 80}}}}] * 2}},
                        {"http": {"paths": [{"backend": {"service": {"name": "api", "port": {"number": 80}}}}]}},
                        {"host": "a.example.com"},
                    ],
                },
            ),
            obj("Service", "api", spec={"ports": [{"name": "http", "port": 80}]}),
        ],
        [
            "Ingress web: Service api, which it routes to, has no port grpc.\n",
            "  - Ingress web: Service gone, which it routes to, does not exist in namespace shop.\n",
            "routes to Service api",
        ],
    ),
    (
        "a custom resource whose controller says what is wrong",
        [
            obj(
                "Widget",
                status={
                    "conditions": [
                        {
                            "type": "Ready",
                            "status": "False",
                            "reason": "NoDisk",
                            "message": "the disk is gone.",
                            "lastTransitionTime": "2026-01-02T11:58:00Z",
                        }
                    ]
                },
            )
        ],
        [
            "Widget shop/web wants to be ready: NoDisk.",
            "Widget web: its condition Ready is False for 2 min (NoDisk): the disk is gone.\n",
            "loop:  the controller of Widget",
        ],
    ),
    (
        "a kind of which nothing is known is not praised",
        [obj("Secret")],
        ["Secret shop/web: it exists.\n", "Nothing is known to be wrong with it."],
    ),
    (
        "a finalizer of an unknown controller",
        [obj("ConfigMap", deletionTimestamp="2026-01-02T11:59:00Z", finalizers=["acme.io/hold"])],
        [
            "ConfigMap shop/web wants to be deleted: it exists.",
            "waits for the finalizer acme.io/hold, which the controller of acme.io has not removed",
        ],
    ),
    (
        "a StatefulSet of which one pod is there",
        [obj("StatefulSet", spec={"replicas": 2}, status={"updatedReplicas": 1})],
        ["StatefulSet shop/web wants 2 replicas: 0 of 2 ready, 1 up to date."],
    ),
    (
        "a Service that selects nothing",
        [obj("Service", spec={"selector": {"app": "none"}})],
        ["Service web: no pod in namespace shop has the labels of its selector (app=none)."],
    ),
    (
        "a healthy object",
        [obj("Deployment", spec={"replicas": 1}, status={"readyReplicas": 1, "updatedReplicas": 1, "replicas": 1})],
        ["Deployment shop/web wants 1 replica: 1 of 1 ready.\n", "All is as it should be."],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("pod", "says"), [row[1:] for row in PODS], ids=[row[0] for row in PODS])
def test_pods_read_well(pod: dict[str, Any], says: list[str]) -> None:
    for sentence in says:
        assert sentence in page(pod)


@pytest.mark.parametrize(("objects", "says"), [row[1:] for row in OTHERS], ids=[row[0] for row in OTHERS])
def test_other_objects_read_well(objects: list[dict[str, Any]], says: list[str]) -> None:
    for sentence in says:
        assert sentence in page(*objects)


def test_an_ingress_that_is_well_is_well() -> None:
    backend = {"service": {"name": "api", "port": {"number": 80}}}
    service = obj("Service", "api", spec={"ports": [{"port": 80}]})
    slice_ = obj("EndpointSlice", "api-1", labels={"kubernetes.io/service-name": "api"})
    slice_["endpoints"] = [{"addresses": ["10.0.0.7"]}]
    assert "All is as it should be." in page(
        obj("Ingress", spec={"defaultBackend": backend}), service, slice_
    )


def test_a_service_without_endpoints_is_not_ok_in_the_tree() -> None:
    assert "-- Service web: no selector, 0 endpoints listed" in page(
        obj("Service", spec={"ports": [{"port": 80}]})
    )


def test_kinds_have_the_short_names_that_the_server_gives_them() -> None:
    with Cluster(seed=1, nodes=0) as cluster:
        names = {
            word: cluster.run(find_kind(cluster.client, word)).name
            for word in ("cm", "sa", "ing", "crd", "po")
        }
        assert names == {
            "cm": "ConfigMap",
            "sa": "ServiceAccount",
            "ing": "Ingress",
            "crd": "CustomResourceDefinition",
            "po": "Pod",
        }
        with pytest.raises(UnknownKind, match="the server has no kind 'gadget'"):
            cluster.run(find_kind(cluster.client, "gadget"))


KNATIVE = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: services.serving.knative.dev}
spec:
  group: serving.knative.dev
  names: {kind: Service, plural: services, singular: service}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


def test_a_custom_kind_with_the_name_of_another_is_told_apart_by_its_group() -> None:
    with Cluster(seed=1, nodes=0) as cluster:
        cluster.apply(KNATIVE)
        cluster.settle()
        cluster.apply("{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: web}}")
        told = cluster.run(
            ask(cluster.client, Question("services.serving.knative.dev", "web", "default"), cluster.now)
        )
    assert told.summary == "Service.serving.knative.dev default/web: it exists."
    assert told.well
