"""Pictures of the dashboard, as PNG: ``./dev pictures dashboard`` renews docs/images/dashboard-*.png.

It starts ``steersman up`` and a headless Chromium (Debian's packages ``chromium`` and ``chromium-driver``), so it is not part of
``./dev pictures``, which needs Python alone.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.harness.browser import Browser, browser
from tests.harness.dashboard import DashboardPlane, dashboard_plane, named
from tests.harness.stuck import SIM, deployment, job, statefulset, template
from tools.png_palette import shrink

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1200, 820
LARGEST = 120_000
"""Bytes of one picture."""


def fill(plane: DashboardPlane) -> None:
    """A shop with one release that cannot be pulled and one that is too large for its nodes."""
    typo = template(annotations={SIM + "never-ready": "true"}, container={"image": "checkout:2.41"})
    large = template(container={"resources": {"requests": {"memory": "900Gi"}}})
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    plane.create(namespace)
    plane.create(
        named(deployment(replicas=12), "web"),
        named(deployment(replicas=6), "cart"),
        named(deployment(typo, replicas=3), "checkout"),
        named(deployment(large, replicas=1), "recommendations"),
        named(statefulset(replicas=3), "orders-db"),
        job("migrate", ("true",)),
        namespace="shop",
    )


def take(
    page: Browser, plane: DashboardPlane, name: str, route: str, ready: str, height: int = HEIGHT
) -> None:
    """Write the picture of a view once a condition holds in it."""
    page.resize(WIDTH, height)
    page.script("location.hash = arguments[0]", f"#{route}")
    page.wait(ready)
    page.script("scrollTo(0, 0); document.activeElement.blur()")
    path = IMAGES / f"dashboard-{name}.png"
    path.write_bytes(shrink(page.screenshot()))
    size = path.stat().st_size
    print(f"wrote {path} ({size:,} bytes)")
    if size > LARGEST:
        raise SystemExit(f"{path.name} is larger than {LARGEST:,} bytes")


def main() -> None:
    """Take all pictures."""
    with (
        tempfile.TemporaryDirectory() as home,
        dashboard_plane(Path(home), ["--nodes=5", "--speed=1"]) as plane,
        browser(WIDTH, HEIGHT) as page,
    ):
        fill(plane)
        page.prefer("dark")
        page.open(plane.address)
        settled = "const text = document.querySelector('main').innerText; return /12\\/12/.test(text) && /3\\/3/.test(text)"
        page.wait(settled)
        stuck = "return document.querySelectorAll('.problem-item').length >= 2 && /checkout:2.41/.test(document.querySelector('.problems').innerText)"
        page.wait(stuck)
        take(page, plane, "overview-dark", "/", settled)
        page.prefer("light")
        take(page, plane, "overview-light", "/", settled)
        page.prefer("dark")
        take(
            page,
            plane,
            "object",
            "/object/Deployment/shop/checkout",
            "return document.querySelector('.timeline')",
            1000,
        )
        page.prefer("light")
        page.script("location.hash = '#/nodes'")
        page.click('[data-node="node-2"] [data-action="fail"]')
        for _ in range(5):
            page.type("#speed", "\ue014")  # to a minute a second
        node = "document.querySelector('[data-node=\"node-2\"]').innerText"
        page.wait(f"return /NotReady/.test({node}) && /unreachable/.test({node})")
        take(page, plane, "nodes", "/nodes", f"return /deleting/.test({node})", 570)


if __name__ == "__main__":
    main()
