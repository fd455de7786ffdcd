"""The rules of `extract`: the shapes of a line, a sentence, a preference, a decision in English. Tables only."""

from __future__ import annotations

import re
from functools import cached_property


def any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


class Rules:
    """Alternatives compiled at first use: compiling them all would add 50 ms to every `import kronmem`."""

    def __init__(self, *patterns: str) -> None:
        self._patterns = patterns

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return any(*self._patterns)

    def match(self, clause: str) -> bool:
        return self._compiled.match(clause) is not None


def words(text: str) -> str:
    """An alternation of blank-separated words; `_` stands for a blank inside one."""
    return "(?:" + "|".join(word.replace("_", " ") for word in text.split()) + ")"


# --- lines -----------------------------------------------------------------------------------------------------------

CODE_FENCE = re.compile(r"\s*(?:```|~~~)")
TRACEBACK = re.compile(r"\s*Traceback \(most recent call last\)")
TRACEBACK_END = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning)\b")
MACHINE_LINE = re.compile(
    r"""\s*(?:> | >>>\s | [{<] | \[\s*[\[{"'] | \$\s | ["'“] | at\s\S+\(
    | \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d | \[?\d\d:\d\d:\d\d
    | \[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|CRITICAL)\b | [A-Za-z_.]{1,60}(?:Error|Exception|Warning):)""",
    re.VERBOSE,
)
BULLET = re.compile(r"\s*(?:(?:[-*+•–]|\#{1,6}|\(?\d{1,3}[.)]|\[[ xX]\])\s+)*")
ROLE = re.compile(r"^\[?(?:user|human|assistant|ai|bot|system|customer|me)\]?\s?:\s*", re.IGNORECASE)

# --- sentences -------------------------------------------------------------------------------------------------------

CLOSERS = "\"')]}”’*_"
NEVER_LAST = frozenset(
    ["mr", "mrs", "ms", "dr", "prof", "st", "sr", "jr", "e.g", "i.e", "eg", "ie", "vs", "approx", "cf", "fig"]
)
INITIALS = re.compile(r"(?:[a-z]\.)*[a-z]")
STARTERS = frozenset(
    ["i", "we", "my", "our", "the", "he", "she", "they", "it", "this", "that", "you", "please", "i'm", "we're", "let's"]
)
MONTHS = frozenset(
    (
        *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october"),
        *("november", "december", "januar", "februar", "märz", "mai", "juni", "juli", "oktober", "dezember"),
    )
)
"""A German ordinal before one of these ends no sentence: "am 3. Dezember"."""
LOWER_GOES_ON = frozenset(
    ["and", "or", "but", "with", "in", "for", "as", "at", "where", "which", "who", "from", "to", "is", "was", "has"]
)

# --- what a sentence is not ------------------------------------------------------------------------------------------

