"""Memory for classic AutoGen (`from autogen import ConversableAgent`): tools, teams, hooks, resumed chats.

Works from pyautogen 0.2.35 to autogen 0.14; without it, importing this names the package to install.
"""

from kronmem.autogen.agent import MemoryAgent, prime
from kronmem.autogen.attach import Attachment, attach_memory
from kronmem.autogen.chats import (
    persisted_chat,
    persisted_group_chat,
    resume_chat,
    resume_group_chat,
    save_chat,
    save_group_chat,
)
from kronmem.autogen.register import register_memory, register_team_memory, unregister_memory

__all__ = [
    "Attachment",
    "MemoryAgent",
    "attach_memory",
    "persisted_chat",
    "persisted_group_chat",
    "prime",
    "register_memory",
    "register_team_memory",
    "resume_chat",
    "resume_group_chat",
    "save_chat",
    "save_group_chat",
    "unregister_memory",
]
