"""Questions about the person who asks ("Who am I?"), and how much a memory contains about that person. Pure."""

from __future__ import annotations

import re

from kronmem.engine import terms

_LONGEST = 160
"""Characters: such a question is short, even with a greeting before it."""

# Of folded tokens: no accents, apostrophes or punctuation. A clause is one of these, greetings and filler aside.
_ABOUT_ASKER = re.compile(
    r"(?:(?:all|everything|anything|something|facts|information|info|details|background|a summary|summary) )?"
    r"(?:of what (?:do )?(?:you|we) know )?(?:about|on|of) (?:me|myself|us|the user|this user|user)"
    r"|(?:do |can )?(?:you )?(?:tell me |remind me |say |know |remember |recall )*who (?:i am|am i|is the user|is"
    r" this user)"
    r"|(?:you )?(?:tell me |show me |summari[sz]e |list |give me )?(?:a summary of )?(?:what|what all|all|everything"
    r"|anything|which things)"
    r" (?:that )?(?:do |did |have |can |could |else do |is )?(?:you |we |there )?(?:already |still |ever )?"
    r"(?:know|knows|knew|known|remember|recall|learned|learnt|noted|stored|got|have|tell me|say|saved|in your memory)?"
    r"(?: stored| saved| noted| learned| on file| in memory)? (?:about|of|on) (?:me|myself|us|the user|this user)"
    r"|(?:what|which|(?:do )?you have any|is there any) (?:information|info|facts|data|notes|memories)"
    r"(?: do you have| have you)?(?: stored| saved)? (?:about|on|of) (?:me|myself|us|the user|this user)"
    r"|what (?:have|did) i (?:tell|told|shared with) you about (?:me|myself)"
    r"|(?:do |can |did )?you (?:still |even )?(?:remember|know|recogni[sz]e|recall) (?:me|anything about me"
    r"|something about me)"
    r"|remember me|have we met(?: before)?|describe me|introduce me|whats my profile|(?:show )?(?:me )?(?:my|the"
    r"|a)? ?(?:user )?profile"
    r"|(?:please )?tell me (?:something |a bit |more |everything |all )?about (?:me|myself)|who (?:are|is) (?:the"
    r" user|this user)"
    r"|what is known about (?:me|the user|this user)|(?:the )?users? (?:info|information|background|details|bio"
    r"|identity)"
    # German
    r"|(?:weisst du |wissen sie |sag mir |sagen sie mir )?(?:noch )?wer (?:bin ich|ich bin)"
    r"|(?:(?:sag|sagen sie|erzahl|erzahle|erzahlen sie) mir )?(?:was|alles was) (?:du |sie )?(?:alles |noch |so )?"
    r"(?:weisst|wissen|hast|haben|ist|kennst)? ?(?:du |sie |dir )?(?:alles |noch |so |dir |sich )*(?:uber|von)"
    r" (?:mich|mir)"
    r"(?: alles| noch)?(?: weisst| wissen| gemerkt| gespeichert| bekannt)?"
    r"|(?:erinnerst du dich|erinnern sie sich) (?:noch )?an mich|(?:kennst du|kennen sie) mich(?: noch)?"
    r"|(?:erzahl|erzahle|erzahlen sie) mir (?:etwas |was |alles )?(?:uber|von) (?:mich|mir)|uber (?:mich|den nutzer"
    r"|den benutzer)"
    # French
    r"|(?:sais tu |savez vous |tu sais |dis moi )?qui (?:suis je|je suis)|je suis qui"
    r"|(?:dis moi )?(?:que|quest ce que|ce que|tout ce que) (?:sais tu|savez vous|tu sais|vous savez|tu te"
    r" rappelles)(?: deja| encore)?"
    r" (?:de|sur|a propos de) moi"
    r"|(?:te souviens tu|tu te souviens|vous souvenez vous|vous vous souvenez) (?:encore )?de moi"
    r"|(?:me connais tu|tu me connais|me connaissez vous|vous me connaissez)|parle moi de moi|a propos de moi"
    # Spanish, Italian, Portuguese
    r"|(?:sabes |sabe usted |dime )?quien soy(?: yo)?"
    r"|(?:dime )?(?:que|lo que|todo lo que) (?:sabes|sabe|recuerdas|recuerda|conoces)(?: usted)?(?: ya)? (?:de"
    r"|sobre|acerca de) mi"
    r"|(?:te acuerdas|se acuerda|me recuerdas|me recuerda)(?: todavia| aun)?(?: de mi)?|(?:me conoces|me conoce)"
    r"|hablame de mi|sobre mi"
    r"|chi sono(?: io)?|(?:che )?cosa sai (?:di|su) me|ti ricordi (?:ancora )?di me|mi conosci"
    r"|quem sou eu|o que (?:voce |tu )?sabes? (?:de|sobre) mim|(?:voce )?(?:se )?lembra(?:s)? de mim"
)
_AROUND = frozenset(
    (
        *("can", "could", "would", "will"),
        *(
            "hi",
            "hello",
            "hey",
            "there",
            "good",
            "morning",
            "evening",
            "afternoon",
            "so",
            "well",
            "ok",
            "okay",
            "please",
        ),
        *(
            "now",
            "again",
            "then",
            "today",
            "far",
            "already",
            "still",
            "actually",
            "just",
            "and",
            "oh",
            "claude",
            "assistant",
        ),
        *("hallo", "guten", "morgen", "tag", "abend", "servus", "moin", "bitte", "denn", "eigentlich", "noch", "schon"),
        *(
            "bonjour",
            "salut",
            "bonsoir",
            "stp",
            "svp",
            "alors",
            "encore",
            "deja",
            "dis",
            "hola",
            "buenos",
            "buenas",
            "dias",
        ),
        *("tardes", "oye", "por", "favor", "todavia", "ciao", "ola", "oi"),
    )
)
_CLAUSES = re.compile(r"[.!?;:\u3002\uff01\uff1f\u00bf\u00a1]+|\b(?:and|und|et|y)\b", re.IGNORECASE)


