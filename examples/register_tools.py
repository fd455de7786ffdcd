"""Two processes, one memory: what the first was told, the second knows. Memory as tools that the model calls.

Offline: the model is scripted. With a real one, only `llm_config` changes.
"""

import os
import subprocess
import sys
import tempfile

from autogen import ConversableAgent, UserProxyAgent
from scripted_model import scripted_model

from kronmem import Client
from kronmem.autogen import register_memory


def script(messages: list[dict]) -> str | tuple[str, dict]:
    """A model that stores what it is told, and looks up what it is asked."""
    last, text = messages[-1], messages[1]["content"]
    if last["role"] == "tool":
        return f"I looked it up: {last['content'].rpartition('] ')[2]}" if "?" in text else "I will keep that in mind."
    return ("recall", {"query": text}) if "?" in text else ("remember", {"content": text, "memory_type": "preference"})


def talk(message: str) -> None:
    with Client() as client, scripted_model(script) as llm_config:
        assistant = ConversableAgent("assistant", llm_config=llm_config, human_input_mode="NEVER")
        user = UserProxyAgent("user", human_input_mode="NEVER", code_execution_config=False)
        register_memory(client.agent("user-ada"), caller=assistant, executor=user)
        user.initiate_chat(assistant, message=message, max_turns=2)
        answer = user.last_message(assistant)["content"]
    print(f"user: {message}\nassistant: {answer}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["tuesday"]:
        talk("Which seat does Ada prefer?")
    else:
        with tempfile.TemporaryDirectory() as home:  # a home of its own, so that a second run starts afresh
            os.environ["KRONMEM_HOME"] = home
            print("-- monday")
            talk("Ada prefers a window seat.")
            print("-- tuesday, another process", flush=True)
            subprocess.run([sys.executable, __file__, "tuesday"], check=True)
