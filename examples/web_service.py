"""A web service with one assistant for all its users: a ContextVar says whose turn it is, the answer is streamed.

Starlette here; in FastAPI the same function stands under `@app.post("/chats/{session}")`. Offline: the model is
scripted. To serve it: `uvicorn web_service:app`, and `curl -N -H 'X-User: ada' -d 'I am vegan.' http://127.0.0.1:8000/chats/1`.
"""

import asyncio
from collections.abc import AsyncIterator
from contextvars import ContextVar

import httpx
from agent_framework import Agent
from scripted_client import ScriptedClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from kronmem import AsyncClient
from kronmem.agent_framework import KronmemContextProvider, KronmemHistoryProvider

current_user: ContextVar[str] = ContextVar("current_user")
client = AsyncClient("sqlite://")  # yours: AsyncClient("https://…"); nothing is opened before the first call
providers = [
    KronmemHistoryProvider(current_user.get, client=client),
    KronmemContextProvider(current_user.get, client=client),
]
assistant = Agent(client=ScriptedClient(), name="assistant", context_providers=providers)


async def answer(user: str, session_id: str, words: str) -> AsyncIterator[str]:
    current_user.set(user)  # here, where the run is iterated: memory asks in every step whose it is
    session = assistant.create_session(session_id=session_id)
    async for update in assistant.run(words, session=session, stream=True):
        yield update.text


async def chat(request: Request) -> StreamingResponse:
    user = request.headers["x-user"]  # yours: of a checked session or token, never of the body
    words = (await request.body()).decode()
    return StreamingResponse(answer(user, request.path_params["session"], words), media_type="text/plain")


app = Starlette(routes=[Route("/chats/{session}", chat, methods=["POST"])])


async def main() -> None:
    async with client, httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://service") as browser:

        async def say(user: str, session: str, words: str) -> str:
            answered = await browser.post(f"/chats/{session}", content=words, headers={"X-User": user})
            return f"{user}, {session}: {answered.text}"

        users = {"ada": "I am vegan.", "bob": "I am allergic to peanuts.", "eve": "Good morning!"}
        print(*await asyncio.gather(*(say(user, "hello", words) for user, words in users.items())), sep="\n")
        print(*await asyncio.gather(*(say(user, "lunch", "What may I eat?") for user in users)), sep="\n")


if __name__ == "__main__":
    asyncio.run(main())
