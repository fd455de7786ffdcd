"""A manager, a researcher and a writer share one memory: what the team decided in one run, it knows in the next.

Offline: the model is scripted. With a real one, only `llm_config` changes.
"""

import os
import tempfile

from autogen import ConversableAgent, GroupChat, GroupChatManager, UserProxyAgent
from scripted_model import scripted_model

from kronmem import Client
from kronmem.autogen import register_team_memory

DECISION = "The team decided to publish the report in French."


def script(messages: list[dict]) -> str | tuple[str, dict]:
    """The researcher stores the decision in the first run; the writer looks it up in the second."""
    me, results = messages[0]["content"], [one["content"] for one in messages if one["role"] == "tool"]
    if "select the next role" in str(messages).lower():
        return "researcher" if "Decide" in str(messages) else "writer"
    if me == "researcher":
        return "It is decided. TERMINATE" if results else ("remember", {"content": DECISION, "memory_type": "decision"})
    if not results:
        return ("recall", {"query": "In which language do we publish the report?"})
    return f"I write in the language we agreed on. {results[-1].rpartition('] ')[2]} TERMINATE"


def run(task: str) -> None:
    with Client() as client, scripted_model(script) as llm_config:
        options = {"llm_config": llm_config, "human_input_mode": "NEVER"}
        team = [ConversableAgent(name, system_message=name, **options) for name in ("researcher", "writer")]
        user = UserProxyAgent("user", human_input_mode="NEVER", code_execution_config=False)
        group = GroupChat([user, *team], messages=[], max_round=6, speaker_selection_method="auto")
        manager = GroupChatManager(
            group, llm_config=llm_config, is_termination_msg=lambda message: "TERMINATE" in str(message["content"])
        )
        register_team_memory(client.agent("team-7"), manager, executor=user)
        user.initiate_chat(manager, message=task)
    for message in group.messages:
        called = [call["function"]["name"] for call in message.get("tool_calls", [])]
        if message["role"] != "tool":
            print(f"{message['name']}: {'calls ' + called[0] if called else message['content']}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["KRONMEM_HOME"] = home
        for number, task in enumerate(["Decide on the language of the report.", "Write the report."], 1):
            print(f"-- run {number}")
            run(task)
