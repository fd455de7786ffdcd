"""A dozen lines: remember, recall, and a block for a prompt. No key, no server, no internet."""

from kronmem import Client

with Client("sqlite://") as client:  # in memory; Client() keeps a file in your home, Client("http://…") asks a service
    memory = client.agent("assistant-ada")
    memory.remember("Ada prefers short answers", "preference")
    memory.remember("The beta ships on Friday", "decision")

    print(memory.recall("When do we ship the beta?")[0].content)
    print(memory.inject_context("How should I answer Ada?", max_chars=400))
