"""A chat over three days, each a process that is killed at one step and started again: `python -m …three_days pair sync`.

The steps of a day are its questions to the model and its writes of the saved chat, before each and after.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from kronmem import Client, State
from kronmem.autogen import persisted_chat, persisted_group_chat, register_memory, register_team_memory
from tests.autogen.agents import assistant, manager, user
from tests.services.openai import Answer, OpenAIServer, call

QUESTIONS = ["Write a draft.", "Now translate it.", "And now send it."]


class Steps:
    """Ends the process without a word at the step of that number."""

    def __init__(self, last: int | None = None) -> None:
        self.count, self._last = 0, last

    def take(self) -> None:
        self.count += 1
        if self.count == self._last:
            os.kill(os.getpid(), signal.SIGKILL)


class Stepping(State):
    """A real state whose writes are steps."""

    def __init__(self, inner: State, steps: Steps) -> None:
        self._inner, self._steps = inner, steps

    def get(self, key: str, default: Any = None) -> Any:
        return self._inner.get(key, default)

    def set(self, key: str, value: Any) -> None:
        self._steps.take()
        self._inner.set(key, value)
        self._steps.take()

    def delete(self, key: str) -> None:
        self._inner.delete(key)


class NoModel:
    """In the place of a server, for agents that only show what was saved."""

    def llm_config(self) -> Any:
        return False


class Team:
    """A pair or a group with a tool, and the messages as each of its lists has them."""

    def __init__(self, kind: str, client: Client, server: Any, state: State) -> None:
        self.ann, writer = user("ann"), assistant(server, "writer")
        if kind == "pair":
            if server.llm_config():
                register_memory(client.agent("ann"), caller=writer, executor=self.ann)
            self.peer: Any = writer
            self.where: Any = persisted_chat(state, "article", self.ann, writer)
            self._lists = [(self.ann, writer), (writer, self.ann)]
        else:
            editor = assistant(server, "editor")
            self.peer = manager(server, [self.ann, writer, editor], max_round=20)
            if server.llm_config():
                register_team_memory(client.agent("ann"), self.peer, executor=self.ann)
            self.where = persisted_group_chat(state, "article", self.peer)
            self._lists = [(one, self.peer) for one in (self.ann, writer, editor)]

    def views(self) -> list[list[str]]:
        """The texts of every list: the group's own, and that of each agent."""
        lists = [agent.chat_messages[peer] for agent, peer in self._lists]
        group = getattr(self.peer, "groupchat", None)
        return [[_text(one) for one in each] for each in [*([group.messages] if group else []), *lists]]


def _text(message: dict[str, Any]) -> str:
    return "call" if message.get("tool_calls") else "result" if message["role"] == "tool" else str(message["content"])


def answers(day: int, kind: str) -> list[str]:
    """What is said on a day."""
    written = [QUESTIONS[day], "call", "result", f"Draft {day + 1} done. TERMINATE"]
    return written if kind == "pair" else [*written[:3], f"Noted {day + 1}.", written[3]]


def model(kind: str, steps: Steps) -> Any:
    def answer(request: dict[str, Any]) -> Answer:
        steps.take()
        messages = request["messages"]
        day = sum(str(one.get("content")) in QUESTIONS for one in messages)
        if kind == "group" and messages[0]["content"] == "You are editor.":
            return f"Draft {day} done. TERMINATE"
        if messages[-1]["role"] != "tool":
            return call("remember", content=f"The editor waits for draft {day}.")
        return f"Draft {day} done. TERMINATE" if kind == "pair" else f"Noted {day}."

    return answer


def spend(day: int, kind: str, how: str, steps: Steps) -> None:
    """Go on with the chat: where it broke off, with the question of the day, or not at all."""

    def chat(sender: Any, recipient: Any, message: Any) -> None:
        options = {"message": message, "clear_history": False, "silent": True}
        if how == "sync":
            sender.initiate_chat(recipient, **options)
        else:
            asyncio.run(sender.a_initiate_chat(recipient, **options))

    with Client() as client, OpenAIServer(model(kind, steps)) as server:
        team = Team(kind, client, server, Stepping(client.state("ann"), steps))
        with team.where as resumed:
            if resumed and not resumed.ended:
                speaker, message = resumed
                chat(speaker, team.ann if speaker is team.peer else team.peer, message)
            elif QUESTIONS[day] not in team.views()[0]:
                chat(team.ann, team.peer, QUESTIONS[day])
        # AutoGen does not show the message that ends an async group chat to its members.
        first, *others = team.views()
        check([first, *((view if view == first else [*view, first[-1]]) for view in others)], day, kind)
    with Client() as client:
        again = Team(kind, client, NoModel(), client.state("ann"))
        with again.where as resumed:
            assert resumed.ended
            check(again.views(), day, kind)


def check(views: list[list[str]], day: int, kind: str) -> None:
    expected = [text for one in range(day + 1) for text in answers(one, kind)]
    assert all(view == expected for view in views), (views, expected)


def in_a_process(day: int, kind: str, how: str, last: int | None = None) -> int:
    """Spend a day in a process of its own; its exit code, or minus the signal that ended it."""
    child = os.fork()
    if not child:
        code = 1
        try:
            spend(day, kind, how, Steps(last))
            code = 0
        except BaseException:  # noqa: BLE001 -- a child may not run on in its parent's code
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(kind: str, how: str) -> None:
    """Kill the first, the second, … step of all three days, until none has so many."""
    for name in ("openai.resources.chat", "kronmem.engine.service", "kronmem.engine.sqlite.store"):
        importlib.import_module(name)  # once, and not in each child
    last, killed = 0, 3
    while killed:
        last, killed = last + 1, 0
        with tempfile.TemporaryDirectory() as home:
            os.environ["KRONMEM_HOME"] = str(Path(home) / "kronmem")
            for day in range(3):
                code = in_a_process(day, kind, how, last)
                assert code in (0, -signal.SIGKILL), (day, last, code)
                killed += code != 0
                assert not code or in_a_process(day, kind, how) == 0, (day, last)
    print(f"{last - 1} steps")


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
