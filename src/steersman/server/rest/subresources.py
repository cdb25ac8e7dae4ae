"""Subresources that are not a plain part of their object: binding, and those that a kubelet serves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from steersman.api.errors import ServerError
from steersman.api.generated.core_v1 import Binding, Pod, PodCondition
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server import status_errors
from steersman.server.registry.pod import set_condition
from steersman.server.rest.authorization import authorize_stream
from steersman.server.rest.create import admit_body
from steersman.server.rest.request import Request
from steersman.server.server import Server

if TYPE_CHECKING:
    from steersman.server.kubelet_api import KubeletApi

# -- binding ----------------------------------------------------------------------------------


def bind(server: Server, request: Request, binding: Binding) -> Mapping[str, Any]:
    """Assigns a pod to a node, once; returns a Status.

    The request is for ``pods/binding``, or for ``bindings``, where the Binding names the pod.
    """
    given: ObjectMeta = binding.metadata
    name, namespace = request.name or given.name, request.namespace
    if given.name and given.name != name:
        raise status_errors.bad_request("name in URL does not match name in Binding object")
    _check_target(binding)
    pods = server.registry.find("", "v1", "pods")
    now = server.now()

    def assigned(pod: Pod) -> Pod:
        obstacle = _obstacle(pod)
        if obstacle:
            raise status_errors.conflict("", "pods/binding", name, obstacle)
        meta = pod.metadata
        if given.resourceVersion and given.resourceVersion != meta.resourceVersion:
            raise status_errors.conflict(
                "",
                "pods",
                name,
                f"Precondition failed: ResourceVersion in precondition: {given.resourceVersion}, "
                f"ResourceVersion in object meta: {meta.resourceVersion}",
            )
        if given.annotations or given.labels:
            meta = replace(
                meta,
                annotations={**meta.annotations, **given.annotations},
                labels={**meta.labels, **given.labels},
            )
        scheduled = set_condition(
            pod.status.conditions, PodCondition(type="PodScheduled", status="True"), now
        )
        return replace(
            pod,
            metadata=meta,
            spec=replace(pod.spec, nodeName=binding.target.name),
            status=replace(pod.status, conditions=scheduled, nominatedNodeName=""),
        )

    # Admission is asked about the resource that the request was authorized for.
    binding = admit_body(server, request, pods if request.subresource else request.resource, name, binding)
    given = binding.metadata
    server.rewrite(pods, namespace, name, assigned, uid=given.uid)
    return status_errors.success_status()


def _check_target(binding: Binding) -> None:
    wrong = []
    if binding.target.kind not in ("", "Node"):
        wrong.append(
            status_errors.field_not_supported("target.kind", binding.target.kind, ("Node", "<empty>"))
        )
    if not binding.target.name:
        wrong.append(status_errors.field_required("target.name"))
    if wrong:
        # Upstream does not say that it is the client's mistake.
        raise ServerError(status_errors.aggregate(wrong))


def _obstacle(pod: Pod) -> str:
    """Why a pod cannot be bound; empty if it can."""
    name = pod.metadata.name
    if pod.metadata.deletionTimestamp is not None:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if pod.spec.nodeName:
        return f'pod {name} is already assigned to node "{pod.spec.nodeName}"'
    if pod.spec.schedulingGates:
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


# -- subresources that a kubelet serves -------------------------------------------------------

KUBELET_SUBRESOURCES = ("attach", "exec", "log", "portforward", "proxy")


def connect(server: Server, request: Request, container: str = "") -> Pod | None:
    """The pod whose kubelet is asked for logs, exec, attach or port forwarding, after the API server's own checks, in upstream's words.

    None for the log of a pod without a node, which upstream answers with no content.
    """
    subresource = request.subresource
    authorize_stream(server, request)
    pod: Pod = server.get(request.resource, request.namespace, request.name)
    if subresource != "portforward":
        _check_container(pod, container)
    if not pod.spec.nodeName:
        if subresource == "log":
            return None
        raise status_errors.bad_request(f"pod {request.name} does not have a host assigned")
    return pod


def check_addresses(server: Server, name: str, plural: str) -> None:
    """Refuses to ask the kubelet of a node that is not there, in the words of the resource that is asked for, or has no address."""
    node = server.store.table("nodes").get(name)
    if node is None:
        raise status_errors.not_found("", plural, name)
    if not node.status.addresses:
        raise ServerError("no preferred addresses found; known addresses: []", reason="")


def kubelets_of(server: Server, request: Request) -> KubeletApi:
    """The kubelets of a server. Raises an error where it has none."""
    if server.kubelets is None:
        raise ServerError(
            f"{request.resource.plural}/{request.subresource} is not available: "
            "this control plane has no nodes, there is no kubelet to ask",
            code=501,
            reason="NotImplemented",
        )
    return server.kubelets


def _check_container(pod: Pod, container: str) -> None:
    """Refuses a request that names no container of the pod, or none where there are several."""
    spec, name = pod.spec, pod.metadata.name
    names = [each.name for each in (*spec.initContainers, *spec.containers)]
    names += [each.name for each in spec.ephemeralContainers]
    if container and container not in names:
        raise status_errors.bad_request(f"container {container} is not valid for pod {name}")
    if not container and len(spec.containers) > 1:
        raise status_errors.bad_request(
            f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]"
        )
