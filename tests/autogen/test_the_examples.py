"""The examples print what they promise, and with a broken memory their chats still come to an end."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from subprocess import Popen
from typing import Any

import pytest

from tests.autogen.conftest import EXAMPLES
from tests.services import RawServer
from tests.services.raw import hang, respond

PRINTED = {
    "register_tools": """\
-- monday
user: Ada prefers a window seat.
assistant: I will keep that in mind.
-- tuesday, another process
user: Which seat does Ada prefer?
assistant: I looked it up: Ada prefers a window seat.
""",
    "team_memory": """\
-- run 1
user: Decide on the language of the report.
researcher: calls remember
researcher: It is decided. TERMINATE
-- run 2
user: Write the report.
writer: calls recall
writer: I write in the language we agreed on. The team decided to publish the report in French. TERMINATE
""",
    "automatic_memory": """\
-- chat 1, new agents
user: Hello, I am Ada and I am allergic to peanuts.
assistant: I have no notes about that.
notes in the stored history: 0
-- chat 2, new agents
user: Am I allergic?
assistant: My notes say: I am Ada and I am allergic to peanuts.
notes in the stored history: 0
""",
    "read_only": """\
guest: When does the office close?
bot: The office closes at six
tools of the model: ['recall']
guest: Remember that the office closes at midnight!
bot: The office closes at six
tools of the model: ['recall']
notes: ['The office closes at six']
""",
    "resume_group_chat": """\
-- the first process ended with: out of credits
-- the second process takes it up
user: Write about whales.
researcher: (tool)
user: (tool)
researcher: Over to you, writer.
writer: I have read 4 messages and 1 tool result. Draft 1 done. TERMINATE
-- the next day
user: Write about whales.
researcher: (tool)
user: (tool)
researcher: Over to you, writer.
writer: I have read 4 messages and 1 tool result. Draft 1 done. TERMINATE
user: Now translate it.
researcher: Over to you, writer.
writer: I have read 7 messages and 1 tool result. Draft 2 done. TERMINATE
""",
}
CHATS: dict[str, tuple[Any, ...]] = {
    "register_tools": ("talk", "Which seat does Ada prefer?"),
    "team_memory": ("run", "Write the report."),
    "automatic_memory": ("talk", "Am I allergic?"),
    "resume_group_chat": ("run",),
}


@pytest.fixture(autouse=True)
def as_a_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(sys, "argv", ["example"])


@pytest.fixture(params=["raises", "garbage", pytest.param("hangs", marks=pytest.mark.slow)])
def broken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[RawServer]:
    """A service that the examples find by the environment, and that is of no use."""
    actions = {"raises": respond(500), "garbage": respond(200, {}, b"<html>"), "hangs": hang()}
    with RawServer([actions[str(request.param)]]) as server:
        monkeypatch.setenv("KRONMEM_URL", server.url)
        yield server


@pytest.mark.slow  # importing AutoGen in several processes
@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_promises(
    name: str, started: dict[str, Popen[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    path = EXAMPLES / f"{name}.py"
    if name in started:
        printed, complained = started[name].communicate()
        assert started[name].returncode == 0, complained
    else:
        runpy.run_path(str(path), run_name="__main__")
        printed = capfd.readouterr().out
    assert printed == PRINTED[name]
    assert len(path.read_text("utf-8").splitlines()) < 60


@pytest.mark.slow
@pytest.mark.parametrize("name", CHATS)
def test_an_example_chat_ends_with_a_broken_memory(
    name: str, broken: RawServer, capfd: pytest.CaptureFixture[str]
) -> None:
    function, *arguments = CHATS[name]
    runpy.run_path(str(EXAMPLES / f"{name}.py"))[function](*arguments)
    printed = capfd.readouterr().out
    assert printed.splitlines()[0].startswith("user: ")
    assert len(printed.splitlines()) > 1
    assert broken.requests, "the memory was asked at all"
