"""A study's own texts in ``texts.json``, and refusals where a study would mix languages."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from experiment.integrity.build_provenance import ensure_version
from experiment.languages import LATER_PROMPTS, STANDS_FOR, pack_for, read_own, wording
from experiment.models.prompts.prompter import Prompter
from experiment.people.service import service_for
from experiment.procedure import plan_session
from experiment.store import open_store, records
from experiment.study import Study
from experiment.study.yaml_source import parse_yaml
from experiment.summaries.plain_english import asked_in_english
from stimuli.errors import UserError
from tests.experiment.commands import change, worked, wrods

TITLE = "title: A small study\n"
ENGLISH = dict(pack_for("en").texts)
MODEL = "models: {who: {gpt: {use: 'openai:gpt'}}}\n"


def in_language(language: str, more: str = "") -> tuple[str, str]:
    return TITLE, f"{TITLE}language: {language}\n{more}"


def written(study: Study, given: object) -> Study:
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, indent=1)
    (study.folder / "texts.json").write_text(text, "utf-8")
    return Study(study.folder, study.source)


# languages without texts


@pytest.mark.parametrize(("language", "why"), [("fi", "ar, de, en"), ("zh-Hant", "another script (Hans)")])
def test_a_language_without_texts_is_refused(make_study, language, why):
    study = make_study(in_language(language))
    for command in (["check"], ["build"], ["serve", "--no-browser", "--port", "0"]):
        told = wrods(*command, study.folder)
        assert told.exit_code == 2
        for word in (f"study.yaml, line 4: language is '{language}'", why, "texts.json"):
            assert word in told.output.replace("\n", " "), told.output


def test_a_study_that_collected_in_such_a_language_still_opens_but_for_participants(make_study):
    eligible = "participants: {eligible: {age: [18, 65]}}\n"
    english = make_study((TITLE, TITLE + eligible))
    plan = plan_session(english, english.items, list_id=1, session_key="P001")
    study = make_study(in_language("fi", eligible))
    with open_store(study.folder) as store:
        design = json.dumps(study.design)
        store.write(lambda c: ensure_version(c, study.id, study.design_hash, design)).result()
        store.write(
            lambda c: records.create_session(
                c, plan, reader_kind="human", reader="P001", participant_id="P001"
            )
        ).result()
        with pytest.raises(UserError, match="'fi'"):
            service_for(study, store)
    worked("status", study.folder)
    worked("export", study.folder, "--out", study.folder / "data")


# own texts


def test_own_texts_stand_in_place_of_single_ones_and_are_part_of_the_design(make_study):
    study = make_study(in_language("nl"))
    before = study.design_hash
    own = written(study, {"texts": {"feedback_correct": "Helemaal goed!"}})
    assert own.pack.texts == {**pack_for("nl").texts, "feedback_correct": "Helemaal goed!"}
    screens = plan_session(own, own.items, list_id=1)["screens"]
    practice = next(screen for screen in screens if screen["kind"] == "practice")
    assert practice["feedback"]["words"]["correct"]["title"] == "Helemaal goed!"
    assert own.design_hash != before and set(own.design["texts"]) - set(study.design["texts"]) == {
        "texts.json"
    }


def test_a_pack_of_an_earlier_version_needs_no_text_that_came_later(tmp_path):
    texts = {key: f"fi {text}" for key, text in ENGLISH.items() if key not in STANDS_FOR}
    prompts = {key: text for key, text in wording("en").items() if key not in LATER_PROMPTS}
    pack = {"direction": "ltr", "texts": texts, "prompts": prompts}
    (tmp_path / "texts.json").write_text(json.dumps(pack), "utf-8")
    own = read_own("fi", tmp_path)
    assert own.pack is not None and own.wording == prompts
    assert {new: own.pack.texts[new] for new in STANDS_FOR} == {
        new: texts[old] for new, old in STANDS_FOR.items()
    }
    rated = {"step": "rate", "text": "x", "labels": None, "from": 1, "to": 7, "low": None, "high": None}
    plan = {"language": "fi", "prompt_variant": 1, "wording": prompts}
    with pytest.raises(UserError, match="'scale'"):
        Prompter(plan)._asked(rated)


@pytest.mark.parametrize(
    ("language", "given", "faults"),
    [
        (
            "nl",
            {"language": "de", "script": "Cyrl", "direction": "rtl", "txts": {}, "stop": "Stop"},
            [
                "line 2: language is 'de', and the study's language is 'nl'",
                "line 3: script is 'Cyrl'",
                "line 4: direction is 'rtl'; it must be 'ltr'",
                "line 5: txts is not known; did you mean 'texts'?",
                "line 6: stop is not known; write it under 'texts'",
            ],
        ),
        (
            "nl",
            {"texts": {"go_onn": "x", "stop": " ", "page_of": "{page}", "back": 3, "break_text": ENGLISH["break_text"]}},
            [
                "line 3: go_onn is not known; did you mean 'go_on'?",
                "line 4: stop is ' '; it must be a text",
                "line 5: page_of must have the same places to fill as in English: {page}, {pages}",
                "line 6: back is 3; it must be a text",
                "line 7: break_text is still in English; the study's language is 'nl'",
            ],
        ),
        (
            "fi",
            {"texts": {"stop": "Lopeta"}},
            ["direction is missing; it must be 'ltr' or 'rtl'", f"lacks {len(ENGLISH) - 1} of {len(ENGLISH)} texts"],
        ),
        ("nl", '{"texts": {"stop": "a",\n"stop": "b"}}', ["stop is given twice"]),
        ("nl", '{"texts":\n {"stop": }}', ["line 2: not readable as JSON"]),
        ("nl", {"texts": ["Stop"]}, ["texts must be a group"]),
        (
            "nl",
            {"prompts": {"answer": "Antwoord:", "choose": ["Kies."] * 5, "recover": ["x"], "chose": []}},
            [
                "choose must have the same places to fill as in English: {labels}",
                "recover must be a list of 5 texts",
                "chose is not known; did you mean 'choose'?",
                "prompts lacks exemplars, item",
            ],
        ),
    ],
)  # fmt: skip
def test_all_that_is_wrong_with_own_texts_is_told_at_once(make_study, language, given, faults):
    study = written(make_study(in_language(language)), given)
    told = wrods("check", study.folder)
    assert told.exit_code == 2
    said = " ".join(told.output.split())
    assert [fault for fault in faults if fault not in said] == [], said


# mixed languages


def test_english_texts_of_a_template_are_refused_in_a_study_of_another_language(tmp_path):
    folder = tmp_path / "mine"
    worked("new", folder)
    file = folder / "study.yaml"
    change(file, ("language: en", "language: nl"))
    told = wrods("check", folder)
    assert told.exit_code == 2
    places = [line for line in told.output.splitlines() if ": procedure[" in line]
    named = [line.partition(": procedure[")[2].partition("]")[0] for line in places]
    assert named == ["1", "2", "5"], told.output


THANKS = {
    "en": "Thank you for reading. The words that you saw were changed in the middle, and we wanted to know what this does to you.",
    "nl": "Dank u wel voor het lezen. De woorden die u zag waren in het midden veranderd, en wij wilden weten wat dat met u doet.",
    "de": "Vielen Dank für Ihre Teilnahme. Die Buchstaben mancher Wörter waren vertauscht; wir untersuchen, wie sich das auswirkt.",
    "ja": "ご協力ありがとうございました。読んでいただいた単語は、途中の文字が入れ替えられていました。速さの変化を調べています。",
    "zh": "感谢您的参与。您读到的单词中间的字母被打乱了，我们想知道这会怎样影响阅读的速度和正确率，并比较人和模型怎样阅读这些文字。",
}


@pytest.mark.parametrize(("language", "other"), itertools.pairwise([*THANKS, "en"]))
def test_a_text_in_another_language_than_the_studys_is_refused(make_study, language, other):
    study = make_study(in_language(language))
    for texts in ([language], [language, other]):
        text = "\n\n".join(["# 1", *(THANKS[name] for name in texts)])
        (study.folder / "debrief.md").write_text(text, "utf-8")
        worked("check", study.folder)
    (study.folder / "debrief.md").write_text(f"# 1\n\n{THANKS[other]}\n", "utf-8")
    told = wrods("check", study.folder)
    assert told.exit_code == 2
    said = f"debrief.md is in {pack_for(other).english_name}, and the study's language is '{language}'"
    assert said in " ".join(told.output.split())


@pytest.mark.parametrize(
    ("language", "materials", "expected"),
    [
        ("de", "{htest: {rules: all}}", "en"),
        ("en-GB", "{htest: {rules: all}}", "en-GB"),
        ("de", "{letter_geometry: {from: released}}", "en"),
        ("de", "{letter_geometry: {}}", "de"),
        ("de", "{words: words.txt}", "de"),
    ],
)
def test_english_items_are_not_taken_for_the_studys_language(tmp_path, language, materials, expected):
    source = parse_yaml(f"language: {language}\nmaterials: {materials}\n", tmp_path / "study.yaml")
    assert Study(tmp_path, source).items_language == expected


def test_own_wordings_ask_models_in_the_studys_language(make_study):
    def own(text: str | list[str]) -> Any:
        return [f"* {one}" for one in text] if isinstance(text, list) else f"* {text}"

    prompts = {kind: own(text) for kind, text in wording("en").items()}
    study = written(make_study(in_language("nl", MODEL)), {"prompts": prompts})
    assert not asked_in_english(study, study.models)
    plan = plan_session(study, study.items, list_id=1)
    trial = next(one for screen in plan["screens"] if screen["kind"] == "block" for one in screen["trials"])
    assert prompts["choose"][0].partition("{")[0] in Prompter(plan).turn(trial).text
