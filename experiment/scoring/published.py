"""The papers' own parsers and scorers, fault for fault, to be put beside wrods'.

Each reads a raw reply as its released code did. They are written anew from what the code does, and tested against what the
papers released; what is wrong with them is said in each, for that is what they are here to show.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from experiment.models.prompts.published import prompt_name
from experiment.scoring.scores import Score, recovery
from experiment.study import Study
from stimuli.errors import unknown_name

VERSION = 1
OWN = "corrected"
_CUTS = ("Answer: ", "Question: ", "Choices: ", "Evidence: ")
_DIALOGUE_CUTS = ("Answer: ", "Question: ", "Choices: ", "Dialogue: ")
_MARKER = re.compile(r">([a-z_]+):")
_COMPARED = {
    "typobench_mbpp": "code",
    "typobench_summarise": "summarized",
    "typobench_translate": "translated",
}
_DIGITS = re.compile(r"\d")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def htest_label(reply: str) -> str | None:
    """Read H-TEST's label: A for any text with an "a" and no "b" ("I cannot tell"), B likewise, None for all else."""
    said = reply.lower().strip()
    for label, other in (("a", "b"), ("b", "a")):
        only = label in said and other not in said
        if only or f"label: {label}" in said or (f"is {label}" in said and f"or {other}" not in said):
            return label.upper()
    return None


def choice_letter(reply: str, options: Sequence[str], *, is_dialogue: bool = False) -> str:
    """Read Scrambled Bench's choice: an option in its own words, else the first capital letter, also inside a word."""
    if not options:
        return ""
    letters = string.ascii_uppercase[: len(options)]
    if not any("." in option for option in options):
        reply = reply.split(".")[0]
    for cut in _DIALOGUE_CUTS if is_dialogue else _CUTS:
        reply = reply.split(cut)[0]
    found = _without_contained(re.findall("|".join(re.escape(option) for option in options), reply))
    if found is not None:
        return letters[list(options).index(found)]
    letter = re.search(f"[{letters}]", reply)
    return letter[0] if letter else ""


def _without_contained(found: Sequence[str]) -> str | None:
    """Return the first option found, once those inside another found one are dropped as the paper's loop drops them.

    It takes out of the list that it goes over, so that it passes over the option behind each that it drops, and takes the
    first of equal ones.
    """
    kinds = set(found)
    contained = {kind for kind in kinds if any(kind != other and kind in other for other in kinds)}
    places = {one: iter([at for at, other in enumerate(found) if other == one]) for one in contained}
    dropped: set[int] = set()
    at = 0
    while at < len(found) and contained:
        if found[at] in contained:
            dropped.add(next(places[found[at]]))
            at += 1
        at += 1
    return next((one for place, one in enumerate(found) if place not in dropped), None)


def aqua_letter(reply: str) -> str:
    """Read Scrambled Bench's AQuA answer: the first capital letter A to E behind the last "answer is ", else nothing."""
    _, said, after = reply.rpartition("answer is ")
    letter = re.search("[A-E]", after) if said else None
    return letter[0] if letter else ""


def recovered_sentence(reply: str) -> str:
    """Read Scrambled Bench's recovered sentence: what stands before "Scrambled sentence:" (with a small s)."""
    return reply.split("Scrambled sentence:")[0].strip()


def named_fields(reply: str, names: Sequence[str]) -> dict[str, str]:
    """Read Mind Scramble's fields (``>answer: …``): a bare name anywhere is taken for a mark, later doubles overwrite."""
    for name in names:
        if f">{name}" not in reply:
            reply = reply.replace(name, f">{name}", 1)
    parts = _MARKER.split(reply)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def same_digits(given: str, gold: str) -> bool:
    """Say whether Mind Scramble takes two numbers for the same: all digits in a row, so that 3.5 is 35 and -5 is 5."""
    one, other = ("".join(_DIGITS.findall(text)) for text in (given, gold))
    return (float(one) if one else None) == (float(other) if other else None)


def contains_either_way(given: str, gold: str) -> bool:
    """Say whether Mind Scramble takes texts for the same: one in the other, so that an empty answer is right."""
    one, other = given.lower(), gold.lower()
    return one in other or other in one


def words_in_place(given: str, intact: str) -> float:
    """Return Mind Scramble's share of words in place, of the shorter text: a reply cut short can be perfect."""
    one, other = (text.translate(_PUNCTUATION).lower().split() for text in (given, intact))
    shorter = min(len(one), len(other))
    return sum(a == b for a, b in zip(one, other, strict=False)) / shorter if shorter else 0.0


def _htest(trial: Mapping[str, Any], reply: str) -> Score:
    step = trial["steps"][-1]
    label = htest_label(reply)
    return _choice(trial, label if label in step.get("labels", ()) else None, "htest")


def _letter_geometry(trial: Mapping[str, Any], reply: str) -> Score:
    correct = reply.strip() == trial["answer"]
    return Score(reply.strip(), "valid", correct, float(correct), f"published_letter_geometry-{VERSION}")


