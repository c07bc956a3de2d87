"""What holds for every text and type: what may move, kept places, nesting, shared words and pairs, independence."""

from __future__ import annotations

import hashlib
import itertools
import json
import struct
import subprocess
import sys
import unicodedata
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from stimuli.lexicon import is_real_word
from stimuli.scramble.conditions import Scrambled
from stimuli.scramble.orders import exchanges_needed
from stimuli.scramble.published import protocols, published_pass
from stimuli.scramble.sentences import TextSpan, find_sentences, word_slots
from stimuli.scramble.text import scramble_conditions, scramble_stream, scramble_text
from stimuli.scramble.types import parse_operation, without_gaps
from stimuli.seeds import stable_draws_of
from stimuli.words import _words_by_cluster, clusters_of, cut, find_words, is_letter, nfc

ALPHABET = "abcdefgzAEZéüßñŉ'’- .,1“”*_łŁİıǆΣςдяक्षिम가나ำ\u0301\u00ad🙂\n"
texts = st.text(alphabet=ALPHABET, max_size=60)
SPOKEN = "the Dog barks, 3.5 1,250 Dr. e.g. well-known don’t “Stop!” J. end. So? Yes! a I — (x) ΟΔΟΣ дом."
prose = st.lists(st.sampled_from([*SPOKEN.split(), "café\n"]), max_size=25).map(" ".join)
seeds = st.integers(0, 2**32)
KEPT = {
    "RS": (0, 0),
    "KF": (1, 0),
    "KFL": (1, 1),
    "KL&KR1": (0, 1),
    "KF&KR1": (1, 0),
    "KF&Adj@1;texts=1": (1, 0),
    "REO-INT_3": (1, 1),
    "transpose:internal": (1, 1),
    "transpose:internal_final": (1, 1),
    "transpose:3": (2, 0),
}
REORDERS = [
    *KEPT,
    "KR2",
    "REO-ALL",
    "REO-REV",
    "transpose:initial",
    "transpose:final",
    "transpose:external",
    "transpose:first_and_last",
    "transpose:any(distance=2)",
    "transpose:any(letters=vowels)",
    "transpose:internal(distance=2,letters=consonants)",
]
EDITS = [
    "Sub", "substitute:internal", "substitute:internal(shape=keep)", "substitute:any(shape=change,cv=any)",
    "substitute:final(count=1)", "INS-BEG", "INS-INT_3", "INS-END", "DEL-BEG", "DEL-INT_1", "DEL-INT_4", "DEL-END",
]  # fmt: skip
SPACED = ["space:letters", "RS(spaced=true)", "substitute:initial(spaced=true)"]
ORDERS = [f"{unit}-REO-{how}" for unit in ("WORD", "SENT") for how in ("ALL", "ADJ", "REV")]
LETTERS = [*REORDERS, *EDITS, *SPACED]
reorders, edits, letter_types = map(st.sampled_from, (REORDERS, EDITS, LETTERS))
types = st.sampled_from([*LETTERS, *ORDERS])
languages = st.sampled_from(["en", "de", "tr", "ru"])


def same_letter(one, other):
    """Whether two clusters are one letter, whatever their case (``ı`` and ``I`` by the capital, ``ß`` and ``ẞ`` by the small)."""
    return one.casefold() == other.casefold() or one.upper() == other.upper()


def said(change):
    """What a change says beside its place in the shown text, which hangs on the changes before it."""
    return tuple(value for name, value in change._asdict().items() if name != "start")


@given(texts, reorders, seeds)
def test_a_reorder_moves_clusters_within_words_and_nothing_else(text, kind, seed):
    intact = nfc(text)
    result = scramble_text(text, kind, seed=seed, capitals="move")
    assert len(result.text) == len(intact)
    words = {word.index: word for word in find_words(intact)}
    for change in result.changes:
        word = words[change.word]
        shown = clusters_of(change.shown)
        assert sorted(shown) == sorted(word.clusters)
        assert [word.clusters[place] for place in change.permutation if place is not None] == shown
        moved = {place for place, source in enumerate(change.permutation) if place != source}
        assert moved <= set(word.movable) and len(moved) == change.displaced
        assert (change.substituted, change.inserted, change.deleted) == (0, 0, 0)


