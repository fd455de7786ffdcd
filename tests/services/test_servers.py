"""Hold the test servers to the recordings, and the scripted one to its word."""

from __future__ import annotations

import itertools
import json
import re
import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from tests.services import KronvexServer, RawServer, Reply, TutorialServer, raw

pytestmark = pytest.mark.slow  # they change when the recordings do, not when kronmem does

SAMPLES = Path(__file__).parent.parent / "samples"
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# These need memories whose storing was not recorded whole, or a consolidation at the recorder's similarities.
UNPLAYABLE = re.compile("blog.recall_as_documented|supcons.(old_id|restore)|supmany.remember|auto50.search")
# Recalls of these do not depend on the recorder's made-up similarities.
WALKED = 293
"""So many recordings are of its routes, whole, and of keys that the server plays."""
EXACT = ("graph", "supersede", "dedup", "score", "ttl", "order")
VALUES = ("memory_type", "session_id", "metadata", "pinned", "deduplicated", "superseded", "conflicts_resolved")


@cache
def samples() -> list[dict[str, Any]]:
    """All recorded exchanges, in order."""
    return json.loads((SAMPLES / "kronvex.json").read_text())


def replayable(sample: dict[str, Any]) -> bool:
    """Whether the server has the route and the sample has the whole request."""
    request, status = sample["request"], sample["response"]["status"]
    whole = not re.search("trimmed|more items|in parallel|x3 through|OPTIONS", json.dumps(request))
    whole = whole and not UNPLAYABLE.match(sample["name"])
    segments = unquote(request["path"].partition("?")[0]).split("/")
    ours = any(route.match(segments) is not None for route in KronvexServer.routes)
    key = request["headers"].get("X-API-Key", "<redacted>")
    mine = key in ("<ent key>", "<ent2 key>", "<other key>", "<redacted>")
    refused = sample["response"]["json"] == {"detail": "Not Found"} or status in (307, 401)
    return whole and mine and (ours or refused) and not request["path"].startswith(("/auth", "/billing"))


class Replay:
    """Sends the recorded requests to a server, its ids in place of the recorded ones."""

    def __init__(self, server: KronvexServer) -> None:
        self.server = server
        self.client = httpx.Client(base_url=server.url, timeout=60)
        self.ids: dict[str, str] = {}
        self.keys = {"<ent key>": server.key, "<ent2 key>": server.other_key, "<other key>": "kv-no"}

    def play(self, sample: dict[str, Any]) -> httpx.Response | httpx.TransportError | None:
        """Do what the recorder did before a sample, then send it if we can."""
        BEFORE.get(sample["name"], lambda _replay: None)(self)
        return self.send(sample) if replayable(sample) else None

    def send(self, sample: dict[str, Any]) -> httpx.Response | httpx.TransportError | None:
        """The answer to one sample, the error of its connection, or None when it needs what was not recorded."""
        request = sample["request"]
        if sample["response"]["status"] in (200, 201):
            self.make_agent(request)
        try:
            answer = self.client.request(request["method"], self.localised(request["path"]), **self.parts(request))
        except httpx.TransportError as error:
            return error
        if answer.is_success and answer.content:
            self.learn(sample["response"]["json"], answer.json())
        return answer

    def make_agent(self, request: dict[str, Any]) -> None:
        """Make the agent of a request if its making was not recorded."""
        found = re.match(f"/api/v1/agents/({UUID.pattern})", request["path"])
        if found and found.group(1) not in self.ids:
            headers = self.parts(request)["headers"]
            made = self.client.post("/api/v1/agents", json={"name": "unrecorded"}, headers=headers)
            self.ids[found.group(1)] = made.json()["id"]

    def parts(self, request: dict[str, Any]) -> dict[str, Any]:
        """Headers and body as they were sent."""
        headers = {name: self.keys.get(value, "") for name, value in request["headers"].items()}
        if "Content-Type" in headers:
            headers["Content-Type"] = request["headers"]["Content-Type"]
            return {"headers": headers, "content": request["json"]}
        if request["json"] is None:
            return {"headers": headers}
        return {"headers": headers, "json": json.loads(self.localised(json.dumps(request["json"])))}

    def localised(self, text: str) -> str:
        """A text with the ids of this server."""
        text = UUID.sub(lambda match: self.ids.get(match.group(), match.group()), text)
        return re.sub(r"\b[0-9A-F]{32}\b", lambda match: self.undashed(match.group()), text)

    def undashed(self, digits: str) -> str:
        """Our id for a recorded one in capitals without dashes."""
        return self.ids[str(uuid.UUID(digits))].replace("-", "").upper()

    def learn(self, recorded: Any, answered: Any) -> None:
        """Note which id of ours stands for which recorded one."""
        if isinstance(recorded, dict) and isinstance(answered, dict):
            if recorded.get("content") == answered.get("content") and "id" in recorded and "id" in answered:
                self.ids.setdefault(recorded["id"], answered["id"])
            for name in recorded.keys() & answered.keys():
                self.learn(recorded[name], answered[name])
        elif isinstance(recorded, list) and isinstance(answered, list) and len(recorded) == len(answered):
            for one, other in zip(recorded, answered, strict=True):
                self.learn(one, other)

    def row(self, content: str) -> Any:
        """The row with this text."""
        return next(row for agent in self.server.agents for row in agent.rows if row.content == content)


