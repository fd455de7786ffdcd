"""kronmem: durable memory for AutoGen agents. Names are loaded when they are first used."""

import importlib
import typing

if typing.TYPE_CHECKING:
    from kronmem.agent_memory import AgentMemory
    from kronmem.async_agent_memory import AsyncAgentMemory
    from kronmem.async_client import AsyncClient
    from kronmem.async_state import AsyncState
    from kronmem.client import Client
    from kronmem.core.policy import Retry
    from kronmem.errors import (
        AuthError,
        CertificateError,
        ConfigError,
        ConflictError,
        DeadlineError,
        FanOutError,
        InvalidInputError,
        InvalidRequestError,
        KronmemError,
        NotFoundError,
        OutboxFullError,
        QuotaError,
        RateLimitError,
        ReplyError,
        ServerError,
        StatusError,
        StoreError,
        TransportError,
        UnavailableError,
        UnsupportedError,
    )
    from kronmem.models import AgentInfo, DeadLetter, Erasure, Explanation, Health, Hit, Memory, QueuedMemory, Session
    from kronmem.outbox.async_outbox import AsyncOutbox
    from kronmem.outbox.outbox import Outbox
    from kronmem.settings import InsecureUrlWarning
    from kronmem.state import State
    from kronmem.text.extract import Fact, extract_facts
    from kronmem.text.fence import render_hits
    from kronmem.text.redact import redact_secrets
    from kronmem.tools import MemoryTools, memory_tools

__all__ = [
    "AgentInfo",
    "AgentMemory",
    "AsyncAgentMemory",
    "AsyncClient",
    "AsyncOutbox",
    "AsyncState",
    "AuthError",
    "CertificateError",
    "Client",
    "ConfigError",
    "ConflictError",
    "DeadLetter",
    "DeadlineError",
    "Erasure",
    "Explanation",
    "Fact",
    "FanOutError",
    "Health",
    "Hit",
    "InsecureUrlWarning",
    "InvalidInputError",
    "InvalidRequestError",
    "KronmemError",
    "Memory",
    "MemoryTools",
    "NotFoundError",
    "Outbox",
    "OutboxFullError",
    "QueuedMemory",
    "QuotaError",
    "RateLimitError",
    "ReplyError",
    "Retry",
    "ServerError",
    "Session",
    "State",
    "StatusError",
    "StoreError",
    "TransportError",
    "UnavailableError",
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


def __getattr__(name: str) -> object:
    if name in _WHERE:
        value = globals()[name] = getattr(importlib.import_module(f"kronmem.{_WHERE[name]}"), name)
        return value
    if name in _MODULES:
        return importlib.import_module(f"kronmem.{name}")
    raise AttributeError(f"module 'kronmem' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
