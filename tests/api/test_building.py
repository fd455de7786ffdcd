"""Models are built at their first use: a fresh process that remembers and recalls pays for those it reads."""

from __future__ import annotations

import subprocess
import sys

RECALL = """
from kronmem import Client
from kronmem.api import requests
with Client("sqlite://") as client:
    client.remember("a", "Tea at five")
    assert client.recall("a", "tea")
models = {name: model for name, model in vars(requests).items() if name.endswith("Request")}
assert len(models) > 8
assert {name for name, model in models.items() if requests.validator(model)._adapter} == {"RememberRequest", "RecallRequest"}
assert not {"httpx", "numpy", "asyncio"} & set(__import__("sys").modules)
"""
AT_ONCE = """
import threading
from concurrent.futures import ThreadPoolExecutor
from kronmem.api import requests
from kronmem.core import memory_json
from kronmem.core.wire import Reply
from kronmem.errors import ReplyError
def first(start):
    start.wait()
    listed = requests.validator(requests.ListRequest).python({"limit": "7"})
    try:
        memory_json.memory(Reply(200, b"[]"), "a")
        raise AssertionError("a list is no memory")
    except ReplyError:
        return listed.limit
start = threading.Barrier(8)
with ThreadPoolExecutor(8) as pool:
    assert set(pool.map(first, [start] * 8)) == {7}
"""


def test_a_recall_builds_only_the_models_it_reads_and_loads_no_http_client() -> None:
    subprocess.run([sys.executable, "-c", RECALL], check=True)


def test_threads_that_read_the_first_body_at_once_all_succeed() -> None:
    subprocess.run([sys.executable, "-c", AT_ONCE], check=True)
