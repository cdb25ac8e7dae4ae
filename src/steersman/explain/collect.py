"""Reads the snapshot of an explanation: each kind once, with get and list only. Kinds that may not be read are named in it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

from steersman.api.errors import ApiError, Forbidden, NotFound
from steersman.api.scheme import Kind
from steersman.client.api import Api, UndecodableObject
from steersman.client.pager import list_all
from steersman.explain.model import Document, Snapshot


def _kind(group: str, version: str, name: str, plural: str, namespaced: bool = True) -> Kind[dict[str, Any]]:
    return Kind(group, version, name, plural, namespaced, dict)


KINDS = (
    _kind("", "v1", "Pod", "pods"),
    _kind("", "v1", "Event", "events"),
    _kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    _kind("", "v1", "Service", "services"),
    _kind("", "v1", "ReplicationController", "replicationcontrollers"),
    _kind("", "v1", "ResourceQuota", "resourcequotas"),
    _kind("apps", "v1", "Deployment", "deployments"),
    _kind("apps", "v1", "ReplicaSet", "replicasets"),
    _kind("apps", "v1", "StatefulSet", "statefulsets"),
    _kind("apps", "v1", "DaemonSet", "daemonsets"),
    _kind("batch", "v1", "Job", "jobs"),
    _kind("batch", "v1", "CronJob", "cronjobs"),
    _kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    _kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    _kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims"),
    _kind("", "v1", "Node", "nodes", False),
    _kind("", "v1", "Namespace", "namespaces", False),
    _kind("", "v1", "PersistentVolume", "persistentvolumes", False),
    _kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", False),
)
ENDPOINT_SLICES = _kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
INGRESS_CLASSES = _kind("networking.k8s.io", "v1", "IngressClass", "ingressclasses", False)
EXTRA_KINDS = {"Service": (ENDPOINT_SLICES,), "Ingress": (ENDPOINT_SLICES, INGRESS_CLASSES)}
"""Kinds that are read besides, to explain objects of these kinds."""
LEASES = _kind("coordination.k8s.io", "v1", "Lease", "leases")
MANAGER = "kube-controller-manager"
MAX_ROUNDS = 300
"""Rounds of the namespace that are read."""
SHORT_NAMES = {
    "po": "Pod",
    "deploy": "Deployment",
    "rs": "ReplicaSet",
    "rc": "ReplicationController",
    "sts": "StatefulSet",
    "ds": "DaemonSet",
    "cj": "CronJob",
    "hpa": "HorizontalPodAutoscaler",
    "pdb": "PodDisruptionBudget",
    "pvc": "PersistentVolumeClaim",
    "pv": "PersistentVolume",
    "svc": "Service",
    "no": "Node",
    "ns": "Namespace",
    "sc": "StorageClass",
    "quota": "ResourceQuota",
    "ev": "Event",
}


class UnknownKind(Exception):
    """The server has no such kind. The message says what to do."""


class Target(NamedTuple):
    """The object to explain."""

    kind: Kind[dict[str, Any]]
    namespace: str
    name: str


async def find_kind(api: Api, word: str) -> Kind[dict[str, Any]]:
    """The kind that a word names, as kubectl reads it: ``deploy``, ``Deployment``, ``deployments.apps``, ``widgets``.

    Raises `UnknownKind`.
    """
    lower = word.lower()
    for kind in KINDS:
        if lower in (kind.name.lower(), kind.plural, kind.resource, f"{kind.name.lower()}.{kind.group}"):
            return kind
    if lower in SHORT_NAMES:
        return next(kind for kind in KINDS if kind.name == SHORT_NAMES[lower])
    found = await api.discover()
    for each in found.resources:
        singular = each.kind.lower()
        if lower in (singular, each.name, each.id, f"{singular}.{each.group}", *each.short_names):
            return _kind(each.group, each.version, each.kind, each.name, each.namespaced)
    raise UnknownKind(f"the server has no kind {word!r}; `kubectl api-resources` lists its kinds")


async def collect(
    api: Api, target: Target, now: datetime, trace: Api | None = None
) -> tuple[Document, Snapshot]:
    """The object to explain and its snapshot. Raises `NotFound`, or the error of reading the object itself.

    ``trace`` is the client of a manager that serves its trace; without it the API server is asked, which need not have one. Where
    there is a trace, the time of the snapshot is that of its clock.
    """
    document = await api.get(target.kind, target.namespace, target.name)
    document["kind"] = _shown_kind(target.kind)
    # A node has pods of all namespaces; an object in a namespace has to do with that one.
    namespace = target.namespace
    if target.kind.name == "Namespace":
        namespace = target.name
    unread: dict[str, str] = {}
    wanted = [kind for kind in KINDS if _concerns(kind, target, namespace)]
    lists = await asyncio.gather(*(_list(api, kind, namespace, target, unread) for kind in wanted))
    documents = [each for found in lists for each in found]
    documents += await read_extra(api, target, unread)
    documents += await _one(api, LEASES, "kube-system", MANAGER, unread)
    if target.kind.name == "CustomResourceDefinition" and document["metadata"].get("deletionTimestamp"):
        documents += await _list(api, _defined_kind(document), "", target, unread)
    if namespace:
        documents += await _one(api, KINDS_BY_NAME["Namespace"], "", namespace, unread)
    documents.append(document)
    rounds = await read_rounds(api if trace is None else trace, target, unread if trace is not None else {})
    if rounds is not None:
        now = rounds["now"]
    return document, Snapshot(now, documents, unread, rounds)


KINDS_BY_NAME = {kind.name: kind for kind in KINDS}


def _shown_kind(kind: Kind[Any]) -> str:
    """The kind of an object; with its group, where a kind of Kubernetes has the same name: ``Service.serving.knative.dev``."""
    known = KINDS_BY_NAME.get(kind.name)
    return f"{kind.name}.{kind.group}" if known is not None and known.group != kind.group else kind.name


def _defined_kind(definition: Document) -> Kind[dict[str, Any]]:
    """The kind of the objects that a CustomResourceDefinition defines."""
    spec = definition["spec"]
    version = next((each["name"] for each in spec["versions"] if each.get("served")), "")
    names = spec["names"]
    return _kind(spec["group"], version, names["kind"], names["plural"], spec["scope"] == "Namespaced")


def _concerns(kind: Kind[Any], target: Target, namespace: str) -> bool:
    """Whether a kind has to do with the object to explain."""
    if kind.name == "Namespace":
        return False
    if target.kind.name == "Node":
        return kind.name in ("Pod", "PodDisruptionBudget", "Event", "Node")
    return bool(namespace) or not kind.namespaced or target.kind.name == "PersistentVolume"


async def read_extra(api: Api, target: Target, unread: dict[str, str]) -> list[Document]:
    """The objects of the kinds that only the kind of the target needs."""
    found: list[Document] = []
    for kind in EXTRA_KINDS.get(target.kind.name, ()):
        found += await _list(api, kind, target.namespace, target, unread)
    return found


async def _list(
    api: Api, kind: Kind[dict[str, Any]], namespace: str, target: Target, unread: dict[str, str]
) -> Sequence[Document]:
    fields = ""
    if target.kind.name == "Node" and kind.name == "Pod":
        fields = f"spec.nodeName={target.name}"
    try:
        page = await list_all(api, kind, namespace if kind.namespaced else "", field_selector=fields)
    except NotFound:
        return ()
    except ApiError as error:
        unread[kind.name] = "no right to list them" if isinstance(error, Forbidden) else error.message
        return ()
    return list(_named(page.items, kind))


def _named(items: Iterable[Any], kind: Kind[Any]) -> Iterable[Document]:
    """The items of a list with their kind, which a list leaves out."""
    for item in items:
        if not isinstance(item, UndecodableObject):
            item["kind"] = _shown_kind(kind)
            yield item


async def _one(
    api: Api, kind: Kind[dict[str, Any]], namespace: str, name: str, unread: dict[str, str]
) -> Sequence[Document]:
    try:
        found = await api.get(kind, namespace, name)
    except NotFound:
        return ()
    except ApiError as error:
        unread[kind.name] = "no right to get it" if isinstance(error, Forbidden) else error.message
        return ()
    found["kind"] = kind.name
    return (found,)


async def read_rounds(api: Api, target: Target, unread: dict[str, str]) -> dict[str, Any] | None:
    """The rounds about the object and those of its namespace; None where the server has no trace, or does not show it."""
    about = {"namespace": target.namespace, "name": target.name, "kind": target.kind.name, "limit": "50"}
    about["include"] = "rounds,fights"  # the figures of all controllers explain nothing
    around = {"namespace": target.namespace, "limit": str(MAX_ROUNDS), "include": "rounds"}
    try:
        answer = await api.document(f"/debug/rounds?{urlencode(about)}")
        others = await api.document(f"/debug/rounds?{urlencode(around)}")
    except ApiError as error:
        unread["the trace"] = error.message
        return None
    except NotImplementedError:
        return None
    try:
        now = datetime.fromisoformat(str(answer["now"]))
        rounds = {each["number"]: each for each in (*others["rounds"], *answer["rounds"])}
    except (KeyError, TypeError, ValueError):
        return None
    return {**answer, "now": now, "rounds": [rounds[number] for number in sorted(rounds)]}