LEAD_IN = any(
    r"(?:hi|hello|hey|dear)(?: (?:there|all|everyone|team|folks))?\s?[,!.]\s?",
    r"(?:ok|okay|well|so|also|and|but|oh|ah|btw|by the way|anyway|anyways|yes|yeah|yep|nope|sure"
    r"|no(?=\s?[,!:;–—-]| (?:i|i'm|it|it's|we|we're|my|our|he|she|they|that|the)\b)|right|actually|plus|hmm|um|great"
    r"|good point|nice|additionally|furthermore|besides|in fact"
    r"|honestly|to be clear)\b\s?[,!:;–—-]?\s",
)
REMEMBER = any(
    r"(?:(?:please|also|and|just|always|so|now|ok|can you|could you|will you|would you|i(?:'d| would) like you to"
    r"|i (?:want|need) you to|you should|you must|try to),? )*(?:remember(?: that\b|[:,]"
    r"|(?= (?:always|never|my|our|i|i'm|i've|we|we're)\b)|(?= the .{1,60} (?:is|are|has|uses|runs)\b)"
    r"| to(?= (?:always|never)\b))|(?:don't|do not|never) forget(?: that\b|[:,]|(?= (?:my|our|i|i'm|we|we're)\b)"
    r"| to(?= (?:always|never)\b))|(?:keep|bear) (?:it )?in mind(?: that\b|[:,]|(?= \w))"
    r"|(?:please )?note(?: down)? that\b|(?:make|take) (?:a )?note(?: that\b|[:,]|(?= of\b))|be aware that\b"
    r"|(?:save|store|memori[sz]e|remember) (?:this|the following)(?: fact| note)?\s?[:,-])\s*",
    r"(?:just )?for (?:(?:your )?future reference|the record|later reference)\s?[,:–—-]?\s*",
)
MENTION = any(
    r"(?:just )?(?:fyi|for your information|(?:so|in case) (?:you|u) know)\s?[,:–—-]?\s+",
    r"(?:heads[- ]up|important|note|reminder|for context|some context|n\.?b\.?)\s?[,:–—-]\s+",
)
QUESTION_START = any(
    r"(?:what|how|why|where|who|whom|whose|which|do|does|did|is|are|am|was|were|can|could|would|will|shall|should"
    r"|has|have|isn't|aren't|don't you|didn't|doesn't|won't|any idea|anyone)\b",
    r"when\b(?! (?:you|replying|answering|writing|i|we)\b)",
)
SUPPOSED = any(
    r"(?:if|unless|suppose|supposing|imagine|pretend|assume|assuming|say we|say i|let's (?:say|assume|pretend"
    r"|imagine)|maybe|perhaps|possibly|probably|hypothetically|in theory|in case|whether|had (?:i|we)|were (?:i|we)"
    r"|act as|i (?:wish|might|may|could|think|guess|suppose|doubt|wonder|believe|suggest|recommend|hope|feel)"
    r"|i'm (?:not sure|guessing|wondering|thinking)|i am not sure)\b",
)
REQUEST = any(
    words(
        "write tell show give explain translate summari[sz]e make create generate fix check find send help list draft"
        " review compare rewrite describe implement act run print read open click look search add remove delete update"
        " paraphrase correct proofread convert calculate compute solve classify extract complete continue repeat say"
        " one_moment see here's here_is thanks thank_you"
    )
    + r"\b",
)
# "We use zip to pair the rows" walks through code; a team's tool comes with a capital or without a purpose.
EXPLAINED = re.compile(r"\buses? (?:an? )?[a-z][\w ]{1,30} to \w+ (?:the|each|a|both)\b")
HEDGED = re.compile(
    r"\b(?:lol|haha+|jk|just kidding|not sure|who knows|maybe|perhaps|haven't|hasn't|not yet|as an ai"
    r"|language model|ai assistant)\b",
    re.IGNORECASE,
)
PASSING = re.compile(
    r"\b(?:right now|at the moment|just now|for now|today|tonight|tomorrow|yesterday|this (?:morning|afternoon"
    r"|evening|week|time|step|case)|brb|haha+|lol|in (?:a|an|one|two|five|ten|\d+) (?:sec|second|minute|moment"
    r"|hour)s?|minutes late|out for|until (?:one|two|three|lunch|noon)|see you|talk soon|gotta go|(?:have"
    r"|got) to go|as i said|about to|below|above)\b",
    re.IGNORECASE,
)
CLAUSE_BREAK = re.compile(r"(?:,|;| [-–—])\s+(?:(?:and|but|so|because|since|as)\s+)?|\s+(?:and|but|because)\s+")
ASKING_TAIL = re.compile(
    r"(?:,|;|\s[-–—]|\s(?=and\b|so\b|but\b))\s*(?:(?:so|and|but|then)\s+)?(?:please (?!\W{0,3}(?:always"
    r"|never))|can (?:you|we|i)\b|could (?:you|we|i)\b|would you\b|will you\b|what\b|which\b|how\b"
    r"|where\b|who\b|when\b|is (?:it|there)\b|are there\b|do(?:es)? (?:you|it|that)\b"
    r"|should (?:i|we)\b|any (?:tips|ideas?|advice|suggestions?)\b)",
    re.IGNORECASE,
)
SPEAKER = re.compile(r"(?:(?:Quick|Small|Short) )?[A-Z][\w-]{1,30}: (?=\w)")
OPENING = any(
    r"^(?:since|because|as|given that) (?=i\b|i'm|we\b|we're|my\b|our\b)",
    r"^(?:for what it's worth|as for me|in my case|at (?:work|home|my company|our company)"
    r"|(?:on|in) (?:our|my|this) (?:team|project|repo|company)|for (?:our|this) project|these days|nowadays"
    r"|in production|on weekends|most days|personally|some background|let me give you some (?:background"
    r"|context))\s?[,:]? ",
)
# "In Rust, we use Result" explains; after such an opening the next clause is not about the writer's own team.
SCENE = any(
    r"(?:in|to|for|with|on|at|based on|according to|given|while|after|before|by|using|here|now|then|next|first"
    r"|finally|once|when)\b"
)

