"""What is kept of a chat: each line of the tables is a message, and what stands before `=>` is all that is stored of it."""

from __future__ import annotations

import pytest

from kronmem.text.statements import statements

KEPT = """
I'm vegan.
My name is Ada.
I'm on lisinopril
moved to Leeds
switched to Vim
Keep the answers short from now on
my knee is acting up again since Sunday
we're getting a second cat
I sold the car
sister gets married on 4 June
Emma is allergic to bees
the kids are with their dad every other week
Bo: no gluten
Rent went up to 1,450
I run 40k a week at the moment
new job! I start at Helio Labs in March
budget is 900 max
the meeting with Dr. Osei is now on the 12th at 3pm
Flight is BA 283, lands 14:05
we ordered 40 chairs from Nordmann, delivery in week 9
I quit smoking
our landlord says no pets
password resets go through Marta now
I've dropped statistics, taking logic instead
my thesis is about river deltas
Project Heron was cancelled
turned 50 last week
My mother-in-law moves in with us in May
Lena leaves the company at the end of the quarter
server room is on the third floor, badge needed
I take the 7:12 train
I can only do evenings
I do not eat pork
She starts school in September
Use metric units, never imperial
Call me Jo
no nuts for Tim
the boiler broke, plumber comes Thursday
The deploy is blocked by ticket OPS-12
Actually it's 15 people, not 6
I weigh 82 kg now
Diagnosed with celiac disease last month
was promoted to team lead in May
have a dog now, Rex
did 12k on Saturday, no pain
will be in Rome until the 14th
is now in room 204
what I need most is a quiet room
Move the launch to 3 March
rename the repo to heron-api
push the interview to Tuesday
order number is 4471-B
if it's after eight I'm not reachable
When I travel I only take hand luggage
I think in pounds, not kilos
half of the team is in Lagos
We have 14 seats, 3 for children
Our main competitor is Brightwave
The second draft goes to Mr. Haddad
there are 26 pupils in my class
client wants everything in Portuguese
contract signed with Aster, two years
too spicy for Nia
the red one is Sam's
Mina can't come, she has the flu
postgres 16 on all machines
chapter two needs a new ending, the editor hates it
sold out, next print run in April
both of my grandparents are from Tbilisi
I'm 34 weeks pregnant
I had surgery on my wrist in August
I get seasick
We meet at Tom's place, Elm Road 4
My phone is broken lol, use my work number 0170 555 1234
I moved to Oslo haha
The old laptop died. I bought a ThinkPad.
Remember that the gate code is 4417
remind me that the car needs inspection in May
Ich bin Vegetarierin
Wir sind nach Graz gezogen
Mein Sohn heißt Emil und ist sechs
Opa hat Geburtstag am 9. März
Die Heizung ist kaputt, der Installateur kommt Dienstag
Keine Milch für Karin
Ab jetzt bitte immer auf Deutsch antworten
Der Termin wurde auf 14 Uhr verlegt
Unser Budget liegt bei 3.000 Euro
Ich habe den Job bei Merck angenommen
Laktose vertrage ich nicht
Wir haben beschlossen, das Dach neu zu decken
Die Bestellnummer ist 88-213
Ich arbeite nur vormittags
Je suis infirmière à Lyon
J'ai deux enfants, Zoé et Marc
Nous avons choisi le modèle bleu
Mon vol arrive à 18 h 40
Pas de gluten pour Hugo
On a décidé de partir en juin
Ma fille est allergique aux arachides
Le rendez-vous est déplacé au 3 mai
Réponds toujours en français
Je ne mange pas de viande
Soy celíaca
Vivo en Valencia desde 2019
Mi hermano se llama Andrés
La reunión pasa al jueves
Hemos decidido cerrar la tienda en agosto
No como marisco
Tengo tres gatos
El proveedor nuevo es Ferrer e Hijos
Sin lactosa para Lucía
A partir de ahora responde en español
Maria: I take over the newsletter
Ken: the vendor is Polytek, contract until 2028
Ravi: logo stays green
Priya: approved, ship it on Monday
Olu: rollback tested in staging, works in 4 min
私はベジタリアンです
меня зовут Олег, я живу в Казани
Sou alérgico a camarão
""".strip().splitlines()

