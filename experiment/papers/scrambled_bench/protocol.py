"""Scrambled Bench as its released code asked and read it, errors included."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from typing import Any

from experiment.models.prompts.prompter import PromptedTask, options_of
from experiment.scoring.published import VERSION, Score, published_choice, recovery

_CUTS = ("Answer: ", "Question: ", "Choices: ", "Evidence: ")
_DIALOGUE_CUTS = ("Answer: ", "Question: ", "Choices: ", "Dialogue: ")


def prompt_name(asked: PromptedTask) -> str | None:
    """Name the prompt of a recovery, of a question about evidence or a dialogue, or of a problem with options."""
    if asked.task in ("recover", "recovery"):
        return "scrambled_bench_recovery_few_shot" if asked.has_exemplars else "scrambled_bench_recovery"
    if asked.task == "problem" and asked.has_options and asked.reading == "question":
        return "scrambled_bench_aqua"
    if asked.task == "question":
        return {"evidence": "scrambled_bench_realtimeqa", "dialogue": "scrambled_bench_dream"}.get(
            asked.reading
        )
    return None


def choice_letter(reply: str, options: Sequence[str], *, is_dialogue: bool = False) -> str:
    """Read Scrambled Bench's choice: an option in its own words, else the first capital letter, even one inside a word."""
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

    It takes out of the list that it goes over, so it passes over the option behind each that it drops, and takes the first of equals.
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
    """Read Scrambled Bench's recovered sentence: the text before "Scrambled sentence:" (with a small s)."""
    return reply.split("Scrambled sentence:")[0].strip()


def score_scrambled_bench(trial: Mapping[str, Any], reply: str) -> Score:
    """Score a recovered sentence, or the option that the released code reads."""
    step = trial["steps"][-1]
    if step["step"] == "recover":
        text, intact = recovered_sentence(reply), str(trial["answer"])
        return Score(
            text, "valid", text == intact, recovery(text, intact), f"published_scrambled_bench-{VERSION}"
        )
    options = options_of(step)
    if trial["set"] == "problem":
        letter = aqua_letter(reply)
    else:
        letter = choice_letter(reply, options, is_dialogue="dialogue" in trial["shown"])
    place = string.ascii_uppercase.find(letter) if letter else -1
    response = options[place] if 0 <= place < len(options) else None
    return published_choice(response, trial, "scrambled_bench")


def in_its_words(trial: Mapping[str, Any], answer: str) -> str:
    """Write the option of a problem behind the words that the parser looks for."""
    options = options_of(trial["steps"][-1])
    if trial["set"] == "problem" and answer in options:
        return f"The answer is {string.ascii_uppercase[options.index(answer)]}."
    return answer