# --- what a sentence states ------------------------------------------------------------------------------------------
# The simple present of the first person is how people state habits and standing facts, so it counts unless the verb
# reports a thought, a wish or one action at a keyboard. Past tenses count only for events that change a life or a plan.

CAPITAL = "(?-i:[A-ZÀ-ÖØ-Þ])"
NAME = (
    r"(?!(?:i|the|this|that|these|those|it|he|she|they|we|you|my|our|your|there|here|what|which|who|one|an?|nobody"
    rf"|someone|everyone|everything|nothing|now|then|and|but)\b){CAPITAL}[\w.'-]*(?: {CAPITAL}[\w.'-]*){{0,3}}"
)
AM = r"(?:i'm|i am|im)"
WE_ARE = r"(?:we're|we are)"
WORD = r"[\w/&'-]+"
VAGUE = (
    r"(?:(?:on|in|at|with|from|to|for|of|about|through|into|over) )?(?:it|its|this|that|these|those|them|you|your"
    r"|yours|how|what|where|when i|why)\b(?! when)"
)
OFTEN = (
    r"(?:(?:really|also|usually|generally|always|normally|typically|mostly|mainly|often|strongly|much|absolutely|do"
    r"|still|personally|especially|currently|now|only|all|both|never|no longer|don't|do not|dont|rarely|kinda"
    r"|actually|just) )*"
)
FLEETING = (
    r" (?:(?:still|just|really|very|so|too|not|now|always|all|being|getting|acting|currently|a bit|almost"
    r"|on) )*(?:(?!during|spring|king|evening|morning|engineering|marketing|consulting|teaching|writing|training"
    r"|joining)\w+ing\b|slow|down|broken|dead|black|late|below|above|here|there|ready|done|fine|gone|back|up|off"
    r"|out|empty|full|delayed|stuck|sick|ill|great|good|nice|bad|awful|awesome|wrong|right|weird|happy|sad|angry"
    r"|annoyed|tired|busy|over|okay|ok|missing|missed|failed|that|whether|how|why|what|if|this|sorted|set|fixed"
    r"|unavailable|offline|online|asleep|hungry|excited|worried|confused|an? call|hold|fire|about (?:to|the)"
    r"|due to the|an? (?:bit|little|mess|problem|disaster|way|kind|type|set|piece|collection|form|list of)"
    r"|in (?:progress|trouble|a meeting|the (?:attachment|middle|way)))\b"
)
IS = rf"(?:is|are|isn't|aren't|will be|must be|has to be|should be)\b(?!{FLEETING})"
TRIVIAL = (
    words(
        r"guess questions? points? suggestions? answers? apolog\w+ concerns? problems? issues? understanding opinion"
        r" ideas? bad pleasure code screen internet wifi connection head orders? faults? mistakes? thoughts? messages?"
        r" turn hope fear worry gut take bet mind browser terminal builds? tests? outputs? inputs? results? scripts?"
        r" functions? class loop method variables? quer(?:y|ies) program final next best first_(?!name|language) call"
        r" train flight_is meeting_is bugs? feeling advice recommendation request task prompt word world life_is day"
        r" god goodness dear friend, approach solution algorithm strategy logic implementation package container"
        r" machine (?:goal|aim|task)_here plan_is_to_(?:check|fix|try|look|test|run|get|see|sort|start)"
    )
    + r"\b"
)
PEOPLE = words(
    "wife husband partner spouse sons? daughters? kids? child children baby twins mother father mom mum dad parents"
    " brothers? sisters? grandma grandpa grandparents family dogs? cats? puppy kitten"
)
PARTS = words(
    "project product api app application backend frontend service server database db repo repository codebase config"
    " configuration file clients? customers? company team website site releases? deadline launch budget staging"
    " production prod branch branches pipeline ci cluster system platform policy office vendor library package module"
    " stack domain bucket queue port endpoint dashboard sprints? retro stand-?up contract invoices? demo docs"
    " documentation warehouse backups? logs? infrastructure infra tool audience users? prototype mvp conventions?"
    " guidelines? process limit tests deploys deployments commits secrets migrations prs pull_requests merge_requests"
    " hotfixes tables failover payroll billing meetings tickets reviews monitoring passwords? network vpn"
)
STANDS = (
    r"(?:(?:only|also|always|never|usually|currently|just) )?(?:runs? (?:on|in|at|under|every)|lives?|listens? on"
    r"|targets?|uses?|supports?|requires?|owns?|ends?|starts?|begins?|closes?|opens?|expires?|costs?|handles?"
    r"|needs? (?!to be (?:fixed|restarted))|must|consists? of|depends? on|belongs? to|follows?|changes? every"
    r"|works? (?:in|at|for|as|on|nights|from|with|remotely|part|full)"
    r"|(?:has|have)(?! (?:not|been|just|to|had|already|an? (?:problem|bug|issue)))|speaks?|likes?|loves?|hates?"
    r"|prefers?|studies|goes to|teaches|drives?|plays?|eats?|lands?|(?:talks|connects) to|can't eat|doesn't|don't"
    r"|bills?|ships?|deploys?|calls? me|was born|passed away|turn(?:s|ed) \w+|takes care|reports? to"
    r"|runs (?:our|my|an?)|log in|sign (?:in|up)|pays?)\b"
)
LASTING = (
    r"(?:(?:is|are|was) (?:(?:now|also|always|only|currently|still|mostly|all|both|not) )*(?:called (?!twice|with"
    r"|by|once|from)|named|hosted|based|written|built|deployed|stored|located|scheduled|planned|protected|owned"
    r"|maintained|due|kept|licensed|limited|managed|installed|capped|cut|signed|available (?:at|on|under)|an? |at "
    rf"|on |in |for |to (?:be )?\w+|\d|(?:our|my|main|trunk|singular)\b|{CAPITAL}))"
)
# What an assistant must respect. Faith and orientation are left out on purpose: they are not ours to collect.
TRAIT = words(
    r"vegan vegetarian pescatarian halal kosher diabetic allergic lactose gluten celiac coeliac colou?r-?_?blind blind"
    r" deaf hard_of_hearing in_a_wheelchair dyslexic autistic neurodivergent left-handed right-handed married divorced"
    r" widowed engaged single retired pregnant bilingual trilingual unemployed self-employed freelance freelancing"
    r" introverted extroverted hypertensive"
)
HAD = (
    words(
        r"kids? children child sons? daughters? twins brothers? sisters? siblings? dogs? cats? pets? wife husband"
        r" partner tortoise horses? disease allerg(?:y|ies) diabetes asthma adhd autism dyslexia celiac epilepsy"
        r" migraines degree phd doctorate master's bachelor's background years experience house farm car garden"
        r" offices? employees people customers clients users teams? engineers developers servers environments repos"
        r" repositories branches stores members intolerance phobia polic(?:y|ies) rules? sla conventions? licen[cs]e"
        r" account subscription mac macbook laptop iphone android"
    )
    + r"\b"
)
NOT_A_HABIT = (
    words(
        r"\w+ed think guess know see mean need want have had get got feel hope wonder believe agree understand suggest"
        r" recommend wish try run ran did was were am will would could should can can't cannot may might must just"
        r" found went saw said told made came took sent gave thought knew forgot lost left met felt kept began broke"
        r" brought built bought wrote spoke drove ate slept won became quit put set cut hit let keep expect receive"
        r" click press type enter open close select call start stop restart install import print return apologi[sz]e"
        r" promise swear remember forget regret notice look owe vote trust bet second stand say ask tell hear assume"
        r" appreciate doubt imagine suppose confirm add thank welcome find seem realize admit insist propose pass send"
        r" give show define compute apply loop iterate obtain consider multiply divide substitute solve check first"
        r" then now talk go_with go_back haven't hasn't didn't wasn't won't wouldn't couldn't don't dont also and or i"
        r" ain't '\w+ come_back wait miss care mind finish fix copy paste upload download plan move make_(?:it|sure)"
        r" hold_on go_through sum load read_through always never usually really often only still currently mostly"
        r" mainly both all do no_longer rarely actually even"
    )
    + r"\b"
)
LASTED = r"\b(?:since (?:\w+ )?(?:19|20)\d\d|for (?:[\w-]+ ){1,3}(?:years|decades)|all my life)\b"

