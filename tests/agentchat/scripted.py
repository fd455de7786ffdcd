"""Models that answer as scripted and keep every prompt; and what the tests ask of prompts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from autogen_core import FunctionCall
from autogen_core.models import CreateResult, LLMMessage, ModelInfo, RequestUsage, UserMessage
from autogen_ext.models.replay import ReplayChatCompletionClient

from kronmem.text.fence import is_fenced


def info(*, single_system: bool = False, json_output: bool = True) -> ModelInfo:
    return ModelInfo(
        vision=False,
        function_calling=True,
        json_output=json_output,
        family="unknown",
        structured_output=False,
        multiple_system_messages=not single_system,
    )


class Scripted(ReplayChatCompletionClient):
    """A replayed model; `prompts` holds what it was asked, message by message."""

    def __init__(self, *answers: str | CreateResult, **options: Any) -> None:
        super().__init__(answers, model_info=info(**options))
        self.prompts: list[list[LLMMessage]] = []

    async def create(self, messages: Sequence[LLMMessage], **options: Any) -> CreateResult:
        self.prompts.append(list(messages))
        return await super().create(messages, **options)


def call(name: str, **arguments: Any) -> CreateResult:
    """A model that asks for a tool."""
    return CreateResult(
        finish_reason="function_calls",
        content=[FunctionCall(id="call-1", name=name, arguments=json.dumps(arguments))],
        usage=RequestUsage(prompt_tokens=0, completion_tokens=0),
        cached=False,
    )


def blocks(messages: Sequence[LLMMessage]) -> list[str]:
    """The injected memory blocks among the messages."""
    return [
        one.content
        for one in messages
        if isinstance(one, UserMessage) and isinstance(one.content, str) and is_fenced(one.content)
    ]


def kinds(messages: Sequence[object]) -> list[str]:
    return [type(one).__name__ for one in messages]
