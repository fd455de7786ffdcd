"""An OpenAI-compatible chat-completions server whose model is a function of the test: request → what it answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.services.loopback import Connection, Loopback, Recorded

JSON = {"content-type": "application/json"}
EVENTS = {"content-type": "text/event-stream", "connection": "close"}
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


@dataclass(frozen=True)
class ToolCall:
    """The model asks for a function; make it with `call`."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """The model answers with an error status instead."""

    status: int


Answer = str | ToolCall | list[ToolCall] | Failure
Model = Callable[[dict[str, Any]], Answer]


def call(name: str, /, **arguments: Any) -> ToolCall:
    """Ask for one function call."""
    return ToolCall(name, arguments)


class OpenAIServer(Loopback):
    """Answers `/v1/chat/completions`, plain or streamed; every request body is kept in `bodies`, in order."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        self._called = 0

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What was asked, as parsed JSON."""
        return [request.body for request in self.requests if isinstance(request.body, dict)]

    @property
    def prompts(self) -> list[list[dict[str, Any]]]:
        """The messages of every request."""
        return [body["messages"] for body in self.bodies]

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as its base URL."""
        return f"{self.url}/v1"

    def llm_config(self, **more: Any) -> dict[str, Any]:
        """A configuration for classic AutoGen agents, without its reply cache on disk."""
        entry = {"model": "scripted", "api_key": "none", "base_url": self.base_url, "price": [0, 0]}
        return {"config_list": [entry], "cache_seed": None, **more}

    def serve(self, connection: Connection, request: Recorded) -> None:
        """Ask the model and send its answer."""
        body = request.body
        if request.path != "/v1/chat/completions" or not isinstance(body, dict):
            return _send(connection, 404, {"error": {"message": "no such route"}})
        answer = self.model(body)
        if isinstance(answer, Failure):
            return _send(connection, answer.status, {"error": {"message": "as scripted", "type": "scripted"}})
        message = self._message(answer)
        if body.get("stream"):
            return _stream(connection, message)
        choice = {"index": 0, "message": message, "finish_reason": _reason(message), "logprobs": None}
        return _send(connection, 200, {**_head("chat.completion"), "choices": [choice], "usage": USAGE})

    def _message(self, answer: str | ToolCall | list[ToolCall]) -> dict[str, Any]:
        if isinstance(answer, str):
            return {"role": "assistant", "content": answer}
        calls = answer if isinstance(answer, list) else [answer]
        return {"role": "assistant", "content": None, "tool_calls": [self._tool_call(one) for one in calls]}

    def _tool_call(self, wanted: ToolCall) -> dict[str, Any]:
        with self.lock:
            self._called += 1
            number = self._called
        function = {"name": wanted.name, "arguments": json.dumps(wanted.arguments)}
        return {"id": f"call_{number}", "type": "function", "function": function}


def _head(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1_700_000_000, "model": "scripted"}


def _reason(message: dict[str, Any]) -> str:
    return "tool_calls" if "tool_calls" in message else "stop"


def _send(connection: Connection, status: int, body: object) -> None:
    data = json.dumps(body).encode()
    connection.send(status, {**JSON, "content-length": str(len(data))}, data)


def _stream(connection: Connection, message: dict[str, Any]) -> None:
    connection.send(200, EVENTS, b"".join(_events(message)))
    connection.close()


def _events(message: dict[str, Any]) -> Iterator[bytes]:
    calls = [{"index": at, **one} for at, one in enumerate(message.get("tool_calls", []))]
    delta = {**message, "tool_calls": calls} if calls else message
    for choice in ({"delta": delta, "finish_reason": None}, {"delta": {}, "finish_reason": _reason(message)}):
        chunk = {**_head("chat.completion.chunk"), "choices": [{"index": 0, **choice}], "usage": None}
        yield b"data: %s\n\n" % json.dumps(chunk).encode()
    yield b"data: %s\n\n" % json.dumps({**_head("chat.completion.chunk"), "choices": [], "usage": USAGE}).encode()
    yield b"data: [DONE]\n\n"
