"""NodeRestriction: limits what nodes write to their own Node, Lease and CSINode, and to the pods that are bound to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from msgspec.structs import replace

from steersman.api.generated.core_v1 import Node, Pod
from steersman.api.kinds import EMPTY
from steersman.api.pem import parse_csr
from steersman.server import status_errors
from steersman.server.admission.plugin import AdmissionDenied, Listers, Plugin
from steersman.server.admission.service_account import mirror_pod_error
from steersman.server.auth.attributes import Attributes
from steersman.server.auth.node_graph import MIRROR_POD, claim_of, projected_sources, references
from steersman.server.server import AdmissionAttributes
from steersman.server.status_errors import quote

_LEASES = "kube-node-lease"
_SIGNERS = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet")
_KUBELET_LABELS = frozenset(
    {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    }
)
_KUBELET_LABEL_NAMESPACES = ("kubelet.kubernetes.io", "node.kubernetes.io")
_RESTRICTED_LABELS = "node-restriction.kubernetes.io"


class NodeRestriction(Plugin, frozen=True):
    """Names the plugin, so that it can be disabled. `Chain.restrict_node` calls `admit`, for deletions too."""

    name: ClassVar[str] = "NodeRestriction"


def admit(node: str, request: AdmissionAttributes, listers: Listers) -> None:
    """Admits a write of a node. Raises `AdmissionDenied` or `NotFound`."""
    if not node:
        raise AdmissionDenied(f"could not determine node from user {quote(request.user.name)}")
    match request.resource.id, request.subresource:
        case "pods", "":
            _admit_pod(node, request, listers)
        case "pods", "status":
            _admit_pod_status(node, request)
        case "pods", "eviction":
            pod = _pod(request, request.name, listers)
            if pod.spec.nodeName != node:
                raise AdmissionDenied(f"node {node} can only evict pods with spec.nodeName set to itself")
        case "pods", other:
            raise AdmissionDenied(
                f"unexpected pod subresource {quote(other)}, only 'status' and 'eviction' are allowed"
            )
        case "nodes", _:
            _admit_node(node, request)
        case "persistentvolumeclaims", "status":
            _admit_claim_status(node, request)
        case "persistentvolumeclaims", _:
            raise AdmissionDenied("may only update PVC status")
        case "serviceaccounts", "token" if request.operation == "CREATE":
            _admit_token(node, request, listers)
        case "leases.coordination.k8s.io", _:
            _admit_lease(node, request)
        case "csinodes.storage.k8s.io", _:
            if _name(request) != node:
                raise AdmissionDenied("can only access CSINode with the same name as the requesting node")
        case "resourceslices.resource.k8s.io", _:
            _admit_slice(node, request)
        case "certificatesigningrequests.certificates.k8s.io", _ if request.operation == "CREATE":
            _admit_signing_request(node, request.obj)


def _name(request: AdmissionAttributes) -> str:
    name: str = request.obj.metadata.name if request.operation == "CREATE" else request.name
    return name


def _pod(request: AdmissionAttributes, name: str, listers: Listers) -> Pod:
    found: Pod | None = listers.get("pods", request.namespace, name)
    if found is None:
        raise status_errors.not_found("", "pod", name)  # upstream's word here
    return found


# -- pods -------------------------------------------------------------------------------------


def _admit_pod(node: str, request: AdmissionAttributes, listers: Listers) -> None:
    match request.operation:
        case "CREATE":
            _admit_mirror_pod(node, request.obj, listers)
        case "DELETE":
            if request.old.spec.nodeName != node:
                raise AdmissionDenied(
                    f"node {quote(node)} can only delete pods with spec.nodeName set to itself"
                )
        case other:
            raise AdmissionDenied(
                f"unexpected operation {quote(other)}, node {quote(node)} can only create and delete mirror pods"
            )


def _admit_mirror_pod(node: str, pod: Pod, listers: Listers) -> None:
    who, owners = f"node {quote(node)}", pod.metadata.ownerReferences
    # The plugin ServiceAccount comes before.
    if MIRROR_POD in pod.metadata.annotations and (reason := mirror_pod_error(pod)):
        raise AdmissionDenied(reason)
    if MIRROR_POD not in pod.metadata.annotations:
        raise AdmissionDenied(
            f"pod does not have {quote(MIRROR_POD)} annotation, {who} can only create mirror pods"
        )
    if pod.spec.nodeName != node:
        raise AdmissionDenied(f"{who} can only create pods with spec.nodeName set to itself")
    if len(owners) > 1:
        raise AdmissionDenied(f"{who} can only create pods with a single owner reference set to itself")
    if not owners or (owners[0].apiVersion, owners[0].kind, owners[0].name) != ("v1", "Node", node):
        raise AdmissionDenied(f"{who} can only create pods with an owner reference set to itself")
    (owner,) = owners
    if not owner.controller:
        raise AdmissionDenied(f"{who} can only create pods with a controller owner reference set to itself")
    if owner.blockOwnerDeletion:
        raise AdmissionDenied(f"{who} must not set blockOwnerDeletion on an owner reference")
    found: Node | None = listers.get("nodes", "", node)
    if found is None:
        raise status_errors.not_found("", "nodes", node)
    if owner.uid != found.metadata.uid:
        raise AdmissionDenied(f"node {node} UID mismatch: expected {owner.uid} got {found.metadata.uid}")
    referred = next(_referred_resources(pod), "")
    if referred:
        raise AdmissionDenied(f"{who} can not create pods that reference {referred}")


def _referred_resources(pod: Pod) -> Iterator[str]:
    """The resources that a pod refers to, in upstream's words and order."""
    if pod.spec.serviceAccountName:
        yield "serviceaccounts"
    found = {resource for resource, name in references(pod.spec) if name}
    yield from (resource for resource in ("secrets", "configmaps") if resource in found)
    if pod.spec.resourceClaims:
        yield "resourceclaims"
    for volume in pod.spec.volumes:
        for source, words in _VOLUME_WORDS.items():
            if getattr(volume, source) is not None:
                yield words
        for projected in projected_sources(volume):
            for source, words in _PROJECTED_WORDS.items():
                if getattr(projected, source) is not None:
                    yield words


