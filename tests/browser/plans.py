"""Small session plans, as `experiment.procedure` would give them to a browser."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from experiment.languages import pack_for
from experiment.procedure.steps import block_feedback, break_lines, practice_feedback

TEXTS: Any = pack_for("en").texts
ENGLISH: Any = SimpleNamespace(pack=pack_for("en"))
CONSENT = {
    "kind": "consent",
    "version": "3f2a",
    "text": "…",
    "html": "<p>You read short texts and answer a question about each. It takes about ten minutes.</p>"
    "<p>Taking part is voluntary; you can stop at any time by closing the page.</p>"
    "<h3>What is stored</h3><ul><li>your answers and how long they took</li><li>your browser's name</li></ul>",
}
INSTRUCTIONS = {
    "kind": "instructions",
    "pages": [
        {"html": "<p>Each sentence appears once. Some letters may have changed places.</p>", "text": "…"},
        {
            "html": "<p>Answer the question with <strong>F</strong> or <strong>J</strong>, as fast as you can.</p>",
            "text": "…",
        },
    ],
}
DEBRIEF = {
    "kind": "debrief",
    "text": "…",
    "html": "<p>We study which letter positions carry a sentence. Thank you for reading!</p>",
}


def trial(index: int, steps: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "trial_index": index,
        "block": "block-1",
        "trial_type": steps[-1]["step"],
        "is_practice": False,
        "is_filler": False,
        "is_attention_check": False,
        "exemplars": [],
        "fixation_ms": 50,
        "interval_ms": 30,
        "steps": steps,
        **more,
    }


def shown(kind: str, text: str | None, caption: str | None = None) -> dict[str, Any]:
    """What steps share: the text, and the lines in which everybody meets it."""
    return {
        "step": kind,
        "caption": caption,
        "text": text,
        "lines": None if text is None else break_lines(text),
    }


def read(
    text: str = "Teh dgo barks at the postman because he carries a big parcel.", **more: Any
) -> dict[str, Any]:
    return {**shown("read", text), "as": "whole", "minimum_ms": 0, **more}


def prime(text: str = "gadren", **more: Any) -> dict[str, Any]:
    return {
        **shown("prime", text),
        "mask": "#" * len(text),
        "mask_ms": 300,
        "frames": None,
        "prime_ms": 50,
        "backward_mask": None,
        "backward_ms": 0,
        **more,
    }


def choose(text: str | None = "Does the dog bark?", **more: Any) -> dict[str, Any]:
    return {
        **shown("choose", text),
        "ask": None,
        "labels": ["yes", "no"],
        "responses": ["yes", "no"],
        "options": None,
        "keys": ["j", "f"],
        "minimum_ms": 0,
        "time_limit_ms": None,
        **more,
    }


def rate(text: str | None = "The dog barks at the parcel.", **more: Any) -> dict[str, Any]:
    return {
        **shown("rate", text),
        "ask": "How plausible is this?",
        **{"from": 1, "to": 7, "low": "impossible", "high": "quite normal"},
        "labels": list("1234567"),
        "responses": list("1234567"),
        "keys": list("1234567"),
        "decimals": 0,
        "decimal": ".",
        "minimum_ms": 0,
        "time_limit_ms": None,
        **more,
    }


def slide(**more: Any) -> dict[str, Any]:
    scale = {"from": 0, "to": 100, "low": "not at all", "high": "fully"}
    return rate(**scale, labels=None, responses=None, keys=[], **more)


def answer(text: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        **shown("answer", text),
        "ask": "Which rule tells A from B?",
        "minimum_ms": 0,
        "time_limit_ms": None,
        "multiline": True,
        "hint": None,
        **more,
    }


def recover(text: str = "gadren", **more: Any) -> dict[str, Any]:
    return {
        **shown("recover", text, "Scrambled word"),
        "ask": "Type the word as it should be.",
        "minimum_ms": 0,
        "time_limit_ms": None,
        "multiline": False,
        **more,
    }


EXEMPLARS = [
    {"text": "engine jumps all night aCcurately.", "label": "A"},
    {"text": "quiet rivers carry the small boat.", "label": "B"},
    {"text": "a Teacher walks slowly home again.", "label": "A"},
    {"text": "nine yellow birds sing in the rain.", "label": "B"},
    {"text": "the old clock stOps at midnight.", "label": "A"},
    {"text": "we paint every wooden chair green.", "label": "B"},
]


def ab(index: int, **more: Any) -> dict[str, Any]:
    step = choose("seven hungry dOgs wait outside.", ask="Which group does this line belong to?")
    step |= {"labels": ["A", "B"], "responses": ["A", "B"], "keys": ["a", "b"], **more}
    return trial(index, [step], exemplars=EXEMPLARS)


def multiple_choice(index: int, **more: Any) -> dict[str, Any]:
    step = choose("Which word rhymes with “though”?", caption="Question 3")
    step |= {
        "labels": ["A", "B", "C", "D"],
        "responses": ["tough", "dough", "cough", "through"],
        "options": ["tough", "dough", "cough", "through"],
        "keys": ["a", "b", "c", "d"],
        **more,
    }
    return trial(index, [step])


def block(trials: list[dict[str, Any]], break_every: int | None = None, **more: Any) -> dict[str, Any]:
    return {
        "kind": "block",
        "block": "block-1",
        "name": None,
        "break_every": break_every,
        "break_minimum_ms": 0,
        "feedback": None,
        "trials": trials,
        **more,
    }


def feedback(mode: str, shown_for: str | None = None) -> dict[str, Any] | None:
    """What a block tells after each trial."""
    return block_feedback({"feedback": mode} | ({"feedback_for": shown_for} if shown_for else {}), ENGLISH)


def questions(*asked: dict[str, Any], name: str = "questions-1", screening: bool = False) -> dict[str, Any]:
    return {"kind": "questions", "name": name, "screening": screening, "questions": list(asked)}


def comprehension(*asked: dict[str, Any], rounds: int = 2, if_failed: str = "end") -> dict[str, Any]:
    """Questions about the instructions before them, all of which are to be answered right."""
    criterion = {"needed": len(asked), "rounds": rounds, "if_failed": if_failed}
    return {**questions(*asked, name="comprehension-1"), "comprehension": criterion}


def question(name: str, kind: str, ask: str, options: list[str] | None = None, **more: Any) -> dict[str, Any]:
    given = None if options is None else [{"value": value, "label": value} for value in options]
    ends = dict.fromkeys(("from", "to", "low", "high"))
    return {"name": name, "ask": ask, "type": kind, "options": given, **ends, "optional": False, **more}


WORDS = [
    "garden",
    "shelf",
    "brinty",
    "weather",
    "flomp",
    "candle",
    "groust",
    "ladder",
    "meadow",
    "tresk",
    "hollow",
    "vintle",
]
LANGUAGES = ["العربية", "Deutsch", "English", "español", "français", "italiano", "日本語", "polski", "Türkçe"]
BACKGROUND = (
    question("first", "choice", "Which language did you learn first as a child?", LANGUAGES),
    question("age", "number", "How old are you, in years?", **{"from": 18, "to": 99}),
    question("school", "choice", "Which school did you finish last?", ["primary", "secondary", "university"]),
    question("scripts", "several", "Which scripts do you read?", ["Latin", "Greek", "Cyrillic", "Arabic"]),
    question(
        "ease", "scale", "How easy is reading for you?", **{"from": 1, "to": 7, "low": "hard", "high": "easy"}
    ),
    question("glasses", "yes_no", "Do you wear glasses for reading?", ["yes", "no"]),
    question("book", "text", "Which book did you read last?", optional=True),
    question("words", "vocabulary", "Mark every word that you know; some are no words.", WORDS),
    question(
        "habit",
        "matrix",
        "How true is this of you?",
        ["never", "now and then", "always"],
        rows=[
            {"name": "habit_bed", "text": "I read in bed."},
            {"name": "habit_bus", "text": "I read on the bus."},
        ],
    ),
    question(
        "films",
        "matrix",
        "How well do these describe you?",
        [str(number) for number in range(1, 8)],
        rows=[{"name": "films_home", "text": "I watch films at home, in the evening."}],
        low="not at all",
        high="fully",
    ),
    question("effort", "slider", "How hard was it?", **{"from": 0, "to": 100, "low": "easy", "high": "hard"}),
    question(
        "where",
        "text",
        "Where do you read at night?",
        only={"habit_bed": {"values": ["now and then", "always"]}},
    ),
)
DEVICE = {
    "kind": "device",
    "device": "computer",
    "browsers": ["chrome"],
    "width": 800,
    "height": 500,
    "refresh_hz": None,
}


def practice(trials: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    for one in trials:
        one |= {"is_practice": True, "block": "practice-1"}
    return {
        "kind": "practice",
        "block": "practice-1",
        "feedback": practice_feedback({}, ENGLISH, {"trial": [{"choose": {}}]}),
        "pass": 0.5,
        "attempts": 2,
        "trials": trials,
        **more,
    }


def plan(*screens: dict[str, Any], language: str = "en") -> dict[str, Any]:
    return {
        "study": "demo",
        "title": "Which letter positions carry a sentence?",
        "language": language,
        "version": 1,
        "design_hash": "0",
        "list_id": 1,
        "order_row": 0,
        "if_interrupted": {"then": "resume", "within_ms": None},
        "screens": list(screens),
    }
