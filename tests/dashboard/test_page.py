"""The dashboard's page in a headless Chromium, against a ``steersman up`` process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from steersman.api.kinds import SERVICEACCOUNTS
from steersman.client.api import Api
from tests.harness.browser import Browser, MissingBrowser, Theme, browser, find_browser
from tests.harness.dashboard import DashboardPlane, dashboard_plane, named
from tests.harness.stuck import SIM, deployment, job, template

AXE = "STEERSMAN_AXE"
"""Names the file axe.min.js of the npm package axe-core."""
ARROW_RIGHT, ARROW_LEFT, TAB, END = "\ue014", "\ue012", "\ue004", "\ue010"
VIEWS = (
    "/",
    "/?kind=Pod",
    "/object/Deployment/default/broken",
    "/object/Node/node-1",
    "/nodes",
    "/controllers",
)
WIDTHS = (400, 900, 1400)
ROW = """
    return [...document.querySelectorAll(".objects tbody tr")]
        .find((row) => row.querySelector("a").textContent === arguments[0])?.innerText
"""
"""The row of an object's name."""

try:
    find_browser()
except MissingBrowser as missing:
    pytestmark = pytest.mark.skip(reason=str(missing))
else:
    # One control plane and one browser for all of these, and they are heavy.
    pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardPlane]:
    with dashboard_plane(tmp_path_factory.mktemp("plane"), ["--speed=1"]) as running:
        picture_that_never_comes = template(
            annotations={SIM + "never-ready": "true"}, container={"image": "app:typo"}
        )
        running.create(
            named(deployment(replicas=2), "web"),
            named(deployment(picture_that_never_comes, replicas=2), "broken"),
            job("report", ("true",)),
        )
        yield running


@pytest.fixture(scope="module")
def window(plane: DashboardPlane) -> Iterator[Browser]:
    with browser() as found:
        found.open(plane.address)
        found.wait("return document.querySelector('.objects tbody tr')")
        yield found


@pytest.fixture
def page(plane: DashboardPlane, window: Browser) -> Iterator[Browser]:
    """The overview, opened afresh. After the test: no error was logged, and nothing but the plane was asked."""
    window.console()
    window.resize(1400, 1000)
    show(window, plane, "/")
    yield window
    assert window.console() == []
    sent = [each.url for each in window.requests() if each.url.startswith(("http", "ws"))]
    assert sent
    assert [url for url in sent if not url.startswith(f"{plane.origin}/ui/")] == []


def show(page: Browser, plane: DashboardPlane, route: str) -> None:
    """Load a view as a shared link does."""
    page.open("about:blank")
    page.open(plane.page(route))
    page.wait(
        "return document.querySelector('main h1') && !/Reading/.test(document.querySelector('main').innerText)"
    )


# -- the overview ---------------------------------------------------------------------------------


def test_the_token_of_the_printed_address_is_taken_out_of_it(plane: DashboardPlane, page: Browser) -> None:
    page.open("about:blank")
    page.open(plane.address)
    page.wait("return document.querySelector('.objects tbody tr')")
    assert page.script("return location.hash") == "#/"
    answered = [each for each in page.requests() if "/ui/api/" in each.url]
    assert answered
    assert all(plane.token not in each.url for each in answered)


def test_workloads_are_listed_with_what_is_ready_and_found_by_a_filter(
    page: Browser, plane: DashboardPlane
) -> None:
    assert "2/2" in page.wait(ROW + "?.includes('2/2') && " + ROW.replace("return", ""), "web")
    page.type("#filter", "brok")
    page.wait("return document.querySelectorAll('.objects tbody tr').length === 1")
    assert "broken" in page.text(".objects tbody")
    assert page.script("return location.hash") == "#/?q=brok", "the filter can be shared"
    show(page, plane, "/?kind=Pod&q=broken")
    page.wait("return document.querySelectorAll('.objects tbody tr').length === 2")
    assert page.text("#workloads") == "Pods"
    page.type("#filter", " nothing like that")
    page.wait("return /Nothing matches/.test(document.querySelector('.shown').innerText)")


