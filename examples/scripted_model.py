"""A model for the AutoGen examples that needs no key and no network: an OpenAI-compatible server around a function.

The function gets the messages of a request and answers with a text, or with a tool's name and its arguments.
With a real model, pass your own `llm_config` to the agents instead; nothing else changes.
"""

import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Script = Callable[[list[dict]], str | tuple[str, dict]]


def reply(answer: str | tuple[str, dict]) -> dict:
    if isinstance(answer, str):
        message = {"role": "assistant", "content": answer}
    else:
        function = {"name": answer[0], "arguments": json.dumps(answer[1])}
        call = {"id": f"call-{abs(hash(answer[0]))}", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "x", "choices": [choice], "usage": usage}


def repeats_notes(messages: list[dict]) -> str:
    """A script that repeats the first note it is shown, if it is shown any."""
    blocks = [one["content"] for one in messages if (one["content"] or "").startswith("<memory")]
    return f"My notes say: {blocks[-1].splitlines()[2].partition(') ')[2]}" if blocks else "I have no notes about that."


def looks_up(messages: list[dict]) -> str | tuple[str, dict]:
    """A script that recalls by the question, and repeats what it found."""
    last = messages[-1]
    return last["content"].rpartition("] ")[2] if last["role"] == "tool" else ("recall", {"query": last["content"]})


@contextmanager
def scripted_model(script: Script, quiet: bool = True) -> Iterator[dict]:
    """Serve the script on this machine; the value is an `llm_config`. `quiet` drops what AutoGen prints meanwhile."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            try:
                status, body = 200, reply(script(request["messages"]))
            except Exception as error:  # noqa: BLE001 -- scripts may fail in any way; a model answers with a status
                status, body = 400, {"error": {"message": str(error)}}
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    printing = redirect_stdout(io.StringIO()) if quiet else nullcontext()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, printing:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        entry = {"model": "x", "api_key": "none", "base_url": f"http://127.0.0.1:{server.server_port}", "price": [0, 0]}
        yield {"config_list": [entry], "cache_seed": None}
        server.shutdown()