def _scrambled_bench(trial: Mapping[str, Any], reply: str) -> Score:
    step = trial["steps"][-1]
    if step["step"] == "recover":
        text, intact = recovered_sentence(reply), str(trial["answer"])
        return Score(
            text, "valid", text == intact, recovery(text, intact), f"published_scrambled_bench-{VERSION}"
        )
    options = _options(step)
    is_dialogue = "dialogue" in trial["shown"]
    letter = (
        aqua_letter(reply)
        if trial["set"] == "problem"
        else choice_letter(reply, options, is_dialogue=is_dialogue)
    )
    place = string.ascii_uppercase.find(letter) if letter else -1
    response = options[place] if 0 <= place < len(options) else None
    return _verdict(response, trial, "scrambled_bench")


def _typobench(trial: Mapping[str, Any], reply: str) -> Score:
    step = trial["steps"][-1]
    name = f"published_typobench-{VERSION}"
    gold = str(trial["answer"] or "")
    field = _typobench_field(trial)
    if compared_field(trial) is not None:
        # an empty field was replaced like one that is missing
        text = named_fields(reply, (field,)).get(field) or None
        return Score(text, "unparsed" if text is None else "valid", None, None, name)
    if step["step"] == "recover":
        fixed = named_fields(reply, (field,)).get(field)
        if fixed is None:
            return Score(None, "unparsed", None, None, name)
        return Score(fixed, "valid", None, words_in_place(fixed, gold), name)
    names = ("answer_number", "process") if field == "answer_number" else ("answer", "reason")
    given = named_fields(reply, names).get(field)
    if given is None:
        return Score(None, "unparsed", None, None, name)
    if field == "answer_number":
        correct = same_digits(given, gold)
    elif "passage" in trial["shown"]:
        correct = given.replace("'", "") == gold
    else:
        correct = contains_either_way(given, gold)
    return Score(given, "valid", correct, float(correct), name)


def compared_field(trial: Mapping[str, Any]) -> str | None:
    """Name the field whose text Mind Scramble compared by its vector (a program, a summary, a translation); None elsewhere."""
    return _COMPARED.get(str(_prompt_of(trial)))


def _typobench_field(trial: Mapping[str, Any]) -> str:
    """Name the field in which Mind Scramble's prompt asks for the answer."""
    if (compared := compared_field(trial)) is not None:
        return compared
    step = trial["steps"][-1]
    if step["step"] == "recover":
        return "fixed"
    return "answer_number" if step.get("read_as") == "number" else "answer"


def _options(step: Mapping[str, Any]) -> list[str]:
    return list(step.get("options") or step.get("responses") or ())


def _choice(trial: Mapping[str, Any], label: str | None, paper: str) -> Score:
    step = trial["steps"][-1]
    return _verdict(None if label is None else step["responses"][step["labels"].index(label)], trial, paper)


def _verdict(response: str | None, trial: Mapping[str, Any], paper: str) -> Score:
    name = f"published_{paper}-{VERSION}"
    if response is None:
        return Score(None, "unparsed", None, None, name)
    correct = response == trial["answer"]
    return Score(response, "valid", correct, float(correct), name)


PUBLISHED: dict[str, Callable[[Mapping[str, Any], str], Score]] = {
    "htest": _htest,
    "letter_geometry": _letter_geometry,
    "scrambled_bench": _scrambled_bench,
    "typobench": _typobench,
}
PARSERS = (OWN, "published", *PUBLISHED)
"""What ``wrods score --parser`` takes: wrods' own, that of the paper from which the items are, or a paper's by name."""


def paper_of(trial: Mapping[str, Any]) -> str | None:
    """Return the paper whose parser fits a trial; None where no paper read such answers."""
    name = _prompt_of(trial)
    if name is None or (name == "htest" and trial["steps"][-1]["step"] != "choose"):
        return None
    return next((paper for paper in PUBLISHED if str(name).startswith(paper)), None)


def _prompt_of(trial: Mapping[str, Any]) -> str | None:
    return prompt_name(
        trial["set"],
        list(trial["shown"]) or [""],
        has_options=bool(_options(trial["steps"][-1])),
        has_exemplars=bool(trial["exemplars"]),
    )


def published_score(parser: str, trial: Mapping[str, Any], reply: str) -> Score:
    """Return a paper's verdict on a reply; where it scored no such answers by rule, what its parser read stays unjudged.

    ``parser``: ``published`` (the paper of the trial's materials) or one of :data:`PUBLISHED`.
    """
    paper = paper_of(trial) if parser == "published" else parser
    if paper is None:
        return Score(reply, "valid", None, None, f"published_none-{VERSION}", VERSION)
    if paper not in PUBLISHED:
        raise unknown_name("parser", parser, PARSERS)
    return replace(PUBLISHED[paper](trial, reply), version=VERSION)


def in_its_form(trial: Mapping[str, Any], answer: str) -> str:
    """Write a right answer as the parser of a trial's paper reads one: in the field, or behind the words, that it looks for."""
    paper, step = paper_of(trial), trial["steps"][-1]
    if not answer:
        return answer
    if paper == "typobench":
        return f">{_typobench_field(trial)}: {trial['answer']}"
    if paper == "scrambled_bench" and trial["set"] == "problem" and answer in _options(step):
        return f"The answer is {string.ascii_uppercase[_options(step).index(answer)]}."
    return answer


def parser_of(study: Study) -> str | None:
    """Return the parser by which a study's trials count: None for wrods' own, ``published`` where the study says so."""
    return "published" if "scoring" in study.published else None
