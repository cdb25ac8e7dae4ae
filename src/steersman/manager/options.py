"""The flags of ``steersman run``, with kube-controller-manager's names and defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from steersman.controllers import CONTROLLERS
from steersman.intent.controller import Controller, Flag, Settings
from steersman.intent.gates import GATES
from steersman.intent.settings import Misconfigured
from steersman.manager.flags import (
    BOOL,
    DURATION,
    FLOAT,
    INT,
    STRING,
    STRINGS,
    Option,
    Type,
    UsageError,
    parse,
)

GENERAL = (
    Option(
        "controllers",
        STRINGS,
        ("*",),
        "Which controllers to run: '*' for all, 'foo' for the one named foo, '-foo' for all but that one. "
        f"There are: {', '.join(controller.name for controller in CONTROLLERS)}",
    ),
    Option(
        "feature-gates",
        STRINGS,
        (),
        "Features to turn on or off, as NAME=true or NAME=false. See docs/compatibility.md for those with a meaning.",
    ),
    Option("kube-api-burst", INT, 30, "Burst of requests to the API server, for each client."),
    Option("kube-api-qps", FLOAT, 20.0, "Requests a second to the API server, for each client."),
    Option("leader-elect", BOOL, True, "Do nothing until this process holds the leader lease."),
    Option("leader-elect-lease-duration", DURATION, 15.0, "How long others wait for a silent leader."),
    Option(
        "leader-elect-renew-deadline", DURATION, 10.0, "How long a leader tries to renew before it stops."
    ),
    Option("leader-elect-resource-lock", STRING, "leases", "The kind of lock. Only leases are supported."),
    Option("leader-elect-resource-name", STRING, "kube-controller-manager", "The name of the lease."),
    Option("leader-elect-resource-namespace", STRING, "kube-system", "The namespace of the lease."),
    Option("leader-elect-retry-period", DURATION, 2.0, "Time between attempts to get or renew the lease."),
    Option(
        "min-resync-period", DURATION, 43200.0, "Caches are looked through again between once and twice this."
    ),
    Option("secure-port", INT, 0, "The port to serve on. Only 0, no serving, is supported yet."),
    Option(
        "use-service-account-credentials",
        BOOL,
        False,
        "Run each controller as a ServiceAccount of its own instead of as the kubeconfig's user.",
    ),
)
LOGS = (
    Option("logging-format", STRING, "text", "How to log: text or json.", "Logs"),
    Option("v", INT, 0, "How much to log: 0 to 10.", "Logs", "v"),
)
MISC = (
    Option(
        "kubeconfig", STRING, "", "Path of a kubeconfig file; without it, the in-cluster account.", "Misc"
    ),
    Option("master", STRING, "", "The API server's address; overrides the kubeconfig's.", "Misc"),
)
GLOBAL = (
    Option("help", BOOL, False, "Show this and end.", "Global", "h"),
    Option("version", BOOL, False, "Show the version and end.", "Global"),
)


WORKERS = "How many objects are looked at concurrently: more is quicker, and more load."
TYPES: Mapping[type, Type] = {bool: BOOL, int: INT, float: DURATION, str: STRING, tuple: STRINGS}
"""How the value of a controller's flag is read, by the type of its default."""


def declared() -> Iterable[Option]:
    """The flags that the controllers themselves declare. One may be read by several of them."""
    found: dict[str, Option] = {}
    for controller in CONTROLLERS:
        section = controller.name.capitalize()
        if isinstance(controller.workers, Flag):
            flag = controller.workers
            found.setdefault(flag.name, Option(flag.name, INT, flag.default, WORKERS, section))
        for flag in controller.flags:
            option = Option(flag.name, TYPES[type(flag.default)], flag.default, flag.help, section)
            found.setdefault(flag.name, option)
    return found.values()


ALL: tuple[Option, ...] = (*GENERAL, *declared(), *LOGS, *MISC, *GLOBAL)


