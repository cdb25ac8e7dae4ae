"""The steps of a change, done to a cluster as kubectl does them. A step that cannot be done at all raises `ChangeError`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.errors import ApiError, NotFound, TooManyRequests
from steersman.api.scheme import Key, Kind
from steersman.api.suggestions import hint
from steersman.plan.change import Apply, ChangeError, Delete, Drain, Fail, Scale, SetImage, Step
from steersman.plan.recording import Recording, Refused
from steersman.server.apply import managed_fields
from steersman.server.apply.field_manager import field_manager_for
from steersman.server.apply.fields import to_field_set
from steersman.server.apply.last_applied import ANNOTATION
from steersman.server.apply.managed_fields import VersionedSet, manager_identifier
from steersman.server.apply.schema import SchemaError
from steersman.server.storage.store import object_key
from steersman.sim.nodes import NodeError, drain
from steersman.testing import Cluster, kinds

EVICTION_RETRY = 5.0
"""Seconds until a refused eviction is retried, as kubectl does."""
_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp")


class ChangeMaker:
    """Checks the steps of a change against a cluster, and makes them."""

    def __init__(
        self,
        cluster: Cluster,
        steps: Iterable[Step],
        namespace: str,
        *,
        force: bool = False,
        unread: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """``namespace`` is that of objects which name none; ``force`` also evicts pods without a controller; ``unread`` are
        resources whose objects are not known, with the reason."""
        self._unread = unread
        self._cluster = cluster
        self._steps = tuple(steps)
        self._namespace = namespace
        self._force = force

    # -- before -------------------------------------------------------------------------------

    def check(self) -> None:
        """Refuse steps that name kinds, objects or nodes which do not exist. Raises `ChangeError`."""
        defined = {_defines(step.document) for step in self._steps if isinstance(step, Apply)}
        for step in self._steps:
            match step:
                case Apply(document, origin):
                    about = (str(document["apiVersion"]).partition("/")[0], str(document["kind"]))
                    if about not in defined:
                        self._kind_of(document, origin)
                case Delete(kind, name) | Scale(kind, name):
                    self._find(kind, name)
                case SetImage(kind, name, _, container):
                    self._container(self._find(kind, name), step, container)
                case Drain(node) | Fail(node):
                    self._node(node)

    def restore_ownership(self) -> None:
        """Give kubectl the fields that it applied last: a field that the change leaves out is removed, as kubectl removes it.

        A snapshot has no managedFields, but the annotation of ``kubectl apply``.
        """
        for step in self._steps:
            if not isinstance(step, Apply):
                continue
            try:
                kind = kinds.kind_of_object(self._cluster.world.server, step.document)
                self._own(kind, *kinds.address(kind, step.document, self._namespace))
            except (LookupError, NotFound, SchemaError, msgspec.DecodeError):
                continue

    def _own(self, kind: Kind[Any], namespace: str, name: str) -> None:
        server = self._cluster.world.server
        resource = server.registry.of(kind)
        obj = server.get(resource, namespace, name)
        text = obj.metadata.annotations.get(ANNOTATION)
        last = msgspec.json.decode(text) if text else None
        if (
            not isinstance(last, dict)
            or last.get("apiVersion") != kind.api_version
            or obj.metadata.managedFields
        ):
            return
        # kubectl writes `annotations: {}` where a manifest has none, and does not own the annotations of others by that.
        meta = {
            field: value
            for field, value in (last.get("metadata") or {}).items()
            if field not in _IDENTITY and value != {}
        }
        content = {
            field: value for field, value in last.items() if field not in ("apiVersion", "kind", "status")
        }
        schema = field_manager_for(resource).resource_schema.schema
        fields = to_field_set({**content, "metadata": meta}, schema)
        manager = manager_identifier("kubectl", "Apply", kind.api_version)
        owned = managed_fields.write({manager: VersionedSet(fields, kind.api_version, server.now())})
        server.write(resource, object_key(namespace, name), replace(obj, metadata=obj.metadata), owned)

    # -- making -------------------------------------------------------------------------------

    def make(self, recording: Recording) -> None:
        """Make the change; requests that the server refuses are recorded."""
        for step in self._steps:
            try:
                self._make(step, recording)
            except ApiError as error:
                key, kind = self._about(step)
                told = without_data(step.document, error) if isinstance(step, Apply) else error
                recording.refused.append(Refused(self._cluster.now, str(step), key, kind, told))
            except ChangeError as error:
                # Steps were checked before: an earlier step has taken away what this one needs, or was refused.
                recording.refused.append(
                    Refused(self._cluster.now, str(step), None, "", ApiError(str(error)))
                )

    def _make(self, step: Step, recording: Recording) -> None:
        cluster = self._cluster
        match step:
            case Apply(document):
                kind = self._kind_of(document, step.origin)
                kinds.check_fields(cluster.world.server, kind, document)
                cluster.apply(document, self._namespace)
                if document.get("kind") == "CustomResourceDefinition":
                    cluster.run(cluster.world.loop.idle())
            case Delete(word, name):
                kind = self._kind(word)
                cluster.delete(kind, name, self._namespace if kind.namespaced else "")
            case Scale(word, name, replicas):
                cluster.scale(self._kind(word), name, replicas, self._namespace)
            case SetImage(word, name, image, container):
                obj = self._find(word, name)
                found = self._container(obj, step, container)
                body: dict[str, Any] = {
                    "template": {"spec": {"containers": [{"name": found, "image": image}]}}
                }
                if _template_of(obj) is obj.spec:
                    body = {"containers": [{"name": found, "image": image}]}
                elif hasattr(obj.spec, "jobTemplate"):
                    body = {"jobTemplate": {"spec": body}}
                cluster.patch(self._kind(word), name, {"spec": body}, self._namespace)
            case Drain(node):
                recording.draining[node] = cluster.now
                cluster.spawn(self._drain(node, recording), name=f"drain {node}")
            case Fail(node):
                assert cluster.kubelets is not None
                cluster.kubelets.fail(node)

    async def _drain(self, node: str, recording: Recording) -> None:
        api = _DrainApi(self._cluster, recording, node)
        try:
            await drain(
                api,  # type: ignore[arg-type]
                node,
                force=self._force,
                pause=EVICTION_RETRY,
                output=lambda line: None,
            )
        except (NodeError, ApiError) as error:
            refused = error if isinstance(error, ApiError) else ApiError(str(error))
            recording.refused.append(
                Refused(self._cluster.now, f"drain {node}", Key("", node), "Node", refused)
            )
        del recording.draining[node]

    # -- finding ------------------------------------------------------------------------------

    def _kind(self, word: str) -> Kind[Any]:
        try:
            return self._cluster.kind(word)
        except LookupError as error:
            raise ChangeError(str(error)) from None

    def _kind_of(self, document: Mapping[str, Any], origin: str) -> Kind[Any]:
        try:
            return kinds.kind_of_object(self._cluster.world.server, document)
        except LookupError as error:
            name = (document.get("metadata") or {}).get("name", "")
            raise ChangeError(f"{origin}: {document.get('kind')} {name}: {error}") from None

    def _find(self, word: str, name: str) -> Any:
        kind = self._kind(word)
        namespace = self._namespace if kind.namespaced else ""
        where = f" in namespace {namespace}" if namespace else ""
        try:
            return self._cluster.get(kind, name, namespace)
        except NotFound:
            why = self._unread.get(kind.resource)
            if why:
                raise ChangeError(f"{kind.name} {name!r}: {kind.resource} could not be read: {why}") from None
            names = [_name(each) for each in self._cluster.list(kind, namespace or None)]
            shown = f"there are: {', '.join(names[:10])}" if names else "there are none"
            raise ChangeError(
                f"there is no {kind.name} {name!r}{where}; {hint(name, names, shown)}"
            ) from None

    def _node(self, name: str) -> None:
        names = self._cluster.plan.nodes
        if "nodes" in self._unread:
            raise ChangeError(f"node {name!r}: nodes could not be read: {self._unread['nodes']}")
        if name not in names:
            raise ChangeError(f"the cluster has no node {name!r}; {hint(name, names, 'it has no nodes')}")

    def _container(self, obj: Any, step: SetImage, name: str) -> str:
        template = _template_of(obj)
        if template is None:
            raise ChangeError(f"--set-image: {step.kind}/{step.name} has no containers")
        names = [each.name for each in template.containers]
        if name and name not in names:
            raise ChangeError(
                f"--set-image: {step.kind}/{step.name} has no container {name!r}; {hint(name, names)}"
            )
        if not name and len(names) != 1:
            raise ChangeError(
                f"--set-image: {step.kind}/{step.name} has several containers ({', '.join(names)}): pass "
                f"{step.kind}/{step.name}=CONTAINER={step.image}"
            )
        return name or names[0]

    def _about(self, step: Step) -> tuple[Key | None, str]:
        match step:
            case Apply(document):
                meta = document.get("metadata") or {}
                kind = self._kind_of(document, step.origin)
                where = str(meta.get("namespace") or self._namespace) if kind.namespaced else ""
                return Key(where, str(meta.get("name", ""))), kind.name
            case Drain(node) | Fail(node):
                return Key("", node), "Node"
            case Delete(word, name) | Scale(word, name) | SetImage(word, name):
                kind = self._kind(word)
                return Key(self._namespace if kind.namespaced else "", name), kind.name


class _DrainApi:
    """The client of a drain: evictions that are refused, and later accepted, are recorded."""

    def __init__(self, cluster: Cluster, recording: Recording, node: str) -> None:
        self._api = cluster.client
        self._cluster = cluster
        self._recording = recording
        self._node = node

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def subresource(
        self, kind: Kind[Any], namespace: str, name: str, subresource: str, body: Any
    ) -> Any:
        action, key = f"evict from {self._node}", Key(namespace, name)
        try:
            done = await self._api.subresource(kind, namespace, name, subresource, body)
        except TooManyRequests as error:
            self._recording.refused.append(Refused(self._cluster.now, action, key, "Pod", error))
            raise
        self._recording.accepted.append((action, key))
        self._recording.draining[self._node] = self._cluster.now
        return done


def _defines(document: Mapping[str, Any]) -> tuple[str, str]:
    """The group and kind that a CustomResourceDefinition defines."""
    spec = document.get("spec") or {}
    if document.get("kind") != "CustomResourceDefinition" or not isinstance(spec, Mapping):
        return "", ""
    names = spec.get("names")
    return str(spec.get("group", "")), str(names.get("kind", "")) if isinstance(names, Mapping) else ""


def without_data(document: Mapping[str, Any], error: ApiError) -> ApiError:
    """The error about a Secret or a ConfigMap without values of its data: servers repeat those that have the wrong type."""
    if document.get("kind") not in ("Secret", "ConfigMap"):
        return error
    message = error.message
    values = [each for field in ("data", "stringData", "binaryData") for each in _values(document.get(field))]
    for value in sorted(values, key=len, reverse=True):
        for written in (value, msgspec.json.encode(value).decode()[1:-1]):
            message = message.replace(written, "…")
    return error if message == error.message else type(error)(message, reason=error.reason)


def _values(content: object) -> Iterator[str]:
    """All values in a part of a document, as text."""
    if isinstance(content, Mapping):
        for each in content.values():
            yield from _values(each)
    elif isinstance(content, list | tuple):
        for each in content:
            yield from _values(each)
    elif content is not None and str(content):
        yield str(content)


def _template_of(obj: Any) -> Any:
    """The pod spec in an object; None where it has none."""
    spec: Any = None if isinstance(obj, dict) else getattr(obj, "spec", None)
    if hasattr(spec, "jobTemplate"):
        spec = spec.jobTemplate.spec
    if hasattr(spec, "template"):
        template = spec.template
        spec = getattr(template, "spec", None)
    return spec if hasattr(spec, "containers") else None


def _name(obj: Any) -> str:
    return str(obj["metadata"]["name"] if isinstance(obj, dict) else obj.metadata.name)
