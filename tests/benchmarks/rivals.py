"""Later statements before earlier ones: `python -m tests.benchmarks.rivals [--half tuning|judging] [--show]`.

Each of the pairs in `rivals.json` is stored in a memory of its own among ten other notes, and its question asked. Of two
rivals the later one has to stand directly before the earlier one, which has to be marked; of a trap (two subjects, two
things that can both hold, a supposition) nothing may be marked. Half of the pairs was used for tuning, half only judges.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from kronmem import Client

PAIRS = Path(__file__).with_name("rivals.json")
OTHERS = (
    "We discussed the garden fence with the neighbours.",
    "The museum has a room full of clocks.",
    "Copper is a good conductor of heat.",
    "The printer needs paper in A3.",
    "Our choir sings Fauré on Thursday evenings.",
    "The bakery sells rye bread and rolls.",
    "Somebody left an umbrella in the hall.",
    "A fox was seen behind the shed at night.",
    "The lift is inspected once a year.",
    "Lemons keep for weeks in the fridge.",
)


def right(client: Client, agent_id: str, pair: dict[str, str | bool]) -> bool:
    """Whether the answer to the pair's question is in order."""
    agent = client.agent(agent_id)
    agent.remember_many(OTHERS[:4])
    agent.remember(str(pair["first"]))
    agent.remember_many(OTHERS[4:])
    agent.remember(str(pair["then"]))
    hits = agent.recall(str(pair["ask"]), 5)
    found = [hit.content for hit in hits]
    if not pair["rivals"]:
        return not any(hit.earlier for hit in hits)
    if pair["first"] not in found:  # what is not shown misleads no one, if the news is
        return pair["then"] in found
    at = found.index(str(pair["first"]))
    return at > 0 and found[at - 1] == pair["then"] and hits[at].earlier


def main() -> None:
    """Ask all pairs and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=("tuning", "judging"))
    parser.add_argument("--show", action="store_true", help="print the pairs that went wrong")
    options = parser.parse_args()
    asked: Counter[tuple[str, bool]] = Counter()
    done: Counter[tuple[str, bool]] = Counter()
    with Client("sqlite://") as client:
        for number, pair in enumerate(json.loads(PAIRS.read_text("utf-8"))):
            if options.half in (None, pair["half"]):
                kind = (pair["half"], pair["rivals"])
                asked[kind] += 1
                done[kind] += (is_right := right(client, f"pair-{number}", pair))
                if options.show and not is_right:
                    print("rivals" if pair["rivals"] else "trap", pair["first"], "|", pair["then"])
    for (half, rivals), count in sorted(asked.items()):
        share = done[half, rivals] / count
        print(
            f"{half:8} {'rivals in order' if rivals else 'false rivals':16} {share if rivals else 1 - share:.3f} of {count}"
        )


if __name__ == "__main__":
    main()