def expire(replay: Replay) -> None:
    """End a memory, as the recorder did."""
    replay.row("Quarterly umbrella auction begins tonight").expires_at = datetime(2020, 1, 1, tzinfo=UTC)


def sweep(replay: Replay) -> None:
    """Remove the expired memory, as the hourly sweep does."""
    replay.row("Quarterly umbrella auction begins tonight").deleted = True


def age(replay: Replay) -> None:
    """Make a memory a hundred days old, as the recorder did."""
    row = replay.row("quasar telescope calibration manual")
    row.created_at -= timedelta(days=100)
    row.memory_type, row.access_count = "context", 0


def recall_often(replay: Replay) -> None:
    """Count the recalls that were made and not recorded."""
    replay.row("quasar telescope calibration manual").access_count = 11


BEFORE = {
    "score.recall_11": recall_often,
    "ttl.expired_get_list": expire,
    "ttl.cleanup_admin": sweep,
    "score.aged_100_days_context": age,
}
WALK = [sample for sample in samples() if replayable(sample)]


@pytest.fixture(scope="module")
def answers() -> Iterator[dict[str, Any]]:
    """Every replayed sample by name, with what our server said."""
    with KronvexServer() as server:
        replay = Replay(server)
        with replay.client:
            yield {sample["name"]: replay.play(sample) for sample in samples()}


def test_most_of_the_recordings_are_replayed() -> None:
    assert (len(samples()), len(WALK)) == (410, WALKED)


@pytest.mark.parametrize("name", ["kronvex", "botwire", "memstore"])
def test_the_samples_hold_no_keys_and_no_paths_of_a_machine(name: str) -> None:
    text = (SAMPLES / f"{name}.json").read_text()
    assert not re.search(r"kv-(?!x{9}\.\.\.)\w{6}|am_live_\w|/home/|/tmp/|/root/|/Users/|site-packages", text)


@pytest.mark.parametrize("sample", WALK, ids=[sample["name"] for sample in WALK])
def test_the_server_answers_as_recorded(answers: dict[str, Any], sample: dict[str, Any]) -> None:
    answer, recorded = answers[sample["name"]], sample["response"]
    if recorded["status"] is None:
        assert isinstance(answer, httpx.ReadError)
        return
    assert answer.status_code == recorded["status"]
    assert {"x-dedup-hit", "allow", "retry-after"} & set(recorded["headers"]) <= set(answer.headers)
    body = answer.json() if answer.content else None
    if recorded["status"] >= 400:
        assert body == recorded["json"]
    else:
        assert shape(body) == shape(recorded["json"])
        assert values(body, sample) == values(recorded["json"], sample)


def shape(value: Any) -> Any:
    """The keys of a reply, in order, without its data."""
    if isinstance(value, dict):
        return [(name, None if name == "metadata" else shape(inner)) for name, inner in value.items()]
    if isinstance(value, list):
        return [shape(inner) for inner in value[:1]]
    return None


def values(body: Any, sample: dict[str, Any]) -> Any:
    """The values of a reply that do not depend on ids, clocks and made-up similarities."""
    if not isinstance(body, dict):
        return None
    if "results" in body:
        if sample["name"].partition(".")[0] not in EXACT:
            return None
        return [hit_values(hit) for hit in body["results"]]
    return {name: body[name] for name in VALUES if name in body} | {"ends": bool(body.get("expires_at"))}


