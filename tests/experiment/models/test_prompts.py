"""The papers' prompts are sent as their code sent them, and wrods' wordings hold for every kind of ask in every language."""

from __future__ import annotations

import json
from typing import Any

import pytest

from experiment.building import make_items
from experiment.checking import load_study
from experiment.languages import wording
from experiment.models.prompts.prompter import (
    PromptedTask,
    Prompter,
    judge_prompt,
    name_of,
    paper_prompt,
    paper_prompts,
)
from experiment.procedure import plan_session, trials_of
from stimuli.errors import UserError

LANGUAGES = ("en", "de", "es")


def trial(task: str, shown: dict[str, str], step: str = "answer", **more: Any) -> dict[str, Any]:
    text = next(iter(shown.values()))
    made: dict[str, Any] = {
        "step": step,
        "text": text,
        "caption": None,
        "ask": None,
        "multiline": True,
        "read_as": "text",
    }
    made |= more.pop("of_step", {})
    if step == "choose":
        made |= {"labels": list("ABCDE"[: len(made["options"])]), "responses": made["options"]}
    row = {
        "set": task,
        "item_id": "i",
        "shown": shown,
        "intact": {},
        "exemplars": [],
        "answer": "x",
        "steps": [made],
    }
    return row | more


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_of_ask_has_five_different_wordings(language):
    words = wording(language)
    assert set(words) == set(wording("en"))
    for kind, given in words.items():
        if isinstance(given, list):
            assert len(set(given)) == 5, kind
            marks = {
                json.dumps(
                    sorted(part for part in ("{labels}", "{answer}", "{reply}", "{none}") if part in one)
                )
                for one in given
            }
            assert len(marks) == 1, f"all wordings of {kind} say the same things"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("variant", [1, 5])
def test_a_judge_is_told_the_labels_and_a_word_for_none(language, variant):
    turn = Prompter({"language": language, "prompt_variant": variant}).judge("I think {it} is A.", ["A", "B"])
    assert "I think {it} is A." in turn.text and "A, B" in turn.text
    assert turn.labels == ("A", "B", wording(language)["none"])
    assert wording(language)["none"] in turn.text


def test_every_prompt_of_a_paper_says_where_it_is_from():
    assert len(paper_prompts()) == 18
    for name, prompt in paper_prompts().items():
        assert any(paper in prompt["source"] for paper in ("H-TEST", "Scrambled Bench", "Mind Scramble")), (
            name
        )
        assert prompt["max_tokens"] > 0 and "temperature" in prompt


OPTIONS = {"options": ["Salad dressing", "Baby formula"]}


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (trial("uppercase", {"sentence": "a dOg"}, "choose", of_step={"options": ["A", "B"]},
               exemplars=[{"text": "a Cat", "label": "A"}, {"text": "a cat", "label": "B"}]),
         'Input: "a Cat" Label: A\nInput: "a cat" Label: B\n\nInput: "a dOg" Label: \nA \nB (Respond in one letter and nothing else)'),
        (trial("letter_geometry", {"question": "Turn b."}, "choose", of_step={"options": ["d", "p"]}),
         "Turn b.\nd\np(Respond in one letter and nothing else)"),
        (trial("recover", {"sentence": "eTh dgo."}, "recover"),
         "The following sentence contains words with scrambled letters. Please recover the original sentence from it.\n"
         "Scrambled sentence: eTh dgo.\nRecovered sentence:"),
        (trial("recover", {"sentence": "eTh dgo."}, "recover", exemplars=[{"text": "ehT cta.", "label": "The cat."}]),
         "Scrambled Sentence: ehT cta.\nRecovered Sentence: The cat.\n\nScrambled sentence: eTh dgo.\nRecovered sentence:"),
        (trial("question", {"evidence": "ehT oen.", "question": "Which?"}, "choose", of_step=OPTIONS),
         "Question: Which?\nChoices: (A)Salad dressing (B)Baby formula\nEvidence: ehT oen.\n"
         "Answer: Based on the evidence, among A through B, the answer is"),
        (trial("question", {"dialogue": "W: Hi.", "question": "Who?"}, "choose", of_step=OPTIONS),
         "Dialogue:\nW: Hi.\nQuestion: Who?\nChoices: (A)Salad dressing (B)Baby formula\n"
         "Answer: Based on the dialogue, among A through B, the answer is"),
        (trial("problem", {"question": "3 + 4?"}, of_step={"options": ["7", "8"], "read_as": "option"},
               exemplars=[{"text": "1 + 1?\n(A) 2\n(B) 3", "label": "One and one. The answer is (A)."}]),
         "Question: 1 + 1?\nChoices: (A)2 (B)3\nAnswer: One and one. The answer is (A).\n\n"
         "Question: 3 + 4?\nChoices: (A)7 (B)8\nAnswer:"),
        (trial("complete", {"question": "How many?"}),
         "Solve the math problem below:\nProblem: How many?\nResponse in the following format without any other information:\n"
         ">process: {reasoning steps here}\n>answer_number: {final answer number here}"),
        (trial("complete", {"text": "Add two."}),
         "Solve the code problem below in Python:\nProblem: Add two.\n"
         "Response in the following format without any other information:\n>code: {Python code here}"),
        (trial("question", {"passage": "P {question}.", "question": "Q?"}, "choose", of_step={"options": ["yes", "no"]}),
         "Answer the question with only 'yes' or 'no' based on the passage below:\nQuestion: Q?\nPassage: P {question}.\n"
         "Response in the following format without any other information:\n>reason: {reason for yes or no here}\n"
         ">answer: {'yes' or 'no' here}"),
        (trial("complete", {"question": "Where?"}, "choose", of_step=OPTIONS),
         "Choose one choice that best answers the commonsense question below:\nQuestion: Where?\n"
         "Choices: ['Salad dressing', 'Baby formula']\nResponse in the following format without any other information:\n"
         ">reason: {reason for the choice here}\n>answer: {one choice from the choices list here}"),
        (trial("rectify", {"passage": "A dgo."}, "recover"),
         "Correct the scrambled letters in each word of the following passage:\nPassage: A dgo.\n"
         "Response in the following format without any other information:\n>fixed: {fixed passage here}"),
    ],
)  # fmt: skip
def test_a_papers_prompt_is_sent_letter_for_letter(row, text):
    assert paper_prompt(row).text == text


