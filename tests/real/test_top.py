"""``top`` beside a real API server: the trace is that of `steersman run` at its secure port, and Go's manager has none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steersman.manager import cli
from tests.harness.ca import write_private
from tests.harness.child_process import Child, until
from tests.harness.envtest import MANAGER, Binary, RealPlane


def _start(plane: RealPlane, binary: Binary, folder: Path) -> tuple[Child, str]:
    """A manager with a certificate of the plane's authority, and the URL of its secure port."""
    pair, port = plane._authority.serving(("localhost",), ("127.0.0.1",)), plane.free_port()
    cert, key = folder / "tls.crt", folder / "tls.key"
    cert.write_bytes(pair.cert)
    write_private(key, pair.key)
    child = plane.manager(
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--permit-port-sharing",
        f"--tls-cert-file={cert}",
        f"--tls-private-key-file={key}",
        "--controllers=namespace-controller,serviceaccount-controller",
        f"--leader-elect-resource-name=top-{binary}",
        f"--authentication-kubeconfig={plane.kubeconfig(MANAGER)}",
        f"--authorization-kubeconfig={plane.kubeconfig(MANAGER)}",
        binary=binary,
        env={"KUBERNETES_SERVICE_HOST": ""},
    )
    return child, f"https://127.0.0.1:{port}"


def test_the_trace_of_a_manager_is_shown_with_the_credentials_of_the_kubeconfig(
    plane: RealPlane, namespace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    child, url = _start(plane, "steersman", tmp_path)
    words = ["top", f"--kubeconfig={plane.admin}", f"--trace-url={url}", "-o", "json"]

    def shown() -> bool:
        if cli.main(words) != 0:
            capsys.readouterr()
            return False
        told = json.loads(capsys.readouterr().out)
        return any(
            each["controller"] == "serviceaccount-controller" and each["rounds"]
            for each in told["controllers"]
        )

    try:
        until(shown, child, 60, "top shows rounds", step=0.2)
        assert cli.main([*words, "--controller=serviceaccount"]) == 0
        assert len(json.loads(capsys.readouterr().out)["controllers"]) == 1
        reader = f"--kubeconfig={plane.kubeconfig('reader')}"
        assert cli.main(["top", reader, f"--trace-url={url}"]) == 1
        assert "needs the verb get on the non-resource URL /debug/rounds" in capsys.readouterr().err
    finally:
        child.stop()


@pytest.mark.reference
def test_go_s_manager_and_its_api_server_have_no_trace_and_top_says_so(
    plane: RealPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    child, url = _start(plane, "kube-controller-manager", tmp_path)
    words = ["top", f"--kubeconfig={plane.admin}"]

    def absent() -> bool:
        assert cli.main([*words, f"--trace-url={url}"]) == 1
        return f"{url} has no trace of rounds" in capsys.readouterr().err

    try:
        until(absent, child, 60, "the port answers", step=0.2)
        assert cli.main(words) == 1
        told = capsys.readouterr().err
        assert "Name that port with --trace-url" in told
        assert (
            "Go's kube-controller-manager keeps no trace; `steersman why KIND/NAME` works without one" in told
        )
    finally:
        child.stop()
