"""Which control loop owns which kind: the loop to name when an object of that kind does not change."""

from __future__ import annotations

SCHEDULER = "the scheduler"
KUBELET = "the kubelet"

_OWNERS = {
    "Deployment": "deployment-controller",
    "ReplicaSet": "replicaset-controller",
    "ReplicationController": "replicationcontroller-controller",
    "StatefulSet": "statefulset-controller",
    "DaemonSet": "daemonset-controller",
    "Job": "job-controller",
    "CronJob": "cronjob-controller",
    "HorizontalPodAutoscaler": "horizontal-pod-autoscaler-controller",
    "PodDisruptionBudget": "disruption-controller",
    "Service": "endpointslice-controller",
    "PersistentVolumeClaim": "persistentvolume-binder-controller",
    "PersistentVolume": "persistentvolume-binder-controller",
    "Namespace": "namespace-controller",
    "Node": "node-lifecycle-controller",
    "ResourceQuota": "resourcequota-controller",
    "ResourceClaim": "resourceclaim-controller",
}


def controller_of_kind(kind: str) -> str:
    """The name of the controller that steers objects of a kind; empty if none of ours does."""
    return _OWNERS.get(kind, "")


FINALIZERS = {
    "kubernetes.io/pvc-protection": "persistentvolumeclaim-protection-controller",
    "kubernetes.io/pv-protection": "persistentvolume-protection-controller",
    "kubernetes.io/vac-protection": "volumeattributesclass-protection-controller",
    "foregroundDeletion": "garbage-collector-controller",
    "orphan": "garbage-collector-controller",
    "batch.kubernetes.io/job-tracking": "job-controller",
    "service.kubernetes.io/load-balancer-cleanup": "service-lb-controller",
    "kubernetes": "namespace-controller",
    "resource.kubernetes.io/delete-protection": "resourceclaim-controller",
    "customresourcecleanup.apiextensions.k8s.io": "kube-apiserver",
}
"""The holders of the finalizers that Kubernetes itself sets."""


def holder(finalizer: str) -> str:
    """The controller that removes a finalizer: one of Kubernetes, or the owner of its domain."""
    known = FINALIZERS.get(finalizer)
    if known:
        return known
    domain = finalizer.partition("/")[0]
    return f"the controller of {domain}" if "." in domain else f"the controller that set {finalizer}"
