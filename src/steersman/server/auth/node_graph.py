"""NodeGraph: which objects a node is related to, through the pods that are bound to it.

Upstream keeps a graph of references that every pod and volume is entered into. Here all objects are in memory, so a relation
is found in the store when it is asked for; only an index of pods by node is kept, from the first question on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from steersman.api import kinds
from steersman.api.bounded_cache import BoundedCache
from steersman.api.generated.core_v1 import PersistentVolume, Pod, PodSpec, Volume, VolumeProjection
from steersman.api.resource_claims import claim_names
from steersman.client.api import EventType
from steersman.server.storage.store import Store, object_key
from steersman.server.storage.watch import Commit, Selection

MIRROR_POD = "kubernetes.io/config.mirror"
"""The annotation of mirror pods."""

_VOLUME_SECRETS = ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos")
"""Volume sources that refer to a Secret by ``secretRef``."""
_PV_SECRETS = ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi")
_CSI_SECRETS = ("nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef")
"""The references of a CSI volume to Secrets that the kubelet reads."""


class NodeGraph:
    """Relations between nodes and other objects of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pods: dict[str, dict[str, dict[str, Pod]]] | None = None
        """Pods by node, namespace and name; None before the first question."""
        self._references: BoundedCache[int, tuple[PodSpec, frozenset[tuple[str, str]]]] = BoundedCache(4096)
        """The objects that pod specs refer to, by the identity of the spec."""

    def is_related(self, node: str, resource: str, namespace: str, name: str) -> bool:
        """Whether an object is bound to a node, or used by a pod or volume that is."""
        match resource:
            case "pods":
                found = self._get("pods", namespace, name)
                return found is not None and found.spec.nodeName == node
            case "volumeattachments.storage.k8s.io" | "resourceslices.resource.k8s.io":
                found = self._get(resource, "", name)
                return found is not None and found.spec.nodeName == node
            case "persistentvolumes":
                return self._uses_volume(node, self._get(resource, "", name))
            case "secrets":
                return self._uses(node, resource, namespace, name) or any(
                    self._uses_volume(node, volume)
                    for volume in self._store.table("persistentvolumes").select(Selection())
                    if (namespace, name) in volume_secrets(volume)
                )
        return self._uses(node, resource, namespace, name)

    def _get(self, resource: str, namespace: str, name: str) -> Any:
        return self._store.table(resource).get(object_key(namespace, name))

    def _uses_volume(self, node: str, volume: PersistentVolume | None) -> bool:
        claim = None if volume is None else volume.spec.claimRef
        return claim is not None and self._uses(node, "persistentvolumeclaims", claim.namespace, claim.name)

    def _uses(self, node: str, resource: str, namespace: str, name: str) -> bool:
        pods = self._pods_by_node().get(node, {}).get(namespace, {})
        return any(self._refers(pod, resource, name) for pod in pods.values())

    def _refers(self, pod: Pod, resource: str, name: str) -> bool:
        if MIRROR_POD in pod.metadata.annotations:
            # A node must not gain access by a pod that it has created itself.
            return False
        match resource:
            case "serviceaccounts":
                return pod.spec.serviceAccountName == name
            case "persistentvolumeclaims":
                return any(claim_of(pod, volume) == name for volume in pod.spec.volumes)
            case "resourceclaims.resource.k8s.io":
                # Full structs have all fields of the view.
                view = cast("kinds.Pod", pod)
                extended = pod.status.extendedResourceClaimStatus
                return name in claim_names(view) or (
                    extended is not None and extended.resourceClaimName == name
                )
        known = self._references.get(id(pod.spec))
        if known is None or known[0] is not pod.spec:
            known = (pod.spec, frozenset(references(pod.spec)))
            self._references.put(id(pod.spec), known)
        return (resource, name) in known[1]

    # -- the index ----------------------------------------------------------------------------

    def _pods_by_node(self) -> dict[str, dict[str, dict[str, Pod]]]:
        if self._pods is None:
            self._pods = {}
            for pod in self._store.table("pods").select(Selection()):
                self._add(self._pods, pod)
            self._store.commit_hooks.append(self._on_commit)
        return self._pods

    def _on_commit(self, commit: Commit) -> None:
        if commit.resource != "pods" or self._pods is None:
            return
        pod = commit.obj
        if commit.event.type is not EventType.DELETED:
            self._add(self._pods, pod)
            return
        namespaces = self._pods.get(pod.spec.nodeName, {})
        pods = namespaces.get(pod.metadata.namespace, {})
        pods.pop(pod.metadata.name, None)
        if not pods:
            namespaces.pop(pod.metadata.namespace, None)
            if not namespaces:
                self._pods.pop(pod.spec.nodeName, None)

    @staticmethod
    def _add(index: dict[str, dict[str, dict[str, Pod]]], pod: Pod) -> None:
        if pod.spec.nodeName:
            namespaces = index.setdefault(pod.spec.nodeName, {})
            namespaces.setdefault(pod.metadata.namespace, {})[pod.metadata.name] = pod


