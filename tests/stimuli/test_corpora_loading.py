"""Eight corpora in their own formats: published counts and records come back, broken ones are named."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from stimuli.corpora import corpora, load_corpus
from stimuli.corpora.gsm8k import canonical_number
from stimuli.corpora.realtimeqa import recovery_sentences
from stimuli.errors import UserError


@pytest.fixture(scope="session")
def data(shared):
    return shared / "data"


def by_id(loaded):
    return {record.record_id: record for record in loaded.records}


@pytest.mark.parametrize(
    ("name", "split", "counts"),
    [
        ("realtimeqa", None, {None: 560}),
        ("dream", None, {"train": 645, "dev": 2040, "test": 2041}),
        ("dream", "validation", {"dev": 2040}),
        ("aqua", None, {"dev": 254, "test": 254}),
        ("gsm8k", "test", {"test": 1319}),
        ("mbpp", None, {"prompt": 10, "test": 500, "validation": 90, "train": 374}),
        ("mbpp", "prompt", {"prompt": 10}),
        ("boolq", "dev", {"dev": 2474}),
        ("squad", None, {"dev": 1200}),
        ("csqa", None, {"train": 500, "dev": 1221, "test": 50}),
    ],
)
def test_each_corpus_has_its_published_number_of_records(data, name, split, counts):
    loaded = load_corpus(name, data / name, split=split)
    assert Counter(record.split for record in loaded.records) == counts
    assert loaded.bad == ()
    assert all(set(record.texts) <= set(corpora()[name].fields) for record in loaded.records)
    assert {record.licence for record in loaded.records} == {corpora()[name].licence}
    ids = Counter((record.split, record.record_id) for record in loaded.records)
    assert max(ids.values()) == 1


@pytest.mark.parametrize(
    ("name", "file", "counts"),
    [
        ("aqua", "test.json", {"A": 63, "B": 58, "C": 53, "D": 46, "E": 34}),
        ("csqa", "dev_rand_split.jsonl", {"A": 239, "B": 255, "C": 241, "D": 251, "E": 235}),
    ],
)
def test_the_right_options_are_spread_as_in_the_files(data, name, file, counts):
    with (data / name / file).open(encoding="utf-8") as stream:
        raw = [json.loads(line) for line in stream]
    letters = [row.get("correct") or row["answerKey"] for row in raw]
    records = load_corpus(name, data / name / file).records
    for letter, record in zip(letters, records, strict=True):
        assert record.choices is not None and record.choices["ABCDE".index(letter)] == record.answer
    if name == "csqa":
        assert Counter(letters) == counts
    else:
        assert Counter(record.extra["letter"] for record in records) == Counter(letters)


def test_aqua_options_lose_their_letters_and_keep_the_worked_solution(data):
    record = by_id(load_corpus("aqua", data / "aqua"))["dev-1"]
    assert record.choices == ("32400", "6000", "600", "60000", "10")
    assert (record.answer, record.extra["letter"]) == ("32400", "A")
    assert record.rationale is not None and record.rationale.endswith("Correct answer - A")
    assert (record.file, record.line, record.licence) == ("dev.json", 1, "Apache-2.0")


def test_gsm8k_answers_keep_their_sign_and_lose_their_commas(data):
    records = load_corpus("gsm8k", data / "gsm8k", split="test").records
    answers = [record.answer or "" for record in records]
    assert sum(answer.startswith("-") for answer in answers) == 2
    assert {"2125", "114200", "1450000", "-10", "-3"} <= set(answers)
    assert all(answer.removeprefix("-").isdigit() for answer in answers)
    assert records[0].rationale is not None and records[0].rationale.endswith("farmer’s market.")
    assert records[0].extra == {"steps": 2.0}


@pytest.mark.parametrize(
    ("given", "number"),
    [
        (" 18", "18"),
        ("-1,450.5", "-1450.5"),
        ("$2,125", "2125"),
        ("\u22123", "-3"),
        ("3.50", "3.50"),
        (".5", "0.5"),
        ("5%", "5"),
        ("+7", "7"),
        ("1,23", None),
        ("5 of 6", None),
        ("", None),
        ("-", None),
        ("eight", None),
    ],
)
def test_a_number_is_read_with_its_sign_and_decimals_or_not_at_all(given, number):
    assert canonical_number(given) == number


def test_mbpp_tasks_bring_code_tests_and_setup(data):
    loaded = load_corpus("mbpp", data / "mbpp")
    records = by_id(loaded)
    assert len(records["1"].tests) == 3 and records["1"].tests[0].startswith("assert min_cost(")
    assert records["1"].answer is not None and "def min_cost" in records["1"].answer
    assert (records["1"].split, records["1"].setup) == ("prompt", None)
    assert sum(record.setup is not None for record in loaded.records) == 2
    assert sum(record.extra["challenge_tests"] is not None for record in loaded.records) == 11
    assert len(loaded.duplicates) == 4


def test_boolq_answers_are_yes_and_no_as_often_and_squad_keeps_every_answer_that_counts(data):
    records = load_corpus("boolq", data / "boolq").records
    assert Counter(record.answer for record in records) == {"yes": 1237, "no": 1237}
    assert records[0].texts["question"] == "is there such a thing as a fainting goat"
    record = load_corpus("squad", data / "squad").records[0]
    assert (record.answer, record.answers) == ("October 1973", ("October", "1973"))
    assert record.extra == {"title": "1973_oil_crisis", "answerable": 1.0}


def test_unlabelled_questions_of_csqa_have_no_answer_and_that_is_said(data):
    loaded = load_corpus("csqa", data / "csqa", split="test")
    assert {record.answer for record in loaded.records} == {None}
    (warning,) = loaded.warnings
    assert "50 of 50 " in warning and "CommonsenseQA" in warning


def test_dream_gives_the_published_1025_questions_with_their_categories(data):
    loaded = load_corpus("dream", [data / "dream/dev.json", data / "dream/test.json"], selection="annotated")
    assert Counter(record.split for record in loaded.records) == {"test": 512, "dev": 513}
    names = Counter(name for record in loaded.records for name in str(record.extra["categories"]).split(", "))
    assert names == {"arithmetic": 46, "commonsense": 358, "logic": 745, "matching": 108, "summary": 131}
    assert sum(record.extra["is_logic"] == 1.0 for record in loaded.records) == 745
    assert str(loaded.records[0].licence) in loaded.warnings[0]
    annotators = [f"annotator{number}_{split}.txt" for number in (1, 2) for split in ("dev", "test")]
    assert [file.name for file in loaded.files] == ["dev.json", "test.json", *annotators]


def test_annotated_questions_come_in_the_order_of_annotation(data):
    records = load_corpus("dream", data / "dream", split="test", selection="annotated").records
    lines = (data / "dream/annotator1_test.txt").read_text("utf-8").splitlines()[1:]
    assert [record.record_id for record in records] == ["-".join(line.split("\t")[:2]) for line in lines]


def test_selections_of_realtimeqa_are_the_published_ones(data):
    asked = load_corpus("realtimeqa", data / "realtimeqa", selection="answerable").records
    recovered = load_corpus("realtimeqa", data / "realtimeqa", selection="recovery").records
    assert (len(asked), len(recovered)) == (346, 408)
    with (data / "scrambled_bench/stimuli/qa_realtimeqa.jsonl").open(encoding="utf-8") as stream:
        published = [json.loads(line) for line in stream]
    assert [r.texts["evidence"] for r in asked] == [row["evidence"]["original"] for row in published]
    assert ["ABCD"[record.choices.index(record.answer)] for record in asked] == [
        row["answer"] for row in published
    ]


GSM = {"question": "How many?", "answer": "One and one.\n#### 2"}
CSQA = json.loads("""
{"id": "a1", "question": "Where?", "question_concept": "place",
 "choices": {"label": ["A", "B"], "text": ["here", "there"]}, "answerKey": "B"}
