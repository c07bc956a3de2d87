"""How near what a study shows comes to its intact form, text alone or whole prompt, beside texts that have nothing in common.

Mind Scramble (2024, Table 4) gives the cosine of changed and intact text; its code embedded whole prompts, whose instruction and
question are the same in both and raise every value. A cosine says nothing without its floor: vectors of unrelated texts of one
domain are far from orthogonal, and those of whole prompts with one instruction farther still.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiment.lists import list_ids
from experiment.models.judges.embeddings import Embedder
from experiment.models.prompts import render
from experiment.procedure import plan_session, trials_of
from experiment.study import Study
from stimuli.files import replace_file
from stimuli.item import Item

STORED = "similarity.json"
"""In the study's folder: what shown and intact texts came to, for reports."""
CACHE = "vectors.db"
"""In the study's folder: vectors of what the study itself shows, so that a second comparison computes nothing again."""
_DECIMALS = 6
_HOLE = "\N{OBJECT REPLACEMENT CHARACTER}"

Told = Callable[[int, int], None]


@dataclass(frozen=True)
class Text:
    """A text of an item in a condition, and the same intact."""

    item: str  # set and item
    condition: str
    changed: str
    intact: str


@dataclass
class Nearness:
    """Cosines of what is shown."""

    # Of changed and intact text, item by item, by condition
    shown: dict[str, list[float]] = field(default_factory=dict)
    items: dict[str, list[str]] = field(default_factory=dict)  # the items of these values
    # Of intact texts of different items: of each item the mean cosine with all others of another text
    unrelated: list[float] = field(default_factory=list)
    unrelated_items: list[str] = field(default_factory=list)  # the items of these values
    pairs: int = 0  # pairs of different items that these are means of
    # Texts that are longer than the model reads, so that their end is lost; None where a server does not say
    # it
    cut: int | None = None
    texts: int = 0  # different texts
    other_wording: int = 0  # whole prompts that had to be compared with one of another wording

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON, cosines to six decimals."""
        return {
            "shown": {
                name: {
                    "items": len(some),
                    "mean": fmean(some),
                    "of": self.items[name],
                    "cosines": [round(one, _DECIMALS) for one in some],
                }
                for name, some in self.shown.items()
            },
            "unrelated": {
                "pairs": self.pairs,
                "mean": fmean(self.unrelated) if self.unrelated else None,
                "of": self.unrelated_items,
                "cosines": [round(one, _DECIMALS) for one in self.unrelated],
            },
            "texts": self.texts,
            "cut": self.cut,
            "other_wording": self.other_wording,
        }


def nearness(embedder: Embedder, texts: Sequence[Text], told: Told = lambda done, of: None) -> Nearness:
    """Take the cosine of each changed text with the intact one, and of the intact texts of every two different items.

    ``told``: called with how many texts are embedded, of how many.
    """
    different = list(dict.fromkeys(one for text in texts for one in (text.changed, text.intact)))
    found = Nearness(texts=len(different))
    if not different:
        return found
    found.cut = embedder.cut(different)
    vectors = dict(zip(different, embedder.embed(different, told), strict=True))
    for text in texts:
        found.shown.setdefault(text.condition, []).append(float(vectors[text.changed] @ vectors[text.intact]))
        found.items.setdefault(text.condition, []).append(text.item)
    intact = {text.item: text.intact for text in reversed(texts)}
    _set_floor(found, dict(sorted(intact.items())), vectors)
    return found


def _set_floor(
    found: Nearness, intact: Mapping[str, str], vectors: Mapping[str, NDArray[np.floating]]
) -> None:
    """Compare each item's intact text with those of all others, but for others of the same text."""
    texts = list(intact.values())
    same = Counter(texts)
    for item, text, mean in zip(
        intact, texts, with_others([vectors[one] for one in texts], texts), strict=True
    ):
        if mean is not None:
            found.unrelated.append(mean)
            found.unrelated_items.append(item)
            found.pairs += len(texts) - same[text]
    found.pairs //= 2


