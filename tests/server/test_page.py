"""The memory page in a real Chromium; and what can be said about it without one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from kronmem import Client
from tests.server.browser import CHROMIUM, DRIVER, MISSING, Browser, browser
from tests.server.conftest import ADA
from tests.services.kronmem import ServedKronmem

chromium = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason=MISSING)
EVIL = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
ENTER = "\ue007"


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as opened:
        opened.resize(1280, 900)
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


def listed(window: Browser, count: int) -> None:
    window.wait(f"document.querySelectorAll('#list li').length === {count}")


def ask(window: Browser, question: str) -> None:
    window.write("#question", question + ENTER)
    window.wait("document.querySelectorAll('#list .score').length > 0")


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
    listed(window, 4)
    assert window.texts("#list .text")[0] == EVIL
    assert window.texts("#list li:first-child .tag") == ["<i>tag</i>"]
    assert window.texts("#list li:first-child .kind") == ["<b>type</b>"]
    assert window.run("document.title") == "page-agent · kronmem"
    window.click("#list li:first-child .details")
    window.wait("document.querySelectorAll('#history li').length === 1")
    assert window.texts("#full") == window.texts("#history .text") == [EVIL]
    assert window.run("document.querySelectorAll('main script, dialog script, main img, dialog img').length") == 0
    assert window.run("document.title") == "page-agent · kronmem"
    assert window.log() == []


@chromium
def test_memories_are_listed_with_what_belongs_to_them(window: Browser, unlocked: ServedKronmem, told: Client) -> None:
    opened(window, unlocked)
    listed(window, 4)
    assert window.texts("#summary") == ["4 memories in 2 sessions"]
    expiring = window.texts("#list li:nth-child(2) .facts")[0]
    assert expiring.startswith("temporaryjust now")
    assert "expires in 2 days" in expiring
    assert "session chat-1" in window.texts("#list li:nth-child(4) .facts")[0]
    assert "page-agent4" in window.texts("#agents button")
    assert window.texts("#chart-title") == ["4 memories stored"]
    window.choose("#session", "chat-2")
    listed(window, 1)
    assert window.texts("#list .text") == ["User prefers concise answers"]
    assert window.texts("#summary") == ["1 memory with these filters, of 4"]
    window.click("#reset")
    listed(window, 4)
    window.choose("#until", "2020-01-01")
    listed(window, 0)
    assert window.texts("#empty p") == ["Nothing fits these filters."]


@chromium
def test_a_search_shows_the_similarity_it_is_ordered_by_and_raises_no_score(
    window: Browser, unlocked: ServedKronmem, told: Client
) -> None:
    opened(window, unlocked)
    listed(window, 4)
    window.press("/")
    ask(window, "which database do we use for the project?")
    assert window.texts("#list .text")[0] == "The project uses PostgreSQL 16"
    shown = [float(text) for text in window.texts("#list .score b")]
    assert shown == sorted(shown, reverse=True)
    parts = re.findall(r"(words|meaning) (\d\.\d\d)", window.texts(".score .parts")[0])
    assert [name for name, _ in parts] == ["words", "meaning"]
    assert shown[0] == pytest.approx(min(sum(float(value) for _, value in parts), 1.0), abs=0.02)
    window.click("#list li:first-child .details")
    assert "Recalled0 times" in window.texts("#facts")[0]
    window.click("#close")
    assert [memory.access_count for memory in told.memories("page-agent")] == [0, 0, 0, 0]
    window.press("escape")
    listed(window, 4)
    assert window.texts("#list .score") == []


@chromium
def test_forgetting_can_be_undone_and_is_done_when_the_page_goes(
    window: Browser, unlocked: ServedKronmem, told: Client
) -> None:
    opened(window, unlocked)
    listed(window, 4)
    window.press("down", "down", "delete")
    listed(window, 3)
    assert window.texts("#summary") == ["3 memories in 2 sessions"]
    window.click("#undo")
    listed(window, 4)
    assert len(list(told.memories("page-agent"))) == 4
    window.press("down", "delete")
    listed(window, 3)
    window.open("about:blank")
    left = [memory.content for memory in told.memories("page-agent")]
    for _ in range(200):  # the browser sends it behind the page's back
        if len(left) == 3:
            break
        left = [memory.content for memory in told.memories("page-agent")]
    assert EVIL not in left


@chromium
def test_a_memory_is_added_edited_pinned_and_each_is_undone(
    window: Browser, unlocked: ServedKronmem, told: Client
) -> None:
    opened(window, unlocked)
    listed(window, 4)
    window.click("#add")
    window.write("#edit-content", "Deploys happen on Tuesdays")
    window.write("#edit-tags", "release, weekly")
    window.click("#save")
    listed(window, 5)
    assert window.texts("#list li:first-child .tag") == ["release", "weekly"]
    assert "5 memories" in window.texts("#summary")[0]

    window.click("#list li:first-child .details")
    window.click("#edit")
    window.run("(document.querySelector('#edit-content').value = 'Deploys happen on Mondays', 1)")
    window.click("#save")
    window.wait("document.querySelector('#list .text').textContent === 'Deploys happen on Mondays'")
    window.click("#list li:first-child .details")
    window.wait("document.querySelectorAll('#history li').length === 2")
    assert window.texts("#history .text") == ["Deploys happen on Mondays", "Deploys happen on Tuesdays"]
    window.click("#close")
    window.click("#undo")
    window.wait("document.querySelector('#list .text').textContent === 'Deploys happen on Tuesdays'")

    window.click("#list li:first-child .details")
    window.click("#pin")
    window.wait("document.querySelector('#list li .facts').textContent.includes('pinned')")
    assert [memory.content for memory in told.memories("page-agent") if memory.pinned] == ["Deploys happen on Tuesdays"]
    window.click("#undo")
    window.wait("!document.querySelector('#list li .facts').textContent.includes('pinned')")
    newest = next(iter(told.memories("page-agent")))
    assert (newest.content, newest.pinned, newest.tags) == ("Deploys happen on Tuesdays", False, ("release", "weekly"))
    assert len(told.history("page-agent", newest.id)) == 3


@chromium
def test_the_drawer_has_the_id_the_metadata_and_a_form_that_says_what_is_wrong(
    window: Browser, unlocked: ServedKronmem, told: Client
) -> None:
    stored = told.remember("page-agent", "Ada asked for the export", metadata={"ticket": 7}, session_id="chat-1")
    opened(window, unlocked)
    listed(window, 5)
    window.press("down", "enter")
    window.wait("document.querySelectorAll('#history li').length === 1")
    assert window.texts("#facts code") == [stored.id]
    assert '"ticket": 7' in window.texts("#metadata")[0]
    window.click("#facts dd:nth-of-type(1) button")
    window.wait("['Copied', 'Selected'].includes(document.querySelector('#facts .small').textContent)")
    window.click("#edit")
    window.run("(document.querySelector('#edit-metadata').value = '[1]', 1)")
    window.click("#save")
    assert "not a JSON object" in window.wait("document.querySelector('#edit-wrong').textContent")
    window.run("(document.querySelector('#edit-metadata').value = '{}', 1)")
    window.run("(document.querySelector('#edit-content').value = 'The project uses PostgreSQL 16', 1)")
    window.click("#save")
    assert "(409)" in window.wait("document.querySelector('#edit-wrong').textContent")  # it is a memory already
    window.run("(document.querySelector('#edit-content').value = 'Ada asked for the import', 1)")
    window.click("#save")
    window.wait("document.querySelector('#list .text').textContent === 'Ada asked for the import'")
    assert told.get("page-agent", stored.id).metadata == {}
    window.click("#list li:first-child .details")
    window.click("#facts dd:nth-of-type(3) button")
    listed(window, 2)


@chromium
def test_a_server_with_keys_asks_for_one_keeps_it_in_the_tab_and_forgets_it_on_signing_out(
    window: Browser, served: ServedKronmem, http: httpx.Client
) -> None:
    with Client(served.url, api_key=ADA, outbox=False) as client:
        client.remember("page-locked", "Only Ada sees this")
    opened(window, served, "page-locked")
    window.wait("document.querySelector('#door').open")
    window.write("#key", f"kv-wrong{ENTER}")
    window.wait("document.querySelector('#door-text').className === 'wrong' && document.querySelector('#door').open")
    assert "--key or KRONMEM_SERVE_KEYS" in window.texts("#door-text")[0]
    window.write("#key", f"{ADA}{ENTER}")
    listed(window, 1)
    assert window.texts("#list .text") == ["Only Ada sees this"]
    assert window.run("[sessionStorage.length, localStorage.length, document.cookie]") == [1, 0, ""]
    window.click("#leave")
    window.wait("document.querySelector('#door').open")
    assert window.run("sessionStorage.length") == 0
    assert "Only Ada" not in window.run("document.body.textContent")


@chromium
@pytest.mark.slow
def test_a_dead_server_is_named_with_the_remedy_and_asked_again(window: Browser, tmp_path: Path) -> None:
    with ServedKronmem(tmp_path / "memory.db") as service:
        with Client(service.url, outbox=False) as client:
            client.remember("page-agent", "It was here before")
        opened(window, service)
        listed(window, 1)
        service.kill()
        window.click("#refresh")
        window.wait("!document.querySelector('#trouble').hidden")
        said = window.texts("#trouble p")[0]
        assert said.startswith(f"Cannot connect to {service.url}. Is the server running?")
        assert f"kronmem serve --port {service.port}" in said
        service.start()
        window.click("#retry")
        window.wait("document.querySelector('#trouble').hidden")
        listed(window, 1)
        window.log()  # the browser notes the refused connection


def address(window: Browser) -> str:
    return str(window.run("decodeURIComponent(location.hash).replaceAll('+', ' ')"))


@chromium
def test_back_and_forward_walk_through_agents_questions_filters_and_open_memories(
    window: Browser, unlocked: ServedKronmem, told: Client
) -> None:
    opened(window, unlocked)
    listed(window, 4)
    ask(window, "which database do we use?")
    window.wait("location.hash.includes('q=')")
    window.choose("#type", "fact")
    window.wait("location.hash.includes('type=fact')")
    window.click("#list li:first-child .details")
    found = next(hit.memory.id for hit in told.recall("page-agent", "which database do we use?"))
    there = f"#agent=page-agent&q=which database do we use?&type=fact&memory={found}"
    assert address(window) == there
    window.run("(history.back(), 1)")
    window.wait("!document.querySelector('#drawer').open")
    window.run("(history.go(-2), 1)")
    listed(window, 4)
    assert window.run("[document.querySelector('#question').value, document.querySelector('#type').value]") == ["", ""]
    window.run("(history.go(3), 1)")
    window.wait("document.querySelector('#drawer').open")
    link = window.run("location.href")
    window.open("about:blank")
    window.open(link)  # as a colleague opens it
    window.wait("document.querySelector('#drawer').open")
    assert window.texts("#full") == ["The project uses PostgreSQL 16"]
    assert window.run("document.querySelector('#question').value") == "which database do we use?"
    assert window.texts("#score-text")[0].startswith("Similarity 0.")


@chromium
def test_leaving_a_changed_edit_asks_first(window: Browser, unlocked: ServedKronmem, told: Client) -> None:
    opened(window, unlocked)
    listed(window, 4)
    window.click("#list li:first-child .details")
    window.click("#edit")
    window.press("escape")  # nothing was changed
    window.wait("!document.querySelector('#drawer').open")
    window.click("#list li:first-child .details")
    window.click("#edit")
    window.write("#edit-content", " and more")
    reload = "(leave => (dispatchEvent(leave), leave.defaultPrevented))(new Event('beforeunload', {cancelable: true}))"
    assert window.run(reload)
    beside = "document.querySelector('#drawer').dispatchEvent(new MouseEvent('click', {clientX: -1}))"
    for leave in (lambda: window.press("escape"), lambda: window.click("#close"), lambda: window.click("#cancel")):
        leave()
        assert "not saved" in window.answer(accept=False)
    for script in (f"(setTimeout(() => {beside}), 1)", "(history.back(), 1)"):
        window.run(script)
        for _ in range(400):
            try:
                assert "not saved" in window.answer(accept=False)
                break
            except RuntimeError:  # not asked yet
                continue
    assert window.run("document.querySelector('#edit-content').value").endswith(" and more")
    assert "memory=" in address(window)
    window.press("escape")
    window.answer(accept=True)
    window.wait("!document.querySelector('#drawer').open")
    assert not window.run(reload)
    assert len(list(told.memories("page-agent"))) == 4


@chromium
def test_an_unknown_agent_is_named_and_the_nearest_names_are_offered(
    window: Browser, unlocked: ServedKronmem, told: Client
) -> None:
    opened(window, unlocked, "page-agnet")
    window.wait("document.querySelector('#title').textContent === 'No agent is named “page-agnet”'")
    assert window.texts("#list li") == []
    assert window.texts("#empty button")[0] == "page-agent"
    window.click("#empty button")
    listed(window, 4)
    assert address(window) == "#agent=page-agent"


@chromium
def test_an_empty_page_adds_its_first_memory_and_quotes_its_command(window: Browser, tmp_path: Path) -> None:
    with ServedKronmem(tmp_path / "memory.db") as service:
        opened(window, service, "ada's; notes")
        window.wait("document.querySelector('#empty code')")
        command = window.texts("#empty code")[0]
        assert shlex.split(command)[-1] == "ada's; notes"
        opened(window, service, "")
        window.wait("document.querySelector('#title').textContent === 'No memories yet'")
        window.click("#add")
        window.write("#edit-agent", "ada's; notes")
        window.write("#edit-content", "Deploys happen on Tuesdays")
        window.click("#save")
        listed(window, 1)
        assert window.texts("#title") == ["ada's; notes"]
        assert address(window) == "#agent=ada's; notes"
        with Client(service.url, outbox=False) as client:
            assert [memory.content for memory in client.memories("ada's; notes")] == ["Deploys happen on Tuesdays"]


@chromium
def test_refresh_keeps_the_place_and_the_selection(window: Browser, unlocked: ServedKronmem) -> None:
    with Client(unlocked.url, outbox=False) as client:
        client.remember_many("page-long", [f"Note number {number}" for number in range(150)])
        opened(window, unlocked, "page-long")
        listed(window, 100)
        window.click("#more")
        listed(window, 150)
        window.run("(document.querySelectorAll('#list li')[120].focus(), 1)")
        at = window.run("document.querySelector('main').scrollTop")
        assert at > 0
        client.remember("page-long", "One more note")
        window.run("(document.querySelector('#refresh').onclick(), 1)")
        listed(window, 151)
        assert window.run("document.activeElement.querySelector('.text').textContent") == "Note number 29"
        assert window.run("document.querySelector('main').scrollTop") == at
        client.clear("page-long")