def test_h_tests_thoughts_and_their_judge_are_asked_as_in_the_paper():
    row = trial("uppercase", {"sentence": "a dOg"}, "choose", of_step={"options": ["A", "B"]})
    thought = paper_prompt(row, thinks=True)
    assert (
        thought.text == '\nNow, think out loud step by step and assign label. \nInput: "a dOg" Label: \nA \nB'
    )
    assert not thought.is_scored and thought.temperature == 0.7
    assert judge_prompt("htest_judge", "It is A.", ["A", "B"]).text == (
        "Assistant: It is A.\n\n What does the Assistant think the sentence belongs to?\nA\nB\n"
        "None (Respond in one word and nothing else)"
    )


def test_what_no_paper_asked_has_no_prompt():
    assert name_of(PromptedTask("translate", ("sentence",), has_options=False, has_exemplars=False)) is None
    one = trial("summarise", {"sentence": "x"})
    with pytest.raises(ValueError, match=one["item_id"]):
        paper_prompt(one)


PAPERS = """\
wrods: 1
study: papers
title: T
seed: 3
published: [items, prompts]
materials:
  corpus: {{name: {corpus}, from: {folder}{split}}}
  task: {{{task}: {{exemplars: printed, demonstrations: RS-50}}}}
  items: 4
  on_bad: skip
design: {{factors: {{noise: {{intact: none, RS-50: RS-50}}}}}}
procedure:
  - block: {{trial: [{step}]}}
"""


@pytest.mark.parametrize(
    ("corpus", "task", "step", "prefix"),
    [
        ("aqua", "problem", "{answer: {show: question, read_as: option}}", "aqua_cot_prefix_rs50%"),
        (
            "realtimeqa",
            "recover",
            "{recover: {show: evidence}}",
            "rec_few_shot_prefix_used_in_every_condition",
        ),
    ],
)
def test_what_stands_before_an_item_is_what_the_paper_released(shared, tmp_path, corpus, task, step, prefix):
    released = json.loads(
        (shared / "data" / "scrambled_bench" / "stimuli" / "fewshot_prefixes.json").read_text("utf-8")
    )
    split = ", split: test" if corpus == "aqua" else ""
    text = PAPERS.format(corpus=corpus, folder=shared / "data" / corpus, split=split, task=task, step=step)
    (tmp_path / "study.yaml").write_text(text, "utf-8")
    study = load_study(tmp_path)
    items = make_items(study).items
    for list_id in (1, 2):
        plan = plan_session(study, items, list_id=list_id)
        for one in trials_of(plan):
            assert Prompter(plan).turn(one).text.startswith(released[prefix])


def test_a_typed_step_without_a_setting_for_several_lines_is_answered_in_one():
    one = trial("any", {"sentence": "The dog barks."}, "recover")
    del one["steps"][0]["multiline"]
    turn = Prompter({"language": "en", "prompt_variant": 1}).turn(one)
    assert turn.stop == ("\n",) and turn.text.endswith("Answer:")


def test_a_typed_step_that_no_prompt_says_how_to_answer_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setattr("experiment.models.prompts.prompter.TYPED", ("recover", "undeclared"))
    one = trial("any", {"sentence": "The dog barks."}, "undeclared")
    with pytest.raises(UserError, match=r"'undeclared'(.|\n)*wording\.json"):
        Prompter({"language": "en", "prompt_variant": 1}).turn(one)


def test_the_rule_is_asked_for_behind_the_examples_and_no_item_is_announced():
    step = {"step": "answer", "text": None, "caption": None, "ask": "What tells A from B?", "options": None,
            "multiline": True, "read_as": "text", "hint": None, "decimal": "."}  # fmt: skip
    examples = [{"text": "an Oak", "label": "A"}, {"text": "an oak", "label": "B"}]
    trial = {"trial_type": "answer", "steps": [step], "exemplars": examples, "shown": {}, "intact": {}}
    for strategy in ("direct", "chain_of_thought"):
        prompter = Prompter({"language": "en", "prompt_variant": 1}, strategy=strategy)
        text = prompter.turn(trial).text
        assert text.startswith("Examples:\n\nan Oak\nAnswer: A\n\nan oak\nAnswer: B\n\nWhat tells A from B?")
        assert wording("en")["item"] not in text
