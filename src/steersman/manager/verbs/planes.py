"""The verbs that run control planes and operate them: ``run``, ``up``, ``node``, ``controllers``."""

from __future__ import annotations

from steersman.http.limits import MAX_WATCHES, Limits
from steersman.manager.flag_types import (
    BOOL,
    DIRECTORY,
    FILE,
    FLOAT,
    GATES,
    INT,
    STRING,
    STRINGS,
)
from steersman.manager.flags import Option
from steersman.manager.verb import Argument, Example, Verb, columns, flag, output_flag, verbs_of
from steersman.manager.verbs.connection import CONNECTION, KUBECONFIG

# -- run --------------------------------------------------------------------------------------


def run_flags() -> tuple[Option, ...]:
    from steersman.manager.flag_table import described

    return tuple(described())


def _run_controllers() -> str:
    from steersman.manager.controller_selection import STATES, states

    rows = [
        (known.name, f"{known.purpose}{'' if state == 'on' else f' ({STATES[state]})'}")
        for known, state in states()
    ]
    return "\n".join(("Controllers:", "", *columns(rows, 160)))


RUN = Verb(
    "run",
    "run the controllers against a cluster: a drop-in for kube-controller-manager",
    flags=run_flags,
    examples=(
        Example("steersman run --kubeconfig=admin.kubeconfig", "all controllers that run by default"),
        Example("steersman run --kubeconfig=… --controllers='*,-ttl'", "all of them but one"),
        Example("steersman run --kubeconfig=… --leader-elect=false", "without waiting for other managers"),
    ),
    notes=_run_controllers,
)

# -- up ---------------------------------------------------------------------------------------

UP = Verb(
    "up",
    "run a control plane on this machine, for kubectl and every other client",
    description="API server, controllers, scheduler and simulated nodes run in one process. It listens on loopback only, and "
    "leaves nothing behind.",
    command=True,
    flags=(
        flag(
            "kubeconfig",
            FILE,
            "",
            f"Path to write the administrator's kubeconfig to. By default ./{KUBECONFIG}, which is removed at the end.",
        ),
        flag(
            "host",
            STRING,
            "127.0.0.1",
            "Address to listen on. With anything but loopback, other machines can connect.",
        ),
        flag("port", INT, 6443, "Port to listen on; 0 picks a free one."),
        flag(
            "ui-port",
            INT,
            0,
            "Port on 127.0.0.1 where browsers open the dashboard, over plain HTTP; 0 picks a free one. The URL is printed.",
        ),
        flag("no-ui", BOOL, False, "Serve no dashboard, neither there nor at /ui of the API server."),
        flag("data-dir", DIRECTORY, "", "Directory to store all objects in. By default in memory only."),
        flag(
            "from",
            FILE,
            "",
            "Snapshot of a cluster (`steersman snapshot save`) to begin with. Its nodes and running pods are simulated from there "
            "on.",
        ),
        flag("nodes", INT, 3, "Number of simulated nodes. With 0 there is no scheduler either."),
        flag(
            "csi",
            BOOL,
            False,
            "Add a simulated CSI driver, csi.sim.steersman.dev, with the StorageClass csi-sim.",
        ),
        flag(
            "dra",
            BOOL,
            False,
            "Allocate ResourceClaims, and add a simulated driver with devices on each node, of the DeviceClass simulated.",
        ),
        flag("devices", INT, 4, "Number of simulated devices of each node, with --dra."),
        flag(
            "allow-exec",
            BOOL,
            False,
            "Run the commands of exec and attach on this machine, as this user, and forward ports of pods to its ports, for clients "
            "with the right to. Otherwise they are refused.",
        ),
        flag(
            "pod-logs",
            DIRECTORY,
            "",
            "Directory with logs of pods, as NAMESPACE/POD/CONTAINER.log. By default logs tell what happened to a container.",
        ),
        flag(
            "audit-log",
            FILE,
            "",
            "File for a line of JSON about each request over HTTP, as kube-apiserver's audit log at the level Metadata: who asked for what, and what "
            "became of it. It has no bodies. At 100 MB it becomes FILE.1.",
        ),
        flag("no-controllers", BOOL, False, "Run the API server, nodes and scheduler without controllers."),
        flag("no-scheduler", BOOL, False, "Run without a scheduler: another one binds the pods."),
        flag(
            "speed",
            FLOAT,
            1.0,
            "Speed of the cluster's clock as a multiple of real time. If given, also as 1, the dashboard can change it, pause, and jump "
            "ahead to the next thing that happens.",
        ),
        flag(
            "max-connections",
            INT,
            Limits().connections,
            "Number of open connections. Beyond it, those that have been idle the longest are closed.",
        ),
        flag(
            "max-watches",
            INT,
            MAX_WATCHES,
            "Number of watches over HTTP. Others are refused with 429 (Too Many Requests).",
        ),
        flag(
            "webhook-address",
            STRINGS,
            (),
            "Address of a Service that webhooks or APIServices name, as NAMESPACE/NAME[:PORT]=127.0.0.1:9443. Services "
            "have no network here. Repeat the flag, or write commas between them.",
        ),
        flag(
            "feature-gates",
            GATES,
            (),
            "Features of kube-controller-manager to turn on or off, as NAME=true, with commas between them. The API "
            "server serves the kinds of those that are on.",
        ),
        flag("quiet", BOOL, False, "Print errors only.", "q"),
        flag("v", INT, 0, "Log verbosity, from 0 to 10. With 0, what repeats is one line.", "v"),
    ),
    examples=(
        Example("steersman up", "until Ctrl-C; kubectl uses the kubeconfig that it names"),
        Example("steersman up --data-dir=data --nodes=10", "keep all objects, with more nodes"),
        Example("steersman up --from=cluster.snapshot", "a copy of a real cluster, to try things on"),
        Example("steersman up --speed=60", "an hour in a minute; the dashboard changes the speed"),
        Example("steersman up --allow-exec", "kubectl exec and port-forward reach this machine"),
        Example(
            "steersman up --port=0 -- pytest", "run a command with KUBECONFIG set; its exit code is ours"
        ),
    ),
)

