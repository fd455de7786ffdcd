"""Chats that outlive their process: saved at any moment, put back into fresh agents, and gone on with."""

from __future__ import annotations

from typing import Any

import pytest
from autogen import GroupChat, GroupChatManager

from kronmem import AgentMemory, AsyncClient, Client, ConfigError, KronmemError, State
from kronmem.autogen import (
    attach_memory,
    persisted_chat,
    persisted_group_chat,
    register_memory,
    register_team_memory,
    resume_chat,
    resume_group_chat,
    save_chat,
    save_group_chat,
)
from tests.autogen.agents import assistant, contents, manager, selects, tool_results, user
from tests.autogen.conftest import Chat
from tests.services.openai import Answer, Failure, OpenAIServer, call


@pytest.fixture
def state(client: Client) -> State:
    return client.state("ann")


def well_formed(prompt: list[dict[str, Any]]) -> bool:
    """OpenAI's rule: every result right after the call that asked for it, and no call without its results."""
    waiting: list[str] = []
    for message in prompt:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return False
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return False
        waiting += [one["id"] for one in message.get("tool_calls") or []]
    return not waiting


def notes_first(request: dict[str, Any]) -> Answer:
    done = tool_results(request)
    return f"Noted ({len(done)})." if done else call("remember", content="The quay is closed.")


def pair(server: OpenAIServer, memory: AgentMemory) -> tuple[Any, Any]:
    helper, ann = assistant(server), user()
    register_memory(memory, caller=helper, executor=ann)
    return helper, ann


def test_two_agents_go_on_where_they_stopped(memory: AgentMemory, state: State, chat: Chat) -> None:
    with OpenAIServer(notes_first) as server:
        helper, ann = pair(server, memory)
        chat(ann, helper, "Please note that the quay is closed.", max_turns=2)
        save_chat(state, "harbour", helper, ann)
        before = (helper.chat_messages[ann], ann.chat_messages[helper])
        helper, ann = pair(server, memory)
        assert resume_chat(state, "harbour", ann, helper)
        assert (helper.chat_messages[ann], ann.chat_messages[helper]) == before
        chat(ann, helper, "Is it noted?", max_turns=1, clear_history=False)
        assert [message["role"] for message in server.prompts[-1]] == [
            "system",
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
        ]
        assert all(map(well_formed, server.prompts))
        assert contents(server.prompts[-1])[-1] == "Is it noted?"


def test_nothing_saved_is_no_chat(state: State) -> None:
    with OpenAIServer(lambda _: "TERMINATE") as server:
        helper, ann = assistant(server), user()
        assert resume_chat(state, "harbour", helper, ann) is False
        assert resume_group_chat(state, "harbour", manager(server, [helper, ann])) is None


def test_a_state_that_has_to_be_awaited_is_refused_at_once() -> None:
    state: Any = AsyncClient("sqlite://").state("ann")
    helper, ann = user("helper"), user("ann")
    lead = GroupChatManager(GroupChat([helper, ann], messages=[]), llm_config=False)
    for refused in (
        lambda: save_chat(state, "harbour", helper, ann),
        lambda: resume_chat(state, "harbour", helper, ann),
        lambda: persisted_chat(state, "harbour", helper, ann).__enter__(),
        lambda: save_group_chat(state, "harbour", lead),
        lambda: resume_group_chat(state, "harbour", lead),
        lambda: persisted_group_chat(state, "harbour", lead).__enter__(),
    ):
        with pytest.raises(ConfigError, match="not AsyncState"):
            refused()


def test_a_chat_is_not_put_into_other_agents_or_the_wrong_kind(state: State) -> None:
    with OpenAIServer(lambda _: "TERMINATE") as server:
        helper, ann = assistant(server), user()
        lead = manager(server, [helper, ann])
        save_chat(state, "pair", helper, ann)
        state.set("other", [1, 2])
        with pytest.raises(ConfigError, match="between 'assistant' and 'user'"):
            resume_chat(state, "pair", helper, user("bob"))
        with pytest.raises(ConfigError, match="not a group chat"):
            resume_group_chat(state, "pair", lead)
        with pytest.raises(ConfigError, match="not a chat"):
            resume_chat(state, "other", helper, ann)


