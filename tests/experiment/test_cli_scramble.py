"""``wrods scramble`` on text and JSONL, from a file and from standard input."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import Result

from stimuli.scramble.published import published_pass
from stimuli.scramble.text import scramble_text
from tests.experiment.commands import wrods

LINES = ["Reading scrambled words is hard.", "", "“Größe” zählt doch!", "Reading scrambled words is hard."]


def run(*arguments: str, given: str | bytes | None = None) -> Result:
    return wrods("scramble", *arguments, given=given)


def test_each_line_of_standard_input_comes_back_scrambled():
    result = run("--type", "keep:first_and_last", "--seed", "7", given="\n".join(LINES) + "\n")
    shown = result.stdout.splitlines()
    assert result.exit_code == 0 and len(shown) == 4
    assert shown[0] == scramble_text(LINES[0], "KFL", seed=7).text != LINES[0]
    assert shown[1] == "" and shown[2].startswith("“G") and shown[2].endswith("!")
    assert shown[3] == scramble_text(LINES[0], "KFL", seed=7, occurrence=1).text


def test_options_reach_the_scramble():
    assert run("--type", "transpose:initial", "--language", "tr", given="İzmir").output == "Zimir\n"
    assert run("--type", "RS", given="on").stdout == "on\n"
    spaced = run("--type", "transpose:initial(distance=2,spaced=true)", given="casino").stdout
    assert spaced == "s·a·c·i·n·o\n"


def test_a_field_of_jsonl_is_scrambled_and_the_rest_is_kept():
    given = '{"id": 1, "text": "Größe zählt", "n": [1, 2]}\n\n{"text": "words", "id": 2}\n'
    result = run("--type", "transpose:final", "--field", "text", given=given)
    first, empty, second = result.output.split("\n")[:3]
    assert json.loads(first) == {"id": 1, "text": "Gröeß zählt"[:5] + " zähtl", "n": [1, 2]}
    assert list(json.loads(first)) == ["id", "text", "n"] and "ö" in first
    assert empty == "" and json.loads(second) == {"text": "wordc"[:3] + "sd", "id": 2}


def test_published_mode_passes_over_the_lines_in_their_order():
    texts = ["Scrambled words are hard.", "Reading them takes time."]
    shown = run(
        "--type", "RS", "--rate", "0.2", "--mode", "published", given="\n".join(texts)
    ).output.splitlines()
    assert shown == published_pass(texts, "RS-20")
    other = run(
        "--type", "RS", "--mode", "published", "--seed", "11", given="\n".join(texts)
    ).output.splitlines()
    assert other == published_pass(texts, "RS", seed=11) != published_pass(texts, "RS")


@pytest.mark.parametrize(
    ("arguments", "given", "said"),
    [
        (["--type", "KFFL"], "x", "'KFL'"),
        (["--type", "RS", "--rate", "1.4"], "x", "rate is 1.4"),
        (["--type", "RS", "no-such-file.txt"], None, "no-such-file.txt"),
        (["--type", "RS", "."], None, "Error: ."),
        (
            ["--type", "RS", "--field", "text"],
            '{bad\n{"text": "a"}',
            ", line 1: ",
        ),
        (["--type", "SENT-REO-ALL", "--rate", "0.5"], "x", "--texts 0.5"),
        ([], "x", "--type"),
        (["--type", "RS", "--field", "text"], "[1]", "line 1: "),
        (["--type", "RS", "--field", "txt"], '{"text": "a"}', "'text'"),
        (["--type", "RS", "--field", "text"], '{"text": 5}', "line 1: field 'text'"),
        (["--type", "RS"], b"caf\xe9\n", "line 1: byte 4 (0xe9)"),
        (["--type", "transpose:internal", "--mode", "published"], "x", "transpose:internal"),
        (["--type", "RS", "--rate", "50"], "x", " 0.5"),
        (["--type", "RS", "--mode", "published", "--texts", "0.4"], "x", "--texts"),
    ],
)
def test_what_a_user_can_mend_is_said_without_traceback(arguments, given, said):
    result = run(*arguments, given=given)
    assert result.exit_code == 2
    assert said in result.stderr and "Traceback" not in result.stderr and result.stdout == ""


def test_a_broken_line_ends_the_work_after_the_lines_before_it():
    given = '{"text": "words"}\n{bad\n{"text": "letters"}\n'
    result = run("--type", "transpose:final", "--field", "text", given=given)
    assert result.exit_code == 2 and ", line 2: " in result.stderr
    assert result.stdout == '{"text": "worsd"}\n'


def test_changes_are_written_with_their_lines_and_permutations(tmp_path):
    path = tmp_path / "changes.jsonl"
    run(
        "--type",
        "transpose:final",
        "--changes",
        str(path),
        "--language",
        "eo",
        given="the dog\n\nso grass\n",
    )
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line["line"] for line in lines] == [1, 2, 3]
    assert [change["shown"] for change in lines[0]["changes"]] == ["teh", "dgo"]
    assert lines[0]["changes"][1]["permutation"] == [0, 2, 1] and lines[0]["changes"][1]["start"] == 4
    assert lines[2]["changes"] == []
    assert lines[2]["left_intact"] == [
        {"word": 1, "intact": "grass", "reason": "transpose:final: no other arrangement"}
    ]


def test_the_summary_tells_what_changed_and_what_did_not_and_why():
    result = run("--type", "transpose:final", "--summary", "--language", "eo", given="the dog\nso grass\n")
    assert result.stdout == "teh dgo\nso grass\n"
    assert re.search(r"2 lines, 4 words; 2 words .* 0\.667 ", result.stderr)
    assert re.search(r": 1$", result.stderr, re.MULTILINE) and " line 2:" in result.stderr


def test_a_share_of_the_lines_changes_and_a_larger_share_holds_them():
    given = "\n".join(f"reading number {n}" for n in range(200))
    few, many = (
        run("--type", "RS", "--texts", share, given=given).stdout.splitlines() for share in ("0.3", "0.6")
    )
    plain, every = given.splitlines(), run("--type", "RS", given=given).stdout.splitlines()
    changed = [{n for n, line in enumerate(lines) if line != plain[n]} for lines in (few, many)]
    assert changed[0] < changed[1] and 40 <= len(changed[0]) <= 80 and 100 <= len(changed[1]) <= 140
    assert all(many[n] == every[n] for n in changed[1])


def test_the_list_shows_every_type_with_its_options_and_names():
    result = run("--list")
    assert result.exit_code == 0
    for said in (
        "keep:first_and_last   also: KFL, REO-INT",
        "transpose:internal",
        "distance (1 to 20",
        "SENT-REO-ADJ",
    ):
        assert said in result.stdout
