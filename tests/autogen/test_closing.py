"""A chat's backlog may still be storing while the user closes the client: nothing hangs, nothing is lost."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kronmem import Client
from kronmem.autogen import MemoryAgent, attach_memory
from kronmem.outbox.queue import OutboxFile
from tests.autogen.agents import assistant, user
from tests.services import RawServer
from tests.services.openai import OpenAIServer
from tests.services.raw import respond

SAID = "The lighthouse is painted red and white."


def test_a_client_closed_while_it_queues_leaves_no_thread_behind() -> None:
    others = set(threading.enumerate())  # of clients that tests before this one left to the end of the process
    with RawServer([respond(503)]) as server:
        client = Client(server.url, api_key="kv-x", timeout=1.0)
        with pytest.MonkeyPatch.context() as patch:
            put = OutboxFile.put
            patch.setattr(OutboxFile, "put", lambda *args, **options: (put(*args, **options), client.close()))
            client.remember_later("ann", SAID)
        for thread in set(threading.enumerate()) - others:
            if thread.name == "kronmem-outbox":
                thread.join(30)
                assert not thread.is_alive()
        with Client(server.url, api_key="kv-x", timeout=1.0) as later:
            assert later.outbox.pending() == 1


def test_an_attachment_stores_what_still_waits_when_its_block_ends(client: Client) -> None:
    with OpenAIServer(lambda _: "TERMINATE") as server:
        helper, ann = assistant(server), user()
        with attach_memory(client.agent("ann"), [helper, ann]):
            ann.initiate_chat(helper, message=SAID, silent=True)
        assert not any(ann.hook_lists.values())
    assert [one.content for one in client.memories("ann")] == [SAID]


LEAVING = """
from kronmem import Client
from kronmem.autogen import attach_memory
from tests.autogen.agents import user
ann, bob = user("ann"), user("bob")
attach_memory(Client().agent("ann"), ann)
ann.send("The lighthouse is painted red and white.", bob, request_reply=False, silent=True)
"""


@pytest.mark.slow
def test_a_process_that_just_ends_has_stored_what_was_said() -> None:
    root = Path(__file__).parent.parent.parent
    subprocess.run([sys.executable, "-c", LEAVING], check=True, cwd=root)
    with Client() as client:
        assert [one.content for one in client.memories("ann")] == [SAID]


def test_a_shared_client_that_somebody_closed_is_replaced() -> None:
    first = MemoryAgent("first", agent_id="ann", llm_config=False)
    first.memory.client.close()
    second = MemoryAgent("second", agent_id="ann", llm_config=False)
    second.memory.remember("Ann drinks green tea.")
    first.close()
    third = MemoryAgent("third", agent_id="ann", llm_config=False)
    assert third.memory.client is second.memory.client
    second.close()
    assert third.memory.recall("green tea")
    third.close()
    assert third.memory.client.closed
