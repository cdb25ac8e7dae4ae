"""Paths and operations of resources, independent of the version of OpenAPI.

kubectl reads from them whether a PATCH supports ``fieldValidation``, ``dryRun`` and strategic merge patches, and
the kind of each path.

differs: the deprecated ``watch/`` paths are not listed, and protobuf is not among the media types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from steersman.api.generated import Resource, Subresource
from steersman.server.codec.negotiation import JSON, YAML
from steersman.server.discovery.openapi import schemas

ANY = "*/*"


class Parameter(NamedTuple):
    """A query or path parameter."""

    name: str
    type: str = "string"
    location: str = "query"


class Operation(NamedTuple):
    """One method on one path."""

    method: str
    id: str
    tag: str
    action: str = ""
    kind: tuple[str, str, str] = ("", "", "")
    parameters: tuple[Parameter, ...] = ()
    body: str = ""
    """The name of the body's definition; empty without a body."""
    body_types: tuple[str, ...] = ()
    body_required: bool = True
    response: str = ""
    """The name of the response's definition; empty for text."""
    codes: tuple[int, ...] = (200,)
    produces: tuple[str, ...] = (JSON, YAML)


class Path(msgspec.Struct, frozen=True):
    """A path and its operations. Parameters that all operations share belong to the path."""

    path: str
    parameters: tuple[Parameter, ...]
    operations: tuple[Operation, ...]


def _query(text: str) -> tuple[Parameter, ...]:
    """Query parameters from words of ``name`` or ``name:type``; the type defaults to string."""
    split = (part.partition(":") for part in text.split())
    return tuple(Parameter(name, type_ or "string") for name, _, type_ in split)


_NAME = Parameter("name", location="path")
_NAMESPACE = Parameter("namespace", location="path")
_PRETTY = Parameter("pretty")
_LIST = _query(
    "allowWatchBookmarks:boolean continue fieldSelector labelSelector limit:integer resourceVersion"
    " resourceVersionMatch sendInitialEvents:boolean shardSelector timeoutSeconds:integer watch:boolean"
)
_WRITE = _query("dryRun fieldManager fieldValidation")
_PATCH = (*_WRITE, Parameter("force", "boolean"))
_DELETE = _query(
    "dryRun gracePeriodSeconds:integer ignoreStoreReadErrorWithClusterBreakingPotential:boolean"
    " orphanDependents:boolean propagationPolicy"
)
_DELETE_ALL = tuple(
    sorted({*_DELETE, *(item for item in _LIST if item.name not in ("allowWatchBookmarks", "watch"))})
)
_STREAMS = "stderr:boolean stdin:boolean stdout:boolean tty:boolean"
_CONNECT = {
    "PodAttachOptions": _query(f"container {_STREAMS}"),
    "PodExecOptions": _query(f"command container {_STREAMS}"),
    "PodPortForwardOptions": _query("ports:integer"),
    "NodeProxyOptions": _query("path"),
    "PodProxyOptions": _query("path"),
    "ServiceProxyOptions": _query("path"),
}
_LOG = _query(
    "container follow:boolean insecureSkipTLSVerifyBackend:boolean limitBytes:integer previous:boolean"
    " sinceSeconds:integer stream tailLines:integer timestamps:boolean"
)
_PATCH_TYPES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_PROXY_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
# The kinds whose DELETE responds with the object; all others respond with a Status.
_RETURNED_BY_DELETE = (
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodTemplate",
    "ResourceQuota",
    "Service",
    "ServiceAccount",
    "CSIDriver",
    "CSINode",
    "StorageClass",
    "VolumeAttachment",
    "VolumeAttributesClass",
    "DeviceClass",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
)


def version_root(group: str, version: str) -> str:
    """The root path of a group version."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def group_title(group: str) -> str:
    """A group in operation ids: ``RbacAuthorization``, ``ExampleCom``, ``Core``."""
    words = group.removesuffix(".k8s.io").split(".") if group else ["core"]
    return "".join(part[:1].upper() + part[1:] for part in words)


def operation_tag(group: str, version: str) -> str:
    name = group_title(group)
    return f"{name[:1].lower()}{name[1:]}_{version}"


def version_path(group: str, version: str) -> Path:
    """The path that lists a version's resources."""
    operation = _discovery_operation(
        f"get{group_title(group)}{_capitalize(version)}APIResources",
        operation_tag(group, version),
        "APIResourceList",
    )
    return Path(f"{version_root(group, version)}/", (), (operation,))