def with_others(vectors: Sequence[NDArray[np.floating]], texts: Sequence[str]) -> list[float | None]:
    """Return of each vector the mean cosine with those that belong to another text; None where there is none.

    ``vectors``: shape (width,); of length 1.
    ``texts``: the text that each is about, or of.
    With the vectors' sum S over all, and the sum T over the c that belong to a text, a vector v of that text has
    the mean v · (S − T)/(n − c) with the others: no pair is formed.
    """
    if not len(vectors):
        return []
    own = np.array(vectors, dtype=float)
    of_text: dict[str, NDArray[np.float64]] = {}
    for text, vector in zip(texts, own, strict=True):
        of_text[text] = of_text[text] + vector if text in of_text else vector
    same, total = Counter(texts), own.sum(axis=0)
    return [
        float(vector @ (total - of_text[text])) / (len(own) - same[text]) if len(own) > same[text] else None
        for text, vector in zip(texts, own, strict=True)
    ]


def shown_texts(items: Sequence[Item]) -> list[Text]:
    """Return the text that changes of each test item, without what is withheld."""
    found = []
    for item in items:
        pairs = [(item.shown[name], text) for name, text in item.intact.items() if item.shown.get(name)]
        if item.role == "test" and pairs:
            found.append(
                Text(
                    f"{item.set_name}/{item.item_id}",
                    ", ".join(item.condition.values()),
                    pairs[0][0],
                    pairs[0][1],
                )
            )
    return found


def whole_prompts(study: Study) -> tuple[list[Text], int]:
    """Return each item's whole prompt beside that of its intact form, as a model is asked in the study's first wording.

    The prompts, and how many had to be set beside one that differs in more than the text: other labels, another
    order of choices.
    """
    prompts: dict[tuple[str, str], tuple[str, str]] = {}
    intact: dict[str, dict[str, str]] = {}
    for plan, asked in _trials(study):
        item, condition = f"{asked['set']}/{asked['item_id']}", ", ".join(asked["condition"].values())
        if (item, condition) in prompts:
            continue
        prompt = "\n\n".join(message.content for message in render(plan, asked).messages)
        wording = _without_texts(prompt, asked["shown"])
        prompts[item, condition] = (prompt, wording)
        if all(asked["shown"].get(name) == text for name, text in asked["intact"].items()):
            intact.setdefault(item, {}).setdefault(wording, prompt)
    found, other = [], 0
    for (item, condition), (prompt, wording) in prompts.items():
        bases = intact.get(item)
        if bases is None:
            continue
        other += wording not in bases
        found.append(Text(item, condition, prompt, bases.get(wording, next(iter(bases.values())))))
    return found, other


def _trials(study: Study) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    for list_id in list_ids(study, study.items, label_maps="fixed"):
        plan = plan_session(study, study.items, list_id=list_id)
        for trial in trials_of(plan):
            if (
                not (trial["is_practice"] or trial["is_filler"] or trial["is_attention_check"])
                and trial["intact"]
            ):
                yield plan, trial


def _without_texts(prompt: str, shown: Mapping[str, Any]) -> str:
    for text in shown.values():
        if isinstance(text, str) and text:
            prompt = prompt.replace(text, _HOLE)
    return prompt


def store_nearness(study: Study, use: str, texts: Nearness, prompts: Nearness | None) -> Path | None:
    """Keep what shown and intact texts came to in the study's folder, for reports; None where nothing was shown.

    Whole prompts that were compared before stay, where they are of the same items and model and were not compared again.

    The file: ``use``, ``shown``, ``unrelated``, ``cut`` (of the text alone), ``prompts`` (the same of whole
    prompts) and ``items`` (hash of the items that were compared).
    """
    if not texts.shown:
        return None
    file, items = study.folder / STORED, study.folder / "items.jsonl"
    kept: dict[str, Any] = {"use": use, **texts.as_json()}
    if items.is_file():
        kept["items"] = hashlib.sha256(items.read_bytes()).hexdigest()
    if prompts is not None:
        kept["prompts"] = prompts.as_json()
    elif (before := _before(file)) and all(before.get(name) == kept.get(name) for name in ("use", "items")):
        kept |= {"prompts": before["prompts"]} if "prompts" in before else {}
    replace_file(file, json.dumps(kept, ensure_ascii=False, indent=1))
    return file


def _before(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