# -- node -------------------------------------------------------------------------------------

_NODES = (Argument("NODE", many=True),)
_DEVICES = (Argument("NODE"), Argument("DEVICE", many=True))
_RESULT = output_flag()
"""Shows the nodes as they are afterwards, as ``node list`` does."""
NODE = Verb(
    "node",
    "fail, recover and reboot simulated nodes; drain and list nodes",
    description="Operate the nodes of a cluster and see how the control plane reacts: `kubectl get nodes,pods -A --watch` shows "
    "it. Only simulated nodes can fail, recover and reboot, and only with `steersman up --dra` they have devices.",
    verbs=verbs_of(
        "node",
        Verb(
            "list",
            "show all nodes, their status and their number of pods",
            flags=(CONNECTION, output_flag()),
        ),
        Verb(
            "fail",
            "stop the kubelets of nodes: no heartbeats, no pod status updates",
            arguments=_NODES,
            flags=(CONNECTION, _RESULT),
        ),
        Verb(
            "recover",
            "start the kubelets of failed nodes again, and uncordon nodes: undoes fail and drain",
            arguments=_NODES,
            flags=(CONNECTION, _RESULT),
        ),
        Verb(
            "reboot",
            "restart nodes with all their pods, and wait until they are back",
            arguments=_NODES,
            flags=(CONNECTION, _RESULT),
        ),
        Verb(
            "drain",
            "cordon nodes and evict their pods, respecting PodDisruptionBudgets",
            arguments=_NODES,
            flags=(
                CONNECTION,
                flag("force", BOOL, False, "Also evict pods that have no controller."),
                flag("timeout", FLOAT, 0.0, "Seconds after which to give up on a node. By default never."),
                _RESULT,
            ),
        ),
        Verb(
            "fail-device",
            "make simulated devices of a node unhealthy: they get a taint with the effect NoExecute",
            arguments=_DEVICES,
            flags=(CONNECTION, _RESULT),
        ),
        Verb(
            "recover-device",
            "make simulated devices of a node healthy again",
            arguments=_DEVICES,
            flags=(CONNECTION, _RESULT),
        ),
    ),
    examples=(
        Example("steersman node list", "all nodes"),
        Example("steersman node fail node-2", "its pods are evicted after some minutes"),
        Example("steersman node drain node-2 --force", "also pods that have no controller"),
        Example("steersman node recover node-2 -o json", "the node afterwards, for a program"),
        Example("steersman node fail-device node-2 device-0", "evict the pods that use the device"),
    ),
)

# -- controllers ------------------------------------------------------------------------------


def _states() -> str:
    from steersman.manager.controllers import notes

    return notes()


def _controller_names() -> tuple[str, ...]:
    from steersman.manager.controller_selection import KNOWN

    return tuple(KNOWN)


CONTROLLERS = Verb(
    "controllers",
    "list the controllers: what each is for, whether it runs, its flags, rights and tests",
    arguments=(Argument("NAME", optional=True, choices=_controller_names),),
    flags=(output_flag("wide", "markdown"),),
    examples=(
        Example("steersman controllers", "all of them"),
        Example("steersman controllers -o wide", "also tests, service accounts, aliases, flags, resources"),
        Example("steersman controllers job", "one of them, by its name or alias, in full"),
        Example("steersman controllers -o json | jq …", "the same facts for programs"),
    ),
    notes=_states,
)