def group_path(group: str) -> Path:
    """The path that lists a group's versions."""
    name = group_title(group)
    operation = _discovery_operation(f"get{name}APIGroup", f"{name[:1].lower()}{name[1:]}", "APIGroup")
    return Path(f"/apis/{group}/", (), (operation,))


API_PATH = "/api/"
APIS_PATH = "/apis/"


def root_paths() -> tuple[Path, Path]:
    """The paths ``/api`` and ``/apis``."""
    return (
        Path(API_PATH, (), (_discovery_operation("getCoreAPIVersions", "core", "APIVersions"),)),
        Path(APIS_PATH, (), (_discovery_operation("getAPIVersions", "apis", "APIGroupList"),)),
    )


def _discovery_operation(id_: str, tag: str, kind: str) -> Operation:
    return Operation("get", id_, tag, response=f"{schemas.META}.{kind}")


def _capitalize(part: str) -> str:
    return part[:1].upper() + part[1:]


class PathMaker:
    """Makes the paths of one resource. ``definition`` is the name of its kind's definition."""

    def __init__(self, row: Resource, definition: str, *, custom: bool = False) -> None:
        self._row = row
        self._definition = definition
        self._custom = custom
        self._root = version_root(row.group, row.version)
        self._tag = operation_tag(row.group, row.version)
        self._scope = (_NAMESPACE,) if row.namespaced else ()
        self._home = f"{self._root}/namespaces/{{namespace}}" if row.namespaced else self._root

    def paths(self) -> Iterator[Path]:
        """All paths of the resource and its subresources."""
        row = self._row
        subresource = f"{self._home}/{row.plural}"
        yield from self._path(subresource, self._scope, self._collection())
        if row.namespaced and "list" in row.verbs:
            yield from self._path(f"{self._root}/{row.plural}", (), [self._list(everywhere=True)])
        yield from self._path(f"{subresource}/{{name}}", (_NAME, *self._scope), self._item())
        for item in row.subresources:
            path = f"{subresource}/{{name}}/{item.name}"
            connects = item.kind in _CONNECT
            yield from self._path(path, (_NAME, *self._scope), self._subresource(item), pretty=not connects)
            if item.name == "proxy":
                parameters = (_NAME, *self._scope, Parameter("path", location="path"))
                proxied = self._connect(item, "WithPath")
                yield from self._path(f"{path}/{{path}}", parameters, proxied, pretty=False)

    def _path(
        self,
        path: str,
        parameters: tuple[Parameter, ...],
        candidates: Iterable[Operation],
        *,
        pretty: bool = True,
    ) -> Iterator[Path]:
        operations = tuple(candidates)
        if not operations:
            return
        common = [item for item in operations[0].parameters if all(item in o.parameters for o in operations)]
        shared = sorted([*parameters, *common, *([_PRETTY] if pretty else [])])
        own_operations = tuple(
            item._replace(parameters=tuple(p for p in item.parameters if p not in common))
            for item in operations
        )
        yield Path(path, tuple(shared), own_operations)

    def _id(self, verb: str, suffix: str = "", inner: str = "") -> str:
        row, scope = self._row, "Namespaced" if self._row.namespaced else ""
        return f"{verb}{group_title(row.group)}{_capitalize(row.version)}{inner}{scope}{row.kind}{suffix}"

    def _make(self, method: str, id_: str, action: str, **changes: Any) -> Operation:
        row = self._row
        operation = Operation(
            method, id_, self._tag, action, (row.group, row.version, row.kind), response=self._definition
        )
        return operation._replace(**changes)

    # -- the resource -------------------------------------------------------------------------

    def _collection(self) -> Iterator[Operation]:
        verbs = self._row.verbs
        if "list" in verbs:
            yield self._list()
        if "create" in verbs:
            yield self._create(self._id("create"), self._definition)
        if "deletecollection" in verbs:
            yield self._make(
                "delete",
                self._id("delete", inner="Collection"),
                "deletecollection",
                parameters=_DELETE_ALL,
                response=schemas.STATUS,
                **({} if self._custom else self._delete_body()),
            )

    def _list(self, *, everywhere: bool = False) -> Operation:
        row = self._row
        id_ = self._id("list")
        if everywhere:
            id_ = f"list{group_title(row.group)}{_capitalize(row.version)}{row.kind}ForAllNamespaces"
        watched = () if self._custom else (f"{JSON};stream=watch",)
        return self._make(
            "get",
            id_,
            "list",
            parameters=_LIST,
            response=f"{self._definition}List",
            produces=(JSON, *watched, YAML),
        )

    def _item(self) -> Iterator[Operation]:
        verbs = self._row.verbs
        if "get" in verbs:
            yield self._make("get", self._id("read"), "get")
        if "update" in verbs:
            yield self._replace(self._id("replace"))
        if "delete" in verbs:
            returned = not self._custom and self._row.kind in _RETURNED_BY_DELETE
            yield self._make(
                "delete",
                self._id("delete"),
                "delete",
                parameters=_DELETE,
                response=self._definition if returned else schemas.STATUS,
                codes=(200, 202),
                **self._delete_body(),
            )
        if "patch" in verbs:
            yield self._patch(self._id("patch"))

    def _delete_body(self) -> dict[str, Any]:
        return {"body": schemas.DELETE_OPTIONS, "body_types": self._body_types, "body_required": False}

    @property
    def _body_types(self) -> tuple[str, ...]:
        return (JSON, YAML) if self._custom else (ANY,)

    def _create(self, id_: str, definition: str) -> Operation:
        return self._make(
            "post",
            id_,
            "post",
            parameters=_WRITE,
            body=definition,
            body_types=self._body_types,
            response=definition,
            codes=(200, 201, 202),
        )

    def _replace(self, id_: str) -> Operation:
        return self._make(
            "put",
            id_,
            "put",
            parameters=_WRITE,
            body=self._definition,
            body_types=self._body_types,
            codes=(200, 201),
        )

    def _patch(self, id_: str) -> Operation:
        return self._make(
            "patch",
            id_,
            "patch",
            parameters=_PATCH,
            body=schemas.PATCH,
            body_types=_PATCH_TYPES[:3] if self._custom else _PATCH_TYPES,
            codes=(200,) if self._custom else (200, 201),
        )

    # -- subresources -------------------------------------------------------------------------

    def _subresource(self, subresource: Subresource) -> Iterator[Operation]:
        if subresource.kind in _CONNECT:
            yield from self._connect(subresource)
            return
        row, suffix = self._row, _capitalize(subresource.name)
        is_own_kind = (subresource.group, subresource.version, subresource.kind) == (
            row.group,
            row.version,
            row.kind,
        )
        definition = self._definition if is_own_kind else subresource_definition(subresource)
        # Upstream gives the scale of a custom resource the resource's own kind.
        kind = (
            (row.group, row.version, row.kind)
            if self._custom
            else (subresource.group, subresource.version, subresource.kind)
        )
        operations: list[Operation] = []
        if "get" in subresource.verbs:
            operations.append(self._make("get", self._id("read", suffix), "get"))
        if "update" in subresource.verbs:
            operations.append(self._replace(self._id("replace", suffix))._replace(body=definition))
        if "patch" in subresource.verbs:
            operations.append(self._patch(self._id("patch", suffix)))
        if "create" in subresource.verbs:
            operations.append(self._create(self._id("create", suffix), definition))
        for item in operations:
            item = item._replace(kind=kind, response=definition)
            if subresource.name == "log":
                item = item._replace(parameters=_LOG, response="", produces=("text/plain", JSON, YAML))
            yield item

    def _connect(self, subresource: Subresource, suffix: str = "") -> Iterator[Operation]:
        methods = _PROXY_METHODS if subresource.name == "proxy" else ("get", "post")
        for method in methods:
            id_ = self._id("connect", f"{_capitalize(subresource.name)}{suffix}", inner=_capitalize(method))
            operation = self._make(method, id_, "connect", parameters=_CONNECT[subresource.kind])
            yield operation._replace(
                kind=(subresource.group, subresource.version, subresource.kind), response="", produces=(ANY,)
            )


def subresource_definition(subresource: Subresource) -> str:
    """The name of the definition of a subresource's own kind."""
    from steersman.api.generated import resource
    from steersman.api.generated.table import BODIES

    key = subresource.group, subresource.version, subresource.kind
    return schemas.kind_name(BODIES.get(key) or resource(*key).module, subresource.kind)
