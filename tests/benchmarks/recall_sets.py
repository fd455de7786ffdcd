"""The question sets of `recall_quality`: each a list of conversations, read from the files of their publishers.

`everyday_dev.json` is our own; the others are given by path and belong to their authors: measure with them, ship nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

EVERYDAY = Path(__file__).with_name("everyday_dev.json")
LONGEST = 20_000
"""Of a longer message the beginning is stored."""
FOREIGN = 60
"""So many questions of the next conversation are asked as foreign ones."""


@dataclass(frozen=True)
class Said:
    """One memory to store."""

    content: str
    memory_type: str = "fact"
    role: str | None = None


@dataclass(frozen=True)
class Asked:
    """A question, and the indexes of the memories that answer it."""

    text: str
    answers: frozenset[int]
    kind: str = ""


@dataclass(frozen=True)
class Conversation:
    """The memory of one agent and the questions about it; `foreign` ones have no answer in it."""

    memories: list[Said]
    questions: list[Asked]
    foreign: list[str] = field(default_factory=list[str])
    priming: list[str] = field(default_factory=list[str])


def everyday(path: Path = EVERYDAY) -> list[Conversation]:
    """Notes of six agents, asked in the same and in other words."""
    return [_everyday(agent) for agent in json.loads(path.read_text("utf-8"))]


def _everyday(agent: dict[str, Any]) -> Conversation:
    index = {memory["id"]: at for at, memory in enumerate(agent["memories"])}
    asked = [Asked(q["q"], frozenset(index[a] for a in q["answers"]), q["kind"]) for q in agent["questions"]]
    return Conversation(
        [Said(memory["content"], memory["memory_type"], memory["role"]) for memory in agent["memories"]],
        [question for question in asked if question.answers],
        [question.text for question in asked if question.kind == "foreign"],
        [question.text for question in asked if question.kind == "priming"],
    )


def pooled(conversations: list[Conversation]) -> list[Conversation]:
    """All of them as one: more to mistake for the answer."""
    memories: list[Said] = []
    questions: list[Asked] = []
    for one in conversations:
        shift = len(memories)
        questions += [replace(q, answers=frozenset(shift + at for at in q.answers)) for q in one.questions]
        memories += one.memories
    return [Conversation(memories, questions)]


def locomo(path: Path, view: str) -> list[Conversation]:
    """LoCoMo (snap-research): its own file, where `view` is turns or facts, or one that lists both views."""
    samples = json.loads(path.read_text("utf-8"))
    if "view" in samples[0]:
        return [_listed(sample) for sample in samples if sample["view"] == view]
    return [_locomo(sample, view) for sample in samples]


def _listed(sample: dict[str, Any]) -> Conversation:
    fair = (q for q in sample["questions"] if q["category"] != "adversarial" and q["relevant"])
    return Conversation(
        [Said(text) for text in sample["memories"]], [Asked(q["q"], frozenset(q["relevant"])) for q in fair]
    )


def _locomo(sample: dict[str, Any], view: str) -> Conversation:
    memories: list[Said] = []
    index: dict[str, set[int]] = {}
    for session in _sessions(sample["conversation"]):
        for text, sources in (_turns if view == "turns" else _facts)(sample, session):
            for source in sources:
                index.setdefault(source, set()).add(len(memories))
            memories.append(Said(text))
    fair = ((q["question"], q.get("evidence")) for q in sample["qa"] if q["category"] != 5)
    return Conversation(memories, _with_evidence(fair, index))


def _turns(sample: dict[str, Any], session: str) -> Iterator[tuple[str, list[str]]]:
    for turn in sample["conversation"][session]:
        image = f" [shared image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
        yield f"{turn['speaker']}: {turn['text']}{image}", [turn["dia_id"]]


def _facts(sample: dict[str, Any], session: str) -> Iterator[tuple[str, list[str]]]:
    for facts in (sample["observation"].get(f"{session}_observation") or {}).values():
        yield from ((fact, _turn_names(source)) for fact, source in facts)


def realtalk(checkout: Path) -> list[Conversation]:
    """REALTALK (danny911kr): the files data/Chat_*.json."""
    folder = checkout / "data" if (checkout / "data").is_dir() else checkout
    files = sorted(folder.glob("Chat_*.json"), key=lambda path: int(path.name.split("_")[1]))
    return [_realtalk(json.loads(path.read_text("utf-8"))) for path in files]


def _realtalk(chat: dict[str, Any]) -> Conversation:
    turns = [turn for session in _sessions(chat) for turn in chat[session] if (turn.get("clean_text") or "").strip()]
    index: dict[str, set[int]] = {}
    for at, turn in enumerate(turns):
        index.setdefault(turn["dia_id"], {at})
    memories = [Said(f"{turn['speaker']}: {turn['clean_text'].strip()}") for turn in turns]
    return Conversation(memories, _with_evidence(((str(q["question"]), q.get("evidence")) for q in chat["qa"]), index))


def beam(checkout: Path, split: str) -> list[Conversation]:
    """BEAM (mohammadtavakoli78): chats with an assistant, with the roles of both."""
    root = (checkout / "chats" if (checkout / "chats").is_dir() else checkout) / split
    return [
        _beam(folder) for folder in sorted((p for p in root.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
    ]


def _beam(folder: Path) -> Conversation:
    cut = folder / "chat_trunecated.json"  # as it is spelt there
    chat = json.loads((cut if cut.exists() else folder / "chat.json").read_text("utf-8"))
    memories: list[Said] = []
    index: dict[int, int] = {}
    for message in _messages(chat):
        if text := re.sub(r"\s*->->\s*[\d,\s]*$", "", message["content"]).strip()[:LONGEST]:
            index[message["id"]] = len(memories)
            memories.append(Said(text, role=message["role"]))
    probing = json.loads((folder / "probing_questions" / "probing_questions.json").read_text("utf-8"))
    asked = (
        Asked(one["question"], frozenset(index[n] for n in _integers(one.get("source_chat_ids")) if n in index))
        for kind, questions in probing.items()
        for one in (questions if kind != "abstention" else ())
    )
    return Conversation(memories, [question for question in asked if question.answers])


def with_foreign(conversations: list[Conversation]) -> list[Conversation]:
    """Each is asked the questions of the next one, too."""
    following = conversations[1:] + conversations[:1]
    if len(conversations) < 2:
        return conversations
    return [
        replace(one, foreign=[question.text for question in other.questions[:FOREIGN]])
        for one, other in zip(conversations, following, strict=True)
    ]


def _sessions(record: dict[str, Any]) -> list[str]:
    return sorted((key for key in record if re.fullmatch(r"session_\d+", key)), key=lambda key: int(key[8:]))


def _turn_names(source: object) -> list[str]:
    return [f"D{int(session)}:{int(turn)}" for session, turn in re.findall(r"D:?(\d+):(\d+)", str(source or ""))]


def _with_evidence(asked: Iterator[tuple[str, object]] | Any, index: dict[str, set[int]]) -> list[Asked]:
    found = (
        Asked(text, frozenset(at for name in _turn_names(source) for at in index.get(name, ())))
        for text, source in asked
    )
    return [question for question in found if question.answers]


def _messages(chat: Any) -> Iterator[dict[str, Any]]:
    if isinstance(chat, dict) and {"content", "id", "role"} <= chat.keys():
        yield chat
    elif isinstance(chat, dict | list):
        for inner in chat.values() if isinstance(chat, dict) else chat:
            yield from _messages(inner)


def _integers(source: Any) -> Iterator[int]:
    if isinstance(source, int):
        yield source
    elif isinstance(source, str):
        yield from map(int, re.findall(r"\d+", source))
    elif isinstance(source, dict | list):
        for inner in source.values() if isinstance(source, dict) else source:
            yield from _integers(inner)
