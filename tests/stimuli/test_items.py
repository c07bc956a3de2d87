"""The item file: what a line may hold, canonical bytes, the sidecar, and edits by hand."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from stimuli.errors import UserError
from stimuli.item import Item, Provenance, build_meta, item_schema, read_items, read_meta, write_items
from stimuli.recipes.conditions import ItemDesign
from stimuli.recipes.sentences import SentenceColumns, sentence_items
from stimuli.schemas.acceptance import acceptor
from tests.conftest import ROOT

_PAGE = (ROOT / "docs/contracts.md").read_text("utf-8")
CONTRACT = json.loads(_PAGE.split("```json\n")[1].partition("```")[0])
"""The first example of the page."""


def an_item(number=1, **changed):
    item = Item(
        item_id=f"s{number:02d}",
        set_name="sentences",
        role="test",
        condition={"position": "intact"},
        shown={"sentence": "Größe „zählt“."},
        intact={"sentence": "Größe „zählt“."},
        choices=None,
        answer=None,
        provenance=Provenance(source="x", source_id=None, split=None, licence=None, operation="none", seed=1),
    )
    return dataclasses.replace(item, **changed)


def test_the_line_of_the_contract_comes_back_as_it_was():
    assert Item.from_json(CONTRACT).to_json() == CONTRACT
    assert json.loads(Item.from_json(CONTRACT).canonical()) == CONTRACT


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "study" / "items.jsonl"
    items = [an_item(number) for number in range(3)]
    digest = write_items(path, items, build_meta(7))
    assert read_items(path) == items
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert {file.name for file in path.parent.iterdir()} == {"items.jsonl", "items.meta.json"}


def test_the_sidecar_says_seed_versions_and_sources(tmp_path):
    table = tmp_path / "sentences.csv"
    table.write_text("item\n", encoding="utf-8")
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "week.jsonl").write_text("{}\n", encoding="utf-8")
    path = tmp_path / "items.jsonl"
    write_items(path, [an_item()], build_meta(7, [table, folder]))
    meta = read_meta(path)
    assert (meta["seed"], meta["items"]) == (7, 1)
    assert meta["sources"] == {
        "sentences.csv": hashlib.sha256(b"item\n").hexdigest(),
        "corpus/week.jsonl": hashlib.sha256(b"{}\n").hexdigest(),
    }
    assert meta["python"] and meta["versions"]["wordfreq"]
    assert meta["versions"]["cmudict"] == "2024-12-17"
    assert meta["versions"]["scowl"] == "2020.12.07"


def test_an_edit_by_hand_is_noticed(tmp_path):
    path = tmp_path / "items.jsonl"
    write_items(path, [an_item()], build_meta(7))
    path.write_text(path.read_text(encoding="utf-8").replace("Größe", "Grösse"), encoding="utf-8")
    with pytest.raises(UserError, match=r"items.jsonl .* items.meta.json"):
        read_items(path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{bad", "JSON"),
        ("[]", "list"),
        (CONTRACT | {"role": "tset"}, "line 2: role: 'tset'"),
        (CONTRACT | {"role": "tset"}, "'test'?"),
        (CONTRACT | {"conditon": {}}, "'condition'?"),
        ({k: v for k, v in CONTRACT.items() if k != "answer"}, "'answer'"),
        (CONTRACT | {"choices": ["yes"]}, "line 2: choices"),
        (CONTRACT | {"condition": {"position": 3}}, "line 2: condition.position: 3 "),
        (CONTRACT | {"shown": {}}, "line 2: shown"),
    ],
)
def test_a_broken_line_is_named_with_its_number(tmp_path, line, said):
    path = tmp_path / "items.jsonl"
    text = line if isinstance(line, str) else json.dumps(line)
    write_items(path, [an_item()], build_meta(1))
    path.write_bytes(an_item().canonical() + text.encode() + b"\n")
    with pytest.raises(UserError) as raised:
        read_items(path)
    assert f"{path}, line 2" in str(raised.value) and said in str(raised.value)


def test_an_item_in_a_condition_twice_or_against_the_schema_is_never_written(tmp_path):
    for items, said in (
        ([an_item(), an_item()], r"'s01' of 'sentences' .*position = intact"),
        ([an_item(shown={})], "item 's01': shown"),
    ):
        with pytest.raises(UserError, match=said):
            write_items(tmp_path / "items.jsonl", items, {})
        assert list(tmp_path.iterdir()) == []


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.floats(allow_nan=False), st.text(max_size=2), st.just([]), st.just({})
)  # fmt: skip


def item_line():
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
    whole = item_line()
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
