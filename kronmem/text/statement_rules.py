"""The rules of `statements`: small talk, questions, requests and suppositions in four languages. Tables only.

A rule that is unsure keeps: a user's statement that is lost cannot be recalled, small talk that is stored only costs.
"""

from __future__ import annotations

import re

from kronmem.text.extract_rules import any

SPEAKER = re.compile(r"[A-ZÀ-ÖØ-Þ][\w'-]{1,30}(?: [A-ZÀ-ÖØ-Þ][\w'-]{1,30})?: (?=\S)")
"""The name in front of the words of one of a team."""

_SMALL_TALK = """
heya yo sup meh ugh yay last thing things question quick trick window moving topic laugh convinced option agreed both
neither either me a ah aha again ahead all alright also amazing and anytime anyway appreciated awesome back bet bravo
brilliant bro but bye can cheerio cheers coach cool correct course crazy cute day deal definitely done easy enough
evening everybody everyone exactly excellent fabulous fair fantastic fine folks for friend from funny get gladly go
good goodbye goodnight gotcha great greetings guys ha haha hahaha happy have hello hey hi hiya hm hmm hooray how huh
i'll i'm i see indeed interesting is it it's its just k kind kk later let's like little ll lol lot love lovely luck
makes man many mate mhm mind more morning much my nah neat never next nice night no none noon nope not noted now of oh
ok okay okey on one ooh oops ouch pal perfect please pleasure pls plz problem proceed quite ready really right roger
same sense seriously so solved some sorry sounds soon stop sure super sweet take talk team ten thank thanks that
that's thats the then there think this thx till to today tomorrow tonight too true tty ty understood until up very
wait want weekend welcome well what whatever whoa why will with wonderful work worked works worries wow write x ye yea
yeah yep yes yet yikes you you're your yup aber abend alle alles auf bald bestens bis bitte bitteschön dann danke
dankeschön das daumen der dir doch einen einverstanden er es euch fein freut ganz genau gern gerne gibt gott grüezi
grüß gruß grüße gut gute guten gutes hallo herzlichen ihnen ist ja jawohl jetzt kann klar klasse klingt leider liebe
los machen mal mich mir mittag moin moment morgen nacht na ne nee nein noch nun nö nur oha passt perfekt prima prost
richtig ruhig schade schon schöne schönen schönes sehr servus sie sind soweit spitze stimmt tag tja tschau tschüss
toll und viel vielen vielleicht von weiter weitermachen wiederhören wiedersehen wirklich wochenende wunderbar allez
allô attends au aussi avec beaucoup bien bon bonjour bonne bonsoir bref c'est cela ça ciao compris coucou d'accord dac
demain de des désolé et fin fait génial grave hein je journée jour la le les magnifique mais merci mille moi non nuit
ouais ouf oui parfait pas plaît plus pour prochaine revoir salut semaine si soir soirée soit suite sûr s'il te toi top
tous tout toute très tu un va vas vous vraiment week voilà adiós adelante ahora así buen buena buenas bueno buenos
chao claro como cómo con cuídate dale día días el en entendido eso está estupendo exacto favor gracias genial hasta
hola igualmente las listo lo luego mañana más mil mucha muchas muy nada noche noches o perfecto pero por pronto pues
qué que saludos semana sí siguiente tal tarde tardes también todo todos una vale venga ver vemos y ya
"""
SMALL_TALK = frozenset(_SMALL_TALK.split())
"""Words that state nothing, alone or together: "ok thanks", "wow nice", "Danke und schönen Abend"."""

LEAD = any(
    r"(?:hi+|hiya|hello|hey|dear|morning|good (?:morning|evening|afternoon)|hallo|moin|servus|guten (?:morgen|tag"
    r"|abend)"
    r"|grüß (?:gott|dich)|bonjour|bonsoir|salut|coucou|hola|buen[oa]s (?:días|tardes"
    r"|noches))\b[^.,!?:;\n]{0,20}[,.!]\s+",
    r"(?:ok(?:ay)?|k|well|so|also|and|but|oh|ah|aha|btw|by the way|anyway|yes|yeah|yep|yup|nope|sure|right|actually"
    r"|plus|hmm+|um|great|good|nice|cool|thanks|thank you|thx|perfect|understood|agreed|noted|got it|exactly|true"
    r"|ja|nein|genau|gut|klar|übrigens|ach|na|danke|außerdem|und|aber|oui|non|ouais|bon|alors|donc|merci|d'accord"
    r"|d'ailleurs|au fait|et|mais|sí|si|no"
    r"|bueno|vale|pues|gracias|claro|por cierto|además|y|pero)\b\s?[,.!:;–—-]+\s*",
    r"(?:ok(?:ay)?|well|also|and|but|oh|ah|btw|by the way|anyway|yes|yeah|yep|hmm+|und|aber|et|mais|y|pero) "
    r"(?=(?:but|and|also|so|btw|i|i'm|i've|we|my|our|it|the|he|she|they|no|ich|wir|mein\w*|der|die|das|je|nous|mon|ma"
    r"|le|la|yo|mi|el)\b)",
)
"""What leads in to a statement and is not part of it."""