""")
SQUAD_2 = json.loads("""
{"version": "v2.0", "data": [{"title": "Cats", "paragraphs": [{"context": "Cats sleep.", "qas": [
  {"id": "q1", "question": "Who?", "answers": [{"text": "Cats", "answer_start": 0}], "is_impossible": false},
  {"id": "q2", "question": "Why?", "answers": [], "is_impossible": true},
  {"id": "q3", "question": "When?", "answers": [], "is_impossible": false}
]}]}]}
""")
MBPP_FULL = json.loads("""
{"task_id": 11, "text": "Write it.", "code": "x = 1", "test_list": ["assert x"], "test_setup_code": "",
 "challenge_test_list": ["assert x == 1"]}
""")
MBPP_SANITIZED = json.loads("""
{"source_file": "f", "task_id": 11, "prompt": "Write it well.", "code": "x = 1",
 "test_imports": ["import math"], "test_list": ["assert x"]}
""")
BOOLQ = {"question": "is it", "title": "It", "answer": False, "passage": "It is not."}


def lines(folder, name, *rows):
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_the_original_nested_layout_of_squad_and_its_unanswerable_questions(tmp_path):
    path = tmp_path / "dev-v2.0.json"
    path.write_text(json.dumps(SQUAD_2), encoding="utf-8")
    loaded = load_corpus("squad", tmp_path, on_bad="skip")
    records = by_id(loaded)
    assert (records["q1"].answer, records["q2"].answer) == ("Cats", None)
    assert records["q2"].extra == {"title": "Cats", "answerable": 0.0}
    (bad,) = loaded.bad
    assert "'q3'" in bad.reason
    assert any("1 of 2 " in said and "answerable" in said for said in loaded.warnings)


def test_the_hub_layout_of_csqa_and_the_original_boolq_are_read(tmp_path):
    (record,) = load_corpus("csqa", lines(tmp_path, "dev.jsonl", CSQA)).records
    assert (record.choices, record.answer, record.extra) == (("here", "there"), "there", {"concept": "place"})
    (unlabelled,) = load_corpus("csqa", lines(tmp_path, "test.jsonl", CSQA | {"answerKey": ""})).records
    assert unlabelled.answer is None
    (boolq,) = load_corpus("boolq", lines(tmp_path, "dev.jsonl", BOOLQ)).records
    assert (boolq.answer, boolq.extra["title"], boolq.record_id) == ("no", "It", "dev-1")


def test_versions_with_the_same_records_are_never_pooled_in_silence(tmp_path):
    lines(tmp_path, "test.jsonl", GSM)
    lines(tmp_path, "test_socratic.jsonl", GSM | {"answer": "How? ** So.\n#### 2"})
    loaded = load_corpus("gsm8k", tmp_path)
    assert [record.split for record in loaded.records] == ["test"]
    assert loaded.warnings and "test_socratic.jsonl" in loaded.warnings[0]
    (socratic,) = load_corpus("gsm8k", tmp_path, split="test_socratic").records
    assert socratic.record_id == "test_socratic-1"
    pooled = load_corpus("gsm8k", [tmp_path / "test_socratic.jsonl", tmp_path / "test.jsonl"])
    assert [set(group) for group in pooled.duplicates] == [{"test-1", "test_socratic-1"}]


def test_sanitized_mbpp_tasks_are_known_for_the_same_though_reworded(tmp_path):
    full = lines(tmp_path, "mbpp.jsonl", MBPP_FULL)
    sanitized = tmp_path / "sanitized-mbpp.json"
    sanitized.write_text(json.dumps([MBPP_SANITIZED], indent=2), encoding="utf-8")
    assert [record.record_id for record in load_corpus("mbpp", tmp_path).records] == ["11"]
    pooled = load_corpus("mbpp", [full, sanitized])
    assert [set(group) for group in pooled.duplicates] == [{"11", "11-sanitized"}]
    record = by_id(pooled)["11-sanitized"]
    assert (record.split, record.setup, record.line) == ("test", "import math", 2)
    assert by_id(pooled)["11"].extra["challenge_tests"] == "assert x == 1"


@pytest.mark.parametrize(
    ("name", "file"),
    [("dream", "dev.json"), ("aqua", "dev.json"), ("gsm8k", "test.jsonl"), ("mbpp", "mbpp.jsonl")],
)
def test_a_file_cut_in_the_middle_is_named_and_what_is_whole_is_read(data, tmp_path, name, file):
    whole = (data / name / file).read_bytes()
    path = tmp_path / file
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=rf"{re.escape(str(path))}, line \d+: .*JSON"):
        load_corpus(name, path)
    loaded = load_corpus(name, path, on_bad="skip")
    assert len(loaded.bad) == 1
    everything = load_corpus(name, data / name / file).records
    assert [r.texts for r in loaded.records] == [r.texts for r in everything[: len(loaded.records)]]
    assert len(loaded.records) > len(everything) // 3


def test_a_wrong_file_a_wrong_folder_and_unknown_names_are_told(tmp_path, data):
    broken = lines(tmp_path, "test.jsonl", {"x": 1})
    for said, given, settings in (
        (r"(?s)test\.jsonl.*GSM8K", ("gsm8k", broken), {"on_bad": "skip"}),
        ("DREAM", ("dream", tmp_path), {}),
        (r"none\.json", ("dream", tmp_path / "none.json"), {}),
        ("'gsm8k'", ("gsm8", tmp_path), {}),
        ("'test'", ("dream", data / "dream"), {"split": "tset"}),
        (r"'dev'.*'test'", ("dream", data / "dream/dev.json"), {"split": "test"}),
        ("'annotated'", ("dream", data / "dream"), {"selection": "anotated"}),
        (r"AQuA-RAT.*'annotated'", ("aqua", data / "aqua"), {"selection": "annotated"}),
        (r"DREAM.*train", ("dream", data / "dream"), {"split": "train", "selection": "annotated"}),
        (r"DREAM.*path.*hub", ("dream",), {}),
    ):
        with pytest.raises(UserError, match=said):
            load_corpus(*given, **settings)


def test_missing_and_broken_annotations_of_dream_are_named(tmp_path, data):
    (tmp_path / "test.json").write_bytes((data / "dream/test.json").read_bytes())
    with pytest.raises(UserError, match=r"annotator\d_test\.txt"):
        load_corpus("dream", tmp_path, selection="annotated")
    (tmp_path / "annotator2_test.txt").write_text("dialogueID\tquestionIndex\ttype\n1-2\t1\tmx\n", "utf-8")
    with pytest.raises(UserError, match=r"annotator2_test\.txt, line 2: "):
        load_corpus("dream", tmp_path)


RECORD = json.loads(r"""
{"question_id": "20230317_0", "question_sentence": "Which <b>one</b>?", "choices": ["this", "that"],
 "answer": ["1"], "evidence": "That <a href=\"x\">one</a>&nbsp;&amp; no other"}
