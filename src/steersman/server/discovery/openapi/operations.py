"""Paths and operations: what can be asked of a resource, independent of the version of OpenAPI.

kubectl looks here for what a server can do: whether a PATCH takes ``fieldValidation`` and ``dryRun``, whether
it takes strategic merge patches, which kind is served at a path.

differs: the deprecated ``watch/`` paths are not listed, and protobuf is not among the media types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from steersman.api.generated import Resource, Subresource
from steersman.server.codec.negotiation import JSON, YAML
from steersman.server.discovery.openapi import schemas

ANY = "*/*"


class Parameter(NamedTuple):
    """A parameter of the query or the path."""

    name: str
    type: str = "string"
    place: str = "query"


class Operation(NamedTuple):
    """One method on one path."""

    method: str
    id: str
    tag: str
    action: str = ""
    kind: tuple[str, str, str] = ("", "", "")
    parameters: tuple[Parameter, ...] = ()
    body: str = ""
    """The definition of the body, if there is one."""
    body_types: tuple[str, ...] = ()
    body_required: bool = True
    answer: str = ""
    """The definition of the answer; text where there is none."""
    codes: tuple[int, ...] = (200,)
    produces: tuple[str, ...] = (JSON, YAML)


class Path(NamedTuple):
    """A path and its operations. What all of them take stands here and not with each."""

    path: str
    parameters: tuple[Parameter, ...]
    operations: tuple[Operation, ...]


def _query(text: str) -> tuple[Parameter, ...]:
    """Parameters of the query from ``name`` or ``name:type``, text by default."""
    split = (word.partition(":") for word in text.split())
    return tuple(Parameter(name, type_ or "string") for name, _, type_ in split)


_NAME = Parameter("name", place="path")
_NAMESPACE = Parameter("namespace", place="path")
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
    sorted({*_DELETE, *(each for each in _LIST if each.name not in ("allowWatchBookmarks", "watch"))})
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
# Deleting one of these answers with the object; the others answer with a Status.
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


def root(group: str, version: str) -> str:
    """Where a version is served."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def title(group: str) -> str:
    """A group as identifiers have it: ``RbacAuthorization``, ``ExampleCom``, ``Core``."""
    words = group.removesuffix(".k8s.io").split(".") if group else ["core"]
    return "".join(word[:1].upper() + word[1:] for word in words)


def tag(group: str, version: str) -> str:
    name = title(group)
    return f"{name[:1].lower()}{name[1:]}_{version}"


def version_path(group: str, version: str) -> Path:
    """The path that lists a version's resources."""
    made = _read(f"get{title(group)}{_capital(version)}APIResources", tag(group, version), "APIResourceList")
    return Path(f"{root(group, version)}/", (), (made,))


def group_path(group: str) -> Path:
    """The path that lists a group's versions."""
    name = title(group)
    made = _read(f"get{name}APIGroup", f"{name[:1].lower()}{name[1:]}", "APIGroup")
    return Path(f"/apis/{group}/", (), (made,))


API_PATH = "/api/"
APIS_PATH = "/apis/"


def roots() -> tuple[Path, Path]:
    """``/api`` and ``/apis``."""
    return (
        Path(API_PATH, (), (_read("getCoreAPIVersions", "core", "APIVersions"),)),
        Path(APIS_PATH, (), (_read("getAPIVersions", "apis", "APIGroupList"),)),
    )


def _read(id_: str, tag: str, kind: str) -> Operation:
    return Operation("get", id_, tag, answer=f"{schemas.META}.{kind}")


def _capital(word: str) -> str:
    return word[:1].upper() + word[1:]