TOLD_BEFORE = any(
    r"(?:as|like) (?:i|we) (?:said|mentioned|told you|wrote)|(?:as|like) (?:said|mentioned) (?:before|above)"
    r"|i (?:already|just) (?:said|told you|mentioned)|wie (?:schon )?(?:gesagt|erwähnt)|comme (?:je (?:l'ai|vous l'ai"
    r"|te l'ai) )?dit|como (?:ya )?(?:te )?(?:dije|he dicho)\b"
)

FAREWELL = any(
    r"(?:that(?:'s| is| will be|'ll be) (?:all|it)\b|(?:ok(?:ay)? )?(?:bye|goodbye|cheers|thanks|thank you|thx|ty"
    r"|many thanks"
    r"|good ?night|good morning|good evening|see (?:you|ya)|talk (?:to you )?(?:soon|later)|have an? (?:good|nice"
    r"|great"
    r"|lovely)|take care|ttyl|brb|gotta (?:go|run)|i(?:'ve got to|'ve gotta| have to| must) (?:go|run)\b|(?:i'm|i am)"
    r" (?:off|out|going) (?:now|for today|home|to (?:bed|lunch|dinner|sleep|a meeting|the gym))|until (?:next time"
    r"|tomorrow))\b)",
    r"(?:(?:vielen |herzlichen |besten )?dank\b|danke\b|bis (?:morgen|bald|dann|später|nächste)|tschüss?\b|gute nacht"
    r"|(?:einen )?schöne[ns]? (?:tag|abend|feierabend|wochenende)|ich muss (?:los|weg)\b|das (?:war's|wär's))",
    r"(?:merci\b|à (?:bientôt|demain|plus|tout à l'heure|la prochaine)|au revoir|bonne (?:nuit|journée|soirée|semaine)"
    r"|c'est tout\b|je (?:dois y aller|file)\b)",
    r"(?:(?:muchas |mil )?gracias\b|hasta (?:luego|mañana|pronto|la próxima)|adiós|buenas noches|que tengas?\b"
    r"|nos vemos"
    r"|eso es todo\b|me voy ya\b|me tengo que ir\b)",
)

