"""Chats that outlive their process: saved at any moment, put back into fresh agents, and gone on with."""

from __future__ import annotations

from typing import Any

import pytest
from autogen import GroupChat, GroupChatManager

from kronmem import AgentMemory, AsyncClient, Client, ConfigError, State
from kronmem.autogen import (
    attach_memory,
    persisted_chat,
    persisted_group_chat,
    register_memory,
    register_team_memory,
)
from tests.autogen.agents import assistant, contents, manager, put_back, selects, tool_results, user, well_formed
from tests.autogen.conftest import Chat
from tests.services.openai import Answer, Failure, OpenAIServer, call


@pytest.fixture
def state(client: Client) -> State:
    return client.state("ann")


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
        with persisted_chat(state, "harbour", helper, ann) as resumed:
            assert not resumed
            assert tuple(resumed) == (None, None)
            chat(ann, helper, "Please note that the quay is closed.", max_turns=2)
        before = (helper.chat_messages[ann], ann.chat_messages[helper])
        helper, ann = pair(server, memory)
        with persisted_chat(state, "harbour", ann, helper) as resumed:
            assert resumed
            assert (helper.chat_messages[ann], ann.chat_messages[helper]) == before
            assert (resumed.speaker, resumed.message, resumed.ended) == (helper, before[1][-1], False)
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


def test_a_state_that_has_to_be_awaited_is_refused_at_once() -> None:
    state: Any = AsyncClient("sqlite://").state("ann")
    helper, ann = user("helper"), user("ann")
    lead = GroupChatManager(GroupChat([helper, ann], messages=[]), llm_config=False)
    for refused in (persisted_chat(state, "harbour", helper, ann), persisted_group_chat(state, "harbour", lead)):
        with pytest.raises(ConfigError, match="not AsyncState"):
            put_back(refused)


def test_a_chat_is_not_put_into_other_agents_or_the_wrong_kind(state: State, chat: Chat) -> None:
    with OpenAIServer(lambda _: "TERMINATE") as server:
        helper, ann = assistant(server), user()
        with persisted_chat(state, "pair", helper, ann):
            chat(ann, helper, "What is new?")
        state.set("other", [1, 2])
        with pytest.raises(ConfigError, match="between 'assistant' and 'user'"):
            put_back(persisted_chat(state, "pair", helper, user("bob")))
        with pytest.raises(ConfigError, match="not a group chat"):
            put_back(persisted_group_chat(state, "pair", manager(server, [helper, ann])))
        with pytest.raises(ConfigError, match="not a chat"):
            put_back(persisted_chat(state, "other", helper, ann))


def test_a_group_chat_of_other_members_is_refused_and_left_alone(state: State, chat: Chat) -> None:
    with OpenAIServer(lambda _: "Fine. TERMINATE") as server:
        ann = user("ann")
        lead = manager(server, [ann, assistant(server, "one")])
        with persisted_group_chat(state, "harbour", lead):
            chat(ann, lead, "What is new?")
        ann = user("ann")
        other = manager(server, [ann, assistant(server, "other")])
        other.groupchat.messages.append({"content": "not cleared", "role": "user", "name": "ann"})
        with pytest.raises(ConfigError, match="the group chat under 'harbour' has other members: 'one'"):
            put_back(persisted_group_chat(state, "harbour", other))
        assert contents(other.groupchat.messages) == ["not cleared"]


@pytest.mark.parametrize("again", [True, False], ids=["taken up", "a new message"])
def test_a_call_without_a_result_is_answered_or_left_out(
    memory: AgentMemory, state: State, chat: Chat, again: bool
) -> None:
    with OpenAIServer(notes_first) as server:
        helper, ann = pair(server, memory)

        def break_down(*_: Any, **__: Any) -> Any:
            raise RuntimeError("the machine is on fire")

        ann.register_reply([helper], break_down, position=0, remove_other_reply_funcs=True)
        with pytest.raises(RuntimeError, match="on fire"), persisted_chat(state, "harbour", helper, ann):
            ann.initiate_chat(helper, message="Please note that the quay is closed.", silent=True)
        helper, ann = pair(server, memory)
        with persisted_chat(state, "harbour", helper, ann) as resumed:
            assert (resumed.speaker, resumed.ended) == (helper, False)
            if again:
                chat(helper, ann, resumed.message, max_turns=2, clear_history=False)
            else:
                chat(ann, helper, "Once more: the quay is closed.", max_turns=2, clear_history=False)
        assert all(map(well_formed, server.prompts))
        assert contents(ann.chat_messages[helper]).count("Noted (1).") == 1
        assert len(ann.chat_messages[helper]) == 5


