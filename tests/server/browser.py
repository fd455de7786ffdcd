"""A tiny WebDriver client: a real Chromium, driven over HTTP, without another dependency."""

from __future__ import annotations

import base64
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx

from tests.services.kronmem import free_port

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
MISSING = "no Chromium here: apt-get install chromium chromium-driver"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"down": "\ue015", "up": "\ue013", "delete": "\ue017", "escape": "\ue00c", "enter": "\ue007"}


class Browser:
    """One window."""

    def __init__(self, http: httpx.Client, session: str) -> None:
        self._http, self._base = http, f"/session/{session}"

    def ask(self, method: str, path: str, **body: Any) -> Any:
        reply = self._http.request(method, self._base + path, json=body if method == "POST" else None)
        value = reply.json()["value"]
        if reply.is_error:
            raise RuntimeError(value["message"])
        return value

    def open(self, url: str) -> None:
        self.ask("POST", "/url", url=url)

    def run(self, script: str, *args: Any) -> Any:
        """The value of a JavaScript expression."""
        return self.ask("POST", "/execute/sync", script=f"return {script}", args=list(args))

    def wait(self, script: str, good: Callable[[Any], Any] = bool) -> Any:
        """Ask until the answer is good; the page has no other way to say that it is ready."""
        for _ in range(400):
            value = self.run(script)
            if good(value):
                return value
            time.sleep(0.025)
        raise AssertionError(f"never came true: {script}; now {value!r}")

    def texts(self, selector: str) -> list[str]:
        return self.run("[...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector)

    def click(self, selector: str) -> None:
        self.ask("POST", f"/element/{self._find(selector)}/click")

    def write(self, selector: str, text: str) -> None:
        self.ask("POST", f"/element/{self._find(selector)}/value", text=text)

    def press(self, *keys: str) -> None:
        """Keys as a person presses them, wherever the focus is."""
        strokes = [KEYS.get(key, key) for key in keys]
        actions = [{"type": kind, "value": key} for key in strokes for kind in ("keyDown", "keyUp")]
        self.ask("POST", "/actions", actions=[{"type": "key", "id": "keyboard", "actions": actions}])

    def resize(self, width: int, height: int) -> None:
        """A viewport of exactly that size; a narrow one is a phone's."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.devtools("Emulation.setDeviceMetricsOverride", **size)

    def color_scheme(self, name: str) -> None:
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def choose(self, selector: str, value: str) -> None:
        """Pick an option, or a date, as a person does: the page hears of it."""
        self.run(
            "((e, v) => { e.value = v; e.dispatchEvent(new Event('change')); return 1 })"
            "(document.querySelector(arguments[0]), arguments[1])",
            *(selector, value),
        )

    def accessibility(self) -> list[str]:
        """What axe finds serious: its rule, and the elements."""
        self.ask("POST", "/execute/sync", script=_axe(), args=[])
        script = (
            "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(r => done(r.violations))"
        )
        found = self.ask("POST", "/execute/async", script=script, args=[])
        serious = [one for one in found if one["impact"] in ("serious", "critical")]
        return [f"{one['id']}: {', '.join(node['target'][0] for node in one['nodes'])}" for one in serious]

    def answer(self, accept: bool) -> str:
        """The text of the question that the page asks, and the press on one of its buttons."""
        text = self.ask("GET", "/alert/text")
        self.ask("POST", "/alert/accept" if accept else "/alert/dismiss")
        return str(text)

    def devtools(self, command: str, **params: Any) -> Any:
        return self.ask("POST", "/goog/cdp/execute", cmd=command, params=params)

    def log(self) -> list[str]:
        """What the page and the browser complained about."""
        return [entry["message"] for entry in self.ask("POST", "/se/log", type="browser")]

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.ask("GET", "/screenshot")))

    def _find(self, selector: str) -> str:
        return str(self.ask("POST", "/element", using="css selector", value=selector)[ELEMENT])


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A Chromium of its own, with its own profile."""
    port = free_port()
    driver = subprocess.Popen([str(DRIVER), f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as http:
            _ready(http)
            options = {"binary": CHROMIUM, "args": [*FLAGS, f"--user-data-dir={profile}"]}
            wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            session = http.post("/session", json={"capabilities": {"alwaysMatch": wanted}}).json()["value"]
            yield Browser(http, session["sessionId"])
            http.delete(f"/session/{session['sessionId']}")
    finally:
        driver.terminate()
        driver.wait()


def _axe() -> str:
    return files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")


def _ready(http: httpx.Client) -> None:
    for _ in range(400):
        try:
            if http.get("/status").json()["value"]["ready"]:
                return
        except httpx.TransportError:
            time.sleep(0.025)
    raise RuntimeError("chromedriver does not answer")
