"""Memories in other languages, asked with the same words and with other forms of them. The table of meanings is English."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kronmem import Client

MEMORIES = {
    "german": [
        "Meine Schwester wohnt seit zwei Jahren in Leipzig.",
        "Ich trinke morgens nur schwarzen Kaffee.",
        "Die Rechnung der Werkstatt betrug dreihundert Euro.",
        "Unser Hund heißt Bruno und hasst Gewitter.",
        "Der Vertrag mit dem Vermieter endet im Oktober.",
        "Wir spielen donnerstags Schach im Verein.",
    ],
    "french": [
        "Ma voisine garde les clés de la maison.",
        "Je suis allergique aux fruits de mer.",
        "Le train pour Lyon part à sept heures.",
        "Mon médecin conseille de marcher chaque matin.",
        "Nous avons choisi des rideaux verts pour le salon.",
        "La réunion du comité est reportée à vendredi.",
    ],
    "spanish": [
        "Mi abuela cocina la mejor paella de Valencia.",
        "Guardo las contraseñas en un cuaderno azul.",
        "El mecánico cambió los frenos del coche en mayo.",
        "Mis hijos estudian música los sábados.",
        "La empresa alquiló una oficina cerca del puerto.",
        "Prefiero las respuestas cortas y sin adornos.",
    ],
    "chinese": [
        "我对花生过敏。",
        "我的女儿在北京学习钢琴。",
        "会议改到星期五下午三点。",
        "我喜欢喝绿茶，不喝咖啡。",
        "服务器部署在上海的数据中心。",
        "他养了两只猫和一条狗。",
    ],
    "japanese": [
        "私は毎朝公園を散歩します。",
        "妹は大阪の銀行で働いています。",
        "会議の資料は共有フォルダにあります。",
        "甘いものより辛い料理が好きです。",
        "来月から新しいアパートに引っ越します。",
        "犬の名前はポチです。",
    ],
}
QUESTIONS = [
    ("german", "Wo wohnt meine Schwester?", 0),
    ("german", "Wie heißt der Hund?", 3),
    ("german", "Wann endet der Vertrag?", 4),
    ("german", "Was kostete die Werkstatt, was stand auf den Rechnungen?", 2),
    ("german", "Welche Verträge laufen mit Vermietern?", 4),
    ("german", "Mag er Hunde und Gewittern?", 3),
    ("french", "Qui garde les clés ?", 0),
    ("french", "À quelle heure part le train pour Lyon ?", 2),
    ("french", "Quand est la reunion du comite ?", 5),
    ("french", "Quelles allergies ai-je, quels fruits ?", 1),
    ("french", "Quel rideau pour le salon ?", 4),
    ("spanish", "¿Dónde guardo las contraseñas?", 1),
    ("spanish", "¿Quién cambió los frenos?", 2),
    ("spanish", "¿Qué estudian mis hijos?", 3),
    ("spanish", "¿Qué contraseña está en los cuadernos?", 1),
    ("spanish", "¿Cómo prefiero la respuesta, corta?", 5),
    ("chinese", "我对什么过敏？", 0),
    ("chinese", "女儿在哪里学习？", 1),
    ("chinese", "会议是什么时候？", 2),
    ("chinese", "服务器在哪个数据中心？", 4),
    ("chinese", "喜欢喝什么茶？", 3),
    ("japanese", "毎朝どこを散歩しますか。", 0),
    ("japanese", "妹はどこで働いていますか？", 1),
    ("japanese", "会議の資料はどこですか？", 2),
    ("japanese", "犬の名前は？", 5),
    ("japanese", "引っ越しはいつ？", 4),
]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client("sqlite://") as client:
        for language, memories in MEMORIES.items():
            client.remember_many(language, memories)
        client.remember_many("all", [memory for memories in MEMORIES.values() for memory in memories])
        yield client


@pytest.mark.parametrize(("language", "question", "answer"), QUESTIONS)
def test_the_answer_is_the_first_hit(client: Client, language: str, question: str, answer: int) -> None:
    expected = MEMORIES[language][answer]
    for agent in (language, "all"):
        assert [hit.content for hit in client.recall(agent, question)][:1] == [expected]