def test_what_is_not_json_in_a_message_does_not_stop_the_saving(state: State) -> None:
    with OpenAIServer(lambda _: "Fine.") as server:
        helper, ann = assistant(server), user()
        with persisted_chat(state, "harbour", helper, ann):
            ann.send({"content": "hello", "context": {"when": object}}, helper, request_reply=False, silent=True)
        fresh, other = assistant(server), user()
        assert put_back(persisted_chat(state, "harbour", fresh, other))
        assert other.chat_messages[fresh][0]["content"] == "hello"


def test_a_message_with_characters_that_no_store_takes_does_not_stop_the_saving(state: State) -> None:
    with OpenAIServer(lambda _: "Fine.") as server:
        helper, ann = assistant(server), user()
        with persisted_chat(state, "harbour", helper, ann):
            for text in ("hello", "the file begins with \x00\x01", "and then?"):
                ann.send(text, helper, request_reply=False, silent=True)
        fresh, other = assistant(server), user()
        assert put_back(persisted_chat(state, "harbour", fresh, other))
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
        with persisted_group_chat(state, "harbour", lead):
            chat(ann, lead, LINES[0])
        attachment.detach()
        spoken = contents(lead.groupchat.messages)
        kept = {one.id for one in memory.memories()}
        lead, ann, attachment = group(server, memory, 8)
        with persisted_group_chat(state, "harbour", lead) as resumed:
            speaker, last = resumed
            assert (last, resumed.ended) == (lead.groupchat.messages[-1], False)
            attachment.flush()
            assert {one.id for one in memory.memories()} == kept
            assert contents(lead.groupchat.messages) == spoken
            chat(speaker, lead, last, clear_history=False)
        attachment.detach()
        assert contents(lead.groupchat.messages)[:stop] == spoken
        assert contents(lead.groupchat.messages)[-1] == "Understood by other, 1 results. TERMINATE"
        assert len(lead.groupchat.messages) == 5
        assert all(map(well_formed, server.prompts))
        said = [one.content for one in memory.memories() if "turn" in one.metadata]
        assert sorted(said) == sorted(set(said))


def test_a_group_that_dies_is_saved(memory: AgentMemory, state: State, chat: Chat) -> None:
    with OpenAIServer(lambda request: Failure(400) if tool_results(request) else group_model(request)) as server:
        lead, ann, _ = group(server, memory, 8)
        with pytest.raises(Exception, match="as scripted"), persisted_group_chat(state, "harbour", lead) as last:
            assert not last
            chat(ann, lead, LINES[0])
        server.model = group_model
        for _ in range(2):  # a run in which nothing happens loses nothing
            lead, ann, _ = group(server, memory, 8)
            with persisted_group_chat(state, "harbour", lead) as last:
                assert last.speaker is ann
                assert last.message is not None
                assert last.message["role"] == "tool"
        with persisted_group_chat(state, "harbour", lead) as last:
            chat(last.speaker, lead, last.message, clear_history=False)
        assert contents(lead.groupchat.messages)[-1] == "Understood by other, 1 results. TERMINATE"
        assert all(map(well_formed, server.prompts))


