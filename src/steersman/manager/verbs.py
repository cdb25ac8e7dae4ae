"""The verbs of ``steersman``: each is declared here, and performed by ``main`` of the module of its name.

A new verb is one `Verb` in `VERBS`, and a module with ``main(given: Given) -> int``. Help, parser, shell completion and the
reference in the documents follow from the declaration. This module is imported by every call, so its imports are light.
"""

from __future__ import annotations

from steersman.http.limits import MAX_WATCHES, Limits
from steersman.manager.flag_types import (
    BOOL,
    DIRECTORY,
    DURATION,
    FILE,
    FLOAT,
    GATES,
    INT,
    STRING,
    STRINGS,
    choice,
)
from steersman.manager.flags import Option
from steersman.manager.verb import Argument, Example, Verb, columns, flag, output_flag, verbs_of

KUBECONFIG = "steersman.kubeconfig"
"""The kubeconfig that ``steersman up`` writes by default, and that other verbs look for."""
CONNECTION = flag(
    "kubeconfig",
    FILE,
    "",
    f"Kubeconfig of the cluster. By default ./{KUBECONFIG} if it exists, else $KUBECONFIG or ~/.kube/config.",
)

# -- run --------------------------------------------------------------------------------------


def _run_flags() -> tuple[Option, ...]:
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
    flags=_run_flags,
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
        Example("steersman up --speed=60", "an hour in a minute; the dashboard changes the speed"),
        Example("steersman up --from=cluster.snapshot", "a copy of a real cluster, to try things on"),
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

# -- demo, explore ----------------------------------------------------------------------------

DEMO = Verb(
    "demo",
    "run a Deployment through ten minutes of cluster time in a second, without a cluster",
    description="Real controllers, an API server and a simulated node run in this process, with a virtual clock that jumps to "
    "the next timer. The Deployment is scaled, rolled out, broken by an image that cannot be pulled, and rolled back. Nothing "
    "is left behind.",
    flags=(
        flag(
            "file",
            FILE,
            "",
            "Manifest with Deployments to use instead of the built-in one, and with what they need.",
            "f",
        ),
        flag("seed", INT, 1, "Seed of the simulation: same seed, same names, UIDs and order of events."),
    ),
    examples=(
        Example("steersman demo", "a Deployment called shop"),
        Example("steersman demo --file=deploy.yaml", "your own Deployments"),
    ),
)


def _scenarios() -> str:
    from steersman.explore.scenario import catalogue

    rows = [(each.name, each.description) for each in catalogue()]
    return "\n".join(("Scenarios:", "", *columns(rows)))


def _scenario_names() -> tuple[str, ...]:
    from steersman.explore.scenario import catalogue

    return ("all", *(each.name for each in catalogue()))


EXPLORE = Verb(
    "explore",
    "run scenarios under injected faults and compare their end states",
    description="Faults are managers that crash between any two writes, lost responses, frozen watches, and errors of the API "
    "server. A run whose end state differs from the run without faults is a finding. Findings are shown with the fewest faults "
    "that reproduce them and the command to repeat them.",
    arguments=(Argument("SCENARIO", many=True, choices=_scenario_names, files=True),),
    flags=(
        flag(
            "faults",
            STRING,
            "all",
            "Faults to inject. all; crashes: a crash before and after every write; lost-responses: every response lost in "
            "turn; names of faults to sample, such as frozen_watch,watch_cut; or a single run with given faults, such as "
            "'crash_after_write(7) + response_lost(9)'.",
        ),
        flag(
            "write-latency",
            STRINGS,
            (),
            "Shortest and longest time that a write of a controller takes in every trial, such as 1ms,300ms. By default "
            "writes take no time, except in trials that sample request_latency.",
        ),
        flag("seeds", INT, 20, "Number of trials with sampled faults for each scenario."),
        flag("first-seed", INT, 1, "First seed of the sampled faults."),
        flag("seed", INT, 0, "Seed of a single run with given faults."),
        flag("jobs", INT, 0, "Number of processes. By default one for each core."),
        flag("all-controllers", BOOL, False, "Run all controllers, not only those of the scenario."),
        flag("history", BOOL, False, "Print the history of a single run with given faults."),
        output_flag(),
    ),
    examples=(
        Example("steersman explore rolling-update", "one scenario, all faults"),
        Example("steersman explore all --faults=crashes", "all scenarios, a crash at every write"),
        Example("steersman explore mine.yaml --seeds=100", "a scenario of your own"),
    ),
    notes=_scenarios,
)

