"""Identity of a StatefulSet's pods: names, hostname, labels and claims that follow from the ordinal."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

from steersman.api.kinds import NewPod, Object, ObjectMeta, Opaque, Pod, PodTemplateSpec
from steersman.api.kinds.statefulsets import STATEFULSETS, StatefulSet
from steersman.api.meta import owner_reference
from steersman.controllers.shared.history import REVISION
from steersman.controllers.shared.pod_control import pods_prefix

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"

_NAME = re.compile(r"(.*)-([0-9]+)", re.DOTALL)


def ordinals(set_: StatefulSet) -> range:
    """The ordinals of a set's replicas."""
    start = set_.spec.ordinals.start if set_.spec.ordinals is not None else 0
    return range(start, start + (set_.spec.replicas or 0))


def ordinal_of(name: str) -> int:
    """The ordinal at the end of a pod's name; -1 where there is none."""
    match = _NAME.fullmatch(name)
    if match is None or len(match[2]) > 32:
        return -1
    ordinal = int(match[2])
    return ordinal if ordinal < 2**31 else -1


def is_member(set_: StatefulSet, pod: Object) -> bool:
    """Whether a pod has a name of the set's pods."""
    match = _NAME.fullmatch(pod.metadata.name)
    return match is not None and match[1] == set_.metadata.name


def pod_name(set_: StatefulSet, ordinal: int) -> str:
    return f"{set_.metadata.name}-{ordinal}"


def claim_name(set_: StatefulSet, template: str, ordinal: int) -> str:
    """The name of the claim that a pod has for a claim template."""
    return f"{template}-{set_.metadata.name}-{ordinal}"


def claim_names(set_: StatefulSet, ordinal: int) -> dict[str, str]:
    """The names of a pod's claims by volume, which is named like the claim template."""
    templates = (template.metadata.name for template in set_.spec.volumeClaimTemplates)
    return {template: claim_name(set_, template, ordinal) for template in templates}


def identity_labels(set_: StatefulSet, ordinal: int) -> dict[str, str]:
    """The labels with the name and the ordinal of a pod."""
    return {POD_NAME: pod_name(set_, ordinal), POD_INDEX: str(ordinal)}


def revision_of(pod: Pod) -> str:
    """The name of a pod's ControllerRevision."""
    return pod.metadata.labels.get(REVISION, "")


# -- existing pods ----------------------------------------------------------------------------


def has_identity(set_: StatefulSet, pod: Pod) -> bool:
    """Whether a pod's name and its label match its ordinal."""
    name = pod.metadata.name
    # A name such as web-01 has an ordinal, but is not the name of that ordinal's pod.
    return name == pod_name(set_, ordinal_of(name)) and pod.metadata.labels.get(POD_NAME) == name


def has_storage(set_: StatefulSet, pod: Pod) -> bool:
    """Whether a pod's volumes use its claims."""
    volumes = {volume.name: volume.persistentVolumeClaim for volume in pod.spec.volumes}
    for volume, claim in claim_names(set_, ordinal_of(pod.metadata.name)).items():
        source = volumes.get(volume)
        if source is None or source.claimName != claim:
            return False
    return True


def identity_patch(set_: StatefulSet, pod: Pod) -> dict[str, Any]:
    """The strategic merge patch that restores a pod's identity and, where they do not match, its volumes.

    The server refuses to change the volumes of a pod. The request is sent all the same, as upstream does, so that its
    error is reported.
    """
    ordinal = ordinal_of(pod.metadata.name)
    patch: dict[str, Any] = {"metadata": {"uid": pod.metadata.uid}}
    if not has_identity(set_, pod):
        patch["metadata"]["labels"] = identity_labels(set_, ordinal)
    if not has_storage(set_, pod):
        patch["spec"] = {"volumes": _volumes(claim_names(set_, ordinal))}
    return patch


# -- new pods ---------------------------------------------------------------------------------


def new_pod(set_: StatefulSet, ordinal: int, template: PodTemplateSpec, revision: str) -> NewPod:
    """The pod of an ordinal, from a template and with the name of its revision."""
    metadata = template.metadata
    return NewPod(
        metadata=ObjectMeta(
            name=pod_name(set_, ordinal),
            generateName=pods_prefix(set_.metadata.name),
            namespace=set_.metadata.namespace,
            labels={**metadata.labels, **identity_labels(set_, ordinal), REVISION: revision},
            annotations=metadata.annotations,
            finalizers=metadata.finalizers,
            ownerReferences=(owner_reference(set_, STATEFULSETS),),
        ),
        spec=_spec(set_, ordinal, template.spec),
    )


_encode = msgspec.json.Encoder().encode


def _spec(set_: StatefulSet, ordinal: int, spec: Opaque) -> Opaque:
    claims = claim_names(set_, ordinal)
    rest, volumes = _without_identity(bytes(spec), tuple(claims))
    own: dict[str, Any] = {"hostname": pod_name(set_, ordinal)}
    if set_.spec.serviceName:
        own["subdomain"] = set_.spec.serviceName
    if claims or volumes:
        own["volumes"] = [*_volumes(claims), *volumes]
    return msgspec.Raw(_encode(own)[:-1] + (b"}" if rest == b"{}" else b"," + rest[1:]))


def _volumes(claims: dict[str, str]) -> list[dict[str, Any]]:
    # differs: upstream writes them in random order.
    return [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in claims.items()]


@lru_cache(maxsize=64)
def _without_identity(spec: bytes, claims: tuple[str, ...]) -> tuple[bytes, tuple[msgspec.Raw, ...]]:
    """A template's spec without hostname, subdomain and volumes, and its volumes that are not claims."""
    document: dict[str, Any] = msgspec.json.decode(spec)
    for field in ("hostname", "subdomain"):
        document.pop(field, None)
    volumes = document.pop("volumes", None) or ()
    kept = (volume for volume in volumes if volume.get("name") not in claims)
    return _encode(document), tuple(msgspec.Raw(_encode(volume)) for volume in kept)
