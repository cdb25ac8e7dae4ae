"""Subresources that are not a plain part of their object: scale, binding, and those that a kubelet serves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from steersman.api.errors import ServerError
from steersman.api.generated.autoscaling_v1 import Scale, ScaleSpec, ScaleStatus
from steersman.api.generated.core_v1 import Binding, Pod, PodCondition
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.label_selectors import compile_selector
from steersman.server import status_errors
from steersman.server.apply.deferred_owners import StoredManagedFields
from steersman.server.apply.field_manager import field_manager_for
from steersman.server.apply.options import APPLY_YAML
from steersman.server.codec.convert import CODECS
from steersman.server.registry.pod import set_condition
from steersman.server.registry.strategy import ScaleAccess, replace_all
from steersman.server.rest.apply import apply
from steersman.server.rest.authorization import authorize_stream
from steersman.server.rest.create import admit_body
from steersman.server.rest.patch import JSON, MERGE, STRATEGIC, patched_struct
from steersman.server.rest.request import Request, check_identity
from steersman.server.rest.update import change
from steersman.server.server import ObjectView, Server

if TYPE_CHECKING:
    from steersman.server.kubelet_api import KubeletApi

# -- scale ------------------------------------------------------------------------------------

_CUSTOM_APPLY = (
    "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind=Scale) "
    "to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
)
"""Upstream's refusal to apply the scale of a custom resource."""
_SCALE = ("autoscaling", "v1", "Scale", Scale)
_STORED_AS = {"replicationcontrollers": "controllers"}
"""Resources that upstream stores under another name, which its messages show."""


def get_scale(server: Server, request: Request) -> Scale:
    """The scale of a workload."""
    obj = server.get(request.resource, request.namespace, request.name)
    access = request.resource.strategy.scale
    if access is None:
        return scale_of(obj)
    scale = access.read(obj)
    if scale is None:
        raise status_errors.internal(f'the spec replicas field "{access.replicas_path}" does not exist')
    return scale


def update_scale(server: Server, request: Request, scale: Scale) -> Scale:
    """Sets the replicas of a workload."""
    return _change_scale(server, request, lambda old: scale)


def patch_scale(server: Server, request: Request, body: Any) -> Scale:
    """Patches or applies the scale of a workload."""
    patch_type, custom = request.patch_type, request.resource.type in CODECS
    if custom and patch_type == STRATEGIC:
        raise status_errors.unsupported_media_type(JSON, MERGE, APPLY_YAML)
    if patch_type != APPLY_YAML:
        return _change_scale(server, request, lambda old: patched_struct(old, body, patch_type))
    if custom:
        raise ServerError(_CUSTOM_APPLY)
    return _apply_scale(server, request, body if isinstance(body, Mapping) else {})


def scale_of(obj: Any) -> Scale:
    """The scale of a built-in workload."""
    meta = obj.metadata
    return Scale(
        metadata=ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            resourceVersion=meta.resourceVersion,
            creationTimestamp=meta.creationTimestamp,
        ),
        spec=ScaleSpec(replicas=obj.spec.replicas or 0),
        status=ScaleStatus(replicas=obj.status.replicas, selector=str(compile_selector(obj.spec.selector))),
    )


def _change_scale(server: Server, request: Request, make: Callable[[Scale], Scale]) -> Scale:
    access = request.resource.strategy.scale or ScaleAccess(
        scale_of, scale_of, partial(_scaled, request), "spec.replicas"
    )
    prepare = request.resource.strategy.prepare_for_update if request.resource.strategy.scale else replace_all

    def read(obj: Any) -> Scale:
        return access.read(obj) or access.unset(obj)

    def scaled(old: Any) -> Any:
        scale = make(read(old))
        check_identity(request, scale.metadata.namespace, scale.metadata.name)
        return access.write(old, scale)

    def owners(old: Any, new: Any) -> StoredManagedFields:
        return field_manager_for(request.resource, "scale").scaled(
            old,
            new,
            request.field_manager,
            server.now(),
            replicas=read(new).spec.replicas,
            path=access.replicas_path.lstrip("."),
        )

    view = ObjectView(*_SCALE, read=read, write=access.write)
    return read(change(server, request, scaled, prepare=prepare, owners=owners, view=view))


def _scaled(request: Request, old: Any, scale: Scale) -> Any:
    """A built-in workload with the replicas of a scale."""
    resource, name, meta = request.resource, request.name, scale.metadata
    if scale.spec.replicas < 0:
        negative = "must be greater than or equal to 0"
        wrong = [status_errors.field_invalid("spec.replicas", scale.spec.replicas, negative)]
        raise status_errors.invalid("autoscaling", "Scale", name, wrong)
    if meta.uid and meta.uid != old.metadata.uid:
        stored_as = _STORED_AS.get(resource.plural, resource.plural)
        raise status_errors.conflict(
            resource.group,
            resource.plural,
            name,
            "StorageError: invalid object, Code: 4, "
            f"Key: /registry/{stored_as}/{request.namespace}/{name}, "
            "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
            f"UID in precondition: {meta.uid}, UID in object meta: {old.metadata.uid}",
        )
    return replace(
        old,
        metadata=replace(old.metadata, resourceVersion=meta.resourceVersion),
        spec=replace(old.spec, replicas=scale.spec.replicas),
    )


def _apply_scale(server: Server, request: Request, configuration: Mapping[str, Any]) -> Scale:
    """Applies a scale: its manager then owns the workload's replicas."""
    given = configuration.get("apiVersion"), configuration.get("kind")
    if given != ("autoscaling/v1", "Scale"):
        group, _, version = str(given[0] or "").rpartition("/")
        raise status_errors.bad_request(f"invalid object type: {group}/{version}, Kind={given[1] or ''}")
    workload = {
        "apiVersion": request.resource.api_version,
        "kind": request.resource.kind,
        "metadata": configuration.get("metadata") or {},
        "spec": configuration.get("spec") or {},
    }
    return scale_of(apply(server, request, workload).obj)


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