class Maker:
    """Makes the paths of one resource. ``definition`` is the name its kind is defined under."""

    def __init__(self, row: Resource, definition: str, *, custom: bool = False) -> None:
        self._row = row
        self._definition = definition
        self._custom = custom
        self._root = root(row.group, row.version)
        self._tag = tag(row.group, row.version)
        self._scope = (_NAMESPACE,) if row.namespaced else ()
        self._home = f"{self._root}/namespaces/{{namespace}}" if row.namespaced else self._root

    def paths(self) -> Iterator[Path]:
        """All paths of the resource and its subresources."""
        row = self._row
        below = f"{self._home}/{row.plural}"
        yield from self._path(below, self._scope, self._collection())
        if row.namespaced and "list" in row.verbs:
            yield from self._path(f"{self._root}/{row.plural}", (), [self._list(everywhere=True)])
        yield from self._path(f"{below}/{{name}}", (_NAME, *self._scope), self._item())
        for each in row.subresources:
            path = f"{below}/{{name}}/{each.name}"
            connects = each.kind in _CONNECT
            yield from self._path(path, (_NAME, *self._scope), self._subresource(each), pretty=not connects)
            if each.name == "proxy":
                rest = (_NAME, *self._scope, Parameter("path", place="path"))
                inside = self._connect(each, "WithPath")
                yield from self._path(f"{path}/{{path}}", rest, inside, pretty=False)

    def _path(
        self, path: str, parameters: tuple[Parameter, ...], made: Iterable[Operation], *, pretty: bool = True
    ) -> Iterator[Path]:
        operations = tuple(made)
        if not operations:
            return
        common = [each for each in operations[0].parameters if all(each in o.parameters for o in operations)]
        shared = sorted([*parameters, *common, *([_PRETTY] if pretty else [])])
        rest = tuple(
            each._replace(parameters=tuple(p for p in each.parameters if p not in common))
            for each in operations
        )
        yield Path(path, tuple(shared), rest)

    def _id(self, verb: str, suffix: str = "", inner: str = "") -> str:
        row, scope = self._row, "Namespaced" if self._row.namespaced else ""
        return f"{verb}{title(row.group)}{_capital(row.version)}{inner}{scope}{row.kind}{suffix}"

    def _make(self, method: str, id_: str, action: str, **rest: Any) -> Operation:
        row = self._row
        made = Operation(
            method, id_, self._tag, action, (row.group, row.version, row.kind), answer=self._definition
        )
        return made._replace(**rest)

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
                answer=schemas.STATUS,
                **({} if self._custom else self._delete_body()),
            )

    def _list(self, *, everywhere: bool = False) -> Operation:
        row = self._row
        id_ = self._id("list")
        if everywhere:
            id_ = f"list{title(row.group)}{_capital(row.version)}{row.kind}ForAllNamespaces"
        watched = () if self._custom else (f"{JSON};stream=watch",)
        return self._make(
            "get",
            id_,
            "list",
            parameters=_LIST,
            answer=f"{self._definition}List",
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
                answer=self._definition if returned else schemas.STATUS,
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
            answer=definition,
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

    # -- what is below it ---------------------------------------------------------------------

    def _subresource(self, below: Subresource) -> Iterator[Operation]:
        if below.kind in _CONNECT:
            yield from self._connect(below)
            return
        row, suffix = self._row, _capital(below.name)
        own = (below.group, below.version, below.kind) == (row.group, row.version, row.kind)
        definition = self._definition if own else body_name(below)
        # Custom resources say their own kind even of their scale.
        kind = (
            (row.group, row.version, row.kind) if self._custom else (below.group, below.version, below.kind)
        )
        made: list[Operation] = []
        if "get" in below.verbs:
            made.append(self._make("get", self._id("read", suffix), "get"))
        if "update" in below.verbs:
            made.append(self._replace(self._id("replace", suffix))._replace(body=definition))
        if "patch" in below.verbs:
            made.append(self._patch(self._id("patch", suffix)))
        if "create" in below.verbs:
            made.append(self._create(self._id("create", suffix), definition))
        for each in made:
            each = each._replace(kind=kind, answer=definition)
            if below.name == "log":
                each = each._replace(parameters=_LOG, answer="", produces=("text/plain", JSON, YAML))
            yield each

    def _connect(self, below: Subresource, suffix: str = "") -> Iterator[Operation]:
        methods = _PROXY_METHODS if below.name == "proxy" else ("get", "post")
        for method in methods:
            id_ = self._id("connect", f"{_capital(below.name)}{suffix}", inner=_capital(method))
            made = self._make(method, id_, "connect", parameters=_CONNECT[below.kind])
            yield made._replace(kind=(below.group, below.version, below.kind), answer="", produces=(ANY,))


def body_name(below: Subresource) -> str:
    """The definition of what a subresource speaks, where that is a kind of its own."""
    from steersman.api.generated import resource
    from steersman.api.generated.table import BODIES

    key = below.group, below.version, below.kind
    return schemas.kind_name(BODIES.get(key) or resource(*key).module, below.kind)
