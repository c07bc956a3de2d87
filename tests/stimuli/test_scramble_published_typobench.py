"""The copy of Mind Scramble's transforms: every stated fault is a claim, and draws hang on the order of the list."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stimuli.scramble.published import describe, protocols, published_operation, published_pass
from stimuli.scramble.types import parse_operation

TYPOBENCH = [name for name, protocol in protocols().items() if protocol.paper == "typobench2024"]
LETTERS = [name for name in TYPOBENCH if name.startswith(("REO", "DEL", "INS"))]
WITH_THRESHOLD = [name for name in LETTERS if name != "REO-REV"]


def one(text, operation):
    (shown,) = published_pass([text], operation)
    return shown


def forms(text, operation, times=200):
    """The forms that copies of a text take in one pass."""
    return Counter(published_pass([text] * times, operation))


# --- what each mode does -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "shown"),
    [
        ("REO-BEG", "rPoblems"),
        ("REO-END", "Problesm"),
        ("REO-REV", "smelborP"),
        ("char_swap_int", "Prolbems"),
        ("DEL-BEG", "_roblems"),
        ("DEL-END", "Problem_"),
    ],
)
def test_modes_without_draws_change_a_word_in_one_way(operation, shown):
    assert one("Problems", operation) == shown


def test_reordering_inner_letters_keeps_the_outer_ones_and_reaches_many_forms():
    found = forms("Problems", "REO-INT")
    assert all(form[0] == "P" and form[-1] == "s" and sorted(form) == sorted("Problems") for form in found)
    assert len(found) > 100
    assert any(form[0] != "P" for form in forms("Problems", "REO-ALL"))


# --- faults --------------------------------------------------------------------------------------------------------


def _order_bound():
    texts = ["Reading scrambled letters takes time. It tires.", "Nobody knows exactly why. Nobody asks."] * 3
    for name, protocol in protocols().items():
        if "order_bound" in [fault.key for fault in protocol.faults]:
            whole, resumed = published_pass(texts, name), published_pass(texts[1:], name)
            assert whole[1:] != resumed, name


ORDERS = ("WORD-REO-ALL", "WORD-REO-ADJ", "WORD-REO-REV", "SENT-REO-ALL", "SENT-REO-ADJ", "SENT-REO-REV")
SHOWN = {
    "split_words": [
        ("REO-REV", "wouldn’t well-known", "ndluow’t llew-nwonk"),
        ("KF", "do’nt", "do’nt"),
        ("REO-REV", "abq\u0301cd", "qba\u0301dc"),
    ],
    "spaces_collapse": [("KF", "a  b\r\nc", "a b\nc")],
    "short_words": [(name, text, text) for name in WITH_THRESHOLD for text in ("the cat sat", "word4 1999")],
    "numbers_reversed": [("REO-REV", "$1,250 and 16", "$1,052 dna 61")],
    "no_threshold": [("REO-REV", "an ox", "na xo"), ("REO-REV", "x86", "68x")],
    "clauses": [
        ("WORD-REO-REV", "one two, three four; five six: seven.", "two one, four three; six five: seven. ")
    ],
    "decimals_broken": [
        (name, *both) for name in ORDERS[:3] for both in (("3.5.", "3. 5. "), ("1,250!", "1, 250! "))
    ],
    "text_dropped": [
        (name, text, f"{kept} " if kept and name.startswith("WORD") else kept)
        for name in ORDERS
        for text, kept in (("Kept. lost", "Kept."), ("no mark at all", ""), ("Wait...", "Wait."))
    ],
    "trailing_space": [(name, "One.", "One. ") for name in ORDERS[:3]],
    "decimals_are_ends": [("SENT-REO-REV", "It is 3.5. Go.", " Go.5.It is 3.")],
    "sentences_glued": [("SENT-REO-REV", "One. Two.", " Two.One.")],
    "question_marks": [
        ("SENT-REO-REV", "Who? Me. You.", " You.Who? Me."),
        ("SENT-REO-REV", "Go. Who? Why? rest", " Who? Why?Go."),
    ],
    "single_sentence": [(name, *["Write a function, please, for 3 numbers."] * 2) for name in ORDERS[3:]],
}
"""What the operation of a fault makes of a text, where it draws nothing that matters."""


def _same_string():
    assert forms("off", "KF") == {"off": 200} and forms("xaab", "KFL") == {"xaab": 200}
    assert "off" in forms("off", "RS") and set(forms("off", "RS")) == {"off", "fof", "ffo"}


def _uneven_shuffle():
    found = forms("abc", "RS", 6000)
    assert set(found) == {"acb", "bac", "bca", "cab", "cba"}
    assert max(found.values()) > 1.5 * min(found.values())


def _capitals_move():
    assert {"hTe", "ehT"} < set(forms("The", "RS"))
    assert one("Take", "REO-BEG") == "aTke" and one("Take", "REO-REV") == "ekaT"


def _other_words():
    words = ["of", "the", "word"]
    for name, changed in (("RS", {0, 1, 2}), ("SUB", {0, 1, 2}), ("KF", {1, 2}), ("KFL", {2})):
        found = [form.split() for form in forms(" ".join(words), name)]
        assert {place for form in found for place in range(3) if form[place] != words[place]} == changed


def _any_case():
    found = forms("Aa", "SUB", 3000)
    assert any(form[0] == "a" for form in found) and any(form[1] == "A" for form in found)
    assert not any(form[0] == "A" or form[1] == "a" for form in found)


def _stepped_rate():
    # Five words in steps of 10 %: round(0.5) = 0, round(1.0) = 1, round(1.5) = 2, round(2.0) = 2, round(2.5) = 2 …
    text = "abcd efgh ijkl mnop qrst"
    shown = [published_pass([text], "RS", rate=step / 10)[0].split() for step in range(11)]
    changed = [sum(map(str.__ne__, words, text.split())) for words in shown]
    assert changed == [0, 0, 1, 2, 2, 2, 3, 4, 4, 4, 5]


def _may_stay():
    assert "also" in forms("also", "REO-INT") and set(forms("also", "REO-INT")) == {"also", "aslo"}
    assert "also" in forms("also", "REO-ALL", 2000)
    for name in ("WORD-REO-ALL", "WORD-REO-ADJ"):
        assert "a b. " in forms("a b.", name)
    for name in ("SENT-REO-ALL", "SENT-REO-ADJ"):
        assert "A. B." in forms("A. B.", name)


def _parity():
    for k, expected in ((1, "aslo"), (2, "also"), (3, "aslo"), (4, "also")):
        assert set(forms("also", f"REO-INT_{k}")) == {expected}
    even = {"abcde", "acdbe", "adbce"}
    assert set(forms("abcde", "REO-INT_2")) == even and not set(forms("abcde", "REO-INT_3")) & even


def _masked():
    assert one("Problems", "DEL-BEG") == "_roblems"
    found = forms("Problems", "DEL-INT_3")
    assert {(len(form), form.count("_"), form[0], form[-1]) for form in found} == {(8, 3, "P", "s")}


def _capped():
    assert {form.count("_") for form in forms("also", "DEL-INT_4")} == {2}
    assert {len(form) for form in forms("also", "INS-INT_4")} == {6}


def _salted_hash():
    for name in TYPOBENCH:
        protocol = published_operation(name)
        assert ("stand-in" in protocol.label) == name.startswith("INS")
        assert ("stable hash" in describe(name)) == name.startswith("INS")


def _same_letter():
    shown = one("Reading reading Reading words reading", "INS-BEG").split()
    assert shown[0] == shown[2] and shown[1] == shown[4]


def _shifting_places():
    # The inner places of a word of four letters are 1 and 2. Drawn as 2, 1 the letters stand apart (tXiYme); drawn as
    # 1, 2 the second goes where the first has shifted the word's own (tXYime).
    apart, together = re.compile("t[^i]i.me"), re.compile("t[^i][^i]ime")
    found = set(forms("time", "INS-INT_2"))
    assert len(found) == 2
    assert sum(bool(apart.fullmatch(form)) for form in found) == 1
    assert sum(bool(together.fullmatch(form)) for form in found) == 1


def _space_is_word():
    assert set(forms("one two .", "WORD-REO-ADJ")) == {"one two . ", "two one . ", "one  two. "}
    assert one("one two .", "WORD-REO-REV") == "two one. "


CLAIMS = {
    name.removeprefix("_"): claim
    for name, claim in list(globals().items())
    if name.startswith("_") and not name.startswith("__") and callable(claim)
}


def _every_fault():
    return {fault.key for protocol in protocols().values() for fault in protocol.faults}


@pytest.mark.parametrize("fault", sorted(_every_fault()))
def test_a_stated_fault_is_reproduced(fault):
    assert (fault in CLAIMS) != (fault in SHOWN)
    for operation, text, shown in SHOWN.get(fault, ()):
        assert one(text, operation) == shown
    CLAIMS.get(fault, str)()


# --- the stream ----------------------------------------------------------------------------------------------------

TEXTS = st.lists(st.text(alphabet="abcdeé 1_.,!?’\n", max_size=40), max_size=6)


@given(TEXTS, st.sampled_from(TYPOBENCH), st.integers(0, 3))
def test_what_comes_later_in_a_list_changes_nothing_before_it(texts, operation, more):
    longer = [*texts, *(["More words follow here. Many more."] * more)]
    assert published_pass(longer, operation)[: len(texts)] == published_pass(texts, operation)


@given(TEXTS, st.sampled_from([name for name in LETTERS if name.startswith("REO")]))
def test_reordering_letters_keeps_spaces_marks_and_the_letters_of_each_token(texts, operation):
    for text, shown in zip(texts, published_pass(texts, operation), strict=True):
        before, after = re.split(r"(\W)", text), re.split(r"(\W)", shown)
        assert before[1::2] == after[1::2]
        assert [sorted(token) for token in before] == [sorted(token) for token in after]


def test_the_default_seed_is_the_released_one_and_another_gives_other_texts():
    texts = ["Reading scrambled letters takes time."] * 3
    assert published_pass(texts, "REO-INT") == published_pass(texts, "REO-INT", seed=42)
    assert published_pass(texts, "REO-INT") != published_pass(texts, "REO-INT", seed=10)
    assert published_pass(texts, "RS") == published_pass(texts, "RS", seed=10)


# --- names ---------------------------------------------------------------------------------------------------------


def test_the_released_codes_names_mean_the_papers():
    text = ["Reading scrambled letters takes time, always. Nobody knows why."] * 3
    for name in TYPOBENCH:
        code = protocols()[name].code
        assert code is not None
        for given_name in (code, f"{code}_fix", f"{code}_summarize", f"{code}_translate", name.lower()):
            assert published_pass(text, given_name) == published_pass(text, name)


@pytest.mark.parametrize("name", sorted(set(protocols()) - {"REO-MID", "REO-INT"}))
def test_every_readable_name_of_a_published_type_means_its_copy(name):
    readable = parse_operation(name).name
    assert published_operation(readable).label == published_operation(name).label
    assert published_operation(parse_operation(readable)).label == published_operation(name).label


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("transpose:initial", "REO-BEG"),
        ("transpose: final", "REO-END"),
        ("reverse:all", "REO-REV"),
        ("keep:first_and_last", "KFL"),  # REO-INT too; the older paper goes first
        ("DEL-INT", "DEL-INT_1"),
        ("INS-INT", "INS-INT_1"),
        ("shuffle:all@0.5", "RS"),
        ("substitute:all", "SUB"),
    ],
)
def test_a_readable_name_without_options_means_the_papers_type(given, name):
    protocol = published_operation(given).protocol
    assert protocol is not None and protocol.name == name


def test_a_copy_is_told_by_what_its_code_does():
    told = {name: published_operation(name).in_words for name in TYPOBENCH}
    assert len(set(told.values())) == len(told), (
        "REO-MID exchanges two letters, REO-INT shuffles all inner ones"
    )
    for name in TYPOBENCH:
        if "masked" in {fault.key for fault in protocols()[name].faults}:
            assert parse_operation(name).in_words not in told[name], "an underscore takes the letter's place"
