"""Views of API objects: each kind with the fields that some controller reads.

Caches decode objects as these views, so that other fields are never allocated. mypy refuses a controller that reads
a field the view does not have: to use another field, add it here. `steersman.api.generated` has every field of every
kind; its objects have all fields of the view and can replace it, as those of the in-process server do.

The most common kinds are in this module, the others in one module per family.

Pod templates pass through controllers unchanged, so their spec is `Opaque`: raw JSON if it was received over HTTP, a
full struct if it came from the in-process server.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from steersman.api.kinds.struct import EMPTY as EMPTY
from steersman.api.kinds.struct import Opaque as Opaque
from steersman.api.kinds.struct import Struct as Struct
from steersman.api.kinds.volume_sources import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CinderVolumeSource,
    CSIVolumeSource,
    FCVolumeSource,
    GCEPersistentDiskVolumeSource,
    ISCSIVolumeSource,
    PortworxVolumeSource,
    VsphereVirtualDiskVolumeSource,
)
from steersman.api.scheme import Key, Kind, register

# -- metadata ---------------------------------------------------------------------------------


class OwnerReference(Struct, frozen=True):
    apiVersion: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    blockOwnerDeletion: bool | None = None


class ObjectMeta(Struct, frozen=True):
    """An object's metadata without ``managedFields``, which are two fifths of a pod."""

    name: str = ""
    generateName: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""
    generation: int = 0
    creationTimestamp: datetime | None = None
    deletionTimestamp: datetime | None = None
    deletionGracePeriodSeconds: int | None = None
    labels: Mapping[str, str] = EMPTY
    annotations: Mapping[str, str] = EMPTY
    ownerReferences: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class Object(Struct, frozen=True):
    """Base of all kinds. As a type of its own it decodes the metadata of any resource."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> Key:
        return Key(self.metadata.namespace, self.metadata.name)


class ObjectReference(Struct, frozen=True):
    """Names an object from a field of another."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    apiVersion: str = ""
    resourceVersion: str = ""
    fieldPath: str = ""


class Condition(Struct, frozen=True):
    """A condition of any kind; each kind uses some of these fields."""

    type: str = ""
    status: str = ""
    observedGeneration: int = 0
    lastProbeTime: datetime | None = None
    lastUpdateTime: datetime | None = None
    lastTransitionTime: datetime | None = None
    reason: str = ""
    message: str = ""


class LabelSelectorRequirement(Struct, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Struct, frozen=True):
    matchLabels: Mapping[str, str] = EMPTY
    matchExpressions: tuple[LabelSelectorRequirement, ...] = ()


# -- pods -------------------------------------------------------------------------------------


class ResourceRequirements(Struct, frozen=True):
    requests: Mapping[str, str] = EMPTY
    limits: Mapping[str, str] = EMPTY


class ContainerPort(Struct, frozen=True):
    name: str = ""
    containerPort: int = 0
    protocol: str = ""


class Container(Struct, frozen=True):
    name: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()


class InitContainer(Struct, frozen=True):
    name: str = ""
    ports: tuple[ContainerPort, ...] = ()
    restartPolicy: str | None = None
    resources: ResourceRequirements = ResourceRequirements()


class PersistentVolumeClaimVolumeSource(Struct, frozen=True):
    claimName: str = ""


