"""``/configz``, the configuration under the names of KubeControllerManagerConfiguration, and ``/flagz``, all flags."""

from __future__ import annotations

from typing import Any

from steersman.manager.controller_selection import KNOWN
from steersman.manager.flag_table import FLAGS
from steersman.manager.flag_types import DURATION, Type
from steersman.manager.migration import Migration
from steersman.manager.options import Options

GROUP = "kubecontrollermanager.config.k8s.io"


def _signer(name: str) -> dict[str, str]:
    return {
        "CertFile": f"--cluster-signing-{name}-cert-file",
        "KeyFile": f"--cluster-signing-{name}-key-file",
    }


_FORM: dict[str, Any] = {
    "Generic": {
        "Port": 0,
        "Address": "0.0.0.0",
        "MinResyncPeriod": "--min-resync-period",
        "ClientConnection": {
            "kubeconfig": "--kubeconfig",
            "acceptContentTypes": "",
            "contentType": "--kube-api-content-type",
            "qps": "--kube-api-qps",
            "burst": "--kube-api-burst",
        },
        "ControllerStartInterval": "--controller-start-interval",
        "LeaderElection": {
            "leaderElect": "--leader-elect",
            "leaseDuration": "--leader-elect-lease-duration",
            "renewDeadline": "--leader-elect-renew-deadline",
            "retryPeriod": "--leader-elect-retry-period",
            "resourceLock": "--leader-elect-resource-lock",
            "resourceName": "--leader-elect-resource-name",
            "resourceNamespace": "--leader-elect-resource-namespace",
        },
        "Controllers": "--controllers",
        "Debugging": {
            "enableProfiling": "--profiling",
            "enableContentionProfiling": "--contention-profiling",
        },
        "LeaderMigrationEnabled": "--enable-leader-migration",
    },
    "KubeCloudShared": {
        "CloudProvider": {"Name": "--cloud-provider", "CloudConfigFile": "--cloud-config"},
        "ExternalCloudVolumePlugin": "--external-cloud-volume-plugin",
        "UseServiceAccountCredentials": "--use-service-account-credentials",
        "AllowUntaggedCloud": "--allow-untagged-cloud",
        "RouteReconciliationPeriod": "--route-reconciliation-period",
        "NodeMonitorPeriod": "--node-monitor-period",
        "ClusterName": "--cluster-name",
        "ClusterCIDR": "--cluster-cidr",
        "AllocateNodeCIDRs": "--allocate-node-cidrs",
        "CIDRAllocatorType": "--cidr-allocator-type",
        "ConfigureCloudRoutes": "--configure-cloud-routes",
        "NodeSyncPeriod": "--node-sync-period",
    },
    "AttachDetachController": {
        "DisableAttachDetachReconcilerSync": "--disable-attach-detach-reconcile-sync",
        "ReconcilerSyncLoopPeriod": "--attach-detach-reconcile-sync-period",
        "disableForceDetachOnTimeout": "--disable-force-detach-on-timeout",
    },
    "CSRSigningController": {
        "ClusterSigningCertFile": "--cluster-signing-cert-file",
        "ClusterSigningKeyFile": "--cluster-signing-key-file",
        "KubeletServingSignerConfiguration": _signer("kubelet-serving"),
        "KubeletClientSignerConfiguration": _signer("kubelet-client"),
        "KubeAPIServerClientSignerConfiguration": _signer("kube-apiserver-client"),
        "LegacyUnknownSignerConfiguration": _signer("legacy-unknown"),
        "ClusterSigningDuration": "--cluster-signing-duration",
    },
    "DaemonSetController": {"ConcurrentDaemonSetSyncs": "--concurrent-daemonset-syncs"},
    "DeploymentController": {"ConcurrentDeploymentSyncs": "--concurrent-deployment-syncs"},
    "StatefulSetController": {"ConcurrentStatefulSetSyncs": "--concurrent-statefulset-syncs"},
    "DeprecatedController": {},
    "EndpointController": {
        "ConcurrentEndpointSyncs": "--concurrent-endpoint-syncs",
        "EndpointUpdatesBatchPeriod": "--endpoint-updates-batch-period",
    },
    "EndpointSliceController": {
        "ConcurrentServiceEndpointSyncs": "--concurrent-service-endpoint-syncs",
        "MaxEndpointsPerSlice": "--max-endpoints-per-slice",
        "EndpointUpdatesBatchPeriod": "--endpointslice-updates-batch-period",
    },
    "EndpointSliceMirroringController": {
        "MirroringConcurrentServiceEndpointSyncs": "--mirroring-concurrent-service-endpoint-syncs",
        "MirroringMaxEndpointsPerSubset": "--mirroring-max-endpoints-per-subset",
        "MirroringEndpointUpdatesBatchPeriod": "--mirroring-endpointslice-updates-batch-period",
    },
    "EphemeralVolumeController": {"ConcurrentEphemeralVolumeSyncs": "--concurrent-ephemeralvolume-syncs"},
    "GarbageCollectorController": {
        "EnableGarbageCollector": "--enable-garbage-collector",
        "ConcurrentGCSyncs": "--concurrent-gc-syncs",
        "GCIgnoredResources": [
            {"Group": "", "Resource": "events"},
            {"Group": "events.k8s.io", "Resource": "events"},
        ],
    },
    "HPAController": {
        "ConcurrentHorizontalPodAutoscalerSyncs": "--concurrent-horizontal-pod-autoscaler-syncs",
        "HorizontalPodAutoscalerSyncPeriod": "--horizontal-pod-autoscaler-sync-period",
        "HorizontalPodAutoscalerDownscaleStabilizationWindow": "--horizontal-pod-autoscaler-downscale-stabilization",
        "HorizontalPodAutoscalerTolerance": "--horizontal-pod-autoscaler-tolerance",
        "HorizontalPodAutoscalerCPUInitializationPeriod": "--horizontal-pod-autoscaler-cpu-initialization-period",
        "HorizontalPodAutoscalerInitialReadinessDelay": "--horizontal-pod-autoscaler-initial-readiness-delay",
    },
    "JobController": {"ConcurrentJobSyncs": "--concurrent-job-syncs"},
    "CronJobController": {"ConcurrentCronJobSyncs": "--concurrent-cron-job-syncs"},
    "LegacySATokenCleaner": {"CleanUpPeriod": "--legacy-service-account-token-clean-up-period"},
    "NamespaceController": {
        "NamespaceSyncPeriod": "--namespace-sync-period",
        "ConcurrentNamespaceSyncs": "--concurrent-namespace-syncs",
    },
    "NodeIPAMController": {
        "ServiceCIDR": "--service-cluster-ip-range",
        "SecondaryServiceCIDR": "",
        "NodeCIDRMaskSize": "--node-cidr-mask-size",
        "NodeCIDRMaskSizeIPv4": "--node-cidr-mask-size-ipv4",
        "NodeCIDRMaskSizeIPv6": "--node-cidr-mask-size-ipv6",
    },
    "NodeLifecycleController": {
        "NodeEvictionRate": "--node-eviction-rate",
        "SecondaryNodeEvictionRate": "--secondary-node-eviction-rate",
        "NodeStartupGracePeriod": "--node-startup-grace-period",
        "NodeMonitorGracePeriod": "--node-monitor-grace-period",
        "PodEvictionTimeout": "0s",
        "LargeClusterSizeThreshold": "--large-cluster-size-threshold",
        "UnhealthyZoneThreshold": "--unhealthy-zone-threshold",
    },
    "PersistentVolumeBinderController": {
        "PVClaimBinderSyncPeriod": "--pvclaimbinder-sync-period",
        "VolumeConfiguration": {
            "EnableHostPathProvisioning": "--enable-hostpath-provisioner",
            "EnableDynamicProvisioning": "--enable-dynamic-provisioning",
            "PersistentVolumeRecyclerConfiguration": {
                "MaximumRetry": 3,
                "MinimumTimeoutNFS": "--pv-recycler-minimum-timeout-nfs",
                "PodTemplateFilePathNFS": "--pv-recycler-pod-template-filepath-nfs",
                "IncrementTimeoutNFS": "--pv-recycler-increment-timeout-nfs",
                "PodTemplateFilePathHostPath": "--pv-recycler-pod-template-filepath-hostpath",
                "MinimumTimeoutHostPath": "--pv-recycler-minimum-timeout-hostpath",
                "IncrementTimeoutHostPath": "--pv-recycler-timeout-increment-hostpath",
            },
            "FlexVolumePluginDir": "--flex-volume-plugin-dir",
        },
    },
    "PodGCController": {"TerminatedPodGCThreshold": "--terminated-pod-gc-threshold"},
    "ReplicaSetController": {"ConcurrentRSSyncs": "--concurrent-replicaset-syncs"},
    "ReplicationController": {"ConcurrentRCSyncs": "--concurrent-rc-syncs"},
    "ResourceQuotaController": {
        "ResourceQuotaSyncPeriod": "--resource-quota-sync-period",
        "ConcurrentResourceQuotaSyncs": "--concurrent-resource-quota-syncs",
    },
    "SAController": {
        "ServiceAccountKeyFile": "--service-account-private-key-file",
        "ConcurrentSATokenSyncs": "--concurrent-serviceaccount-token-syncs",
        "RootCAFile": "--root-ca-file",
    },
    "ServiceController": {"ConcurrentServiceSyncs": "--concurrent-service-syncs"},
    "TTLAfterFinishedController": {"ConcurrentTTLSyncs": "--concurrent-ttl-after-finished-syncs"},
    "ValidatingAdmissionPolicyStatusController": {
        "ConcurrentPolicySyncs": "--concurrent-validating-admission-policy-status-syncs"
    },
    "DeviceTaintEvictionController": {"ConcurrentSyncs": "--concurrent-device-taint-eviction-syncs"},
    "ResourceClaimController": {"ConcurrentSyncs": "--concurrent-resourceclaim-syncs"},
}
"""Template of the document. A string ``--NAME`` is replaced by the value of that flag."""


