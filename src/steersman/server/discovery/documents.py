"""Discovery documents: the groups, versions and resources that the server serves.

There are the legacy documents (APIVersions, APIGroupList, APIGroup, APIResourceList) and aggregated discovery,
one document with an ETag. Both come from the table of built-in resources and from the custom resources. A
`Discovery` is made anew when custom resources change, and makes each document on first use.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cached_property
from hashlib import sha256, sha512
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from steersman.api.errors import NotAcceptable, NotFound
from steersman.api.generated import Resource, Subresource, resources
from steersman.api.generated.apiextensions_v1 import CustomResourceColumnDefinition, CustomResourceDefinition
from steersman.server.codec.negotiation import MediaTypeOptions, Target, negotiate

if TYPE_CHECKING:
    from steersman.server.discovery.remote import RemoteVersion

Document: TypeAlias = dict[str, Any]

AGGREGATED = Target("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")

# Upstream's order of the verbs of custom resources; those of built-in resources are sorted.
CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_TERMINATING_VERBS = ("delete", "deletecollection", "get", "list", "watch")
_STATUS_VERBS = ("get", "patch", "update")
# Kinds that kube-apiserver stores in another version than it serves.
_STORAGE_VERSIONS = {
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): "admissionregistration.k8s.io/v1beta1",
    (
        "admissionregistration.k8s.io",
        "MutatingAdmissionPolicyBinding",
    ): "admissionregistration.k8s.io/v1beta1",
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "apiextensions.k8s.io/v1beta1",
    ("autoscaling", "HorizontalPodAutoscaler"): "autoscaling/v2",
    ("events.k8s.io", "Event"): "/v1",
}


class EncodedDocument(msgspec.Struct, frozen=True):
    """An encoded document and its ETag, in quotes as in the header."""

    body: bytes
    etag: str


def encode_document(document: object) -> EncodedDocument:
    """Encodes a document and computes its ETag."""
    return with_etag(msgspec.json.encode(document))


def with_etag(body: bytes) -> EncodedDocument:
    """An encoded document with its ETag."""
    return EncodedDocument(body, f'"{sha512(body).hexdigest().upper()}"')


# -- custom resources -------------------------------------------------------------------------


class CustomResource(msgspec.Struct, frozen=True, eq=False):
    """One served version of a custom resource, with the fields that discovery, OpenAPI and tables need."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    storage_version: str = ""
    status: bool = False
    scale: bool = False
    terminating: bool = False
    """Whether its definition is being deleted, so that no object may be created."""
    schema: Mapping[str, Any] | None = None
    """The structural schema, as a plain document."""
    columns: tuple[CustomResourceColumnDefinition, ...] = ()

    @property
    def row(self) -> Resource:
        """The custom resource as a row of the table of resources."""
        subresources = []
        if self.status:
            subresources.append(Subresource("status", self.group, self.version, self.kind, _STATUS_VERBS))
        if self.scale:
            subresources.append(Subresource("scale", "autoscaling", "v1", "Scale", _STATUS_VERBS))
        return Resource(
            self.group,
            self.version,
            self.kind,
            self.plural,
            self.singular,
            self.namespaced,
            self.short_names,
            self.categories,
            _TERMINATING_VERBS if self.terminating else CUSTOM_VERBS,
            tuple(subresources),
            "",
        )


def custom_resources(definition: CustomResourceDefinition) -> tuple[CustomResource, ...]:
    """The resources of a definition: one per served version, none before it is established."""
    true_conditions = [item.type for item in definition.status.conditions or () if item.status == "True"]
    if "Established" not in true_conditions:
        return ()
    spec, names = definition.spec, definition.status.acceptedNames
    storage_version = next(
        (version.name for version in spec.versions if version.storage and version.served), ""
    )
    served = []
    for version in spec.versions:
        if not version.served:
            continue
        subresources = version.subresources
        schema = version.schema.openAPIV3Schema if version.schema else None
        served.append(
            CustomResource(
                group=spec.group,
                version=version.name,
                kind=names.kind,
                plural=names.plural,
                singular=names.singular,
                namespaced=spec.scope == "Namespaced",
                list_kind=names.listKind,
                short_names=names.shortNames,
                categories=names.categories,
                storage_version=storage_version,
                status=subresources is not None and subresources.status is not None,
                scale=subresources is not None and subresources.scale is not None,
                terminating="Terminating" in true_conditions,
                schema=None if schema is None else msgspec.json.decode(msgspec.json.encode(schema)),
                columns=version.additionalPrinterColumns,
            )
        )
    return tuple(served)


CUSTOM_PRIORITY = (1000, 100)
"""The priorities of the groups and versions of custom resources, as upstream registers their APIServices."""
_METRICS_PRIORITY = 100
"""The priority of the group metrics.k8s.io, as metrics-server registers it."""