def test_a_rollout_is_followed_live(page: Browser, plane: DashboardPlane) -> None:
    plane.create(named(deployment(replicas=1), "rolled"))
    page.wait(ROW + "?.includes('1/1')", "rolled")
    page.script("window.sameDocument = true")
    plane.patch("Deployment", "rolled", {"spec": {"replicas": 4}})
    page.wait(ROW + "?.includes('4/4')", "rolled")
    page.click('.objects a[href="#/object/Deployment/default/rolled"]')
    page.wait("return document.querySelectorAll('a.node-box').length >= 6")  # Deployment, ReplicaSet, 4 Pods
    plane.patch(
        "Deployment", "rolled", {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 5}}}}
    )
    page.wait(
        "return [...document.querySelectorAll('a.node-box')].filter(a => /ReplicaSet/.test(a.textContent)).length === 2"
    )
    plane.delete("Deployment", "rolled")
    page.wait("return /it was deleted/.test(document.querySelector('main').innerText)")
    page.script("location.hash = '#/'")
    page.wait(
        "return document.querySelector('.objects') && !(" + ROW.strip().removeprefix("return") + ")", "rolled"
    )
    assert page.script("return window.sameDocument"), "without loading the page again"
    # The page may ask for the object once more before it hears that it is gone.
    assert all("404" in each for each in page.console())


# -- an object ------------------------------------------------------------------------------------


def test_a_stuck_object_is_shown_first_and_says_its_cause(page: Browser, plane: DashboardPlane) -> None:
    page.wait("return /app:typo/.test(document.querySelector('.problems').innerText)")
    page.click('.problems a[href="#/object/Deployment/default/broken"]')
    page.wait("return document.querySelector('.finding .cause')")
    assert "the image app:typo of container main cannot be pulled" in page.text(".finding .cause")
    assert page.script("return document.title") == "Deployment default/broken · steersman"
    assert page.script("return document.activeElement.tagName") == "H1", "a screen reader begins there"
    kinds = page.script("return [...document.querySelectorAll('.box-kind')].map(each => each.textContent)")
    assert {"Deployment", "ReplicaSet", "Pod", "Node"} <= set(kinds)
    assert "deployment-controller" in page.text(".timeline")
    assert "MinimumReplicasUnavailable" in page.text(".conditions")
    page.click(".section-yaml summary")
    assert "image: app:typo" in page.text(".yaml")
    page.click(".section-text summary")
    assert "Objects:" in page.text(".part-text")
    page.click(".toggle")  # causes
    page.wait("return !document.querySelector('.entry .dot-cause')")
    page.click('a.node-box[href^="#/object/Pod/"]')
    page.wait("return document.querySelector('.events b') && document.title.startsWith('Pod ')")


def test_texts_of_objects_are_never_html(page: Browser, plane: DashboardPlane) -> None:
    bad = '<img src=x onerror="window.harmed=1"><b>bold</b>'
    odd = named(deployment(replicas=0), "odd")
    odd["metadata"]["annotations"] = {"note": bad}
    plane.create(odd)
    show(page, plane, "/object/Deployment/default/odd")
    page.click(".section-yaml summary")
    assert "<b>bold</b>" in page.text(".yaml")
    assert page.script("return document.querySelector('main img, main .yaml b')") is None
    assert page.script("return window.harmed") is None
    plane.delete("Deployment", "odd")


def test_an_object_that_is_not_there_says_so(page: Browser, plane: DashboardPlane) -> None:
    show(page, plane, "/nodes")
    page.script("location.hash = '#/object/Deployment/default/none'")
    page.wait("return /not found/.test(document.querySelector('main').innerText)")
    page.script("location.hash = '#/no/such/view'")
    page.wait("return document.querySelector('.overview')")
    assert all("404" in each for each in page.console())


# -- nodes and time -------------------------------------------------------------------------------