_VOLUME_WORDS = {
    "configMap": "configmaps (via configmap volumes)",
    "secret": "secrets (via secret volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "azureFile": "secrets (via azureFile volumes)",
}
_PROJECTED_WORDS = {
    "configMap": "configmaps (via projected volumes)",
    "secret": "secrets (via projected volumes)",
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


def _admit_pod_status(node: str, request: AdmissionAttributes) -> None:
    old, new = request.old, request.obj
    who = f"node {quote(node)}"
    if old.spec.nodeName != node:
        raise AdmissionDenied(f"{who} can only update pod status for pods with spec.nodeName set to itself")
    if dict(old.metadata.labels) != dict(new.metadata.labels):
        raise AdmissionDenied(f"{who} cannot update labels through pod status")
    if old.status.resourceClaimStatuses != new.status.resourceClaimStatuses:
        raise AdmissionDenied(f"{who} cannot update resource claim statues")
    if old.status.extendedResourceClaimStatus != new.status.extendedResourceClaimStatus:
        raise AdmissionDenied(f"{who} cannot update extended resource claim status")


# -- nodes ------------------------------------------------------------------------------------


def _admit_node(node: str, request: AdmissionAttributes) -> None:
    name, new, old = request.name or _name(request), request.obj, request.old
    if name != node:
        raise AdmissionDenied(f"node {quote(node)} is not allowed to modify node {quote(name)}")
    if request.operation == "CREATE":
        if new.spec.configSource is not None:
            raise AdmissionDenied(
                f"node {quote(node)} is not allowed to create pods with a non-nil configSource"
            )
        if labels := forbidden_labels(new.metadata.labels, EMPTY):
            raise AdmissionDenied(f"node {quote(node)} is not allowed to set the following labels: {labels}")
    if request.operation == "UPDATE":
        source = new.spec.configSource
        if source is not None and source != old.spec.configSource:
            raise AdmissionDenied(
                f"node {quote(node)} is not allowed to update configSource to a new non-nil configSource"
            )
        if new.spec.taints != old.spec.taints:
            raise AdmissionDenied(f"node {quote(node)} is not allowed to modify taints")
        if new.metadata.ownerReferences != old.metadata.ownerReferences:
            raise AdmissionDenied(f"node {quote(node)} is not allowed to modify ownerReferences")
        if labels := forbidden_labels(new.metadata.labels, old.metadata.labels):
            raise AdmissionDenied(f"is not allowed to modify labels: {labels}")


def forbidden_labels(new: Mapping[str, str], old: Mapping[str, str]) -> str:
    """The changed labels that a node may not set on itself, with commas between them."""
    if new is old:
        return ""
    changed = {key for key in {*new, *old} if new.get(key) != old.get(key)}
    return ", ".join(sorted(filter(_is_forbidden, changed)))


def _is_forbidden(label: str) -> bool:
    namespace = label.partition("/")[0] if "/" in label else ""
    if _within(namespace, _RESTRICTED_LABELS):
        return True
    if not (_within(namespace, "kubernetes.io") or _within(namespace, "k8s.io")):
        return False
    return label not in _KUBELET_LABELS and not any(
        _within(namespace, each) for each in _KUBELET_LABEL_NAMESPACES
    )


def _within(namespace: str, suffix: str) -> bool:
    return namespace == suffix or namespace.endswith(f".{suffix}")


def _admit_lease(node: str, request: AdmissionAttributes) -> None:
    if request.namespace != _LEASES:
        raise AdmissionDenied(f"can only access leases in the {quote(_LEASES)} system namespace")
    if _name(request) != node:
        raise AdmissionDenied("can only access node lease with the same name as the requesting node")


def _admit_slice(node: str, request: AdmissionAttributes) -> None:
    if request.operation == "CREATE" and request.obj.spec.nodeName != node:
        raise AdmissionDenied("can only create ResourceSlice with the same NodeName as the requesting node")
    if request.operation == "DELETE" and request.old.spec.nodeName != node:
        raise AdmissionDenied("can only delete ResourceSlice with the same NodeName as the requesting node")


# -- claims, tokens and certificates ----------------------------------------------------------


def _admit_claim_status(node: str, request: AdmissionAttributes) -> None:
    if request.operation != "UPDATE":
        raise AdmissionDenied(f"unexpected operation {quote(request.operation)}")
    old, new = (_without_node_fields(claim) for claim in (request.old, request.obj))
    if old != new:
        # differs: upstream adds a line-wise difference of Go structs.
        raise AdmissionDenied(
            f"node {quote(node)} is not allowed to update fields other than status.quantity and status.conditions"
        )


def _without_node_fields(claim: Any) -> Any:
    """A claim without what a node may change of it."""
    status = replace(
        claim.status, capacity=EMPTY, conditions=(), allocatedResourceStatuses=EMPTY, allocatedResources=EMPTY
    )
    return replace(
        claim, metadata=replace(claim.metadata, resourceVersion="", managedFields=()), status=status
    )


def _admit_token(node: str, request: AdmissionAttributes, listers: Listers) -> None:
    spec = request.obj.spec
    bound = spec.boundObjectRef
    if bound is None or (bound.apiVersion, bound.kind) != ("v1", "Pod") or not bound.name:
        raise AdmissionDenied("node requested token not bound to a pod")
    if not bound.uid:
        raise AdmissionDenied("node requested token with a pod binding without a uid")
    pod = _pod(request, bound.name, listers)
    if bound.uid != pod.metadata.uid:
        raise AdmissionDenied(
            f"the UID in the bound object reference ({bound.uid}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
    if pod.spec.nodeName != node:
        raise AdmissionDenied("node requested token bound to a pod scheduled on a different node")
    if len(spec.audiences or ()) > 1:
        raise AdmissionDenied("node may only request 0 or 1 audiences")
    audience = spec.audiences[0] if spec.audiences else ""
    if audience in _audiences(pod, listers):
        return
    right = Attributes(
        request.user,
        "request-serviceaccounts-token-audience",
        resource=audience,
        namespace=request.namespace,
        name=request.name,
    )
    authorizer = listers.authorizer
    if authorizer is not None and not authorizer.authorize(right).allowed:
        raise AdmissionDenied(
            f"audience {quote(audience)} not found in pod spec volume, "
            f"{request.user.name} is not authorized to request tokens for this audience"
        )


def _audiences(pod: Pod, listers: Listers) -> Iterator[str]:
    """The audiences of the tokens that a pod mounts, or that the CSI drivers of its volumes ask for."""
    for volume in pod.spec.volumes:
        for source in projected_sources(volume):
            if source.serviceAccountToken is not None:
                yield source.serviceAccountToken.audience
        driver = volume.csi.driver if volume.csi is not None else ""
        claim = listers.get("persistentvolumeclaims", pod.metadata.namespace, claim_of(pod, volume))
        if claim is not None:
            bound = listers.get("persistentvolumes", "", claim.spec.volumeName)
            driver = bound.spec.csi.driver if bound is not None and bound.spec.csi is not None else driver
        found = listers.get("csidrivers.storage.k8s.io", "", driver) if driver else None
        for token in (found.spec.tokenRequests or ()) if found is not None else ():
            yield token.audience


def _admit_signing_request(node: str, request: Any) -> None:
    if request.spec.signerName not in _SIGNERS:
        return
    from cryptography.x509.oid import NameOID

    try:
        parsed = parse_csr(request.spec.request)
    except ValueError as error:
        raise AdmissionDenied(f"unable to parse csr: {error}") from None
    names = [each.value for each in parsed.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if names != [f"system:node:{node}"]:
        raise AdmissionDenied(f"can only create a node CSR with CN=system:node:{node}")
