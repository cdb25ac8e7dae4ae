"""Normalization: the objects of two runs in a form that can be compared.

Removed is whatever differs between any two runs: UIDs, resource versions, times, and the random and hashed parts of names.
The ReplicaSet of a Deployment is named after its revision (``web@2``), and so is a ControllerRevision of a DaemonSet; a
generated pod is named after its owner (``web@2-*``, ``job-*``, ``job-3-*``), also in references and event messages. An
EndpointSlice is named after its Service, a ResourceClaim made from a template after its pod.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Document: TypeAlias = dict[str, Any]
Found: TypeAlias = Mapping[str, Sequence[Document]]
"""Documents by plural: ``deployments``, ``replicasets``, ``pods``, ``events`` …"""

REVISION = "deployment.kubernetes.io/revision"
HASH = "pod-template-hash"
REVISION_HASH = "controller-revision-hash"
SERVICE_NAME = "kubernetes.io/service-name"
TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"
COMBINED = "(combined from similar events): "

_GONE = frozenset({"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink"})
_TIME = re.compile(r"(Time|Timestamp)$")
_WORD = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_PROGRESS = re.compile(r"@\d+")
_ACCESS = re.compile(r"^kube-api-access-[a-z0-9]{5}$")


class Names:
    """Stable names of objects, the same in every run."""

    def __init__(self, found: Found) -> None:
        self._uids = {
            document["metadata"]["uid"]: f"<uid of {plural}>"
            for plural, documents in found.items()
            for document in documents
            if document["metadata"].get("uid")
        }
        self._deployments = [document["metadata"]["name"] for document in found.get("deployments", ())]
        self._aliases: dict[str, str] = {}
        self._hashes: dict[str, str] = {}
        for document in found.get("replicasets", ()):
            self._learn(document["metadata"])
        for document in found.get("controllerrevisions", ()):
            self._learn_revision(document["metadata"], document["revision"])
        for document in found.get("resourceclaims", ()):
            if prefix := document["metadata"].get("generateName"):
                self._aliases[document["metadata"]["name"]] = f"{prefix}*"
        # Deleted objects are known from the events about them.
        regarded = [document.get("involvedObject", {}) for document in found.get("events", ())]
        plain = [document["metadata"]["name"] for document in found.get("replicationcontrollers", ())]
        plain += [document["metadata"]["name"] for document in found.get("daemonsets", ())]
        plain += [about.get("name", "") for about in regarded if about.get("kind") == "DaemonSet"]
        self._aliases |= {name: name for name in plain}
        # A deleted ReplicaSet of a Deployment is known from events alone, and only by the form of its name.
        self._deleted = [
            (re.compile(rf"^{re.escape(name)}-[a-z0-9]{{5,10}}(-[a-z0-9]{{5}})?$"), name)
            for name in sorted(self._deployments, key=len, reverse=True)
        ]

        jobs = [document["metadata"]["name"] for document in found.get("jobs", ())]
        jobs += [about.get("name", "") for about in regarded if about.get("kind") == "Job"]
        self._jobs = [
            re.compile(rf"({re.escape(name)}(-[0-9]+)?)-[a-z0-9]{{5}}") for name in dict.fromkeys(jobs)
        ]

    def _learn(self, meta: Document) -> None:
        owner = next((o["name"] for o in meta.get("ownerReferences", ()) if o["kind"] == "Deployment"), "")
        if not owner:
            self._aliases[meta["name"]] = meta["name"]
            return
        alias = f"{owner}@{meta.get('annotations', {}).get(REVISION, '')}"
        self._aliases[meta["name"]] = alias
        self._hashes[meta.get("labels", {}).get(HASH, "")] = f"<{alias}>"

    def _learn_revision(self, meta: Document, number: int) -> None:
        # ControllerRevisions of a StatefulSet have the same names in every run.
        for owner in meta.get("ownerReferences", ()):
            if owner["kind"] == "DaemonSet":
                alias = self._aliases[meta["name"]] = f"{owner['name']}@{number}"
                self._hashes[meta["labels"][REVISION_HASH]] = f"<{alias}>"

    def name(self, name: str) -> str:
        """The stable form of a name, or of a word that may be one."""
        if name in self._aliases:
            return self._aliases[name]
        owner, _, suffix = name.rpartition("-")
        if owner in self._aliases and re.fullmatch(r"([a-z0-9]{5})?", suffix):
            return f"{self._aliases[owner]}-{'*' if suffix else ''}"
        for job in self._jobs:
            if pod := job.fullmatch(name):
                return f"{pod[1]}-*"
        for form, deployment in self._deleted:
            if deleted := form.match(name):
                return f"{deployment}@gone{'-*' if deleted[1] else ''}"
        return name

    def text(self, text: str) -> str:
        """A message with stable names."""
        return _WORD.sub(lambda word: self.name(word[0]), text)

    def value(self, value: str) -> str:
        """A label value or the like, which may be a hash or a UID."""
        return self._hashes.get(value) or self._uids.get(value) or value


def normalise(found: Found) -> dict[str, Any]:
    """The comparable form: by plural, objects by name, pods by owner, events with their counts."""
    names = Names(found)
    result: dict[str, Any] = {}
    for plural, documents in sorted(found.items()):
        if plural == "events":
            result[plural] = events(documents, names)
        elif plural == "pods":
            result[plural] = pods(documents, names)
        elif plural == "endpointslices":
            result[plural] = endpoint_slices(documents, names)
        else:
            result[plural] = {
                names.name(document["metadata"]["name"]): _object(document, names)
                for document in sorted(documents, key=lambda d: names.name(d["metadata"]["name"]))
            }
    return result


def pods(documents: Sequence[Document], names: Names) -> dict[str, list[Any]]:
    """Pods by name. Pods of one generated name are sorted by content."""
    result: dict[str, list[Any]] = {}
    for document in documents:
        pod = _object(document, names)
        # The rest of a pod's status is written by its kubelet.
        pod["status"] = pod.get("status", {}).get("phase")
        result.setdefault(names.name(document["metadata"]["name"]), []).append(pod)
    return {name: sorted(result[name], key=repr) for name in sorted(result)}


def endpoint_slices(documents: Sequence[Document], names: Names) -> dict[str, list[Any]]:
    """EndpointSlices by Service, and their endpoints by pod. The addresses and nodes of pods depend on chance."""
    result: dict[str, list[Any]] = {}
    for document in documents:
        slice = _object(document, names)
        endpoints = [
            {key: value for key, value in endpoint.items() if key not in ("addresses", "nodeName")}
            for endpoint in slice.get("endpoints") or ()
        ]
        slice["endpoints"] = sorted(endpoints, key=repr)
        meta = document["metadata"]
        result.setdefault(meta.get("labels", {}).get(SERVICE_NAME, meta["name"]), []).append(slice)
    return {name: sorted(result[name], key=repr) for name in sorted(result)}


def events(documents: Sequence[Document], names: Names) -> list[Document]:
    """Events with their counts, regardless of how they were split into objects.

    Warnings are not counted: how often a manager retries depends on timing.
    """
    counts: Counter[tuple[str, ...]] = Counter()
    for document in documents:
        about = document.get("involvedObject") or document.get("regarding") or {}
        key = (
            f"{about.get('kind')}/{names.name(about.get('name', ''))}",
            document.get("type", ""),
            document.get("reason", ""),
            names.text((document.get("message") or document.get("note") or "").removeprefix(COMBINED)),
            document.get("source", {}).get("component") or document.get("reportingComponent", ""),
        )
        counts[key] += document.get("count") or document.get("series", {}).get("count") or 1
    fields = ("about", "type", "reason", "message", "source")
    return [
        {**dict(zip(fields, key, strict=True)), "count": count if key[1] == "Normal" else None}
        for key, count in sorted(counts.items())
    ]


def _object(document: Document, names: Names) -> Document:
    meta, status = document["metadata"], document.get("status", {})
    normal: Document = _plain({k: v for k, v in document.items() if k not in ("apiVersion", "kind")}, names)
    normal["metadata"].pop("name")
    annotations = normal["metadata"].get("annotations", {})
    if annotations.pop(TRIGGER_TIME, None) is not None and not annotations:
        del normal["metadata"]["annotations"]
    if "deletionTimestamp" in meta:
        normal["metadata"]["deleting"] = True
    if "observedGeneration" in status:
        normal["status"]["observedGeneration"] = (
            "current" if status["observedGeneration"] == meta.get("generation") else "old"
        )
    return normal


def _plain(value: Any, names: Names, at: str = "") -> Any:
    if isinstance(value, dict):
        return {
            key: _plain(inner, names, key)
            for key, inner in sorted(value.items())
            if key not in _GONE and not _TIME.search(key)
        }
    if isinstance(value, list):
        plain = [_plain(inner, names, at) for inner in value]
        if at == "volumes":
            # In the reference, the volumes of a StatefulSet's claims are unordered.
            plain.sort(key=lambda volume: str(volume["name"]))
        return _conditions(plain) if at == "conditions" else plain
    if isinstance(value, str):
        if at in ("name", "generateName", "resourceClaimName"):
            return "kube-api-access-*" if _ACCESS.match(value) else names.name(value)
        if at == "message":
            return names.text(value)
        return names.value(value)
    return value


def _conditions(plain: list[Any]) -> list[Any]:
    """Conditions sorted by type: they are a map written as a list."""
    for condition in plain:
        if condition["type"] == "Progressing" and "message" in condition:
            # Which ReplicaSet a Deployment names here depends, in the reference too, on whether it saw
            # the rollout half done or complete.
            condition["message"] = _PROGRESS.sub("@*", condition["message"])
    return sorted(plain, key=lambda condition: str(condition["type"]))
