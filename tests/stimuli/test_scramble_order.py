"""Where sentences end, which words may move, and what moving words and sentences leave in place."""

from __future__ import annotations

import pytest

from stimuli.scramble import scramble_text
from stimuli.scramble.sentences import find_sentences
from stimuli.words import nfc


def sentences(text, language="en"):
    return [text[span.begin : span.end] for span in find_sentences(nfc(text), language)]


def test_a_line_ends_a_sentence_and_blanks_are_none():
    assert sentences("A title\nA first line. And a second") == ["A title", "A first line.", "And a second"]
    assert sentences("") == sentences(" \n ") == []
    assert len(sentences("One Dr. Two.", "xx")) == 2, "abbreviations belong to their language"


def test_names_and_the_english_i_keep_their_capital_when_they_leave_the_front():
    shown = scramble_text("I saw Rome. Rome saw NASA. McKay left. We like Rome.", "WORD-REO-REV", seed=1).text
    assert shown == "Rome saw I. NASA saw Rome. Left McKay. Rome like we."
    assert scramble_text("I kom", "WORD-REO-REV", seed=1, language="nl").text == "Kom i"


def test_a_change_of_words_says_where_the_sentence_stands_and_how_far_words_went():
    (change,) = scramble_text("One. The dog barks.", "WORD-REO-REV", seed=1).changes
    assert (change.word, change.start, change.unit) == (1, 5, "word")
    assert (change.intact, change.shown) == ("The dog barks.", "Barks dog the.")
    assert (change.permutation, change.displaced, change.mean_displacement) == ((2, 1, 0), 2, 1.333)


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("SENT-REO-ALL", "Only one sentence.", "sentences:shuffle: one sentence"),
        ("SENT-REO-ADJ", "No. No.", "sentences:neighbours: no other order"),
        ("WORD-REO-ALL", "Stop!", "words:shuffle: one word"),
        ("WORD-REO-REV", "so so", "words:reverse: no other order"),
    ],
)
def test_what_cannot_be_put_in_another_order_stays_with_the_reason(kind, text, reason):
    result = scramble_text(text, kind, seed=1)
    assert result.text == text and not result.changes
    assert [(left.intact, left.reason) for left in result.left_intact] == [(text, reason)]


def test_neighbours_change_places_with_neighbours_only():
    text = " ".join("abcdefghijklmnopqrst")
    for seed in range(20):
        (change,) = scramble_text(text, "WORD-REO-ADJ", seed=seed).changes
        assert {abs(place - source) for place, source in enumerate(change.permutation)} == {0, 1}


@pytest.mark.parametrize(
    ("language", "text", "shown"),
    [
        ("en", "London is big.", "Big is London."),
        ("en", "South Korea said no.", "No said Korea South."),
        ("en", "Monday was cold.", "Cold was Monday."),
        ("en", "NASA said no.", "No said NASA."),
        ("en", "London’s buses stopped.", "Stopped buses London’s."),
        ("en", "The cats slept.", "Slept cats the."),
        ("en", "Toys were sold.", "Sold were toys."),
        ("en", "It’s cold.", "Cold it’s."),
        ("en", "Bbc.com is big.", "Big is Bbc.com."),
        ("en", "We saw bbc.com.", "bbc.com saw we."),
        ("en", "We sell the iPhone.", "iPhone the sell we."),
        ("de", "Hunde bellen laut.", "Laut bellen Hunde."),
        ("de", "Die Hunde bellen.", "Bellen Hunde die."),
        ("fr", "Lundi il dort.", "Dort il lundi."),
        ("fr", "Paris est grande.", "Grande est Paris."),
        ("ru", "Мы видели его.", "Его видели мы."),
    ],
)
def test_names_nouns_and_addresses_keep_their_capital_and_other_words_lose_it(language, text, shown):
    assert scramble_text(text, "words:reverse", seed=1, language=language).text == shown


def test_the_text_itself_tells_whether_a_rare_word_is_written_small():
    alone = scramble_text("Giraffes eat.", "words:reverse", seed=1).text
    told = scramble_text("Giraffes eat. We like giraffes.", "words:reverse", seed=1).text
    assert alone == "Eat Giraffes." and told == "Eat giraffes. Giraffes like we."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It weighs approx. five.", "Five approx. weighs it."),
        ("Five is what it weighs approx.", "approx. weighs it what is five."),
        ("Approx. five came.", "Came five Approx."),
        ("She came at 5 p.m.", "p.m. 5 at came she."),
        ("Did she come at 5 p.m.?", "p.m. 5 at come she did?"),
        ("Wait, approx. five...", "Five, approx. wait..."),
    ],
)
def test_abbreviations_take_their_stop_along_and_never_double_it(text, shown):
    assert scramble_text(text, "words:reverse", seed=1).text == shown