def hit_values(hit: dict[str, Any]) -> tuple[Any, ...]:
    """What can be compared of a hit: the scores only where the similarity is certain."""
    memory, sure = hit["memory"], hit["similarity"] in (0.5, 1.0)
    return memory["content"], memory["session_id"], memory["superseded"], sure and hit["confidence"]


# The switches of the servers


@pytest.fixture
def kronvex() -> Iterator[tuple[KronvexServer, httpx.Client]]:
    """A server with its client."""
    with KronvexServer() as server, client_of(server) as client:
        yield server, client


def client_of(server: KronvexServer | TutorialServer) -> httpx.Client:
    """A client with the right key."""
    return httpx.Client(base_url=server.url, headers={"X-API-Key": server.key}, timeout=60)


def new_agent(client: httpx.Client, name: str = "a") -> str:
    """The path of a new agent."""
    return "/api/v1/agents/" + client.post("/api/v1/agents", json={"name": name}).json()["id"]


def recorded(name: str) -> Any:
    """The recorded response of this name."""
    return next(sample["response"] for sample in samples() if sample["name"] == name)


def test_a_demo_key_is_born_with_the_one_agent_it_allows() -> None:
    with KronvexServer(plan="demo") as server, client_of(server) as client:
        assert [(one["name"], one["memory_count"]) for one in client.get("/api/v1/agents").json()] == [
            ("someone's agent", 0)
        ]
        second = client.post("/api/v1/agents", json={"name": "second"})
    assert (second.status_code, second.json()) == (402, recorded("limit.agent_402")["json"])


@pytest.mark.parametrize(("plan", "agents"), [("free", 1), ("builder", 5), ("unheard of", 1)])
def test_a_plan_allows_so_many_agents(plan: str, agents: int) -> None:
    with KronvexServer(plan=plan) as server, client_of(server) as client:
        made = [client.post("/api/v1/agents", json={"name": f"a{n}"}).status_code for n in range(agents + 1)]
    assert made == [201] * agents + [402]


def test_too_many_recalls_in_a_minute_are_refused_until_the_minute_is_over() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with KronvexServer(plan="demo", rate_limit=2, clock=lambda: now) as server, client_of(server) as client:
        agent = "/api/v1/agents/" + client.get("/api/v1/agents").json()[0]["id"]
        replies = [client.post(agent + "/recall", json={"query": "x"}) for _ in range(3)]
        assert [reply.status_code for reply in replies] == [200, 200, 429]
        assert replies[2].headers["retry-after"] == "60"
        assert shape(replies[2].json()) == shape(recorded("rate.recall_60")["json"])
        assert client.get(agent + "/memories").status_code == 200
        now += timedelta(seconds=61)
        assert client.post(agent + "/recall", json={"query": "x"}).status_code == 200


@pytest.mark.parametrize("word", ["remember", "recall", "inject"])
def test_a_demo_day_is_used_up_by_folded_and_by_failed_requests_too(word: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)

    def clock() -> datetime:
        nonlocal now
        now += timedelta(seconds=2)  # not more than 60 in a minute
        return now

    route = "inject-context" if word == "inject" else word
    field = {"remember": "content", "recall": "query", "inject": "message"}[word]
    with KronvexServer(plan="demo", clock=clock) as server, client_of(server) as client:
        agent = "/api/v1/agents/" + client.get("/api/v1/agents").json()[0]["id"]
        limit = recorded(f"daily.{word}_429")["json"]["detail"]["limit"]
        bodies = [{field: ("FAKE_EMBED_FAIL" if n % 2 else "the same text")} for n in range(limit + 1)]
        said = [client.post(f"{agent}/{route}", json=body) for body in bodies]
    assert [reply.status_code for reply in said[:-1] if reply.status_code == 429] == []
    assert (said[-1].status_code, said[-1].json()) == (429, recorded(f"daily.{word}_429")["json"])
    assert said[-1].headers["retry-after"] == "86400"


def test_the_quotas_of_a_day_and_of_a_plan_are_as_recorded() -> None:
    with KronvexServer(plan="pro", daily_limits={"recall": 0}, memory_limit=3) as server, client_of(server) as client:
        agent = new_agent(client)
        stored = [client.post(agent + "/remember", json={"content": text}) for text in ("one", "two", "three", "four")]
        assert stored[3].json() == recorded("quota.remember_3")["json"]
        recall = client.post(agent + "/recall", json={"query": "x"})
    assert recall.headers["retry-after"] == "86400"
    assert shape(recall.json()) == shape(recorded("daily.recall_429")["json"])


