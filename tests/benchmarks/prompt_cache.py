"""What a provider's prompt cache can reuse: the share of each prompt that is the beginning of the prompt before it.

`python -m tests.benchmarks.prompt_cache` prints it for a chat of twelve turns through every pack that is installed, with
and without memory, and what block and tools cost. The models are scripted, so the figures are the same on any machine;
a block holds dates, of one length. Options are the defaults. Sizes are characters, a token counts as four.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import tempfile
import warnings
from dataclasses import dataclass
from itertools import pairwise, takewhile

from kronmem import Client, memory_tools
from kronmem.packs.block import is_block
from tests.benchmarks.measure import installed
from tests.packs.chats import CHATS, Turns

NEEDS = {"classic": ("autogen", "openai"), "agentchat": ("autogen_agentchat", "autogen_ext")}
"""What a pack needs besides the framework of its own name."""
SYSTEM = """You are the assistant of a travel agency and help families to plan their journeys by train, bus and car.

- Answer in two to four sentences and name prices in euros, times as 24 hours and distances in kilometres.
- Suggest at most two places at once, say what speaks against each of them, and ask back where a date, the number of
  travellers or a budget is missing. Never invent a timetable: say that it has to be looked up.
- Prefer what can be reached without a flight. Think of children, of people who cannot walk far, and of animals.
- You cannot book. When something has to be booked, say what, for which day and for how many people, and hand over to a
  colleague by the word HANDOVER in a line of its own.
