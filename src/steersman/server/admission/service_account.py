"""ServiceAccount: every pod acts as somebody, and is given the means to."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.api.generated_names import ALPHANUMS, SUFFIX_LENGTH
from steersman.server.admission.plugin import Draft, Lookups, PodPlugin, Refused
from steersman.server.defaulting.missing_fields import map_items, put

_encoder = msgspec.json.Encoder(enc_hook=dict)  # the shared empty map is no dict

DEFAULT = "default"
ENFORCE = "kubernetes.io/enforce-mountable-secrets"
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
VOLUME = "kube-api-access-"
TOKEN_SECONDS = 3607
"""An hour, and a few seconds by which the server knows these tokens from others."""

SOURCE = v1.ProjectedVolumeSource(
    defaultMode=0o644,
    sources=(
        v1.VolumeProjection(
            serviceAccountToken=v1.ServiceAccountTokenProjection(
                path="token", expirationSeconds=TOKEN_SECONDS
            )
        ),
        v1.VolumeProjection(
            configMap=v1.ConfigMapProjection(
                name="kube-root-ca.crt", items=(v1.KeyToPath(key="ca.crt", path="ca.crt"),)
            )
        ),
        v1.VolumeProjection(
            downwardAPI=v1.DownwardAPIProjection(
                items=(
                    v1.DownwardAPIVolumeFile(
                        path="namespace",
                        fieldRef=v1.ObjectFieldSelector(apiVersion="v1", fieldPath="metadata.namespace"),
                    ),
                )
            )
        ),
    ),
)


class ServiceAccount(PodPlugin):
    """Names the account where the pod does not, insists that it exists, mounts its token.

    differs: equal pods share the name of the token's volume; upstream draws one for each.
    differs: a default account that is missing is not waited for.
    """

    name: ClassVar[str] = "ServiceAccount"
    reads: ClassVar[tuple[str, ...]] = ("serviceaccounts",)

    def fill(self, draft: Draft, namespace: str, look: Lookups) -> Draft:
        spec = draft.spec
        name = spec.serviceAccountName or DEFAULT
        account = look.get("serviceaccounts", namespace, name)
        if account is None:
            raise Refused(
                f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
            )
        spec = put(spec, serviceAccountName=name, serviceAccount=name)
        if mounts(account, spec):
            spec = mounted(spec, account)
        if not spec.imagePullSecrets and account.imagePullSecrets:
            spec = put(spec, imagePullSecrets=account.imagePullSecrets)
        return Draft(spec, draft.notes)

    def fault(self, spec: v1.PodSpec, annotations: Mapping[str, str], namespace: str, look: Lookups) -> str:
        account = look.get("serviceaccounts", namespace, spec.serviceAccountName)
        if account is None or account.metadata.annotations.get(ENFORCE) not in (
            "1",
            "t",
            "T",
            "true",
            "TRUE",
            "True",
        ):
            return ""
        return unreferenced(account, spec)


def mounts(account: v1.ServiceAccount, spec: v1.PodSpec) -> bool:
    """Whether the token is mounted: the pod says, or the account; and it is, where neither does."""
    if spec.automountServiceAccountToken is not None:
        return spec.automountServiceAccountToken
    return account.automountServiceAccountToken is not False


def volume_name(spec: v1.PodSpec, account: v1.ServiceAccount) -> str:
    """The name of the token's volume. It looks drawn, but equal pods have equal names.

    A name that was drawn would depend on what is still remembered, and so on what else the process did.
    """
    number = zlib.crc32(_encoder.encode(spec), zlib.crc32(account.metadata.uid.encode()))
    letters = []
    for _ in range(SUFFIX_LENGTH):
        number, at = divmod(number, len(ALPHANUMS))
        letters.append(ALPHANUMS[at])
    return VOLUME + "".join(letters)


def mounted(spec: v1.PodSpec, account: v1.ServiceAccount) -> v1.PodSpec:
    """The spec with the token in every container that has nothing else in its place."""
    volume = next((volume.name for volume in spec.volumes if volume.name.startswith(VOLUME)), "")
    name = volume or volume_name(spec, account)
    mount = v1.VolumeMount(name=name, readOnly=True, mountPath=MOUNT_PATH)

    def with_token(container: v1.Container) -> v1.Container:
        if any(mount.mountPath == MOUNT_PATH for mount in container.volumeMounts):
            return container
        return put(container, volumeMounts=(*container.volumeMounts, mount))

    init, main = map_items(spec.initContainers, with_token), map_items(spec.containers, with_token)
    if init is spec.initContainers and main is spec.containers:
        return spec
    volumes = spec.volumes if volume else (*spec.volumes, v1.Volume(name=name, projected=SOURCE))
    return put(spec, initContainers=init, containers=main, volumes=volumes)


# -- what may be referenced -------------------------------------------------------------------


def mirror_fault(pod: v1.Pod) -> str:
    """Why a mirror pod is refused, or ``""``: it must not refer to what its kubelet may not see."""
    spec = pod.spec
    if spec.serviceAccountName:
        return "a mirror pod may not reference service accounts"
    if spec.imagePullSecrets or any(True for _ in _secrets(spec)):
        return "a mirror pod may not reference secrets"
    for volume in spec.volumes:
        if volume.projected is not None and any(
            source.serviceAccountToken is not None for source in volume.projected.sources or ()
        ):
            return "a mirror pod may not use ServiceAccountToken volume projections"
    return ""


def _secrets(spec: v1.PodSpec) -> Iterator[str]:
    for container in (*spec.initContainers, *spec.containers, *spec.ephemeralContainers):
        for _, name in _in_container(container):
            yield name
    for volume in spec.volumes:
        if volume.secret is not None and volume.secret.secretName:
            yield volume.secret.secretName
        if volume.projected is not None:
            for source in volume.projected.sources or ():
                if source.secret is not None:
                    yield source.secret.name


def _in_container(container: Any) -> Iterator[tuple[str, str]]:
    """How and which secrets a container refers to."""
    for variable in container.env:
        if variable.valueFrom is not None and variable.valueFrom.secretKeyRef is not None:
            yield f"envVar {variable.name}", variable.valueFrom.secretKeyRef.name
    for source in container.envFrom:
        if source.secretRef is not None:
            yield "envFrom", source.secretRef.name


def unreferenced(account: v1.ServiceAccount, spec: v1.PodSpec) -> str:
    """Which secret the pod refers to and the account, which must, does not; or ``""``."""
    known, who = [secret.name for secret in account.secrets], account.metadata.name
    tail = f"is not allowed because service account {who} does not reference that"
    for volume in spec.volumes:
        if volume.secret is not None and volume.secret.secretName not in known:
            return f'volume with secret.secretName="{volume.secret.secretName}" {tail} secret'
    for words, containers in (("init container", spec.initContainers), ("container", spec.containers)):
        for container in containers:
            for how, name in _in_container(container):
                if name not in known:
                    return f'{words} {container.name} with {how} referencing secret.secretName="{name}" {tail} secret'
    pulls = [secret.name for secret in account.imagePullSecrets]
    for i, secret in enumerate(spec.imagePullSecrets):
        if secret.name not in pulls:
            return f'imagePullSecrets[{i}].name="{secret.name}" {tail} imagePullSecret'
    return ""