@dataclass(frozen=True, slots=True)
class Election:
    """Leader election, as the flags set it."""

    enabled: bool
    name: str
    namespace: str
    lease_duration: float
    renew_deadline: float
    retry_period: float


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for, checked."""

    controllers: tuple[Controller[Any], ...]
    settings: Settings
    workers: Mapping[str, int]
    kubeconfig: str
    master: str
    qps: float
    burst: int
    resync: float
    own_accounts: bool
    election: Election
    verbosity: int
    json_logs: bool


def select(wanted: Sequence[str]) -> tuple[Controller[Any], ...]:
    """The controllers that ``--controllers`` names. The first word about one counts, as upstream."""
    names = {name: c for c in CONTROLLERS for name in (c.name, *c.aliases)}
    for word in wanted:
        bare = word.removeprefix("-")
        if bare != "*" and bare not in names:
            close = get_close_matches(bare, names, n=1)
            hint = (
                f"did you mean {close[0]!r}?"
                if close
                else f"there are: {', '.join(c.name for c in CONTROLLERS)}"
            )
            raise UsageError(f"{bare!r} is not in the list of known controllers; {hint}")

    def runs(controller: Controller[Any]) -> bool:
        for word in wanted:
            if word in (controller.name, *controller.aliases):
                return True
            if word.startswith("-") and word[1:] in (controller.name, *controller.aliases):
                return False
        return "*" in wanted and not controller.off

    return tuple(filter(runs, CONTROLLERS))


STAGES = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
"""The gates that stand for all of a stage."""


def read_gates(words: Sequence[str]) -> dict[str, bool]:
    """Feature gates as they are written: ``A=true``, or ``kube:A=true`` for a component."""
    gates: dict[str, bool] = {}
    for word in words:
        name, equals, value = word.rpartition(":")[2].partition("=")
        if not equals:
            raise UsageError(f"--feature-gates: missing bool value for {name}")
        if name not in GATES:
            close = get_close_matches(name, GATES, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UsageError(f"--feature-gates: unrecognized feature gate: {name}{hint}")
        try:
            gates[name] = BOOL.read(value)
        except ValueError:
            raise UsageError(f"--feature-gates: invalid value of {name}={value}: not true or false") from None
    for word, stage in STAGES.items():
        everything = gates.pop(word, None)
        if everything is not None:
            of_stage = {
                name: everything for name, gate in GATES.items() if gate.stage == stage and name not in STAGES
            }
            gates = {**of_stage, **gates}
    return gates


def read(argv: Sequence[str]) -> Options:
    """Options from a command line. Raises `UsageError`."""
    values = parse(ALL, argv)
    workers = [c.workers.name for c in CONTROLLERS if isinstance(c.workers, Flag)]
    for name in workers:
        if values[name] < 1:
            raise UsageError(f"--{name} must be at least 1, but got {values[name]}")
    lock = values["leader-elect-resource-lock"]
    if lock != "leases":
        raise UsageError(f"--leader-elect-resource-lock={lock} is not supported: use leases")
    if values["secure-port"] != 0:
        raise UsageError(f"--secure-port={values['secure-port']} is not supported yet: use 0, no serving")
    if values["logging-format"] not in ("text", "json"):
        raise UsageError(f"--logging-format={values['logging-format']} is not supported: use text or json")
    election = Election(
        enabled=values["leader-elect"],
        name=values["leader-elect-resource-name"],
        namespace=values["leader-elect-resource-namespace"],
        lease_duration=values["leader-elect-lease-duration"],
        renew_deadline=values["leader-elect-renew-deadline"],
        retry_period=values["leader-elect-retry-period"],
    )
    gates = read_gates(values["feature-gates"])
    settings = Settings(
        gates=gates, flags={flag.name: values[flag.name] for c in CONTROLLERS for flag in c.flags}
    )
    controllers = select(values["controllers"])
    try:
        for controller in controllers:
            controller.configured(settings)
    except Misconfigured as error:
        raise UsageError(str(error)) from None
    return Options(
        controllers=controllers,
        settings=settings,
        workers={name: values[name] for name in workers},
        kubeconfig=values["kubeconfig"],
        master=values["master"],
        qps=values["kube-api-qps"],
        burst=values["kube-api-burst"],
        resync=values["min-resync-period"],
        own_accounts=values["use-service-account-credentials"],
        election=election,
        verbosity=values["v"],
        json_logs=values["logging-format"] == "json",
    )