def test_a_node_fails_and_recovers_and_time_is_steered(page: Browser, plane: DashboardPlane) -> None:
    page.click('nav a[href="#/nodes"]')
    page.wait("return document.querySelectorAll('.node .cell').length >= 4")
    page.click('[data-node="node-1"] [data-action="fail"]')
    # The node is unreachable after 50 seconds of the cluster: a minute a second.
    seconds = "return Date.parse(document.querySelector('.now').dateTime) / 1000"
    before = page.script(seconds)
    for _ in range(5):
        page.type("#speed", ARROW_RIGHT)
    page.wait("return document.querySelector('.speed').textContent === '60×'")
    page.wait("return /NotReady/.test(document.querySelector('[data-node=\"node-1\"] .status').innerText)")
    assert page.script(seconds) - before > 30
    page.wait("return /unreachable/.test(document.querySelector('[data-node=\"node-1\"] .taints').innerText)")
    page.click('[data-node="node-1"] [data-action="recover"]')
    page.wait("return document.querySelector('[data-node=\"node-1\"] .status').innerText === 'Ready'")
    for _ in range(5):
        page.type("#speed", ARROW_LEFT)
    page.wait("return document.querySelector('.speed').textContent === '1×'")


def test_the_clock_stands_while_it_is_paused_and_jumps_to_what_is_next(page: Browser) -> None:
    page.click("#pause")
    page.wait("return document.querySelector('.speed').textContent === 'paused'")
    stood = page.text(".now")
    page.wait("return document.querySelector('#jump:not(:disabled)')")
    assert page.text(".now") == stood
    page.click("#jump")
    page.wait("return document.querySelector('.now').innerText > arguments[0]", stood)
    page.click("#pause")
    page.wait("return document.querySelector('.speed').textContent !== 'paused'")


def test_pods_of_a_node_are_walked_by_arrow_keys(page: Browser, plane: DashboardPlane) -> None:
    show(page, plane, "/nodes")
    page.wait("return [...document.querySelectorAll('.grid')].some(each => each.children.length > 1)")
    focused = "return document.activeElement.getAttribute('aria-label')"
    page.script(
        "[...document.querySelectorAll('.grid')].find(each => each.children.length > 1).firstElementChild.focus()"
    )
    first = page.script(focused)
    page.press(ARROW_RIGHT)
    second = page.script(focused)
    assert first != second
    assert all(label.startswith("default/") and ": " in label for label in (first, second))
    page.press(ARROW_LEFT)
    assert page.script(focused) == first
    stops = page.script(
        "return document.activeElement.parentElement.querySelectorAll('[tabindex=\"0\"]').length"
    )
    assert stops == 1, "a grid is one stop of the Tab key"


def test_the_focus_stays_on_a_node_while_pods_come_and_go(page: Browser, plane: DashboardPlane) -> None:
    show(page, plane, "/nodes")
    tallies = "return [...document.querySelectorAll('.tally')].map(each => each.textContent).join()"
    cells = "return document.querySelectorAll('.node .cell').length"
    page.script("document.querySelector('.node h2 a').focus()")
    before, shown = page.script(tallies), page.script(cells)
    plane.create(named(deployment(replicas=20), "crowd"))
    page.wait(f"{cells} >= arguments[0] + 20", shown)
    assert page.script(tallies) != before
    assert page.script("return document.activeElement.matches('.node h2 a')")
    plane.delete("Deployment", "crowd")
    page.wait(f"{cells} === arguments[0]", shown)
    assert page.script(tallies) == before
    assert page.script("return document.activeElement.matches('.node h2 a')")
    sorted_names = "return [...document.querySelectorAll('.node')].map(each => each.dataset.node)"
    names = page.script(sorted_names)
    assert names == sorted(names), "those that come later stand in their places"


