"""The verbs that ask about a cluster and change nothing: ``why``, ``top``, ``plan``, ``shadow``."""

from __future__ import annotations

from steersman.manager.flag_types import BOOL, DURATION, FILE, FLOAT, STRING, STRINGS, choice
from steersman.manager.flags import Option
from steersman.manager.verb import Argument, Example, Verb, flag, output_flag
from steersman.manager.verbs.connection import CONNECTION, TRACE
from steersman.manager.verbs.planes import run_flags

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
        *TRACE,
    ),
    examples=(
        Example("steersman why deployment/web", "why it has 0/3 replicas"),
        Example("steersman why pvc/data -n shop --watch", "until it is bound"),
        Example("steersman why namespace/old -o json", "for programs"),
    ),
)

# -- top --------------------------------------------------------------------------------------

TOP = Verb(
    "top",
    "show the controllers at work: queues, rounds, latencies, writes, busy keys and write fights",
    description="A live view of the trace of a `steersman up` or `steersman run`. Keys: s sorts by another column, / filters, j and k or "
    "the arrows select a controller and show its last rounds, p pauses, q quits. Without a terminal it prints once.",
    flags=(
        CONNECTION,
        *TRACE,
        flag(
            "sort",
            choice(
                "rate",
                "queue",
                "oldest",
                "p99",
                "wait",
                "writes",
                "refused",
                "retries",
                "failures",
                "controller",
            ),
            "rate",
            "Column to sort the controllers by.",
        ),
        flag("controller", STRING, "", "Name or alias of the one controller to show."),
        flag("interval", FLOAT, 1.0, "Seconds between two looks, at least 0.1."),
        flag("once", BOOL, False, "Print once, as -o does."),
        output_flag(),
    ),
    examples=(
        Example("steersman top", "the controllers of `steersman up`"),
        Example(
            "steersman top --trace-url=https://127.0.0.1:10257 --trace-ca=ca.crt", "of a `steersman run`"
        ),
        Example("steersman top --once --sort=failures | head -5", "the ones that fail"),
        Example("steersman top -o json | jq .fights", "for programs"),
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
        Example("helm template shop . | steersman plan -f -", "a release before it is installed"),
        Example("steersman plan --drain node-3 --for 1h", "what moves, and what is refused"),
        Example("steersman plan --delete ns/old --from FILE", "the whole cascade, of a snapshot"),
        Example("steersman plan --scale deploy/web=10 --assume ready=20s", "pods that take long"),
        Example("steersman plan -f . -o markdown", "for the comment of a review"),
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
    return (*own, *run_flags())


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
