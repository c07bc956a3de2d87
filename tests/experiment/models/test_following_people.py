"""From a table of people's answers to models that follow them: imported behind instructions, yoked, teacher-forced, shown."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from experiment.building import build_study
from experiment.checking import load_study
from experiment.cli import main
from experiment.cli.study_store import store_of
from experiment.models import ModelSettings
from experiment.models.planning import People, first_prompts, plan_sessions
from tests.scripted_openai import ScriptedOpenAI

STUDY = """\
wrods: 1
study: follow
title: Following people
seed: 3
materials: {lexical_decision: {words: words.txt, fillers: 0}}
design: {factors: {form: {intact: none, transposed: {transpose: internal}}}}
models: {CONTEXT, who: {m: {use: "hf:m"}}}
procedure:
  - instructions: task.md
  - block: {trial: [{choose: {show: word, keys: {word: j, nonword: f}}}]}
"""
MAP = """\
reader: participant
reader_kind: human
list: list
item: item
show: {word: string}
condition: {form: form}
response: response
rt: {column: rt, unit: ms}
"""


def collected(folder: Path, context: str) -> Path:
    (folder / "study.yaml").write_text(STUDY.replace("CONTEXT", context), "utf-8")
    (folder / "words.txt").write_text("garden\nbasket\nplanet\nmarble\n", "utf-8")
    (folder / "task.md").write_text("Is the string a word?", "utf-8")
    study = load_study(folder)
    build_study(study)
    rows = ["participant,list,item,form,string,response,rt"]
    shown = [item for item in study.items if item.role == "test"][::2]
    rows += [
        f"P1,1,{item.item_id},{item.condition['form']},{item.shown['word']},{'word' if number % 2 else 'nonword'},{600 + number}"
        for number, item in enumerate(shown)
    ]
    (folder / "answers.csv").write_text("\n".join(rows) + "\n", "utf-8")
    (folder / "map.yaml").write_text(MAP, "utf-8")
    given = [
        "import",
        str(folder),
        str(folder / "answers.csv"),
        "--mapping",
        str(folder / "map.yaml"),
        "--json",
    ]
    done = CliRunner().invoke(main, given)
    assert done.exit_code == 0, done.output
    return folder


def test_a_persons_own_answers_stand_in_a_teacher_forced_prompt_and_are_said_to_be_theirs(tmp_path):
    study = load_study(collected(tmp_path, "context: teacher_forced"))
    store = store_of(study)
    assert store is not None
    with store:
        people = People(store, study.id, 1)
        (session,) = plan_sessions(study, "m", ModelSettings("hf:m"), {"model": "m"}, people=people)
        first, second = first_prompts(session)
    assert first.request.messages[0].content.startswith("Is the string a word?")
    assert [message.role for message in second.request.messages] == ["user", "assistant", "user"]
    assert second.request.messages[1].content == "nonword", "what the person answered, right or wrong"
    assert not second.stands_in and not first.stands_in


def test_a_server_that_tells_no_probabilities_is_not_asked_to_follow_people(tmp_path):
    with ScriptedOpenAI(answer=lambda body: "word") as server:
        folder = collected(tmp_path, "context: teacher_forced")
        done = CliRunner().invoke(main, ["run", str(folder), "--model", "openai:m", "--base-url", server.url])
        assert done.exit_code == 1 and "tells no probabilities of answers" in done.output, done.output
        assert server.probes and not server.requests
        server.logprobs = lambda body: {"word": -0.5, "nonword": -1.0}
        again = CliRunner().invoke(
            main, ["run", str(folder), "--model", "openai:m", "--base-url", server.url]
        )
        assert again.exit_code == 0 and server.requests, again.output


def test_a_yoked_model_takes_the_persons_strings_in_their_order(tmp_path):
    study = load_study(collected(tmp_path, "yoke: human"))
    store = store_of(study)
    assert store is not None
    with store:
        (person,) = People(store, study.id, 1)
        (session,) = plan_sessions(study, "m", ModelSettings("hf:m"), {"model": "m"}, people=[person])
        asked = [trial["shown"]["word"] for trial in session.trials]
    assert session.yoked_to == person.session_id
    told = (tmp_path / "answers.csv").read_text("utf-8").splitlines()[1:]
    assert asked == [row.split(",")[4] for row in told]
    assert json.dumps(session.plan).count("Is the string a word?") >= 1
