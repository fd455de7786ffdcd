"""A model that answers as scripted and keeps every prompt, and the question of which prompts hold a block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agent_framework import (
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)

from kronmem.packs.block import is_block

Answer = str | tuple[str, dict[str, Any]] | Exception
Script = Callable[[Sequence[Message]], Answer]


class Scripted(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """Answers from a list or by a function; a tuple calls a tool, an exception is raised."""

    def __init__(self, *answers: Answer, script: Script | None = None) -> None:
        super().__init__()
        self.answers, self.script = list(answers), script
        self.prompts: list[list[Message]] = []
        self.tools: list[list[str]] = []
        self.systems: list[list[str]] = []

    def _inner_get_response(self, *, messages: Sequence[Message], stream: bool, options: Any, **_: Any) -> Any:
        self.prompts.append(list(messages))
        self.systems.append([options["instructions"]] if options.get("instructions") else [])
        self.tools.append([tool.name for tool in options.get("tools") or []])
        answer = self.script(messages) if self.script else self.answers.pop(0)
        if stream:

            async def updates() -> Any:
                yield ChatResponseUpdate(role="assistant", contents=contents(answer))

            return ResponseStream(updates(), finalizer=ChatResponse.from_updates)

        async def reply() -> Any:
            return ChatResponse(messages=[Message("assistant", contents(answer))])

        return reply()


def contents(answer: Answer) -> list[Content]:
    if isinstance(answer, Exception):
        raise answer
    if isinstance(answer, str):
        return [Content.from_text(answer)]
    return [Content.from_function_call(call_id=f"call-{answer[0]}", name=answer[0], arguments=answer[1])]


def blocks(prompt: Sequence[Message]) -> list[str]:
    """The injected blocks of a prompt."""
    return [message.text for message in prompt if is_block(message.text)]


def words(prompt: Sequence[Message]) -> list[str]:
    """Role and text of the messages, blocks as one word, tool calls and results by their kind."""
    shown = (
        "BLOCK" if is_block(one.text) else one.text or "/".join(part.type for part in one.contents) for one in prompt
    )
    return [f"{one.role}: {text}" for one, text in zip(prompt, shown, strict=True)]


def results(prompt: Sequence[Message]) -> list[str]:
    """The answers of tools in a prompt."""
    return [str(part.result) for one in prompt for part in one.contents if part.type == "function_result"]
