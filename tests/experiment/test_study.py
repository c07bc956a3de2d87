from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from experiment.checking import load_study
from experiment.study.screens import check_consent_first
from experiment.study.study import session_rules
from experiment.study.texts import render_text
from experiment.study.yaml_source import parse_yaml
from stimuli.errors import UserError
from tests.experiment.commands import wrods
from tests.experiment.conftest import small_items


def value(text: str) -> object:
    return parse_yaml(f"a: {text}", Path("study.yaml")).data["a"]


@pytest.mark.parametrize(
    "text", ["yes", "no", "on", "off", "007", "1:30", "2026-11-21", "10 s", "80%", "0x1F", "1_000"]
)
def test_words_that_other_yaml_readers_turn_into_values_stay_text(text):
    assert value(text) == text


def test_a_key_that_stands_twice_is_refused_with_both_lines():
    with pytest.raises(UserError, match=r"line 3: 'seed'.* line 1\b"):
        parse_yaml("seed: 1\ntitle: x\nseed: 2\n", Path("study.yaml"))


def test_broken_yaml_names_its_line():
    with pytest.raises(UserError, match=r"study\.yaml, line 2: .*YAML"):
        parse_yaml("a: [1, 2\nb: 3\n", Path("study.yaml"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seed: 7", "sede: 7", "'seed'"),
        ("seed: 7", "seed: 7\nwho: {}", "line 5: who .*`models`"),
        ("seed: 7", "seed: -7", "line 4: seed is -7"),
        ("study: small", "study: Small One", 'study is "Small One"'),
        ("transpose: initial", "transpose: inital", "'transpose:initial'"),
        ("break_every: 2", "break_evry: 2", "'break_every'"),
        ("pass: 50%", "pass: half", 'pass is "half"'),
        ("pass: 50%", "pass: 999%", "pass is '999%'"),
        ("answer_by: text", "answer_by: text, time_limit: 0 s", "time_limit is '0 s'"),
        ("words: words.txt", "words: words.txt, sentences: s.csv", "sentences, words"),
        (
            "consent: consent.md",
            "consent: agreement.md",
            r"'agreement\.md'",
        ),
        ("items: practice.csv", "items: practise.csv", r"'practise\.csv'"),
        ("position:", "rt:", r"factors\.rt: 'rt'"),
        ("initial: {", "f/inal: {", 'is "f/inal"'),
        ("initial: {", f"{'x' * 42}: {{", "x" * 42),
        ("initial: {", "gea\u0308ndert: {", "NFC"),
        ("initial: {", "बदला: {", 'is "बदला"'),
        ("initial: {", "a - b: {", 'is "a - b"'),
        ("initial: {", "In-tact: none, in_tact: {", "'In-tact' and 'in_tact'"),
        ("wrods: 1", "wrods: 2", "wrods is 2.* 1"),
        ("seed: 7", "seed: 7\npublished: [items]", "`words`"),
        ("- choose: {", "- say: {show: word}\n        - choose: {", r"trial\[1\]\.say: .*choose.*recover"),
        ("- debrief", "- full_screen: true\n  - full_screen: true\n  - debrief", "full_screen"),
    ],
)
def test_a_fault_is_named_with_its_place_and_mend(make_study, old, new, said):
    with pytest.raises(UserError, match=said):
        make_study((old, new))