# How the assistant is to write: what "No bullet lists!" and "Emojis, never." are about.
STYLE = words(
    r"bullets? bullet_points? lists? emojis? emoticons tables? headings? headers? markdown jargon small_talk"
    r" pep_talks?"
    r" exclamation_marks? adverbs? passive_voice filler fluff apologies disclaimers? preambles? abbreviations?"
    r" acronyms?"
    r" semicolons? em[- ]dashes hyphens puns jokes buzzwords clich[eé]s? hashtags spoilers footnotes summaries"
    r" introductions? intros? greetings flattery comments docstrings type_hints print_statements long_answers"
)
NOT_THIS_TIME = r"(?!.{0,80}\b(?:this|that|these|those|it|the (?:first|second|third|last|other|new|old|next|same))\b)"
ORDER = any(
    rf"(?:please )?no (?:more )?(?:[\w-]+ ){{0,2}}{STYLE}(?: (?:please|anymore|ever|at all)|,? (?:in|with"
    rf"|for) (?:your|my|any"
    r"|code|answers?|replies|commits?|emails?|drafts?)\b[\w ]{0,30}(?:, .{1,80})?|, (?!or\b"
    r"|and\b)[\w '-]{2,40})?[.!]*$",
    rf"(?:please )?(?:use|write|spell|answer|reply|respond|speak|format|talk|indent|quote|count|measure|give me"
    rf"|call it)"
    rf" {NOT_THIS_TIME}(?:(?:in|with) )?[^,;]{{2,50}}?(?:,? (?:and )?(?:not|never)|,? instead of|,? rather than) \S",
    r"(?!(?:yes|no|ok|okay|works?|sorry|thanks|hmm|well|sure|maybe|now|today|right|good|fine|nice|it|that|this|done"
    r"|still"
    r"|probably)\b)(?:[\w/+#-]+ ){0,3}[\w/+#-]+, (?:not|never) (?!(?:the|an?|sure|urgent|now|yet|today|needed"
    r"|necessary|bad|working"
    r"|really|quite|that|this|it|you|me|him|her|them|so|too|very|even|only|just|always|here|there|again|ready|done"
    r"|finished|found|because|as|to|for|with|by|on|at|in|from|until|before|after|any\w*|much|many|enough|good|great"
    r"|possible|allowed|available|included|great|before|like|knowing|\w+ing"
    r"|\w+ed)\b)(?:[\w/+#-]+ ){0,3}[\w/+#-]+(?:,? please)?"
    r"[.!]*$",
    r"(?:from (?:now|today)(?: on\b|(?! on\b))|(?:going|moving) forward(?=,)),? (?:please )?(?!(?:i|we|my|our|the|it"
    r"|he|she|they|"
    r"this|that|all|every\w*|no)\b)(?-i:[a-z])\w+ \S",
)
"""What the writer wants from now on, said as an order."""
LEANING = any(
    r"(?:he|she|it|they|his|her|its|their|both|one of them|all of them)(?:'s|'re|'ve|'ll)?\b(?! is important)",
    r"(?:we're|we are|there are|there's) (?:now |about |only |just )?\d",
)
"""A sentence that cannot be understood without the one before it."""
BLOCKED = any(
    r"(?:the |our |my )?(?:[\w/&'-]+ ){1,4}(?:is|are) (?:(?:still|currently|now|all) )*(?:blocked|held up|on hold"
    r"|stuck|waiting)"
    r" (?:by|on|for|because of|until) (?:(?:the|our|a|an) )?(?:(?:ticket|issue|bug|pr|story|task) )?"
    r"(?:(?-i:[A-Z]{2,10}-\d+|#\d+)|(?:[\w-]+ )?(?:ticket|review|approval|legal|audit|sign-?off|vendor|client|customer"
    r"|contract|budget|licen[cs]e|permit|delivery)\b)",
)
"""What holds something up: true until it is solved."""

