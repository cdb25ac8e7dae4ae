"""Controllers beside a real API server that does not serve all they need."""

from __future__ import annotations

from steersman.manager import controller_selection
from tests.harness.child_process import until
from tests.harness.envtest import RealPlane

PUBLISHER = "kube-apiserver-serving-clustertrustbundle-publisher-controller"


def test_a_controller_whose_resource_is_not_served_keeps_nobody_waiting(plane: RealPlane) -> None:
    unwritten = controller_selection.unmanaged(["*"])
    manager = plane.manager(
        f"--controllers={','.join(('job', *unwritten, PUBLISHER))}",
        "--feature-gates=ClusterTrustBundle=true",
        f"--root-ca-file={plane.ca}",
        "--leader-elect=false",
    )
    try:
        until(lambda: "controllers start" in manager.log(), manager, 60, "the others start")
        assert f"{PUBLISHER} does not start yet: the server does not serve" in manager.log()
        # Those that upstream runs by default and this call does not are named once.
        left = ", ".join(controller_selection.unmanaged(("job", *unwritten, PUBLISHER)))
        assert manager.log().count(f"though kube-controller-manager runs them by default: {left}") == 1
    finally:
        assert manager.stop() == 0
