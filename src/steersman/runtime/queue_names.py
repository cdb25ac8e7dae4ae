"""What upstream calls the queues of controllers in ``workqueue_*``, so that dashboards keep working."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

QUEUES: Mapping[str, str] = MappingProxyType(
    {
        "bootstrap-signer-controller": "bootstrap_signer_queue",
        "certificatesigningrequest-approving-controller": "certificate",
        "certificatesigningrequest-signing-controller": "certificate",
        "clusterrole-aggregation-controller": "ClusterRoleAggregator",
        "cronjob-controller": "cronjob",
        "daemonset-controller": "daemonset",
        "deployment-controller": "deployment",
        "disruption-controller": "disruption",
        "endpoints-controller": "endpoint",
        "endpointslice-controller": "endpoint_slice",
        "endpointslice-mirroring-controller": "endpoint_slice_mirroring",
        "ephemeral-volume-controller": "ephemeral_volume",
        "garbage-collector-controller": "garbage_collector_attempt_to_delete",
        "horizontal-pod-autoscaler-controller": "horizontalpodautoscaler",
        "job-controller": "job",
        "kube-apiserver-serving-clustertrustbundle-publisher-controller": (
            "ca_cert_publisher_cluster_trust_bundles"
        ),
        "namespace-controller": "namespace",
        "node-lifecycle-controller": "node_lifecycle_controller",
        "persistentvolume-attach-detach-controller": "pvcs",
        "persistentvolume-binder-controller": "claims",
        "persistentvolume-expander-controller": "volume_expand",
        "persistentvolume-protection-controller": "pvprotection",
        "persistentvolumeclaim-protection-controller": "pvcprotection",
        "pod-garbage-collector-controller": "orphaned_pods_nodes",
        "podgroup-protection-controller": "podgroupprotection",
        "replicaset-controller": "replicaset",
        "replicationcontroller-controller": "replicationmanager",
        "resourceclaim-controller": "resource_claim",
        "resourcequota-controller": "resourcequota_primary",
        "root-ca-certificate-publisher-controller": "root_ca_cert_publisher",
        "selinux-warning-controller": "selinux_warning",
        "service-cidr-controller": "ipaddresses",
        "service-lb-controller": "service",
        "serviceaccount-controller": "serviceaccount",
        "serviceaccount-token-controller": "serviceaccount_tokens_service",
        "statefulset-controller": "statefulset",
        "storageversion-garbage-collector-controller": "storage_version_garbage_collector_storageversions",
        "taint-eviction-controller": "noexec_taint_pod",
        "token-cleaner-controller": "token_cleaner",
        "ttl-after-finished-controller": "ttl_jobs_to_delete",
        "ttl-controller": "ttlcontroller",
        "validatingadmissionpolicy-status-controller": "validatingadmissionpolicy-status",
        "volumeattributesclass-protection-controller": "vacprotection",
    }
)
"""The name of a controller's queue. One that upstream does not name is called as the controller is."""