- Prices of the agency are valid for seven days. Insurance, visa and vaccinations are answered by a colleague only.
"""
"""Of the length that such prompts have; the beginning that every cache reuses."""
KNOWN = (
    ("Ada is allergic to peanuts", "fact"),
    ("Ada prefers trains to planes", "preference"),
    ("Answer Ada in English", "preference"),
    ("The family travels with a dog called Mila", "fact"),
    ("Ada and Tom decided to spend at most 2,000 euros on the summer journey", "decision"),
    ("Tom cannot walk further than five kilometres since his operation", "fact"),
    ("The children are six and nine years old", "fact"),
    ("The family has a rail pass for Poland until the end of August", "fact"),
    ("Grandmother lives in Gdansk and has a guest room", "fact"),
    ("The tent has a broken pole", "fact"),
)
CHAT: Turns = [
    (
        "Where could the five of us spend two weeks in July?",
        "With children of that age the coast suits you well: the Hel peninsula has shallow water, and a small train "
        "runs along it. The lakes of Masuria are quieter and cost less. Shall I compare the two for the first half of "
        "July?",
    ),
    (
        "Hel sounds good. How do we get there from Krakow?",
        "There is a direct night train in summer, which leaves in the evening and reaches the coast in the morning. By "
        "day you change once in Gdynia and need about seven hours. Seats in the night train sell out by May.",
    ),
    (
        "Can we take the dog on the night train?",
        "Yes, with a ticket of its own, a leash and a muzzle at hand. In a sleeping car the other passengers have to "
        "agree, so a whole compartment of your own is the safe choice. It also lets the children go to bed early.",
    ),
    (
        "We need a place to sleep, not a hotel.",
        "Then a wooden house in Jastarnia: most have two bedrooms, a kitchen and a small garden, and many allow dogs. In "
        "July they are let by the week from Saturday to Saturday, for about 110 euros a night. Booking in February "
        "leaves a choice.",
    ),
    (
        "What would the whole journey cost?",
        "Two weeks in such a house come to about 1,540 euros, food and small things to 600, and the trains to little. "
        "That is more than planned: ten nights instead of fourteen bring it below, or a week at a camp site.",
    ),
    (
        "Let us take ten nights then. We leave on the 4th of July.",
        "Agreed: ten nights from the 4th of July. Houses change hands on Saturdays, and the 4th is one, so the first week "
        "is simple; for the other three nights I would ask the owner before booking anything else.",
    ),
    (
        "Which walks can Tom do with us?",
        "The path through the forest of Jastarnia to the open sea is two kilometres long, flat and mostly boards. The "
        "lighthouse of Hel stands one kilometre from the station. Both have benches, and the train brings you back.",
    ),
    (
        "Thanks. And what do we do when it rains?",
        "Gdynia has an aquarium and a museum of emigration, an hour away by train. In Hel itself there are the seals, "
        "which are fed at eleven and at two in any weather, and the museum of the coast's defence, mostly indoors.",
    ),
    (
        "The children want to try windsurfing.",
        "The bay side is the best place in the country to learn it: the water is shallow for a hundred metres. Schools "
        "take children from seven on, so one of the two may have to wait; there are paddle boards for smaller ones.",
    ),
    (
        "What snacks shall I pack for the train?",
        "Things that do not melt or crumble: bread rolls with cheese, cut carrots, apples, dried apricots and pretzels. "
        "A bottle for each person, filled before you leave, because the train's own shop closes at ten.",
    ),
    (
        "Could we visit grandmother on the way back?",
        "Easily: the train from Hel passes Gdynia, from where the fast city train needs twenty-five minutes. If you stay "
        "a night with her, the day train to Krakow the next morning leaves at nine, and the rail pass covers all of it.",
    ),
    (
        "Write down all we have to book, in order.",
        "First the compartment in the night train for the 4th of July, then the house in Jastarnia with the three further "
        "nights, then a windsurfing course for the elder child. The way back by Gdansk needs no seat until June.",
    ),
]


@dataclass(frozen=True)
class Figures:
    """A chat with memory beside the same one without: shares from 0 to 1, and tokens."""

    without: float
    share: float
    block_tokens: float
    system_same: bool
    """Every prompt begins with the same system prompt."""
    before_newest: bool
    """Every block is the last message but one."""
    all_before_reused: bool
    """Every prompt begins with all that stood before the block in the one before it."""


def available() -> list[str]:
    """The packs whose frameworks are installed."""
    return [pack for pack in CHATS if installed(*NEEDS.get(pack, (pack,)))]


def measure(pack: str) -> Figures:
    """Run the chat twice, with nothing known and nothing kept, and with the defaults."""
    options = {"capture": False} if pack == "agentchat" else {}  # its driver sets what is off there
    without = _prompts(pack, False, {"capture": False})
    prompts = _prompts(pack, True, options)
    places = [[at for at, text in enumerate(prompt) if is_block(text)] for prompt in prompts]
    sizes = [len(prompt[at]) for prompt, found in zip(prompts, places, strict=True) for at in found]
    before = [prompt[: found[0]] if found else prompt for prompt, found in zip(prompts, places, strict=True)]
    return Figures(
        without=share(without),
        share=share(prompts),
        block_tokens=sum(sizes) / 4 / len(prompts),
        system_same={prompt[0] for prompt in prompts} == {SYSTEM},
        before_newest=all(found in ([], [len(prompt) - 2]) for prompt, found in zip(prompts, places, strict=True)),
        all_before_reused=all(
            prompt[: len(start)] == start for start, prompt in zip(before, prompts[1:], strict=False)
        ),
    )


def _prompts(pack: str, known: bool, options: dict[str, bool]) -> list[list[str]]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        url = f"sqlite:///{home}/memory.db"
        with Client(url) as client:
            for content, kind in KNOWN if known else ():
                client.remember("ada", content, kind)
        return asyncio.run(CHATS[pack](url, "ada", CHAT, system=SYSTEM, **options))


def share(prompts: list[list[str]]) -> float:
    """The characters that begin both a prompt and the one before it, of all from the second prompt on."""
    texts = ["\0".join(prompt) for prompt in prompts]
    same = (takewhile(lambda signs: signs[0] == signs[1], zip(*pair, strict=False)) for pair in pairwise(texts))
    return sum(1 for one in same for _ in one) / sum(map(len, texts[1:]))


def main() -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")
    print("| pack | cached share without memory | with memory | tokens of the block, a turn |\n|---|---|---|---|")
    for pack in available():
        with contextlib.redirect_stdout(io.StringIO()):  # AutoGen prints how each chat ended
            found = measure(pack)
        print(f"| {pack} | {found.without:.2f} | {found.share:.2f} | {found.block_tokens:.0f} |", flush=True)
    with Client("sqlite://") as client:
        schemas = json.dumps(memory_tools(client.agent("ada")).schemas())
    print(f"The three tools: {len(schemas) / 4:.0f} tokens.")


if __name__ == "__main__":
    main()
