"""The memory page in a real Chromium; and what can be said about it without one."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest

from kronmem import Client
from tests.server.browser import CHROMIUM, DRIVER, MISSING, Browser, browser
from tests.server.conftest import ADA
from tests.services.kronmem import ServedKronmem

chromium = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason=MISSING)
EVIL = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture
def told(unlocked: ServedKronmem) -> Iterator[Client]:
    """An agent with memories of several kinds."""
    with Client(unlocked.url, outbox=False) as client:
        client.remember("page-agent", "The project uses PostgreSQL 16", "fact", tags=["stack"], session_id="chat-1")
        client.remember("page-agent", "User prefers concise answers", "preference", session_id="chat-2")
        client.remember("page-agent", "Alice flies to Oslo on Monday", "temporary", ttl_days=3)
        client.remember("page-agent", EVIL, "<b>type</b>", tags=["<i>tag</i>"])
        yield client
        client.clear("page-agent")


def opened(window: Browser, service: ServedKronmem, agent: str = "page-agent") -> None:
    window.open("about:blank")
    window.open(f"{service.url}/#agent={agent}")


def test_the_page_is_one_file_under_a_policy_that_lets_nothing_else_in(open_http: httpx.Client) -> None:
    reply = open_http.get("/")
    policy = dict(part.split(" ", 1) for part in reply.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"].startswith("'sha256-")
    assert "unsafe" not in reply.headers["content-security-policy"]
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert reply.headers["x-content-type-options"] == "nosniff"
    outside = set(re.findall(r"""(?:https?:)?//[\w.-]+""", reply.text)) - {"http://www.w3.org"}
    assert outside == set()
    assert "innerHTML" not in reply.text
    assert "localStorage" not in reply.text


@chromium
def test_a_script_in_a_memory_is_shown_as_text(window: Browser, unlocked: ServedKronmem, told: Client) -> None:
    opened(window, unlocked)
    window.wait("document.querySelectorAll('#list li').length === 4")
    assert window.texts("#list .text")[0] == EVIL
    assert window.texts("#list li:first-child .tag") == ["<i>tag</i>"]
    assert window.texts("#list li:first-child .kind") == ["<b>type</b>"]
    assert window.run("document.title") == "page-agent · kronmem"
    assert window.run("document.querySelectorAll('#list script, #list img, #list b, #list i:not(.dot)').length") == 0
    assert window.log() == []


@chromium
def test_memories_are_listed_with_what_belongs_to_them(window: Browser, unlocked: ServedKronmem, told: Client) -> None:
    opened(window, unlocked)
    window.wait("document.querySelectorAll('#list li').length === 4")
    assert "4 memories" in window.texts("#summary")[0]
    expiring = window.texts("#list li:nth-child(2) .facts")[0]
    assert expiring.startswith("temporaryjust now")
    assert "expires in 2 days" in expiring
    assert "session chat-1" in window.texts("#list li:nth-child(4) .facts")[0]
    assert "page-agent4" in window.texts("#agents button")
    assert window.run("document.querySelectorAll('#chart rect').length") == 4
    window.run(
        "(document.querySelector('#session').value = 'chat-2', document.querySelector('#session').onchange(), 1)"
    )
    window.wait("document.querySelectorAll('#list li').length === 1")
    assert window.texts("#list .text") == ["User prefers concise answers"]


@chromium
def test_a_search_shows_how_its_score_was_made(window: Browser, unlocked: ServedKronmem, told: Client) -> None:
    opened(window, unlocked)
    window.wait("document.querySelectorAll('#list li').length === 4")
    window.press("/")
    window.write("#question", "which database do we use?\ue007")
    window.wait("document.querySelectorAll('#list .score').length === 1")
    assert window.texts("#list .text") == ["The project uses PostgreSQL 16"]
    said = dict(
        re.findall(r"(similarity|recency|frequency) (\d\.\d\d)", window.texts(".score .parts")[0].replace("y0", "y 0"))
    )
    made = 0.6 * float(said["similarity"]) + 0.2 * float(said["recency"]) + 0.2 * float(said["frequency"])
    assert float(window.texts(".score b")[0]) == pytest.approx(made, abs=0.02)
    window.press("escape")
    window.wait("document.querySelectorAll('#list li').length === 4")
    assert window.texts("#list .score") == []


@chromium
def test_forgetting_can_be_undone_and_is_done_when_the_page_goes(
    window: Browser, unlocked: ServedKronmem, told: Client
) -> None:
    opened(window, unlocked)
    window.wait("document.querySelectorAll('#list li').length === 4")
    window.press("down", "down", "delete")
    window.wait("document.querySelectorAll('#list li').length === 3")
    window.click("#undo")
    window.wait("document.querySelectorAll('#list li').length === 4")
    assert len(list(told.memories("page-agent"))) == 4
    window.press("down", "delete")
    window.wait("document.querySelectorAll('#list li').length === 3")
    window.open("about:blank")
    left = [memory.content for memory in told.memories("page-agent")]
    for _ in range(200):  # the browser sends it behind the page's back
        if len(left) == 3:
            break
        left = [memory.content for memory in told.memories("page-agent")]
    assert EVIL not in left


@chromium
def test_a_server_with_keys_asks_for_one_and_keeps_it_in_the_tab(
    window: Browser, served: ServedKronmem, http: httpx.Client
) -> None:
    with Client(served.url, api_key=ADA, outbox=False) as client:
        client.remember("page-locked", "Only Ada sees this")
    opened(window, served, "page-locked")
    window.wait("document.querySelector('#door').open")
    window.write("#key", "kv-wrong\ue007")
    window.wait("document.querySelector('#door-text').className === 'wrong' && document.querySelector('#door').open")
    window.write("#key", f"{ADA}\ue007")
    window.wait("document.querySelectorAll('#list li').length === 1")
    assert window.texts("#list .text") == ["Only Ada sees this"]
    assert window.run("[sessionStorage.length, localStorage.length, document.cookie]") == [1, 0, ""]