CHIT_CHAT = any(
    r"i(?:'ll| will) (?:let you know|ask|come back|get back|report|be back|see|think|try|check|look|read|test"
    r"|wait)\b[^\d]{0,30}$|ready(?: (?:for|to) .{1,20})?[.! ]*$",
    r"(?:that|this|it|you) (?:did the trick|made (?:me|my) \w+|saved (?:me|my \w+))\b.{0,15}$|off (?:for|to) (?:an? "
    r"|the )?\w+[.! ]*$|ignore (?:that|this|my|it)\b",
    r"(?:ich muss (?:jetzt |dann )?(?:weg|los|gehen)|keine lust|es (?:regnet|schneit|ist (?:kalt|heiß|warm"
    r"|spät)))\b.{0,20}$",
    r"(?:(?:trop|très|pas) (?:drôle|mal|bien|cool|bon)|peu importe|je (?:réfléchis|vais voir|reviens)|il (?:pleut"
    r"|neige|fait (?:froid|chaud|beau)))\b.{0,20}$",
    r"(?:no importa|déjame \w+|qué (?:gracioso|divertido)|me da igual|(?:está )?lloviendo|hace (?:frío"
    r"|calor))\b.{0,20}$",
    r"(?:it(?:'s| is| was|s)? (?:been )?)?(?:an? )?(?:such an? )?(?:very |so |really )?(?:long|rough|busy|crazy|tough"
    r"|hard"
    r"|lovely|nice|beautiful) (?:day|week|night|morning|weekend|monday|weather)\b.{0,20}$",
    r"(?:i )?(?:slept (?:badly|well|like)|barely slept|need (?:a |more )?(?:coffee|sleep|break)"
    r"|could use a)\b.{0,30}$",
    r"(?:i'm|i am|im|feeling|i feel) (?:(?:so|very|really|a bit|still|just|pretty|quite) )*(?:tired|exhausted|hungry"
    r"|starving"
    r"|bored|fine|good|great|ok|okay|well|happy|sad|excited|stressed|sleepy|confused|back|here|ready|late|annoyed|lost"
    r"|stuck|curious|impressed|proud|glad|sorry|sick of|done|all ears|not sure|at (?:lunch|work))\b.{0,30}$",
    r"(?:the )?(?:coffee|tea|lunch|dinner|breakfast)(?:'s| is)? (?:ready|first|time|break|calls)\b.{0,30}$",
    r"(?:it|that|this)(?:'s| is| was| works| worked| looks| sounds| makes| does| helps| helped| seems)?\b"
    r"(?: (?:not|so|very|really|all|just|a bit|too|now|much|well|for me|again|fixed|solved))*"
    r" ?(?:great|good|better|nice|perfect|fine|ok|okay|funny|fun|helpful|useful|wrong|right|correct|bad|awful|weird"
    r"|odd|sense"
    r"|a lot|interesting|beautiful|amazing|it|works|working|now|clear|enough|easy|hard|done|help(?:s|ed)?)?[.! ]*$",
    r"(?:glad|nice|good|happy|great|lovely) (?:to (?:hear|see|know|meet)|that|you)\b",
    r"(?:you(?:'re| are) (?:welcome|right|great|the best|kind|awesome|a )|love (?:it|that|this)\b|no (?:worries"
    r"|problem|rush|idea|clue)\b"
    r"|never ?mind\b|don't worry\b|my (?:bad|pleasure)\b|good (?:luck|point|idea|question|job|work|catch)\b"
    r"|well done\b|one (?:sec|moment)\b"
    r"|(?:exactly|just) what i (?:needed|wanted|meant)|(?:so |very )?sorry\b.{0,25}$"
    r"|(?:give me|just) a (?:sec|second|minute|moment)|happy (?:birthday|friday|monday|new year)|congrat\w+"
    r"|just kidding|oh no\b"
    r"|what a \w+|how (?:nice|lovely|funny|sad|sweet)\b|it rains|it's (?:raining|snowing|cold|hot|sunny|friday"
    r"|monday)\b.{0,15}$)",
    r"(?:it |that |this )?(?:still|also|again|did(?:n't| not)|does(?:n't| not)|not)(?: (?:still|not|the|what i|really"
    r"|at all))* ?(?:broken|work(?:ing|ed|s)?|help(?:ed|ing)?|fail(?:s|ed|ing)?"
    r"|wrong|same|nothing|asked|meant|wanted|convinced|happy)\b.{0,15}$|(?:the )?same (?:error|problem|thing|here)\b",
    r"(?:i (?:(?:really |just )?(?:don't|do not|dont) (?:know|understand|remember|think so|care|mind|get it)"
    r"|understand|know|see|agree|hear you|bet|will|try|'?ll try.{0,10})"
    r"|i'll (?:try|see|check|look|think)\b.{0,20}|idk|no (?:way|problem|clue)|nothing(?: else| more)?"
    r"|(?:long time )?no see|ready when.{0,15}|would love .{0,30}|let me \w+"
    r"|(?:heading|off|going) (?:out|home|to (?:bed|lunch|dinner|sleep))\b.{0,15}|time (?:for|to) \w+"
    r"|weiß (?:ich )?nicht|je ne sais (?:pas|plus)|no (?:lo )?sé)[.! ]*$",
    r".{0,60}\b(?:in a (?:sec|second|minute|moment|bit)|be right back|brb)\b[.! ]*$",
    r"(?:bin|ich bin) (?:so |sehr |ganz |ziemlich |etwas )*(?:müde|fertig|kaputt|hungrig|bereit|da|zurück|gespannt"
    r"|froh)\b.{0,20}$",
    r"(?:das )?(?:ist|war|klingt|wäre|wird) (?:ja |sehr |so |wirklich |echt )*(?:gut|toll|super|schön|nett|lieb"
    r"|schade|lustig|prima|klasse"
    r"|ärgerlich|perfekt|interessant|richtig|schlecht)\b.{0,20}$",
    r"(?:keine ahnung|kein problem|macht nichts|gern geschehen|viel (?:glück|spaß|erfolg)|langer tag|schönes wetter"
    r"|wie schön|das tut mir leid)\b",
    r"(?:je suis|chuis) (?:très |si |trop |un peu |vraiment )*(?:fatiguée?|crevée?|prête?|contente?|désolée?|là"
    r"|de retour)\b.{0,20}$",
    r"(?:c'est|c'était|ça (?:a l'air|va|marche)) ?(?:très |vraiment |trop |si )*(?:bien|bon|super|génial|parfait|beau"
    r"|sympa|drôle|dommage|gentil|clair)?[.! ]*$",
    r"(?:pas de (?:souci|problème)|de rien|aucune idée|bonne (?:chance|idée)|quelle? (?:journée|chance|belle"
    r"|bonne))\b",
    r"(?:estoy|ando) (?:muy |tan |un poco |bastante )*(?:cansad[oa]|list[oa]|bien|content[oa]|aquí|de vuelta"
    r"|hambrient[oa])\b.{0,20}$",
    r"(?:eso |esto |todo )?(?:es|está|fue|suena|queda) (?:muy |tan |bastante )*(?:bien|bueno|buena|genial|perfecto"
    r"|bonito|divertido|claro|una pena)\b.{0,20}$",
    r"(?:no (?:pasa nada|hay problema|te preocupes|tengo ni idea)|de nada|buena (?:idea|suerte)|qué (?:bien|bueno"
    r"|guay|pena|día|risa|lindo))\b",
)
"""Moods, the weather, coffee and comments on the answer before, without anything to remember."""

