"""Forty specialists asked at once, one of them out of reach: the answers that arrived go into the prompt.

Needs `pip install 'kronmem[server,cli]'`: the memories are at a service of its own.
"""

import asyncio
import socket
import subprocess
import sys

import httpx

from kronmem import AsyncClient, FanOutError, Hit, Retry, render_hits

SPECIALISTS = [f"specialist-{number}" for number in range(40)]
RULES = ["Invoices leave on Mondays", "Passwords expire in May", "Refunds take ten days", "Parcels leave at four"]


class LineIsCut(httpx.AsyncHTTPTransport):
    """The network between here and the service, in which the requests about one agent get lost."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if "specialist-6" in request.url.path or b"specialist-6" in await request.aread():
            raise httpx.ConnectError("the line is cut", request=request)
        return await super().handle_async_request(request)


async def ask(client: AsyncClient, question: str) -> dict[str, list[Hit]]:
    """The hits of every specialist that could be asked."""
    try:
        return await client.recall_across(SPECIALISTS, question, 1, threshold=0.3)
    except FanOutError as error:
        for agent, cause in error.causes.items():
            print(f"{agent}: {type(cause).__name__}")
        return error.partial


async def main(url: str) -> None:
    async with AsyncClient(url) as client:
        while not (await client.health()).ok:
            await asyncio.sleep(0.05)
        for number, agent in enumerate(SPECIALISTS):
            await client.remember_many(agent, [RULES[number % len(RULES)], f"Desk {number} is free on Fridays"])
    async with LineIsCut() as line, AsyncClient(url, transport=line, retry=Retry(attempts=1)) as client:
        found = await ask(client, "How long do refunds take?")
    print(len(found), "answered,", sum(map(bool, found.values())), "know something")
    print(render_hits(found, source="specialists", max_chars=400))


if __name__ == "__main__":
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "kronmem", "serve", "--quiet", "--port", str(port), "--db", "sqlite://"]
    service = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        asyncio.run(main(f"http://127.0.0.1:{port}"))
    finally:
        service.kill()
        service.wait()