@given(st.one_of(texts, prose), types, seeds, languages, st.floats(0, 1))
def test_the_shown_text_is_the_intact_one_with_its_changes_where_they_say(text, kind, seed, language, rate):
    intact = nfc(text)
    given_rate = 1.0 if kind.startswith("SENT") or "@" in kind else rate
    result = scramble_text(text, kind, seed=seed, language=language, rate=None if "@" in kind else given_rate)
    rebuilt = result.text
    for change in reversed(result.changes):
        assert change.shown != change.intact
        end = change.start + len(change.shown)
        assert rebuilt[change.start : end] == change.shown
        rebuilt = rebuilt[: change.start] + change.intact + rebuilt[end:]
    assert rebuilt == intact
    assert nfc(result.text) == result.text


@given(texts, edits, seeds, languages)
def test_counts_of_new_and_missing_letters_fit_the_forms(text, kind, seed, language):
    for change in scramble_text(text, kind, seed=seed, language=language).changes:
        intact, shown = clusters_of(change.intact), clusters_of(change.shown)
        assert len(change.permutation) == len(shown)
        assert change.permutation.count(None) == change.substituted + change.inserted
        assert len(shown) == len(intact) + change.inserted - change.deleted
        for cluster, source in zip(shown, change.permutation, strict=True):
            assert source is None or same_letter(cluster, intact[source])
        sources = [source for source in change.permutation if source is not None]
        assert sources == sorted(set(sources))
        operation = parse_operation(kind).type.operation
        done = {"insert": change.inserted, "delete": change.deleted, "substitute": change.substituted}
        assert done.pop(operation) > 0 and set(done.values()) == {0}
        if operation != "substitute":
            movable = len(find_words(change.intact)[0].movable)
            assert change.inserted + change.deleted <= movable / 2


@given(texts, types, seeds, languages)
def test_capitals_that_stay_keep_the_pattern_of_the_word(text, kind, seed, language):
    for change in scramble_text(text, kind, seed=seed, language=language).changes:
        has_gaps = without_gaps(change.shown) != change.shown
        if change.unit != "letter" or has_gaps or change.inserted or change.deleted:
            continue
        for before, after in zip(clusters_of(change.intact), clusters_of(change.shown), strict=True):
            assert not (before[0].isupper() and after[0].islower())
            assert not (before[0].islower() and after[0].isupper())


@given(texts, letter_types, seeds)
def test_digits_marks_and_spaces_are_never_lost_or_moved(text, kind, seed):
    gaps = (" ", "·") if "spac" in kind else ()
    shown, intact = (
        [one for one in clusters_of(of) if not is_letter(one) and one not in gaps]
        for of in (scramble_text(text, kind, seed=seed).text, nfc(text))
    )
    assert shown == intact


@given(texts, st.sampled_from(sorted(KEPT)), seeds)
def test_kept_letters_keep_their_places(text, kind, seed):
    first, last = KEPT[kind]
    words = {word.index: word for word in find_words(nfc(text))}
    for change in scramble_text(text, kind, seed=seed).changes:
        movable = words[change.word].movable
        kept = [*movable[:first], *movable[len(movable) - last :]]
        assert all(change.permutation[place] == place for place in kept)


@given(st.one_of(texts, prose), types, seeds)
def test_composed_and_decomposed_text_give_the_same(text, kind, seed):
    composed = scramble_text(unicodedata.normalize("NFC", text), kind, seed=seed)
    assert scramble_text(unicodedata.normalize("NFD", text), kind, seed=seed) == composed


@given(st.one_of(texts, prose), types, seeds, st.floats(0, 1), st.floats(0, 1))
def test_a_lower_rate_changes_a_part_of_what_a_higher_one_does(text, kind, seed, one, other):
    if kind.startswith("SENT") or "@" in kind:
        return
    low, high = sorted((one, other))
    few, many, everything = (
        {said(change) for change in scramble_text(text, kind, seed=seed, rate=rate).changes}
        for rate in (low, high, None)
    )
    assert few <= many <= everything
    assert abs(len(few) - low * len(everything)) <= 0.5