METRICS_RESOURCES = tuple(
    Resource("metrics.k8s.io", "v1beta1", kind, plural, "", namespaced, (), (), ("get", "list"), (), "")
    for kind, plural, namespaced in (("NodeMetrics", "nodes", False), ("PodMetrics", "pods", True))
)
"""The resources of metrics-server."""

_KUBE_VERSION = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?", re.ASCII)
_STAGES = {"alpha": 0, "beta": 1, None: 2}


def version_order(version: str) -> tuple[Any, ...]:
    """The sort key of versions by priority: v2, v1, v1beta2, v1alpha1, then others by name."""
    match = _KUBE_VERSION.fullmatch(version)
    if match is None:
        return (1, version)
    return (0, -_STAGES[match[2]], -int(match[1]), -int(match[3] or 0))


# -- documents ----------------------------------------------------------------------------


class _GroupVersion(msgspec.Struct, frozen=True):
    """A group version and its resources."""

    name: str
    resources: tuple[Resource, ...]
    stored: Mapping[str, str]
    """The storage version of each custom resource, by plural."""
    custom: bool
    priority: int = CUSTOM_PRIORITY[1]
    """Its place among the versions of its group: the larger, the earlier."""
    document: Mapping[str, Any] | None = None
    """The APIVersionDiscovery of one that another server serves."""


class Discovery:
    """The discovery documents of the resources that are served."""

    def __init__(
        self,
        custom: Iterable[CustomResource] = (),
        *,
        metrics: bool = False,
        built_in: Iterable[Resource] | None = None,
        remote: Iterable[RemoteVersion] = (),
    ) -> None:
        rows: dict[str, dict[str, list[Resource]]] = {}
        for row in resources() if built_in is None else built_in:
            rows.setdefault(row.group, {}).setdefault(row.version, []).append(row)
        self._groups = {
            group: tuple(_GroupVersion(name, tuple(served), {}, False) for name, served in versions.items())
            for group, versions in rows.items()
        }
        self._priorities: dict[str, int] = {}
        """The priorities of groups of aggregated servers."""
        self._add(custom)
        if metrics:
            self._groups["metrics.k8s.io"] = (_GroupVersion("v1beta1", METRICS_RESOURCES, {}, False),)
        self._add_remote(remote)

    def _add_remote(self, remote: Iterable[RemoteVersion]) -> None:
        """Adds the group versions of aggregated servers, in place of what is served here at the same version."""
        for found in sorted(remote, key=lambda each: (-each.group_priority, each.group, each.version)):
            group = found.group
            self._priorities[group] = max(found.group_priority, self._priorities.get(group, 0))
            others = (each for each in self._groups.get(group, ()) if each.name != found.version)
            made = _GroupVersion(found.version, (), {}, True, found.version_priority, found.document)
            self._groups[group] = tuple(
                sorted((*others, made), key=lambda each: (-each.priority, version_order(each.name)))
            )

    def _add(self, custom: Iterable[CustomResource]) -> None:
        """Adds custom resources after the built-in ones, sorted."""
        versions: dict[tuple[str, str], list[CustomResource]] = {}
        for item in sorted(custom, key=lambda item: (item.group, version_order(item.version), item.plural)):
            versions.setdefault((item.group, item.version), []).append(item)
        for (group, version), resources_of_version in versions.items():
            versions_of_group = self._groups.get(group, ())
            # A built-in version has no custom resources.
            if all(item.name != version for item in versions_of_group):
                rows = tuple(item.row for item in resources_of_version)
                stored = {item.plural: item.storage_version for item in resources_of_version}
                self._groups[group] = (*versions_of_group, _GroupVersion(version, rows, stored, True))

    def api(self, address: str) -> Document:
        """The APIVersions at ``/api``. ``address`` is the server's own: ``127.0.0.1:6443``."""
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}

    def apis(self) -> Document:
        """The APIGroupList at ``/apis``."""
        return {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [_api_group(name, self._groups[name]) for name in self._listed],
        }

    def group(self, name: str) -> Document:
        """The APIGroup at ``/apis/GROUP``. Raises `NotFound`."""
        if not name or name not in self._groups:
            raise _not_found()
        return {"kind": "APIGroup", "apiVersion": "v1", **_api_group(name, self._groups[name])}

    def resources(self, group: str, version: str) -> Document:
        """The APIResourceList at ``/api/v1`` (the empty group) or ``/apis/GROUP/VERSION``. Raises `NotFound`."""
        group_version = next((item for item in self._groups.get(group, ()) if item.name == version), None)
        if group_version is None:
            raise _not_found()
        # Upstream's document at /api/v1 has no apiVersion.
        head: Document = {"kind": "APIResourceList"} | ({"apiVersion": "v1"} if group else {})
        entries = [entry for row in group_version.resources for entry in _api_resources(row, group_version)]
        name = f"{group}/{version}" if group else version
        return {**head, "groupVersion": name, "resources": entries}

    @cached_property
    def aggregated_api(self) -> EncodedDocument:
        """Aggregated discovery at ``/api``."""
        return _aggregated_document({"": self._groups[""]} if "" in self._groups else {})

    @cached_property
    def aggregated_apis(self) -> EncodedDocument:
        """Aggregated discovery at ``/apis``."""
        return _aggregated_document({name: versions for name, versions in self._groups.items() if name})

    @property
    def _listed(self) -> list[str]:
        """The groups in the order of ``/apis``: others than built-in ones by priority, then by the name of their first APIService."""
        groups = [(name, versions) for name, versions in self._groups.items() if name]

        def order(item: tuple[str, tuple[_GroupVersion, ...]]) -> tuple[int, int, str]:
            name, versions = item
            first = min(f"{version.name}.{name}" for version in versions)
            priority = self._priorities.get(name)
            if priority is None and name == "metrics.k8s.io":
                priority = _METRICS_PRIORITY
            if priority is None and not all(version.custom for version in versions):
                return (0, 0, "")
            return (1, -(CUSTOM_PRIORITY[0] if priority is None else priority), first)

        return [name for name, _ in sorted(groups, key=order)]


