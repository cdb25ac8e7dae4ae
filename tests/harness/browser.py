"""A headless Chromium, driven over the WebDriver protocol of chromedriver with plain HTTP and JSON.

Both programs are Debian's packages ``chromium`` and ``chromium-driver``; tests that need them are skipped by name where there are none.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from tests.harness.child_process import Child, until

Theme: TypeAlias = Literal["dark", "light"]

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""The key of an element's id, by the WebDriver specification."""
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-default-browser-check",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)
PATIENCE = 60
"""Seconds for anything that a page does: machines of CI are slow."""


class MissingBrowser(RuntimeError):
    """There is no Chromium with its driver on this machine."""


class BrowserError(AssertionError):
    """An error of the driver or of a script in the page, in its words."""


class Requested(NamedTuple):
    """A request that the browser made."""

    method: str
    url: str
    authorized: bool


def find_browser() -> tuple[str, str]:
    """The paths of Chromium and of its driver. Raises `MissingBrowser`."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if not browser or not driver:
        raise MissingBrowser("no chromium and chromedriver in PATH (Debian: chromium, chromium-driver)")
    return browser, driver


class Browser:
    """One window of a browser."""

    def __init__(self, driver: HTTPConnection, session: str) -> None:
        self._driver = driver
        self._session = session
        self._requests: list[Requested] = []

    # -- the page -------------------------------------------------------------------------------

    def open(self, url: str) -> None:
        """Go to an address and wait until the page is loaded."""
        self._call("url", {"url": url})

    def script(self, body: str, *args: object) -> Any:
        """Run the body of a function in the page; what it returns."""
        return self._call("execute/sync", {"script": body, "args": args})

    def wait(self, body: str, *args: object, timeout: float = PATIENCE) -> Any:
        """Run the body of a function in the page after every change of it, until it returns something true.

        Raises `BrowserError` with what the page shows then, if that takes longer than ``timeout`` seconds.
        """
        looking = """
            const done = arguments[arguments.length - 1], args = [...arguments].slice(0, -2);
            const [timeout] = [...arguments].slice(-2), check = new Function(BODY), end = performance.now() + timeout * 1000;
            (function look() {
                let found;
                try { found = check(...args); } catch (error) { if (!(error instanceof TypeError)) return done({error: String(error)}); }
                if (found) return done({found});
                if (performance.now() > end) return done({text: document.body.innerText});
                setTimeout(look, 20);
            })();
        """.replace("BODY", json.dumps(body))
        answer = self._call("execute/async", {"script": looking, "args": [*args, timeout]})
        if "found" in answer:
            return answer["found"]
        said = answer.get("error") or f"the page shows:\n{answer['text'][:3000]}"
        raise BrowserError(f"not within {timeout:g} s: {body}\n{said}")

    def text(self, selector: str) -> str:
        """The visible text of the first element of a CSS selector, once there is one."""
        self.wait("return document.querySelector(arguments[0]) !== null", selector)
        return str(self.script("return document.querySelector(arguments[0]).innerText", selector))

    def click(self, selector: str) -> None:
        """Click the first element of a CSS selector as a person does, who scrolls to it first."""
        element = self._element(selector)
        self.script("arguments[0].scrollIntoView({block: 'center'})", {ELEMENT: element})
        self._call(f"element/{element}/click", {})

    def type(self, selector: str, text: str) -> None:
        """Type into the first element of a CSS selector."""
        self._call(f"element/{self._element(selector)}/value", {"text": text})

    def press(self, *keys: str) -> None:
        """Press and release keys where the focus is; special keys have the WebDriver specification's code points."""
        strokes = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._call("actions", {"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]})

    def _element(self, selector: str) -> str:
        self.wait("return document.querySelector(arguments[0]) !== null", selector)
        found = self._call("element", {"using": "css selector", "value": selector})
        return str(found[ELEMENT])

    # -- the window -----------------------------------------------------------------------------

    def resize(self, width: int, height: int) -> None:
        """Set the size of the page, in CSS pixels."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def prefer(self, theme: Theme) -> None:
        """Set the theme that the system asks for."""
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.devtools("Emulation.setEmulatedMedia", {"features": features})

    def screenshot(self) -> bytes:
        """A picture of what the window shows, as PNG."""
        return base64.b64decode(self._call("screenshot", None))

    def devtools(self, command: str, parameters: Mapping[str, Any]) -> Any:
        """Run a command of the DevTools protocol."""
        return self._call("goog/cdp/execute", {"cmd": command, "params": parameters})

    def console(self) -> list[str]:
        """Errors and warnings of the console since the last call, those about refused requests included."""
        entries = self._call("se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self) -> list[Requested]:
        """All requests so far, of the page and of the browser for it."""
        for entry in self._call("se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                request = message["params"]["request"]
                authorized = "authorization" in {name.lower() for name in request["headers"]}
                self._requests.append(Requested(request["method"], request["url"], authorized))
        return list(self._requests)

    # -- the driver -----------------------------------------------------------------------------

    def close(self) -> None:
        """End the browser."""
        _ask(self._driver, "DELETE", f"/session/{self._session}")

    def _call(self, command: str, parameters: Mapping[str, Any] | None) -> Any:
        method = "GET" if parameters is None else "POST"
        return _ask(self._driver, method, f"/session/{self._session}/{command}", parameters)


def _ask(driver: HTTPConnection, method: str, path: str, document: Mapping[str, Any] | None = None) -> Any:
    body = None if document is None else json.dumps(document)
    driver.request(method, path, body, {"Content-Type": "application/json"})
    value = json.loads(driver.getresponse().read())["value"]
    if isinstance(value, dict) and "error" in value and "stacktrace" in value:
        raise BrowserError(f"{value['error']}: {value['message']}")
    return value


@contextmanager
def browser(width: int = 1400, height: int = 1000) -> Iterator[Browser]:
    """A browser with a fresh profile. Raises `MissingBrowser`."""
    program, driver = find_browser()
    with tempfile.TemporaryDirectory(prefix="steersman-browser-", ignore_cleanup_errors=True) as home:
        log = Path(home, "chromedriver.log")
        child = Child([driver, "--port=0"], log)
        connection: HTTPConnection | None = None
        try:
            port = re.compile(r"started successfully on port (\d+)")
            until(lambda: port.search(child.log()) is not None, child, PATIENCE, "chromedriver")
            found = port.search(child.log())
            assert found is not None
            connection = HTTPConnection("127.0.0.1", int(found[1]), timeout=2 * PATIENCE)
            options = {
                "binary": program,
                "args": [*FLAGS, f"--user-data-dir={home}/profile", f"--window-size={width},{height}"],
            }
            wanted = {
                "browserName": "chrome",
                "acceptInsecureCerts": True,  # the plane's certificate is its own
                "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
                "timeouts": {"script": 2000 * PATIENCE},
            }
            made = _ask(connection, "POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            page = Browser(connection, made["sessionId"])
            page.resize(width, height)
            try:
                yield page
            finally:
                page.close()
        finally:
            if connection is not None:
                connection.close()
            child.stop()
            _end_processes(f"--user-data-dir={home}/")


def _end_processes(argument: str) -> None:
    """End the processes with an argument that no other has: the browser's helpers lead groups of their own, and may outlive it."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            # A process may end while it is looked at.
            with suppress(OSError):
                if argument.encode() in (entry / "cmdline").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)
