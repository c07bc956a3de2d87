"""No classifier that sees only what a rule is not about tells A from B, on 2,000 fresh items of each rule."""

from __future__ import annotations

import pytest

from stimuli.audit.shortcut import shortcut_test
from stimuli.htest.rules import BUILT_IN, rules
from stimuli.recipes.htest import htest_rule_items

NAMES = tuple(one.name for one in BUILT_IN)


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_nuisance_features_do_not_tell_the_answers_of_a_rule(name):
    items = [
        item for item in htest_rule_items([name], exemplars=0, items=2000, seed=77) if item.role == "test"
    ]
    about = {name: rules()[name].about}
    (tested,) = shortcut_test({name: items}, language="en", seed=1, about=about, together=len(NAMES)).tasks
    assert tested.items == 2000 and tested.upper is not None and tested.upper <= 0.55, tested
