"""The types of core/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Annotated

import msgspec

from steersman.api.generated import meta_v1
from steersman.api.generated.base import (
    AnyCondition,
    Atomic,
    IntOrString,
    MicroTime,
    Quantity,
    Time,
    none,
    zero,
)
from steersman.api.generated.merge import ATOMIC, SET, Merge
from steersman.api.kinds import EMPTY, Struct


class AWSElasticBlockStoreVolumeSource(Struct, frozen=True):
    fsType: str = ""
    partition: int = 0
    readOnly: bool = False
    volumeID: str = msgspec.field(default_factory=str)


class Affinity(Struct, frozen=True):
    nodeAffinity: NodeAffinity | None = None
    podAffinity: PodAffinity | None = None
    podAntiAffinity: PodAntiAffinity | None = None


class AppArmorProfile(Struct, frozen=True):
    localhostProfile: str | None = None
    type: str = msgspec.field(default_factory=str)


class AttachedVolume(Struct, frozen=True):
    devicePath: str = msgspec.field(default_factory=str)
    name: str = msgspec.field(default_factory=str)


class AzureDiskVolumeSource(Struct, frozen=True):
    cachingMode: str | None = None
    diskName: str = msgspec.field(default_factory=str)
    diskURI: str = msgspec.field(default_factory=str)
    fsType: str | None = None
    kind: str | None = None
    readOnly: bool | None = None


class AzureFilePersistentVolumeSource(Struct, frozen=True):
    readOnly: bool = False
    secretName: str = msgspec.field(default_factory=str)
    secretNamespace: str | None = msgspec.field(default_factory=NoneType)
    shareName: str = msgspec.field(default_factory=str)


class AzureFileVolumeSource(Struct, frozen=True):
    readOnly: bool = False
    secretName: str = msgspec.field(default_factory=str)
    shareName: str = msgspec.field(default_factory=str)


class ObjectReference(Atomic, frozen=True):
    apiVersion: str = ""
    fieldPath: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    resourceVersion: str = ""
    uid: str = ""


class Binding(meta_v1.Object, frozen=True):
    target: ObjectReference = msgspec.field(default_factory=ObjectReference)


class CSIPersistentVolumeSource(Struct, frozen=True):
    controllerExpandSecretRef: SecretReference | None = None
    controllerPublishSecretRef: SecretReference | None = None
    driver: str = msgspec.field(default_factory=str)
    fsType: str = ""
    nodeExpandSecretRef: SecretReference | None = None
    nodePublishSecretRef: SecretReference | None = None
    nodeStageSecretRef: SecretReference | None = None
    readOnly: bool = False
    volumeAttributes: Mapping[str, str] = EMPTY
    volumeHandle: str = msgspec.field(default_factory=str)


class CSIVolumeSource(Struct, frozen=True):
    driver: str = msgspec.field(default_factory=str)
    fsType: str | None = None
    nodePublishSecretRef: LocalObjectReference | None = None
    readOnly: bool | None = None
    volumeAttributes: Mapping[str, str] = EMPTY


class Capabilities(Struct, frozen=True):
    add: Annotated[tuple[str, ...], ATOMIC] = ()
    drop: Annotated[tuple[str, ...], ATOMIC] = ()


class CephFSPersistentVolumeSource(Struct, frozen=True):
    monitors: Annotated[tuple[str, ...], ATOMIC] = msgspec.field(default_factory=none)
    path: str = ""
    readOnly: bool = False
    secretFile: str = ""
    secretRef: SecretReference | None = None
    user: str = ""


class CephFSVolumeSource(Struct, frozen=True):
    monitors: Annotated[tuple[str, ...], ATOMIC] = msgspec.field(default_factory=none)
    path: str = ""
    readOnly: bool = False
    secretFile: str = ""
    secretRef: LocalObjectReference | None = None
    user: str = ""


class CinderPersistentVolumeSource(Struct, frozen=True):
    fsType: str = ""
    readOnly: bool = False
    secretRef: SecretReference | None = None
    volumeID: str = msgspec.field(default_factory=str)


class CinderVolumeSource(Struct, frozen=True):
    fsType: str = ""
    readOnly: bool = False
    secretRef: LocalObjectReference | None = None
    volumeID: str = msgspec.field(default_factory=str)


class ClientIPConfig(Struct, frozen=True):
    timeoutSeconds: int | None = None


class ClusterTrustBundleProjection(Struct, frozen=True):
    labelSelector: meta_v1.LabelSelector | None = None
    name: str | None = None
    optional: bool | None = None
    path: str = msgspec.field(default_factory=str)
    signerName: str | None = None


class ComponentCondition(AnyCondition, frozen=True):
    error: str = ""
    message: str = ""
    status: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)


class ComponentStatus(meta_v1.Object, frozen=True):
    conditions: Annotated[
        tuple[ComponentCondition, ...], Merge(strategy="merge", key="type", list_type="map", keys=("type",))
    ] = ()


class ConfigMap(meta_v1.Object, frozen=True):
    binaryData: Mapping[str, str] = EMPTY
    data: Mapping[str, str] = EMPTY
    immutable: bool | None = None


class ConfigMapEnvSource(Struct, frozen=True):
    name: str = ""
    optional: bool | None = None


class ConfigMapKeySelector(Atomic, frozen=True):
    key: str = msgspec.field(default_factory=str)
    name: str = ""
    optional: bool | None = None


class ConfigMapNodeConfigSource(Struct, frozen=True):
    kubeletConfigKey: str = msgspec.field(default_factory=str)
    name: str = msgspec.field(default_factory=str)
    namespace: str = msgspec.field(default_factory=str)
    resourceVersion: str = ""
    uid: str = ""


class ConfigMapProjection(Struct, frozen=True):
    items: Annotated[tuple[KeyToPath, ...], ATOMIC] = ()
    name: str = ""
    optional: bool | None = None


class ConfigMapVolumeSource(Struct, frozen=True):
    defaultMode: int | None = None
    items: Annotated[tuple[KeyToPath, ...], ATOMIC] = ()
    name: str = ""
    optional: bool | None = None


class ResourceRequirements(Struct, frozen=True):
    claims: Annotated[tuple[ResourceClaim, ...], Merge(list_type="map", keys=("name",))] = ()
    limits: Mapping[str, Quantity] = EMPTY
    requests: Mapping[str, Quantity] = EMPTY


class Container(Struct, frozen=True):
    args: Annotated[tuple[str, ...], ATOMIC] = ()
    command: Annotated[tuple[str, ...], ATOMIC] = ()
    env: Annotated[
        tuple[EnvVar, ...], Merge(strategy="merge", key="name", list_type="map", keys=("name",))
    ] = ()
    envFrom: Annotated[tuple[EnvFromSource, ...], ATOMIC] = ()
    image: str = ""
    imagePullPolicy: str = ""
    lifecycle: Lifecycle | None = None
    livenessProbe: Probe | None = None
    name: str = msgspec.field(default_factory=str)
    ports: Annotated[
        tuple[ContainerPort, ...],
        Merge(
            strategy="merge",
            key="containerPort",
            list_type="map",
            keys=("containerPort", "protocol"),
            defaults=(("protocol", "TCP"),),
        ),
    ] = ()
    readinessProbe: Probe | None = None
    resizePolicy: Annotated[tuple[ContainerResizePolicy, ...], ATOMIC] = ()
    resources: ResourceRequirements = msgspec.field(default_factory=ResourceRequirements)
    restartPolicy: str | None = None
    restartPolicyRules: Annotated[tuple[ContainerRestartRule, ...], ATOMIC] = ()
    securityContext: SecurityContext | None = None
    startupProbe: Probe | None = None
    stdin: bool = False
    stdinOnce: bool = False
    terminationMessagePath: str = ""
    terminationMessagePolicy: str = ""
    tty: bool = False
    volumeDevices: Annotated[
        tuple[VolumeDevice, ...],
        Merge(strategy="merge", key="devicePath", list_type="map", keys=("devicePath",)),
    ] = ()
    volumeMounts: Annotated[
        tuple[VolumeMount, ...],
        Merge(strategy="merge", key="mountPath", list_type="map", keys=("mountPath",)),
    ] = ()
    workingDir: str = ""


class ContainerExtendedResourceRequest(Struct, frozen=True):
    containerName: str = msgspec.field(default_factory=str)
    requestName: str = msgspec.field(default_factory=str)
    resourceName: str = msgspec.field(default_factory=str)


class ContainerImage(Struct, frozen=True):
    names: Annotated[tuple[str, ...] | None, ATOMIC] = msgspec.field(default_factory=NoneType)
    sizeBytes: int = 0


class ContainerPort(Struct, frozen=True):
    containerPort: int = msgspec.field(default_factory=int)
    hostIP: str = ""
    hostPort: int = 0
    name: str = ""
    protocol: str = ""


class ContainerResizePolicy(Struct, frozen=True):
    resourceName: str = msgspec.field(default_factory=str)
    restartPolicy: str = msgspec.field(default_factory=str)


class ContainerRestartRule(Struct, frozen=True):
    action: str = ""
    exitCodes: ContainerRestartRuleOnExitCodes | None = None


class ContainerRestartRuleOnExitCodes(Struct, frozen=True):
    operator: str = ""
    values: Annotated[tuple[int, ...], SET] = ()


class ContainerState(Struct, frozen=True):
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None
    waiting: ContainerStateWaiting | None = None


class ContainerStateRunning(Struct, frozen=True):
    startedAt: Time | None = msgspec.field(default_factory=NoneType)


class ContainerStateTerminated(Struct, frozen=True):
    containerID: str = ""
    exitCode: int = msgspec.field(default_factory=int)
    finishedAt: Time | None = msgspec.field(default_factory=NoneType)
    message: str = ""
    reason: str = ""
    signal: int = 0
    startedAt: Time | None = msgspec.field(default_factory=NoneType)


class ContainerStateWaiting(Struct, frozen=True):
    message: str = ""
    reason: str = ""


class ContainerStatus(Struct, frozen=True):
    allocatedResources: Mapping[str, Quantity] = EMPTY
    allocatedResourcesStatus: Annotated[
        tuple[ResourceStatus, ...], Merge(strategy="merge", key="name", list_type="map", keys=("name",))
    ] = ()
    containerID: str = ""
    image: str = msgspec.field(default_factory=str)
    imageID: str = msgspec.field(default_factory=str)
    lastState: ContainerState = msgspec.field(default_factory=ContainerState)
    name: str = msgspec.field(default_factory=str)
    ready: bool = msgspec.field(default_factory=bool)
    resources: ResourceRequirements | None = None
    restartCount: int = msgspec.field(default_factory=int)
    started: bool | None = None
    state: ContainerState = msgspec.field(default_factory=ContainerState)
    stopSignal: str | None = None
    user: ContainerUser | None = None
    volumeMounts: Annotated[
        tuple[VolumeMountStatus, ...],
        Merge(strategy="merge", key="mountPath", list_type="map", keys=("mountPath",)),
    ] = ()


class ContainerUser(Struct, frozen=True):
    linux: LinuxContainerUser | None = None


class DaemonEndpoint(Struct, frozen=True):
    Port: int = msgspec.field(default_factory=int)


class DownwardAPIProjection(Struct, frozen=True):
    items: Annotated[tuple[DownwardAPIVolumeFile, ...], ATOMIC] = ()


class DownwardAPIVolumeFile(Struct, frozen=True):
    fieldRef: ObjectFieldSelector | None = None
    mode: int | None = None
    path: str = msgspec.field(default_factory=str)
    resourceFieldRef: ResourceFieldSelector | None = None


class DownwardAPIVolumeSource(Struct, frozen=True):
    defaultMode: int | None = None
    items: Annotated[tuple[DownwardAPIVolumeFile, ...], ATOMIC] = ()


class EmptyDirVolumeSource(Struct, frozen=True):
    medium: str = ""
    sizeLimit: Quantity | None = None


class EndpointAddress(Atomic, frozen=True):
    hostname: str = ""
    ip: str = msgspec.field(default_factory=str)
    nodeName: str | None = None
    targetRef: ObjectReference | None = None


class EndpointPort(Atomic, frozen=True):
    appProtocol: str | None = None
    name: str = ""
    port: int = msgspec.field(default_factory=int)
    protocol: str = ""


class EndpointSubset(Struct, frozen=True):
    addresses: Annotated[tuple[EndpointAddress, ...], ATOMIC] = ()
    notReadyAddresses: Annotated[tuple[EndpointAddress, ...], ATOMIC] = ()
    ports: Annotated[tuple[EndpointPort, ...], ATOMIC] = ()


class Endpoints(meta_v1.Object, frozen=True):
    subsets: Annotated[tuple[EndpointSubset, ...], ATOMIC] = ()


class EnvFromSource(Struct, frozen=True):
    configMapRef: ConfigMapEnvSource | None = None
    prefix: str = ""
    secretRef: SecretEnvSource | None = None


class EnvVar(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)
    value: str = ""
    valueFrom: EnvVarSource | None = None


class EnvVarSource(Struct, frozen=True):
    configMapKeyRef: ConfigMapKeySelector | None = None
    fieldRef: ObjectFieldSelector | None = None
    fileKeyRef: FileKeySelector | None = None
    resourceFieldRef: ResourceFieldSelector | None = None
    secretKeyRef: SecretKeySelector | None = None


class EphemeralContainer(Struct, frozen=True):
    args: Annotated[tuple[str, ...], ATOMIC] = ()
    command: Annotated[tuple[str, ...], ATOMIC] = ()
    env: Annotated[
        tuple[EnvVar, ...], Merge(strategy="merge", key="name", list_type="map", keys=("name",))
    ] = ()
    envFrom: Annotated[tuple[EnvFromSource, ...], ATOMIC] = ()
    image: str = ""
    imagePullPolicy: str = ""
    lifecycle: Lifecycle | None = None
    livenessProbe: Probe | None = None
    name: str = msgspec.field(default_factory=str)
    ports: Annotated[
        tuple[ContainerPort, ...],
        Merge(
            strategy="merge",
            key="containerPort",
            list_type="map",
            keys=("containerPort", "protocol"),
            defaults=(("protocol", "TCP"),),
        ),
    ] = ()
    readinessProbe: Probe | None = None
    resizePolicy: Annotated[tuple[ContainerResizePolicy, ...], ATOMIC] = ()
    resources: ResourceRequirements = msgspec.field(default_factory=ResourceRequirements)
    restartPolicy: str | None = None
    restartPolicyRules: Annotated[tuple[ContainerRestartRule, ...], ATOMIC] = ()
    securityContext: SecurityContext | None = None
    startupProbe: Probe | None = None
    stdin: bool = False
    stdinOnce: bool = False
    targetContainerName: str = ""
    terminationMessagePath: str = ""
    terminationMessagePolicy: str = ""
    tty: bool = False
    volumeDevices: Annotated[
        tuple[VolumeDevice, ...],
        Merge(strategy="merge", key="devicePath", list_type="map", keys=("devicePath",)),
    ] = ()
    volumeMounts: Annotated[
        tuple[VolumeMount, ...],
        Merge(strategy="merge", key="mountPath", list_type="map", keys=("mountPath",)),
    ] = ()
    workingDir: str = ""


class EphemeralVolumeSource(Struct, frozen=True):
    volumeClaimTemplate: PersistentVolumeClaimTemplate | None = None


class EventSource(Struct, frozen=True):
    component: str = ""
    host: str = ""


class Event(meta_v1.Object, frozen=True):
    action: str = ""
    count: int = 0
    eventTime: MicroTime | None = msgspec.field(default_factory=NoneType)
    firstTimestamp: Time | None = msgspec.field(default_factory=NoneType)
    involvedObject: ObjectReference = msgspec.field(default_factory=ObjectReference)
    lastTimestamp: Time | None = msgspec.field(default_factory=NoneType)
    message: str = ""
    reason: str = ""
    related: ObjectReference | None = None
    reportingComponent: str = msgspec.field(default_factory=str)
    reportingInstance: str = msgspec.field(default_factory=str)
    series: EventSeries | None = None
    source: EventSource = msgspec.field(default_factory=EventSource)
    type: str = ""


class EventSeries(Struct, frozen=True):
    count: int = 0
    lastObservedTime: MicroTime | None = msgspec.field(default_factory=NoneType)


class ExecAction(Struct, frozen=True):
    command: Annotated[tuple[str, ...], ATOMIC] = ()


class FCVolumeSource(Struct, frozen=True):
    fsType: str = ""
    lun: int | None = None
    readOnly: bool = False
    targetWWNs: Annotated[tuple[str, ...], ATOMIC] = ()
    wwids: Annotated[tuple[str, ...], ATOMIC] = ()


class FileKeySelector(Atomic, frozen=True):
    key: str = msgspec.field(default_factory=str)
    optional: bool | None = None
    path: str = msgspec.field(default_factory=str)
    volumeName: str = msgspec.field(default_factory=str)


class FlexPersistentVolumeSource(Struct, frozen=True):
    driver: str = msgspec.field(default_factory=str)
    fsType: str = ""
    options: Mapping[str, str] = EMPTY
    readOnly: bool = False
    secretRef: SecretReference | None = None


class FlexVolumeSource(Struct, frozen=True):
    driver: str = msgspec.field(default_factory=str)
    fsType: str = ""
    options: Mapping[str, str] = EMPTY
    readOnly: bool = False
    secretRef: LocalObjectReference | None = None


class FlockerVolumeSource(Struct, frozen=True):
    datasetName: str = ""
    datasetUUID: str = ""


class GCEPersistentDiskVolumeSource(Struct, frozen=True):
    fsType: str = ""
    partition: int = 0
    pdName: str = msgspec.field(default_factory=str)
    readOnly: bool = False


class GRPCAction(Struct, frozen=True):
    port: int = msgspec.field(default_factory=int)
    service: str | None = msgspec.field(default_factory=NoneType)


class GitRepoVolumeSource(Struct, frozen=True):
    directory: str = ""
    repository: str = msgspec.field(default_factory=str)
    revision: str = ""


class GlusterfsPersistentVolumeSource(Struct, frozen=True):
    endpoints: str = msgspec.field(default_factory=str)
    endpointsNamespace: str | None = None
    path: str = msgspec.field(default_factory=str)
    readOnly: bool = False


class GlusterfsVolumeSource(Struct, frozen=True):
    endpoints: str = msgspec.field(default_factory=str)
    path: str = msgspec.field(default_factory=str)
    readOnly: bool = False


class HTTPGetAction(Struct, frozen=True):
    host: str = ""
    httpHeaders: Annotated[tuple[HTTPHeader, ...], ATOMIC] = ()
    path: str = ""
    port: IntOrString = msgspec.field(default_factory=int)
    scheme: str = ""


class HTTPHeader(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)
    value: str = msgspec.field(default_factory=str)


class HostAlias(Struct, frozen=True):
    hostnames: Annotated[tuple[str, ...], ATOMIC] = ()
    ip: str = msgspec.field(default_factory=str)


class HostIP(Struct, frozen=True):
    ip: str = msgspec.field(default_factory=str)


class HostPathVolumeSource(Struct, frozen=True):
    path: str = msgspec.field(default_factory=str)
    type: str | None = None


class ISCSIPersistentVolumeSource(Struct, frozen=True):
    chapAuthDiscovery: bool = False
    chapAuthSession: bool = False
    fsType: str = ""
    initiatorName: str | None = None
    iqn: str = msgspec.field(default_factory=str)
    iscsiInterface: str = ""
    lun: int = msgspec.field(default_factory=int)
    portals: Annotated[tuple[str, ...], ATOMIC] = ()
    readOnly: bool = False
    secretRef: SecretReference | None = None
    targetPortal: str = msgspec.field(default_factory=str)


class ISCSIVolumeSource(Struct, frozen=True):
    chapAuthDiscovery: bool = False
    chapAuthSession: bool = False
    fsType: str = ""
    initiatorName: str | None = None
    iqn: str = msgspec.field(default_factory=str)
    iscsiInterface: str = ""
    lun: int = msgspec.field(default_factory=int)
    portals: Annotated[tuple[str, ...], ATOMIC] = ()
    readOnly: bool = False
    secretRef: LocalObjectReference | None = None
    targetPortal: str = msgspec.field(default_factory=str)


class ImageVolumeSource(Struct, frozen=True):
    pullPolicy: str = ""
    reference: str = ""


class ImageVolumeStatus(Struct, frozen=True):
    imageRef: str = ""


class KeyToPath(Struct, frozen=True):
    key: str = msgspec.field(default_factory=str)
    mode: int | None = None
    path: str = msgspec.field(default_factory=str)


class Lifecycle(Struct, frozen=True):
    postStart: LifecycleHandler | None = None
    preStop: LifecycleHandler | None = None
    stopSignal: str | None = None


class LifecycleHandler(Struct, frozen=True):
    exec: ExecAction | None = None
    httpGet: HTTPGetAction | None = None
    sleep: SleepAction | None = None
    tcpSocket: TCPSocketAction | None = None


class LimitRangeSpec(Struct, frozen=True):
    limits: Annotated[tuple[LimitRangeItem, ...] | None, ATOMIC] = msgspec.field(default_factory=NoneType)


class LimitRange(meta_v1.Object, frozen=True):
    spec: LimitRangeSpec = msgspec.field(default_factory=LimitRangeSpec)


class LimitRangeItem(Struct, frozen=True):
    default: Mapping[str, Quantity] = EMPTY
    defaultRequest: Mapping[str, Quantity] = EMPTY
    max: Mapping[str, Quantity] = EMPTY
    maxLimitRequestRatio: Mapping[str, Quantity] = EMPTY
    min: Mapping[str, Quantity] = EMPTY
    type: str = msgspec.field(default_factory=str)


class LinuxContainerUser(Struct, frozen=True):
    gid: int = msgspec.field(default_factory=int)
    supplementalGroups: Annotated[tuple[int, ...], ATOMIC] = ()
    uid: int = msgspec.field(default_factory=int)


class LoadBalancerIngress(Struct, frozen=True):
    hostname: str = ""
    ip: str = ""
    ipMode: str | None = None
    ports: Annotated[tuple[PortStatus, ...], ATOMIC] = ()


class LoadBalancerStatus(Struct, frozen=True):
    ingress: Annotated[tuple[LoadBalancerIngress, ...], ATOMIC] = ()


class LocalObjectReference(Atomic, frozen=True):
    name: str = ""


class LocalVolumeSource(Struct, frozen=True):
    fsType: str | None = None
    path: str = msgspec.field(default_factory=str)


class ModifyVolumeStatus(Struct, frozen=True):
    status: str = msgspec.field(default_factory=str)
    targetVolumeAttributesClassName: str = ""


class NFSVolumeSource(Struct, frozen=True):
    path: str = msgspec.field(default_factory=str)
    readOnly: bool = False
    server: str = msgspec.field(default_factory=str)


class NamespaceSpec(Struct, frozen=True):
    finalizers: Annotated[tuple[str, ...], ATOMIC] = ()


class NamespaceStatus(Struct, frozen=True):
    conditions: Annotated[
        tuple[NamespaceCondition, ...], Merge(strategy="merge", key="type", list_type="map", keys=("type",))
    ] = ()
    phase: str = ""


class Namespace(meta_v1.Object, frozen=True):
    spec: NamespaceSpec = msgspec.field(default_factory=NamespaceSpec)
    status: NamespaceStatus = msgspec.field(default_factory=NamespaceStatus)


class NamespaceCondition(AnyCondition, frozen=True):
    lastTransitionTime: Time | None = msgspec.field(default_factory=NoneType)
    message: str = ""
    reason: str = ""
    status: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)


class NodeSpec(Struct, frozen=True):
    configSource: NodeConfigSource | None = None
    externalID: str = ""
    podCIDR: str = ""
    podCIDRs: Annotated[tuple[str, ...], Merge(strategy="merge", list_type="set")] = ()
    providerID: str = ""
    taints: Annotated[tuple[Taint, ...], ATOMIC] = ()
    unschedulable: bool = False


class NodeDaemonEndpoints(Struct, frozen=True):
    kubeletEndpoint: DaemonEndpoint = msgspec.field(default_factory=DaemonEndpoint)


class NodeSystemInfo(Struct, frozen=True):
    architecture: str = msgspec.field(default_factory=str)
    bootID: str = msgspec.field(default_factory=str)
    containerRuntimeVersion: str = msgspec.field(default_factory=str)
    kernelVersion: str = msgspec.field(default_factory=str)
    kubeProxyVersion: str = msgspec.field(default_factory=str)
    kubeletVersion: str = msgspec.field(default_factory=str)
    machineID: str = msgspec.field(default_factory=str)
    operatingSystem: str = msgspec.field(default_factory=str)
    osImage: str = msgspec.field(default_factory=str)
    swap: NodeSwapStatus | None = None
    systemUUID: str = msgspec.field(default_factory=str)


class NodeStatus(Struct, frozen=True):
    addresses: Annotated[
        tuple[NodeAddress, ...], Merge(strategy="merge", key="type", list_type="map", keys=("type",))
    ] = ()
    allocatable: Mapping[str, Quantity] = EMPTY
    capacity: Mapping[str, Quantity] = EMPTY
    conditions: Annotated[
        tuple[NodeCondition, ...], Merge(strategy="merge", key="type", list_type="map", keys=("type",))
    ] = ()
    config: NodeConfigStatus | None = None
    daemonEndpoints: NodeDaemonEndpoints = msgspec.field(default_factory=NodeDaemonEndpoints)
    declaredFeatures: Annotated[tuple[str, ...], ATOMIC] = ()
    features: NodeFeatures | None = None
    images: Annotated[tuple[ContainerImage, ...], ATOMIC] = ()
    nodeInfo: NodeSystemInfo = msgspec.field(default_factory=NodeSystemInfo)
    phase: str = ""
    runtimeHandlers: Annotated[tuple[NodeRuntimeHandler, ...], ATOMIC] = ()
    volumesAttached: Annotated[tuple[AttachedVolume, ...], ATOMIC] = ()
    volumesInUse: Annotated[tuple[str, ...], ATOMIC] = ()


class Node(meta_v1.Object, frozen=True):
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class NodeAddress(Struct, frozen=True):
    address: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)


class NodeAffinity(Struct, frozen=True):
    preferredDuringSchedulingIgnoredDuringExecution: Annotated[
        tuple[PreferredSchedulingTerm, ...], ATOMIC
    ] = ()
    requiredDuringSchedulingIgnoredDuringExecution: NodeSelector | None = None


class NodeAllocatableResourceClaimStatus(Struct, frozen=True):
    containers: Annotated[tuple[str, ...], SET] = ()
    resourceClaimName: str = msgspec.field(default_factory=str)
    resources: Mapping[str, Quantity] | None = msgspec.field(default_factory=NoneType)


class NodeCondition(AnyCondition, frozen=True):
    lastHeartbeatTime: Time | None = msgspec.field(default_factory=NoneType)
    lastTransitionTime: Time | None = msgspec.field(default_factory=NoneType)
    message: str = ""
    reason: str = ""
    status: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)


class NodeConfigSource(Struct, frozen=True):
    configMap: ConfigMapNodeConfigSource | None = None


class NodeConfigStatus(Struct, frozen=True):
    active: NodeConfigSource | None = None
    assigned: NodeConfigSource | None = None
    error: str = ""
    lastKnownGood: NodeConfigSource | None = None


class NodeFeatures(Struct, frozen=True):
    supplementalGroupsPolicy: bool | None = None


class NodeRuntimeHandler(Struct, frozen=True):
    features: NodeRuntimeHandlerFeatures | None = None
    name: str = msgspec.field(default_factory=str)


class NodeRuntimeHandlerFeatures(Struct, frozen=True):
    recursiveReadOnlyMounts: bool | None = None
    userNamespaces: bool | None = None


class NodeSelector(Atomic, frozen=True):
    nodeSelectorTerms: Annotated[tuple[NodeSelectorTerm, ...], ATOMIC] = msgspec.field(default_factory=none)


class NodeSelectorRequirement(Struct, frozen=True):
    key: str = msgspec.field(default_factory=str)
    operator: str = msgspec.field(default_factory=str)
    values: Annotated[tuple[str, ...], ATOMIC] = ()


class NodeSelectorTerm(Atomic, frozen=True):
    matchExpressions: Annotated[tuple[NodeSelectorRequirement, ...], ATOMIC] = ()
    matchFields: Annotated[tuple[NodeSelectorRequirement, ...], ATOMIC] = ()


class NodeSwapStatus(Struct, frozen=True):
    capacity: int | None = None


class ObjectFieldSelector(Atomic, frozen=True):
    apiVersion: str = ""
    fieldPath: str = msgspec.field(default_factory=str)


class PersistentVolumeSpec(Struct, frozen=True):
    accessModes: Annotated[tuple[str, ...], ATOMIC] = ()
    awsElasticBlockStore: AWSElasticBlockStoreVolumeSource | None = None
    azureDisk: AzureDiskVolumeSource | None = None
    azureFile: AzureFilePersistentVolumeSource | None = None
    capacity: Mapping[str, Quantity] = EMPTY
    cephfs: CephFSPersistentVolumeSource | None = None
    cinder: CinderPersistentVolumeSource | None = None
    claimRef: Annotated[ObjectReference | None, Merge(map_type="granular")] = None
    csi: CSIPersistentVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flexVolume: FlexPersistentVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    gcePersistentDisk: GCEPersistentDiskVolumeSource | None = None
    glusterfs: GlusterfsPersistentVolumeSource | None = None
    hostPath: HostPathVolumeSource | None = None
    iscsi: ISCSIPersistentVolumeSource | None = None
    local: LocalVolumeSource | None = None
    mountOptions: Annotated[tuple[str, ...], ATOMIC] = ()
    nfs: NFSVolumeSource | None = None
    nodeAffinity: VolumeNodeAffinity | None = None
    persistentVolumeReclaimPolicy: str = ""
    photonPersistentDisk: PhotonPersistentDiskVolumeSource | None = None
    portworxVolume: PortworxVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    rbd: RBDPersistentVolumeSource | None = None
    scaleIO: ScaleIOPersistentVolumeSource | None = None
    storageClassName: str = ""
    storageos: StorageOSPersistentVolumeSource | None = None
    volumeAttributesClassName: str | None = None
    volumeMode: str | None = None
    vsphereVolume: VsphereVirtualDiskVolumeSource | None = None


class PersistentVolumeStatus(Struct, frozen=True):
    lastPhaseTransitionTime: Time | None = None
    message: str = ""
    phase: str = ""
    reason: str = ""


class PersistentVolume(meta_v1.Object, frozen=True):
    spec: PersistentVolumeSpec = msgspec.field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeStatus = msgspec.field(default_factory=PersistentVolumeStatus)


class VolumeResourceRequirements(Struct, frozen=True):
    limits: Mapping[str, Quantity] = EMPTY
    requests: Mapping[str, Quantity] = EMPTY


class PersistentVolumeClaimSpec(Struct, frozen=True):
    accessModes: Annotated[tuple[str, ...], ATOMIC] = ()
    dataSource: TypedLocalObjectReference | None = None
    dataSourceRef: TypedObjectReference | None = None
    resources: VolumeResourceRequirements = msgspec.field(default_factory=VolumeResourceRequirements)
    selector: meta_v1.LabelSelector | None = None
    storageClassName: str | None = None
    volumeAttributesClassName: str | None = None
    volumeMode: str | None = None
    volumeName: str = ""


class PersistentVolumeClaimStatus(Struct, frozen=True):
    accessModes: Annotated[tuple[str, ...], ATOMIC] = ()
    allocatedResourceStatuses: Annotated[Mapping[str, str], Merge(map_type="granular")] = EMPTY
    allocatedResources: Mapping[str, Quantity] = EMPTY
    capacity: Mapping[str, Quantity] = EMPTY
    conditions: Annotated[
        tuple[PersistentVolumeClaimCondition, ...],
        Merge(strategy="merge", key="type", list_type="map", keys=("type",)),
    ] = ()
    currentVolumeAttributesClassName: str | None = None
    modifyVolumeStatus: ModifyVolumeStatus | None = None
    phase: str = ""


class PersistentVolumeClaim(meta_v1.Object, frozen=True):
    spec: PersistentVolumeClaimSpec = msgspec.field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = msgspec.field(default_factory=PersistentVolumeClaimStatus)


class NestedPersistentVolumeClaim(PersistentVolumeClaim, frozen=True):
    apiVersion: str = ""
    kind: str = ""


class PersistentVolumeClaimCondition(AnyCondition, frozen=True):
    lastProbeTime: Time | None = msgspec.field(default_factory=NoneType)
    lastTransitionTime: Time | None = msgspec.field(default_factory=NoneType)
    message: str = ""
    reason: str = ""
    status: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)


class PersistentVolumeClaimTemplate(Struct, frozen=True):
    metadata: meta_v1.ObjectMeta = msgspec.field(default_factory=meta_v1.ObjectMeta)
    spec: PersistentVolumeClaimSpec = msgspec.field(default_factory=PersistentVolumeClaimSpec)


class PersistentVolumeClaimVolumeSource(Struct, frozen=True):
    claimName: str = msgspec.field(default_factory=str)
    readOnly: bool = False


class PhotonPersistentDiskVolumeSource(Struct, frozen=True):
    fsType: str = ""
    pdID: str = msgspec.field(default_factory=str)


class PodSpec(Struct, frozen=True):
    activeDeadlineSeconds: int | None = None
    affinity: Affinity | None = None
    automountServiceAccountToken: bool | None = None
    containers: Annotated[
        tuple[Container, ...], Merge(strategy="merge", key="name", list_type="map", keys=("name",))
    ] = msgspec.field(default_factory=none)
    dnsConfig: PodDNSConfig | None = None
    dnsPolicy: str = ""
    enableServiceLinks: bool | None = None
    ephemeralContainers: Annotated[
        tuple[EphemeralContainer, ...], Merge(strategy="merge", key="name", list_type="map", keys=("name",))
    ] = ()
    hostAliases: Annotated[
        tuple[HostAlias, ...], Merge(strategy="merge", key="ip", list_type="map", keys=("ip",))
    ] = ()
    hostIPC: bool = False
    hostNetwork: bool = False
    hostPID: bool = False
    hostUsers: bool | None = None
    hostname: str = ""
    hostnameOverride: str | None = None
    imagePullSecrets: Annotated[
        tuple[LocalObjectReference, ...], Merge(strategy="merge", key="name", list_type="map", keys=("name",))
    ] = ()
    initContainers: Annotated[
        tuple[Container, ...], Merge(strategy="merge", key="name", list_type="map", keys=("name",))
    ] = ()
    nodeName: str = ""
    nodeSelector: Annotated[Mapping[str, str], Merge(map_type="atomic")] = EMPTY
    os: PodOS | None = None
    overhead: Mapping[str, Quantity] = EMPTY
    preemptionPolicy: str | None = None
    priority: int | None = None
    priorityClassName: str = ""
    readinessGates: Annotated[tuple[PodReadinessGate, ...], ATOMIC] = ()
    resourceClaims: Annotated[
        tuple[PodResourceClaim, ...],
        Merge(strategy="merge,retainKeys", key="name", list_type="map", keys=("name",)),
    ] = ()
    resources: ResourceRequirements | None = None
    restartPolicy: str = ""
    runtimeClassName: str | None = None
    schedulerName: str = ""
    schedulingGates: Annotated[
        tuple[PodSchedulingGate, ...], Merge(strategy="merge", key="name", list_type="map", keys=("name",))
    ] = ()
    schedulingGroup: PodSchedulingGroup | None = None
    securityContext: PodSecurityContext | None = None
    serviceAccount: str = ""
    serviceAccountName: str = ""
    setHostnameAsFQDN: bool | None = None
    shareProcessNamespace: bool | None = None
    subdomain: str = ""
    terminationGracePeriodSeconds: int | None = None
    tolerations: Annotated[tuple[Toleration, ...], ATOMIC] = ()
    topologySpreadConstraints: Annotated[
        tuple[TopologySpreadConstraint, ...],
        Merge(
            strategy="merge", key="topologyKey", list_type="map", keys=("topologyKey", "whenUnsatisfiable")
        ),
    ] = ()
    volumes: Annotated[
        tuple[Volume, ...], Merge(strategy="merge,retainKeys", key="name", list_type="map", keys=("name",))
    ] = ()


class PodStatus(Struct, frozen=True):
    allocatedResources: Mapping[str, Quantity] = EMPTY
    conditions: Annotated[
        tuple[PodCondition, ...], Merge(strategy="merge", key="type", list_type="map", keys=("type",))
    ] = ()
    containerStatuses: Annotated[tuple[ContainerStatus, ...], ATOMIC] = ()
    ephemeralContainerStatuses: Annotated[tuple[ContainerStatus, ...], ATOMIC] = ()
    extendedResourceClaimStatus: PodExtendedResourceClaimStatus | None = None
    hostIP: str = ""
    hostIPs: Annotated[tuple[HostIP, ...], Merge(strategy="merge", key="ip", list_type="atomic")] = ()
    initContainerStatuses: Annotated[tuple[ContainerStatus, ...], ATOMIC] = ()
    message: str = ""
    nodeAllocatableResourceClaimStatuses: Annotated[
        tuple[NodeAllocatableResourceClaimStatus, ...], ATOMIC
    ] = ()
    nominatedNodeName: str = ""
    observedGeneration: int = 0
    phase: str = ""
    podIP: str = ""
    podIPs: Annotated[
        tuple[PodIP, ...], Merge(strategy="merge", key="ip", list_type="map", keys=("ip",))
    ] = ()
    qosClass: str = ""
    reason: str = ""
    resize: str = ""
    resourceClaimStatuses: Annotated[
        tuple[PodResourceClaimStatus, ...],
        Merge(strategy="merge,retainKeys", key="name", list_type="map", keys=("name",)),
    ] = ()
    resources: ResourceRequirements | None = None
    startTime: Time | None = None


class Pod(meta_v1.Object, frozen=True):
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class PodAffinity(Struct, frozen=True):
    preferredDuringSchedulingIgnoredDuringExecution: Annotated[
        tuple[WeightedPodAffinityTerm, ...], ATOMIC
    ] = ()
    requiredDuringSchedulingIgnoredDuringExecution: Annotated[tuple[PodAffinityTerm, ...], ATOMIC] = ()


class PodAffinityTerm(Struct, frozen=True):
    labelSelector: meta_v1.LabelSelector | None = None
    matchLabelKeys: Annotated[tuple[str, ...], ATOMIC] = ()
    mismatchLabelKeys: Annotated[tuple[str, ...], ATOMIC] = ()
    namespaceSelector: meta_v1.LabelSelector | None = None
    namespaces: Annotated[tuple[str, ...], ATOMIC] = ()
    topologyKey: str = msgspec.field(default_factory=str)


class PodAntiAffinity(Struct, frozen=True):
    preferredDuringSchedulingIgnoredDuringExecution: Annotated[
        tuple[WeightedPodAffinityTerm, ...], ATOMIC
    ] = ()
    requiredDuringSchedulingIgnoredDuringExecution: Annotated[tuple[PodAffinityTerm, ...], ATOMIC] = ()


class PodCertificateProjection(Struct, frozen=True):
    certificateChainPath: str = ""
    credentialBundlePath: str = ""
    keyPath: str = ""
    keyType: str = ""
    maxExpirationSeconds: int | None = None
    signerName: str = ""
    userAnnotations: Mapping[str, str] = EMPTY


class PodCondition(AnyCondition, frozen=True):
    lastProbeTime: Time | None = msgspec.field(default_factory=NoneType)
    lastTransitionTime: Time | None = msgspec.field(default_factory=NoneType)
    message: str = ""
    observedGeneration: int = 0
    reason: str = ""
    status: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)


class PodDNSConfig(Struct, frozen=True):
    nameservers: Annotated[tuple[str, ...], ATOMIC] = ()
    options: Annotated[tuple[PodDNSConfigOption, ...], ATOMIC] = ()
    searches: Annotated[tuple[str, ...], ATOMIC] = ()


class PodDNSConfigOption(Struct, frozen=True):
    name: str = ""
    value: str | None = None


class PodExtendedResourceClaimStatus(Struct, frozen=True):
    requestMappings: Annotated[tuple[ContainerExtendedResourceRequest, ...], ATOMIC] = msgspec.field(
        default_factory=none
    )
    resourceClaimName: str = msgspec.field(default_factory=str)


class PodIP(Struct, frozen=True):
    ip: str = msgspec.field(default_factory=str)


class PodOS(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)


class PodReadinessGate(Struct, frozen=True):
    conditionType: str = msgspec.field(default_factory=str)


class PodResourceClaim(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)
    resourceClaimName: str | None = None
    resourceClaimTemplateName: str | None = None


class PodResourceClaimStatus(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)
    resourceClaimName: str | None = None


class PodSchedulingGate(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)


class PodSchedulingGroup(Struct, frozen=True):
    podGroupName: str | None = None


class PodSecurityContext(Struct, frozen=True):
    appArmorProfile: AppArmorProfile | None = None
    fsGroup: int | None = None
    fsGroupChangePolicy: str | None = None
    runAsGroup: int | None = None
    runAsNonRoot: bool | None = None
    runAsUser: int | None = None
    seLinuxChangePolicy: str | None = None
    seLinuxOptions: SELinuxOptions | None = None
    seccompProfile: SeccompProfile | None = None
    supplementalGroups: Annotated[tuple[int, ...], ATOMIC] = ()
    supplementalGroupsPolicy: str | None = None
    sysctls: Annotated[tuple[Sysctl, ...], ATOMIC] = ()
    windowsOptions: WindowsSecurityContextOptions | None = None


class PodTemplateSpec(Struct, frozen=True):
    metadata: meta_v1.ObjectMeta = msgspec.field(default_factory=meta_v1.ObjectMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)


class PodTemplate(meta_v1.Object, frozen=True):
    template: PodTemplateSpec = msgspec.field(default_factory=PodTemplateSpec)


class PortStatus(Struct, frozen=True):
    error: str | None = None
    port: int = msgspec.field(default_factory=int)
    protocol: str = msgspec.field(default_factory=str)


class PortworxVolumeSource(Struct, frozen=True):
    fsType: str = ""
    readOnly: bool = False
    volumeID: str = msgspec.field(default_factory=str)


class PreferredSchedulingTerm(Struct, frozen=True):
    preference: NodeSelectorTerm = msgspec.field(default_factory=NodeSelectorTerm)
    weight: int = msgspec.field(default_factory=int)


class Probe(Struct, frozen=True):
    exec: ExecAction | None = None
    failureThreshold: int = 0
    grpc: GRPCAction | None = None
    httpGet: HTTPGetAction | None = None
    initialDelaySeconds: int = 0
    periodSeconds: int = 0
    successThreshold: int = 0
    tcpSocket: TCPSocketAction | None = None
    terminationGracePeriodSeconds: int | None = None
    timeoutSeconds: int = 0


class ProjectedVolumeSource(Struct, frozen=True):
    defaultMode: int | None = None
    sources: Annotated[tuple[VolumeProjection, ...] | None, ATOMIC] = msgspec.field(default_factory=NoneType)


class QuobyteVolumeSource(Struct, frozen=True):
    group: str = ""
    readOnly: bool = False
    registry: str = msgspec.field(default_factory=str)
    tenant: str = ""
    user: str = ""
    volume: str = msgspec.field(default_factory=str)


class RBDPersistentVolumeSource(Struct, frozen=True):
    fsType: str = ""
    image: str = msgspec.field(default_factory=str)
    keyring: str = ""
    monitors: Annotated[tuple[str, ...], ATOMIC] = msgspec.field(default_factory=none)
    pool: str = ""
    readOnly: bool = False
    secretRef: SecretReference | None = None
    user: str = ""


class RBDVolumeSource(Struct, frozen=True):
    fsType: str = ""
    image: str = msgspec.field(default_factory=str)
    keyring: str = ""
    monitors: Annotated[tuple[str, ...], ATOMIC] = msgspec.field(default_factory=none)
    pool: str = ""
    readOnly: bool = False
    secretRef: LocalObjectReference | None = None
    user: str = ""


class ReplicationControllerSpec(Struct, frozen=True):
    minReadySeconds: int = 0
    replicas: int | None = None
    selector: Annotated[Mapping[str, str], Merge(map_type="atomic")] = EMPTY
    template: PodTemplateSpec | None = None


class ReplicationControllerStatus(Struct, frozen=True):
    availableReplicas: int = 0
    conditions: Annotated[
        tuple[ReplicationControllerCondition, ...],
        Merge(strategy="merge", key="type", list_type="map", keys=("type",)),
    ] = ()
    fullyLabeledReplicas: int = 0
    observedGeneration: int = 0
    readyReplicas: int = 0
    replicas: int = msgspec.field(default_factory=int)


class ReplicationController(meta_v1.Object, frozen=True):
    spec: ReplicationControllerSpec = msgspec.field(default_factory=ReplicationControllerSpec)
    status: ReplicationControllerStatus = msgspec.field(default_factory=ReplicationControllerStatus)


class ReplicationControllerCondition(AnyCondition, frozen=True):
    lastTransitionTime: Time | None = msgspec.field(default_factory=NoneType)
    message: str = ""
    reason: str = ""
    status: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)


class ResourceClaim(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)
    request: str = ""


class ResourceFieldSelector(Atomic, frozen=True):
    containerName: str = ""
    divisor: Quantity = msgspec.field(default_factory=zero)
    resource: str = msgspec.field(default_factory=str)


class ResourceHealth(Struct, frozen=True):
    health: str = ""
    message: str | None = None
    resourceID: str = msgspec.field(default_factory=str)


class ResourceQuotaSpec(Struct, frozen=True):
    hard: Mapping[str, Quantity] = EMPTY
    scopeSelector: ScopeSelector | None = None
    scopes: Annotated[tuple[str, ...], ATOMIC] = ()


class ResourceQuotaStatus(Struct, frozen=True):
    hard: Mapping[str, Quantity] = EMPTY
    used: Mapping[str, Quantity] = EMPTY


class ResourceQuota(meta_v1.Object, frozen=True):
    spec: ResourceQuotaSpec = msgspec.field(default_factory=ResourceQuotaSpec)
    status: ResourceQuotaStatus = msgspec.field(default_factory=ResourceQuotaStatus)


class ResourceStatus(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)
    resources: Annotated[tuple[ResourceHealth, ...], Merge(list_type="map", keys=("resourceID",))] = ()


class SELinuxOptions(Struct, frozen=True):
    level: str = ""
    role: str = ""
    type: str = ""
    user: str = ""


class ScaleIOPersistentVolumeSource(Struct, frozen=True):
    fsType: str = ""
    gateway: str = msgspec.field(default_factory=str)
    protectionDomain: str = ""
    readOnly: bool = False
    secretRef: SecretReference | None = msgspec.field(default_factory=NoneType)
    sslEnabled: bool = False
    storageMode: str = ""
    storagePool: str = ""
    system: str = msgspec.field(default_factory=str)
    volumeName: str = ""


class ScaleIOVolumeSource(Struct, frozen=True):
    fsType: str = ""
    gateway: str = msgspec.field(default_factory=str)
    protectionDomain: str = ""
    readOnly: bool = False
    secretRef: LocalObjectReference | None = msgspec.field(default_factory=NoneType)
    sslEnabled: bool = False
    storageMode: str = ""
    storagePool: str = ""
    system: str = msgspec.field(default_factory=str)
    volumeName: str = ""


class ScopeSelector(Atomic, frozen=True):
    matchExpressions: Annotated[tuple[ScopedResourceSelectorRequirement, ...], ATOMIC] = ()


class ScopedResourceSelectorRequirement(Struct, frozen=True):
    operator: str = msgspec.field(default_factory=str)
    scopeName: str = msgspec.field(default_factory=str)
    values: Annotated[tuple[str, ...], ATOMIC] = ()


class SeccompProfile(Struct, frozen=True):
    localhostProfile: str | None = None
    type: str = msgspec.field(default_factory=str)


class Secret(meta_v1.Object, frozen=True):
    data: Mapping[str, str] = EMPTY
    immutable: bool | None = None
    stringData: Mapping[str, str] = EMPTY
    type: str = ""


class SecretEnvSource(Struct, frozen=True):
    name: str = ""
    optional: bool | None = None


class SecretKeySelector(Atomic, frozen=True):
    key: str = msgspec.field(default_factory=str)
    name: str = ""
    optional: bool | None = None


class SecretProjection(Struct, frozen=True):
    items: Annotated[tuple[KeyToPath, ...], ATOMIC] = ()
    name: str = ""
    optional: bool | None = None


class SecretReference(Atomic, frozen=True):
    name: str = ""
    namespace: str = ""


class SecretVolumeSource(Struct, frozen=True):
    defaultMode: int | None = None
    items: Annotated[tuple[KeyToPath, ...], ATOMIC] = ()
    optional: bool | None = None
    secretName: str = ""


class SecurityContext(Struct, frozen=True):
    allowPrivilegeEscalation: bool | None = None
    appArmorProfile: AppArmorProfile | None = None
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    procMount: str | None = None
    readOnlyRootFilesystem: bool | None = None
    runAsGroup: int | None = None
    runAsNonRoot: bool | None = None
    runAsUser: int | None = None
    seLinuxOptions: SELinuxOptions | None = None
    seccompProfile: SeccompProfile | None = None
    windowsOptions: WindowsSecurityContextOptions | None = None


class ServiceSpec(Struct, frozen=True):
    allocateLoadBalancerNodePorts: bool | None = None
    clusterIP: str = ""
    clusterIPs: Annotated[tuple[str, ...], ATOMIC] = ()
    externalIPs: Annotated[tuple[str, ...], ATOMIC] = ()
    externalName: str = ""
    externalTrafficPolicy: str = ""
    healthCheckNodePort: int = 0
    internalTrafficPolicy: str | None = None
    ipFamilies: Annotated[tuple[str, ...], ATOMIC] = ()
    ipFamilyPolicy: str | None = None
    loadBalancerClass: str | None = None
    loadBalancerIP: str = ""
    loadBalancerSourceRanges: Annotated[tuple[str, ...], ATOMIC] = ()
    ports: Annotated[
        tuple[ServicePort, ...],
        Merge(
            strategy="merge",
            key="port",
            list_type="map",
            keys=("port", "protocol"),
            defaults=(("protocol", "TCP"),),
        ),
    ] = ()
    publishNotReadyAddresses: bool = False
    selector: Annotated[Mapping[str, str], Merge(map_type="atomic")] = EMPTY
    sessionAffinity: str = ""
    sessionAffinityConfig: SessionAffinityConfig | None = None
    trafficDistribution: str | None = None
    type: str = ""


class ServiceStatus(Struct, frozen=True):
    conditions: Annotated[
        tuple[meta_v1.Condition, ...], Merge(strategy="merge", key="type", list_type="map", keys=("type",))
    ] = ()
    loadBalancer: LoadBalancerStatus = msgspec.field(default_factory=LoadBalancerStatus)


class Service(meta_v1.Object, frozen=True):
    spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)
    status: ServiceStatus = msgspec.field(default_factory=ServiceStatus)


class ServiceAccount(meta_v1.Object, frozen=True):
    automountServiceAccountToken: bool | None = None
    imagePullSecrets: Annotated[tuple[LocalObjectReference, ...], ATOMIC] = ()
    secrets: Annotated[
        tuple[ObjectReference, ...], Merge(strategy="merge", key="name", list_type="map", keys=("name",))
    ] = ()


class ServiceAccountTokenProjection(Struct, frozen=True):
    audience: str = ""
    expirationSeconds: int | None = None
    path: str = msgspec.field(default_factory=str)


class ServicePort(Struct, frozen=True):
    appProtocol: str | None = None
    name: str = ""
    nodePort: int = 0
    port: int = msgspec.field(default_factory=int)
    protocol: str = ""
    targetPort: IntOrString = msgspec.field(default_factory=int)


class SessionAffinityConfig(Struct, frozen=True):
    clientIP: ClientIPConfig | None = None


class SleepAction(Struct, frozen=True):
    seconds: int = msgspec.field(default_factory=int)


class StorageOSPersistentVolumeSource(Struct, frozen=True):
    fsType: str = ""
    readOnly: bool = False
    secretRef: ObjectReference | None = None
    volumeName: str = ""
    volumeNamespace: str = ""


class StorageOSVolumeSource(Struct, frozen=True):
    fsType: str = ""
    readOnly: bool = False
    secretRef: LocalObjectReference | None = None
    volumeName: str = ""
    volumeNamespace: str = ""


class Sysctl(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)
    value: str = msgspec.field(default_factory=str)


class TCPSocketAction(Struct, frozen=True):
    host: str = ""
    port: IntOrString = msgspec.field(default_factory=int)


class Taint(Struct, frozen=True):
    effect: str = msgspec.field(default_factory=str)
    key: str = msgspec.field(default_factory=str)
    timeAdded: Time | None = None
    value: str = ""


class Toleration(Struct, frozen=True):
    effect: str = ""
    key: str = ""
    operator: str = ""
    tolerationSeconds: int | None = None
    value: str = ""


class TopologySelectorLabelRequirement(Struct, frozen=True):
    key: str = msgspec.field(default_factory=str)
    values: Annotated[tuple[str, ...], ATOMIC] = msgspec.field(default_factory=none)


class TopologySelectorTerm(Atomic, frozen=True):
    matchLabelExpressions: Annotated[tuple[TopologySelectorLabelRequirement, ...], ATOMIC] = ()


class TopologySpreadConstraint(Struct, frozen=True):
    labelSelector: meta_v1.LabelSelector | None = None
    matchLabelKeys: Annotated[tuple[str, ...], ATOMIC] = ()
    maxSkew: int = msgspec.field(default_factory=int)
    minDomains: int | None = None
    nodeAffinityPolicy: str | None = None
    nodeTaintsPolicy: str | None = None
    topologyKey: str = msgspec.field(default_factory=str)
    whenUnsatisfiable: str = msgspec.field(default_factory=str)


class TypedLocalObjectReference(Atomic, frozen=True):
    apiGroup: str | None = msgspec.field(default_factory=NoneType)
    kind: str = msgspec.field(default_factory=str)
    name: str = msgspec.field(default_factory=str)


class TypedObjectReference(Struct, frozen=True):
    apiGroup: str | None = msgspec.field(default_factory=NoneType)
    kind: str = msgspec.field(default_factory=str)
    name: str = msgspec.field(default_factory=str)
    namespace: str | None = None


class Volume(Struct, frozen=True):
    awsElasticBlockStore: AWSElasticBlockStoreVolumeSource | None = None
    azureDisk: AzureDiskVolumeSource | None = None
    azureFile: AzureFileVolumeSource | None = None
    cephfs: CephFSVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    configMap: ConfigMapVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    downwardAPI: DownwardAPIVolumeSource | None = None
    emptyDir: EmptyDirVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flexVolume: FlexVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    gcePersistentDisk: GCEPersistentDiskVolumeSource | None = None
    gitRepo: GitRepoVolumeSource | None = None
    glusterfs: GlusterfsVolumeSource | None = None
    hostPath: HostPathVolumeSource | None = None
    image: ImageVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    name: str = msgspec.field(default_factory=str)
    nfs: NFSVolumeSource | None = None
    persistentVolumeClaim: PersistentVolumeClaimVolumeSource | None = None
    photonPersistentDisk: PhotonPersistentDiskVolumeSource | None = None
    portworxVolume: PortworxVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    scaleIO: ScaleIOVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    storageos: StorageOSVolumeSource | None = None
    vsphereVolume: VsphereVirtualDiskVolumeSource | None = None


class VolumeDevice(Struct, frozen=True):
    devicePath: str = msgspec.field(default_factory=str)
    name: str = msgspec.field(default_factory=str)


class VolumeMount(Struct, frozen=True):
    mountPath: str = msgspec.field(default_factory=str)
    mountPropagation: str | None = None
    name: str = msgspec.field(default_factory=str)
    readOnly: bool = False
    recursiveReadOnly: str | None = None
    subPath: str = ""
    subPathExpr: str = ""


class VolumeMountStatus(Struct, frozen=True):
    mountPath: str = msgspec.field(default_factory=str)
    name: str = msgspec.field(default_factory=str)
    readOnly: bool = False
    recursiveReadOnly: str | None = None
    volumeStatus: VolumeStatus | None = None


class VolumeNodeAffinity(Struct, frozen=True):
    required: NodeSelector | None = None


class VolumeProjection(Struct, frozen=True):
    clusterTrustBundle: ClusterTrustBundleProjection | None = None
    configMap: ConfigMapProjection | None = None
    downwardAPI: DownwardAPIProjection | None = None
    podCertificate: PodCertificateProjection | None = None
    secret: SecretProjection | None = None
    serviceAccountToken: ServiceAccountTokenProjection | None = None


class VolumeStatus(Struct, frozen=True):
    image: ImageVolumeStatus | None = None


class VsphereVirtualDiskVolumeSource(Struct, frozen=True):
    fsType: str = ""
    storagePolicyID: str = ""
    storagePolicyName: str = ""
    volumePath: str = msgspec.field(default_factory=str)


class WeightedPodAffinityTerm(Struct, frozen=True):
    podAffinityTerm: PodAffinityTerm = msgspec.field(default_factory=PodAffinityTerm)
    weight: int = msgspec.field(default_factory=int)


class WindowsSecurityContextOptions(Struct, frozen=True):
    gmsaCredentialSpec: str | None = None
    gmsaCredentialSpecName: str | None = None
    hostProcess: bool | None = None
    runAsUserName: str | None = None
