"""What counts as a word, which letters may move, and how stars mark words."""

from __future__ import annotations

import re

import pytest

from stimuli.errors import UserError
from stimuli.scramble import scramble_text
from stimuli.words import WITHOUT_SPACES, find_words, nfc, parse_stars


def words(text):
    return [word.text for word in find_words(nfc(text))]


def movable(text):
    return ["".join(word.letters) for word in find_words(nfc(text))]


def test_words_are_runs_of_letters_with_their_place_in_the_text():
    text = "  The dog, barks!"
    found = [(word.index, text[word.start : word.end]) for word in find_words(text)]
    assert found == [(0, "The"), (1, "dog"), (2, "barks")]


@pytest.mark.parametrize("apostrophe", ["'", "’", "ʼ"])
def test_only_the_longest_part_of_a_contraction_may_move(apostrophe):
    assert words(f"don{apostrophe}t l{apostrophe}homme") == [f"don{apostrophe}t", f"l{apostrophe}homme"]
    assert movable(f"don{apostrophe}t l{apostrophe}homme") == ["don", "homme"]


def test_numbers_are_no_words_and_digits_in_words_do_not_move():
    assert words("2023 34.6bn B2B") == ["6bn", "B2B"]
    assert movable("2023 34.6bn B2B") == ["bn", "BB"]


def test_a_letter_with_its_marks_is_one_cluster_in_any_script():
    assert find_words(nfc("cafe\u0301"))[0].clusters == ("c", "a", "f", "é")
    assert find_words("नमस्ते")[0].clusters[0] == "न"
    assert "".join(find_words("नमस्ते")[0].clusters) == "नमस्ते"
    assert words("слово λέξη كلمة 단어") == ["слово", "λέξη", "كلمة", "단어"]


def test_stars_are_taken_out_and_give_the_places_of_the_words():
    starred = parse_stars("The *gardener* watered *the tomatoes*, un*believ*able!")
    assert starred.text == "The gardener watered the tomatoes, unbelievable!"
    assert starred.words == (1, 3, 4, 5)


def test_an_escaped_star_belongs_to_the_text():
    starred = parse_stars(r"a *big* deal\*")
    assert (starred.text, starred.words) == ("a big deal*", (1,))


@pytest.mark.parametrize("text", ["a *big deal", "2 * 3 is six", "a * big * deal"])
def test_a_star_without_partner_is_refused(text):
    with pytest.raises(UserError, match=re.escape(text)):
        parse_stars(text)


ADDRESSES = (
    "bbc.co.uk", "example.de", "foo.io/x", "user@host.de", "report.pdf", "EXAMPLE.DE", "amazon.it/x",
    "my-site.in", "München.de", "x.com", "README.md", "data.tar.gz", "archive.7z", "пример.рф", "t.co/abc",
    "youtu.be/abc?t=1", "localhost.dev:8000/x", "https://a.example/b?c=d", "www.example.org/x", "jo.doe@example.co.uk",
    "10.1000/xyz123", "doi:10.1037/xge0000001", "10.1016/S0010-0277(98)00034-1", r"C:\data\file.txt", "C:/data/file",
    r"data\raw\file.csv", r"\\server\share\x", "/usr/bin/x", "/home/anna/", "~/notes", "./run", "../data/x.csv",
    "data/raw/x.csv", "#tag", "#Café_2020", "@name", "@name@social.example.org", "user@localhost", "x@y.org", "file:///etc/hosts",
)  # fmt: skip


def test_addresses_files_paths_identifiers_handles_and_hashtags_stay():
    for address in ADDRESSES:
        text = f"Please see {address}, reader (or “{address}”)."
        stays = [word.text for word in find_words(nfc(text)) if not word.movable]
        assert stays == [address, address]
        for kind in ("RS", "INS-INT_2", "Sub"):
            shown = scramble_text(text, kind, seed=1, avoid_real_words=False).text
            assert shown.count(address) == 2, (address, kind)


def test_slashes_and_signs_between_words_make_no_path():
    text = "and/or maybe he/she went km/h only a C# song yes/no and 3/4 cup tod@s vienen Q: What/who"
    assert all(word.movable for word in find_words(text))


def test_an_address_ends_before_the_next_sentence_and_its_marks():
    stays = [word.text for word in find_words("See (example.com.Next) and “foo.org”.") if not word.movable]
    assert stays == ["example.com", "foo.org"]


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        ("今日は晴れです", "RS"),
        ("สวัสดีชาวโลก", "transpose:internal"),
        ("ສະບາຍດີຊາວໂລກ", "space:letters"),
        ("សួស្តីពិភពលោក", "DEL-INT_1"),
    ],
)
def test_a_run_of_a_script_without_spaces_stays_with_the_reason_unless_asked_for(run, kind):
    result = scramble_text(f"Reading {run} here", kind, seed=1, avoid_real_words=False)
    assert run in result.text and [change.intact for change in result.changes][:1] == ["Reading"]
    (left,) = [one for one in result.left_intact if one.intact == run]
    assert left.reason.endswith(f": {WITHOUT_SPACES}")
    joint = "," if kind.endswith(")") else "("
    asked = scramble_text(run, f"{kind}{joint}unspaced=change)", seed=1, avoid_real_words=False)
    assert len(asked.changes) == 1 and asked.text != run


def test_words_of_a_sentence_without_spaces_do_not_move_and_say_why():
    (left,) = scramble_text("今日は晴れです。", "words:reverse", seed=1, language="ja").left_intact
    assert left.reason == f"words:reverse: {WITHOUT_SPACES}"