# -- why --------------------------------------------------------------------------------------

WHY = Verb(
    "why",
    "explain why an object is not as it should be: the deepest cause first",
    description="Reads the object, its owners and dependants, and asks their controllers what they would do. It needs the rights "
    "to get and list only, and works with every cluster. Also installed as `kubectl why`.",
    arguments=(Argument("KIND/NAME"), Argument("NAME", optional=True)),
    flags=(
        CONNECTION,
        flag("namespace", STRING, "", "Namespace of the object. By default that of the kubeconfig.", "n"),
        flag("output", choice("text", "json", "yaml"), "text", "Format of the output.", "o"),
        flag("watch", BOOL, False, "Look again every 2 s, and show what has changed.", "w"),
        flag("no-decisions", BOOL, False, "Do not ask the controllers what they would do."),
        flag(
            "trace-url",
            STRING,
            "",
            "Secure port of a `steersman run`, such as https://127.0.0.1:10257, whose trace to use. By default that of the API "
            "server, if it is `steersman up`.",
        ),
        flag("trace-ca", FILE, "", "CA of that port. By default that of the cluster."),
    ),
    examples=(
        Example("steersman why deployment/web", "why it has 0/3 replicas"),
        Example("steersman why pvc/data -n shop --watch", "until it is bound"),
        Example("steersman why namespace/old -o json", "for programs"),
    ),
)

# -- shadow -----------------------------------------------------------------------------------


def _shadow_flags() -> tuple[Option, ...]:
    own = (
        flag("for", DURATION, 0.0, "How long to compare, such as 10m. By default until Ctrl-C."),
        flag("grace", DURATION, 30.0, "Time that the acting manager has for each write."),
        flag("output", choice("text", "json", "yaml", "markdown"), "text", "Format of the report.", "o"),
        flag("report", FILE, "", "File to write the report to as well."),
        flag(
            "metrics-file",
            FILE,
            "",
            "File to write the figures to, in the text format of Prometheus: every 15 s, and at the end.",
        ),
    )
    return (*own, *_run_flags())


SHADOW = Verb(
    "shadow",
    "decide beside the manager of a cluster, write nothing, and report where the two differ",
    description="All controllers run over the objects of the cluster, but what they would write is only compared with what the "
    "acting manager writes. It needs the rights to get, list and watch (deploy/rbac-read-only.yaml), takes no lease and sends no "
    "write. Give it the flags of the acting manager: those of `steersman run` are accepted, and those that do not change a "
    "decision are ignored. The exit code is 0 where both agree, 2 where they differ, 1 where something could not be compared.",
    flags=_shadow_flags,
    examples=(
        Example("steersman shadow --kubeconfig=admin.kubeconfig --for=10m", "compare for ten minutes"),
        Example("steersman shadow --kubeconfig=… --terminated-pod-gc-threshold=100", "as the manager runs"),
        Example("steersman shadow --kubeconfig=… --for=1h -o json --report=shadow.json", "for programs"),
    ),
)

# -- plan -------------------------------------------------------------------------------------

