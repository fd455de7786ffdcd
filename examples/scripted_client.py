"""A model for Agent Framework that needs no key and no network: it answers with the newest note in its prompt.

With a real model, pass `OpenAIChatClient(…)` of `agent_framework.openai` to the agent instead; nothing else changes.
"""

import re
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


class ScriptedClient(FunctionInvocationLayer, BaseChatClient):
    def _inner_get_response(self, *, messages: list[Message], stream: bool, **_: Any) -> Any:
        blocks = [one.text for one in messages if one.text.startswith("<memory")]
        notes = [line.partition(") ")[2] for line in blocks[-1].splitlines()[2:-1]] if blocks else []
        answer = f"I know: {'; '.join(notes)}" if notes else f"This is message {len(messages)} of our session."
        if stream:
            return ResponseStream(self._words(answer), finalizer=ChatResponse.from_updates)
        return self._whole(answer)

    async def _whole(self, answer: str) -> ChatResponse:
        return ChatResponse(messages=[Message("assistant", [answer])])

    async def _words(self, answer: str) -> Any:
        for word in re.findall(r"\S+\s*", answer):
            yield ChatResponseUpdate(role="assistant", contents=[Content.from_text(word)])
