"""The tests of an operator: it does what it should, nothing is lost while it is away, and it cleans up after itself.

The operator, in `website.py`, turns a Website into a Deployment that it owns, and keeps a deleted Website by a finalizer until it
is removed from a sitemap. Its objects are plain dicts: a custom resource has the fields of its definition, in `websites.yaml`.
"""

from pathlib import Path

import pytest
from website import FINALIZER, SITEMAP, operator

from steersman.api.errors import Invalid
from steersman.sim import faults
from steersman.testing import Cluster, Manager

BLOG = {
    "apiVersion": "example.com/v1",
    "kind": "Website",
    "metadata": {"name": "blog"},
    "spec": {"image": "blog:v1"},
}


@pytest.fixture
def mine(cluster: Cluster) -> Manager:
    """The process of the operator, in a cluster that knows Websites."""
    cluster.apply(Path(__file__).with_name("websites.yaml"))
    return cluster.run_controller(operator)


def ready(cluster: Cluster) -> int:
    count: int = cluster.get("site", "blog")["status"]["ready"]
    return count


def test_a_website_gets_its_copies_and_says_how_many_are_ready(cluster: Cluster, mine: Manager) -> None:
    cluster.apply(BLOG)
    cluster.wait_until(lambda: ready(cluster) == 1)

    mine.crash()
    cluster.patch("site", "blog", {"spec": {"copies": 3}})
    cluster.advance(minutes=5)
    assert len(cluster.list("pods")) == 1, "the operator is away"

    cluster.run_controller(operator)
    cluster.wait_until(lambda: ready(cluster) == 3)


def test_what_a_website_owns_goes_with_it(cluster: Cluster, mine: Manager) -> None:
    cluster.apply(BLOG)
    cluster.wait_until(lambda: ready(cluster) == 1)
    (owner,) = cluster.get("Deployment", "blog").metadata.ownerReferences
    assert (owner.kind, owner.uid) == ("Website", cluster.get("site", "blog")["metadata"]["uid"])

    cluster.delete("site", "blog")
    cluster.settle()
    assert cluster.list("deployments") == []
    assert cluster.list("pods") == []


def test_a_deleted_website_stays_until_it_is_off_the_sitemap(cluster: Cluster, mine: Manager) -> None:
    cluster.apply(BLOG)
    cluster.wait_until(lambda: ready(cluster) == 1)
    assert cluster.get("site", "blog")["metadata"]["finalizers"] == [FINALIZER]
    assert cluster.get("ConfigMap", SITEMAP).data == {"blog": "blog:v1"}

    mine.crash()
    cluster.delete("site", "blog")
    cluster.advance(hours=1)
    assert cluster.get("site", "blog")["metadata"]["deletionTimestamp"], "its finalizer keeps it"

    cluster.run_controller(operator)
    cluster.settle()
    assert cluster.list("websites") == []
    assert cluster.get("ConfigMap", SITEMAP).data == {}


def test_a_deployment_of_another_owner_is_left_alone(cluster: Cluster, mine: Manager) -> None:
    labels = {"app": "blog"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "other:v1"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
    cluster.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "blog"}, "spec": spec})
    cluster.apply(BLOG)
    cluster.settle()
    assert "is not ours" in cluster.get("site", "blog")["status"]["message"]
    cluster.delete("site", "blog")
    cluster.settle()
    assert len(cluster.list("deployments")) == 1


def test_the_schema_of_the_definition_is_checked(cluster: Cluster, mine: Manager) -> None:
    with pytest.raises(Invalid, match=r"spec\.copies"):
        cluster.apply({**BLOG, "spec": {"image": "blog:v1", "copies": -1}})


@pytest.mark.cluster(faults=[faults.error_response(500, "patch", "websites.example.com", times=3)])
def test_a_server_that_fails_delays_a_website_and_no_more(cluster: Cluster, mine: Manager) -> None:
    cluster.apply(BLOG)
    cluster.wait_until(lambda: ready(cluster) == 1)
    assert len(cluster.list("deployments")) == 1


async def test_clients_take_custom_kinds_by_name(cluster: Cluster, mine: Manager) -> None:
    client = cluster.client
    await client.create("websites", "default", BLOG)
    await cluster.aio.settle()
    (found,) = (await client.list("websites")).items
    assert found["status"]["ready"] == 1
    assert (await client.get("Deployment", "default", "blog")).spec.replicas == 1
    # The kind itself: its group, version, plural and scope.
    kind = cluster.kind("site")
    assert (kind.api_version, kind.plural, kind.namespaced) == ("example.com/v1", "websites", True)
