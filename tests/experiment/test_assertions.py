"""Tests are taken apart so that the program's process holds nothing that is expected of it."""

from __future__ import annotations

import json

import pytest

from experiment.scoring.sandbox import SandboxUnavailable, examine, require_sandbox, run_program


def require_or_skip() -> None:
    try:
        require_sandbox()
    except SandboxUnavailable as error:
        pytest.skip(f"no sandbox here: {error.message}")


def asks(test: str, setup: str = "") -> list[str]:
    return [source for kind, source in examine(test, setup).steps if kind == "ask"]


@pytest.mark.parametrize(
    ("test", "asked"),
    [
        ("assert f(3) == 5", ["f(3)"]),
        ("assert 5 == f(3), 'wrong'", ["f(3)"]),
        ("assert abs(f(2) - 0.5) < 1e-6", ["f(2)"]),
        ("assert math.isclose(f(2), 0.5, rel_tol=1e-3)", ["f(2)"]),
        ("assert sorted(f([3, 1])) == [1, 3]", ["sorted(f([3, 1]))"]),
        ("assert set(f(2)) == {1} and len(f(3)) > 2", ["set(f(2))", "len(f(3))"]),
        ("assert not f(x=1)", ["f(x=1)"]),
        ("assert Stack([1, 2]).pop()[0] == 2", ["Stack([1, 2]).pop()[0]"]),
        ("assert f(lambda x: x > 2, [1, 3]) == [3]", ["f(lambda x: x > 2, [1, 3])"]),
        ("assert f(1) in (1, 2) and 0 < f(2) <= 9", ["f(1)", "f(2)"]),
        ("assert type(f(1)) == list and isinstance(f(2), (int, float))", ["f(1)", "f(2)"]),
        ("assert tuple_size((1, 2)) == sys.getsizeof((1, 2))", ["tuple_size((1, 2))"]),
        ("assert sum(10, 15) == 25", ["sum(10, 15)"]),
        ("assert abs(-3) == 3", ["abs(-3)"]),
        ("assert string(3) == 'c'", ["string(3)"]),
        ("assert True", []),
    ],
)
def test_a_program_is_asked_only_for_what_it_alone_can_say(test, asked):
    examined = examine(test)
    assert asks(test) == asked and not examined.on_trust
    assert len(examined.steps) == len(asked) == examined.asked


CHECK = "TOLERANCE = 0.5\ndef check(got, wanted):\n    return inner(got, wanted)\n"
CHECK += "inner = lambda got, wanted: abs(got - wanted) < TOLERANCE"


@pytest.mark.parametrize(
    ("test", "setup", "asked"),
    [
        ("assert check(f(3), 5)", CHECK, ["f(3)"]),
        ("assert not check(f(3), wanted=5) and check(f(4), 2) == True", CHECK, ["f(3)", "f(4)"]),
        ("a = f(3)\nassert check(a, 5)", CHECK, ["a"]),
        ("assert f(check, 3) == 5", CHECK, ["f(check, 3)"]),
        ("assert f(3) == 5", "def f(x):\n    pass", ["f(3)"]),
    ],
)
def test_functions_of_a_setup_run_in_the_judge(test, setup, asked):
    assert asks(test, setup) == asked and not examine(test, setup).on_trust


@pytest.mark.parametrize(
    ("test", "setup"),
    [
        ("assert close(f(1), 4242)", ""),
        ("assert not bool(differ(f(1), 4242))", ""),
        ("assert close(f(1), 4242) == True", ""),
        ("assert True is close(f(1), wanted=4242)", ""),
        ("assert check(3, 5)", "def check(x, wanted):\n    return f(x) == wanted"),
        ("assert check(f, 3, 5)", "def check(g, x, wanted):\n    return [*map(g, [x])] == [wanted]"),
        ("assert check(lambda: f(3), 5)", "def check(g, wanted):\n    return g() == wanted"),
        ("assert check(f(3), 5)", "def check(node, wanted):\n    return node.value == wanted"),
        ("assert errors(f(3)) == []", "def errors(node):\n    return [] if node.value == 5 else [node]"),
        ("assert check(f(3), 5)", "seen = []\ndef check(got, wanted):\n    return [*seen, got] == [wanted]"),
        ("assert check(f(3), 5)", "import functools\ncheck = functools.partial(max)"),
    ],
)
def test_a_truth_that_only_the_program_can_tell_is_marked_as_held_on_trust(test, setup):
    assert examine(test, setup).on_trust