@given(st.lists(prose, min_size=1, max_size=5), types, seeds, st.floats(0, 1), st.floats(0, 1))
def test_a_lower_share_of_texts_changes_a_part_of_those_of_a_higher_one(many, kind, seed, one, other):
    low, high = sorted((one, other))
    for text in many:
        few, more, every = (
            scramble_text(text, replace(parse_operation(kind), texts=share), seed=seed)
            for share in (low, high, 1)
        )
        assert few in (more, Scrambled(nfc(text))) and more in (every, Scrambled(nfc(text)))


@given(st.lists(st.one_of(texts, prose), max_size=5), types, seeds)
def test_a_result_does_not_depend_on_what_else_is_scrambled(many, kind, seed):
    alone = {text: scramble_text(text, kind, seed=seed) for text in many}
    order = sorted(many, reverse=True)
    assert {text: scramble_text(text, kind, seed=seed) for text in order} == alone
    different = list(dict.fromkeys(map(nfc, many)))
    assert list(scramble_stream(different, kind, seed=seed)) == [
        scramble_text(text, kind, seed=seed) for text in different
    ]


@given(st.one_of(texts, prose), st.lists(letter_types, min_size=1, max_size=4, unique=True), seeds)
def test_conditions_of_one_rate_change_the_same_words(text, kinds, seed):
    results = scramble_conditions(text, {kind: kind for kind in kinds}, seed=seed)
    assert len({tuple(change.word for change in result.changes) for result in results.values()}) == 1
    assert len({result.left_intact for result in results.values()}) == 1


@given(prose, st.lists(st.sampled_from(ORDERS[:3]), min_size=2, max_size=3, unique=True), seeds)
def test_conditions_that_move_words_change_the_same_sentences(text, kinds, seed):
    results = scramble_conditions(text, {kind: {"type": kind, "rate": 0.5} for kind in kinds}, seed=seed)
    assert len({tuple(change.word for change in result.changes) for result in results.values()}) == 1


@given(
    st.one_of(texts, prose),
    st.sampled_from(
        ["initial", "internal", "final", "external", "any", "3", "first_and_last", "after_first"]
    ),
    st.sampled_from(["", "(letters=consonants)", "(distance=2)"]),
    st.sampled_from(["", "shape=keep", "cv=any"]),
    seeds,
)
def test_a_substitution_replaces_exactly_the_pair_that_its_transposition_exchanges(
    text, position, options, more, seed
):
    if position == "first_and_last" and "distance" in options:
        return
    both = ",".join(part for part in (options.strip("()"), more) if part)
    results = scramble_conditions(
        text, {"TL": f"transpose:{position}{options}", "SL": f"substitute:{position}({both})"}, seed=seed
    )
    assert len(results["TL"].changes) == len(results["SL"].changes)
    for moved, replaced in zip(results["TL"].changes, results["SL"].changes, strict=True):
        places = [place for place, source in enumerate(moved.permutation) if source != place]
        assert places == [place for place, source in enumerate(replaced.permutation) if source is None]
        old = {one.lower() for one in (clusters_of(moved.intact)[place] for place in places)}
        new = [clusters_of(replaced.shown)[place].lower() for place in places]
        assert len(set(new)) == 2 and not old & set(new)


@given(st.text(alphabet="abcde", min_size=4, max_size=9), st.integers(1, 4), seeds)
def test_exchanges_never_cancel(word, count, seed):
    for change in scramble_text(word, f"REO-INT_{count}", seed=seed).changes:
        needed = exchanges_needed(change.intact, change.shown)
        assert 1 <= needed <= count
        if len(set(word[1:-1])) == len(word) - 2:
            assert needed == min(count, len(word) - 3)


NEAR_OTHERS = "form trial salt on stone was stop calm tea parse form’s Said"


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(NEAR_OTHERS.split()), max_size=6), st.sampled_from([*REORDERS, *EDITS]), seeds
)
def test_no_changed_form_is_a_real_word_where_they_are_avoided(words, kind, seed):
    for change in scramble_text(" ".join(words), kind, seed=seed, avoid_real_words=True).changes:
        assert not is_real_word(change.shown, "en")