LAUGHTER = re.compile(r"\b(?:lol|rofl|lmao|(?:ha){2,}h?|(?:he){2,}|(?:ja){2,}|mdr|xd)\b", re.IGNORECASE)
OWN = re.compile(
    r"\b(?:i|i'm|im|i've|my|we|we're|our|ich|mein\w*|wir|unser\w*|je|j'\w+|mon|ma|mes|nous|notre|yo|mi|mis|tengo|soy"
    r"|nuestr\w+)\b",
    re.IGNORECASE,
)
"""The writer speaks of himself."""

OWN_SUBJECT = re.compile(r"(?:i|i'm|im|i've|i'll|we|we're|we've|ich|wir|je|j'\w+|nous|on|yo)\b", re.IGNORECASE)
"""He is what the sentence is about: that counts, laughing or not."""

_SUBJECT = "(?:i|you|we|they|he|she|it|there|this|that|these|those|any\\w*)"
QUESTION = any(
    r"(?:what|how|where|who|when)s\b|which\b(?! (?:is why|means))|.{0,20}\bquestion\b.{0,12}\b(?:what|how|why|where"
    r"|who|which|is|can|do)\b",
    r"(?:is|are) (?!(?:now|not|still|only|also|always|back|off|out|in|on|at|to|for|from|with|all|both|allergic|\w+ing"
    r"|\w+ed)\b)\w+ \w+",
    r"(?:do|can|could|will|should) (?!(?:this|yes|as|always)\b)\w+s \w+|(?:did|does|can|will) (?-i:[A-Z])\w+ \w+"
    r"|(?:kann|darf|muss|soll) man\b",
    r"\d[\d.,]* ?\w+ in \w+$|(?:\w+ )?(?:kurze|andere|letzte|eine) frage\b|une (?:petite |autre )?question\b"
    r"|una (?:pregunta|duda)\b",
    r"(?:what|how|why|where|who|whom|whose|which|when)(?:'s|'re|'d)? ?(?:is|are|am|was|were|do|does|did|can|could"
    r"|would|will|shall"
    r"|should|has|have|had|about|if|else|to|many|much|long|far|often|old|big|kind|sort|time|day|one|for|happens"
    r"|happened|means"
    r"|makes|of|the|my|your|our|a)\b",
    r"(?:what|how|who|where|when)'s\b|who \w+|does (?!not\b)\w+ \w+",
    r"(?:the )?(?:difference|capital|meaning|definition|opposite|pros and cons|square root|causes|symptoms"
    r"|side effects|benefits|origin|history|synonyms?|antonyms?|recipe|best [\w-]+|word|translation"
    r"|formula|population|distance|examples?)"
    r" (?:between|of|in|for|from)\b(?!.*\b(?:is|are|was|were|has|will)\b)",
    rf"(?:do|does|did|is|are|am|was|were|can|could|would|will|shall|should|has|have|had|isn't|aren't|don't|didn't"
    rf"|doesn't"
    rf"|won't|can't|couldn't|wouldn't|shouldn't|haven't|hasn't) {_SUBJECT}\b",
    r"(?:do|does|is|are|can|could|would|will|should) (?:the|my|your|our|his|her|their|an?|some\w*)\b",
    r"(?:any|got any) (?:idea|ideas|news|tips?|advice|suggestions?|thoughts|chance|update|questions?|plans|other|more"
    r"|good)\b",
    r"(?:wondering|curious|i have (?:a|an|another|one more|some) (?:\w+ )?questions?|i wonder|i'm wondering|question"
    r"|quick question|i (?:want|need|would like|'d like) to (?:know|ask|understand))\b",
    # German: a verb before its subject, or a word that asks
    r"(?:wie|wo|wohin|woher|wann|warum|wieso|weshalb|wer|wem|wen|welche[rsmn]?|wieviel)\b(?! (?:gesagt|besprochen"
    r"|immer)\b)",
    r"was (?:ist|sind|war|waren|kostet|kosten|mach\w*|soll\w*|kann|können|könnte\w*|bedeutet|heißt|gibt|hast|hat"
    r"|haben|wird|würde\w*|muss|weißt|meinst|denkst|für"
    r"|passiert|wäre|darf|brauch\w*|tun|hilft|nun|jetzt|ich|du|wir|sie|er|man)\b",
    r"(?:kannst|können|könntest|könnten|könnte|hast|haben|habt|bist|sind|seid|ist|war|gibt|soll|sollte|sollen|darf"
    r"|muss|wird|würdest"
    r"|würden|weißt|wissen|kennst|kennen|geht|magst|möchtest|möchten) (?:du|ich|sie|wir|ihr|er|es|man|das|der|die|den"
    r"|ein\w*|mein\w*|dein\w*)\b",
    # French
    r"(?:est-ce|qu'est-ce|c'est quoi|qui (?:est|sont|a)|quand (?:est|sont|part|a)|où (?:est|sont|se|puis)|combien"
    r"|comment|pourquoi|quel(?:le)?s? (?:est|sont|heure|jour|temps)"
    r"|quoi|as-tu|avez-vous|peux-tu|pouvez-vous|pourrais-tu|pourriez-vous|sais-tu|savez-vous|y a-t-il|puis-je|dois-je"
    r"|est-il|est-elle)\b",
    # Spanish
    r"(?:¿|(?:qué|cómo|cuándo|dónde|quién|quiénes|cuál|cuáles|cuánto|cuánta|cuántos|cuántas)\b|por qué\b|(?:puedes"
    r"|podrías|puede|podría|sabes|tienes|hay algún\w*) )",
)
QUESTION_END = re.compile(
    r"(?:[?？¿]|か。?|吗。?|呢。?|\b(?:which one|what (?:is|was|does) (?:it|this|that)(?: mean)?|what now|what to do"
    r"|or not|or what|right|any ideas|thoughts|oder nicht|n'est-ce pas|verdad|no\?))[\s)\"'”»]*$",
    re.IGNORECASE,
)
NO_STATEMENT = re.compile(r"\b(?:or|oder|ou|o|(?:this|that|it|das|dies|ça|esto|eso)$)\b", re.IGNORECASE)
"""Two things to choose from before "which one?", or a pointer to what was pasted."""

