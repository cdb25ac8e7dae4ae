"""Many of a kind under virtual time: a month of nightly CronJobs, CronJobs that are all due, many autoscalers.

    python benchmarks/crowds.py [--only month]

What takes long is told in CPU seconds of this process; what is late, in seconds of the cluster.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from datetime import timedelta

from steersman.testing.cluster import Cluster

CRON = """
apiVersion: batch/v1
kind: CronJob
metadata: {{name: {name}}}
spec:
  schedule: "{schedule}"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{{name: main, image: "report:1", command: [sleep, "60"]}}]
"""
SCALED = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}, annotations: {{sim.steersman.dev/cpu: 100m}}}}
    spec: {{containers: [{{name: main, image: "web:1", resources: {{requests: {{cpu: 100m}}}}}}]}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: {name}}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {name}}}
  maxReplicas: 2
  metrics: [{{type: Resource, resource: {{name: cpu, target: {{type: Utilization, averageUtilization: 50}}}}}}]
"""


def month() -> str:
    """Thirty nights of a hundred CronJobs, each with its Job and its pod."""
    with Cluster() as cluster:
        for number in range(100):
            cluster.apply(CRON.format(name=f"nightly-{number}", schedule=f"{number % 60} 2 * * *"))
        cluster.advance(days=30)
        crons = cluster.list("CronJob")
        assert len(crons) == 100
        jobs = cluster.list("Job")
        assert len(jobs) == 300, f"{len(jobs)} Jobs are kept instead of three of each"
        assert all(one.status.lastSuccessfulTime is not None for one in crons)
        return "3,000 Jobs and their pods"


def due() -> str:
    """Ten thousand CronJobs that are all due at the same minute: how late is the last?"""
    with Cluster(nodes=0) as cluster:
        for number in range(10_000):
            cluster.apply(CRON.format(name=f"cron-{number}", schedule="0 * * * *"))
        then = cluster.now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        cluster.advance(seconds=(then - cluster.now).total_seconds() + 5)
        jobs = cluster.list("Job")
        assert len(jobs) == 10_000, f"{len(jobs)} Jobs after five seconds"
        late = max((job.metadata.creationTimestamp - then).total_seconds() for job in jobs)
        return f"the last Job was made {late:.0f} s after its time"


def autoscalers() -> str:
    """A thousand autoscalers, each of a Deployment of its own: do all refresh within a period?"""
    with Cluster(nodes=50) as cluster:
        for number in range(1000):
            cluster.apply(SCALED.format(name=f"web-{number}"))
        cluster.advance(minutes=2)
        begin = cluster.now
        before = {
            one.metadata.name: one.metadata.resourceVersion for one in cluster.list("HorizontalPodAutoscaler")
        }
        assert len(before) == 1000
        # What they see changes for all of them at once.
        for pod in cluster.list("Pod"):
            cluster.patch(
                "Pod", pod.metadata.name, {"metadata": {"annotations": {"sim.steersman.dev/cpu": "45m"}}}
            )
        cluster.wait_until(
            lambda: all(
                one.metadata.resourceVersion != before[one.metadata.name]
                for one in cluster.list("HorizontalPodAutoscaler")
            ),
            timeout=60,
        )
        return f"all have refreshed {(cluster.now - begin).total_seconds():.0f} s after a change"


CROWDS: dict[str, Callable[[], str]] = {"month": month, "due": due, "autoscalers": autoscalers}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=CROWDS, action="append")
    options = parser.parse_args()
    for name in options.only or CROWDS:
        begin = time.process_time()
        said = CROWDS[name]()
        print(f"{name:<12} {time.process_time() - begin:7.1f} s of CPU: {said}", flush=True)


if __name__ == "__main__":
    main()
