"""kube-apiserver-serving-clustertrustbundle-publisher-controller (a decision): publishes the CA as a ClusterTrustBundle.

The name of the bundle contains a hash of its content, so a bundle never changes under its name. Bundles of
earlier contents are deleted once the new one exists.

differs: upstream falls back to certificates.k8s.io/v1alpha1 on servers without v1beta1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from functools import partial

import msgspec

from steersman.api.errors import AlreadyExists, ApiError, Conflict, NotFound
from steersman.api.kinds import ObjectMeta
from steersman.api.kinds.certificates import CLUSTERTRUSTBUNDLES, ClusterTrustBundle, ClusterTrustBundleSpec
from steersman.api.scheme import Key
from steersman.controllers.shared.flags import ROOT_CA_FILE
from steersman.intent.actions import Create, Delete, ReadFile, Update
from steersman.intent.controller import Caches, Change, Controller, Settings, Watch
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import Rest, Verdict

SIGNER = "kubernetes.io/kube-apiserver-serving"
BUNDLES = CLUSTERTRUSTBUNDLES.where(f"spec.signerName={SIGNER}")
ROUND = Key("", SIGNER)


class Config(msgspec.Struct, frozen=True):
    """The controller's flags."""

    root_ca_file: str


class Observation(msgspec.Struct, frozen=True):
    """The ClusterTrustBundles of this signer."""

    bundles: tuple[ClusterTrustBundle, ...]


def observe(caches: Caches, key: Key) -> Observation:
    return Observation(tuple(caches[BUNDLES].list()))


def bundle_name(content: bytes) -> str:
    """The name of the bundle with this content."""
    return f"{SIGNER.replace('/', ':')}:{hashlib.sha256(content).hexdigest()[:24]}"


async def decide(seen: Observation, now: datetime, config: Config) -> Verdict:
    content = await ReadFile(config.root_ca_file)
    if not content:
        return Rest("CA file is empty")
    name, text = bundle_name(content), content.decode()
    current = next((one for one in seen.bundles if one.metadata.name == name), None)
    spec = ClusterTrustBundleSpec(signerName=SIGNER, trustBundle=text)
    if current is None:
        try:
            await Create(
                CLUSTERTRUSTBUNDLES, "", ClusterTrustBundle(metadata=ObjectMeta(name=name), spec=spec)
            )
        except AlreadyExists:
            return Rest("ClusterTrustBundle already exists")
    elif current.spec.trustBundle != text:
        await Update(ClusterTrustBundle(metadata=current.metadata, spec=spec))
    failure: ApiError | None = None
    for bundle in seen.bundles:
        if bundle.metadata.name != name:
            try:
                await Delete(bundle)
            except (NotFound, Conflict):
                continue
            except ApiError as error:
                # One bundle that cannot be deleted must not keep the others from it.
                failure = error
    if failure is not None:
        raise failure
    return Rest("ClusterTrustBundle published")


def _enqueue(caches: Caches, change: Change[ClusterTrustBundle]) -> Iterable[Key]:
    return (ROUND,)


def configure(settings: Settings) -> Controller[Observation]:
    config = Config(root_ca_file=settings[ROOT_CA_FILE])
    return Controller(
        name="kube-apiserver-serving-clustertrustbundle-publisher-controller",
        service_account="kube-apiserver-serving-clustertrustbundle-publisher",
        watches=(Watch(BUNDLES, to=_enqueue),),
        workers=1,
        initial_keys=(ROUND,),
        observe=observe,
        decide=partial(decide, config=config),
        flags=(ROOT_CA_FILE,),
        configure=configure,
        enabled=lambda settings: bool(settings[ROOT_CA_FILE]),
        feature_gates=("ClusterTrustBundle",),
        required_kinds=(CLUSTERTRUSTBUNDLES,),
    )


controller = configure(DEFAULTS)