""")


@pytest.mark.parametrize(
    ("name", "file", "row", "said"),
    [
        ("gsm8k", "test.jsonl", BOOLQ, "line 2: 'answer' is False"),
        ("gsm8k", "test.jsonl", GSM | {"answer": "#### many"}, "line 2: 'many' after ####"),
        ("gsm8k", "test.jsonl", GSM | {"answer": "two"}, "'####'"),
        ("gsm8k", "test.jsonl", GSM | {"question": " "}, "line 2: 'question'"),
        ("csqa", "dev.jsonl", CSQA | {"id": "a2", "answerKey": "C"}, "answerKey is 'C'"),
        ("csqa", "dev.jsonl", CSQA | {"id": "a2", "answerKey": ""}, "unlabelled"),
        ("csqa", "dev.jsonl", CSQA, "line 1)"),
        ("mbpp", "mbpp.jsonl", MBPP_FULL | {"task_id": 975}, "1 to 974"),
        ("mbpp", "mbpp.jsonl", MBPP_FULL | {"test_list": []}, "test_list"),
        ("boolq", "dev.jsonl", GSM, "'passage'"),
        ("realtimeqa", "20230317_qa.jsonl", "{bad", "JSON"),
        ("realtimeqa", "20230317_qa.jsonl", [1], "list"),
        ("realtimeqa", "20230317_qa.jsonl", {"question_id": "x"}, "'question_sentence'"),
        ("realtimeqa", "20230317_qa.jsonl", RECORD | {"choices": "this"}, "'choices' is 'this'"),
        ("realtimeqa", "20230317_qa.jsonl", RECORD | {"answer": ["7"]}, "['7']"),
        ("realtimeqa", "20230317_qa.jsonl", RECORD | {"answer": None}, "answer None"),
    ],
)
def test_a_broken_record_stops_the_load_or_is_listed(tmp_path, name, file, row, said):
    good = {"gsm8k": GSM, "csqa": CSQA, "mbpp": MBPP_FULL, "boolq": BOOLQ, "realtimeqa": RECORD}[name]
    path = lines(tmp_path, file, good)
    with path.open("a", encoding="utf-8") as stream:
        stream.write((row if isinstance(row, str) else json.dumps(row)) + "\n")
    with pytest.raises(UserError) as raised:
        load_corpus(name, path)
    assert said in str(raised.value) and f"{path}, line 2" in str(raised.value)
    loaded = load_corpus(name, path, on_bad="skip")
    assert len(loaded.records) == 1
    assert [(bad.file, bad.line) for bad in loaded.bad] == [(file, 2)]
    assert loaded.bad[0].reason in str(raised.value) and str(path) not in loaded.bad[0].reason


def test_a_folder_gives_its_files_by_date(tmp_path):
    lines(tmp_path, "20230324_qa.jsonl", RECORD | {"question_id": "b"})
    lines(tmp_path, "20230317_qa.jsonl", RECORD | {"question_id": "a"})
    records = load_corpus("realtimeqa", tmp_path).records
    assert [record.extra["question_id"] for record in records] == ["a", "b"]


def test_recovery_sentences_are_distinct_sorted_and_end_in_a_full_stop(tmp_path):
    evidence = ("Zebras run", "<p>Apes climb.</p>", "Zebras run.", "")
    rows = [RECORD | {"question_id": str(n), "evidence": text} for n, text in enumerate(evidence)]
    path = lines(tmp_path, "20230317_qa.jsonl", *rows)
    texts = recovery_sentences(load_corpus("realtimeqa", path).records)
    told = [(text.source_id, text.text) for text in texts]
    assert told == [("20230317_1", "Apes climb."), ("20230317_0", "Zebras run.")]
