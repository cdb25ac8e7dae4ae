"""The test of an operator: it does what it should, and nothing is lost while it is away.

The operator, in `website.py`, turns a Website into a Deployment and says how many of its copies are ready.
"""

from pathlib import Path

from website import operator

from steersman.testing import Cluster

BLOG = {
    "apiVersion": "example.com/v1",
    "kind": "Website",
    "metadata": {"name": "blog"},
    "spec": {"image": "blog:v1"},
}


def test_a_website_gets_its_copies_and_says_how_many_are_ready(cluster: Cluster) -> None:
    cluster.apply(Path(__file__).with_name("websites.yaml"))
    mine = cluster.run_controller(operator)

    cluster.apply(BLOG)
    cluster.wait_until(lambda: cluster.get("site", "blog")["status"]["ready"] == 1)

    mine.crash()
    cluster.patch("site", "blog", {"spec": {"copies": 3}})
    cluster.advance(minutes=5)
    assert len(cluster.list("pods")) == 1, "nobody looks after websites"

    cluster.run_controller(operator)
    cluster.wait_until(lambda: cluster.get("site", "blog")["status"]["ready"] == 3)
