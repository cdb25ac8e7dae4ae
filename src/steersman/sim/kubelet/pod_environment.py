"""The environment of containers as kubelets make it: from which ConfigMaps and Secrets, and why it cannot be made. Pure functions.

The messages are those of kubelet 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.api.scheme import Key


class EnvironmentSource(msgspec.Struct, frozen=True):
    """A ConfigMap or Secret that variables of a container come from."""

    kind: Literal["configmap", "secret"]
    name: str
    key: str | None = None
    """The key that must exist; None for a source of all its keys."""
    optional: bool = False


class ConfigObjects(Protocol):
    """ConfigMaps and Secrets, as a kubelet knows them."""

    def config_map(self, key: Key) -> v1.ConfigMap | None: ...
    def secret(self, key: Key) -> v1.Secret | None: ...


def environment_sources(container: v1.Container | v1.EphemeralContainer) -> tuple[EnvironmentSource, ...]:
    """The ConfigMaps and Secrets of a container's environment, in the order in which a kubelet reads them."""
    found = []
    for all_of in container.envFrom:
        if all_of.configMapRef is not None:
            optional = bool(all_of.configMapRef.optional)
            found.append(EnvironmentSource("configmap", all_of.configMapRef.name, None, optional))
        elif all_of.secretRef is not None:
            optional = bool(all_of.secretRef.optional)
            found.append(EnvironmentSource("secret", all_of.secretRef.name, None, optional))
    for variable in container.env:
        source = variable.valueFrom
        if source is None or variable.value:
            continue
        if source.configMapKeyRef is not None:
            one = source.configMapKeyRef
            found.append(EnvironmentSource("configmap", one.name, one.key, bool(one.optional)))
        elif source.secretKeyRef is not None:
            secret = source.secretKeyRef
            found.append(EnvironmentSource("secret", secret.name, secret.key, bool(secret.optional)))
    return tuple(found)


def environment_error(namespace: str, sources: Iterable[EnvironmentSource], objects: ConfigObjects) -> str:
    """Why the environment of a container cannot be made: the first error. Empty where it can."""
    for source in sources:
        key = Key(namespace, source.name)
        held: v1.ConfigMap | v1.Secret | None
        if source.kind == "configmap":
            held, noun = objects.config_map(key), "ConfigMap"
        else:
            held, noun = objects.secret(key), "Secret"
        if source.optional or (held is not None and (source.key is None or source.key in held.data)):
            continue
        if held is None:
            return f'{source.kind} "{source.name}" not found'
        return f"couldn't find key {source.key} in {noun} {namespace}/{source.name}"
    return ""
