"""The screen of ``steersman top`` as text, at the widths of small and large terminals."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console, Group

from steersman.manager.top.draw import Connection, screen
from steersman.manager.top.keys import View
from steersman.manager.top.model import Picture, advance
from tests.harness.top import NOON, answer, changed, controller, fight, round_

SERVER = Connection("https://127.0.0.1:6443", NOON)
PICTURE = advance(
    None,
    answer(
        controller(
            rate=12.5, ready=3, oldest=7.0, p50=0.001, p99=0.02, wait=0.3, writes={"create": 4, "update/status": 9},
            refused=2, retries=5, failed=1, rounds=1234, hottest=[("shop", "web", 90)],
        ),
        *(controller(f"idle-{number:02}-controller") for number in range(50)),
        fights=[fight("another client", "deployment-controller")],
        rounds=[
            round_(
                7,
                causes=[changed()],
                steps=[
                    {"action": "patch replicaset shop/web-1 (spec.replicas)", "outcome": ""},
                    {"action": "create 2 pods", "outcome": "Forbidden: exceeded quota"},
                ],
                ending={"failure": "exceeded quota", "code": 403, "retryAfter": 2.5},
            ),
        ],
    ),
)  # fmt: skip


def shown(
    width: int,
    height: int = 30,
    view: View = View(),
    picture: Picture = PICTURE,
    connection: Connection = SERVER,
) -> list[str]:
    """The lines that a terminal shows."""
    console = Console(width=width, height=height, record=True, file=StringIO())
    console.print(Group(*screen(picture, view, connection, width, height)))
    return console.export_text().splitlines()


def words(text: str) -> list[str]:
    return text.split()


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("height", [10, 24, 60])
@pytest.mark.parametrize("selected", ["", "deployment-controller", "idle-49-controller"])
def test_a_screen_is_never_larger_than_the_terminal(width: int, height: int, selected: str) -> None:
    lines = shown(width, height, View(selected=selected))
    assert len(lines) == height
    assert max(map(cell_len, lines)) <= width


def test_80_columns_have_the_figures_that_count() -> None:
    lines = shown(80)
    assert lines[0].startswith("12:00:00  51 controllers, 12.5 rounds/s, 3 ready, 0 working")
    assert lines[1].split() == words("CONTROLLER QUEUE OLDEST RND/S P99 WAIT WRITES RETRY FAIL")
    assert lines[2].split() == words("deployment 3 7.0s 12.5 20ms 300ms 13 5 1")
    page = "\n".join(lines)
    assert "shop/web      deployment    1.5\n  failed: exceeded quota, Deployment web changed by" in page
    assert "Deployment shop/web      6   5.0s  2.0s ago\n  another client <-> deployment" in page
    assert lines[-1] == "sort: rate  q quit  s sort  / filter  j k select  esc back  p pause"


def test_200_columns_have_all_of_them_in_one_line() -> None:
    lines = shown(200)
    head = "CONTROLLER KIND QUEUE WORKING TIMERS OLDEST RND/S P50 P99 WAIT WRITES REFUSED RETRY FAIL WRITES BY VERB"
    assert lines[1].split() == words(head)
    assert lines[2].endswith("create 4, update/status 9")
    page = "\n".join(lines)
    assert "1.5  failed: exceeded quota, Deployment web changed by another client ×1\n" in page
    assert "2.0s ago  another client <-> deployment\n" in page


def test_a_selected_controller_shows_its_last_rounds() -> None:
    lines = [line.rstrip() for line in shown(120, view=View(selected="deployment-controller"))]
    at = lines.index(
        "deployment-controller  1234 rounds since the start; last minute: create 4, update/status 9"
    )
    assert lines[at + 1] == "11:59:59 shop/web because Deployment shop/web changed by another client"
    assert lines[at + 2] == (
        "         patched replicaset shop/web-1 (spec.replicas); create 2 pods (Forbidden: exceeded quota); "
        "failed: exceeded quo…"
    )


def test_the_selected_row_is_scrolled_into_sight() -> None:
    lines = shown(80, 24, View(selected="idle-49-controller", sort="controller"))
    assert any(line.startswith("idle-49") for line in lines)
    assert "no rounds since this view began" in "\n".join(lines)


def test_a_lost_connection_keeps_the_picture_and_says_since_when() -> None:
    lost = Connection("https://a", NOON - timedelta(seconds=30), "refused", 31.0)
    lines = shown(80, connection=lost)
    assert lines[1].rstrip() == "no answer since 11:59:30, for 31 s; this is the last picture"
    assert lines[2].rstrip() == "refused"
    assert lines[4].startswith("deployment ")


def test_a_filter_a_pause_and_notices_are_shown() -> None:
    view = View(filter="idle-4", typing=True, paused=True)
    told = answer(controller("idle-4"), running=False)
    lines = shown(100, view=view, picture=advance(None, told))
    assert "PAUSED" in lines[0]
    assert lines[1].startswith("no controllers run here: this replica does not lead")
    assert lines[-1].startswith("filter: idle-4_  enter keeps it")


def test_text_of_others_cannot_write_to_the_terminal() -> None:
    odd = round_(1, causes=[{"type": "retry", "text": "\x1b]0;title\x07"}], ending={"rest": "a\nb"})
    told = answer(controller(hottest=[("shop", "web", 1)]), rounds=[odd])
    page = "\n".join(shown(120, view=View(selected="deployment-controller"), picture=advance(None, told)))
    assert "\x1b" not in page
    assert "\x07" not in page
    assert "rests: a b" in page