class PersistentVolumeClaimTemplate(Struct, frozen=True):
    """The claim of an ephemeral volume. Its spec is passed on unchanged."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Opaque = Opaque(b"{}")


class EphemeralVolumeSource(Struct, frozen=True):
    volumeClaimTemplate: PersistentVolumeClaimTemplate | None = None


class Volume(Struct, frozen=True):
    name: str = ""
    persistentVolumeClaim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    awsElasticBlockStore: AWSElasticBlockStoreVolumeSource | None = None
    azureDisk: AzureDiskVolumeSource | None = None
    azureFile: AzureFileVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    fc: FCVolumeSource | None = None
    gcePersistentDisk: GCEPersistentDiskVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    portworxVolume: PortworxVolumeSource | None = None
    vsphereVolume: VsphereVirtualDiskVolumeSource | None = None


class Toleration(Struct, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    tolerationSeconds: int | None = None


class PodResourceClaim(Struct, frozen=True):
    """A claim of the pod: one that exists, or one made from a template."""

    name: str = ""
    resourceClaimName: str | None = None
    resourceClaimTemplateName: str | None = None


class PodSchedulingGroup(Struct, frozen=True):
    podGroupName: str | None = None


class PodSpec(Struct, frozen=True):
    nodeName: str = ""
    hostname: str = ""
    subdomain: str = ""
    hostNetwork: bool = False
    restartPolicy: str = ""
    tolerations: tuple[Toleration, ...] = ()
    volumes: tuple[Volume, ...] = ()
    containers: tuple[Container, ...] = ()
    initContainers: tuple[InitContainer, ...] = ()
    activeDeadlineSeconds: int | None = None
    affinity: Opaque = Opaque(b"null")
    """Not ``Opaque | None``, as which msgspec would decode only null."""
    overhead: Mapping[str, str] = EMPTY
    priorityClassName: str = ""
    resources: ResourceRequirements | None = None
    """Pod-level resources."""
    resourceClaims: tuple[PodResourceClaim, ...] = ()
    schedulingGroup: PodSchedulingGroup | None = None


class ContainerStateTerminated(Struct, frozen=True):
    exitCode: int = 0
    finishedAt: datetime | None = None


class ContainerStateWaiting(Struct, frozen=True):
    reason: str = ""


class ContainerState(Struct, frozen=True):
    terminated: ContainerStateTerminated | None = None
    waiting: ContainerStateWaiting | None = None


class ContainerStatus(Struct, frozen=True):
    name: str = ""
    restartCount: int = 0
    state: ContainerState = ContainerState()


class PodIP(Struct, frozen=True):
    ip: str = ""


class PodResourceClaimStatus(Struct, frozen=True):
    """The claim that was made for a claim of the pod; no name: none is needed."""

    name: str = ""
    resourceClaimName: str | None = None


class PodExtendedResourceClaimStatus(Struct, frozen=True):
    resourceClaimName: str = ""


class PodStatus(Struct, frozen=True):
    phase: str = ""
    message: str = ""
    reason: str = ""
    hostIP: str = ""
    podIP: str = ""
    podIPs: tuple[PodIP, ...] = ()
    startTime: datetime | None = None
    conditions: tuple[Condition, ...] = ()
    containerStatuses: tuple[ContainerStatus, ...] = ()
    initContainerStatuses: tuple[ContainerStatus, ...] = ()
    ephemeralContainerStatuses: tuple[ContainerStatus, ...] = ()
    resourceClaimStatuses: tuple[PodResourceClaimStatus, ...] = ()
    extendedResourceClaimStatus: PodExtendedResourceClaimStatus | None = None


class Pod(Object, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplateSpec(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Opaque = Opaque(b"{}")


class NewPod(Struct, frozen=True):
    """A pod as a workload controller creates it: its own metadata, and the template's spec unchanged."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Opaque = Opaque(b"{}")


# -- workloads --------------------------------------------------------------------------------


class ReplicaSetSpec(Struct, frozen=True):
    replicas: int | None = None
    minReadySeconds: int = 0
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class ReplicaSetStatus(Struct, frozen=True):
    """``replicas`` has no default, so that it is always encoded, as upstream does."""

    replicas: int
    fullyLabeledReplicas: int = 0
    readyReplicas: int = 0
    availableReplicas: int = 0
    terminatingReplicas: int | None = None
    observedGeneration: int = 0
    conditions: tuple[Condition, ...] = ()


class ReplicaSet(Object, frozen=True):
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus(replicas=0)


class ReplicationControllerSpec(Struct, frozen=True):
    replicas: int | None = None
    minReadySeconds: int = 0
    selector: Mapping[str, str] = EMPTY
    template: PodTemplateSpec | None = None


class ReplicationControllerStatus(Struct, frozen=True):
    replicas: int
    fullyLabeledReplicas: int = 0
    readyReplicas: int = 0
    availableReplicas: int = 0
    observedGeneration: int = 0
    conditions: tuple[Condition, ...] = ()


class ReplicationController(Object, frozen=True):
    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: ReplicationControllerStatus = ReplicationControllerStatus(replicas=0)


class RollingUpdate(Struct, frozen=True):
    maxUnavailable: int | str | None = None
    maxSurge: int | str | None = None


class DeploymentStrategy(Struct, frozen=True):
    type: str = ""
    rollingUpdate: RollingUpdate | None = None


