"""A loop of your own: any model that speaks like OpenAI, what fits in front of each question, what was stated kept.

No framework and no extra. Offline: the model is scripted. With a real one, only url, key and model change.
"""

import httpx
from scripted_model import repeats_notes, scripted_model

from kronmem import Client, extract_facts

MODEL: dict[str, str] = {}  # yours: {"base_url": "https://api.openai.com/v1", "api_key": "…", "model": "gpt-4o-mini"}
SYSTEM = {"role": "system", "content": "You are a helpful assistant."}


def ask_model(messages: list[dict]) -> str:
    answer = httpx.post(
        f"{MODEL['base_url']}/chat/completions",
        headers={"Authorization": f"Bearer {MODEL['api_key']}"},
        json={"model": MODEL["model"], "messages": messages},
        timeout=60.0,
    )
    return answer.raise_for_status().json()["choices"][0]["message"]["content"]


def chat(client: Client, user: str, questions: list[str]) -> None:
    memory, history = client.agent(user), [SYSTEM]
    for words in questions:
        # Right before the newest words, and in no history: the beginning of the prompt stays the same, for its cache.
        block = memory.inject_context(words, max_chars=1000)
        notes = [{"role": "user", "content": block}] if block else []
        question = {"role": "user", "content": words}
        answer = ask_model([*history, *notes, question])
        history += [question, {"role": "assistant", "content": answer}]
        for fact in extract_facts(words):
            memory.remember(fact, fact.memory_type, role="user")
        print(f"{user}: {words}\nassistant: {answer}")


if __name__ == "__main__":
    with scripted_model(repeats_notes, quiet=False) as llm_config, Client("sqlite://") as client:
        MODEL.update(llm_config["config_list"][0])
        chat(client, "ada", ["Hello! I'm allergic to peanuts."])
        chat(client, "ada", ["Is a peanut sauce fine for me?"])
        chat(client, "bob", ["Is a peanut sauce fine for me?"])
