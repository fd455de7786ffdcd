"""Tools that cannot write: a bot for everybody looks things up in the notes of a team, and never changes them.

Offline: the model is scripted. With a real one, only `llm_config` changes.
"""

from autogen import ConversableAgent, UserProxyAgent
from scripted_model import looks_up, scripted_model

from kronmem import Client
from kronmem.autogen import register_memory


def talk(client: Client, question: str) -> None:
    with scripted_model(looks_up) as llm_config:
        bot = ConversableAgent("bot", llm_config=llm_config, human_input_mode="NEVER")
        guest = UserProxyAgent("guest", human_input_mode="NEVER", code_execution_config=False)
        # The same for the others: memory_tools(memory, only=…), KronMemory.tools(only=…),
        # KronmemContextProvider(tools=["recall"], capture=False), KronmemPlugin(tools=["recall"], capture=False).
        register_memory(client.agent("handbook"), caller=bot, executor=guest, only=("recall",))
        guest.initiate_chat(bot, message=question, max_turns=2)
        tools = [tool["function"]["name"] for tool in bot.llm_config["tools"]]
        answer = guest.last_message(bot)["content"]
    print(f"guest: {question}\nbot: {answer}\ntools of the model: {tools}")


if __name__ == "__main__":
    with Client("sqlite://") as client:
        client.remember("handbook", "The office closes at six")
        talk(client, "When does the office close?")
        talk(client, "Remember that the office closes at midnight!")
        print("notes:", [memory.content for memory in client.memories("handbook")])
