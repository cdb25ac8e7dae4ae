"""The owner graph of an object: its owners, what they own, the nodes and claims of the pods, and what refers to them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from steersman.dashboard.summaries import summarize
from steersman.dashboard.time_slices import TimeSlices
from steersman.explain.model import Case, Document, Ref, Snapshot, ref_of, selects
from steersman.explain.relations import owner
from steersman.explain.situations.network import selected

MAX_NODES = 120
"""Objects of one graph. Where there are more, those that are well are left out first."""
_OWNED = ("ReplicaSet", "Job", "Pod", "PersistentVolumeClaim")
"""Kinds that a controller makes."""


class Graph:
    """Objects and how they belong together."""

    def __init__(self) -> None:
        self.documents: dict[Ref, Document] = {}
        self.edges: dict[tuple[Ref, Ref, str], None] = {}
        self.left_out = 0
        """Objects that there was no room for."""

    def add(self, document: Document) -> bool:
        """Add an object; returns whether it is new. There is room for `MAX_NODES`."""
        ref = ref_of(document)
        if ref in self.documents:
            return False
        if len(self.documents) >= MAX_NODES:
            self.left_out += 1
            return False
        self.documents[ref] = document
        return True

    def link(self, one: Document, other: Document, relation: str) -> None:
        """Add an edge, if both ends are there."""
        ends = (ref_of(one), ref_of(other))
        if ends[0] in self.documents and ends[1] in self.documents:
            self.edges[ends[0], ends[1], relation] = None

    def json(self) -> dict[str, Any]:
        """The graph as a plain document."""
        ids = {ref: _id(document) for ref, document in self.documents.items()}
        nodes = []
        for ref, document in self.documents.items():
            summary = summarize(document)
            nodes.append(
                {
                    "id": ids[ref],
                    "kind": ref.kind,
                    "namespace": ref.namespace,
                    "name": ref.name,
                    "state": summary.state,
                    "status": summary.status,
                }
            )
        edges = [
            {"from": ids[one], "to": ids[other], "relation": relation} for one, other, relation in self.edges
        ]
        return {"nodes": nodes, "edges": edges, "leftOut": self.left_out}


def _id(document: Document) -> str:
    return str((document.get("metadata") or {}).get("uid") or "/".join(ref_of(document)))


async def build(snapshot: Snapshot, document: Document, slices: TimeSlices) -> Graph:
    """The graph around an object. The object itself and its owners always have room."""
    graph = Graph()
    chain = [document]
    while (above := owner(snapshot, chain[-1])) is not None and ref_of(above) not in map(ref_of, chain):
        chain.append(above)
    for below, above in itertools.pairwise(chain):
        graph.add(below)
        graph.add(above)
        graph.link(above, below, "owns")
    graph.add(document)
    await _add_owned(graph, snapshot, chain[-1], slices)
    for each in list(graph.documents.values()):
        await slices.pause()
        for other, relation, towards in _related(snapshot, each):
            graph.add(other)
            graph.link(each if towards else other, other if towards else each, relation)
    return graph


async def _add_owned(graph: Graph, snapshot: Snapshot, top: Document, slices: TimeSlices) -> None:
    """Add all that an object controls, breadth first, what is not well before what is."""
    level, seen = [top], {ref_of(top)}
    while level:
        well: list[tuple[Document, Document]] = []
        unwell: list[tuple[Document, Document]] = []
        for each in level:
            for below in [below for kind in _OWNED for below in snapshot.owned(each, kind)]:
                (well if summarize(below).state in ("ok", "done") else unwell).append((each, below))
                await slices.pause()
        level = []
        for above, below in (*unwell, *well):
            graph.add(below)
            if ref_of(below) in graph.documents and ref_of(below) not in seen:
                seen.add(ref_of(below))
                level.append(below)
            graph.link(above, below, "owns")


def _related(snapshot: Snapshot, document: Document) -> Iterator[tuple[Document, str, bool]]:
    """The objects that an object uses or is used by, each with the relation and whether that goes from this object to the other."""
    kind, namespace, name = ref_of(document)
    spec = document.get("spec") or {}
    if kind == "Pod":
        node = snapshot.get("Node", "", str(spec.get("nodeName", "")))
        if node is not None:
            yield node, "runs on", True
        for volume in spec.get("volumes") or ():
            claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            if volume.get("ephemeral"):
                claim = f"{name}-{volume.get('name')}"
            found = snapshot.get("PersistentVolumeClaim", namespace, claim) if claim else None
            if found is not None:
                yield found, "uses", True
    elif kind == "PersistentVolumeClaim":
        volume = snapshot.get("PersistentVolume", "", str(spec.get("volumeName", "")))
        if volume is not None:
            yield volume, "uses", True
    elif kind == "Service":
        for pod in selected(Case(snapshot, document)):
            yield pod, "uses", True
    elif kind == "HorizontalPodAutoscaler":
        target = spec.get("scaleTargetRef") or {}
        found = snapshot.get(target.get("kind", ""), namespace, target.get("name", ""))
        if found is not None:
            yield found, "uses", True
    elif kind == "PodDisruptionBudget":
        for pod in snapshot.objects("Pod", namespace):
            if selects(document, pod):
                yield pod, "uses", True
    if kind in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"):
        for scaler in snapshot.objects("HorizontalPodAutoscaler", namespace):
            target = (scaler.get("spec") or {}).get("scaleTargetRef") or {}
            if (target.get("kind"), target.get("name")) == (kind, name):
                yield scaler, "uses", False
