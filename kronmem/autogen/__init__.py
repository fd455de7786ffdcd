"""Memory for classic AutoGen (`from autogen import ConversableAgent`): tools, teams, hooks, resumed chats.

Works from pyautogen 0.2.35 to autogen 0.14; without it, importing this names the package to install.
"""

from kronmem.autogen.agent import MemoryAgent
from kronmem.autogen.attach import Attachment, attach_memory
from kronmem.autogen.chats import Resumed, persisted_chat, persisted_group_chat
from kronmem.autogen.register import register_memory, register_team_memory, unregister_memory

__all__ = [
    "Attachment",
    "MemoryAgent",
    "Resumed",
    "attach_memory",
    "persisted_chat",
    "persisted_group_chat",
    "register_memory",
    "register_team_memory",
    "unregister_memory",
]

_REMOVED = {
    "prime": "MemoryAgent(…, memory_query=…)",
    "resume_chat": "persisted_chat",
    "resume_group_chat": "persisted_group_chat",
    "save_chat": "persisted_chat",
    "save_group_chat": "persisted_group_chat",
}


def __getattr__(name: str) -> object:
    if name in _REMOVED:
        raise ImportError(f"kronmem.autogen.{name} was removed in 0.3: use {_REMOVED[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
