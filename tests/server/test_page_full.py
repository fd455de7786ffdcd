"""The memory page with forty agents and five thousand memories, on a desk and on a phone, read by axe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kronmem import Client
from tests.server.browser import CHROMIUM, DRIVER, MISSING, Browser, browser
from tests.server.conftest import ADA
from tests.server.test_page import ask, listed
from tests.services.kronmem import ServedKronmem

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason=MISSING),
]
TYPES = {"fact": 2500, "interaction": 1700, "decision": 799, "preference": 1}
SIZES = [(2560, 1440), (360, 740)]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedKronmem]:
    """Forty agents; the last one has five thousand memories."""
    with ServedKronmem(tmp_path_factory.mktemp("full") / "memory.db") as service:
        with Client(service.url, outbox=False, timeout=60) as client:
            for number in range(40):
                client.remember(f"agent-{number:02}", f"Agent {number} keeps the minutes", "fact")
            for kind, count in TYPES.items():
                texts = [f"Order {number} of the {kind} kind was paid in Oslo" for number in range(count)]
                client.remember_many("agent-39", texts, kind, tags=["order"] if kind == "fact" else ())
            for kind in ("preference", "temporary", "of its own"):
                client.remember(
                    "agent-38", f"Another order, {kind}", kind, ttl_days=1, tags=["paid"], session_id="chat"
                )
            client.forget("agent-39", next(m.id for m in client.memories("agent-39") if "minutes" in m.content))
        yield service


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


def opened(window: Browser, service: ServedKronmem, size: tuple[int, int] = SIZES[0], agent: str = "agent-39") -> None:
    window.resize(*size)
    window.open("about:blank")
    window.open(f"{service.url}/#agent={agent}")
    window.wait("document.querySelectorAll('#list li').length > 0")


def visible(window: Browser, selector: str) -> bool:
    return bool(
        window.run(
            "(box => box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth)"
            "(document.querySelector(arguments[0]).getBoundingClientRect())",
            selector,
        )
    )


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_with_forty_agents_the_first_hit_is_in_view(
    window: Browser, full: ServedKronmem, size: tuple[int, int]
) -> None:
    opened(window, full, size)
    ask(window, "which order was paid?")
    assert visible(window, "#list li:first-child .score")
    assert window.run("document.documentElement.scrollWidth <= innerWidth")


def test_totals_are_exact_over_five_thousand_memories(window: Browser, full: ServedKronmem) -> None:
    opened(window, full)
    assert window.texts("#summary") == ["5,000 memories"]
    assert window.texts("#types button") == ["fact2,500", "interaction1,700", "decision799", "preference1"]
    assert "order (2,500)" in window.texts("#tag option")
    assert window.texts("#chart-title") == ["5,000 memories stored"]
    assert len(window.texts("#list li")) == 100
    window.click("#more")
    listed(window, 200)
    window.choose("#type", "decision")
    window.wait("document.querySelector('#summary').textContent === '799 memories with these filters, of 5,000'")


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_an_agent_is_found_by_a_part_of_its_name(window: Browser, full: ServedKronmem, size: tuple[int, int]) -> None:
    opened(window, full, size)
    if size[0] < 500:
        assert not window.run("document.querySelector('#side').checkVisibility()")
        window.click("#choose")
    assert window.run("document.querySelector('#agents').scrollHeight > document.querySelector('#agents').clientHeight")
    window.write("#find-agent", "-17")
    assert window.texts("#agents button") == ["agent-171"]
    window.press("enter")
    window.wait("document.querySelector('#title').textContent === 'agent-17'")
    listed(window, 1)
    assert visible(window, "#list li:first-child")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_axe_finds_nothing_serious(window: Browser, full: ServedKronmem, size: tuple[int, int], scheme: str) -> None:
    pytest.importorskip("axe_core_python", reason="axe is not installed: pip install 'kronmem[dev]'")
    window.color_scheme(scheme)
    opened(window, full, size, "agent-38")
    found = {"list": window.accessibility()}
    window.click("#list li:first-child .details")
    window.wait("document.querySelectorAll('#history li').length === 1")
    found["drawer"] = window.accessibility()
    window.click("#edit")
    found["editor"] = window.accessibility()
    window.click("#close")
    ask(window, "another order")
    window.click("#list li:first-child .forget")
    found["hits and toast"] = window.accessibility()
    window.click("#undo")
    if size[0] < 500:
        window.click("#choose")
        found["agents"] = window.accessibility()
    assert found == {part: [] for part in found}


def test_axe_finds_nothing_serious_at_the_door(window: Browser, tmp_path: Path) -> None:
    pytest.importorskip("axe_core_python", reason="axe is not installed: pip install 'kronmem[dev]'")
    with ServedKronmem(tmp_path / "memory.db", key=ADA) as service:
        window.open(service.url)
        window.wait("document.querySelector('#door').open")
        assert window.accessibility() == []


def test_more_agents_than_anybody_scrolls_through_are_searched(window: Browser, tmp_path: Path) -> None:
    with ServedKronmem(tmp_path / "memory.db") as service:
        with Client.local(tmp_path / "memory.db") as client:
            for number in range(500):
                client.remember(f"user-{number:04}", "Hello")
        window.resize(1280, 900)
        window.open("about:blank")
        window.open(f"{service.url}/#agent=user-0499")
        window.wait("document.querySelector('#agent-total').textContent === '500'")
        assert window.texts("#agents-rest") == ["299 more: filter by name"]
        assert window.texts("#agents [aria-current=true]") == ["user-04991"]
        window.write("#find-agent", "user-0271")
        assert window.texts("#agents button") == ["user-02711"]
