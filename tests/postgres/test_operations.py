"""Moving in, backing up and restoring with PostgreSQL's own tools."""

from __future__ import annotations

import subprocess
from pathlib import Path

from kronmem import Client
from tests.engine.calling import calling
from tests.postgres.test_together import assert_sound
from tests.services.postgres import needs_own_databases, new_database, own, program


def tool(name: str, *arguments: str) -> None:
    ran = subprocess.run([program(name), *arguments], capture_output=True, timeout=60)
    assert ran.returncode == 0, ran.stderr.decode()


def test_a_dump_restores_everything(database: str, postgres_server: str, tmp_path: Path) -> None:
    needs_own_databases()
    with calling(database) as call:
        for n in range(20):
            call.as_(agent=f"agent-{n % 3}").remember(f"tea {n} 猫", session_id=f"s{n}", tags=["x"], metadata={"n": n})
        call("PUT", "state/k", {"value": [1, None, "ü"]})
        before = [call.as_(agent=f"agent-{n}").hits("tea", limit=20) for n in range(3)]
    dump = str(tmp_path / "memory.dump")
    tool("pg_dump", "--format=custom", "--schema=kronmem", f"--file={dump}", f"--dbname={database}")
    with new_database(postgres_server, own("kronmem_restored")) as restored:
        tool("pg_restore", "--exit-on-error", f"--dbname={restored}", dump)
        assert_sound(restored)
        with calling(restored) as call:
            again = [call.as_(agent=f"agent-{n}").hits("tea", limit=20) for n in range(3)]
            assert [[hit["memory"]["id"] for hit in hits] for hits in again] == [
                [hit["memory"]["id"] for hit in hits] for hits in before
            ]
            assert call("GET", "state/k")[1]["value"] == [1, None, "ü"]
            assert call.remember("tea after the restore")["content"] == "tea after the restore"


def test_memories_move_from_a_file_to_a_database(postgres: str, tmp_path: Path) -> None:
    with Client.local(tmp_path / "memory.db") as old, Client(postgres) as new:
        old.remember("bot", "User likes tea", "preference", tags=["drink"], session_id="s1", metadata={"a": [1]})
        old.remember("bot", "User plays the piano", pinned=True)
        for memory in reversed(list(old.memories("bot"))):
            new.remember(
                "bot",
                memory.content,
                memory.memory_type,
                session_id=memory.session_id,
                tags=memory.tags,
                metadata=memory.metadata,
                pinned=memory.pinned,
                memory_id=memory.id,
            )
        fields = {"content", "memory_type", "session_id", "tags", "metadata", "pinned", "id"}
        assert [m.model_dump(include=fields) for m in new.memories("bot")] == [
            m.model_dump(include=fields) for m in old.memories("bot")
        ]
        assert new.recall("bot", "tea")[0].content == "User likes tea"