LEFT = """
hi
Hello!
hey there :)
Good morning everyone
morning team
thanks!
Thank you so much, that helps a lot
ok
k
sure, go ahead
yes please
no thanks
sounds good
got it, thanks
perfect, exactly what I needed
wow
haha nice
lol
brb
back in a minute
see you tomorrow!
bye
Good night
have a nice weekend
talk to you later
How are you?
how are you doing today
What's the capital of Peru?
what does idempotent mean
how do I center a div
Do you remember me?
who am I
when is my flight
where did I put the keys
is the server down
are you there
can you help me with something?
Could you check my grammar?
would you mind shortening it
Should I take the train or the bus?
any ideas?
any news
I have a question
quick question
What if I moved to Berlin?
If I had a bigger garden I would grow corn.
Suppose we cancel the event.
maybe we should use Rust
I might go to Spain in summer
I wonder whether this is legal
I wish I could sing
I guess it depends
perhaps blue would be better
Write a poem about autumn
write me an email to my landlord
Summarize this article
make it shorter
translate it to Polish
Tell me a joke
give me three options
suggest a name for a bakery
explain recursion like I'm five
Fix the second paragraph please
show me the code
list all prime numbers below 100
compare the two
continue
next
again
go on
another one please
more examples
Let's start
let's get to work
one moment
I'm back
I'm tired
I'm so hungry
I'm going to lunch
what a day
long week
need a coffee
it works!
that worked, thank you
this is great
that makes sense
not yet
never mind
no worries
don't worry about it
you're the best
love it
oops
sorry, my mistake
yes
no
the second one
third
hmm
?
...
👍
😂😂
it's raining
nice weather today
That's all for today
thanks, that's all
I need a recipe for pancakes
I'd like a summary
looking for a good book
let me think
as I said, we ship in May
cheers mate
happy friday
Hallo
Guten Morgen!
Danke schön
vielen Dank, das hilft mir sehr
Tschüss, bis morgen
Wie geht es dir?
was kostet das
wann fährt der nächste Zug
Kannst du das übersetzen?
Schreib mir eine E-Mail
gib mir ein Beispiel
erklär mir das bitte
vielleicht nehmen wir doch Blau
Angenommen, wir hätten mehr Geld
ich bin müde
super, passt
ja genau
kein Problem
schönes Wochenende
Bonjour
Bonsoir !
merci beaucoup
à demain
Comment ça va ?
est-ce que tu peux m'aider
quelle heure est-il
écris-moi un poème
explique-moi la différence
peut-être qu'on devrait partir
d'accord
c'est parfait
bonne nuit
pas de souci
Hola
buenos días
muchas gracias
hasta mañana
¿Cómo estás?
qué significa eso
puedes ayudarme con esto
escribe un correo
dime un chiste
quizás deberíamos esperar
vale, perfecto
está bien
no pasa nada
Ken: sounds good
Maria: thanks all
Ravi: what do you think?
Olu: +1
Priya: can someone review it?
He said 'I love Java'
Error: unexpected token at line 4
at com.example.Foo.bar(Foo.java:42)
npm install left-pad
SELECT name FROM users WHERE id = 4;
x = compute(y)
2026-03-01 10:00:02 INFO started
""".strip().splitlines()

CUT = r"""
Hi! I'm allergic to kiwi. => I'm allergic to kiwi.
ok thanks. also we moved the demo to Friday => we moved the demo to Friday
Morning! The parcel for Ines arrived. Can you write her? => The parcel for Ines arrived.
It hurts when I sit for long, what can I do? => It hurts when I sit for long
I run the data team at Brightloom. We're 6 people. => I run the data team at Brightloom. We're 6 people.
I prefer tea. I live in Porto. => I prefer tea. | I live in Porto.
Nina: I'm on leave in July. Thanks! => Nina: I'm on leave in July.
Lars: hi all. The Oslo office closes in June. I never work Fridays. => Lars: The Oslo office closes in June. | Lars: I never work Fridays.
Can you fix it? My editor is Helix. => My editor is Helix.
- tickets are booked\n- thanks!\n- hotel is the Astoria => tickets are booked | hotel is the Astoria
This fails:\n```\nI prefer crashing\n```\nwe are on Node 22 => we are on Node 22
Am 3. Dezember werde ich operiert. => Am 3. Dezember werde ich operiert.
Danke! Die Oma kommt am Sonntag. Was kochen wir? => Die Oma kommt am Sonntag.
Merci. Le chat s'appelle Plume. => Le chat s'appelle Plume.
Gracias. Mi talla es la 42. ¿Tienes algo en azul? => Mi talla es la 42.
""".strip().splitlines()

