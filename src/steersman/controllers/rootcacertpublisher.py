"""root-ca-certificate-publisher (a decision): every active namespace has the API server's CA in ``kube-root-ca.crt``."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial

import msgspec
from msgspec.structs import replace

from steersman.api.errors import AlreadyExists, ApiError, NotFound
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
WORDS = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as "
    "the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of "
    "Kubernetes clusters."
)
MAPS = CONFIGMAPS.where(f"metadata.name={NAME}")


class Config(msgspec.Struct, frozen=True):
    """The controller's flags."""

    root_ca_file: str


class Seen(msgspec.Struct, frozen=True):
    namespace: Namespace
    published: ConfigMap | None


def observe(caches: Caches, key: Key) -> Seen | None:
    namespace = caches[NAMESPACES].get(key)
    if namespace is None:
        return None
    return Seen(namespace, caches[MAPS].get(Key(key.name, NAME)))


def _changed(caches: Caches, change: Change[ConfigMap]) -> Iterable[Key]:
    """What was there at the start is looked at with its namespace."""
    return (Key("", change.obj.metadata.namespace),) if change.old is not None else ()


async def decide(seen: Seen, now: datetime, config: Config) -> Verdict:
    name = seen.namespace.metadata.name
    if seen.namespace.status.phase != "Active":
        return Rest("the namespace is not active")
    data = {"ca.crt": (await ReadFile(config.root_ca_file)).decode()}
    published = seen.published
    if published is None:
        meta = ObjectMeta(name=NAME, namespace=name, annotations={DESCRIPTION: WORDS})
        try:
            await Create(CONFIGMAPS, name, ConfigMap(metadata=meta, data=data))
        except AlreadyExists:
            return Rest("it is there, the cache will show it")
        except NotFound:
            return Rest("the namespace is gone")
        except ApiError as error:
            if error.caused_by("NamespaceTerminating"):
                return Rest("the namespace is going away")
            raise
        return Rest("published")
    annotations = published.metadata.annotations
    if dict(published.data) == data and annotations.get(DESCRIPTION):
        return Rest("is published")
    meta = replace(published.metadata, annotations={**annotations, DESCRIPTION: WORDS})
    await Update(
        ConfigMap(metadata=meta, data=data, binaryData=published.binaryData, immutable=published.immutable)
    )
    return Rest("published anew")


def configure(settings: Settings) -> Controller[Seen]:
    config = Config(root_ca_file=settings[ROOT_CA_FILE])
    return Controller(
        name="root-ca-certificate-publisher-controller",
        aliases=("root-ca-cert-publisher",),
        service_account="root-ca-cert-publisher",
        watches=(Watch(NAMESPACES), Watch(MAPS, to=_changed)),
        workers=1,
        observe=observe,
        decide=partial(decide, config=config),
        flags=(ROOT_CA_FILE,),
        configure=configure,
        enabled=lambda settings: bool(settings[ROOT_CA_FILE]),
    )


controller = configure(DEFAULTS)