class DeploymentSpec(Struct, frozen=True):
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    strategy: DeploymentStrategy = DeploymentStrategy()
    minReadySeconds: int = 0
    revisionHistoryLimit: int | None = None
    paused: bool = False
    progressDeadlineSeconds: int | None = None


class DeploymentStatus(Struct, frozen=True):
    observedGeneration: int = 0
    replicas: int = 0
    updatedReplicas: int = 0
    readyReplicas: int = 0
    availableReplicas: int = 0
    unavailableReplicas: int = 0
    terminatingReplicas: int | None = None
    conditions: tuple[Condition, ...] = ()
    collisionCount: int | None = None


class Deployment(Object, frozen=True):
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class OnExitCodes(Struct, frozen=True):
    containerName: str | None = None
    operator: str = ""
    values: tuple[int, ...] = ()


class OnPodCondition(Struct, frozen=True):
    type: str = ""
    status: str = ""


class PodFailurePolicyRule(Struct, frozen=True):
    action: str = ""
    onExitCodes: OnExitCodes | None = None
    onPodConditions: tuple[OnPodCondition, ...] = ()


class PodFailurePolicy(Struct, frozen=True):
    rules: tuple[PodFailurePolicyRule, ...] | None = None


class SuccessPolicyRule(Struct, frozen=True):
    succeededIndexes: str | None = None
    succeededCount: int | None = None


class SuccessPolicy(Struct, frozen=True):
    rules: tuple[SuccessPolicyRule, ...] | None = ()


class JobSpec(Struct, frozen=True):
    parallelism: int | None = None
    completions: int | None = None
    completionMode: str | None = None
    activeDeadlineSeconds: int | None = None
    backoffLimit: int | None = None
    backoffLimitPerIndex: int | None = None
    maxFailedIndexes: int | None = None
    podFailurePolicy: PodFailurePolicy | None = None
    podReplacementPolicy: str | None = None
    successPolicy: SuccessPolicy | None = None
    suspend: bool | None = None
    managedBy: str | None = None
    ttlSecondsAfterFinished: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class UncountedTerminatedPods(Struct, frozen=True):
    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(Struct, frozen=True):
    """All fields, because the status is updated as a whole."""

    startTime: datetime | None = None
    completionTime: datetime | None = None
    conditions: tuple[Condition, ...] = ()
    active: int = 0
    ready: int | None = None
    terminating: int | None = None
    succeeded: int = 0
    failed: int = 0
    completedIndexes: str = ""
    failedIndexes: str | None = None
    uncountedTerminatedPods: UncountedTerminatedPods | None = None


class Job(Object, frozen=True):
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


# -- cluster ----------------------------------------------------------------------------------


class NamespaceStatus(Struct, frozen=True):
    phase: str = ""


class Namespace(Object, frozen=True):
    status: NamespaceStatus = NamespaceStatus()


class SecretReference(Struct, frozen=True):
    name: str = ""


class ServiceAccount(Object, frozen=True):
    secrets: tuple[SecretReference, ...] = ()


class LeaseSpec(Struct, frozen=True):
    holderIdentity: str | None = None
    leaseDurationSeconds: int | None = None
    acquireTime: datetime | None = None
    renewTime: datetime | None = None
    leaseTransitions: int | None = None
    strategy: str | None = None
    preferredHolder: str | None = None


class Lease(Object, frozen=True):
    spec: LeaseSpec = LeaseSpec()


PODS = register(Kind("", "v1", "Pod", "pods", True, Pod))
REPLICATIONCONTROLLERS = register(
    Kind("", "v1", "ReplicationController", "replicationcontrollers", True, ReplicationController)
)
REPLICASETS = register(Kind("apps", "v1", "ReplicaSet", "replicasets", True, ReplicaSet))
DEPLOYMENTS = register(Kind("apps", "v1", "Deployment", "deployments", True, Deployment))
JOBS = register(Kind("batch", "v1", "Job", "jobs", True, Job))
NAMESPACES = register(Kind("", "v1", "Namespace", "namespaces", False, Namespace))
SERVICEACCOUNTS = register(Kind("", "v1", "ServiceAccount", "serviceaccounts", True, ServiceAccount))
LEASES = register(Kind("coordination.k8s.io", "v1", "Lease", "leases", True, Lease, read_interval=0.25))
NEW_PODS = register(PODS.as_(NewPod))
