"""A group chat dies half-way, another process takes it up, and the next day there is a new message for the group.

Offline: the model is scripted. With a real one, only `llm_config` changes.
"""

import os
import subprocess
import sys
import tempfile

from autogen import ConversableAgent, GroupChat, GroupChatManager, UserProxyAgent
from scripted_model import scripted_model

from kronmem import Client
from kronmem.autogen import persisted_group_chat, register_team_memory


def script(messages: list[dict]) -> str | tuple[str, dict]:
    me, results = messages[0]["content"], [one for one in messages if one["role"] == "tool"]
    if me == "researcher":
        return ("remember", {"content": "Whales sleep upright."}) if not results else "Over to you, writer."
    if "dies" in sys.argv:
        raise RuntimeError("out of credits")
    drafts = sum("TERMINATE" in (one["content"] or "") for one in messages)
    return (
        f"I have read {len(messages) - 1} messages and {len(results)} tool result. Draft {drafts + 1} done. TERMINATE"
    )


def run(task: str = "Write about whales.") -> None:
    with Client() as client, scripted_model(script) as llm_config:
        options = {"llm_config": llm_config, "human_input_mode": "NEVER"}
        team = [ConversableAgent(name, system_message=name, **options) for name in ("researcher", "writer")]
        user = UserProxyAgent("user", human_input_mode="NEVER", code_execution_config=False)
        group = GroupChat([user, *team], messages=[], max_round=8, speaker_selection_method="round_robin")
        manager = GroupChatManager(group, is_termination_msg=lambda message: "TERMINATE" in str(message["content"]))
        register_team_memory(client.agent("team-7"), manager, executor=user)
        with persisted_group_chat(client.state("team-7"), "article", manager) as resumed:
            # One that broke off is taken up by its last message; after one that ended comes a new one.
            speaker, message = resumed if resumed and not resumed.ended else (user, task)
            speaker.initiate_chat(manager, message=message, clear_history=False)
    for one in group.messages:
        print(f"{one['name']}: {'(tool)' if one['role'] == 'tool' or one.get('tool_calls') else one['content']}")


if __name__ == "__main__":
    if "dies" in sys.argv:
        run()
    else:
        with tempfile.TemporaryDirectory() as home:
            os.environ["KRONMEM_HOME"] = home
            died = subprocess.run([sys.executable, __file__, "dies"], capture_output=True, text=True)
            print(
                "-- the first process ended with:", "out of credits" if "out of credits" in died.stderr else died.stderr
            )
            print("-- the second process takes it up")
            run()
            print("-- the next day")
            run("Now translate it.")
