"""Strategies of core resources: Namespaces, Services, PersistentVolumes, PersistentVolumeClaims, and CSIDrivers."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api.generated.core_v1 import (
    LoadBalancerStatus,
    Namespace,
    NamespaceStatus,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeStatus,
    Service,
    ServiceStatus,
)
from steersman.api.generated.storage_v1 import CSIDriver
from steersman.server.defaulting.core import default_namespace
from steersman.server.defaulting.volumes import normalize_data_sources
from steersman.server.registry.strategy import WriteContext

# -- namespaces -------------------------------------------------------------------------------

NAMESPACE_FINALIZER = "kubernetes"
"""The finalizer in the spec: the namespace controller removes it once the namespace is empty."""

IMMORTAL_NAMESPACES = ("default", "kube-public", "kube-system")


def prepare_namespace_for_create(namespace: Namespace, context: WriteContext) -> Namespace:
    """Adds the namespace finalizer and sets the phase to Active."""
    finalizers = namespace.spec.finalizers
    if NAMESPACE_FINALIZER not in finalizers:
        finalizers = (*finalizers, NAMESPACE_FINALIZER)
    # Defaulting sets the name label, but ran before a generated name was known.
    namespace = default_namespace(namespace)
    return replace(
        namespace,
        spec=replace(namespace.spec, finalizers=finalizers),
        status=NamespaceStatus(phase="Active"),
    )


def prepare_namespace_for_update(new: Namespace, old: Namespace, context: WriteContext) -> Namespace:
    """Keeps the finalizers of the spec and the status."""
    spec = replace(new.spec, finalizers=old.spec.finalizers)
    return replace(default_namespace(new), spec=spec, status=old.status)


def prepare_namespace_for_finalize(new: Namespace, old: Namespace, context: WriteContext) -> Namespace:
    """Prepares an update of the finalize subresource, the only way to remove a finalizer of the spec."""
    return replace(default_namespace(new), status=old.status)


def namespace_can_finish_deletion(namespace: Namespace) -> bool:
    """Whether no finalizer of the spec is left."""
    return not namespace.spec.finalizers


# -- services ---------------------------------------------------------------------------------


def prepare_service_for_create(obj: Service, context: WriteContext) -> Service:
    """Normalizes the cluster IPs and clears the status."""
    return replace(_normalize_cluster_ips(obj), status=ServiceStatus())


def prepare_service_for_update(new: Service, old: Service, context: WriteContext) -> Service:
    """Normalizes the cluster IPs and keeps the status; that of a load balancer only while the type is LoadBalancer."""
    status = old.status
    if new.spec.type != "LoadBalancer" and status.loadBalancer.ingress:
        status = replace(status, loadBalancer=LoadBalancerStatus())
    return replace(_normalize_cluster_ips(new), status=status)


def _normalize_cluster_ips(obj: Service) -> Service:
    """Sets ``clusterIPs`` from ``clusterIP``, the only one that old clients know; it gets no field manager."""
    spec = obj.spec
    if not spec.clusterIP or spec.clusterIPs:
        return obj
    return replace(obj, spec=replace(spec, clusterIPs=(spec.clusterIP,)))


# -- volumes ----------------------------------------------------------------------------------


def prepare_volume_for_create(volume: PersistentVolume, context: WriteContext) -> PersistentVolume:
    """Sets the phase of a new volume to Pending."""
    return replace(
        volume, status=PersistentVolumeStatus(phase="Pending", lastPhaseTransitionTime=context.now)
    )


def prepare_volume_for_status_update(
    new: PersistentVolume, old: PersistentVolume, context: WriteContext
) -> PersistentVolume:
    """Sets lastPhaseTransitionTime for writers that do not."""
    status, before = new.status, old.status
    since = status.lastPhaseTransitionTime
    if status.phase == before.phase:
        since = since or before.lastPhaseTransitionTime
    elif since is None or since == before.lastPhaseTransitionTime:
        since = context.now
    return replace(old, metadata=new.metadata, status=replace(status, lastPhaseTransitionTime=since))


def prepare_claim_for_create(claim: PersistentVolumeClaim, context: WriteContext) -> PersistentVolumeClaim:
    """Sets the phase of a new claim to Pending, and keeps both data sources in step."""
    status = PersistentVolumeClaimStatus(phase="Pending")
    return replace(claim, spec=normalize_data_sources(claim.spec), status=status)


def prepare_claim_for_update(
    new: PersistentVolumeClaim, old: PersistentVolumeClaim, context: WriteContext
) -> PersistentVolumeClaim:
    """Keeps the status, and both data sources in step."""
    return replace(new, spec=normalize_data_sources(new.spec), status=old.status)


# -- CSI drivers ------------------------------------------------------------------------------


def prepare_driver_for_create(driver: CSIDriver, context: WriteContext) -> CSIDriver:
    """Drops a field whose feature gate is off."""
    if driver.spec.preventPodSchedulingIfMissing is None:
        return driver
    return replace(driver, spec=replace(driver.spec, preventPodSchedulingIfMissing=None))


def prepare_driver_for_update(new: CSIDriver, old: CSIDriver, context: WriteContext) -> CSIDriver:
    """Counts the changes of the spec. As upstream, a new driver has no generation."""
    if old.spec.preventPodSchedulingIfMissing is None:
        new = prepare_driver_for_create(new, context)
    if new.spec == old.spec:
        return new
    return replace(new, metadata=replace(new.metadata, generation=old.metadata.generation + 1))