@given(prose, st.sampled_from(ORDERS[:3]), seeds)
def test_words_that_move_leave_marks_and_spaces_where_they_were(text, kind, seed):
    intact = nfc(text)
    result = scramble_text(text, kind, seed=seed)
    for change in result.changes:
        slots = word_slots(change.intact, TextSpan(0, len(change.intact)), "en")
        words = [change.intact[slot.begin : slot.end] for slot in slots]
        marks = [change.intact[a.end : b.begin] for a, b in itertools.pairwise(slots)]
        expected = [words[source] for source in change.permutation if source is not None]
        rebuilt = change.intact[: slots[0].begin]
        for place, word in enumerate(expected):
            rebuilt += word + (marks[place] if place < len(marks) else change.intact[slots[-1].end :])
        # An abbreviation takes its stop along, and at the end it lends it to the sentence.
        assert rebuilt.lower().replace(".", "") == change.shown.lower().replace(".", "")
        assert abs(len(rebuilt) - len(change.shown)) <= sum("." in word for word in words) + 1
        assert ".." in change.intact or ".." not in change.shown
        assert sorted(source for source in change.permutation if source is not None) == list(
            range(len(words))
        )
    assert len(result.text.split()) == len(intact.split())


@given(prose, st.sampled_from(ORDERS[3:]), seeds)
def test_sentences_that_move_lose_nothing_and_are_glued_nowhere(text, kind, seed):
    intact = nfc(text)
    result = scramble_text(text, kind, seed=seed)
    spans = find_sentences(intact, "en")
    sentences = [intact[span.begin : span.end] for span in spans]
    if not result.changes:
        reasons = [left.reason.rpartition(": ")[2] for left in result.left_intact]
        assert reasons == ([] if not spans else ["one sentence"] if len(spans) == 1 else ["no other order"])
        assert len(spans) < 2 or sentences == sentences[::-1]
        return
    (change,) = result.changes
    gaps = [intact[a.end : b.begin] for a, b in itertools.pairwise(spans)]
    moved = [sentences[source] for source in change.permutation if source is not None]
    assert sorted(moved) == sorted(sentences)
    assert change.shown == "".join(part for pair in zip(moved, [*gaps, ""], strict=True) for part in pair)


@given(st.integers(0, 40), st.integers(), st.text(), st.text(), st.integers(0))
def test_draws_of_texts_with_parts_in_common_are_the_draws_of_all_parts(count, seed, purpose, text, number):
    for common in ((seed, purpose), (seed, purpose, None, 1.5), *((one, purpose) for one in (True, 1, 1.0))):
        drawn = stable_draws_of(count, common, text, number)
        parts = json.dumps([*common, text, number], ensure_ascii=False, separators=(",", ":"))
        stream = hashlib.shake_128(parts.encode("utf-8", "surrogatepass")).digest(8 * count)
        assert drawn == struct.unpack(f">{count}Q", stream)


@given(st.text("aBc1_'-. ’é", max_size=20))
def test_words_found_at_once_are_those_found_cluster_by_cluster(text):
    pieces, fixed = cut(text)
    if not fixed:
        assert pieces == _words_by_cluster(text)


@given(seeds)
def test_items_with_the_same_text_have_draws_of_their_own(seed):
    text = "encouraging parents to discard everything contaminated"
    shown = {scramble_text(text, "RS", seed=seed, item_id=f"s{number}").text for number in range(3)}
    later = {scramble_text(text, "RS", seed=seed, occurrence=number).text for number in range(3)}
    assert len(shown) == len(later) == 3


def test_another_process_with_another_hash_salt_gives_the_same():
    kinds = ["RS", "KR2", "INS-INT_2", "DEL-INT_2", "substitute:internal", "WORD-REO-ALL"]
    texts = ["Encouraging parents to read takes time, always. Is it hard? No, 3.5 times."]
    code = (
        "import sys; from stimuli.scramble import scramble_text; "
        "from stimuli.scramble.published import protocols, published_pass; text = sys.argv[1]; "
        "print([scramble_text(text, kind, seed=9).text for kind in sys.argv[2:]]"
        " + [published_pass([text], name) for name in protocols()])"
    )
    shown = subprocess.check_output(
        [sys.executable, "-c", code, *texts, *kinds], env={"PYTHONHASHSEED": "1"}, text=True
    )
    here = [scramble_text(texts[0], kind, seed=9).text for kind in kinds]
    assert shown.strip() == str(here + [published_pass(texts, name) for name in protocols()])
