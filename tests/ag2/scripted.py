"""A model that answers as scripted and keeps every prompt, and the question of which prompts hold a block."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ag2.config import ModelConfig
from ag2.events import (
    BaseEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextInput,
    ToolCallEvent,
    ToolCallsEvent,
    ToolResultsEvent,
)
from ag2.testing import TestConfig

from kronmem.packs.block import is_block

Answer = str | tuple[str, dict[str, Any]] | Exception
Script = Callable[[Sequence[BaseEvent]], Answer]


class Scripted(TestConfig):
    """Answers from a list or by a function, one client for all turns; a tuple calls a tool, an exception is raised."""

    __test__ = False

    def __init__(self, *answers: Answer, script: Script | None = None) -> None:
        super().__init__()
        self.answers, self.script = list(answers), script
        self.prompts: list[list[BaseEvent]] = []
        self.schemas: list[list[Any]] = []
        self.systems: list[list[str]] = []

    @property
    def tools(self) -> list[list[str]]:
        """The names of the tools of each prompt."""
        return [[schema.function.name for schema in schemas] for schemas in self.schemas]

    def create(self) -> Any:
        return self._answer

    def copy(self, **_: Any) -> ModelConfig:
        return self

    async def _answer(self, messages: Sequence[BaseEvent], context: Any, **options: Any) -> ModelResponse:
        self.prompts.append(list(messages))
        self.systems.append(list(context.prompt))
        self.schemas.append(list(options.get("tools") or []))
        answer = self.script(messages) if self.script else self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, tuple):
            call = ToolCallEvent(name=answer[0], arguments=json.dumps(answer[1]))
            return ModelResponse(tool_calls=ToolCallsEvent([call]))
        message = ModelMessage(answer)
        await context.send(message)
        return ModelResponse(message)


def text(event: BaseEvent) -> str:
    """The words of a request or an answer, the kind of any other event."""
    if isinstance(event, ModelRequest):
        return " ".join(part.content for part in event.parts if isinstance(part, TextInput))
    if isinstance(event, ModelResponse) and event.message is not None:
        return event.message.content
    return type(event).__name__


def blocks(prompt: Sequence[BaseEvent]) -> list[str]:
    """The injected blocks of a prompt."""
    return [text(event) for event in prompt if is_block(text(event))]


def words(prompt: Sequence[BaseEvent]) -> list[str]:
    """The conversation in a prompt, blocks as one word."""
    kept = [event for event in prompt if isinstance(event, (ModelRequest, ModelResponse, ToolResultsEvent))]
    return ["BLOCK" if is_block(text(event)) else text(event) for event in kept]


def results(prompt: Sequence[BaseEvent]) -> list[str]:
    """The answers of tools in a prompt."""
    found = [result for event in prompt if isinstance(event, ToolResultsEvent) for result in event.results]
    return [" ".join(part.content for part in result.result.parts if isinstance(part, TextInput)) for result in found]
