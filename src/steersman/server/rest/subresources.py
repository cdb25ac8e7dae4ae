"""Subresources, in documents: some are a part of their object, some are much more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from steersman.api.errors import ServerError
from steersman.api.generated.autoscaling_v1 import Scale, ScaleSpec, ScaleStatus
from steersman.api.generated.core_v1 import Binding, Pod, PodCondition
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.label_selectors import compile_selector
from steersman.server import status_errors
from steersman.server.codec.convert import adopt, document
from steersman.server.registry.pod import conditioned
from steersman.server.registry.resources import Resource
from steersman.server.registry.strategy import as_new
from steersman.server.rest import apply as applying
from steersman.server.rest import eviction, verbs
from steersman.server.server import Server


def call(
    server: Server,
    resource: Resource,
    namespace: str,
    name: str,
    subresource: str,
    verb: str,
    body: Mapping[str, Any],
    user: str,
    manager: str = "",
) -> dict[str, Any]:
    """A subresource by its name, in documents."""
    match subresource, verb:
        case "binding", "create":
            return bind(server, resource, namespace, name, body, user)
        case "eviction", "create":
            return eviction.evict(server, resource, namespace, name, body, user)
        case "scale", "get":
            return scale(server, resource, namespace, name, None, user)
        case "scale", "update":
            return scale(server, resource, namespace, name, lambda old: body, user, manager)
        case "status", "get":
            obj = server.get(resource, namespace, name)
        case "status", "update":
            obj = adopt(resource.type, body)
            obj = verbs.update_status(server, resource, namespace, name, obj, user=user, manager=manager)
        case "finalize", "update":
            obj = adopt(resource.type, body)
            obj = verbs.finalize(server, resource, name, obj, user=user, manager=manager)
        case _, "update" if subresource in resource.strategy.parts:
            new = adopt(resource.type, body)
            obj = verbs.patch(
                server,
                resource,
                namespace,
                name,
                lambda old: new,
                subresource=subresource,
                user=user,
                manager=manager,
            )
        case _:
            raise status_errors.unsupported(resource.group, f"{resource.plural}/{subresource}", verb)
    return document(resource.api_version, resource.kind, obj)


# -- binding ----------------------------------------------------------------------------------


def bind(
    server: Server, pods: Resource, namespace: str, name: str, body: object, user: str = ""
) -> dict[str, Any]:
    """Assign a pod to a node, once."""
    binding = adopt(Binding, body)
    given: ObjectMeta = binding.metadata
    if given.name and given.name != name:
        raise status_errors.bad_request("name in URL does not match name in Binding object")
    _bindable(binding)
    now = server.now()

    def assigned(pod: Pod) -> Pod:
        refusal = _why_not(pod)
        if refusal:
            raise status_errors.conflict("", "pods/binding", name, refusal)
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
        scheduled = conditioned(pod.status.conditions, PodCondition(type="PodScheduled", status="True"), now)
        return replace(
            pod,
            metadata=meta,
            spec=replace(pod.spec, nodeName=binding.target.name),
            status=replace(pod.status, conditions=scheduled, nominatedNodeName=""),
        )

    server.validate("CREATE", pods, "binding", namespace, name, binding, None, user)
    server.rewrite(pods, namespace, name, assigned, uid=given.uid)
    return status_errors.success()


def _bindable(binding: Binding) -> None:
    wrong = []
    if binding.target.kind not in ("", "Node"):
        wrong.append(status_errors.unknown("target.kind", binding.target.kind, ("Node", "<empty>")))
    if not binding.target.name:
        wrong.append(status_errors.required("target.name"))
    if wrong:
        # Upstream does not say that it is the client's mistake.
        raise ServerError(status_errors.together(wrong))


def _why_not(pod: Pod) -> str:
    name = pod.metadata.name
    if pod.metadata.deletionTimestamp is not None:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if pod.spec.nodeName:
        return f'pod {name} is already assigned to node "{pod.spec.nodeName}"'
    if pod.spec.schedulingGates:
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


# -- scale ------------------------------------------------------------------------------------


def scale_of(obj: Any) -> Scale:
    """How many replicas a workload wants and has."""
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


def scale(
    server: Server,
    resource: Resource,
    namespace: str,
    name: str,
    change: Callable[[Scale], object] | None,
    user: str,
    manager: str = "",
) -> dict[str, Any]:
    """Read a workload's scale, or set it."""
    if resource.strategy.scale is not None:
        return resource.strategy.scale(server, resource, namespace, name, change, user, manager)
    if change is None:
        obj = server.get(resource, namespace, name)
    else:
        make = change

        def scaled(old: Any) -> Any:
            wanted = adopt(Scale, make(scale_of(old)))
            meta = wanted.metadata
            addressed(namespace, name, meta)
            if wanted.spec.replicas < 0:
                negative = "must be greater than or equal to 0"
                wrong = [status_errors.wrong("spec.replicas", wanted.spec.replicas, negative)]
                raise status_errors.invalid("autoscaling", "Scale", name, wrong)
            if meta.uid and meta.uid != old.metadata.uid:
                raise status_errors.conflict(
                    resource.group,
                    resource.plural,
                    name,
                    "StorageError: invalid object, Code: 4, "
                    f"Key: /registry/{_KEPT.get(resource.plural, resource.plural)}/{namespace}/{name}, "
                    "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
                    f"UID in precondition: {meta.uid}, UID in object meta: {old.metadata.uid}",
                )
            return replace(
                old,
                metadata=replace(old.metadata, resourceVersion=meta.resourceVersion),
                spec=replace(old.spec, replicas=wanted.spec.replicas),
            )

        obj = verbs.change(
            server,
            resource,
            namespace,
            name,
            scaled,
            merge=as_new,
            subresource="scale",
            user=user,
            manager=manager,
        )
    return document("autoscaling/v1", "Scale", scale_of(obj))


_KEPT = {"replicationcontrollers": "controllers"}
"""What upstream stores under another name."""


def addressed(namespace: str, name: str, meta: ObjectMeta) -> None:
    """The scale of a request must be the one its path names."""
    if not meta.name:
        raise status_errors.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if meta.name != name:
        raise status_errors.bad_request(
            f"the name of the object ({meta.name}) does not match the name on the URL ({name})"
        )
    if meta.namespace and meta.namespace != namespace:
        raise status_errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def apply_scale(
    server: Server,
    resource: Resource,
    namespace: str,
    name: str,
    patch: Mapping[str, Any],
    *,
    manager: str,
    force: bool = False,
    user: str = "",
) -> Scale:
    """Apply a workload's scale: who does that owns the number of its replicas."""
    said = patch.get("apiVersion"), patch.get("kind")
    if said != ("autoscaling/v1", "Scale"):
        group, _, version = str(said[0] or "").rpartition("/")
        raise status_errors.bad_request(f"invalid object type: {group}/{version}, Kind={said[1] or ''}")
    whole = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": patch.get("metadata") or {},
        "spec": patch.get("spec") or {},
    }
    answer = applying.apply(
        server,
        resource,
        namespace,
        name,
        whole,
        manager=manager,
        force=force,
        subresource="scale",
        user=user,
    )
    return scale_of(answer.obj)