def configz(options: Options, migration: Migration | None = None) -> dict[str, Any]:
    """The document served at ``/configz``. ``migration`` is the leader migration configuration, if enabled."""
    types = {f"--{flag.name}": flag.type for flag in FLAGS}

    def filled(form: Any) -> Any:
        if isinstance(form, dict):
            return {key: filled(part) for key, part in form.items()}
        if isinstance(form, str) and form in types:
            return _plain(types[form], options.values[form[2:]])
        return form

    document = filled(_FORM)
    generic = document["Generic"]
    generic["Controllers"] = [_canonical(word) for word in generic["Controllers"]]
    generic["LeaderMigration"] = _migration(migration)
    addresses = document["NodeIPAMController"]
    addresses["ServiceCIDR"], _, addresses["SecondaryServiceCIDR"] = addresses["ServiceCIDR"].partition(",")
    head = {"kind": "KubeControllerManagerConfiguration", "apiVersion": f"{GROUP}/v1alpha1"}
    return {GROUP: head | document}


def _plain(type: Type, value: Any) -> Any:
    """A value as JSON, with durations as strings."""
    if type is DURATION:
        return type.write(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return list(value) if isinstance(value, tuple) else value


def _canonical(word: str) -> str:
    """An entry of ``--controllers`` with a controller's current name in place of an alias."""
    minus, bare = ("-", word[1:]) if word.startswith("-") else ("", word)
    return minus + next((name for name, aliases in KNOWN.items() if bare in aliases), bare)


def _migration(migration: Migration | None) -> dict[str, Any]:
    if migration is None:
        return {"leaderName": "", "resourceLock": "", "controllerLeaders": None}
    leaders = [{"name": one.name, "component": one.component} for one in migration.controllerLeaders]
    return {"leaderName": migration.leaderName, "resourceLock": "leases", "controllerLeaders": leaders}


def flagz(options: Options) -> dict[str, str]:
    """The value of every flag, sorted by name."""
    values = {flag.name: flag.type.write(options.values[flag.name]) for flag in FLAGS}
    return dict(sorted(values.items()))
