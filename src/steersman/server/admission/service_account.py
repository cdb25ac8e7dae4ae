"""ServiceAccount: sets the ServiceAccount of pods and mounts its token."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.api.generated_names import ALPHANUMS, SUFFIX_LENGTH
from steersman.server.admission.plugin import AdmissionDenied, Listers, PodDraft, PodPlugin
from steersman.server.defaulting.missing_fields import map_items, put

_encoder = msgspec.json.Encoder(enc_hook=dict)  # the shared empty map is no dict

DEFAULT = "default"
ENFORCE = "kubernetes.io/enforce-mountable-secrets"
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
VOLUME = "kube-api-access-"
TOKEN_SECONDS = 3607
"""An hour, and seven seconds by which the server recognizes requests for these tokens."""

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


class ServiceAccount(PodPlugin, frozen=True):
    """Sets the default account, denies pods whose account does not exist, and mounts the token.

    differs: equal pods share the name of the token volume; upstream generates one for each.
    differs: a missing default account is not waited for.
    """

    name: ClassVar[str] = "ServiceAccount"
    reads: ClassVar[tuple[str, ...]] = ("serviceaccounts",)

    def mutate_spec(self, draft: PodDraft, namespace: str, listers: Listers) -> PodDraft:
        spec = draft.spec
        name = spec.serviceAccountName or DEFAULT
        account = listers.get("serviceaccounts", namespace, name)
        if account is None:
            raise AdmissionDenied(
                f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
            )
        spec = put(spec, serviceAccountName=name, serviceAccount=name)
        if automounts(account, spec):
            spec = with_token_mounted(spec, account)
        if not spec.imagePullSecrets and account.imagePullSecrets:
            spec = put(spec, imagePullSecrets=account.imagePullSecrets)
        return PodDraft(spec, draft.notes)

    def validate_spec(
        self, spec: v1.PodSpec, annotations: Mapping[str, str], namespace: str, listers: Listers
    ) -> str:
        account = listers.get("serviceaccounts", namespace, spec.serviceAccountName)
        if account is None or account.metadata.annotations.get(ENFORCE) not in (
            "1",
            "t",
            "T",
            "true",
            "TRUE",
            "True",
        ):
            return ""
        return unreferenced_secret(account, spec)


def automounts(account: v1.ServiceAccount, spec: v1.PodSpec) -> bool:
    """Whether the token is mounted: by the pod, else by the account, else true."""
    if spec.automountServiceAccountToken is not None:
        return spec.automountServiceAccountToken
    return account.automountServiceAccountToken is not False


def volume_name(spec: v1.PodSpec, account: v1.ServiceAccount) -> str:
    """The name of the token volume. It looks random, but equal pods have equal names.

    A random name would depend on what is still cached, and so on what else the process did.
    """
    number = zlib.crc32(_encoder.encode(spec), zlib.crc32(account.metadata.uid.encode()))
    letters = []
    for _ in range(SUFFIX_LENGTH):
        number, at = divmod(number, len(ALPHANUMS))
        letters.append(ALPHANUMS[at])
    return VOLUME + "".join(letters)


def with_token_mounted(spec: v1.PodSpec, account: v1.ServiceAccount) -> v1.PodSpec:
    """The spec with the token mounted in every container that mounts nothing at its path."""
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


# -- references to secrets --------------------------------------------------------------------


def mirror_pod_error(pod: v1.Pod) -> str:
    """Why a mirror pod is refused, or ``""``: it must not refer to what its kubelet may not see."""
    spec = pod.spec
    if spec.serviceAccountName:
        return "a mirror pod may not reference service accounts"
    if spec.imagePullSecrets or any(True for _ in _secret_names(spec)):
        return "a mirror pod may not reference secrets"
    for volume in spec.volumes:
        if volume.projected is not None and any(
            source.serviceAccountToken is not None for source in volume.projected.sources or ()
        ):
            return "a mirror pod may not use ServiceAccountToken volume projections"
    return ""


def _secret_names(spec: v1.PodSpec) -> Iterator[str]:
    for container in (*spec.initContainers, *spec.containers, *spec.ephemeralContainers):
        for _, name in _container_secrets(container):
            yield name
    for volume in spec.volumes:
        if volume.secret is not None and volume.secret.secretName:
            yield volume.secret.secretName
        if volume.projected is not None:
            for source in volume.projected.sources or ():
                if source.secret is not None:
                    yield source.secret.name


def _container_secrets(container: Any) -> Iterator[tuple[str, str]]:
    """The secrets a container refers to, each with how it does."""
    for variable in container.env:
        if variable.valueFrom is not None and variable.valueFrom.secretKeyRef is not None:
            yield f"envVar {variable.name}", variable.valueFrom.secretKeyRef.name
    for source in container.envFrom:
        if source.secretRef is not None:
            yield "envFrom", source.secretRef.name


def unreferenced_secret(account: v1.ServiceAccount, spec: v1.PodSpec) -> str:
    """The violation of enforce-mountable-secrets: a secret of the pod that its account does not list; or ``""``."""
    known, account_name = [secret.name for secret in account.secrets], account.metadata.name
    tail = f"is not allowed because service account {account_name} does not reference that"
    for volume in spec.volumes:
        if volume.secret is not None and volume.secret.secretName not in known:
            return f'volume with secret.secretName="{volume.secret.secretName}" {tail} secret'
    for words, containers in (("init container", spec.initContainers), ("container", spec.containers)):
        for container in containers:
            for how, name in _container_secrets(container):
                if name not in known:
                    return f'{words} {container.name} with {how} referencing secret.secretName="{name}" {tail} secret'
    pulls = [secret.name for secret in account.imagePullSecrets]
    for i, secret in enumerate(spec.imagePullSecrets):
        if secret.name not in pulls:
            return f'imagePullSecrets[{i}].name="{secret.name}" {tail} imagePullSecret'
    return ""