PLAN = Verb(
    "plan",
    "show what the control loops would do after a change, before it is made",
    description="Reads a cluster with get and list only, or a snapshot; rebuilds it in memory under virtual time; makes the "
    "change there, and fast-forwards. It prints what is created, changed and deleted, when and why; what is refused and by whom; "
    "and what never converges. The exit code is 0 where everything converges, 2 where something is refused or does not, and 1 for "
    "errors.",
    flags=(
        CONNECTION,
        flag(
            "from",
            FILE,
            "",
            "Snapshot of a cluster (`steersman snapshot save`) to read instead of a cluster.",
        ),
        flag(
            "filename",
            STRINGS,
            (),
            "Manifest to apply, a directory of manifests, or - for standard input. Repeat the flag for more.",
            "f",
        ),
        flag("delete", STRINGS, (), "Object to delete with its dependants, as KIND/NAME."),
        flag("scale", STRINGS, (), "Workload to scale, as KIND/NAME=REPLICAS."),
        flag("set-image", STRINGS, (), "Workload to give another image, as KIND/NAME=[CONTAINER=]IMAGE."),
        flag("drain", STRINGS, (), "Node to drain."),
        flag("force", BOOL, False, "With --drain, also evict pods that have no controller."),
        flag("fail", STRINGS, (), "Node that fails: its kubelet stops."),
        flag("for", STRING, "30m", "How far to look ahead, in the cluster's time."),
        flag(
            "assume",
            STRINGS,
            (),
            "What the cluster cannot tell: start=2s, ready=20s, shutdown=5s, work=10m (of Jobs), image=web:v9:never, "
            "metrics=FILE.",
        ),
        flag(
            "namespace",
            STRING,
            "",
            "Namespace of objects that name none. By default that of the kubeconfig.",
            "n",
        ),
        flag("output", choice("text", "markdown", "json", "yaml"), "text", "Format of the output.", "o"),
    ),
    examples=(
        Example("steersman plan -f change.yaml", "the next 30 minutes, if this is applied"),
        Example(
            "helm template shop ./chart | steersman plan -f - -n shop", "a release before it is installed"
        ),
        Example(
            "steersman plan --drain node-3 --for 1h", "what moves, and what a PodDisruptionBudget refuses"
        ),
        Example(
            "steersman plan --delete ns/old --from prod.snapshot", "the whole cascade, without a cluster"
        ),
        Example("steersman plan --set-image deploy/web=web:v9 --assume image=web:v9:never", "a bad roll"),
        Example("steersman plan -f . -o markdown", "for the comment of a review"),
    ),
)

# -- snapshot, completion, version ------------------------------------------------------------

_DATA_DIR = flag("data-dir", DIRECTORY, "", "Data directory of `steersman up`. Required.")
_SUMMARY = flag("output", choice("text", "table", "json", "yaml"), "text", "Format of the output.", "o")
SNAPSHOT = Verb(
    "snapshot",
    "save a cluster or a data directory to a file, or restore it",
    description="A snapshot of a cluster has all objects that may be listed, and is for `plan`, `up --from` and tests. A snapshot "
    "of the data directory of `steersman up` is a backup.",
    verbs=verbs_of(
        "snapshot",
        Verb(
            "save",
            "write a snapshot of a cluster, or of a data directory, which holds the server's keys: keep it safe",
            arguments=(Argument("FILE", files=True),),
            flags=(
                CONNECTION,
                flag(
                    "data-dir",
                    DIRECTORY,
                    "",
                    "Data directory of `steersman up` to save instead of a cluster, also while the server runs.",
                ),
                flag("force", BOOL, False, "Overwrite the file if it exists."),
                flag(
                    "with-data",
                    BOOL,
                    False,
                    "Keep the data of Secrets and ConfigMaps. By default they are replaced by hashes.",
                ),
                flag("events", BOOL, False, "Keep Events, too."),
                _SUMMARY,
            ),
        ),
        Verb(
            "restore",
            "make a new data directory from a snapshot of one",
            arguments=(Argument("FILE", files=True),),
            flags=(
                _DATA_DIR,
                flag(
                    "bump-revision",
                    INT,
                    0,
                    "Number to add to the revision, so that clients which saw later writes than the snapshot has list "
                    "again.",
                ),
                _SUMMARY,
            ),
        ),
    ),
    examples=(
        Example("steersman snapshot save prod.snapshot --kubeconfig=…", "a cluster, with get and list only"),
        Example("steersman up --from=prod.snapshot", "a copy of it on this machine"),
        Example("steersman snapshot save before.snapshot --data-dir=data", "also while the server runs"),
        Example("steersman snapshot restore before.snapshot --data-dir=again", "into a new directory"),
    ),
)

COMPLETION = Verb(
    "completion",
    "print a script that completes verbs, flags and their values in a shell",
    verbs=verbs_of(
        "completion",
        Verb("bash", "print the script for bash"),
        Verb("zsh", "print the script for zsh"),
        Verb("fish", "print the script for fish"),
    ),
    examples=(
        Example("source <(steersman completion bash)", "in ~/.bashrc; the same with zsh in ~/.zshrc"),
        Example("steersman completion fish | source", "in ~/.config/fish/config.fish"),
    ),
)
VERSION = Verb("version", "show the version")

VERBS = (RUN, UP, NODE, WHY, PLAN, SHADOW, CONTROLLERS, DEMO, EXPLORE, SNAPSHOT, COMPLETION, VERSION)
"""In the order of the help."""