REQUEST = any(
    r"(?:a bit |much |even |a little )?(?:less|more) \w+(?: please)?[.! ]*$|(?:and )?as an? \w+(?: \w+)?[.! ]*$"
    r"|and (?:in|for|with|on|at|as) \S+(?: \S+)?[.! ]*$",
    r"in (?:bullet points|prose|short|detail|english|german|french|spanish|italian|one sentence)\b.{0,10}$|(?:option"
    r"|number|version|variant|answer) \w{1,2}[.! ]*$",
    r"mach(?:e|en wir|en sie)? (?:es|das|so|'s)\b|(?:das (?:gleiche|selbe)|dasselbe|nochmal|noch mal) (?:auf|in|mit"
    r"|für)\b",
    r"(?:(?:please|pls|now|just|then|can you|could you|would you|will you|i (?:need|want) you to|i(?:'d"
    r"| would) like you to|let's|lets|let us"
    r"|try to|go ahead and|help me(?: to)?|you (?:can|could|should)),? )*"
    r"(?:write|tell|show|give|explain|translate|summari[sz]e|make (?:a|an|me|it|the|this|that)|create|generate"
    r"|fix(?! in\b)|check|find|send|help|list|draft"
    r"|review|compare|rewrite|describe|implement|act|print|read|open|click|look|search|suggest|recommend|paraphrase"
    r"|correct|proofread|convert"
    r"|calculate|compute|solve|classify|extract|complete|continue|keep going|define|spell|surprise|entertain|rate"
    r"|rephrase|reword|repeat|say|see|advise"
    r"|analy[sz]e|brainstorm|comment|outline|plan (?:a|an|my|our|the|it)"
    r"|design|debug|refactor|format (?:this|it|the)|shorten|improve|expand|finish|try|retry|redo|walk me|talk me"
    r"|(?:start|begin|finish|stop|run|do|play|count|call|order|book|buy|ask|sort|rank)(?: (?:a|an|it|this|that|the"
    r"|these|those|him|her|them|me|us|some|with|over|now|from)\b|$)"
    r"|go (?:ahead|on|for|through|back|over)|wait|hold on|come (?:on|back|up with)|pick|choose|guess|imagine|pretend"
    r"|sing|here's|here is|here are|have a look|take a look|let me|get me|turn (?:it|this|that|the)"
    r"|add|remove|delete|update|include|insert|use (?:this|that|it|the)|put (?:it|this|that|them)|swap|change|replace"
    r"|rename|edit|adjust|undo|skip|ignore"
    r"|proceed|answer (?:this|that|it|the|my)|remind me (?:to|in|tomorrow|later|what|where|when|who|how"
    r"|which))\b(?!-)",
    r"(?:(?:yes|ok) )?(?:please|pls)\b(?!.*\b(?:always|never)\b)",
    r"(?:i )?(?:need|want|would like|'d like|i'd like|looking for|in need of) (?:a|an|some|another|more|help"
    r"|to (?:see|know|hear|write|get|find|make|create|plan))\b"
    r"(?!.*\b(?:every|always|each|by (?:mon|tues|wednes|thurs|fri|satur|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct"
    r"|nov|dec|\d))\w*\b)",
    r"let's\b|lets\b|let us\b|(?:can|could|may|shall|should) (?:we|i|you)\b",
    r"(?:more|another|next|again|shorter|longer|simpler|faster|tell me|word for|synonym for|example of"
    r"|examples of)\b(?! (?:than|month|week|year|time|to|from)\b)",
    # German: the imperative, and what is asked for
    r"(?:(?:bitte|mal|jetzt|dann|und) )*(?:schreib\w*|zeig\w*|sag\w* (?:mir|uns|mal)|gib|geben sie|erklär\w*"
    r"|übersetz\w*|fass\w*|mach(?:e|en sie)? (?:mir|mal|daraus|das|ein\w*|bitte)"
    r"|erstell\w*|such\w* (?:mir|mal|bitte|sie|nach)|schick\w*|hilf|helfen sie|prüf\w*|liste?|nenn\w*"
    r"|schlag\w* (?:mir|etwas|was|ein\w*)|empfiehl|rechne\w*|vergleich\w*"
    r"|korrigier\w*|lass uns|lies|mal|weiter)\b(?! (?:ich|wir|er|sie|nicht|keine?)\b)",
    r"(?:ich (?:brauche|möchte|hätte gern|will) (?:ein\w*|noch|mehr|wissen|bitte|deine?|ihre?)|bitte)\b",
    # French
    r"(?:(?:s'il (?:te|vous) plaît|maintenant|alors|et),? )*(?:écri(?:s|vez)|montre[zs]?(?:-\w+)?|di(?:s|tes)-moi"
    r"|donne[zs]?-(?:moi|nous)|explique[zs]?(?:-\w+)?|tradui(?:s|sez)|résume[zs]?"
    r"|fai(?:s|tes)(?:-\w+)?|crée[zs]?|cherche[zs]?|trouve[zs]?|aide[zs]?(?:-\w+)?|vérifie[zs]?|propose[zs]?(?:-\w+)?"
    r"|corrige[zs]?|compare[zs]?|raconte[zs]?(?:-\w+)?|continue[zs]?"
    r"|calcule[zs]?)\b(?! pas\b)",
    r"(?:j'aimerais|je (?:voudrais|veux)) (?:un|une|des|que tu|que vous|savoir|voir)\b|s'il (?:te|vous) plaît\b",
    # Spanish
    r"(?:(?:por favor|ahora|y),? )*(?:escríbe\w*|escribe|muéstra\w*|dime|dame|explíca\w*|explica|traduce\w*|resume\w*"
    r"|haz\w*|crea|búsca\w*|busca|ayúda\w*|revisa"
    r"|propón\w*|sugiére\w*|recomiénda\w*|corrige|compara|cuénta\w*|sigue|continúa|calcula|prepara\w*)\b",
    r"(?:(?:me gustaría|quiero|quisiera|necesito) (?:un|una|que|saber|ver|ayuda)\b|por favor\b)",
)
CHANGES_A_PLAN = re.compile(
    r"^(?:(?:please|pls|and|now|then|let's|just) )*(?:swap|change|move|rename|replace|put|cancel|postpone|delay|push"
    r"|shift|drop|skip|book|order|add"
    r"|remove|include|switch|pick|choose|make it|start|begin|stop|update|verschieb\w*|streich\w*|déplace[zs]?"
    r"|annule[zs]?|cambia|mueve|cancela|go with)\b"
    r".*(?:\d|:\s|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:january|february|march|april|june|july|august"
    r"|september|october|november"
    r"|december|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|lundi|mardi|mercredi|jeudi|vendredi"
    r"|samedi|dimanche|lunes|martes"
    r"|miércoles|jueves|viernes|sábado|domingo)\b)|^(?:please )?rename .+ to \S",
    re.IGNORECASE | re.DOTALL,
)
"""An order that names a day, a date or a number decides something."""
NAMES_A_THING = re.compile(
    r"^(?:list|draft|review|outline|comment|design|plan|help|search|check|look|order|book|call|find|test|answer|play"
    r"|run|start|finish|stop|add|update|format|fix)"
    r"(?:[- ][\w'-]+){0,3}[- ](?:is|are|was|were|has|had|will|must|needs|ends|starts|moved|due|comes|goes|takes|costs"
    r"|on \d|at \d|in \d)\b",
    re.IGNORECASE,
)
"""A noun that is a verb elsewhere: "review is on Friday", "design freeze on 3 May"."""
STANDING = re.compile(
    r"\b(?:always|never|every (?:time|answer|reply|day|week|month)|from now on|whenever|instead of|no longer"
    r"|in (?:future|general)|by default"
    r"|remember|keep in mind|immer|nie|niemals|ab (?:jetzt|sofort)|künftig|statt|anstatt|merk dir|toujours|jamais"
    r"|désormais|dorénavant|au lieu de"
    r"|souviens-toi|rappelle-toi|siempre|nunca|a partir de ahora|en vez de|en lugar de|recuerda)\b",
    re.IGNORECASE,
)
"""An order that holds beyond this answer."""