def test_a_group_chat_of_other_members_is_refused_and_left_alone(state: State, chat: Chat) -> None:
    with OpenAIServer(lambda _: "Fine. TERMINATE") as server:
        ann = user("ann")
        lead = manager(server, [ann, assistant(server, "one")])
        chat(ann, lead, "What is new?")
        save_group_chat(state, "harbour", lead)
        ann = user("ann")
        other = manager(server, [ann, assistant(server, "other")])
        other.groupchat.messages.append({"content": "not cleared", "role": "user", "name": "ann"})
        for refused in (
            lambda: resume_group_chat(state, "harbour", other),
            lambda: persisted_group_chat(state, "harbour", other).__enter__(),
        ):
            with pytest.raises(ConfigError, match="the group chat under 'harbour' has other members: 'one'"):
                refused()
        assert contents(other.groupchat.messages) == ["not cleared"]


def test_a_chat_that_dies_is_saved_and_goes_on_without_the_unanswered_call(
    memory: AgentMemory, state: State, chat: Chat
) -> None:
    with OpenAIServer(notes_first) as server:
        helper, ann = pair(server, memory)

        def break_down(*_: Any, **__: Any) -> Any:
            raise RuntimeError("the machine is on fire")

        ann.register_reply([helper], break_down, position=0, remove_other_reply_funcs=True)
        with pytest.raises(RuntimeError, match="on fire"), persisted_chat(state, "harbour", helper, ann) as resumed:
            assert resumed is False
            ann.initiate_chat(helper, message="Please note that the quay is closed.", silent=True)
        assert ann.chat_messages[helper][-1].get("tool_calls")
        helper, ann = pair(server, memory)
        with persisted_chat(state, "harbour", helper, ann) as resumed:
            assert resumed is True
            chat(ann, helper, "Once more: the quay is closed.", max_turns=2, clear_history=False)
        assert all(map(well_formed, server.prompts))
        assert contents(ann.chat_messages[helper])[-1] == "Noted (1)."


def test_what_is_not_json_in_a_message_does_not_stop_the_saving(state: State) -> None:
    with OpenAIServer(lambda _: "Fine.") as server:
        helper, ann = assistant(server), user()
        ann.send({"content": "hello", "context": {"when": object}}, helper, request_reply=False, silent=True)
        save_chat(state, "harbour", helper, ann)
        fresh, other = assistant(server), user()
        assert resume_chat(state, "harbour", fresh, other)
        assert other.chat_messages[fresh][0]["content"] == "hello"


def test_a_message_with_characters_that_no_store_takes_does_not_stop_the_saving(state: State) -> None:
    with OpenAIServer(lambda _: "Fine.") as server:
        helper, ann = assistant(server), user()
        with persisted_chat(state, "harbour", helper, ann):
            for text in ("hello", "the file begins with \x00\x01", "and then?"):
                ann.send(text, helper, request_reply=False, silent=True)
        fresh, other = assistant(server), user()
        assert resume_chat(state, "harbour", fresh, other)
        assert contents(other.chat_messages[fresh]) == ["hello", "the file begins with \ufffd\x01", "and then?"]


LINES = ["The quay is closed.", "Then the ships go to Antwerp."]


def group_model(request: dict[str, Any]) -> Answer:
    """One notes what it hears and says so, other answers."""
    if selects(request):
        return "other"
    if request["messages"][0]["content"] == "You are one.":
        return "It is noted by one." if tool_results(request) else call("remember", content=LINES[0])
    return f"Understood by other, {len(tool_results(request))} results. TERMINATE"


