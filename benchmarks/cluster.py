"""What a cluster in a test costs, in CPU time of one process: until the first is there, each one after it, and
what tests do with it.

    python benchmarks/cluster.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

BEGAN = time.process_time()

from steersman.testing.cluster import Cluster  # noqa: E402  (how long that takes is the question)

LOADED = time.process_time()
TRIES = 30
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:v1"}]}
"""


def deadline(cluster: Cluster) -> None:
    """A rollout that gets stuck, until it is given up."""
    cluster.apply(WEB)
    cluster.wait_until(lambda: cluster.get("Deployment", "web").status.readyReplicas == 3)
    cluster.apply(WEB.replace("web:v1", "web:bad"))
    cluster.wait_until(lambda: cluster.get("Deployment", "web").status.conditions[1].status == "False")


def month(cluster: Cluster) -> None:
    cluster.advance(days=30)


def fork(cluster: Cluster) -> None:
    cluster.fork()


def measured(do: Callable[[Cluster], None]) -> float:
    """Milliseconds, the least of several clusters: what others do to the caches of the processor only adds."""
    spent = []
    for seed in range(TRIES):
        with Cluster(seed) as cluster:
            begin = time.process_time()
            do(cluster)
            spent.append(time.process_time() - begin)
    return min(spent) * 1e3


def reset() -> float:
    """A cluster made and closed again."""
    spent = []
    for seed in range(TRIES):
        begin = time.process_time()
        Cluster(seed).close()
        spent.append(time.process_time() - begin)
    return min(spent) * 1e3


def main() -> None:
    begin = time.process_time()
    Cluster().close()
    first = time.process_time() - begin
    rows = (
        ("loading the modules", (LOADED - BEGAN) * 1e3),
        ("the first cluster", first * 1e3),
        ("each one after it, made and closed", reset()),
        ("a fork", measured(fork)),
        ("a rollout until its progress deadline", measured(deadline)),
        ("thirty days in which nothing happens", measured(month)),
    )
    for what, spent in rows:
        print(f"{what:<40} {spent:8.1f} ms of CPU")


if __name__ == "__main__":
    main()