DECIDED = """
Decided: we launch in April with two regions.
Agreed: reviews happen in pairs.
Done. The workshop is on 9 May in the small hall.
I will use British spelling in all drafts.
From now on every answer starts with the result.
We decided to keep the monolith for another year.
I've booked the table at Luca's for seven.
Beschlossen: Wir nehmen den blauen Entwurf.
Ab sofort schreibe ich alle Protokolle auf Englisch.
Convenu : la réunion est le mardi.
Nous avons décidé de garder Postgres.
Decidido: la fiesta es en el patio.
I won't suggest dishes with nuts.
""".strip().splitlines()

UNDECIDED = """
Hello! I'm doing great, thank you for asking.
You're welcome! Let me know if you need anything else.
I'd be happy to help with that.
I can draft an email for you.
Would you like me to book a table?
Shall I put it on the list?
I will be here whenever you need me.
I'll let you know.
You could try a lighter tyre.
I would recommend the blue one.
Maybe we should move the date.
Paris is the capital of France.
Preheat the oven to 180 degrees.
It sounds like you prefer trains.
Great choice!
Noted.
Got it, thanks for letting me know.
Here is a plan: Monday rest, Tuesday 5 km.
If you like, I will remind you.
I think the error is in line 4.
Sure! What would you like to cook?
Congratulations on the new job!
Draft 4 done.
Gern geschehen! Soll ich noch etwas prüfen?
Ich könnte Ihnen eine Liste schreiben.
Das klingt nach einem guten Plan.
Je peux vous proposer trois hôtels.
Avec plaisir !
Puedo preparar un resumen.
¡Claro! ¿Algo más?
Done.
I will do my best.
""".strip().splitlines()

RESTATED = [
    ("we meet on Tuesdays at nine from now on", "Agreed: you meet on Tuesdays at nine from now on."),
    ("I'm going to use Rust for the parser", "Noted, decided: the parser will be in Rust."),
    ("swap with Ida, she takes the 24th", "Done: Ida takes the 24th."),
    ("Wir nehmen den blauen Entwurf von Huber", "Beschlossen: der blaue Entwurf von Huber."),
]


def kept(text: str, role: str = "user") -> list[str]:
    return [str(one) for one in statements(text.replace("\\n", "\n"), role)]


@pytest.mark.parametrize("text", KEPT)
def test_what_a_user_states_is_kept_whole(text: str) -> None:
    (one,) = kept(text)
    assert len(one) > 0.5 * len(text)


@pytest.mark.parametrize("text", LEFT)
def test_small_talk_questions_requests_suppositions_and_code_are_left(text: str) -> None:
    assert kept(text) == []


@pytest.mark.parametrize("line", CUT)
def test_of_a_message_the_statements_are_kept_as_written(line: str) -> None:
    text, wanted = line.split(" => ")
    assert kept(text) == wanted.split(" | ")


@pytest.mark.parametrize("text", DECIDED)
def test_what_an_assistant_decides_or_commits_to_is_kept(text: str) -> None:
    assert [one.memory_type for one in statements(text, "assistant")] == ["decision"]


@pytest.mark.parametrize("text", UNDECIDED)
def test_other_words_of_an_assistant_are_left(text: str) -> None:
    assert kept(text, "assistant") == []


@pytest.mark.parametrize(("told", "answer"), RESTATED)
def test_an_assistant_that_repeats_what_it_answers_has_decided_nothing(told: str, answer: str) -> None:
    assert statements(answer, "assistant", [told]) == []