def test_controllers_show_their_rounds_and_hot_keys(page: Browser, plane: DashboardPlane) -> None:
    show(page, plane, "/controllers")
    page.wait("return /deployment-controller/.test(document.querySelector('.controllers').innerText)")
    every = page.script("return document.querySelectorAll('.controllers tbody tr').length")
    assert every > 30
    page.click("#busy")
    page.wait("return document.querySelectorAll('.controllers tbody tr').length < arguments[0]", every)
    assert page.text("#h-fights + div")
    assert "round" in page.text(".hot")


# -- credentials and connection -------------------------------------------------------------------


def test_without_a_token_the_page_asks_for_one(plane: DashboardPlane) -> None:
    with browser() as fresh:
        fresh.open(plane.page())
        fresh.wait("return document.querySelector('#token')")
        fresh.type("#token", "wrong")
        fresh.click("form.token button")
        fresh.wait("return document.querySelector('#token')?.value === ''")
        assert fresh.script("return document.querySelector('.objects tbody tr')") is None
        assert all("401" in each for each in fresh.console())
        fresh.type("#token", plane.token)
        fresh.click("form.token button")
        fresh.wait("return document.querySelector('.objects tbody tr')")
        assert fresh.console() == []
        fresh.script("location.reload()")
        fresh.wait("return document.querySelector('.objects tbody tr')")


def test_a_user_without_rights_is_told_so_and_may_use_another_token(plane: DashboardPlane) -> None:
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}

    async def token(api: Api) -> str:
        made = await api.subresource(SERVICEACCOUNTS, "default", "default", "token", request)
        return str(made["status"]["token"])

    with browser() as fresh:
        fresh.open(f"{plane.page()}token={plane.ask(token)}".replace("#/", "#"))
        fresh.wait("return /Not allowed/.test(document.querySelector('main').innerText)")
        assert "system:serviceaccount:default:default" in fresh.text("main")
        fresh.script("location.hash = '#/nodes'")
        assert "Not allowed" in fresh.text("main"), "no view that waits for ever"
        fresh.click("main button")
        fresh.type("#token", plane.token)
        fresh.click("form.token button")
        fresh.wait("return document.querySelectorAll('.node').length === 3")
        assert all("403" in each for each in fresh.console())


def test_a_page_in_the_history_gives_its_connection_back(page: Browser, plane: DashboardPlane) -> None:
    # A browser has six connections to one host: the seventh load of the page waited for a minute.
    ended = "performance.getEntriesByType('resource').filter((each) => each.name.endsWith('/ui/api/stream')).length"
    page.wait("return document.querySelector('.objects tbody tr')")
    assert page.script(f"return {ended}") == 0, "an entry is made when a request ends"
    page.script("dispatchEvent(new Event('pagehide'))")
    page.wait(f"return {ended} === 1")
    assert page.text("#banner") == "", "that is no lost connection"
    plane.create(named(deployment(replicas=1), "meanwhile"))
    page.script("dispatchEvent(new Event('pageshow'))")
    page.wait(ROW + "?.includes('1/1')", "meanwhile")
    plane.delete("Deployment", "meanwhile")