def test_an_expired_memory_is_gone() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with KronvexServer(clock=lambda: now) as server, client_of(server) as client:
        agent = new_agent(client)
        client.post(agent + "/remember", json={"content": "short lived", "ttl_seconds": 60})
        assert client.get(agent + "/memories").json()["total"] == 1
        now += timedelta(seconds=60)
        assert client.get(agent + "/memories").json()["total"] == 0


def test_a_lost_answer_has_done_its_work(kronvex: tuple[KronvexServer, httpx.Client]) -> None:
    server, client = kronvex
    agent = new_agent(client)
    server.lose_next()
    with pytest.raises(httpx.TransportError):
        client.post(agent + "/remember", json={"content": "kept"})
    assert client.get(agent + "/memories").json()["total"] == 1


def test_replies_put_in_by_a_test_come_first(kronvex: tuple[KronvexServer, httpx.Client]) -> None:
    server, client = kronvex
    server.answer_next(Reply(503, {"detail": "busy"}), Reply(502, None))
    assert [client.get("/health").status_code for _ in range(3)] == [503, 502, 200]
    assert [request.path for request in server.requests] == ["/health"] * 3


@pytest.mark.parametrize("form", ["{}", "{{{}}}", "urn:uuid:{}"])
def test_anything_that_reads_as_a_uuid_is_one(kronvex: tuple[KronvexServer, httpx.Client], form: str) -> None:
    server, client = kronvex
    new_agent(client)
    assert client.get("/api/v1/agents/" + form.format(server.agents[0].id)).status_code == 200
    assert client.get("/api/v1/agents/" + form.format(uuid.uuid4())).json() == {"detail": "Agent not found"}