DECIDES = re.compile(
    r"\b(?:decided|(?:hab\w*|wurde) .{0,60}?(?:beschlossen|entschieden|vereinbart)|beschlossen|(?:ai|a|avons"
    r"|ont) (?:tous )?(?:décidé|convenu|choisi)"
    r"|(?:he|hemos|ha|han) (?:decidido|acordado|elegido)|decidimos|acordamos)\b",
    re.IGNORECASE,
)

SUPPOSED = any(
    r"(?:what if|suppose|supposing|imagine|pretend|assume|assuming|say we|say i|let's (?:say|assume|pretend|imagine)"
    r"|maybe|perhaps|possibly"
    r"|hypothetically|in theory|whether|had (?:i|we)|were (?:i|we)|act as|i (?:wish|might|may|guess|suppose|doubt"
    r"|wonder|could|hope|would(?! (?:rather|like|prefer|love)))"
    r"|i (?:think|believe|feel like)(?! (?:i'll|i will|we'll|we will|in|about))|we (?:might|could|may)|(?:i'm|i am"
    r"|we're|we are) (?:not sure|guessing|wondering|thinking|considering)"
    r"|not sure|if only|probably|it (?:might|could|may|would)|he (?:said|says|thinks|might)|she (?:said|says|thinks"
    r"|might)|they (?:say|said|might))\b",
    r"if\b.*\b(?:would|could|might|should|wouldn't|couldn't|'d)\b|if (?:i|we) (?:were|had|moved|lived|knew|went"
    r"|bought|used|took|was|switched|got)\b|if (?:\S+ ?){1,4}$",
    r"(?:vielleicht|angenommen|wahrscheinlich|möglicherweise|eventuell|was wäre|wenn ich .*(?:würde|wäre|hätte"
    r"|könnte)|ich (?:glaube|denke|vermute|überlege|könnte|würde"
    r"|hätte|wünschte|hoffe)|wir (?:könnten|würden))\b",
    r"(?:peut-être|supposons|imaginons|admettons|probablement|et si|si j'(?:étais|avais|habitais)|si (?:on"
    r"|nous) .*(?:ait|ions)\b|je (?:pense|crois|suppose|me demande|pourrais|voudrais bien)"
    r"|on pourrait|nous pourrions|j'espère)\b",
    r"(?:quizás?|tal vez|supongamos|imagina|probablemente|a lo mejor|y si|si (?:yo )?(?:fuera|tuviera|viviera"
    r"|pudiera)|(?:yo )?(?:creo|pienso|supongo|espero|me pregunto|podría)|podríamos"
    r"|igual)\b",
)
UNDECIDED = re.compile(
    r"(?:^|[\s,(])(?:maybe|perhaps|might|possibly|not sure|who knows|vielleicht|eventuell|peut-être|quizás?"
    r"|tal vez)\b",
    re.IGNORECASE,
)