def test_a_program_cannot_replace_the_functions_of_a_setup():
    require_or_skip()
    setup = "def check(got, wanted):\n    return sorted(got) == wanted"
    test = "assert check(f(3), [1, 2, 3])"
    forged = run_program("def f(x): return []\ndef check(*a): return True", [test], setup=setup)
    assert (forged.fate, forged.on_trust) == ("failed", 0)
    honest = run_program("def f(x): return [x, 1, 2]", [test], setup=setup)
    assert (honest.fate, honest.on_trust) == ("passed", 0)


@pytest.mark.parametrize(
    "test",
    [
        "f(3)",
        "for x in range(3):\n    assert f(x) == x",
        "assert all(f(x) == x for x in range(3))",
        "def check(value):\n    return value == 3\nassert check(f(1))",
        "assert f(1) == f(2)",
        "assert f(",
        "assert f(1) == " + "+".join("1" * 20_000),
        "try:\n    f(1)\nexcept ValueError:\n    pass\nelse:\n    assert False",
    ],
)
def test_what_cannot_be_taken_apart_is_marked_as_held_on_trust(test):
    assert examine(test).on_trust


def test_every_test_of_mbpp_is_taken_apart(shared):
    lines = (shared / "data" / "mbpp" / "mbpp.jsonl").read_text("utf-8").splitlines()
    tests = [
        (test, record["test_setup_code"])
        for record in map(json.loads, lines)
        for test in (*record["test_list"], *record["challenge_test_list"])
    ]
    assert len(tests) == 2938
    assert not [test for test, setup in tests if examine(test, setup).on_trust or len(asks(test, setup)) != 1]


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("3", "3"), ("True", "1"), ("2.0", "2"), ("-2**70", "-1180591620717411303424"), ("float('inf')", "float('inf')"),
        ("[1, (2, {3}), {'a': None}]", "[1, (2, {3}), {'a': None}]"), ("b'x\\xff'", "b'x\\xff'"), ("1 + 2j", "1 + 2j"),
        ("'é\\ud800\\n'", "'é\\ud800\\n'"), ("frozenset({1})", "{1}"), ("range(2)", "range(2)"),
        ("__import__('collections').Counter('ab')", "{'a': 1, 'b': 1}"),
        ("__import__('collections').OrderedDict(a=1)", "{'a': 1}"), ("{1: 2}.keys()", "{1}"),
        ("__import__('fractions').Fraction(1, 2)", "0.5"), ("__import__('decimal').Decimal('0.5')", "0.5"),
        ("__import__('collections').namedtuple('P', 'x')(1)", "(1,)"), ("type('N', (int,), {})(3)", "3"),
        ("type('S', (str,), {'__str__': lambda s: 'z'})('a')", "'a'"),
    ],
)  # fmt: skip
def test_plain_values_reach_the_judge_as_they_are(returned, expected):
    require_or_skip()
    tests = [f"assert f() == {expected}", f"assert f() != [{expected}]"]
    ran = run_program(f"def f():\n    return {returned}", tests)
    assert (ran.fate, ran.why) == ("passed", None)


def test_names_of_earlier_statements_and_of_the_program_s_setup_are_asked_for():
    require_or_skip()
    program = "class Node:\n    def __init__(self, x):\n        self.x = x\ndef f(node):\n    return node.x"
    test = "a = f(root)\nassert a == 7\na = a + 1\nassert a == 8"
    assert asks(test) == ["a", "a"]
    assert run_program(program, [test, "assert f(root) == 7"], setup="root = Node(7)").fate == "passed"