def test_requests_in_flight_are_counted() -> None:
    both = threading.Barrier(2)
    with TutorialServer(on_request=lambda _request: both.wait(5) and None) as server:
        threads = [threading.Thread(target=httpx.get, args=(server.url + "/health",)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert server.most_in_flight == 2


def test_the_tutorial_server_speaks_as_documented() -> None:
    with TutorialServer() as server, client_of(server) as client:
        agent = "/api/v1/agents/autogen-assistant-user123"
        kept = {"content": "User prefers tea", "memory_type": "decision", "session_id": "s"}
        stored = client.post(agent + "/remember", json=kept)
        assert (stored.status_code, stored.json()["memory_type"]) == (201, "decision")
        found = client.post(agent + "/recall", json={"query": "tea", "limit": 5}).json()["memories"]
        assert [(one["content"], one["session_id"]) for one in found] == [("User prefers tea", "s")]
        assert client.post(agent + "/recall", json={"query": "tea", "session_id": "t"}).json() == {"memories": []}
        assert client.post(agent + "/inject-context", json={"query": "tea"}).json() == {"context": "- User prefers tea"}
        assert [one["id"] for one in client.get("/api/v1/agents").json()] == ["autogen-assistant-user123"]
        assert client.get(agent + "/sessions").json() == {"sessions": [{"session_id": "s", "count": 1}]}
        assert client.delete(f"{agent}/memories/{stored.json()['id']}").status_code == 204
        assert client.get(agent + "/memories").json() == {"memories": [], "total": 0}
        assert client.delete(agent + "/memories").json() == {"deleted": 0}
        assert httpx.get(server.url + agent, timeout=60).status_code == 401


# Its habits, each by its name


def test_a_habit_that_does_not_exist_cannot_be_switched_on() -> None:
    with pytest.raises(ValueError, match="no such habit: folds"):
        KronvexServer(habits=["folds"])


def store(client: httpx.Client, agent: str, content: str, **fields: Any) -> Any:
    """The answer to a store."""
    return client.post(agent + "/remember", json={"content": content, "memory_type": "fact", **fields}).json()


@pytest.mark.parametrize("habits", [(), ("folds across sessions",)])
def test_a_text_is_folded_into_another_session(habits: tuple[str, ...]) -> None:
    with KronvexServer(habits=habits) as server, client_of(server) as client:
        agent = new_agent(client)
        store(client, agent, "alpha bravo", session_id="theirs")
        again = store(client, agent, "alpha bravo", session_id="ours")
    assert again["deduplicated"] is bool(habits)
    assert again["session_id"] == ("theirs" if habits else "ours")


@pytest.mark.parametrize("habits", [(), ("folds into dead rows",)])
def test_a_text_is_folded_into_a_superseded_row_and_into_one_that_ran_out(habits: tuple[str, ...]) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with KronvexServer(habits=habits, clock=lambda: now) as server, client_of(server) as client:
        agent = new_agent(client)
        for city in ("Paris", "Berlin"):
            store(client, agent, f"The user lives in {city}")
        again = store(client, agent, "The user lives in Paris")
        assert (again["deduplicated"], again["superseded"]) == (bool(habits), bool(habits))
        store(client, agent, "short lived", ttl_seconds=60)
        now += timedelta(seconds=61)
        assert store(client, agent, "short lived")["deduplicated"] is bool(habits)


@pytest.mark.parametrize("habits", [(), ("supersedes across sessions",)])
def test_a_newer_text_hides_one_of_another_session(habits: tuple[str, ...]) -> None:
    with KronvexServer(habits=habits) as server, client_of(server) as client:
        agent = new_agent(client)
        for session in ("alice", "bob"):
            store(client, agent, f"The user lives in {session} town", session_id=session)
        first = client.get(agent + "/memories?sort=oldest").json()["memories"][0]
    assert first["superseded"] is bool(habits)


@pytest.mark.parametrize("habits", [(), ("graph extras",)])
def test_a_name_in_the_query_adds_memories_past_every_filter(habits: tuple[str, ...]) -> None:
    with KronvexServer(habits=habits) as server, client_of(server) as client:
        agent = new_agent(client)
        store(client, agent, "Billing listens on port eighty", session_id="alice")
        asked = {"query": "What about Billing", "threshold": 0.9, "session_id": "bob"}
        assert client.post(agent + "/recall", json=asked).json()["total_found"] == len(habits)


@pytest.mark.parametrize("habits", [(), ("counts tokens",)])
def test_nine_thousand_cjk_characters_are_too_long_and_32000_latin_ones_are_not(habits: tuple[str, ...]) -> None:
    with KronvexServer(habits=habits) as server, client_of(server) as client:
        agent = new_agent(client)
        cjk = client.post(agent + "/remember", json={"content": "\u8a18" * 9000})
        assert cjk.status_code == (503 if habits else 201)
        assert client.post(agent + "/remember", json={"content": "abcd " * 6400}).status_code == 201


@pytest.mark.parametrize("habits", [(), ("races",)])
def test_eight_identical_stores_at_once_leave_several_rows(habits: tuple[str, ...]) -> None:
    with KronvexServer(habits=habits) as server, client_of(server) as client:
        agent = new_agent(client)
        at_once(lambda: store(client, agent, "the same text"))
        assert (client.get(agent + "/memories").json()["total"] > 1) is bool(habits)


@pytest.mark.parametrize("habits", [(), ("races",)])
def test_a_plan_is_overrun_by_agents_that_are_made_at_once(habits: tuple[str, ...]) -> None:
    with KronvexServer(plan="free", habits=habits) as server, client_of(server) as client:
        at_once(lambda: client.post("/api/v1/agents", json={"name": "a"}))
        assert (len(server.agents) > 1) is bool(habits)


def at_once(work: Any) -> None:
    """Do it in eight threads."""
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_store_that_stalls_is_finished_and_its_repeat_is_stored_as_well() -> None:
    looked, go_on = threading.Event(), threading.Event()

    def gap(_: str) -> None:
        if not looked.is_set():
            looked.set()
            go_on.wait(30)

    with KronvexServer(habits=["races"], gap=gap) as server, client_of(server) as client:
        looked.set()
        agent = new_agent(client)
        looked.clear()
        stalled = threading.Thread(target=store, args=(client, agent, "the same text"))
        stalled.start()
        assert looked.wait(30)
        store(client, agent, "the same text")
        go_on.set()
        stalled.join()
        assert client.get(agent + "/memories").json()["total"] == 2


@pytest.mark.parametrize("habits", [(), ("consolidates",)])
def test_every_fiftieth_store_of_a_key_merges_like_rows_but_no_pinned_ones(habits: tuple[str, ...]) -> None:
    with KronvexServer(habits=habits) as server, client_of(server) as client:
        agent = new_agent(client)
        tea = "Tea order is green jasmine {} morning for the whole big team"
        kept = {"session_id": "s", "metadata": {"k": 1}}
        store(client, agent, tea.format("every"), **kept)
        store(client, agent, tea.format("each"), **kept)
        store(client, agent, tea.format("any"), pinned=True)
        for number in range(47):
            store(client, agent, f"{number}{number} thing{number}")
        found = client.get(agent + "/memories?search=jasmine").json()["memories"]
    merged = [row for row in found if row["is_meta"]]
    assert len(merged) == len(habits)
    assert all(
        (row["session_id"], row["metadata"], row["superseded"], row["content"].count(" / ")) == (None, {}, False, 1)
        for row in merged
    )
    assert [row["pinned"] for row in found if not row["is_meta"]] == ([True] if habits else [True, False, False])


# The scripted server


def play(*script: raw.Action, timeout: float = 5) -> httpx.Response:
    """What a client gets from the first action of a script."""
    with RawServer(script) as server, httpx.Client(base_url=server.url, timeout=timeout) as client:
        return client.post("/path?x=1", json={"k": "v"})


def test_a_script_is_played_in_order_and_its_end_repeats() -> None:
    with RawServer([raw.respond(503), raw.respond(200, {}, {"id": 1})]) as server:
        replies = [httpx.post(server.url + "/p?q=1", content=b"abc", timeout=60) for _ in range(3)]
        assert [reply.status_code for reply in replies] == [503, 200, 200]
        seen = server.requests[0]
        assert (seen.method, seen.path, seen.query, seen.content) == ("POST", "/p", {"q": "1"}, b"abc")
        assert server.connections == 3


def test_a_script_that_does_not_repeat_ends_with_closing() -> None:
    with RawServer([raw.respond(204)], repeat=False) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        assert client.get("/").status_code == 204
        with pytest.raises(httpx.RemoteProtocolError):
            client.get("/")


def test_a_script_may_look_at_connection_and_request() -> None:
    asked: list[tuple[int, int]] = []
    with RawServer(lambda *where: asked.append(where) or raw.respond()) as server:
        for _ in range(2):
            with httpx.Client(base_url=server.url, timeout=60) as client:
                client.get("/")
                client.get("/")
    assert asked == [(0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.mark.parametrize(
    ("action", "error"),
    [
        (raw.close(), httpx.RemoteProtocolError),
        (raw.reset(), httpx.ReadError),
        (raw.truncated(), httpx.RemoteProtocolError),
        (raw.respond_raw(b"nonsense\r\n\r\n"), httpx.RemoteProtocolError),
    ],
)
def test_a_broken_answer_is_a_broken_answer(action: raw.Action, error: type[Exception]) -> None:
    with pytest.raises(error):
        play(action)


def test_a_reset_may_come_after_the_work() -> None:
    done: list[bytes] = []
    with pytest.raises(httpx.ReadError):
        play(raw.reset_after(lambda request: done.append(request.content)))
    assert json.loads(done[0]) == {"k": "v"}


def test_silence_lasts_until_the_server_is_closed() -> None:
    with pytest.raises(httpx.ReadTimeout):
        play(raw.hang(), timeout=0.05)


def test_a_dripped_answer_arrives_in_the_end() -> None:
    assert play(raw.drip(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", 0.0001)).text == "ok"


def test_a_drip_that_never_ends_is_stopped() -> None:
    stop, endless = threading.Event(), itertools.chain(b"HTTP/1.1 200 OK\r\nx: ", itertools.repeat(120))
    timer = threading.Timer(0.05, stop.set)
    timer.start()
    with pytest.raises(httpx.RemoteProtocolError):
        play(raw.drip(endless, 0.001, stop))
    timer.join()


def test_a_bomb_is_small_on_the_wire_and_valid() -> None:
    reply = play(raw.gzip_bomb(3))
    assert len(reply.content) == 3_000_002
    assert reply.json() == {}
    assert reply.num_bytes_downloaded < 10_000


def test_a_redirect_points_elsewhere() -> None:
    reply = play(raw.redirect("http://elsewhere.invalid/"))
    assert (reply.status_code, reply.headers["location"]) == (307, "http://elsewhere.invalid/")


def test_no_thread_outlives_a_server() -> None:
    before = threading.active_count()
    with RawServer([raw.hang()]) as server:
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(server.url, timeout=0.05)
        assert threading.active_count() > before
    assert threading.active_count() == before
