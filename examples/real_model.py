"""A real model with memory: it is told something, and new agents that were told nothing still know it.

Needs `pip install 'kronmem[autogen]'` and OPENAI_API_KEY. OPENAI_MODEL chooses the model (gpt-4o-mini), and
OPENAI_BASE_URL any service that speaks like OpenAI: http://127.0.0.1:11434/v1 for a local Ollama, with any key.
"""

import os
import sys

from autogen import ConversableAgent

from kronmem import Client
from kronmem.autogen import attach_memory


def config() -> dict:
    if "OPENAI_API_KEY" not in os.environ:
        sys.exit("Set OPENAI_API_KEY first: this example asks a real model. The other examples need none.")
    entry = {"model": os.environ.get("OPENAI_MODEL", "gpt-4o-mini"), "api_key": os.environ["OPENAI_API_KEY"]}
    if "OPENAI_BASE_URL" in os.environ:
        entry |= {"base_url": os.environ["OPENAI_BASE_URL"], "price": [0, 0]}
    return {"config_list": [entry], "cache_seed": None}


def talk(client: Client, message: str) -> str:
    user = ConversableAgent("user", llm_config=False, human_input_mode="NEVER")
    assistant = ConversableAgent("assistant", "Answer in one sentence.", llm_config=config(), human_input_mode="NEVER")
    with attach_memory(client.agent("user-ada"), [assistant, user]):
        user.initiate_chat(assistant, message=message, max_turns=1, silent=True)
    return user.last_message(assistant)["content"]


if __name__ == "__main__":
    with Client("sqlite://") as client:
        for said in ("I am Ada, and I am allergic to peanuts.", "What am I allergic to?"):
            print(f"user: {said}\nassistant: {talk(client, said)}", flush=True)
