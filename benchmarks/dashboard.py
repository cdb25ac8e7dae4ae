"""The dashboard with many pods in a headless Chromium: first paint, time until all is shown, and frames while pods change.

    python -m benchmarks.dashboard [--pods 5000] [--loads 5]

Needs Debian's packages ``chromium`` and ``chromium-driver``. The control plane is ``steersman up`` on the same machine; the figures are
those of the browser.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.harness.browser import Browser, browser
from tests.harness.dashboard import DashboardPlane, dashboard_plane, named
from tests.harness.stuck import deployment

SHARE = 50
"""Pods of one Deployment."""
PODS_OF_A_NODE = 100
WATCHED = 5.0
"""Seconds in which frames are counted."""
SHOWN = "return document.querySelector('[data-name=Pods] .total')?.textContent.replaceAll(',', '') === String(arguments[0])"
COUNT_FRAMES = """
    const [seconds] = arguments, frames = [], long = [];
    const observer = new PerformanceObserver((list) => long.push(...list.getEntries().map((each) => each.duration)));
    observer.observe({type: "longtask"});
    const begin = performance.now();
    (function next(now) {
        frames.push(now);
        if (now - begin < seconds * 1000) requestAnimationFrame(next);
        else {
            observer.disconnect();
            const gaps = frames.slice(1).map((each, at) => each - frames[at]);
            window.counted = {frames: frames.length / seconds, longest: Math.max(...gaps), long: long.length};
        }
    })(begin);
"""


class Load(NamedTuple):
    """One load of the page, in milliseconds from the click on its link."""

    paint: float
    complete: float


def load(page: Browser, plane: DashboardPlane, pods: int) -> Load:
    """Load the overview and wait until it has all pods."""
    page.open("about:blank")
    page.open(plane.address)
    page.wait(SHOWN, pods)
    paint, now = page.script(
        "return [performance.getEntriesByName('first-contentful-paint')[0].startTime, performance.now()]"
    )
    return Load(paint, now)


def frames(page: Browser) -> str:
    """Frames while pods change, in words."""
    page.script(COUNT_FRAMES, WATCHED)
    found = page.wait("return window.counted", timeout=WATCHED + 30)
    page.script("delete window.counted")
    return f"{found['frames']:.0f} frames/s, longest gap {found['longest']:.0f} ms, {found['long']} tasks over 50 ms"


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--loads", type=int, default=5)
    given = parser.parse_args()
    shares = [min(SHARE, given.pods - at) for at in range(0, given.pods, SHARE)]
    nodes = -(-given.pods // PODS_OF_A_NODE)
    with (
        tempfile.TemporaryDirectory() as home,
        dashboard_plane(Path(home), [f"--nodes={nodes}"]) as plane,
        browser() as page,
    ):
        names = [f"web-{number}" for number in range(len(shares))]
        plane.create(
            *(named(deployment(replicas=share), name) for name, share in zip(names, shares, strict=True))
        )
        page.open(plane.address)
        page.wait(SHOWN, given.pods, timeout=300)
        print(f"{given.pods} pods on {nodes} nodes, in {len(shares)} Deployments")
        loads = [load(page, plane, given.pods) for _ in range(given.loads)]
        print(f"first contentful paint  median {median(each.paint for each in loads):.0f} ms")
        print(f"all pods counted        median {median(each.complete for each in loads):.0f} ms")
        for view, route in (("overview", "#/"), ("nodes", "#/nodes")):
            page.script("location.hash = arguments[0]", route)
            page.wait("return document.querySelector('main h1')")
            for name in names[:10]:
                body = {"spec": {"template": {"metadata": {"annotations": {"view": view}}}}}
                plane.patch("Deployment", name, body)
            print(f"{view + ' in a rollout':24}{frames(page)}")


if __name__ == "__main__":
    main()
