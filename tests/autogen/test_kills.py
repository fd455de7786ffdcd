"""Killed processes: what was said is kept, and a chat goes on where it stopped."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from kronmem import Client, KronmemError, State
from kronmem.autogen import persisted_chat, persisted_group_chat
from tests.autogen.agents import assistant, contents, manager, put_back, user, well_formed
from tests.autogen.conftest import Chat
from tests.services.botwire import BotWireServer
from tests.services.openai import OpenAIServer

ROOT = Path(__file__).parent.parent.parent
SAMPLE = ROOT / "tests" / "samples" / "chats-0.2.json"


@pytest.fixture
def state(client: Client) -> State:
    """A state with the chats that 0.2 saved."""
    state = client.state("ann")
    for key, value in json.loads(SAMPLE.read_text("utf-8")).items():
        state.set(key, value)
    return state


@pytest.mark.parametrize("kind", ["pair", "group"])
def test_every_message_is_saved_before_the_model_is_asked_for_the_next(kind: str, chat: Chat) -> None:
    saved = list[int]()
    with Client.local(":memory:") as client:
        state = client.state("ann")

        def model(_: Any) -> str:
            helper, ann = assistant(server), user("ann")
            if kind == "pair":
                assert put_back(persisted_chat(state, "harbour", ann, helper))
                saved.append(len(ann.chat_messages[helper]))
            else:
                lead = manager(server, [ann, helper])
                assert put_back(persisted_group_chat(state, "harbour", lead))
                saved.append(len(lead.groupchat.messages))
            return "Fine."

        with OpenAIServer(model) as server:
            helper, ann = assistant(server), user("ann", default_auto_reply="And what else?")
            lead = manager(server, [ann, helper], max_round=6)
            if kind == "pair":
                with persisted_chat(state, "harbour", ann, helper):
                    chat(ann, helper, "What is new?", max_turns=3)
            else:
                with persisted_group_chat(state, "harbour", lead):
                    chat(ann, lead, "What is new?")
            assert saved == [1, 3, 5]
            assert model(None) == "Fine."
            assert saved[-1] == 6


def test_chats_that_0_2_saved_are_resumed_and_gone_on_with(state: State, chat: Chat) -> None:
    with OpenAIServer(lambda _: "It is open now. TERMINATE") as server:
        for expected in (4, 6):
            helper, ann = assistant(server), user("ann")
            with persisted_chat(state, "pair", helper, ann) as resumed:
                assert resumed.ended
                assert len(ann.chat_messages[helper]) == len(helper.chat_messages[ann]) == expected
                assert contents(helper.chat_messages[ann])[0] == "Please note that the quay is closed."
                chat(ann, helper, "And now?", clear_history=False)
        assert well_formed(server.prompts[-1])
        for key, days in (("group", 2), ("broken off", 1)):
            ann, one, other = user("ann"), assistant(server, "editor"), assistant(server, "writer")
            lead = manager(server, [ann, one, other])
            with persisted_group_chat(state, key, lead) as resumed:
                assert resumed.ended is (key == "group")
                if resumed.ended:
                    chat(ann, lead, "Now translate it", clear_history=False)
                else:
                    chat(resumed.speaker, lead, resumed.message, clear_history=False)
            for view in (lead.groupchat.messages, ann.chat_messages[lead], one.chat_messages[lead]):
                assert contents(view)[:2] == ["Write about whales.", "Over to you, writer."]
                assert len(view) >= 2 * days
            assert put_back(persisted_group_chat(state, key, lead)).ended
            assert contents(lead.groupchat.messages)[2:] == (
                ["Draft 4 done. TERMINATE", "Now translate it", "It is open now. TERMINATE"]
                if key == "group"
                else ["It is open now. TERMINATE"]
            )


@pytest.mark.slow
@pytest.mark.timeout(900)  # up to ninety processes, one after another
@pytest.mark.parametrize(("kind", "how"), [("pair", "sync"), ("group", "async")])
def test_three_days_lose_and_double_nothing_at_whichever_step_each_is_killed(kind: str, how: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.autogen.three_days", kind, how], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert int(done.stdout.split()[-2]) > 10, "each question to the model and each write is a step"


class Counting:
    """A way to a service that counts requests and the bytes of their bodies."""

    def __init__(self, inner: Client) -> None:
        self._inner = inner
        self.sent: list[tuple[str, int]] = []

    def send(self, request: Any) -> Any:
        self.sent.append((request.method, len(request.body or b"")))
        return self._inner._transport.send(request)  # type: ignore[attr-defined] # the real engine answers

    def close(self) -> None: ...


@pytest.mark.parametrize("kind", ["pair", "group"])
def test_saving_a_message_costs_the_same_in_a_long_chat_as_in_a_short_one(kind: str) -> None:
    costs = []
    for length in (10, 1000):
        with Client.local(":memory:") as inner, OpenAIServer(lambda _: "Fine.") as server:
            way = Counting(inner)
            state = Client("sqlite://", transport=way).state("ann")
            ann, helper = user("ann"), assistant(server)
            lead = manager(server, [ann, helper], max_round=2)
            told: list[dict[str, Any]] = [
                {"content": f"message {number:04}", "role": "user", "name": "ann"} for number in range(length)
            ]
            if kind == "pair":
                ann.chat_messages[helper], helper.chat_messages[ann] = told, list(told)
                where: Any = persisted_chat(state, "long", ann, helper)
            else:
                lead.groupchat.messages = told
                where = persisted_group_chat(state, "long", lead)
            with where:
                ann.send(
                    "the first of them", helper, request_reply=False, silent=True
                )  # the chat so far is saved with it
                way.sent.clear()
                if kind == "pair":
                    ann.send("one more", helper, request_reply=False, silent=True)
                else:
                    lead.groupchat.messages.append({"content": "one more", "role": "user", "name": "ann"})
                    lead.send("one more", ann, request_reply=False, silent=True)
                costs.append(list(way.sent))
    assert costs[0]
    assert [method for method, _ in costs[0]] == [method for method, _ in costs[1]] == ["PUT"]
    assert abs(costs[0][0][1] - costs[1][0][1]) <= 4, "but for the digits of the counter"


def test_a_resumed_chat_is_read_by_counting_and_never_by_listing() -> None:
    with BotWireServer() as service, OpenAIServer(lambda _: "x" * 60_000) as server:
        with Client(service.url, outbox=False, timeout=60) as client:
            for turns in (2, 3):
                helper, ann = assistant(server), user(default_auto_reply="y" * 50_000)
                with persisted_chat(client.state("ann"), "long", helper, ann) as resumed:
                    assert bool(resumed) is (turns == 3)
                    assert len(ann.chat_messages[helper]) == (4 if resumed else 0)
                    ann.initiate_chat(helper, message="go on", max_turns=turns, clear_history=False, silent=True)
            helper, ann = assistant(server), user()
            assert put_back(persisted_chat(client.state("ann"), "long", helper, ann))
            assert len(ann.chat_messages[helper]) == 10
            asked = [one.path for one in service.requests if one.method == "GET"]
            assert asked
            assert not any(path.rstrip("/").endswith(("ann", "keys")) for path in asked)


class Refusing(State):
    """Nothing to read, and no way to write."""

    def __init__(self) -> None: ...

    def get(self, key: str, default: Any = None) -> Any:
        return default

    def set(self, key: str, value: Any) -> None:
        raise KronmemError("disk full")


def test_a_save_that_fails_is_logged_once_and_the_chat_goes_on(chat: Chat, caplog: pytest.LogCaptureFixture) -> None:
    with OpenAIServer(lambda _: "Fine.") as server, caplog.at_level(logging.WARNING, "kronmem"):
        helper, ann = assistant(server), user(default_auto_reply="And now?")
        with persisted_chat(Refusing(), "chat", helper, ann):
            chat(ann, helper, "How are you?", max_turns=3)
        assert len(ann.chat_messages[helper]) == 6
        assert not set(vars(helper)) & {"generate_reply", "send", "receive", "a_generate_reply", "a_send", "a_receive"}
    said = [record.getMessage() for record in caplog.records if record.name == "kronmem"]
    assert said == ["the saving of the chat 'chat' is unavailable, going on without it (KronmemError: disk full)"]


def test_a_chat_begun_again_leaves_nothing_of_the_old_one_behind(chat: Chat) -> None:
    with OpenAIServer(lambda _: "Fine. TERMINATE") as server, Client.local(":memory:") as client:
        state = client.state("ann")
        helper, ann = assistant(server), user()
        with persisted_chat(state, "chat", helper, ann):
            chat(ann, helper, "the first chat")
            for agent in (helper, ann):
                agent.clear_history()
            chat(ann, helper, "the second chat", clear_history=False)
        stored = json.dumps([state.get(key) for key in sorted(state.keys())])
        assert "the second chat" in stored
        assert "the first chat" not in stored


class Stuck(State):
    """A real state, some calls of which wait until they are let go."""

    def __init__(self, inner: State, *stuck: str) -> None:
        self._inner, self._stuck, self.let_go = inner, stuck, threading.Event()

    def get(self, key: str, default: Any = None) -> Any:
        return self._inner.get(key, default)

    def set(self, key: str, value: Any) -> None:
        if "set" in self._stuck:
            self.let_go.wait(60)
        self._inner.set(key, value)

    def delete(self, key: str) -> None:
        if "delete" in self._stuck:
            self.let_go.wait(60)
        self._inner.delete(key)


def test_a_chat_in_the_place_of_an_old_one_is_saved_while_that_one_is_removed(chat: Chat) -> None:
    with Client.local(":memory:") as client:
        state = client.state("ann")
        stuck, saved = Stuck(state, "delete"), list[int]()

        def first_of(agents: Any) -> str:
            return contents(agents[1].chat_messages[agents[0]])[0]

        def model(_: Any) -> str:
            again = assistant(server), user()
            if put_back(persisted_chat(state, "chat", *again)) and first_of(again) == "the new chat":
                saved.append(len(again[1].chat_messages[again[0]]))
            return "Fine."

        with OpenAIServer(model) as server:
            helper, ann = assistant(server), user()
            with persisted_chat(state, "chat", helper, ann):
                chat(ann, helper, "the old chat", max_turns=1)
            helper, ann = assistant(server), user(default_auto_reply="And what else?")
            with persisted_chat(stuck, "chat", helper, ann):
                for agent in (helper, ann):
                    agent.clear_history()
                chat(ann, helper, "the new chat", max_turns=3, clear_history=False)
                assert saved == [1, 3, 5]
                stuck.let_go.set()
        stored = json.dumps([state.get(key) for key in sorted(state.keys())])
        assert "the new chat" in stored
        assert "the old chat" not in stored


@pytest.mark.slow
def test_the_end_of_a_chat_waits_for_a_save_that_hangs(chat: Chat) -> None:
    with OpenAIServer(lambda _: "Fine.") as server, Client.local(":memory:") as client:
        stuck = Stuck(client.state("ann"), "set")
        helper, ann = assistant(server), user(default_auto_reply="And what else?")
        with persisted_chat(stuck, "chat", helper, ann):
            chat(ann, helper, "What is new?", max_turns=2)
            threading.Timer(0.5, stuck.let_go.set).start()
        again = assistant(server), user()
        assert put_back(persisted_chat(client.state("ann"), "chat", *again))
        assert len(again[1].chat_messages[again[0]]) == 4


CAPTURED = """
import os, signal
from kronmem import Client
from kronmem.autogen import attach_memory
from tests.autogen.agents import user
client = Client({url!r}, api_key="kv-x") if {url!r} else Client()
ann, bob = user("ann"), user("bob")
attach_memory(client.agent("ann"), ann)
for number in range(3):
    ann.send(f"Sentence number {{number}} on the lighthouse.", bob, request_reply=False, silent=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.parametrize("url", ["", "http://127.0.0.1:9"], ids=["database", "outbox"])
def test_what_was_said_is_on_disk_when_the_message_is_sent(url: str) -> None:
    done = subprocess.run([sys.executable, "-c", CAPTURED.format(url=url)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Client(url, api_key="kv-x") if url else Client() as client:
        assert (client.outbox.pending() if url else len(list(client.memories("ann")))) == 3


SLOW_IMPORT = """
import sys, time
from importlib.abc import MetaPathFinder

class Slow(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "kronmem.engine.engine":
            time.sleep(3)

from kronmem import Client
from kronmem.autogen import attach_memory, MemoryAgent
from tests.autogen.agents import assistant, contents, user
from tests.services.openai import OpenAIServer
assert "kronmem.engine.engine" not in sys.modules
sys.meta_path.insert(0, Slow())
with OpenAIServer(lambda _: "TERMINATE") as server:
    client = Client()
    if sys.argv[1] == "attached":
        helper = assistant(server)
        attach_memory(client.agent("ann"), helper)
    else:
        helper = MemoryAgent("helper", memory=client.agent("ann"), llm_config=server.llm_config())
        assert "kronmem.engine.engine" not in sys.modules
    user().initiate_chat(helper, message="Which tea do I drink?", silent=True)
    assert "green tea" in str(contents(server.prompts[0])), server.prompts
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["attached", "MemoryAgent"])
def test_the_first_recall_of_a_process_does_not_spend_its_deadline_on_imports(kind: str) -> None:
    with Client() as client:
        client.remember("ann", "Ann drinks green tea.")
    subprocess.run([sys.executable, "-c", SLOW_IMPORT, kind], cwd=ROOT, check=True)


def test_unclosed_agents_share_one_client() -> None:
    from kronmem.autogen import MemoryAgent

    open_files = Path("/proc/self/fd")
    if not open_files.exists():
        pytest.skip("needs /proc")
    ann = user("ann")

    def used(number: int) -> Any:
        helper = MemoryAgent(
            f"helper-{number}", "You help.", agent_id="ann", llm_config=False, human_input_mode="NEVER"
        )
        ann.send(f"Sentence number {number} on the lighthouse.", helper, request_reply=False, silent=True)
        return helper

    helpers = [used(0)]
    before = len(os.listdir(open_files))
    helpers += [used(number) for number in range(1, 30)]
    assert len(os.listdir(open_files)) < before + 30
    assert len({helper.memory.client for helper in helpers}) == 1
    for helper in helpers[1:]:
        helper.close()
        helper.close()
    ann.send("One more sentence on the lighthouse.", helpers[0], request_reply=False, silent=True)
    assert len(list(helpers[0].memory.memories())) == 31
    helpers[0].close()
    with pytest.raises(KronmemError):
        helpers[0].memory.recall("lighthouse")
    assert used(99).memory.client is not helpers[0].memory.client
