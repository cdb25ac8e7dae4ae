"""``--controllers``: which of kube-controller-manager's controllers run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import msgspec

from steersman.api.go_quote import quote
from steersman.api.suggestions import closest
from steersman.controllers import CONTROLLERS
from steersman.controllers.shared.flags import ROOT_CA_FILE
from steersman.intent.controller import Controller, Settings
from steersman.intent.settings import DEFAULTS
from steersman.manager.flags import UsageError


class KnownController(msgspec.Struct, frozen=True):
    """A controller as kube-controller-manager 1.36 lists it: a line of ``controllers.tsv``."""

    name: str
    aliases: tuple[str, ...]
    default: Literal["on", "off", "cloud"]
    """``off``: it runs where ``--controllers`` names it. ``cloud``: it runs where there is a cloud provider."""
    gates: tuple[str, ...]
    """The feature gates it needs."""
    service_account: str
    purpose: str
    """The controller's purpose, in one sentence."""


def _known() -> Iterator[KnownController]:
    rows = (Path(__file__).parent / "controllers.tsv").read_text("utf-8").splitlines()[1:]
    for name, aliases, default, gates, account, purpose in (row.split("\t") for row in rows):
        when = cast("Literal['on', 'off', 'cloud']", default)
        yield KnownController(name, tuple(aliases.split()), when, tuple(gates.split()), account, purpose)


KNOWN_CONTROLLERS: tuple[KnownController, ...] = tuple(_known())
"""Every controller of kube-controller-manager 1.36, by name."""
KNOWN: dict[str, tuple[str, ...]] = {each.name: each.aliases for each in KNOWN_CONTROLLERS}
"""Every controller name of kube-controller-manager 1.36, with its aliases."""
OFF = tuple(each.name for each in KNOWN_CONTROLLERS if each.default == "off")
"""Controllers disabled by default."""


BY_DEFAULT = Settings({**DEFAULTS.flags, ROOT_CA_FILE.name: "the CA of the kubeconfig"}, DEFAULTS.gates)
"""The settings of a manager that was given a kubeconfig and no other flag."""

State: TypeAlias = Literal["on", "off", "gate", "cloud", "flags", "missing"]
STATES: Mapping[State, str] = {
    "on": "runs by default",
    "off": "runs where --controllers names it",
    "gate": "runs where its feature gates are on",
    "cloud": "runs where there is a cloud provider (--cloud-provider)",
    "flags": "runs where its flags are given",
    "missing": "not here yet: --controllers accepts the name, and the log tells that it does not run",
}


def state(known: KnownController, controller: Controller[Any] | None) -> State:
    """Whether a controller runs by default, and otherwise what it needs."""
    if controller is None:
        return "missing"
    if known.default != "on":
        return known.default
    if not all(map(DEFAULTS.enabled, controller.feature_gates)):
        return "gate"
    return "on" if controller.configured(BY_DEFAULT) is not None else "flags"


def states() -> Iterator[tuple[KnownController, State]]:
    """All controllers with their states, by name."""
    here = {each.name: each for each in CONTROLLERS}
    return ((known, state(known, here.get(known.name))) for known in KNOWN_CONTROLLERS)


def unknown(selection: Sequence[str]) -> Iterator[str]:
    """Errors for names in ``--controllers`` that no controller has."""
    names = [name for known, aliases in KNOWN.items() for name in (known, *aliases)]
    for word in selection:
        bare = word.removeprefix("-")
        if word != "*" and bare not in names:
            close = closest(bare, names)
            hint = f"; did you mean {quote(close)}?" if close else ""
            yield f"{quote(bare)} is not in the list of known controllers{hint}"


def enabled(selection: Sequence[str]) -> tuple[str, ...]:
    """Names of the controllers that ``--controllers`` enables. As upstream, the first matching entry counts."""

    def runs(name: str) -> bool:
        names = (name, *KNOWN[name])
        for word in selection:
            if word in names:
                return True
            if word.startswith("-") and word[1:] in names:
                return False
        return "*" in selection and name not in OFF

    return tuple(filter(runs, KNOWN))


def select(selection: Sequence[str], settings: Settings = DEFAULTS) -> tuple[Controller[Any], ...]:
    """The controllers that ``--controllers`` enables. Raises `UsageError`."""
    for problem in unknown(selection):
        raise UsageError(problem)
    names = enabled(selection)
    return tuple(controller for controller in CONTROLLERS if _selected_by(controller, settings) in names)


def _selected_by(controller: Controller[Any], settings: Settings) -> str:
    """The name by which ``--controllers`` selects a controller."""
    whole = controller.part_of
    return controller.name if whole is None or settings.enabled(whole.unless) else whole.controller


def unmanaged(selection: Sequence[str]) -> tuple[str, ...]:
    """Names of controllers that kube-controller-manager runs by default and this program does not, by ``--controllers``
    or because it does not implement them."""
    gates = {each.name: each.feature_gates for each in CONTROLLERS}
    chosen = [name for name in enabled(selection) if name in gates]
    return tuple(
        each.name
        for each in KNOWN_CONTROLLERS
        if each.default == "on"
        and each.name not in chosen
        and all(map(DEFAULTS.enabled, (*each.gates, *gates.get(each.name, ()))))
    )
