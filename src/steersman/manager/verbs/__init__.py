"""The verbs of ``steersman``: each is declared here, and performed by ``main`` of the module of its name.

A new verb is one `Verb` in `VERBS`, and a module with ``main(given: Given) -> int``. Help, parser, shell completion and the
reference in the documents follow from the declaration. This package is imported by every call, so its imports are light.
"""

from __future__ import annotations

from steersman.manager.flag_types import BOOL, DIRECTORY, FILE, INT, STRING, STRINGS, choice
from steersman.manager.verb import Argument, Example, Verb, columns, flag, output_flag, verbs_of
from steersman.manager.verbs.connection import CONNECTION, KUBECONFIG
from steersman.manager.verbs.planes import CONTROLLERS, NODE, RUN, UP
from steersman.manager.verbs.questions import PLAN, SHADOW, TOP, WHY

__all__ = ("CONTROLLERS", "KUBECONFIG", "NODE", "PLAN", "RUN", "SHADOW", "TOP", "UP", "VERBS", "WHY")

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

VERBS = (RUN, UP, NODE, WHY, TOP, PLAN, SHADOW, CONTROLLERS, DEMO, EXPLORE, SNAPSHOT, COMPLETION, VERSION)
"""In the order of the help."""