def negotiate_discovery(accept: str) -> MediaTypeOptions:
    """Negotiates the form of ``/api`` and ``/apis``; the target is `AGGREGATED` or None.

    A clause for the aggregated form takes precedence over all others. Raises `NotAcceptable`.
    """
    if accept:
        try:
            return negotiate(accept, lambda _, target: target == AGGREGATED)
        except NotAcceptable:
            pass  # no clause requests aggregated discovery
    return negotiate(accept)


def _not_found() -> NotFound:
    return NotFound("the server could not find the requested resource", reason="NotFound")


def _api_group(name: str, versions: tuple[_GroupVersion, ...]) -> Document:
    entries = [{"groupVersion": f"{name}/{item.name}", "version": item.name} for item in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


def _api_resources(row: Resource, version: _GroupVersion) -> Iterable[Document]:
    """The APIResource entries of a resource and of each of its subresources."""
    entry: Document = {
        "name": row.plural,
        "singularName": row.singular,
        "namespaced": row.namespaced,
        "kind": row.kind,
        "verbs": row.verbs,
    }
    if row.short_names:
        entry["shortNames"] = row.short_names
    if row.categories:
        entry["categories"] = row.categories
    if stored := _storage_version_hash(row, version):
        entry["storageVersionHash"] = stored
    yield entry
    for subresource in row.subresources:
        entry = {"name": f"{row.plural}/{subresource.name}", "singularName": "", "namespaced": row.namespaced}
        if (subresource.group, subresource.version) != (row.group, row.version):
            entry |= {"group": subresource.group, "version": subresource.version}
        yield {**entry, "kind": subresource.kind, "verbs": subresource.verbs}


def _storage_version_hash(row: Resource, version: _GroupVersion) -> str:
    """The storageVersionHash of a resource; empty where it is not stored."""
    if "watch" not in row.verbs:
        return ""
    if version.custom:
        name = version.stored.get(row.plural, "")
        stored = f"{row.group}/{name}" if name else ""
    else:
        stored = _STORAGE_VERSIONS.get((row.group, row.kind), f"{row.group}/{row.version}")
    if not stored:
        return ""
    return b64encode(sha256(f"{stored}/{row.kind}".encode()).digest()[:8]).decode()


def _aggregated_document(groups: Mapping[str, tuple[_GroupVersion, ...]]) -> EncodedDocument:
    items = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [
                {
                    "version": version.name,
                    "resources": [api_resource_discovery(row, version.custom) for row in version.resources],
                    "freshness": "Current",
                }
                if version.document is None
                else version.document
                for version in versions
            ],
        }
        for name, versions in groups.items()
    ]
    api_version = f"{AGGREGATED.group}/{AGGREGATED.version}"
    return encode_document(
        {"kind": AGGREGATED.kind, "apiVersion": api_version, "metadata": {}, "items": items}
    )


def api_resource_discovery(row: Resource, custom: bool) -> Document:
    """The APIResourceDiscovery of a resource, with its subresources."""

    def response_kind(group: str, version: str, kind: str) -> Document:
        # Built-in resources omit their own group and version.
        if not custom and (group, version) == (row.group, row.version):
            group, version = "", ""
        return {"group": group, "version": version, "kind": kind}

    document: Document = {
        "resource": row.plural,
        "responseKind": response_kind(row.group, row.version, row.kind),
        "scope": "Namespaced" if row.namespaced else "Cluster",
        "singularResource": row.singular,
        "verbs": row.verbs,
    }
    if row.short_names:
        document["shortNames"] = row.short_names
    if row.categories:
        document["categories"] = row.categories
    if row.subresources:
        document["subresources"] = [
            {
                "subresource": subresource.name,
                "responseKind": response_kind(subresource.group, subresource.version, subresource.kind),
                "verbs": subresource.verbs,
            }
            for subresource in row.subresources
        ]
    return document