# --- what is not prose -----------------------------------------------------------------------------------------------

QUOTED = re.compile(r"""["“„«][^"“”„«»]{60,}["”“»]""")
"""A passage of a text, to be commented on."""
MACHINE = re.compile(
    r"""(?: from\s[\w.]+\simport\b | import\s(?:[{*"']|\w+(?:\.\w+)*(?:\sas\s\w+)?;?$) | \#include | package\s[\w.]+;$
    | (?:async\s+|export\s+|public\s+|private\s+|static\s+)*
        (?:def|function|func|fn|class|void|interface|enum)\s+\w+\s*[(:{<].*
    | (?:export\s+)?(?:const|let|var)\s+\w+\s*= | return\b.*[;(] | (?:if|for|while|switch|catch)\s*\(.*[{)]$
    | (?:if|for|while|elif|except|with)\b[^.?!]*[=<>()\[\]][^.?!]*:$ | (?:else|try|finally)\s*[:{]
    | (?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP)\s.+ | sudo\s | curl\s+(?:-|http) | cd\s[\w~./-]+$
    | (?:npm|pip|git|docker|kubectl|apt(?:-get)?|brew|cargo)\s+(?:install|add|commit|push|pull|clone|checkout|run
        |build|get|apply|exec|logs|ps|describe|status|update|compose)\b(?!.*\b(?:is|are|was|were|fails?|works?|takes?|needs?)\b)
    | .*[{}]$ | .*[)\]"'];$ | [)\]}]+[;,]?$ | @\w+(?:\(.*\))?$ | </?\w+[^>]*>
    | [\w.$\[\]"']+\s?(?:=|:=|\+=|->)\s?.*[(\[{"'_].* | \w+(?:\.\w+)*\([^)]*\)$ | .*\|> | .*\s\|\s.*\s\|\s.*
    | File\s" | at\s[\w.$]+\( | \S+\.(?:py|js|ts|go|java|rb|rs|c|cpp):\d+
    | [-+]{3}\s\S | @@\s | (?:[-+]\s?)?"[\w.-]+"\s?:
    | (?:\w{3}\s+\d{1,2}\s+)?\d\d:\d\d:\d\d\b | (?:\d{1,3}\.){3}\d{1,3}\s+[-\[]
    | \[?\w*(?:ERROR|WARN|INFO|DEBUG|FATAL)\w*\]?[\s:] | (?:Event\sID|Exit\scode|Error\scode|HTTP/\d)\b
    | Error:\s | (?:[0-9a-f]{2}[\s:]){6,} | \S{80,}$)""",
    re.VERBOSE,
)
"""A line of code, of a log or of a program's output, without a fence around it."""