def test_a_group_that_ended_takes_a_new_message_the_next_day(
    memory: AgentMemory, state: State, chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    drafts = [f"Draft {number} done. TERMINATE" for number in range(3)]
    questions = ["Write about whales.", "Now translate it.", "Now translate it."]
    with OpenAIServer(lambda _: drafts[len(lead.groupchat.messages) // 2]) as server:
        for day, question in enumerate(questions):
            lead, ann, attachment = group(server, memory, 8)
            attachment.detach()
            with persisted_group_chat(state, "article", lead) as resumed:
                if day:
                    assert (resumed.ended, resumed.message) == (True, lead.groupchat.messages[-1])
                    chat(
                        resumed.speaker, lead, resumed.message, clear_history=False
                    )  # it ends again, and is not doubled
                    assert len(lead.groupchat.messages) == 2 * day
                chat(ann, lead, question, clear_history=False)
        everything = [text for pair in zip(questions, drafts, strict=True) for text in pair]
        lead, ann, _ = group(server, memory, 8)
        assert put_back(persisted_group_chat(state, "article", lead)).ended
        for view in (lead.groupchat.messages, *(one.chat_messages[lead] for one in lead.groupchat.agents)):
            assert contents(view) == everything
        assert contents(server.prompts[-1])[1:] == everything[:-1]
    assert "termination" not in capsys.readouterr().out.lower().replace("termination message condition", "")


def test_what_one_agent_sent_last_is_a_new_message_of_another(memory: AgentMemory, state: State, chat: Chat) -> None:
    with OpenAIServer(lambda _: "Shall we go on?") as server:
        helper, ann = assistant(server), user()
        with persisted_chat(state, "harbour", helper, ann):
            chat(ann, helper, "Yes.", max_turns=1)
        helper, ann = assistant(server), user()
        with persisted_chat(state, "harbour", helper, ann) as resumed:
            chat(ann, helper, "Shall we go on?", max_turns=1, clear_history=False)
        assert resumed.speaker is helper
        assert contents(ann.chat_messages[helper]) == ["Yes.", *["Shall we go on?"] * 3]


@pytest.mark.parametrize("kind", ["pair", "group"])
def test_a_saved_chat_is_not_begun_again_over_its_head(state: State, chat: Chat, kind: str) -> None:
    with OpenAIServer(lambda _: "Fine. TERMINATE") as server:

        def members() -> tuple[Any, Any, Any]:
            helper, ann = assistant(server), user()
            if kind == "pair":
                return ann, helper, persisted_chat(state, "harbour", ann, helper)
            lead = manager(server, [ann, helper])
            return ann, lead, persisted_group_chat(state, "harbour", lead)

        ann, other, where = members()
        with where:
            chat(ann, other, "What is new?")
            with pytest.raises(ConfigError, match="clear_history=False"):
                chat(ann, other, "And today?")
        ann, other, where = members()
        with where, pytest.raises(ConfigError, match=r"clear_history=False.*state\.delete\('harbour'\)"):
            chat(ann, other, "And today?")
        assert len(server.prompts) == 1
        ann, other, where = members()
        assert put_back(where)
        assert contents(ann.chat_messages[other]) == ["What is new?", "Fine. TERMINATE"]
        state.delete("harbour")
        ann, other, where = members()
        with where as resumed:
            assert not resumed
            chat(ann, other, "And today?")
            state.delete("harbour")
            chat(ann, other, "And now?")
        assert "today" not in str([state.get(key) for key in sorted(state.keys())])
        assert not set(vars(ann)) & {"initiate_chat", "a_initiate_chat", "send", "a_send"}


@pytest.mark.parametrize("name", ["save_chat", "resume_chat", "save_group_chat", "resume_group_chat", "prime"])
def test_a_name_that_left_says_what_to_use(name: str) -> None:
    use = "MemoryAgent" if name == "prime" else "persisted_group_chat" if "group" in name else "persisted_chat"
    with pytest.raises(ImportError, match=f"{name} was removed in 0.3: use {use}"):
        exec(f"from kronmem.autogen import {name}")


def test_a_store_out_of_reach_neither_stops_a_chat_nor_is_written_over(memory: AgentMemory, state: State) -> None:
    with OpenAIServer(lambda _: "Very well. TERMINATE") as server, Client("http://127.0.0.1:9", timeout=0.2) as down:
        lead, ann, _ = group(server, memory, 8)
        with persisted_group_chat(down.state("ann"), "harbour", lead) as last:
            assert not last
            ann.initiate_chat(lead, message="What is new in the harbour?", silent=True)
        helper, ann = assistant(server), user()
        with persisted_chat(down.state("ann"), "pair", helper, ann) as resumed:
            assert not resumed
            ann.initiate_chat(helper, message="And what about the quay?", silent=True)
        assert len(server.prompts) == 2
