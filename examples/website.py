"""An operator written with this library.

It turns a Website into a Deployment of the same name, lists it in the ConfigMap ``sitemap`` of its namespace, and says how many
copies are ready. The Deployment has an owner reference, so the garbage collector deletes it after its Website. The sitemap is
shared, so a finalizer keeps a deleted Website until its line is removed there.

A control loop is a decision: it sees, it asks for what it wants done, and it says why it rests.
"""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from steersman.api.kinds import DEPLOYMENTS, Deployment, Object, Struct
from steersman.api.kinds.config import CONFIGMAPS, ConfigMap
from steersman.api.meta import is_controlled_by, owner_reference
from steersman.api.scheme import Key, Kind, register
from steersman.intent.actions import Create, Patch, UpdateStatus
from steersman.intent.controller import Caches, Change, Controller, Watch
from steersman.intent.verdict import Rest, Verdict

FINALIZER = "example.com/sitemap"
SITEMAP = "sitemap"


class Spec(Struct, frozen=True):
    image: str = ""
    copies: int = 1


class Status(Struct, frozen=True):
    ready: int = 0
    message: str = ""


class Website(Object, frozen=True):
    spec: Spec = Spec()
    status: Status = Status()


WEBSITES = register(Kind("example.com", "v1", "Website", "websites", True, Website))


class Observed(Struct, frozen=True):
    site: Website
    deployment: Deployment | None
    sitemap: ConfigMap | None


def observe(caches: Caches, key: Key) -> Observed | None:
    site = caches[WEBSITES].get(key)
    if site is None:
        return None
    sitemap = caches[CONFIGMAPS].get(Key(key.namespace, SITEMAP))
    return Observed(site, caches[DEPLOYMENTS].get(key), sitemap)


async def decide(seen: Observed, now: datetime) -> Verdict:
    site, finalizers = seen.site, seen.site.metadata.finalizers
    if site.metadata.deletionTimestamp is not None:
        return await finalize(seen)
    if FINALIZER not in finalizers:
        # The finalizer comes first: what it cleans up must not exist without it.
        site = await Patch(site, {"metadata": {"finalizers": [*finalizers, FINALIZER]}})
    await publish(seen)
    found = seen.deployment
    if found is None:
        found = await Create(DEPLOYMENTS, site.metadata.namespace, deployment(site))
    elif not is_controlled_by(found, site):
        await UpdateStatus(site, Status(message=f"Deployment {found.key} exists and is not ours"))
        return Rest("the Deployment is not ours")
    elif found.spec.replicas != site.spec.copies:
        found = await Patch(found, {"spec": {"replicas": site.spec.copies}})
    await UpdateStatus(site, Status(ready=found.status.readyReplicas))
    return Rest(f"{found.status.readyReplicas} of {site.spec.copies} copies are ready")


async def publish(seen: Observed) -> None:
    """List the Website in the sitemap."""
    meta = seen.site.metadata
    entry = {"data": {meta.name: seen.site.spec.image}}
    if seen.sitemap is None:
        await Create(CONFIGMAPS, meta.namespace, {"metadata": {"name": SITEMAP}, **entry})
    elif seen.sitemap.data.get(meta.name) != seen.site.spec.image:
        await Patch(seen.sitemap, entry)


async def finalize(seen: Observed) -> Verdict:
    """Clean up after a deleted Website, then let it go."""
    site, meta = seen.site, seen.site.metadata
    if FINALIZER not in meta.finalizers:
        return Rest("other finalizers remain")
    if seen.sitemap is not None and meta.name in seen.sitemap.data:
        await Patch(seen.sitemap, {"data": {meta.name: None}})
    others = [each for each in meta.finalizers if each != FINALIZER]
    # With its resourceVersion, so that a finalizer that was added meanwhile is not lost.
    await Patch(site, {"metadata": {"finalizers": others, "resourceVersion": meta.resourceVersion}})
    return Rest("removed from the sitemap")


def deployment(site: Website) -> dict[str, object]:
    labels = {"site": site.metadata.name}
    container = {"name": "web", "image": site.spec.image}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    owner = msgspec.to_builtins(owner_reference(site, WEBSITES))
    return {
        "metadata": {"name": site.metadata.name, "ownerReferences": [owner]},
        "spec": {"replicas": site.spec.copies, "selector": {"matchLabels": labels}, "template": pod},
    }


def listed(caches: Caches, change: Change[ConfigMap]) -> Iterable[Key]:
    """All Websites of the namespace whose sitemap changed."""
    return [site.key for site in caches[WEBSITES].list(change.obj.metadata.namespace)]


operator = Controller(
    "website",
    (
        Watch(WEBSITES),
        Watch(DEPLOYMENTS),
        Watch(CONFIGMAPS, to=listed, when=lambda found: found.metadata.name == SITEMAP),
    ),
    decide,
    workers=1,
    observe=observe,
)
