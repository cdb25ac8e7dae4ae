"""root-ca-certificate-publisher-controller (a decision): publishes the CA bundle in every namespace, as ``kube-root-ca.crt``."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial

import msgspec
from msgspec.structs import replace

from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds import NAMESPACES, Namespace, ObjectMeta
from steersman.api.kinds.config import CONFIGMAPS, ConfigMap
from steersman.api.scheme import Key
from steersman.controllers.shared.flags import ROOT_CA_FILE
from steersman.intent.actions import Create, ReadFile, Update
from steersman.intent.controller import Caches, Change, Controller, Settings, Watch
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import Rest, Verdict

NAME = "kube-root-ca.crt"
DESCRIPTION = "kubernetes.io/description"
DESCRIPTION_TEXT = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as "
    "the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of "
    "Kubernetes clusters."
)
ROOT_CA_CONFIGMAPS = CONFIGMAPS.where(f"metadata.name={NAME}")


class Config(msgspec.Struct, frozen=True):
    """The controller's flags."""

    root_ca_file: str


class Observation(msgspec.Struct, frozen=True):
    """A namespace and its ConfigMap ``kube-root-ca.crt``."""

    namespace: Namespace
    configmap: ConfigMap | None


def observe(caches: Caches, key: Key) -> Observation | None:
    namespace = caches[NAMESPACES].get(key)
    if namespace is None:
        return None
    return Observation(namespace, caches[ROOT_CA_CONFIGMAPS].get(Key(key.name, NAME)))


def _enqueue_namespace(caches: Caches, change: Change[ConfigMap]) -> Iterable[Key]:
    """The namespace of a changed ConfigMap. The first list is skipped: it comes with all namespaces."""
    return (Key("", change.obj.metadata.namespace),) if change.old is not None else ()


async def decide(seen: Observation, now: datetime, config: Config) -> Verdict:
    name = seen.namespace.metadata.name
    if seen.namespace.status.phase != "Active":
        # differs: upstream tries to create the ConfigMap where a terminating namespace is listed at start, and repairs one.
        return Rest("namespace not active")
    # Comments beside the certificates may be in any encoding.
    data = {"ca.crt": (await ReadFile(config.root_ca_file)).decode(errors="replace")}
    configmap = seen.configmap
    if configmap is None:
        meta = ObjectMeta(name=NAME, namespace=name, annotations={DESCRIPTION: DESCRIPTION_TEXT})
        try:
            await Create(CONFIGMAPS, name, ConfigMap(metadata=meta, data=data))
        except NotFound:
            return Rest("namespace gone")
        except ApiError as error:
            if error.caused_by("NamespaceTerminating"):
                return Rest("namespace terminating")
            raise
        return Rest("ConfigMap created")
    annotations = configmap.metadata.annotations
    if dict(configmap.data) == data and annotations.get(DESCRIPTION):
        return Rest("ConfigMap up to date")
    meta = replace(configmap.metadata, annotations={**annotations, DESCRIPTION: DESCRIPTION_TEXT})
    await Update(
        ConfigMap(metadata=meta, data=data, binaryData=configmap.binaryData, immutable=configmap.immutable)
    )
    return Rest("ConfigMap updated")


def configure(settings: Settings) -> Controller[Observation]:
    config = Config(root_ca_file=settings[ROOT_CA_FILE])
    return Controller(
        name="root-ca-certificate-publisher-controller",
        aliases=("root-ca-cert-publisher",),
        service_account="root-ca-cert-publisher",
        watches=(Watch(NAMESPACES), Watch(ROOT_CA_CONFIGMAPS, to=_enqueue_namespace)),
        workers=1,
        observe=observe,
        decide=partial(decide, config=config),
        flags=(ROOT_CA_FILE,),
        configure=configure,
        enabled=lambda settings: bool(settings[ROOT_CA_FILE]),
    )


controller = configure(DEFAULTS)
