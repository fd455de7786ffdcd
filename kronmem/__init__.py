"""kronmem: durable memory for AutoGen agents."""

from kronmem.async_client import AsyncClient
from kronmem.client import Client
from kronmem.core.exchange import Retry
from kronmem.errors import (
    AuthError,
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
)
from kronmem.extract import extract_facts
from kronmem.models import AgentInfo, DeadLetter, Health, Hit, Memory, Session
from kronmem.outbox import AsyncOutbox, Outbox
from kronmem.redact import redact_secrets
from kronmem.scope import AgentMemory, AsyncAgentMemory
from kronmem.settings import InsecureUrlWarning
from kronmem.state import AsyncState, State
from kronmem.tools import MemoryTools, memory_tools

__all__ = [
    "AgentInfo",
    "AgentMemory",
    "AsyncAgentMemory",
    "AsyncClient",
    "AsyncOutbox",
    "AsyncState",
    "AuthError",
    "Client",
    "ConfigError",
    "ConflictError",
    "DeadLetter",
    "DeadlineError",
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
    "extract_facts",
    "memory_tools",
    "redact_secrets",
]
