"""Identity: which pod of a StatefulSet one is, for as long as the set lives.

A pod's name ends in its ordinal. Its hostname, its labels and its claims follow from that, whichever pod
comes to bear the name.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

from steersman.api.kinds import NewPod, Object, ObjectMeta, Opaque, Pod, PodTemplateSpec
from steersman.api.kinds.statefulsets import STATEFULSETS, StatefulSet
from steersman.api.meta import owner_reference
from steersman.controllers.shared.history import REVISION

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"

LONGEST_NAME = 253

_NAME = re.compile(r"(.*)-([0-9]+)", re.DOTALL)


def ordinals(set_: StatefulSet) -> range:
    """The ordinals a set is to have."""
    start = set_.spec.ordinals.start if set_.spec.ordinals is not None else 0
    return range(start, start + (set_.spec.replicas or 0))


def ordinal_of(name: str) -> int:
    """The ordinal in which a pod's name ends; -1 where it ends in none."""
    found = _NAME.fullmatch(name)
    if found is None or len(found[2]) > 32:
        return -1
    ordinal = int(found[2])
    return ordinal if ordinal < 2**31 else -1


def is_member(set_: StatefulSet, pod: Object) -> bool:
    """Whether a pod is named like one of the set's."""
    found = _NAME.fullmatch(pod.metadata.name)
    return found is not None and found[1] == set_.metadata.name


def pod_name(set_: StatefulSet, ordinal: int) -> str:
    return f"{set_.metadata.name}-{ordinal}"


def claim_name(set_: StatefulSet, template: str, ordinal: int) -> str:
    """The name of the claim that a pod has of a claim template."""
    return f"{template}-{set_.metadata.name}-{ordinal}"


def claim_names(set_: StatefulSet, ordinal: int) -> dict[str, str]:
    """A pod's volumes, and the claim that each of them is."""
    templates = (template.metadata.name for template in set_.spec.volumeClaimTemplates)
    return {template: claim_name(set_, template, ordinal) for template in templates}


def labels(set_: StatefulSet, ordinal: int) -> dict[str, str]:
    """The labels that say which pod it is."""
    return {POD_NAME: pod_name(set_, ordinal), POD_INDEX: str(ordinal)}


def revision_of(pod: Pod) -> str:
    """The name of the revision a pod was made of."""
    return pod.metadata.labels.get(REVISION, "")


# -- does a pod have what it should -----------------------------------------------------------


def is_itself(set_: StatefulSet, pod: Pod) -> bool:
    """Whether a pod says who it is."""
    name = pod.metadata.name
    # A name such as web-01 has an ordinal, and is not what a pod of that ordinal is called.
    return name == pod_name(set_, ordinal_of(name)) and pod.metadata.labels.get(POD_NAME) == name


def has_storage(set_: StatefulSet, pod: Pod) -> bool:
    """Whether a pod's volumes are its claims."""
    volumes = {volume.name: volume.persistentVolumeClaim for volume in pod.spec.volumes}
    for volume, claim in claim_names(set_, ordinal_of(pod.metadata.name)).items():
        source = volumes.get(volume)
        if source is None or source.claimName != claim:
            return False
    return True


def correction(set_: StatefulSet, pod: Pod) -> dict[str, Any]:
    """The strategic patch that gives a pod its identity back, and asks for its volumes where they are off.

    No server lets the volumes of a pod change. It is for the server to say so, and for whoever made the
    pod to hear it, as upstream has it.
    """
    ordinal = ordinal_of(pod.metadata.name)
    patch: dict[str, Any] = {"metadata": {"uid": pod.metadata.uid}}
    if not is_itself(set_, pod):
        patch["metadata"]["labels"] = labels(set_, ordinal)
    if not has_storage(set_, pod):
        patch["spec"] = {"volumes": _volumes(claim_names(set_, ordinal))}
    return patch


# -- birth ------------------------------------------------------------------------------------


def new_pod(set_: StatefulSet, ordinal: int, template: PodTemplateSpec, revision: str) -> NewPod:
    """The pod of an ordinal. What is in the template goes along, but for what the ordinal decides."""
    metadata, name = template.metadata, set_.metadata.name
    return NewPod(
        metadata=ObjectMeta(
            name=pod_name(set_, ordinal),
            generateName=f"{name}-" if len(name) < LONGEST_NAME else name,
            namespace=set_.metadata.namespace,
            labels={**metadata.labels, **labels(set_, ordinal), REVISION: revision},
            annotations=metadata.annotations,
            finalizers=metadata.finalizers,
            ownerReferences=(owner_reference(set_, STATEFULSETS),),
        ),
        spec=_spec(set_, ordinal, template.spec),
    )


_encode = msgspec.json.Encoder().encode


def _spec(set_: StatefulSet, ordinal: int, spec: Opaque) -> Opaque:
    claims = claim_names(set_, ordinal)
    rest, volumes = _opened(bytes(spec), tuple(claims))
    own: dict[str, Any] = {"hostname": pod_name(set_, ordinal)}
    if set_.spec.serviceName:
        own["subdomain"] = set_.spec.serviceName
    if claims or volumes:
        own["volumes"] = [*_volumes(claims), *volumes]
    return msgspec.Raw(_encode(own)[:-1] + (b"}" if rest == b"{}" else b"," + rest[1:]))


def _volumes(claims: dict[str, str]) -> list[dict[str, Any]]:
    # differs: upstream puts them in no order at all.
    return [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in claims.items()]


@lru_cache(maxsize=64)
def _opened(spec: bytes, claims: tuple[str, ...]) -> tuple[bytes, tuple[msgspec.Raw, ...]]:
    """A template's spec without what the ordinal decides, and those of its volumes that are no claims."""
    document: dict[str, Any] = msgspec.json.decode(spec)
    for field in ("hostname", "subdomain"):
        document.pop(field, None)
    volumes = document.pop("volumes", None) or ()
    kept = (volume for volume in volumes if volume.get("name") not in claims)
    return _encode(document), tuple(msgspec.Raw(_encode(volume)) for volume in kept)
