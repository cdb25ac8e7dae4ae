"""``/flagz``: the value of every flag, for people."""

from __future__ import annotations

from steersman.manager.flag_table import FLAGS
from steersman.manager.options import Options

HEAD = """\

kube-controller-manager flagz
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for \
debugging purposes only.
"""


def flagz(options: Options) -> str:
    """Each flag and its value on a line, by name."""
    lines = {flag.name: flag.type.write(options.values[flag.name]) for flag in FLAGS}
    return HEAD + "".join(f"{name}={lines[name]}\n" for name in sorted(lines))
