"""Memory without tools: what is said is kept, and what fits the next question is shown to the model for that reply.

Offline: the model is scripted. With a real one, only `llm_config` changes.
"""

import os
import tempfile

from autogen import ConversableAgent, UserProxyAgent
from scripted_model import repeats_notes, scripted_model

from kronmem import Client
from kronmem.autogen import attach_memory


def talk(message: str) -> None:
    with Client() as client, scripted_model(repeats_notes) as llm_config:
        assistant = ConversableAgent("assistant", llm_config=llm_config, human_input_mode="NEVER")
        user = UserProxyAgent("user", human_input_mode="NEVER", code_execution_config=False)
        with attach_memory(client.agent("user-ada"), [assistant, user]):
            user.initiate_chat(assistant, message=message, max_turns=1)
        history = assistant.chat_messages[user]
    print(f"user: {message}\nassistant: {history[-1]['content']}")
    print("notes in the stored history:", sum("<memory" in one["content"] for one in history))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["KRONMEM_HOME"] = home
        for number, message in enumerate(["Hello, I am Ada and I am allergic to peanuts.", "Am I allergic?"], 1):
            print(f"-- chat {number}, new agents")
            talk(message)