# --- what an assistant decides ---------------------------------------------------------------------------------------

DECIDED = any(
    r"(?:decided|decision|agreed|settled|approved|confirmed|recorded|resolved|booked|scheduled|done|chosen"
    r"|final(?: choice)?|beschlossen|entschieden"
    r"|abgemacht|vereinbart|erledigt|gebucht|décidé|convenu|entendu|validé|fait|réservé|decidido|acordado|hecho"
    r"|confirmado|reservado)\s?[:,.!–—-]+\s*",
)
COMMITS = any(
    r"(?:from now on|(?:going|moving) forward,|we(?:'ll| will) (?:go with|use|keep|switch|move|stay with|launch|ship"
    r"|meet)|(?:we|the team) (?:have |has )?(?:decided|agreed|settled|chose)"
    r"|i(?:'ve| have) (?:booked|scheduled|moved|renamed|ordered|set|cancelled|canceled|postponed|reserved|switched"
    r"|chosen|decided)"
    r"|i(?:'ll| will)(?: (?:not|never|always|only))? (?:use|keep|leave|avoid|write|answer|stick|plan|suggest|take"
    r"|send|deliver|do|call|include|skip|prepare|book|order|switch|own|handle|remove"
    r"|add|start|finish|stop|post|review|merge|deploy|ship)|i won't|i decided|i(?:'m| am) (?:taking|switching|moving"
    r"|going to (?:use|keep|write|leave|switch)))\b",
    r"(?:ab (?:jetzt|sofort)|künftig|wir (?:nehmen|bleiben bei|wechseln|haben (?:beschlossen|entschieden|vereinbart))"
    r"|ich (?:werde|habe (?:gebucht|bestellt|verschoben|beschlossen)))\b",
    r"(?:désormais|dorénavant|nous (?:avons décidé|utiliserons|gardons)|on (?:garde|part sur|a décidé)"
    r"|je (?:vais (?:utiliser|garder|éviter|écrire)|n'utiliserai|garderai|j'ai réservé))\b",
    r"(?:a partir de ahora|en adelante|(?:hemos )?decidi(?:do|mos)|acordamos|usaremos|voy a (?:usar|mantener|evitar"
    r"|escribir)|(?:no )?usaré|he reservado)\b",
)
OF_THE_ANSWER = re.compile(
    r"\b(?:e-?mail|poem|joke|story|version|outline|summary|paragraph|columns?|rows?|bullets?|section"
    r"|examples?|translation|explanation"
    r"|words|tone|reply)\b",
    re.IGNORECASE,
)
"""What an answer is made of: decided for this one, unless it holds for all."""
NOT_COMMITTED = re.compile(
    r"\b(?:if|would|could|(?-i:may)|might|should|shall|perhaps|maybe|whenever you|when you|once you|as soon as"
    r"|let (?:you|me) know|gladly|happy to|do my best|bother|wishes|luck|step by step|here (?:to help|for you)"
    r"|it|this|that|these|those|them|wenn|falls|könnte\w*|würde\w*|sollte\w*|gern\w*|das|dies\w*|si|pourr\w+|devr\w+"
    r"|volontiers|cela|ça|podría\w*|debería\w*|eso|esto|cuando)\b",
    re.IGNORECASE,
)
"""Offers, conditions and suggestions; and words that point at what stood before: such a sentence cannot be"
" understood alone."""
