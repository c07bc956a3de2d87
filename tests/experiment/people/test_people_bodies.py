"""What browsers send is judged by the compiled schema as ``jsonschema`` judges it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.people.request_validation import FREQUENT, LARGEST_BODY, Problem, acceptance, parse, validator
from experiment.people.server import largest_body

TRIAL: dict[str, Any] = {
    "client_uuid": "0123456789abcdef0123", "trial_index": 3, "attempt": 1, "next": [4, 1], "response_raw": "yes",
    "timed_out": False, "rt": 812.3, "key_log": [[1.5, "a"]], "regions": [{"region": 0, "line": 0, "onset_ts": 1.0, "rt": 200}],
    "plugin_version": "x 1", "created_at": "2026-11-21T10:00:00.000Z",
}  # fmt: skip
EVENT: dict[str, Any] = {
    "client_uuid": "0123456789abcdef0123",
    "kind": "hidden",
    "detail": {"trial_index": 3},
    "at": "2026-11-21T10:00:00.000Z",
}
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 10**13), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=3), st.just("x" * 20_001), st.just([]), st.just([1, 2, 3]), st.just({}), st.just({"region": -1}),
    st.just([[1, "a"]]), st.just([["a", 1]]), st.just([[1]]), st.just({"x" * 101: 1}), st.just({"a": [{"b": []}]}),
    st.just("2026-02-30T10:00:00Z"), st.just("2026-02-28T10:00:00+01:00"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "whole"), [("trial", TRIAL), ("event", EVENT)])
@given(data=st.data())
def test_a_body_with_one_odd_part_is_judged_alike(name, whole, data):
    accepts, schema = acceptance(name), validator(name)
    assert accepts(whole) and schema.is_valid(whole)
    key = data.draw(st.sampled_from([*whole, "other"]))
    broken = whole | {key: data.draw(ODD)}
    if data.draw(st.booleans()):
        broken = {k: v for k, v in whole.items() if k != key}
    assert accepts(broken) == schema.is_valid(broken)


def test_every_frequent_body_has_a_compiled_schema():
    assert all(callable(acceptance(name)) for name in FREQUENT)


ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(codec=None))),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


def storable(value: object) -> bool:
    """Say whether a database can hold a value: no half characters, no zero bytes, no infinite numbers."""
    if isinstance(value, str):
        return "\0" not in value and value.encode("utf-8", "ignore").decode() == value
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(storable(part) for pair in value.items() for part in pair)
    return all(storable(part) for part in value) if isinstance(value, list) else True


@given(value=ANYTHING, plain=st.booleans())
def test_what_is_read_can_be_stored_however_it_was_written(value, plain):
    data = json.dumps({"value": value}, ensure_ascii=plain).encode("utf-8", "surrogatepass")
    try:
        read = parse(data)
    except Problem as problem:
        assert problem.status == 400
        return
    assert storable(read)
    if storable(value):
        assert read == {"value": value}


@pytest.mark.parametrize(
    "number",
    ["1e400", "-1e400", "1E+0309", "[1e999]", f"{'9' * 250}e99", f"{'9' * 400}.0", ' 1.5e308\n,"b": 2e308'],
)
def test_a_number_that_is_infinite_here_is_refused_in_any_spelling(number):
    with pytest.raises(Problem, match="number"):
        parse(f'{{"a":{number}}}'.encode())


@pytest.mark.parametrize(("levels", "fits"), [(12, True), (13, False)])
def test_brackets_in_texts_do_not_count_as_depth(levels, fits):
    nested = '{"a":' * (levels - 1) + '["]]]]{{{{[[[[[[[[[[["]' + "}" * (levels - 1)
    if fits:
        assert parse(nested.encode())
    else:
        with pytest.raises(Problem) as refused:
            parse(nested.encode())
        assert "nests" in str(refused.value.body["rule"])


@pytest.mark.parametrize("start", ['[["', '[{"a": "\\', '[["\\"'])
def test_a_string_that_never_ends_is_read_once(start):
    with pytest.raises(
        Problem, match="was not accepted"
    ):  # a search that starts again at each quote takes minutes
        parse((start + '\\"' * 100_000).encode())


@pytest.mark.parametrize("path", ["//[", "/admin/small/upload\0", ""])
def test_what_callers_send_as_a_path_need_not_be_one(path, make_study, serve_study):
    assert largest_body(serve_study(make_study()).app, path, "") == LARGEST_BODY
