"""Which sentences of a message are worth keeping: rules for English, no model, no clock.

A sentence is kept for what it states about its writer, their team or a decision; what it asks for, what will be over
tomorrow and what is only supposed are left out. Rules are anchored at the start of a clause and see bounded text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kronmem.context import without_fences

MAX_TEXT_CHARS = 100_000
MAX_SENTENCE_CHARS = 400
_MAX_CLAUSES = 8


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


def _words(text: str) -> str:
    """An alternation of blank-separated words; `_` stands for a blank inside one."""
    return "(?:" + "|".join(word.replace("_", " ") for word in text.split()) + ")"


# --- lines -----------------------------------------------------------------------------------------------------------

_CODE_FENCE = re.compile(r"\s*(?:```|~~~)")
_TRACEBACK = re.compile(r"\s*Traceback \(most recent call last\)")
_TRACEBACK_END = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning)\b")
_MACHINE_LINE = re.compile(
    r"""\s*(?:> | >>>\s | [{<] | \[\s*[\[{"'] | \$\s | ["'“] | at\s\S+\(
    | \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d | \[?\d\d:\d\d:\d\d
    | \[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|CRITICAL)\b | [A-Za-z_.]{1,60}(?:Error|Exception|Warning):)""",
    re.VERBOSE,
)
_BULLET = re.compile(r"\s*(?:(?:[-*+•–]|\#{1,6}|\(?\d{1,3}[.)]|\[[ xX]\])\s+)*")  # noqa: RUF001  a dash people type
_ROLE = re.compile(r"\[?(?:user|human|assistant|ai|bot|system|customer|me)\]?\s?:\s*", re.IGNORECASE)

# --- sentences -------------------------------------------------------------------------------------------------------

_CLOSERS = "\"')]}”’*_"  # noqa: RUF001  typed by word processors
_NEVER_LAST = frozenset(
    "mr mrs ms dr prof st sr jr e.g i.e eg ie vs approx ca cf no fig mt gen col sgt rev hon".split()
)
_STARTERS = frozenset("i we my our the he she they it this that you please i'm we're let's".split())
_LOWER_GOES_ON = frozenset("and or but with in for as at where which who from to is was has".split())

# --- what a sentence is not ------------------------------------------------------------------------------------------

_LEAD_IN = _any(
    r"(?:hi|hello|hey|dear)(?: (?:there|all|everyone|team|folks))?\s?[,!.]\s?",
    r"(?:ok|okay|well|so|also|and|but|oh|ah|btw|by the way|anyway|anyways|yes|yeah|yep|no|nope|sure|right|actually|plus"
    r"|hmm|um|great|good point|nice|additionally|furthermore|besides|in fact|honestly|to be clear)\b\s?[,!:;–—-]?\s",  # noqa: RUF001
)
_REMEMBER = _any(
    r"(?:(?:please|also|and|just|always|so|now|ok|can you|could you|will you|would you|i(?:'d| would) like you to"
    r"|i (?:want|need) you to|you should|you must|try to),? )*"
    r"(?:remember(?: that\b|[:,]|(?= (?:always|never|my|our|i|i'm|i've|we|we're)\b)|(?= the .{1,60} (?:is|are|has|uses|runs)\b)"
    r"| to(?= (?:always|never)\b))"
    r"|(?:don't|do not|never) forget(?: that\b|[:,]|(?= (?:my|our|i|i'm|we|we're)\b)| to(?= (?:always|never)\b))"
    r"|(?:keep|bear) (?:it )?in mind(?: that\b|[:,]|(?= \w))"
    r"|(?:please )?note(?: down)? that\b|(?:make|take) (?:a )?note(?: that\b|[:,]|(?= of\b))|be aware that\b"
    r"|(?:save|store|memori[sz]e|remember) (?:this|the following)(?: fact| note)?\s?[:,-])\s*",
    r"(?:just )?for (?:(?:your )?future reference|the record|later reference)\s?[,:–—-]?\s*",  # noqa: RUF001
)
_MENTION = _any(
    r"(?:just )?(?:fyi|for your information|(?:so|in case) (?:you|u) know|heads[- ]up|important|note|reminder|for context"
    r"|some context|n\.?b\.?)\s?[,:–—-]?\s+",  # noqa: RUF001
)
_QUESTION_START = _any(
    r"(?:what|how|why|where|who|whom|whose|which|do|does|did|is|are|am|was|were|can|could|would|will|shall|should"
    r"|has|have|isn't|aren't|don't you|didn't|doesn't|won't|any idea|anyone)\b",
    r"when\b(?! (?:you|replying|answering|writing|i|we)\b)",
)
_SUPPOSED = _any(
    r"(?:if|unless|suppose|supposing|imagine|pretend|assume|assuming|say we|say i|let's (?:say|assume|pretend|imagine)"
    r"|maybe|perhaps|possibly|probably|hypothetically|in theory|in case|whether|had (?:i|we)|were (?:i|we)|act as"
    r"|i (?:wish|might|may|could|think|guess|suppose|doubt|wonder|believe|suggest|recommend|hope|feel)"
    r"|i'm (?:not sure|guessing|wondering|thinking)|i am not sure)\b",
)
_REQUEST = _any(
    _words(
        "write tell show give explain translate summari[sz]e make create generate fix check find send help list draft"
        " review compare rewrite describe implement act run print read open click look search add remove delete update"
        " paraphrase correct proofread convert calculate compute solve classify extract complete continue repeat say"
        " one_moment see here's here_is thanks thank_you"
    )
    + r"\b",
)
_HEDGED = re.compile(
    r"\b(?:lol|haha+|jk|just kidding|not sure|who knows|maybe|perhaps|haven't|hasn't|not yet|as an ai|language model|ai assistant)\b",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"\b(?:right now|at the moment|just now|for now|today|tonight|tomorrow|yesterday|this (?:morning|afternoon|evening"
    r"|week|time|step|case)|brb|haha+|lol|in (?:a|an|one|two|five|ten|\d+) (?:sec|second|minute|moment|hour)s?"
    r"|minutes late|out for|until (?:one|two|three|lunch|noon)|see you|talk soon|as i said|about to|below|above)\b",
    re.IGNORECASE,
)
_CLAUSE_BREAK = re.compile(r"(?:,|;| [-–—])\s+(?:(?:and|but|so|because|since|as)\s+)?|\s+(?:and|but|because)\s+")  # noqa: RUF001
_ASKING_TAIL = re.compile(
    r"(?:,|;|\s[-–—]|\s(?=and\b|so\b|but\b))\s*(?:(?:so|and|but|then)\s+)?(?:please (?!always|never)|can (?:you|we|i)\b"  # noqa: RUF001
    r"|could (?:you|we|i)\b|would you\b|will you\b|what\b|which\b|how\b|where\b|who\b|when\b|is (?:it|there)\b"
    r"|are there\b|do(?:es)? (?:you|it|that)\b|should (?:i|we)\b|any (?:tips|ideas?|advice|suggestions?)\b)",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"(?:(?:Quick|Small|Short) )?[A-Z][\w-]{1,30}: (?=\w)")
# "In Rust, we use Result" explains; after such an opening the next clause is not about the writer's own team.
_SCENE = _any(r"(?:in|to|for|with|on|at|while|after|before|by|using|here|now|then|next|first|finally|once|when)\b")

# --- what a sentence states ------------------------------------------------------------------------------------------
# The simple present of the first person is how people state habits and standing facts, so it counts unless the verb
# reports a thought, a wish or one action at a keyboard. Past tenses count only for events that change a life or a plan.

_CAPITAL = "(?-i:[A-ZÀ-ÖØ-Þ])"
_NAME = (
    r"(?!(?:i|the|this|that|these|those|it|he|she|they|we|you|my|our|your|there|here|what|which|who|one|an?|nobody"
    rf"|someone|everyone|everything|nothing|now|then|and|but)\b){_CAPITAL}[\w.'-]*(?: {_CAPITAL}[\w.'-]*){{0,3}}"
)
_AM = r"(?:i'm|i am|im)"
_WE_ARE = r"(?:we're|we are)"
_WORD = r"[\w/&'-]+"
_VAGUE = r"(?:it|its|this|that|these|those|them|you|your|yours|how|what|where|when i|why)\b(?! when)"
_OFTEN = (
    r"(?:(?:really|also|usually|generally|always|normally|typically|mostly|mainly|often|strongly|much|absolutely|do|still"
    r"|personally|especially|currently|now|only|all|both|never|no longer|don't|do not|dont|rarely|kinda|actually|just) )*"
)
_FLEETING = (
    r" (?:(?:still|just|really|very|so|too|not|now|always|all|being|getting|acting|currently|a bit|almost|on) )*"
    r"(?:(?!during|spring|king|evening|morning|engineering|marketing|consulting|teaching|writing|training|joining)\w+ing\b"
    r"|slow|down|broken|dead|black|late|below|above|here|there|ready|done|fine|gone|back|up|off|out|empty|full"
    r"|delayed|stuck|sick|ill|great|good|nice|bad|awful|awesome|wrong|right|weird|happy|sad|angry|annoyed|tired|busy|over"
    r"|okay|ok|missing|missed|failed|that|whether|how|why|what|if|this|sorted|set|fixed|unavailable|offline|online"
    r"|asleep|hungry|excited|worried|confused|an? call|hold|fire|about (?:to|the)|due to the"
    r"|an? (?:bit|little|mess|problem|disaster|way|kind|type|set|piece|collection|form|list of)|in (?:progress|trouble|a meeting))\b"
)
_IS = rf"(?:is|are|isn't|aren't|will be|must be|has to be|should be)\b(?!{_FLEETING})"
_TRIVIAL = (
    r"(?:guess|questions?|points?|suggestions?|answers?|apolog\w+|concerns?|problems?|issues?|understanding|opinion|ideas?"
    r"|bad|pleasure|code|screen|internet|wifi|connection|head|orders?|faults?|mistakes?|thoughts?|messages?|turn|hope|fear"
    r"|worry|gut|take|bet|mind|browser|terminal|builds?|tests?|outputs?|inputs?|results?|scripts?|functions?|class|loop"
    r"|method|variables?|quer(?:y|ies)|program|final|next|best|first (?!name|language)|call|train|flight is|meeting is|bugs?|feeling|advice"
    r"|recommendation|request|task|prompt|word|world|life is|day|god|goodness|dear|friend,)\b"
)
_PEOPLE = _words(
    "wife husband partner spouse sons? daughters? kids? child children baby twins mother father mom mum dad parents"
    " brothers? sisters? grandma grandpa grandparents family dogs? cats? puppy kitten"
)
_PARTS = _words(
    "project product api app application backend frontend service server database db repo repository codebase config"
    " configuration file clients? customers? company team website site releases? deadline launch budget staging"
    " production prod branch branches pipeline ci cluster system platform policy office vendor library package module"
    " stack domain bucket queue port endpoint dashboard sprints? retro stand-?up contract invoices? demo docs"
    " documentation data backups? logs? infrastructure infra tool audience users? prototype mvp conventions? guidelines?"
    " process limit deploys deployments commits secrets migrations prs pull_requests merge_requests hotfixes tables"
    " failover payroll billing meetings tickets reviews monitoring passwords? network vpn"
)
_STANDS = (
    r"(?:(?:only|also|always|never|usually|currently|just) )?(?:runs? (?:on|in|at|under|every)|lives?|listens? on|targets?"
    r"|uses?|supports?|requires?|owns?|ends?|starts?|begins?|closes?|opens?|expires?|costs?|handles?"
    r"|needs? (?!to be (?:fixed|restarted))|must|consists? of|depends? on|belongs? to|follows?|changes? every"
    r"|works? (?:in|at|for|as|on|nights|from|with|remotely|part|full)|(?:has|have)(?! (?:been|just|to|had|an? (?:problem|bug|issue)))"
    r"|speaks?|likes?|loves?|hates?|prefers?|studies|goes to|teaches|drives?|plays?|eats?|lands?|(?:talks|connects) to"
    r"|can't eat|doesn't|don't|bills?|ships?|deploys?|calls? me|was born|passed away|turn(?:s|ed) \w+|takes care|reports? to)\b"
)
_LASTING = (
    r"(?:(?:is|are|was) (?:(?:now|also|always|only|currently|still|mostly|all|both|not) )*(?:called (?!twice|with|by|once|from)"
    r"|named|hosted|based|written|built|deployed|stored|located|scheduled|planned|protected|owned|maintained|due|kept"
    r"|licensed|limited|managed|installed|capped|cut|signed|available (?:at|on|under)|an? |at |on |in |for |to (?:be )?\w+|\d"
    rf"|(?:our|my|main|trunk|singular)\b|{_CAPITAL}))"
)
_TRAIT = _words(
    r"vegan vegetarian pescatarian diabetic allergic lactose gluten celiac coeliac colou?r-?_?blind blind deaf dyslexic"
    r" autistic neurodivergent left-handed right-handed married divorced widowed engaged single retired pregnant"
    r" bilingual trilingual unemployed self-employed jewish muslim christian hindu buddhist catholic atheist agnostic"
    r" gay lesbian bisexual trans nonbinary non-binary freelance freelancing introverted extroverted hypertensive"
    " in_a_wheelchair hard_of_hearing halal kosher"
)
_HAD = (
    r"(?:kids?|children|child|sons?|daughters?|twins|brothers?|sisters?|siblings?|dogs?|cats?|pets?|wife|husband|partner"
    r"|tortoise|horses?|disease|allerg(?:y|ies)|diabetes|asthma|adhd|autism|dyslexia|celiac|epilepsy|migraines|degree|phd"
    r"|doctorate|master's|bachelor's|background|years|experience|house|farm|car|garden|offices?|employees|people|customers"
    r"|clients|users|teams?|engineers|developers|servers|environments|repos|repositories|branches|stores|members"
    r"|intolerance|phobia|licen[cs]e|account|subscription|mac|macbook|laptop|iphone|android)\b"
)
_NOT_A_HABIT = (
    r"(?:\w+ed|think|guess|know|see|mean|need|want|have|had|get|got|feel|hope|wonder|believe|agree|understand|suggest"
    r"|recommend|wish|try|run|ran|did|was|were|am|will|would|could|should|can|can't|cannot|may|might|must|just|found|went"
    r"|saw|said|told|made|came|took|sent|gave|thought|knew|forgot|lost|left|met|felt|kept|began|broke|brought|built|bought"
    r"|wrote|spoke|drove|ate|slept|won|became|quit|put|set|cut|hit|let|keep|expect|receive|click|press|type|enter|open"
    r"|close|select|call|start|stop|restart|install|import|print|return|apologi[sz]e|promise|swear|remember|forget|regret"
    r"|notice|look|owe|vote|trust|bet|second|stand|say|ask|tell|hear|assume|appreciate|doubt|imagine|suppose|confirm|add"
    r"|thank|welcome|find|seem|realize|admit|insist|propose|pass|send|give|show|define|compute|apply|loop|iterate|obtain"
    r"|consider|multiply|divide|substitute|solve|check|first|then|now|talk|go with|go back|haven't|hasn't|didn't|wasn't"
    r"|won't|wouldn't|couldn't|don't|also|and|or|i|ain't|'\w+|come back|wait|miss|care|mind|finish|fix|copy|paste|upload"
    r"|download|plan|move|make (?:it|sure)|hold on)\b"
)
_LASTED = r"\b(?:since (?:\w+ )?(?:19|20)\d\d|for (?:[\w-]+ ){1,3}(?:years|decades)|all my life)\b"

_PREFERENCE = _any(
    rf"(?:i|we) {_OFTEN}(?:prefer|like|love|hate|dislike|enjoy|adore|loathe|despise|detest) (?!{_VAGUE}|to (?:know|see|ask|hear|thank)|the idea)\S",
    rf"i (?:can't|cannot|can not|cant) (?:stand|eat|drink|tolerate|bear) (?!{_VAGUE})\S",
    r"i(?:'d| would) (?:much |really |strongly |always )?(?:rather|prefer|like to be called)\b",
    r"i (?:always|usually|generally|normally|typically|mostly|never|rarely) (?!mind|got|saw|heard|knew|said|meant|did|had"
    r"|thought|was|were|been|understood|found|wanted)(?!\w+ed\b)\w+ \w+",
    r"(?:please )?(?:always|never) (?!mind|heard|seen|an?\b|the\b|happens|been|knew|had|thought|again|sure|got|\w+ed\b)\w+ \S",
    r"(?:please )?(?:don't|do not) ever \w+ \S",
    r"(?:please )?(?:don't|do not|avoid|stop) (?:us(?:e|ing)|suggest(?:ing)?|recommend(?:ing)?|includ(?:e|ing)|writ(?:e|ing)|abbreviat\w+"
    r"|call(?:ing)? me|schedul(?:e|ing)) (?!(?:it|this|that|the|these|those|too)\b)\S",
    r"(?:as a rule|by default|in future|in the future,|in general,? (?:i|we|use|please)"
    r"|whenever (?:you|i|we)|every time you|when (?:you|replying|answering|writing)\b)",
    r"(?:you (?:can|may|should) |please |just |everyone |everybody |people |friends |most people |they )*calls? me "
    r"(?!back|when|if|later|at|on|in|tomorrow|today|tonight|now|soon|asap|old|crazy|any|after|before|once|as|for|about"
    r"|with|out|maybe|an?\b)\S",
    r"(?:please )?(?:address|refer to) me\b",
    r"(?:please )?keep (?:your|all) (?:answers?|replies|responses|messages|code|explanations)\b",
    r"(?:please )?(?:use|write|answer|reply|respond|format|keep|avoid|give)\b.{1,80}\b(?:in all (?!the\b|of\b)|at all times"
    r"|every (?:time|answer|reply|response|message)|with me\b)",
    r".{0,80}\bplease\b\W{0,4}\b(?:always|never)\b",
    rf"{_AM} (?:more of an?|(?:not )?(?:really )?(?:an? )?(?:big |huge |great )?(?:fan of|into|keen on|fond of))\b",
    r"(?:i|we) (?:really |always )?(?:need|want|expect|require) (?:all|every|each|any|sources|everything)\b(?! (?:the|of|these|those|this))",
    r"(?:i|we) (?:always |never |don't ever )(?:need|want|expect|require)\b",
    r"for (?!this|that|the|now|a\b|an\b)[\w -]{3,40}?,? (?:i|we) (?:want|prefer|like|expect|always|never)\b",
)
_IDENTITY = _any(
    r"(?:(?:my|the) )?name(?:'s| is) \w",
    rf"i (?:(?:also|now|still|mostly|mainly|only|usually|currently|don't|do not|dont|both) )*(?!{_NOT_A_HABIT})[a-z]+(?: (?!{_VAGUE}|the\b(?! {_CAPITAL}))\S|$)",
    r"i (?:play|teach|lead|own|maintain|manage|coach|drive) the \w",
    rf"{_AM} (?:(?:also|still|actually|currently|originally|just|now|both) )*an? (?!bit|little|tad|lot|few|mess|step"
    r"|moment|couple|hurry|while|ai\b|language|meeting|assistant)\w",
    rf"{_AM} the (?:[\w-]+ ){{0,3}}(?:\w*lead|head|owner|manager|founder|co-?founder|director|author|maintainer|c[etfo]o|engineer"
    r"|developer|architect|admin|administrator|president|chair|treasurer|teacher|coach|designer|youngest|oldest|eldest)\b",
    rf"(?:{_AM}|(?:he|she|they)(?:'s|'re| is| are)) (?:(?:also|severely|actually|currently|originally|now|happily|very|strictly) )*(?:{_TRAIT}\b"
    r"|based (?:in|near|out of)|living in|located in|working (?:at|for|as)|from (?!(?:the|this|that|your|my)\b)|from the"
    r" (?:netherlands|uk|us|usa|states|philippines|united|south|north|east|west|midwest)\b|learning \w|studying \w"
    r"|training (?:for|to)|writing (?:an?|my) (?:\w+ ){0,2}(?:book|thesis|novel|dissertation)|raising|saving (?:up )?for"
    rf"|majoring|new to {_CAPITAL}|fluent in|responsible for|in charge of|expecting a|in {_CAPITAL})",
    rf"{_AM} (?!(?-i:OK|AFK|OOO|Sorry|Good|Fine|Not|So|Very)\b){_CAPITAL}",
    rf"{_AM} \d{{1,3}}(?: years? old| y/?o\b|$|[.,]| and)",
    rf"{_AM} planning to (?:retire|move|emigrate|marry|get married|have (?:kids|children)|buy a house|go back to school)\b",
    r"i (?:was born|grew up|studied (?!the|this|it)|graduated|majored|trained as|come from|served in|retired|founded"
    r"|co-?founded|used to|got (?:promoted|married|divorced|engaged|hired)|was (?:diagnosed|raised|hired|laid off)"
    r"|(?:quit|left|lost|started|changed) (?:my|an?) (?:new |old )?(?:job|company|business)|joined (?!the (?:call|meeting))"
    r"|(?:quit|stopped|gave up) \w+ing)\b",
    rf"i moved (?:back )?(?:here )?(?:to|from) {_CAPITAL}",
    r"i run (?:(?:an?|my|our) (?:\w+ ){0,2}(?:company|business|shop|store|bakery|startup|team|agency|farm|blog|podcast"
    r"|channel|newsletter|restaurant|cafe|studio|practice)|marathons|trails|ultras|every|\d+ ?k)\b",
    rf"(?:i|we)(?: have|'ve got|'ve| got) (?:(?!to\b|no idea|been|just|tried)[\w-]+ ){{0,4}}{_HAD}",
    rf"(?:i|we)(?: have|'ve) .{{1,80}}{_LASTED}",
    r"i(?: have|'ve) (?:been (?:an? (?!bit|while|few|little)|married|vegan|vegetarian|sober)|(?:worked|lived|taught|studied|played))\b",
    rf"(?:{_TRAIT}) here\b",
    r"allergic to \w",
    r"as an? (?!ai\b|result|reminder|test|start|side|language|matter|rule|last|first|bonus)[\w -]{2,40}, i\b",
    rf"(?:(?:both|all|one|two|some|most)(?: of)? )?my (?!{_TRIVIAL})(?:{_WORD} ){{1,5}}(?:{_STANDS}|{_IS})",
    rf"my (?!{_TRIVIAL})(?:{_WORD} ){{1,4}}(?:just )?turn(?:s|ed)\b",
    rf"the {_PEOPLE} (?:{_STANDS}|{_IS})",
    rf"(?:my|our) [\w -]{{2,30}} and i {_OFTEN}(?:are|live|work|have|own)\b",
)
_TEAM = _any(
    rf"we {_OFTEN}(?!{_NOT_A_HABIT})[a-z]+(?: (?:on|in|at|with|from|to|for|out))?"
    rf" (?!{_VAGUE}|well\b|(?:later|soon|again|here|there|together)\b|the\b(?! {_CAPITAL})|an? (?:loop|list|dict|variable|function|new variable)\b)\S",
    r"we (?:own|maintain|follow|support|manage|host|serve|run|build|develop) (?:all |the )(?!loop|input|result|test|script|same|following)\w",
    rf"{_WE_ARE} (?:an? (?!bit|little|few|lot|mess)|building \w|using \w|based in|located in|targeting|developing|launching"
    rf"|about \d+|\d+ (?:people|engineers|developers)|on {_CAPITAL}|(?:not |only )?(?:allowed|required|obliged) to)",
    r"we'll be using \w",
    rf"(?:all |most |some |half |both )?(?:of )?our (?!{_TRIVIAL})(?:{_WORD} ){{1,5}}(?:{_STANDS}|{_IS})",
    r"all our [\w -]{3,40}\b(?:log|run|use|are|have|must|need|live|speak)\b",
    rf"(?!.{{0,200}}\byour\b)(?:the )?(?:{_WORD} ){{0,3}}?{_PARTS}(?:'s)?(?: {_WORD}){{0,3}}? (?:{_STANDS}|(?!(?:is|are){_FLEETING}){_LASTING})",
    rf"its (?:{_WORD} ){{0,2}}{_PARTS} {_IS}",
    r"(?:nobody|everyone|everybody|no one|half|most|each) (?:on|in|of) (?:our|the) (?:team|company|office)\b",
    r"[\w' -]{2,40} (?:is|are|happens?|runs?|takes? place|starts?|go(?:es)? out) (?:every (?!time)|each|daily|weekly|monthly|biweekly"
    r"|on (?:the \d|(?:mon|tues|wednes|thurs|fri|satur|sun)days?))",
    rf"{_NAME} (?:is (?:my|our|responsible for|in charge of)|takes care of|handles|owns|leads|manages|maintains|reports to|joined"
    r"|moved (?:from|to)|lives in|works (?:at|for|in|as|on)|approves|signs off|prefers|speaks|left the (?:team|company))\b",
    r"(?:deadline|(?:tech )?stack|time ?zone|name|e-?mail|phone|location|company|budget|repo|repository|language|audience"
    r"|project(?: name)?|(?:final )?decision|preferences?|goal|birthday|address|port|database|framework|due date|client"
    r"|team)\s?: \S",
)
_DECISION = _any(
    r"(?:(?:in the end|after .{1,40}?|yesterday|today|last \w+|finally|ultimately|eventually),? )?(?:we|i|the (?:team|board|client"
    r"|company|group|committee)|management|our team|everyone)(?:'ve| have| has)?"
    r" (?:(?:all|just|finally|already|now|both|unanimously|also) )*(?:decided|agreed|chose|chosen|settled|picked|opted"
    r"|voted|selected|committed to|ruled out|resolved to|approved|standardi[sz]ed on|adopted|dropped support|deprecated"
    r"|landed on|hired|signed with|partnered with)\b(?! yet)",
    r"we(?:'ve| have)? (?:just |already |recently )?(?:switched|migrated|moved) (?:everything )?(?:to|from|off|away)\b(?! the next)",
    r"(?:we|i)(?:'ll| will|'re going to| are going to|'m going to) (?:go with|use|adopt|stick (?:with|to)|switch|migrate|drop|support|launch"
    r"|standardi[sz]e)\b(?! (?:it|this|that)\b)",
    rf"(?:{_WE_ARE}|i'm) (?:going with|switching|migrating|moving (?:to|from|off|away)|standardi[sz]ing on|adopting|dropping"
    r"|deprecating|sticking (?:with|to))\b",
    r"we plan to (?:launch|ship|release|migrate|move|drop|switch|adopt|open|hire)\b",
    r"let's (?:use|go with|stick (?:with|to)|switch to|adopt|standardi[sz]e on|move to|pick|choose|drop|settle on"
    r"|agree (?:on|that|to))\b(?! (?:it|this|that|the (?:time|first|second|same|next|other))\b)",
    r"it(?:'s| was| has been|'s been| is) (?:been )?(?:agreed|decided|settled)\b",
    r"the (?:plan|decision|agreement|consensus) (?:is|was) (?:to|that)\b",
    r"(?:from (?:now|today)(?: on)?|starting (?:today|now|next \w+)|(?:going|moving) forward(?=,)),? \w",
    r".{1,150}\bfrom now on\b",
)


def extract_facts(text: str) -> list[str]:
    """Find the durable facts of a chat message: preferences, identity, project context, decisions, "remember that …".

    Sentences come back as written, blanks collapsed, in order and once each; of "remember that X" only X comes back.
    Questions, small talk, requests, code, logs, quotes and recalled memory blocks yield nothing. Only the first
    100,000 characters are read.
    """
    facts: dict[str, str] = {}
    for sentence in _sentences(without_fences(text[:MAX_TEXT_CHARS])):
        fact = _fact(sentence)
        if fact:
            facts.setdefault(fact.casefold().rstrip(" .!;,"), fact)
    return list(facts.values())


def _sentences(text: str) -> Iterator[str]:
    for paragraph in _unwrapped(_prose_lines(text)):
        yield from _split(paragraph.split())


def _prose_lines(text: str) -> Iterator[str]:
    """Lines that somebody wrote, with the bullets still on; code, logs, quotes and tracebacks leave an empty line."""
    in_code = in_traceback = False
    for line in text.splitlines():
        if _CODE_FENCE.match(line):
            in_code = not in_code
        elif _TRACEBACK.match(line):
            in_traceback = True
        elif in_traceback:
            in_traceback = _TRACEBACK_END.match(line) is None
        elif not in_code and not _MACHINE_LINE.match(line):
            yield line
            continue
        yield ""


def _unwrapped(lines: Iterator[str]) -> Iterator[str]:
    """Join a line to the one before when that one was wrapped by a mail client: long, unfinished, going on in lower case."""
    held = ""
    for line in lines:
        words = line.strip()
        if len(held) >= 60 and held[-1] not in ".!?:;" and words[:1].islower():
            held = f"{held} {words}"
            continue
        yield held
        held = _BULLET.sub("", words, count=1)
    yield held


def _split(words: list[str]) -> Iterator[str]:
    start = 0
    for at, word in enumerate(words, start=1):
        if at == len(words) or _ends_sentence(word, words[at]):
            yield " ".join(words[start:at])
            start = at


def _ends_sentence(word: str, following: str) -> bool:
    bare = word.rstrip(_CLOSERS)
    if not bare.endswith((".", "!", "?", "…")):
        return False
    stem = bare.rstrip(".!?…").lstrip("(\"'“").casefold()
    if bare.endswith("."):
        if stem in _NEVER_LAST:
            return False
        if "." in stem or len(stem) == 1:  # D.C., p.m., an initial: the sentence ends only if a new one clearly begins
            return following.casefold() in _STARTERS and not following.islower()
        return True
    return not (bare.endswith("!") and following in _LOWER_GOES_ON)


def _fact(sentence: str) -> str | None:
    """The part of the sentence to keep, if any."""
    if len(sentence) > MAX_SENTENCE_CHARS:
        return None
    said = _without_lead_in(_ROLE.sub("", sentence, count=1).replace("’", "'"))  # noqa: RUF001  one length, so slices agree
    told = _REMEMBER.match(said)
    if told:
        return _worth_telling(said[told.end() :].rstrip("?"))
    mentioned = _MENTION.match(said)
    if mentioned:
        rest = said[mentioned.end() :]
        return None if _is_vague(rest) else _worth_telling(rest)
    return _statement(said)


def _without_lead_in(said: str) -> str:
    for _ in range(4):
        lead = _LEAD_IN.match(said)
        if lead is None or lead.end() == len(said):
            break
        said = said[lead.end() :]
    return said


def _worth_telling(rest: str) -> str | None:
    return rest if " " in rest else None


def _is_vague(rest: str) -> bool:
    return rest.endswith("?") or bool(re.match(r"(?:this|it|that|to)\b", rest, re.IGNORECASE) or _PASSING.search(rest))


def _statement(said: str) -> str | None:
    if _SUPPOSED.match(said) or _REQUEST.match(said) or _QUESTION_START.match(said) or _HEDGED.search(said):
        return None
    asking = _ASKING_TAIL.search(said)
    if asking:
        said = said[: asking.start()]
    return said if not said.endswith("?") and _states(said) else None


def _states(said: str) -> bool:
    """Whether the sentence, or a clause of it that stands on its own, says something durable."""
    speaker = _SPEAKER.match(said)
    clauses = _clauses(said[speaker.end() :] if speaker and not _TEAM.match(said) else said)
    if any(_DECISION.match(clause) for clause in clauses):
        return True
    return not _PASSING.search(said) and any(_describes(clause) for clause in clauses)


def _clauses(said: str) -> list[str]:
    said = re.sub(r"^(?:since|because|as|given that) (?=i\b|i'm|we\b|my\b|our\b)", "", said, flags=re.IGNORECASE)
    if _SCENE.match(said):
        return [said]
    starts = [0, *(gap.end() for gap in _CLAUSE_BREAK.finditer(said))]
    return [said[start:] for start in starts[:_MAX_CLAUSES]]


def _describes(clause: str) -> bool:
    return any(rule.match(clause) for rule in (_PREFERENCE, _IDENTITY, _TEAM))