# -- references -------------------------------------------------------------------------------


def claim_of(pod: Pod, volume: Volume) -> str:
    """The name of the PersistentVolumeClaim behind a volume of a pod, or ``""``."""
    if volume.persistentVolumeClaim is not None:
        return volume.persistentVolumeClaim.claimName
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else ""


def references(spec: PodSpec) -> Iterator[tuple[str, str]]:
    """The Secrets and ConfigMaps that a pod refers to, each as resource and name."""
    for reference in spec.imagePullSecrets:
        yield "secrets", reference.name
    for container in (*spec.containers, *spec.initContainers, *spec.ephemeralContainers):
        yield from _container_references(container)
    for volume in spec.volumes:
        yield from _volume_references(volume)


def _container_references(container: Any) -> Iterator[tuple[str, str]]:
    for source in container.envFrom:
        if source.secretRef is not None:
            yield "secrets", source.secretRef.name
        if source.configMapRef is not None:
            yield "configmaps", source.configMapRef.name
    for variable in container.env:
        value = variable.valueFrom
        if value is not None and value.secretKeyRef is not None:
            yield "secrets", value.secretKeyRef.name
        if value is not None and value.configMapKeyRef is not None:
            yield "configmaps", value.configMapKeyRef.name


def _volume_references(volume: Volume) -> Iterator[tuple[str, str]]:
    if volume.azureFile is not None:
        yield "secrets", volume.azureFile.secretName
    if volume.secret is not None:
        yield "secrets", volume.secret.secretName
    if volume.configMap is not None:
        yield "configmaps", volume.configMap.name
    if volume.csi is not None and volume.csi.nodePublishSecretRef is not None:
        yield "secrets", volume.csi.nodePublishSecretRef.name
    for source in _VOLUME_SECRETS:
        found: Any = getattr(volume, source)
        if found is not None and found.secretRef is not None:
            yield "secrets", found.secretRef.name
    for projected in projected_sources(volume):
        if projected.secret is not None:
            yield "secrets", projected.secret.name
        if projected.configMap is not None:
            yield "configmaps", projected.configMap.name


def projected_sources(volume: Volume) -> tuple[VolumeProjection, ...]:
    """The sources of a projected volume; of other volumes none."""
    return (volume.projected.sources or ()) if volume.projected is not None else ()


def volume_secrets(volume: PersistentVolume) -> tuple[tuple[str, str], ...]:
    """The Secrets of a bound PersistentVolume that kubelets read, each as namespace and name."""
    spec = volume.spec
    if spec.claimRef is None:
        return ()
    found: list[tuple[str, str]] = []
    if spec.azureFile is not None and spec.azureFile.secretName:
        found.append((spec.azureFile.secretNamespace or spec.claimRef.namespace, spec.azureFile.secretName))
    sources: list[Any] = [getattr(getattr(spec, source), "secretRef", None) for source in _PV_SECRETS]
    if spec.storageos is not None:
        sources.append(spec.storageos.secretRef)
    if spec.csi is not None:
        sources += [getattr(spec.csi, reference) for reference in _CSI_SECRETS]
    found += [(each.namespace or spec.claimRef.namespace, each.name) for each in sources if each is not None]
    return tuple((namespace, name) for namespace, name in found if name)
