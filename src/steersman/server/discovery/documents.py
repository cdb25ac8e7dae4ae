"""Discovery: the documents that tell clients what is served, and how it is called.

Two forms of the same: the small documents (``/api``, ``/apis``, one per group and per version), and the
aggregated one, which says all of it at once and has an ETag. Both come from the static table of built-in
resources and from the custom resources there are at the moment; a `Discovery` is made anew when those
change, and makes each document when it is first asked for.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cached_property
from hashlib import sha256, sha512
from typing import Any, NamedTuple, TypeAlias

import msgspec

from steersman.api.errors import NotAcceptable, NotFound
from steersman.api.generated import Resource, Subresource, resources
from steersman.api.generated.apiextensions_v1 import CustomResourceColumnDefinition, CustomResourceDefinition
from steersman.server.codec.negotiation import MediaTypeOptions, Target, negotiate

Document: TypeAlias = dict[str, Any]

AGGREGATED = Target("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")

# The order in which upstream lists the verbs of custom resources; those of built-in ones are sorted.
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_VERBS_AT_THE_END = ("delete", "deletecollection", "get", "list", "watch")
_CHANGE = ("get", "patch", "update")
# What kube-apiserver stores in another version than the one it serves.
_STORED = {
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): "admissionregistration.k8s.io/v1beta1",
    (
        "admissionregistration.k8s.io",
        "MutatingAdmissionPolicyBinding",
    ): "admissionregistration.k8s.io/v1beta1",
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "apiextensions.k8s.io/v1beta1",
    ("autoscaling", "HorizontalPodAutoscaler"): "autoscaling/v2",
    ("events.k8s.io", "Event"): "/v1",
}


class Tagged(NamedTuple):
    """An encoded document, and the ETag it is known by, in quotes as headers have it."""

    body: bytes
    etag: str


def tagged(document: object) -> Tagged:
    """Encode a document and tag it."""
    return tagged_bytes(msgspec.json.encode(document))


def tagged_bytes(body: bytes) -> Tagged:
    """Tag a document that is encoded already."""
    return Tagged(body, f'"{sha512(body).hexdigest().upper()}"')


# -- custom resources -------------------------------------------------------------------------


class CustomResource(msgspec.Struct, frozen=True, eq=False):
    """One served version of a custom resource: what discovery, OpenAPI and tables need to know of it."""

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
    """Its definition is being deleted: nothing new may be created."""
    schema: Mapping[str, Any] | None = None
    """Its structural schema, as a plain document."""
    columns: tuple[CustomResourceColumnDefinition, ...] = ()

    @property
    def row(self) -> Resource:
        """The same as a row of the table of resources."""
        below = []
        if self.status:
            below.append(Subresource("status", self.group, self.version, self.kind, _CHANGE))
        if self.scale:
            below.append(Subresource("scale", "autoscaling", "v1", "Scale", _CHANGE))
        return Resource(
            self.group,
            self.version,
            self.kind,
            self.plural,
            self.singular,
            self.namespaced,
            self.short_names,
            self.categories,
            _VERBS_AT_THE_END if self.terminating else _VERBS,
            tuple(below),
            "",
        )


def custom_resources(definition: CustomResourceDefinition) -> tuple[CustomResource, ...]:
    """What a definition adds: one resource per served version, none before it is established."""
    true = [each.type for each in definition.status.conditions or () if each.status == "True"]
    if "Established" not in true:
        return ()
    spec, names = definition.spec, definition.status.acceptedNames
    storage = next((version.name for version in spec.versions if version.storage and version.served), "")
    found = []
    for version in spec.versions:
        if not version.served:
            continue
        below = version.subresources
        schema = version.schema.openAPIV3Schema if version.schema else None
        found.append(
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
                storage_version=storage,
                status=below is not None and below.status is not None,
                scale=below is not None and below.scale is not None,
                terminating="Terminating" in true,
                schema=None if schema is None else msgspec.json.decode(msgspec.json.encode(schema)),
                columns=version.additionalPrinterColumns,
            )
        )
    return tuple(found)


METRICS = tuple(
    Resource("metrics.k8s.io", "v1beta1", kind, plural, "", namespaced, (), (), ("get", "list"), (), "")
    for kind, plural, namespaced in (("NodeMetrics", "nodes", False), ("PodMetrics", "pods", True))
)
"""What metrics-server adds."""

_KUBE_VERSION = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?", re.ASCII)
_STAGES = {"alpha": 0, "beta": 1, None: 2}


def version_order(version: str) -> tuple[Any, ...]:
    """A key that sorts versions best first: v2, v1, v1beta2, v1alpha1, then the others by name."""
    match = _KUBE_VERSION.fullmatch(version)
    if match is None:
        return (1, version)
    return (0, -_STAGES[match[2]], -int(match[1]), -int(match[3] or 0))


# -- the documents ----------------------------------------------------------------------------


class _Version(NamedTuple):
    """One version of a group, with its resources."""

    name: str
    resources: tuple[Resource, ...]
    stored: Mapping[str, str]
    """Custom resources by plural: in which version they are stored."""
    custom: bool


class Discovery:
    """What is served at the moment, as documents."""

    def __init__(
        self,
        custom: Iterable[CustomResource] = (),
        *,
        metrics: bool = False,
        built_in: Iterable[Resource] | None = None,
    ) -> None:
        rows: dict[str, dict[str, list[Resource]]] = {}
        for row in resources() if built_in is None else built_in:
            rows.setdefault(row.group, {}).setdefault(row.version, []).append(row)
        self._groups = {
            group: tuple(_Version(name, tuple(found), {}, False) for name, found in versions.items())
            for group, versions in rows.items()
        }
        self._add(custom)
        if metrics:
            self._groups["metrics.k8s.io"] = (_Version("v1beta1", METRICS, {}, False),)

    def _add(self, custom: Iterable[CustomResource]) -> None:
        """Custom resources come after what is built in, sorted: the store's order means nothing."""
        versions: dict[tuple[str, str], list[CustomResource]] = {}
        for each in sorted(custom, key=lambda each: (each.group, version_order(each.version), each.plural)):
            versions.setdefault((each.group, each.version), []).append(each)
        for (group, version), found in versions.items():
            known = self._groups.get(group, ())
            # A version that is built in is built in as a whole.
            if all(each.name != version for each in known):
                rows = tuple(each.row for each in found)
                stored = {each.plural: each.storage_version for each in found}
                self._groups[group] = (*known, _Version(version, rows, stored, True))

    def api(self, address: str) -> Document:
        """``/api``. ``address`` is where clients reach this server: ``127.0.0.1:6443``."""
        reach = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": reach}

    def apis(self) -> Document:
        """``/apis``."""
        return {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [_group(name, self._groups[name]) for name in self._listed],
        }

    def group(self, name: str) -> Document:
        """``/apis/GROUP``. Raises `NotFound`."""
        if not name or name not in self._groups:
            raise _unknown()
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, self._groups[name])}

    def resources(self, group: str, version: str) -> Document:
        """``/api/v1`` (the empty group) and ``/apis/GROUP/VERSION``. Raises `NotFound`."""
        found = next((each for each in self._groups.get(group, ()) if each.name == version), None)
        if found is None:
            raise _unknown()
        # The oldest of the paths answers without its apiVersion.
        head: Document = {"kind": "APIResourceList"} | ({"apiVersion": "v1"} if group else {})
        listed = [entry for row in found.resources for entry in _entries(row, found)]
        name = f"{group}/{version}" if group else version
        return {**head, "groupVersion": name, "resources": listed}

    @cached_property
    def aggregated_api(self) -> Tagged:
        """``/api``, aggregated."""
        return _aggregated({"": self._groups[""]} if "" in self._groups else {})

    @cached_property
    def aggregated_apis(self) -> Tagged:
        """``/apis``, aggregated."""
        return _aggregated({name: versions for name, versions in self._groups.items() if name})

    @property
    def _listed(self) -> list[str]:
        """The groups as ``/apis`` lists them: custom ones by the name of their first APIService."""
        groups = [(name, versions) for name, versions in self._groups.items() if name]

        def order(item: tuple[str, tuple[_Version, ...]]) -> tuple[int, str]:
            name, versions = item
            if name == "metrics.k8s.io":
                return (2, "")
            custom = all(version.custom for version in versions)
            return (1, min(f"{version.name}.{name}" for version in versions)) if custom else (0, "")

        return [name for name, _ in sorted(groups, key=order)]