def is_meant(query: str) -> bool:
    """Whether the query asks for the person who asks, and for nothing else."""
    if len(query) > _LONGEST:
        return False
    parts = [words for clause in _CLAUSES.split(query) if (words := _bare(list(terms.tokens(clause))))]
    return bool(parts) and all(_ABOUT_ASKER.fullmatch(" ".join(words)) for words in parts)


def _bare(words: list[str]) -> list[str]:
    """A clause without greetings and filler at its ends."""
    first, last = 0, len(words)
    while first < last and words[first] in _AROUND:
        first += 1
    while last > first and words[last - 1] in _AROUND:
        last -= 1
    return words[first:last]


_NAME = re.compile(
    r"\b(?:my|users?|user's) (?:full |first |last )?name(?: is|'s)\b|\b(?:call me|i am called|i'm called|goes by|my"
    r" friends call me)\b"
    r"|\bthe user is (?:called|named)\b|\b(?:ich hei(?:ss|ß)e|mein name ist|je m'appelle|mon nom est|me llamo|mi"
    r" nombre es|mi chiamo)\b",
    re.IGNORECASE,
)
_INTRODUCED = re.compile(
    r"(?:^|[.!] )(?:Hi, |Hello, )?(?:I'm|I am|User is|This is|Ich bin|Je suis|Soy) [A-ZÄÖÜÉ][\w'-]+"
)
_HEALTH = re.compile(
    r"allerg|asthma|diabet|insulin|pregnan|schwanger|enceinte|embaraz|vegan|vegetari|c(?:o)?eliac|zöliak|intoleran"
    r"|medication"
    r"|blood (?:pressure|thinner|type)|epilep|migraine|migräne|wheelchair|rollstuhl|surgery|operation|heart"
    r" (?:attack|disease|condition)"
    r"|cancer|adhd|autis|depressi|disab|\bkidney|\bpills?\b|\binjur|\bbad knee|dyslexi|blutverdünner|gluten|lactose"
    r"|laktose",
    re.IGNORECASE,
)
_IDENTITY = re.compile(
    r"\b(?:lives?|living|reside[sd]?|based|moved|grew up|born) (?:in|to|at|on)\b|\b\d{1,3} years old\b|\bbirthday\b"
    r"|\bworks? (?:as|at|for|in|with)\b|\bi(?:'m| am) (?:a|an|the|from|married|single|divorced|\d{1,3})\b|\buser is"
    r" (?:a|an|the|from|married)\b"
    r"|\bmy (?:job|profession|employer|company|boss|wife|husband|partner|son|daughter|children|kids|family|home"
    r"|address|mother|father)\b"
    r"|\b(?:wohne|arbeite|geboren|verheiratet|mein(?:e)? (?:frau|mann|sohn|tochter|kinder))\b|\b(?:habite|travaille"
    r"|vivo|trabajo)\b",
    re.IGNORECASE,
)
_OWN = re.compile(
    r"\b(?:i|i'm|i've|i'd|my|me|mine|user|user's|users|ich|mein|meine|mich|mir|je|j'ai|mon|ma|yo|mi|mis)\b",
    re.IGNORECASE,
)


def importance(content: str) -> int:
    """The weight of a fact about the person: 4 for the name, 3 for health, 2 for home, work and family, 1 for any."""
    if _NAME.search(content) or _INTRODUCED.search(content):
        return 4
    if _HEALTH.search(content):
        return 3
    return 2 if _IDENTITY.search(content) else int(bool(_OWN.search(content)))
