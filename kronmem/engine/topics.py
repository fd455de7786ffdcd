"""Words by which people and models ask for a kind of thing, with the words by which such things are stated. Pure.

"theme" finds dark mode, "SLA" uptime, "away" the vacation: the table of related words knows words that are used alike,
and these are not. A line holds the asking words, a colon, and the stating ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from kronmem.engine import terms

_TOPICS = """
theme appearance look ui: dark light mode colour color font background
sla availability reliability: uptime percent downtime outage nines
away absent absence availability unavailable out: vacation holiday leave sick parental travelling retreat
stack tech technology technologies tooling framework: written frontend backend database postgres python react
language languages: written python typescript rust java go french german spanish portuguese italian learning speak
infrastructure hosting platform: cloud server cluster deploy aws gcp azure kubernetes hetzner
architecture: monolith microservice service module layer database
constraint requirement restriction rule: must never only limit forbidden allowed required
residency compliance privacy: eu gdpr data stay region
cost expense price budget: euro dollar pound bill pay month rent
finance financial money: mortgage salary loan rent tax savings budget bank
customer client account: tenant customer client
team group staff people: squad team crew department engineers colleagues
schedule rota calendar: rotation shift week handover
call pager incident: pager rotation alert
release deployment ship: deploy deployment rollout launch
style tone verbosity format formatting voice: short brief concise sentence bullet formal casual answer write spelling
medical health condition illness: allergic allergy asthma diabetes medication penicillin doctor migraine injury knee
diet dietary food eating meal: vegetarian vegan allergic allergy gluten lactose eat breakfast dinner
drink beverage: coffee tea water wine beer
family relative: wife husband daughter son mother father sister brother married kids children
spouse partner: wife husband married partner
child kid: daughter son kids
occupation profession job career work: works job engineer teacher nurse doctor manager employed company paediatrician
commute travel transport: train bus bike drive car walk tram
trip travel holiday vacation: flight hotel hiking visiting travelling
appointment meeting event: tuesday monday wednesday thursday friday comes visit
exercise fitness sport training workout: run marathon gym swim cycling hiking yoga train
goal aim objective ambition: want plan reach under
home house flat: live apartment garden kitchen rent
repair broken maintenance: leak plumber fix broken
name called identity: called call name
pet animal: dog cat
vehicle: car van bike
birthday age: born birthday old
nauseous queasy: sick seasick
rain raincoat umbrella: weather shower rain
invoice payment: billing bill
pull merge integrate: merge squash branch
chart graph figure diagram: plot dashboard graph
director directors executives: board
encourage motivation: motivate praise cheer
feedback review criticism: criticise critique honest brutal
contract insurance coverage: policy insured
big size many large: number six headcount
next upcoming: resume next tomorrow
protect secure anonymous: hash encrypted mask
deadline due: until submit by deadline
location place where: based lives office city
hobby hobbies interest interests: plays learning likes garden guitar
education study degree school: university student phd studies
editor ide: vim vscode helix emacs
contact responsible owner: owns maintains contact charge
mentor teacher taught: mentor teacher
storage database store: postgres sqlite bucket
monitor monitoring metrics: grafana dashboard alert
communication chat messaging: slack teams email
boss manager supervisor lead: boss manager lead reports
bug error issue: bug crash error fails
"""


_SEPARATOR = re.compile(r"[,;/|\n]+|\s&\s|\band\b")
_MOST, _WORDS = 6, 4
"""Topics of a list, and words of a topic."""


def listed(query: str) -> list[str]:
    """The topics that a query lists, as models do ("family, diet and commute"); none of a sentence or a question."""
    parts = [part.strip() for part in _SEPARATOR.split(query) if part.strip()]
    if not 2 <= len(parts) <= _MOST or query.rstrip().endswith((".", "?", "!")):
        return []
    words = [list(terms.tokens(part)) for part in parts]
    plain = all(1 <= len(one) <= _WORDS and terms.STOPWORDS.isdisjoint(one) for one in words)
    return parts if plain else []


@lru_cache(maxsize=1)
def _telling() -> Mapping[str, tuple[str, ...]]:
    related: dict[str, dict[str, None]] = {}
    for line in _TOPICS.strip().splitlines():
        asking, _, telling = line.partition(":")
        words = dict.fromkeys(map(terms.stem, telling.split()))
        for word in asking.split():
            related.setdefault(terms.stem(word), {}).update(words)
    return {word: tuple(one for one in words if one != word) for word, words in related.items()}


def telling(term: str) -> tuple[str, ...]:
    """The terms of memories that a question with this term asks for; none for most terms."""
    return _telling().get(term, ())
