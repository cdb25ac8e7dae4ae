"""A real control plane on loopback: etcd and kube-apiserver from ``KUBEBUILDER_ASSETS``.

What envtest is to Go, with three differences: RBAC and ServiceAccount admission are on, so that a
manager is refused what it would be refused in a cluster; every request is in an audit log; and
managers can be started beside it, ours or the reference.

::

    with RealPlane.start() as plane:
        plane.kubectl("get", "namespaces")
        manager = plane.manager("--leader-elect=false", binary="kube-controller-manager")
"""

from __future__ import annotations

import atexit
import base64
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Self

from tests.harness import audit
from tests.harness.assets import ASSETS, Binary, MissingAssets, assets, home, manager_command
from tests.harness.audit import AuditEntry
from tests.harness.ca import CertificateAuthority, key_pair, write_private
from tests.harness.child_process import Child, until

if TYPE_CHECKING:
    from steersman.client.http import HttpApi

__all__ = ["ASSETS", "MANAGER", "SCHEDULER", "Binary", "MissingAssets", "RealPlane"]

MANAGER = "system:kube-controller-manager"
"""Who a manager is to the API server."""
SCHEDULER = "kube-scheduler"

_GROUPS = {"admin": ("system:masters",)}


class RealPlane:
    """etcd and kube-apiserver, running. Closing it ends them and removes all they wrote."""

    def __init__(self) -> None:
        self.dir = Path()
        self.port = 0
        self.etcd: Child | None = None
        self.apiserver: Child | None = None
        self.managers: list[Child] = []
        self._authority = CertificateAuthority("steersman-plane")
        self._reservations: list[socket.socket] = []
        self._owner = os.getpid()

    @classmethod
    def start(
        cls, *, apiserver: Sequence[str] = (), etcd: Sequence[str] = (), timeout: float = 60.0
    ) -> RealPlane:
        """Bring a plane up and wait until it is ready; further flags come after ours.

        Call it in a thread that lives as long as the plane should (see `Child`).
        """
        binaries = assets("etcd", "kube-apiserver")
        plane = cls()
        _open(plane)
        try:
            plane.dir = home()
            plane._start_etcd(binaries, etcd, timeout)
            plane._start_apiserver(binaries, apiserver, timeout)
        except BaseException:
            plane.close()
            raise
        return plane

    # -- what a client needs --------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca(self) -> Path:
        """The certificate of the authority behind every certificate here."""
        return self.dir / "ca.crt"

    @property
    def ca_key(self) -> Path:
        """For ``--cluster-signing-key-file``."""
        return self.dir / "ca.key"

    @property
    def service_account_key(self) -> Path:
        """For ``--service-account-private-key-file``."""
        return self.dir / "sa.key"

    @property
    def admin(self) -> Path:
        """The kubeconfig of a cluster administrator."""
        return self.kubeconfig("admin")

    def kubeconfig(self, user: str = "admin", groups: Sequence[str] = ()) -> Path:
        """A kubeconfig of a user, with a client certificate; ``admin`` is a cluster administrator.

        Anybody can be asked for: RBAC decides what they may do.
        """
        path = self.dir / f"{user.replace('/', '_').replace(':', '_')}.kubeconfig"
        if path.exists() and not groups:
            return path
        pair = self._authority.client(user, groups or _GROUPS.get(user, ()))
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "plane",
            "contexts": [{"name": "plane", "context": {"cluster": "plane", "user": user}}],
            "clusters": [
                {
                    "name": "plane",
                    "cluster": {
                        "server": self.url,
                        "certificate-authority-data": _base64(self._authority.pair.cert),
                    },
                }
            ],
            "users": [
                {
                    "name": user,
                    "user": {
                        "client-certificate-data": _base64(pair.cert),
                        "client-key-data": _base64(pair.key),
                    },
                }
            ],
        }
        return write_private(path, json.dumps(config, indent=1).encode())

    def connect(self, user: str = "admin", groups: Sequence[str] = ()) -> HttpApi:
        """A client of a user's, not throttled. Use it with ``async with``."""
        from steersman.client.http import HttpApi
        from steersman.client.kubeconfig import load

        connection = load(str(self.kubeconfig(user, groups)))
        return HttpApi(connection, qps=0, user_agent="steersman-plane")

    def tls(self, user: str = "admin", groups: Sequence[str] = ()) -> ssl.SSLContext:
        """A context that trusts the plane and is this user, for a client of one's own."""
        pair = self._authority.client(user, groups or _GROUPS.get(user, ()))
        path = write_private(self.dir / f"tls-{threading.get_ident()}.pem", pair.cert + pair.key)
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(path)
        path.unlink()
        return context

    def kubectl(self, *argv: str, user: str = "admin", stdin: str | None = None) -> str:
        """Run kubectl as a user; what it prints. Raises `subprocess.CalledProcessError`."""
        command = [str(assets("kubectl") / "kubectl"), f"--kubeconfig={self.kubeconfig(user)}", *argv]
        # Its discovery cache belongs to this plane: the next one may have the same port.
        env = {**os.environ, "KUBECACHEDIR": str(self.dir / "kubectl")}
        return subprocess.run(
            command, input=stdin, env=env, check=True, capture_output=True, text=True, timeout=60
        ).stdout

    # -- what was asked of it -------------------------------------------------------------------

    @property
    def audit_path(self) -> Path:
        return self.dir / "audit.log"

    def mark(self) -> int:
        """A place in the audit log, to read on from with ``audit(since=...)``."""
        return audit.end(self.audit_path)

    def audit(self, since: int = 0) -> list[AuditEntry]:
        """Requests answered since a mark. An answer may arrive a moment before its entry does."""
        return audit.read(self.audit_path, since)

    def audited(
        self, wanted: Callable[[AuditEntry], bool], since: int = 0, timeout: float = 10.0
    ) -> list[AuditEntry]:
        """The same, once an entry that is wanted is among them. Raises `RuntimeError` if none comes."""
        assert self.apiserver is not None
        found: list[AuditEntry] = []

        def there() -> bool:
            found[:] = self.audit(since)
            return any(map(wanted, found))

        until(there, self.apiserver, timeout, "the request is in the audit log")
        return found

    # -- managers -------------------------------------------------------------------------------

    def manager(
        self,
        *argv: str,
        binary: Binary = "steersman",
        user: str = MANAGER,
        env: dict[str, str] | None = None,
    ) -> Child:
        """Start a manager against this plane, with its output in a log file.

        It gets ``--kubeconfig``, and ``--secure-port=0`` where no port is given. It is ended with
        the plane at the latest.
        """
        command = manager_command(binary, self.kubeconfig(user), argv)
        child = Child(command, self.dir / f"{binary}-{len(self.managers)}.log", env)
        self.managers.append(child)
        return child

    def scheduler(self, *argv: str) -> Child:
        """Start kube-scheduler against this plane, with its output in a log file. It is ended with the plane at the
        latest."""
        binary = assets(SCHEDULER) / SCHEDULER
        flags = (f"--kubeconfig={self.kubeconfig(f'system:{SCHEDULER}')}", "--secure-port=0", *argv)
        child = Child([str(binary), *flags], self.dir / f"{SCHEDULER}.log")
        self.managers.append(child)
        return child

    def free_port(self) -> int:
        """A port nobody else is given while the plane stands; its taker must set SO_REUSEPORT
        (``--permit-port-sharing``)."""
        # Bound but not listening, it keeps others away and takes no connections.
        reserved = socket.socket()
        self._reservations.append(reserved)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind(("127.0.0.1", 0))
        port: int = reserved.getsockname()[1]
        return port

    # -- starting and ending --------------------------------------------------------------------

    def _start_etcd(self, binaries: Path, extra: Sequence[str], timeout: float) -> None:
        flags = [
            f"--data-dir={self.dir / 'etcd'}",
            # A socket in a directory only we may enter: no port to race for, no open door.
            f"--listen-client-urls=unix://{self.dir / 'etcd.sock'}",
            "--advertise-client-urls=http://127.0.0.1:0",
            "--listen-peer-urls=http://127.0.0.1:0",
            "--unsafe-no-fsync",
            "--quota-backend-bytes=8589934592",
            "--log-level=warn",
            *extra,
        ]
        self.etcd = Child([str(binaries / "etcd"), *flags], self.dir / "etcd.log")
        until(self._etcd_answers, self.etcd, timeout, "etcd is ready")

    def _start_apiserver(self, binaries: Path, extra: Sequence[str], timeout: float) -> None:
        pair = self._authority.pair
        self.ca.write_bytes(pair.cert)
        write_private(self.ca_key, pair.key)
        signing, checking = key_pair()
        write_private(self.service_account_key, signing)
        (self.dir / "sa.pub").write_bytes(checking)
        names = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
        serving = self._authority.serving(names, ("127.0.0.1", "::1", "10.0.0.1"))
        (self.dir / "apiserver.crt").write_bytes(serving.cert)
        write_private(self.dir / "apiserver.key", serving.key)
        (self.dir / "audit-policy.json").write_text(json.dumps(audit.POLICY))
        self.port = self.free_port()
        flags = [
            f"--etcd-servers=unix://{self.dir / 'etcd.sock'}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            "--permit-port-sharing=true",
            f"--cert-dir={self.dir}",
            f"--tls-cert-file={self.dir / 'apiserver.crt'}",
            f"--tls-private-key-file={self.dir / 'apiserver.key'}",
            f"--client-ca-file={self.ca}",
            "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.dir / 'sa.pub'}",
            f"--service-account-signing-key-file={self.service_account_key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--allow-privileged=true",
            # The address of a server on loopback is refused as an endpoint, every ten seconds.
            "--endpoint-reconciler-type=none",
            f"--audit-policy-file={self.dir / 'audit-policy.json'}",
            f"--audit-log-path={self.audit_path}",
            # One file, however long: a rotated log would be a miscount.
            "--audit-log-maxsize=100000",
            *extra,
        ]
        self.apiserver = Child([str(binaries / "kube-apiserver"), *flags], self.dir / "apiserver.log")
        context = self.tls()
        # The first namespaces are made a moment after it calls itself ready.
        for path in ("/readyz", "/api/v1/namespaces/default", "/api/v1/namespaces/kube-system"):
            probe = partial(self._get, path, context)
            until(probe, self.apiserver, timeout, f"kube-apiserver answers {path}", step=0.05)

    def _etcd_answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.dir / "etcd.sock")) == 0

    def _get(self, path: str, context: ssl.SSLContext) -> bool:
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def close(self) -> None:
        """End all processes and remove all files. May be called again."""
        # A forked process inherits this object and its exit handlers, but not the children.
        if os.getpid() != self._owner:
            return
        for child in (*self.managers, self.apiserver, self.etcd):
            if child is not None:
                child.end()
        for reserved in self._reservations:
            reserved.close()
        if self.dir != Path():
            shutil.rmtree(self.dir, ignore_errors=True)
        if self in _planes:
            _planes.remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


_planes: list[RealPlane] = []


def _open(plane: RealPlane) -> None:
    """See that a plane is closed however this process ends."""
    if not _planes:
        atexit.register(_close_all)
        ours = threading.current_thread() is threading.main_thread()
        if ours and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _terminated)
    _planes.append(plane)


def _close_all() -> None:
    for plane in tuple(_planes):
        plane.close()


def _terminated(signum: int, frame: FrameType | None) -> None:
    # Not an exception: a test runner would take it for a failing test and go on.
    _close_all()
    signal.signal(signum, signal.SIG_DFL)
    os.kill(os.getpid(), signum)