def group(server: OpenAIServer, memory: AgentMemory, rounds: int, method: str = "round_robin") -> tuple[Any, Any, Any]:
    one, other, ann = assistant(server, "one"), assistant(server, "other"), user()
    lead = manager(server, [ann, one, other], method, max_round=rounds)
    register_team_memory(memory, lead, executor=ann)
    return lead, ann, attach_memory(memory, lead)


@pytest.mark.parametrize("stop", [1, 2, 3, 4])
def test_a_group_goes_on_where_it_stopped(memory: AgentMemory, state: State, chat: Chat, stop: int) -> None:
    """It stops after the question, after the tool call, after its result, and after an answer."""
    with OpenAIServer(group_model) as server:
        lead, ann, attachment = group(server, memory, stop)
        chat(ann, lead, LINES[0])
        attachment.detach()
        save_group_chat(state, "harbour", lead)
        spoken = [message["content"] for message in lead.groupchat.messages]
        kept = {one.id for one in memory.memories()}
        lead, ann, attachment = group(server, memory, 8)
        resumed = resume_group_chat(state, "harbour", lead)
        assert resumed is not None
        speaker, last = resumed
        attachment.flush()
        assert {one.id for one in memory.memories()} == kept
        chat(speaker, lead, last, clear_history=False)
        attachment.detach()
        assert contents(lead.groupchat.messages)[:stop] == spoken
        assert contents(lead.groupchat.messages)[-1] == "Understood by other, 1 results. TERMINATE"
        assert all(map(well_formed, server.prompts))
        said = [one.content for one in memory.memories() if "turn" in one.metadata]
        assert sorted(said) == sorted(set(said))


def test_a_group_that_dies_is_saved(memory: AgentMemory, state: State, chat: Chat) -> None:
    with OpenAIServer(lambda request: Failure(400) if tool_results(request) else group_model(request)) as server:
        lead, ann, _ = group(server, memory, 8)
        with pytest.raises(Exception, match="as scripted"), persisted_group_chat(state, "harbour", lead) as last:
            assert last is None
            chat(ann, lead, LINES[0])
        server.model = group_model
        for _ in range(2):  # a run in which nothing happens loses nothing
            lead, ann, _ = group(server, memory, 8)
            with persisted_group_chat(state, "harbour", lead) as last:
                assert last is not None
                assert last[0] is ann
                assert last[1]["role"] == "tool"
        with persisted_group_chat(state, "harbour", lead) as last:
            assert last is not None
            chat(last[0], lead, last[1], clear_history=False)
        assert contents(lead.groupchat.messages)[-1] == "Understood by other, 1 results. TERMINATE"
        assert all(map(well_formed, server.prompts))


def test_a_new_chat_in_a_resumed_group_replaces_the_old_one(memory: AgentMemory, state: State) -> None:
    with OpenAIServer(lambda _: "Very well. TERMINATE") as server:
        for message in ("What is new in the harbour?", "And what about the quay?"):
            lead, ann, _ = group(server, memory, 8)
            with persisted_group_chat(state, "harbour", lead):
                ann.initiate_chat(lead, message=message, silent=True)
        lead, _, _ = group(server, memory, 8)
        assert resume_group_chat(state, "harbour", lead) is not None
        assert contents(lead.groupchat.messages) == ["And what about the quay?"]


def test_a_store_out_of_reach_neither_stops_a_chat_nor_is_written_over(memory: AgentMemory, state: State) -> None:
    with OpenAIServer(lambda _: "Very well. TERMINATE") as server, Client("http://127.0.0.1:9", timeout=0.2) as down:
        lead, ann, _ = group(server, memory, 8)
        with persisted_group_chat(down.state("ann"), "harbour", lead) as last:
            assert last is None
            ann.initiate_chat(lead, message="What is new in the harbour?", silent=True)
        helper, ann = assistant(server), user()
        with persisted_chat(down.state("ann"), "pair", helper, ann) as resumed:
            assert resumed is False
            ann.initiate_chat(helper, message="And what about the quay?", silent=True)
        assert len(server.prompts) == 2
        with pytest.raises(KronmemError):
            save_chat(down.state("ann"), "pair", helper, ann)
