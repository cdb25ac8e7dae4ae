"""Pictures of what the program prints, as SVG: ``./dev pictures`` runs it and renews docs/images.

The colours are those that the programs write themselves (ANSI escapes), so a picture shows what a terminal shows. Each run of characters
has its place and length in the picture, so that it looks the same in every monospaced font; no font is loaded.
"""

from __future__ import annotations

import asyncio
import io
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from html import escape, unescape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from steersman.manager.top.model import Picture

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
QUICKSTART = ROOT / "docs" / "quickstart" / "pytest.md"
COLUMNS = 112
"""Characters of a line; longer ones end in an ellipsis."""
WIDTH, HEIGHT, MARGIN = 7.8, 18, 16
"""Of a character and of the space around all, in pixels."""
BACKGROUND, FOREGROUND = "#1e2430", "#d8dee9"
COLOURS = ("#4c566a", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee9")
"""Black to white, in the order of ANSI."""
ESCAPE = re.compile(r"\x1b\[([\d;]*)([A-Za-z])")
TOOK = re.compile(r"\bin \d[\d.]* ?m?s\b")
"""The time that a run took, which is another each time."""


class Style(NamedTuple):
    """The look of a run of characters."""

    colour: str = FOREGROUND
    bold: bool = False
    faint: bool = False
    reverse: bool = False

    def after(self, codes: str) -> Style:
        """The look after an escape sequence of these codes."""
        style = self
        for code in map(int, filter(None, codes.split(";") or ["0"])):
            if code == 0:
                style = Style()
            elif code == 1:
                style = style._replace(bold=True)
            elif code == 2:
                style = style._replace(faint=True)
            elif code == 7:
                style = style._replace(reverse=True)
            elif code == 22:
                style = style._replace(bold=False, faint=False)
            elif 30 <= code <= 37 or 90 <= code <= 97:
                style = style._replace(colour=COLOURS[code % 10])
            elif code == 39:
                style = style._replace(colour=FOREGROUND)
        return style if codes else Style()


def svg(output: str, title: str) -> str:
    """Terminal output as a picture."""
    lines = [list(_runs(line)) for line in output.expandtabs().rstrip().splitlines()]
    width = max((sum(len(text) for text, _ in runs) for runs in lines), default=0) * WIDTH + 2 * MARGIN
    height = len(lines) * HEIGHT + 2 * MARGIN
    texts = "".join(_line(runs, MARGIN + HEIGHT * number + 13) for number, runs in enumerate(lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" role="img">'
        f"<title>{escape(title)}</title>\n"
        '<style>text{font:13px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre}</style>\n'
        f'<rect width="{width:.0f}" height="{height}" rx="8" fill="{BACKGROUND}"/>\n{texts}</svg>\n'
    )


def _runs(line: str) -> Iterator[tuple[str, Style]]:
    """The parts of a line of one look each, cut off at `COLUMNS`."""
    style, at, room = Style(), 0, COLUMNS
    visible = len(ESCAPE.sub("", line))
    for match in (*ESCAPE.finditer(line), None):
        text = line[at : match.start() if match else None]
        if text and room > 0:
            if visible > COLUMNS and len(text) >= room:
                text = text[: room - 1] + "…"
            yield text, style
            room -= len(text)
        if match:
            at = match.end()
            style = style.after(match[1]) if match[2] == "m" else style


def _line(runs: Sequence[tuple[str, Style]], y: int) -> str:
    x, parts = 0, []
    for text, style in runs:
        weight = ' font-weight="600"' if style.bold else ""
        opacity = ' opacity=".6"' if style.faint else ""
        # Blanks at the ends of a run are not measured alike everywhere.
        left, bare = len(text) - len(text.lstrip()), text.strip()
        if style.reverse:
            parts.append(
                f'<rect x="{MARGIN + x * WIDTH:.1f}" y="{y - 13}" width="{len(text) * WIDTH:.1f}" height="{HEIGHT}" fill="{style.colour}"/>'
            )
        if bare:
            parts.append(
                f'<text x="{MARGIN + (x + left) * WIDTH:.1f}" y="{y}" textLength="{len(bare) * WIDTH:.1f}" '
                f'fill="{BACKGROUND if style.reverse else style.colour}"{weight}{opacity}>{escape(bare)}</text>'
            )
        x += len(text)
    return "".join(parts) + "\n" if parts else ""


def words(picture: str) -> str:
    """The text of a picture, its blanks left out: what a test compares."""
    text = "".join(re.findall(r"<text[^>]*>([^<]*)</text>", picture))
    return re.sub(r"\s", "", unescape(text))


# -- the pictures -----------------------------------------------------------------------------


def demo() -> str:
    """The picture of ``steersman demo``."""
    shown = "\x1b[1m$ steersman demo\x1b[0m\n" + run([sys.executable, "-m", "steersman.manager.cli", "demo"])
    return svg(shown, "steersman demo")


def failed_test() -> str:
    """The picture of the failed test of the quickstart."""
    listings = re.findall(r"```python\n(.*?)```", QUICKSTART.read_text("utf-8"), re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_web.py").write_text(listings[0])
        Path(folder, "test_rollout.py").write_text(listings[1])
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "--color=yes",
            "--steersman-history=0",
        ]
        output = run([*command, "-q", "--no-header", "test_rollout.py"], folder)
    return svg("\x1b[1m$ pytest test_rollout.py\x1b[0m\n" + output, "A failed test")


def top() -> str:
    """The picture of ``steersman top``: a control plane with a used up quota, and two clients that fight about a Deployment."""
    from rich.console import Console, Group

    from steersman.manager.top.draw import Connection, screen
    from steersman.manager.top.keys import View

    picture = asyncio.run(_busy_plane())
    view = View(selected="replicaset-controller")
    lines = screen(picture, view, Connection("https://127.0.0.1:6443", picture.now), COLUMNS, 31)
    shown = io.StringIO()
    Console(file=shown, width=COLUMNS, force_terminal=True, color_system="standard").print(Group(*lines))
    return svg(shown.getvalue(), "steersman top")


async def _busy_plane() -> Picture:
    """What `steersman top` sees after half a minute of a busy control plane."""
    from steersman.api.clock import RealClock
    from steersman.api.kinds import DEPLOYMENTS, NAMESPACES
    from steersman.api.kinds.quota import RESOURCEQUOTAS
    from steersman.client import kubeconfig
    from steersman.client.http import HttpApi
    from steersman.manager.control_plane import run_control_plane
    from steersman.manager.top import Source, read_endpoints
    from steersman.manager.up import read
    from steersman.manager.verb import parse
    from steersman.manager.verbs import TOP

    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": pod}
    quota = {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "1"}}}
    with tempfile.TemporaryDirectory() as folder:
        options = read(["--port=0", "--quiet", f"--kubeconfig={folder}/config"])
        async with run_control_plane(options, RealClock()):
            config = kubeconfig.load(f"{folder}/config")
            given = parse(TOP, [f"--kubeconfig={folder}/config"])
            async with (
                HttpApi(config, qps=0) as api,
                HttpApi(config, qps=0, user_agent="kubectl/1.36") as kubectl,
                HttpApi(config, qps=0, user_agent="argocd/3.1") as argocd,
                Source(lambda: read_endpoints(given), "") as source,
            ):
                for name in ("shop", "batch"):
                    await api.create(NAMESPACES.untyped, "", {"metadata": {"name": name}})
                await asyncio.sleep(1)
                await api.create(RESOURCEQUOTAS.untyped, "batch", quota)
                for name in ("shop", "batch"):
                    web = {"metadata": {"name": "web"}, "spec": spec}
                    await api.create(DEPLOYMENTS.untyped, name, web)
                picture = await source.look()
                for turn in range(30):
                    client, replicas = (argocd, 4) if turn % 2 else (kubectl, 2)
                    await client.patch(DEPLOYMENTS, "shop", "web", {"spec": {"replicas": replicas}})
                    await asyncio.sleep(1)
                    picture = await source.look(picture)
                return picture


def run(command: Sequence[str], folder: str | None = None) -> str:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": str(COLUMNS)}
    environ.pop("NO_COLOR", None)
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, cwd=folder, env=environ):
        os.close(theirs)
        written = b""
        try:
            while piece := os.read(ours, 65536):
                written += piece
        except OSError:  # Linux reports the end of a terminal as an error
            pass
    os.close(ours)
    return written.decode().replace("\r\n", "\n")


PICTURES = {"demo.svg": demo, "failed-test.svg": failed_test, "top.svg": top}

if __name__ == "__main__":
    for name, picture in PICTURES.items():
        if sys.argv[1:] in ([], [name]):
            (IMAGES / name).write_text(picture(), "utf-8")
            print(f"wrote {IMAGES / name}")