def choose(accept: str) -> MediaTypeOptions:
    """How ``/api`` and ``/apis`` shall answer; the choice's target is `AGGREGATED` or None.

    A clause that asks for the aggregated form wins over all that do not, wherever it stands. Raises
    `NotAcceptable`.
    """
    if accept:
        try:
            return negotiate(accept, lambda target: target == AGGREGATED)
        except NotAcceptable:
            pass  # no clause asks for it
    return negotiate(accept)


def _unknown() -> NotFound:
    return NotFound("the server could not find the requested resource", reason="NotFound")


def _group(name: str, versions: tuple[_Version, ...]) -> Document:
    listed = [{"groupVersion": f"{name}/{each.name}", "version": each.name} for each in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _entries(row: Resource, version: _Version) -> Iterable[Document]:
    """A resource and its subresources, as an APIResourceList has them: as equals."""
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
    if stored := _storage_hash(row, version):
        entry["storageVersionHash"] = stored
    yield entry
    for below in row.subresources:
        entry = {"name": f"{row.plural}/{below.name}", "singularName": "", "namespaced": row.namespaced}
        if (below.group, below.version) != (row.group, row.version):
            entry |= {"group": below.group, "version": below.version}
        yield {**entry, "kind": below.kind, "verbs": below.verbs}


def _storage_hash(row: Resource, version: _Version) -> str:
    """What changes when objects are stored in another version; empty for what is not stored."""
    if "watch" not in row.verbs:
        return ""
    if version.custom:
        name = version.stored.get(row.plural, "")
        stored = f"{row.group}/{name}" if name else ""
    else:
        stored = _STORED.get((row.group, row.kind), f"{row.group}/{row.version}")
    if not stored:
        return ""
    return b64encode(sha256(f"{stored}/{row.kind}".encode()).digest()[:8]).decode()


def _aggregated(groups: Mapping[str, tuple[_Version, ...]]) -> Tagged:
    items = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [
                {
                    "version": version.name,
                    "resources": [_discovered(row, version.custom) for row in version.resources],
                    "freshness": "Current",
                }
                for version in versions
            ],
        }
        for name, versions in groups.items()
    ]
    api_version = f"{AGGREGATED.group}/{AGGREGATED.version}"
    return tagged({"kind": AGGREGATED.kind, "apiVersion": api_version, "metadata": {}, "items": items})


def _discovered(row: Resource, custom: bool) -> Document:
    """A resource with its subresources below it, as the aggregated document has them."""

    def response_kind(group: str, version: str, kind: str) -> Document:
        # Built-in resources leave out what goes without saying.
        if not custom and (group, version) == (row.group, row.version):
            group, version = "", ""
        return {"group": group, "version": version, "kind": kind}

    found: Document = {
        "resource": row.plural,
        "responseKind": response_kind(row.group, row.version, row.kind),
        "scope": "Namespaced" if row.namespaced else "Cluster",
        "singularResource": row.singular,
        "verbs": row.verbs,
    }
    if row.short_names:
        found["shortNames"] = row.short_names
    if row.categories:
        found["categories"] = row.categories
    if row.subresources:
        found["subresources"] = [
            {
                "subresource": below.name,
                "responseKind": response_kind(below.group, below.version, below.kind),
                "verbs": below.verbs,
            }
            for below in row.subresources
        ]
    return found