def test_levels_are_named_in_letters_of_other_scripts_and_with_blanks(make_study):
    names = {"intact": "без изменений", "initial": "Anfang vertauscht"}
    items = [
        replace(one, condition={"position": names[one.condition["position"]]}) if one.condition else one
        for one in small_items()
    ]
    study = make_study(
        ("{intact: ", "{без изменений: "), (" initial: {", " Anfang vertauscht: {"), items=items
    )
    assert list(study.factors["position"]) == list(names.values())
    shown = {one.condition["position"] for one in study.items if one.role == "test"}
    assert shown == set(names.values())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("direction: lower", r"direction is \"lower\""),
        ("direction: {final - intact: less}", r"'final - intact'"),
        ("alpha: 0.7", r"alpha is 0\.7"),
        ("equivalence: 5", r"equivalence is 5\b"),
        ("equivalence: 5 points", r"equivalence is '5 points'"),
        ("fallback: correct ~ position", r"a\.fallback: "),
        ("exclude: {answers: wrong}", r"exclude\.answers: "),
        ("exclude: {trials: {rt: outside 3 s to 1 s}}", r"planned\.a\.exclude\.trials\.rt is"),
        ("contrasts: [intact - intact]", r"contrasts\[1\] is 'intact - intact'"),
        ("contrasts: [final-intact]", r"contrasts\[1\] is 'final-intact'"),
        ("families: F", r"'family'"),
        ("levels: [intact, inital]", r"'initial'"),
        ("levels: [intact]", r"levels is "),
        ("within: {position: final}", r"within\.position: "),
        ("within: {examples: few-shot}", r"'examples'"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_told_with_line_and_rule(make_study, more, said, tmp_path):
    given = f"measure: correct, compare: position, between: [human], {more}"
    plan = f"\nanalysis:\n  planned:\n    a: {{{given}}}\n"
    with pytest.raises(UserError, match=rf"(?s)study\.yaml, line \d+.*{said}"):
        make_study(("  - debrief: debrief.md\n", f"  - debrief: debrief.md{plan}"))
    done = wrods("check", tmp_path / "small")
    assert isinstance(done.exception, SystemExit) and "study.yaml, line" in done.output


def test_a_missing_folder_says_how_to_make_one(tmp_path):
    with pytest.raises(UserError, match="wrods new"):
        load_study(tmp_path / "nowhere")


def test_raw_html_in_a_text_is_shown_not_run():
    html = render_text("Hello <script>alert(1)</script> **you**").html
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<strong>you</strong>" in html


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("文章を読み、\n質問に答えます。", "文章を読み、質問に答えます。"),
        ("读完**句子**\n以后", "读完句子以后"),
        ("문장을 읽고\n대답합니다", "문장을 읽고 대답합니다"),
        ("read it\nand 答える\nnow", "read it and 答える now"),
    ],
)
def test_lines_are_joined_without_a_space_where_the_script_writes_none(source, told):
    text = render_text(source)
    assert " ".join(text.text.split("\n")) == told
    assert re.sub(r"<[^>]+>|\n$", "", text.html).strip().replace("\n", " ") == told


def test_javascript_links_are_not_made():
    assert "href" not in render_text("[x](javascript:alert(1))").html


def test_a_text_edited_after_loading_does_not_reach_anybody(make_study):
    from experiment.procedure import plan_session

    study = make_study()
    before = study.design_hash
    (study.folder / "consent.md").write_text("Another text", "utf-8")
    plan = plan_session(study, study.items, list_id=1)
    assert plan["screens"][0]["text"] == "The consent\n\nSome text."
    assert plan["design_hash"] == before == study.design_hash


@pytest.mark.parametrize(
    ("rule", "above"),
    [
        ("attention_checks_failed: 2 or more", {"attention_checks_failed": 2}),
        ("question_accuracy: below 70%", {"question_accuracy": 0.3}),
        ("hidden: above 30 s", {"hidden": 30_000}),
        ("too_fast: above 20%", {"too_fast": 0.2}),
    ],
)
def test_rules_of_exclusion_are_written_as_in_a_method_section(make_study, rule, above):
    study = make_study(("seed: 7\n", f"seed: 7\nanalysis: {{exclude: {{sessions: {{{rule}}}}}}}\n"))
    assert session_rules(study) == pytest.approx(above, abs=1e-6)


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("question_accuracy: above 70%", "is 'above 70%'"),
        ("too_fast: below 20%", "is 'below 20%'"),
        ("too_fast: above 120%", "is 'above 120%'"),
        ("attention_checks_failed: 2", "2 or more"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_named(make_study, rule, says):
    with pytest.raises(UserError, match=r"study\.yaml, line") as error:
        make_study(("seed: 7\n", f"seed: 7\nanalysis: {{exclude: {{sessions: {{{rule}}}}}}}\n"))
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        (
            "- consent",
            "- questions: {ill: {ask: Are you ill?, type: text}}\n  - consent",
            r"procedure\[1\].questions",
        ),
        (
            "- consent: consent.md\n  - instructions: instructions.md\n",
            "- instructions: {pages: [instructions.md], questions: {q: {ask: What?, type: text, accept: a}}}\n"
            "  - consent: consent.md\n",
            "instructions",
        ),
    ],
)
def test_nothing_is_asked_before_consent_and_older_studies_still_open(make_study, before, after, place):
    study = make_study((before, after))
    with pytest.raises(UserError, match=f"{place}.*before the consent"):
        check_consent_first(study)
