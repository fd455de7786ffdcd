"""The programs that tutorials on memory for AutoGen have people type in, each in two processes, the first of them killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kronmem import Client
from kronmem.autogen import MemoryAgent

ROOT = Path(__file__).parent.parent.parent

HEAD = """
import os, signal, sys
from autogen import ConversableAgent, GroupChat, GroupChatManager, UserProxyAgent
from kronmem import Client
from kronmem.autogen import *
from tests.autogen.agents import assistant, contents, ends, manager, tool_results, user
from tests.services.openai import OpenAIServer, call
first = sys.argv[1] == "first"
client = Client()
def die():
    os.kill(os.getpid(), signal.SIGKILL)
"""

PROGRAMS = {
    "tools for an assistant": """
memory = client.agent("user-42")
def model(request):
    done = tool_results(request)
    if first:
        return "I will keep that in mind." if done else call("remember", content="The user prefers concise answers.")
    return f"{done[0]} TERMINATE" if done else call("recall", query="how does the user like answers")
with OpenAIServer(model) as server:
    helper, person = assistant(server), user()
    register_memory(memory, caller=helper, executor=person)
    person.initiate_chat(helper, message="Keep it short, please." if first else "How do I like answers?",
                         max_turns=3 if first else None, silent=True)
    if first:
        die()
    assert "concise answers" in person.chat_messages[helper][-1]["content"]
""",
    "an agent with memory": """
with OpenAIServer(lambda _: "Understood, PostgreSQL it will be.") as server:
    agent = MemoryAgent("engineer", "You write software.", agent_id="project-x", memory_query="database of the project",
                        llm_config=server.llm_config(), human_input_mode="NEVER")
    person = user()
    person.initiate_chat(agent, message="We use PostgreSQL as the database of the project." if first else "Go on.",
                         max_turns=1, silent=True)
    if first:
        die()
    assert "We use PostgreSQL" in server.prompts[0][0]["content"], server.prompts
""",
    "context for a system message": """
memory = client.agent("project-y")
if first:
    memory.remember("The release of the project is planned for May.", "decision")
    die()
with OpenAIServer(lambda _: "In May. TERMINATE") as server:
    helper = assistant(server, system_message="You plan.\\n\\n" + memory.inject_context("release of the project"))
    user().initiate_chat(helper, message="When is the release?", silent=True)
    assert "planned for May" in server.prompts[0][0]["content"]
""",
    "state and a resumed chat": """
state = client.state("support-bot")
with OpenAIServer(lambda _: "I look into order 66 at once.") as server:
    helper, person = assistant(server), user()
    if first:
        state.set("step", {"ticket": 66})
        state.set("draft", "to be removed")
        state.set("draft", None)
    with persisted_chat(state, "ticket-66", person, helper) as resumed:
        assert bool(resumed) is not first
        person.initiate_chat(helper, message="Where is order 66?" if first else "And now?", max_turns=1, silent=True,
                             clear_history=False)
        if first:
            die()
    assert state.get("step") == {"ticket": 66} and state.get("draft") is None
    assert contents(person.chat_messages[helper])[:3] == ["Where is order 66?", "I look into order 66 at once.", "And now?"]
""",
    "a team that shares a memory": """
memory = client.agent("team-7")
def model(request):
    if first and not tool_results(request):
        return call("remember", content="The budget of the team is 40,000 euros.")
    return "Noted by the team." if first else "It is in the notes. TERMINATE"
with OpenAIServer(model) as server:
    person, one, other = user(), assistant(server, "one"), assistant(server, "other")
    lead = manager(server, [person, one, other], max_round=5)
    register_team_memory(memory, lead, executor=person)
    attach_memory(memory, lead)
    with persisted_group_chat(client.state("team-7"), "planning", lead) as last:
        assert bool(last) is not first
        if first:
            person.initiate_chat(lead, message="What is the budget of the team?", silent=True)
            die()
        person.initiate_chat(lead, message="Which budget has the team again?", clear_history=False, silent=True)
    assert "40,000 euros" in str(server.prompts[-1])
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_second_process_knows_what_the_killed_one_was_told(name: str) -> None:
    for run, code in (("first", -signal.SIGKILL), ("second", 0)):
        done = subprocess.run(
            [sys.executable, "-c", HEAD + PROGRAMS[name], run], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == code, done.stderr


@pytest.mark.parametrize("query", ["software engineering task context", "general context"])
@pytest.mark.parametrize("way", ["MemoryAgent", "inject_context"])
def test_a_preference_is_shown_whatever_words_a_tutorial_asks_by(way: str, query: str, client: Client) -> None:
    memory = client.agent("user-42")
    memory.remember("User prefers concise answers.")
    if way == "MemoryAgent":
        shown = MemoryAgent("helper", "You help.", memory=memory, memory_query=query, llm_config=False).system_message
    else:
        shown = memory.inject_context(query)
    assert "User prefers concise answers." in shown
