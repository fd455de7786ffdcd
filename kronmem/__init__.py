"""kronmem: durable memory for AutoGen agents. Names are loaded when they are first used."""

import importlib
import typing

if typing.TYPE_CHECKING:
    from kronmem.agent_memory import AgentMemory
    from kronmem.async_agent_memory import AsyncAgentMemory
    from kronmem.async_client import AsyncClient
    from kronmem.async_state import AsyncState as AsyncState
    from kronmem.client import Client
    from kronmem.core.policy import Retry
    from kronmem.errors import (
        AuthError,
        ConfigError,
        ConflictError,
        DeadlineError,
        FanOutError,
        InvalidInputError,
        KronmemError,
        NotFoundError,
        QuotaError,
        RateLimitError,
        StatusError,
        TransportError,
        UnsupportedError,
    )
    from kronmem.errors import CertificateError as CertificateError
    from kronmem.errors import InvalidRequestError as InvalidRequestError
    from kronmem.errors import OutboxFullError as OutboxFullError
    from kronmem.errors import ReplyError as ReplyError
    from kronmem.errors import ServerError as ServerError
    from kronmem.errors import StoreError as StoreError
    from kronmem.errors import UnavailableError as UnavailableError
    from kronmem.models import AgentInfo, Health, Hit, Memory, Session
    from kronmem.models import DeadLetter as DeadLetter
    from kronmem.models import Erasure as Erasure
    from kronmem.models import Explanation as Explanation
    from kronmem.models import QueuedMemory as QueuedMemory
    from kronmem.outbox.async_outbox import AsyncOutbox as AsyncOutbox
    from kronmem.outbox.outbox import Outbox as Outbox
    from kronmem.settings import InsecureUrlWarning as InsecureUrlWarning
    from kronmem.state import State as State
    from kronmem.text.extract import Fact, extract_facts
    from kronmem.text.fence import render_hits
    from kronmem.text.redact import redact_secrets
    from kronmem.tools import MemoryTools as MemoryTools
    from kronmem.tools import memory_tools

__all__ = [
    "AgentInfo",
    "AgentMemory",
    "AsyncAgentMemory",
    "AsyncClient",
    "AuthError",
    "Client",
    "ConfigError",
    "ConflictError",
    "DeadlineError",
    "Fact",
    "FanOutError",
    "Health",
    "Hit",
    "InvalidInputError",
    "KronmemError",
    "Memory",
    "NotFoundError",
    "QuotaError",
    "RateLimitError",
    "Retry",
    "Session",
    "StatusError",
    "TransportError",
    "UnsupportedError",
    "extract_facts",
    "memory_tools",
    "redact_secrets",
    "render_hits",
]

_WHERE = {
    "AsyncClient": "async_client",
    "Client": "client",
    "Retry": "core.policy",
    "AuthError": "errors",
    "CertificateError": "errors",
    "ConfigError": "errors",
    "ConflictError": "errors",
    "DeadlineError": "errors",
    "FanOutError": "errors",
    "InvalidInputError": "errors",
    "InvalidRequestError": "errors",
    "KronmemError": "errors",
    "NotFoundError": "errors",
    "OutboxFullError": "errors",
    "QuotaError": "errors",
    "RateLimitError": "errors",
    "ReplyError": "errors",
    "ServerError": "errors",
    "StatusError": "errors",
    "StoreError": "errors",
    "TransportError": "errors",
    "UnavailableError": "errors",
    "UnsupportedError": "errors",
    "Fact": "text.extract",
    "extract_facts": "text.extract",
    "AgentInfo": "models",
    "DeadLetter": "models",
    "Erasure": "models",
    "Explanation": "models",
    "Health": "models",
    "Hit": "models",
    "Memory": "models",
    "QueuedMemory": "models",
    "Session": "models",
    "AsyncOutbox": "outbox.async_outbox",
    "Outbox": "outbox.outbox",
    "redact_secrets": "text.redact",
    "render_hits": "text.fence",
    "AgentMemory": "agent_memory",
    "AsyncAgentMemory": "async_agent_memory",
    "InsecureUrlWarning": "settings",
    "AsyncState": "async_state",
    "State": "state",
    "MemoryTools": "tools",
    "memory_tools": "tools",
}
_MODULES = ("errors", "models")
_IN_PACKS = {
    **dict.fromkeys(("attach_memory", "register_memory", "persisted_chat", "MemoryAgent"), "autogen"),
    "KronMemory": "agentchat",
    "KronmemPlugin": "ag2",
    "KronmemContextProvider": "agent_framework",
}


def __getattr__(name: str) -> object:
    if name in _WHERE:
        value = globals()[name] = getattr(importlib.import_module(f"kronmem.{_WHERE[name]}"), name)
        return value
    if name in _MODULES:
        return importlib.import_module(f"kronmem.{name}")
    if name in _IN_PACKS:
        raise ImportError(f"{name} is in its pack: from kronmem.{_IN_PACKS[name]} import {name}")
    raise AttributeError(f"module 'kronmem' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
