"""The flag table of ``steersman run``: every flag of kube-controller-manager, in the order of its help.

``flags.tsv`` holds the section, name, type and default of each flag. The help text is there as well, or at the
controller that reads the flag.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from steersman.controllers import CONTROLLERS
from steersman.intent.gates import GATES
from steersman.intent.settings import Flag
from steersman.manager.controller_selection import KNOWN, OFF
from steersman.manager.flag_types import TYPES, Type, write_bool
from steersman.manager.flags import Option

_SHORT = {"v": "v", "help": "h"}


def declared() -> dict[str, Flag[Any]]:
    """Flags declared by controllers, by name. Several controllers may read one flag."""
    workers = {c.workers.name: c.workers for c in CONTROLLERS if isinstance(c.workers, Flag)}
    return workers | {flag.name: flag for c in CONTROLLERS for flag in c.flags}


def _options() -> Iterator[Option]:
    types = {type.name: type for type in TYPES}
    own = declared()
    rows = (Path(__file__).parent / "flags.tsv").read_text("utf-8").splitlines()[1:]
    for section, name, called, default, deprecated, help in (row.split("\t") for row in rows):
        type = types[called]
        text = help or own[name].help
        value = _default(type, default)
        yield Option(name, type, value, text, section, _SHORT.get(name, ""), deprecated)


def _default(type: Type, text: str) -> Any:
    if type.many:
        # Lists are written with brackets and read without.
        text = text.removeprefix("[").removesuffix("]")
        return type.read(text) if text else ()
    return type.read(text)


FLAGS: tuple[Option, ...] = tuple(_options())


def described() -> Iterator[Option]:
    """The flags with the possible values of --controllers and --feature-gates in their help."""
    gates = (
        f"{name}=true|false ({gate.stage} - default={write_bool(gate.default)})"
        for name, gate in GATES.items()
        # As upstream: GA gates are not listed.
        if gate.stage in ("ALPHA", "BETA")
    )
    more = {
        "controllers": f"There are: {', '.join(KNOWN)}. Off by default: {', '.join(OFF)}.",
        "feature-gates": f"There are: {', '.join(gates)}.",
    }
    for flag in FLAGS:
        yield replace(flag, help=f"{flag.help} {more[flag.name]}") if flag.name in more else flag