def test_a_lost_connection_is_said_and_tried_again(tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    with browser() as fresh:
        with dashboard_plane(tmp_path, ["--nodes=1"]) as plane:
            fresh.open(plane.address)
            fresh.wait("return /no workloads yet/.test(document.querySelector('main').innerText)")
        fresh.wait(
            "return /connection to the plane is lost/.test(document.querySelector('#banner').innerText)"
        )
        assert "Overview" in fresh.text("main h1"), "what was there stays"
        port = plane.origin.rpartition(":")[2]
        with dashboard_plane(again, ["--nodes=1", f"--ui-port={port}"]):
            # Another control plane: it does not know the token of the first.
            # "Try now", unless the page has tried already.
            fresh.script("document.querySelector('#banner button')?.click()")
            fresh.wait("return document.querySelector('#token')")


# -- accessibility and looks ----------------------------------------------------------------------


def test_the_chosen_theme_is_remembered(page: Browser, plane: DashboardPlane) -> None:
    page.prefer("dark")
    ground = "return getComputedStyle(document.body).backgroundColor"
    dark = page.script(ground)
    page.click("#theme")
    light = page.script(ground)
    assert dark != light
    show(page, plane, "/nodes")
    assert page.script(ground) == light
    page.click("#theme")
    assert page.script(ground) == dark
    page.script("localStorage.clear()")


def test_the_first_stop_of_the_tab_key_leads_past_the_header(page: Browser) -> None:
    page.press(TAB)
    assert page.script("return document.activeElement.textContent") == "Skip to content"
    page.press("\ue007")  # Enter
    assert page.script("return document.activeElement.id") == "main"
    assert page.script("return location.hash") == "#/", "the route stays"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("route", VIEWS)
def test_every_view_fits_its_width(page: Browser, plane: DashboardPlane, route: str, width: int) -> None:
    page.resize(width, 900)
    show(page, plane, route)
    # The longest that the clock ever tells.
    page.script(
        "document.querySelector('.speed').textContent = '3600×';"
        "document.querySelector('.next').textContent = 'in 59 min 59 s'"
    )
    assert page.script("return document.documentElement.scrollWidth <= innerWidth")


def axe() -> str:
    """The script of axe-core, which is not ours to ship."""
    given = os.environ.get(AXE, "")
    if not given:
        pytest.skip(f"set {AXE} to the path of axe.min.js (npm: axe-core)")
    return Path(given).read_text("utf-8")


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("route", VIEWS)
def test_axe_finds_no_serious_fault(page: Browser, plane: DashboardPlane, route: str, theme: Theme) -> None:
    script = axe()
    page.prefer(theme)
    show(page, plane, route)
    page.script("for (const each of document.querySelectorAll('details')) each.open = true")
    page.script(script)
    page.script("window.axe.run(document).then((found) => { window.found = found; })")
    faults = page.wait("return window.found").get("violations")
    assert [
        (each["id"], each["help"], each["nodes"][0]["html"])
        for each in faults
        if each["impact"] in ("serious", "critical")
    ] == []


# -- the picture of owners ------------------------------------------------------------------------

LAYOUT = """
    import("./graph.js").then(({ layout, outline }) => { window.drawn = [layout, outline].map((draw) => draw(arguments[0])); });
"""


def test_owners_are_drawn_left_of_what_they_own_and_many_siblings_as_a_few(page: Browser) -> None:
    pods = [
        {"id": f"p{n}", "kind": "Pod", "name": f"p{n}", "state": "bad" if n == 30 else "ok"}
        for n in range(40)
    ]
    nodes = [
        {"id": "d", "kind": "Deployment", "name": "d", "state": "ok"},
        {"id": "r", "kind": "ReplicaSet", "name": "r", "state": "ok"},
    ]
    edges = [
        {"from": "d", "to": "r", "relation": "owns"},
        *({"from": "r", "to": pod["id"], "relation": "owns"} for pod in pods),
    ]
    page.script(LAYOUT, {"nodes": [*pods, *nodes], "edges": edges})
    drawn, listed = page.wait("return window.drawn")
    places = {box["id"]: box for box in drawn["boxes"]}
    assert places["d"]["x"] < places["r"]["x"] < places["p30"]["x"], "the failing pod is one of the few"
    assert [len(box["members"]) for box in drawn["boxes"] if "members" in box] == [33]
    assert len(drawn["boxes"]) == len(listed["boxes"]) == 2 + 8
    spots = [(box["x"], box["y"]) for box in drawn["boxes"]]
    assert len(set(spots)) == len(spots), "no box lies on another"


def test_a_circle_of_owners_is_drawn(page: Browser) -> None:
    nodes = [{"id": each, "kind": "Odd", "name": each, "state": "ok"} for each in "abc"]
    edges = [{"from": one, "to": other, "relation": "owns"} for one, other in ("ab", "bc", "ca", "xa")]
    page.script(LAYOUT, {"nodes": nodes, "edges": edges})
    drawn, listed = page.wait("return window.drawn")
    assert len(drawn["boxes"]) == len(listed["boxes"]) == 3