PREFERENCE = Rules(
    rf"(?:i|we) {OFTEN}(?:prefer|like|love|hate|dislike|enjoy|adore|loathe|despise|detest) (?!{VAGUE}"
    r"|to (?:know|see|ask|hear|thank|think)|the (?:idea|first|second|third|last|other|new|latest|way)\b)\S",
    rf"i (?:can't|cannot|can not|cant) (?:stand|eat|drink|tolerate|bear) (?!{VAGUE})\S",
    r"i(?:'d| would) (?:much |really |strongly |always )?(?:rather|prefer|like to be called)\b",
    r"i (?:always|usually|generally|normally|typically|mostly|never|rarely) (?!mind|got|saw|heard|knew|said|meant"
    r"|did|had|thought|was|were|been|understood|found|wanted|get"
    rf"|see)(?!\w+ed\b)(?:just )?(?!just\b)\w+ (?!{VAGUE})\w+",
    r"(?:please )?(?:always|never) (?!mind|heard|seen|an?\b|the\b|happens|been|knew|had|thought|again|sure|got"
    r"|\w+ed\b)\w+ \S",
    r"(?:please )?(?:don't|do not) ever \w+ \S",
    r"(?:please )?(?:don't|do not|avoid|stop) (?:us(?:e|ing)|suggest(?:ing)?|recommend(?:ing)?|includ(?:e|ing)"
    r"|writ(?:e|ing)|abbreviat\w+|call(?:ing)? me|schedul(?:e|ing)) (?!(?:it|this|that|the|these|those|too)\b)\S",
    r"(?:as a rule|by default|in future|in the future,|in general,? (?:i|we|use|please)|whenever (?:you|i|we)"
    r"|every time you|when (?:you|replying|answering|writing)\b)",
    r"(?:you (?:can|may|should) |please |just |everyone |everybody |people |friends |most people "
    r"|they )*calls? me (?!back|when|if|later|at|on|in|tomorrow|today|tonight|now|soon|asap|old|crazy|any|after"
    r"|before|once|as|for|about|with|out|maybe|an?\b)\S",
    r"(?:please )?(?:address|refer to) me\b",
    r"(?:please )?keep (?:your|all) (?:answers?|replies|responses|messages|code|explanations)\b",
    r"(?:please )?(?:use|write|answer|reply|respond|format|keep|avoid|give)\b.{1,80}\b(?:in all (?!the\b|of\b)"
    r"|at all times|every (?:time|answer|reply|response|message)|with me\b)",
    r".{0,80}\bplease\b\W{0,4}\b(?:always|never)\b",
    rf"{AM} (?:more of an?|(?:not )?(?:really )?(?:an? )?(?:big |huge |great )?(?:fan of|into|keen on|fond of))\b",
    r"(?:i|we) (?:really |always )?(?:need|want|expect|require) (?:all|every|each|any|sources"
    r"|everything)\b(?! (?:the|of|these|those|this))",
    r"(?:i|we) (?:always |never |don't ever )(?:need|want|expect|require)\b",
    r"for (?!this|that|the|now|a\b|an\b)[\w -]{3,40}?,? (?:i|we) (?:want|prefer|like|expect|always|never)\b",
)
IDENTITY = Rules(
    r"(?:(?:my|the) )?name(?:'s| is) \w",
    r"i (?:(?:also|now|still|mostly|mainly|only|usually|currently|don't|do not|dont"
    rf"|both) )*(?!{NOT_A_HABIT})[a-z]+(?: (?!{VAGUE}|the\b(?! {CAPITAL}))\S|$)",
    r"i (?:play|teach|lead|own|maintain|manage|coach|drive) the \w",
    rf"{AM} (?:(?:also|still|actually|currently|originally|just|now|both) )*an? (?!bit|little|tad|lot|few|mess|step"
    r"|moment|couple|hurry|while|ai\b|language|meeting|assistant)\w",
    rf"{AM} the (?:[\w-]+ ){{0,3}}(?:\w*lead|head|owner|manager|founder|co-?founder|director|author|maintainer"
    r"|c[etfo]o|engineer|developer|architect|admin|administrator|president|chair|treasurer|teacher|coach|designer"
    r"|youngest|oldest|eldest)\b",
    rf"(?:{AM}|(?:he|she|they)(?:'s|'re| is| are)) (?:(?:also|severely|actually|currently|originally|now|happily"
    rf"|very|strictly) )*(?:{TRAIT}\b|based (?:in|near|out of)|living in|located in|working (?:at|for|as)"
    r"|from (?!(?:the|this|that|your|my)\b)|from the (?:netherlands|uk|us|usa|states|philippines|united|south|north"
    r"|east|west|midwest)\b|learning \w|studying \w|training (?:for|to)|writing (?:an?|my) (?:\w+ ){0,2}(?:book"
    rf"|thesis|novel|dissertation)|raising|saving (?:up )?for|majoring|new to {CAPITAL}|(?:afraid|scared"
    r"|terrified) of (?!(?:it|this|that)\b)|fluent in|trying to (?:lose|quit|learn|save|cut down)|responsible for"
    rf"|in charge of|expecting a|in {CAPITAL})",
    rf"{AM} (?!(?-i:OK|AFK|OOO|Sorry|Good|Fine|Not|So|Very)\b){CAPITAL}",
    rf"{AM} \d{{1,3}}(?: years? old| y/?o\b|$|[.,]| and)",
    r"it(?:'s| is) important to me\b",
    rf"{AM} planning to (?:retire|move|emigrate|marry|get married|have (?:kids|children)|buy a house"
    r"|go back to school)\b",
    r"i (?:was born|grew up|studied (?!the|this|it)|graduated|majored|trained as|come from|served in|retired"
    r"|founded|co-?founded|used to|got (?:promoted|married|divorced|engaged|hired)|was (?:diagnosed|raised|hired"
    r"|laid off)|(?:quit|left|lost|started|changed) (?:my|an?) (?:new |old )?(?:job|company|business)"
    r"|joined (?!the (?:call|meeting))|(?:quit|stopped|gave up) \w+ing)\b",
    rf"i moved (?:back )?(?:here )?(?:to|from) {CAPITAL}",
    r"i run (?:(?:an?|my|our) (?:\w+ ){0,2}(?:company|business|shop|store|bakery|startup|team|agency|farm|blog"
    r"|podcast|channel|newsletter|restaurant|cafe|studio|practice)|marathons|trails|ultras|every|\d+ ?k)\b",
    rf"(?:i|we)(?: have|'ve got|'ve| got) (?:(?!to\b|no idea|been|just|tried)[\w-]+ ){{0,4}}{HAD}",
    rf"(?:i|we)(?: have|'ve) .{{1,80}}{LASTED}",
    r"i(?: have|'ve) (?:been (?:an? (?!bit|while|few|little)|married|vegan|vegetarian|sober)"
    r"|(?:worked|lived|taught|studied|played))\b",
    rf"(?:{TRAIT}) here\b",
    r"allergic to \w",
    r"as an? (?!ai\b|result|reminder|test|start|side|language|matter|rule|last|first|bonus)[\w -]{2,40}, i\b",
    rf"(?:(?:both|all|one|two|some|most)(?: of)? )?my (?!{TRIVIAL})(?:{WORD} ){{1,5}}(?:{STANDS}|{IS})",
    rf"my (?!{TRIVIAL})(?:{WORD} ){{1,4}}(?:just )?turn(?:s|ed)\b",
    rf"the {PEOPLE} (?:{STANDS}|{IS})",
    rf"(?:my|our) [\w -]{{2,30}} and i {OFTEN}(?:are|live|work|have|own)\b",
)
TEAM = Rules(
    # a correction: the same thing with another number, date or name
    r"(?:it's|it is|it was|that's|there are|they're"
    r"|we're) (?:\w+ )?(?-i:[A-Z\d])[^,;]{0,40},? not (?:\w+ )?(?-i:[A-Z\d])",
    rf"we {OFTEN}(?!{NOT_A_HABIT})[a-z]+(?: (?:on|in|at|with|from|to|for|out))? (?!{VAGUE}|well\b"
    rf"|(?:later|soon|again|here|there|together)\b|the\b(?! {CAPITAL})|an? (?:\w+ ){{0,2}}(?:loop|list|dict"
    r"|dictionary|array|variable|function|class|counter|regex|model)\b)\S",
    r"we (?:own|maintain|follow|support|manage|host|serve|run|build|develop) (?:all |the )(?!loop|input|result|test"
    r"|script|same|following)\w",
    rf"{WE_ARE} (?:an? (?!bit|little|few|lot|mess)|building \w|using \w|based in|located in|targeting|developing"
    rf"|launching|about \d+|\d+ (?:people|engineers|developers)|on {CAPITAL}|(?:not |only )?(?:allowed|required"
    r"|obliged) to)",
    r"we'll be using \w",
    rf"(?:all |most |some |half |both )?(?:of )?our (?!{TRIVIAL})(?:{WORD} ){{1,5}}(?:{STANDS}|{IS})",
    r"all our [\w -]{3,40}\b(?:log|run|use|are|have|must|need|live|speak)\b",
    rf"(?!.{{0,200}}\byour\b)(?:the )?(?:{WORD} ){{0,3}}?{PARTS}(?:'s)?(?: {WORD}){{0,3}}? (?:{STANDS}"
    rf"|(?!(?:is|are){FLEETING}){LASTING})",
    rf"(?:the |all )?(?:{WORD} ){{1,4}}(?:is|are) (?:written in {CAPITAL}|hosted (?:on|in|by|at)|licensed under"
    rf"|deployed (?:to|on)|(?:called|named) {CAPITAL}|due (?:on|by|in) |scheduled for)",
    rf"the (?:agreed|final|official|default|maximum|minimum|current) (?:{WORD} ){{1,3}}{IS}",
    r"everything we \w+ (?:is|goes|runs|must)\b",
    r"[\w ]{1,40} for (?:me|us) (?:has to|must|needs to)\b",
    rf"its (?:{WORD} ){{0,2}}{PARTS} {IS}",
    r"(?:nobody|everyone|everybody|no one|half|most|each) (?:on|in|of) (?:our|the) (?:team|company|office)\b",
    r"[\w' -]{2,40} (?:is|are|happens?|runs?|takes? place|starts?|go(?:es)? out) (?:every (?!time)|each|daily"
    r"|weekly|monthly|biweekly|on (?:the \d|(?:mon|tues|wednes|thurs|fri|satur|sun)days?))",
    rf"{NAME} (?:is (?:my|our|responsible for|in charge of)|takes care of|handles|owns|leads|manages|maintains"
    r"|reports to|joined|moved (?:from|to)|lives in|works (?:at|for|in|as|on the \w+ team)|approves|signs off"
    r"|prefers|speaks|left the (?:team|company))\b",
    r"(?:deadline|(?:tech )?stack|time ?zone|name|e-?mail|phone|location|company|budget|repo|repository|language"
    r"|audience|project(?: name)?|(?:final )?decision|preferences?|goal|birthday|address|port|database|framework"
    r"|due date|client|team)\s?: \S",
)
DECISION = Rules(
    r"(?:(?:in the end|after .{1,40}?|yesterday|today|last \w+|finally|ultimately|eventually),? )?(?:we|i"
    r"|the (?:team|board|client|company|group|committee)|management|our team|everyone)(?:'ve| have"
    r"| has)? (?:(?:all|just|finally|already|now|both|unanimously|also) )*(?:decided|agreed|chose|chosen|settled"
    r"|picked|opted|voted|selected|committed to|ruled out|resolved to|approved|standardi[sz]ed on|adopted"
    r"|dropped support|deprecated|landed on|hired|signed with|partnered with)\b(?! yet)",
    r"we(?:'ve| have)? (?:just |already |recently )?(?:switched|migrated|moved) (?:everything )?(?:to|from|off"
    r"|away)\b(?! the next)",
    r"(?:we|i)(?:'ll| will|'re going to| are going to|'m going to) (?:go with|use|adopt|stick (?:with|to)|switch"
    r"|migrate|drop|support|launch|standardi[sz]e)\b(?! (?:it|this|that)\b)",
    rf"(?:{WE_ARE}|i'm) (?:going with|switching|migrating|moving (?:to|from|off|away)|standardi[sz]ing on|adopting"
    r"|dropping|deprecating|sticking (?:with|to))\b",
    r"(?:we|i) (?:stopped (?:using|doing|making|buying) (?!it\b)\w|ended up (?:choosing|using|picking|going with"
    r"|with) (?!it\b)\w)",
    r"i switched (?:from \w.{0,40} )?to (?!the\b)\w",
    r"we plan to (?:launch|ship|release|migrate|move|drop|switch|adopt|open|hire)\b",
    r"let's (?:use|go with|stick (?:with|to)|switch to|adopt|standardi[sz]e on|move to|pick|choose|drop|settle on"
    r"|agree (?:on|that|to))\b(?! (?:it|this|that|the (?:time|first|second|same|next|other))\b)",
    r"it(?:'s| was| has been|'s been| is) (?:been )?(?:agreed|decided|settled)\b",
    r"the (?:plan|decision|agreement|consensus) (?:is|was) (?:to|that)\b",
    r"(?:from (?:now|today)(?: on)?|starting (?:today|now|next \w+)|(?:going|moving) forward(?=,)),? \w",
    r".{1,150}\b(?:from now on|whenever you)\b",
)
