"""MemoryAgent: memory built into an agent, as the tutorials write it."""

from __future__ import annotations

from typing import Any

import pytest
from autogen import ConversableAgent

from kronmem import AgentMemory, Client, ConfigError
from kronmem.autogen import MemoryAgent
from kronmem.text.fence import is_fenced, without_fences
from tests.autogen.agents import contents, ends, manager, user
from tests.autogen.conftest import Chat
from tests.services import KronvexServer
from tests.services.openai import OpenAIServer

COFFEE = "I prefer dark roast coffee in the morning."


def made(server: OpenAIServer, **options: Any) -> MemoryAgent:
    """As the tutorial writes it."""
    return MemoryAgent(
        name="helper",
        agent_id="user-1",
        memory_query="coffee in the morning",
        system_message="You help.",
        llm_config=server.llm_config(),
        **{"capture": "all", **options},
    )


def test_the_tutorials_agent_knows_in_the_second_run_what_it_was_told_in_the_first(chat: Chat) -> None:
    with OpenAIServer(lambda _: "Dark roast it is, every single morning.") as server:
        for message in (COFFEE, "Which coffee in the morning?"):
            helper, ann = made(server), user()
            assert isinstance(helper, ConversableAgent)
            chat(ann, helper, message, max_turns=1)
            helper.close()
        first, second = server.prompts
        assert contents(first) == ["You help.", COFFEE]
        assert [message["role"] for message in second] == ["system", "user"], "what stands there is not shown again"
        assert without_fences(second[0]["content"]) == "You help."
        assert COFFEE in second[0]["content"]
    with Client() as client:
        speakers = {one.content: one.metadata["speaker"] for one in client.memories("user-1")}
    assert speakers[COFFEE] == "user"
    assert speakers["Dark roast it is, every single morning."] == "helper"


def test_it_asks_nothing_before_it_is_needed() -> None:
    with OpenAIServer(lambda _: "Hello.") as server, KronvexServer() as service:
        with Client(service.url, api_key=service.key) as client:
            helper = MemoryAgent(
                "helper",
                memory=client.agent("ann"),
                memory_query="anything",
                system_message="You help.",
                llm_config=server.llm_config(),
            )
            assert service.requests == []
            assert helper.system_message == "You help."
            assert service.requests


def test_a_system_message_shows_what_is_known_when_it_is_read(memory: AgentMemory) -> None:
    memory.remember(COFFEE)
    helper = MemoryAgent("helper", memory=memory, memory_query="coffee", system_message="You help.", llm_config=False)
    said, _, block = helper.system_message.partition("\n\n")
    assert said == "You help."
    assert is_fenced(block)
    assert COFFEE in block
    assert helper.system_message == helper.system_message


@pytest.mark.parametrize("options", [{}, {"agent_id": "bob", "memory": "ann"}])
def test_it_must_be_clear_whose_memory_it_is(memory: AgentMemory, options: dict[str, Any]) -> None:
    given = {**options, "memory": memory} if options else {}
    with pytest.raises(ConfigError, match="memory"):
        MemoryAgent("helper", llm_config=False, **given)


def test_it_may_be_told_neither_to_recall_nor_to_keep(memory: AgentMemory) -> None:
    memory.remember(COFFEE)
    with OpenAIServer(lambda _: "A long answer about the coffee.") as server:
        options = {"system_message": "You help.", "llm_config": server.llm_config()}
        helper, ann = MemoryAgent("helper", memory=memory, recall=False, capture=False, **options), user()
        ann.initiate_chat(helper, message=COFFEE, silent=True, max_turns=1)
        assert contents(server.prompts[0]) == ["You help.", COFFEE]
        helper.close()
    assert len(list(memory.memories())) == 1


def test_in_a_group_it_keeps_what_the_others_say_once(memory: AgentMemory, chat: Chat) -> None:
    with OpenAIServer(lambda _: "That is a fine idea, colleagues. TERMINATE") as server:
        options = {"llm_config": server.llm_config(), "human_input_mode": "NEVER", "is_termination_msg": ends}
        both = [MemoryAgent(name, memory=memory, capture="all", **options) for name in ("one", "other")]
        ann = user()
        lead = manager(server, [ann, *both])
        chat(ann, lead, "Shall we meet at the lighthouse?")
        for agent in both:
            agent.close()
    assert {(one.content, one.metadata["speaker"], one.metadata["turn"]) for one in memory.memories()} == {
        ("Shall we meet at the lighthouse?", "user", 0),
        ("That is a fine idea, colleagues.", "one", 1),
    }


def test_it_takes_a_system_message_by_position_like_its_parent(memory: AgentMemory) -> None:
    helper = MemoryAgent("helper", "You help.", memory=memory, llm_config=False)
    assert helper.system_message == "You help."


def test_it_reads_from_others_and_limits_the_lifetime_of_what_it_keeps(client: Client, chat: Chat) -> None:
    client.remember("team", "The team drinks green tea.")
    with OpenAIServer(lambda _: "Green tea it is, as ever.") as server:
        options = {"llm_config": server.llm_config(), "human_input_mode": "NEVER", "capture": "all"}
        helper = MemoryAgent("helper", memory=client.agent("ann"), read_from=["team"], ttl_days=3, **options)
        chat(user(), helper, "Which green tea do we drink?", max_turns=1)
        helper.close()
        assert "from team) The team drinks green tea." in str(server.prompts[0])
    assert len(list(client.memories("ann"))) == 2
    assert all(one.expires_at is not None for one in client.memories("ann"))
