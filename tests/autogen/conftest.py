"""What the tests of this pack start from: a memory in RAM, and chats in both ways that AutoGen has."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import certifi
import pytest

from kronmem import AgentMemory, Client

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what old versions say while they are imported is theirs
    import autogen  # noqa: F401

gc.freeze()  # what was imported stays: sweeping after each module takes milliseconds then

# What the frameworks do with their own sockets, event loops and pydantic models is not ours to mend.
THEIRS = (
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::DeprecationWarning:autogen.*",
    "ignore::DeprecationWarning:pydantic.*",
    "ignore::pydantic.PydanticDeprecatedSince20",
)

Chat = Callable[..., Any]
EXAMPLES = Path(__file__).parent.parent.parent / "examples"
TWO_PROCESSES = ("register_tools", "resume_group_chat")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/autogen" in str(item.path):
            for each in THEIRS:
                item.add_marker(pytest.mark.filterwarnings(each))


@pytest.fixture(autouse=True, scope="module")
def no_litter() -> Iterator[None]:
    """AutoGen never closes its model clients: their sockets are swept up here, before they warn in another's test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(autouse=True, scope="session")
def one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """AutoGen makes a client for every registered tool, and each reads all certificates of the world: one is enough."""
    end = "-----END CERTIFICATE-----\n"
    path = tmp_path_factory.mktemp("certificates") / "one.pem"
    path.write_text(certifi.contents().split(end)[0] + end, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(path))
        yield


@pytest.fixture(autouse=True, scope="session")
def started(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Popen[str]]]:
    """The examples that begin a second process, begun before all tests: importing AutoGen is most of what they do."""
    wanted = [name for name in TWO_PROCESSES if any(f"promises[{name}]" in item.name for item in request.session.items)]
    home = tmp_path_factory.mktemp("examples")
    settings = {**os.environ, "KRONMEM_HOME": str(home), "PYTHONPATH": str(EXAMPLES.parent)}
    running = {
        name: Popen(
            [sys.executable, f"{EXAMPLES}/{name}.py"], stdout=PIPE, stderr=PIPE, text=True, env=settings, cwd=home
        )
        for name in wanted
    }
    yield running
    for example in running.values():
        example.kill()
        example.communicate()


@pytest.fixture
def client() -> Iterator[Client]:
    with Client.local(":memory:") as client:
        yield client


@pytest.fixture
def memory(client: Client) -> AgentMemory:
    return client.agent("ann")


def sync_chat(sender: Any, recipient: Any, message: Any, **options: Any) -> Any:
    return sender.initiate_chat(recipient, message=message, silent=True, **options)


def async_chat(sender: Any, recipient: Any, message: Any, **options: Any) -> Any:
    return asyncio.run(sender.a_initiate_chat(recipient, message=message, silent=True, **options))


@pytest.fixture(params=[sync_chat, async_chat], ids=["sync", "async"])
def chat(request: pytest.FixtureRequest) -> Chat:
    """Begins a chat in one of AutoGen's two ways, and waits for its end."""
    return request.param  # type: ignore[no-any-return]
