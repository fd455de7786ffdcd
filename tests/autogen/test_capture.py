"""attach_memory, the writing half: what is kept of a chat, with which provenance, and only once."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kronmem import AgentMemory, Client, ConfigError, InvalidInputError, Memory, extract_facts
from kronmem.autogen import attach_memory, persisted_group_chat
from kronmem.text.fence import NOTICE
from tests.autogen.agents import assistant, manager, selects, tool_results, user
from tests.autogen.conftest import Chat
from tests.services.openai import Answer, OpenAIServer, call

TOLD = "I work for the harbour authority in Rotterdam."
REPLY = "Good to know, I will keep that in mind. TERMINATE"


def kept(memory: AgentMemory) -> list[Memory]:
    """What was stored, oldest first."""
    return sorted(memory.memories(), key=lambda one: int(str(one.metadata["turn"])))


def test_what_both_sides_say_is_kept_with_its_provenance(memory: AgentMemory, chat: Chat) -> None:
    with OpenAIServer(lambda _: REPLY) as server:
        helper, ann = assistant(server), user()
        attachment = attach_memory(memory, [helper, ann], capture="all")
        chat(ann, helper, TOLD)
        assert attachment.flush() == 0
    told, reply = kept(memory)
    assert (told.content, reply.content) == (TOLD, "Good to know, I will keep that in mind.")
    assert (told.role, told.metadata) == ("user", {"speaker": "user", "chat": told.metadata["chat"], "turn": 0})
    assert reply.metadata == {"speaker": "assistant", "chat": told.metadata["chat"], "turn": 1}
    assert reply.role == "assistant"
    assert {told.memory_type, reply.memory_type} == {"interaction"}


def test_the_message_itself_goes_on_unchanged(memory: AgentMemory, chat: Chat) -> None:
    with OpenAIServer(lambda _: REPLY) as server:
        helper, ann = assistant(server), user()
        attach_memory(memory, [helper, ann], capture="all")
        chat(ann, helper, {"content": TOLD, "name": "user"})
        assert [one["content"] for one in ann.chat_messages[helper]] == [TOLD, REPLY]


def test_tool_traffic_and_trivial_words_are_not_kept(memory: AgentMemory, chat: Chat) -> None:
    def model(request: dict[str, Any]) -> Answer:
        return "TERMINATE" if tool_results(request) else call("note", text="a long text that only the tool should see")

    with OpenAIServer(model) as server:
        helper, ann = assistant(server), user(function_map={"note": lambda text: f"noted at great length: {text}"})
        attachment = attach_memory(memory, [helper, ann], capture="all")
        chat(ann, helper, "ok, go")
        attachment.flush()
    assert kept(memory) == []


def test_a_block_that_a_model_repeats_is_not_kept_again(memory: AgentMemory) -> None:
    memory.remember("The harbour master is called Jansen.", metadata={"turn": -1})
    echo = f'<memory source="ann">\n{NOTICE}\n1. (fact) Jansen\n</memory>\nThe harbour master is Jansen, as you know.'
    with OpenAIServer(lambda _: echo) as server:
        helper, ann = assistant(server), user()
        attachment = attach_memory(memory, [helper], capture="all")
        ann.initiate_chat(helper, message="Who is the harbour master?", silent=True, max_turns=1)
        attachment.flush()
    assert [one.content for one in kept(memory)] == [
        "The harbour master is called Jansen.",
        "Who is the harbour master?",
        "The harbour master is Jansen, as you know.",
    ]


def test_only_facts_are_kept_when_told_so(memory: AgentMemory, chat: Chat) -> None:
    with OpenAIServer(lambda _: "Let me think about that for a while. TERMINATE") as server:
        helper, ann = assistant(server), user()
        attachment = attach_memory(memory, [helper, ann], capture=extract_facts)
        chat(ann, helper, "Hi! I prefer trains over planes. What is the weather like in Utrecht today?")
        attachment.flush()
    (fact,) = kept(memory)
    assert "I prefer trains over planes" in fact.content
    assert "weather" not in fact.content
    assert fact.memory_type == "preference"


def test_a_very_long_message_is_kept_in_pieces(memory: AgentMemory) -> None:
    text = " ".join(f"berth-{number}" for number in range(1000, 5000))
    with OpenAIServer(lambda _: "TERMINATE") as server:
        helper, ann = assistant(server), user()
        attachment = attach_memory(memory, ann, capture="all")
        ann.initiate_chat(helper, message=text, silent=True)
        attachment.flush(30)
    pieces = sorted(one.content for one in memory.memories())
    assert len(pieces) == 2
    assert "".join(pieces) == text


@pytest.mark.parametrize("method", ["auto", "round_robin"])
def test_every_message_of_a_group_is_kept_once(memory: AgentMemory, chat: Chat, method: str) -> None:
    lines = [
        "The quay is closed until Friday.",
        "Then the ships go to Antwerp.",
        "Everything is settled now. TERMINATE",
    ]

    def model(request: dict[str, Any]) -> Answer:
        said = sum(line[:12] in str(request["messages"]) for line in lines)
        return ["one", "other", "one"][said] if selects(request) else lines[said]

    with OpenAIServer(model) as server:
        one, other, ann = assistant(server, "one"), assistant(server, "other"), user()
        lead = manager(server, [ann, one, other] if method == "auto" else [one, other], method)
        attachment = attach_memory(memory, lead, capture="all")
        chat(ann if method == "auto" else other, lead, "What about the quay in the harbour?")
        attachment.flush()
        said = [message["name"] for message in lead.groupchat.messages]
    assert [one.metadata["speaker"] for one in kept(memory)] == said
    assert [one.metadata["turn"] for one in kept(memory)] == [0, 1, 2, 3]
    assert len({one.metadata["chat"] for one in kept(memory)}) == 1


def test_a_replayed_group_chat_is_not_kept_twice(client: Client) -> None:
    def run(memory: AgentMemory, resumed: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
        with OpenAIServer(lambda _: "The tide comes in at noon, they say.") as server:
            one, ann = assistant(server, "one"), user()
            lead = manager(server, [ann, one], max_round=2)
            attachment = attach_memory(memory, lead, capture="all")
            if resumed is None:
                ann.initiate_chat(lead, message="When does the tide come in?", silent=True)
            else:
                agent, last = lead.resume(messages=resumed, silent=True)
                lead.groupchat.max_round = 1
                agent.initiate_chat(lead, message=last, clear_history=False, silent=True)
            attachment.detach()
            return list(lead.groupchat.messages)

    memory = client.agent("ann")
    messages = run(memory, None)
    before = [(one.id, one.metadata) for one in kept(memory)]
    assert len(before) == 2
    run(memory, messages)
    assert [(one.id, one.metadata) for one in kept(memory)] == before


@pytest.mark.parametrize("gone", ["forget", "clear"])
def test_words_said_again_after_they_were_forgotten_are_stored_again(
    memory: AgentMemory, chat: Chat, gone: str
) -> None:
    for _ in range(2):
        with OpenAIServer(lambda _: REPLY) as server:
            helper, ann = assistant(server), user()
            with attach_memory(memory, [helper, ann], capture="all"):
                for _ in range(2):
                    chat(ann, helper, TOLD)
                    assert [one.content for one in kept(memory)] == [TOLD, "Good to know, I will keep that in mind."]
                    for one in kept(memory):
                        memory.forget(one.id) if gone == "forget" else memory.clear()
                    assert kept(memory) == []


def test_words_said_again_while_they_are_known_are_one_memory(memory: AgentMemory, chat: Chat) -> None:
    with OpenAIServer(lambda _: REPLY) as server:
        helper, ann = assistant(server), user()
        with attach_memory(memory, [helper, ann], capture="all"):
            for _ in range(2):
                chat(ann, helper, TOLD)
    assert len(kept(memory)) == 2


def test_a_resumed_chat_does_not_bring_back_what_was_forgotten(client: Client) -> None:
    memory, state = client.agent("ann"), client.state("ann")
    for turn in range(2):
        with OpenAIServer(lambda _: "The tide comes in at noon, they say.") as server:
            one, ann = assistant(server, "one"), user()
            lead = manager(server, [ann, one], max_round=2)
            with attach_memory(memory, lead, capture="all"):
                with persisted_group_chat(state, "tide", lead) as resumed:
                    lead.groupchat.max_round = 1 if turn else 2
                    message = resumed.message or "When does the tide come in?"
                    (resumed.speaker or ann).initiate_chat(lead, message=message, clear_history=False, silent=True)
                if turn == 0:
                    messages = list(lead.groupchat.messages)
                    memory.clear()
                    continue
                assert list(memory.memories()) == []
                again, last = lead.resume(messages=messages, silent=True)  # by hand, without our state
                again.initiate_chat(lead, message=last, clear_history=False, silent=True)
                assert list(memory.memories()) == []
                ann.initiate_chat(lead, message="When does the tide come in?", silent=True)
                assert "When does the tide come in?" in [one.content for one in memory.memories()]


def test_carryover_of_earlier_chats_is_not_kept_as_words(memory: AgentMemory, chat: Chat) -> None:
    with OpenAIServer(lambda _: "TERMINATE") as server:
        helper, ann = assistant(server), user()
        with attach_memory(memory, [helper, ann], capture="all"):
            chat(ann, helper, TOLD, carryover="A summary of the chat before, by a model.")
        assert "A summary of the chat before" in str(server.prompts[0])
    assert [one.content for one in kept(memory)] == [TOLD]


def test_the_lifetime_of_what_is_kept_can_be_limited(memory: AgentMemory, chat: Chat) -> None:
    with OpenAIServer(lambda _: REPLY) as server:
        helper, ann = assistant(server), user()
        with pytest.raises(InvalidInputError, match="ttl_days"):
            attach_memory(memory, helper, ttl_days=0, capture="all")
        with attach_memory(memory, [helper, ann], ttl_days=7, capture="all"):
            chat(ann, helper, TOLD)
    for one in kept(memory):
        assert one.expires_at is not None
        assert one.created_at is not None
        assert (one.expires_at - one.created_at).days in (6, 7)


def test_capture_without_an_outbox_is_refused_with_the_reason() -> None:
    with Client("http://127.0.0.1:9", api_key="kv-x", outbox=False) as client:
        with pytest.raises(ConfigError, match=r"outbox=False.*lost.*capture=False"):
            attach_memory(client.agent("ann"), user(), capture="all")
        attach_memory(client.agent("ann"), user(), capture=False)
    with Client.local(":memory:") as embedded:
        attach_memory(embedded.agent("ann"), user(), capture="all")


def test_a_session_of_the_memory_is_where_it_is_kept(client: Client) -> None:
    with OpenAIServer(lambda _: REPLY) as server:
        helper, ann = assistant(server), user()
        attachment = attach_memory(client.agent("ann", session_id="monday"), [helper, ann], capture="all")
        ann.initiate_chat(helper, message=TOLD, silent=True)
        attachment.flush()
    assert {one.session_id for one in client.memories("ann")} == {"monday"}


def test_a_chat_does_not_wait_for_what_is_kept(memory: AgentMemory) -> None:
    held, order = threading.Event(), list[str]()

    def extract(text: str) -> list[str]:
        held.wait(60)
        order.append(text)
        return [text]

    with OpenAIServer(lambda _: REPLY) as server:
        helper, ann = assistant(server), user()
        attachment = attach_memory(memory, [helper, ann], recall=False, capture=extract)
        ann.initiate_chat(helper, message=TOLD, silent=True)
        assert attachment.flush(0.01) == 2
        held.set()
        assert attachment.flush(30) == 0
    assert order == [TOLD, "Good to know, I will keep that in mind."]
