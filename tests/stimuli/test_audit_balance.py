"""The audit compares conditions, answers and lists, and tells a difference beyond chance from one that chance deals."""

from __future__ import annotations

import random

from stimuli.audit.audit import audit_items
from tests.stimuli.audited import item, told


def test_covariates_that_follow_from_the_condition_are_shown_and_not_flagged():
    draw = random.Random(1)
    items = []
    for number in range(40):
        frequency = "high" if number % 2 else "low"
        fixed = {"letters": draw.randint(4, 8), "zipf": draw.gauss(5 if frequency == "high" else 3, 0.3)}
        for level, changed in (("intact", 0), ("initial", draw.choice((1, 2)))):
            items.append(
                item(
                    f"i{number}",
                    f"text {number} {level}",
                    condition={"position": level, "frequency": frequency},
                    covariates={**fixed, "changed_words": changed},
                )
            )
    audit = audit_items(items, language="en")
    assert audit.balance is not None
    by = {one.by: {c.name: c for c in one.covariates} for one in audit.balance.groupings}
    assert by["position"]["letters"].largest == 0
    assert by["position"]["changed_words"].role == "condition" and not by["position"]["changed_words"].flagged
    assert by["frequency"]["zipf"].flagged
    meant = audit_items(items, language="en", by_design={"zipf", "letters"})
    assert meant.balance is not None and not told(meant, "balance")


def of_answers(number, apart):
    """Items of two answer classes whose word frequency is so many standard deviations apart on average."""
    draw = random.Random(5)
    return [
        item(
            f"i{n}",
            f"text {n}",
            "AB"[n % 2],
            choices=("A", "B"),
            covariates={"zipf": draw.gauss(4 + apart * (n % 2), 1)},
        )
        for n in range(number)
    ]


def test_a_difference_that_chance_deals_to_few_items_is_to_look_at_and_not_to_mend():
    few = audit_items(of_answers(20, 0.0), language="en", shortcut=False)
    (line,) = told(few, "balance")
    assert "no more than chance gives with 20 items" in line and few.status("balance") == "look"
    assert few.balance is not None and few.balance.groupings[0].covariates[0].by_chance


def test_a_difference_beyond_chance_is_to_mend_however_few_items_there_are():
    audit = audit_items(of_answers(20, 3.0), language="en", shortcut=False)
    assert audit.status("balance") == "mend" and "by answer differ" in told(audit, "balance")[0]


def test_conditions_are_not_excused_by_chance_for_their_items_were_chosen():
    items = [
        item(f"i{n}", f"text {n}", condition={"kind": "ab"[n % 2]}, covariates={"zipf": 4 + 0.1 * n})
        for n in range(12)
    ]
    audit = audit_items(items, language="en", shortcut=False)
    assert audit.status("balance") == "mend"


def of_lists(number, split):
    """Audit items of which list 1 shows the first ``split`` in one condition and the others in another."""
    items = [item(f"i{n}", f"text {n}", covariates={"zipf": float(n)}) for n in range(number)]
    lists = {one.item_id: f"{'a' if n < split else 'b'} in list 1" for n, one in enumerate(items)}
    return audit_items(items, language="en", lists=lists)


def test_items_that_a_list_shows_in_different_conditions_are_compared():
    (line,) = told(of_lists(20, 10), "balance")
    assert line.startswith("look: words: every list shows every item")
    assert "zipf (1.69)" in line and "chance" not in line


def test_two_items_a_condition_differ_by_no_more_than_their_own_spread_allows():
    (line,) = told(of_lists(4, 2), "balance")
    assert "zipf (1.55), no more than chance gives with 4 items" in line
