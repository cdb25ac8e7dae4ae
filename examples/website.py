"""An operator written with this library.

It turns a Website into a Deployment of the same name and says how many copies are ready. A control loop
is a decision: it sees, it asks for what it wants done, and it says why it rests.
"""

from datetime import datetime

from steersman.api.kinds import DEPLOYMENTS, Deployment, Object, Struct
from steersman.api.scheme import Key, Kind, register
from steersman.intent.actions import Create, Patch, UpdateStatus
from steersman.intent.controller import Caches, Controller, Watch
from steersman.intent.verdict import Rest, Verdict


class Spec(Struct, frozen=True):
    image: str = ""
    copies: int = 1


class Status(Struct, frozen=True):
    ready: int = 0


class Website(Object, frozen=True):
    spec: Spec = Spec()
    status: Status = Status()


WEBSITES = register(Kind("example.com", "v1", "Website", "websites", True, Website))


def observe(caches: Caches, key: Key) -> tuple[Website, Deployment | None] | None:
    site = caches[WEBSITES].get(key)
    return None if site is None else (site, caches[DEPLOYMENTS].get(key))


async def decide(seen: tuple[Website, Deployment | None], now: datetime) -> Verdict:
    site, found = seen
    name, labels = site.metadata.name, {"site": site.metadata.name}
    pod = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "web", "image": site.spec.image}]},
    }
    spec = {"replicas": site.spec.copies, "selector": {"matchLabels": labels}, "template": pod}
    if found is None:
        found = await Create(DEPLOYMENTS, site.metadata.namespace, {"metadata": {"name": name}, "spec": spec})
    elif found.spec.replicas != site.spec.copies:
        found = await Patch(found, {"spec": {"replicas": site.spec.copies}})
    await UpdateStatus(site, Status(ready=found.status.readyReplicas))
    return Rest(f"{found.status.readyReplicas} of {site.spec.copies} copies are ready")


operator = Controller("website", (Watch(WEBSITES), Watch(DEPLOYMENTS)), decide, workers=1, observe=observe)
