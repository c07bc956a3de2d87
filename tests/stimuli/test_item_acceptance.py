"""Items are checked by a compiled form of their schema; it says of every value what ``jsonschema`` says."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from stimuli.item import item_schema
from stimuli.recipes.conditions import ItemDesign
from stimuli.recipes.sentences import SentenceColumns, sentence_items
from stimuli.schemas.acceptance import acceptor

ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.floats(allow_nan=False), st.text(max_size=2), st.just([]), st.just({})
)  # fmt: skip


def line():
    (item,) = sentence_items(
        [{"item": "1", "sentence": "The gardener planted several flowers yesterday."}],
        ItemDesign(factor="scramble", levels={"all": "RS-50"}, seed=3, set_name="here"),
        SentenceColumns(answer=None),
    ).items
    return item.to_json()


def places(value, path=()):
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, part in parts for found in places(part, (*path, key)))]


@given(st.data())
def test_a_line_with_one_odd_value_is_judged_as_jsonschema_judges_it(data):
    accepts, validator = acceptor(item_schema()), Draft202012Validator(item_schema())
    whole = line()
    assert accepts(whole) and validator.is_valid(whole)
    *where, last = data.draw(st.sampled_from([path for path in places(whole) if path]))
    broken = copy.deepcopy(whole)
    holder = broken
    for key in where:
        holder = holder[key]
    change = data.draw(st.sampled_from(["replace", "remove", "add"]))
    if change == "replace":
        holder[last] = data.draw(ODD)
    elif change == "remove":
        del holder[last]
    elif isinstance(holder, dict):
        holder[data.draw(st.text(max_size=3))] = data.draw(ODD)
    assert accepts(broken) == validator.is_valid(broken)


@pytest.mark.parametrize(
    "schema",
    [{"format": "date"}, {"type": "any"}, {"enum": [1]}, {"$ref": "#/$defs/none"}, {"items": {"multipleOf": 3}}],
)  # fmt: skip
def test_a_schema_with_a_keyword_that_is_not_compiled_is_refused(schema):
    with pytest.raises(ValueError, match="not compiled"):
        acceptor(schema)
