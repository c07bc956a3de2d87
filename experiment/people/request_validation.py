"""Validation of what browsers send: limited size and depth, plain JSON, checked by a schema that is built once."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from importlib import resources
from typing import Any

from flask import Request
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError, best_match

from stimuli.schemas.acceptance import Accepts, acceptor, is_moment


class Problem(Exception):
    """An error response to a request."""

    def __init__(
        self,
        status: int,
        error: str,
        *,
        rule: str,
        mend: str = "",
        retry_after_s: int | None = None,
        **more: Any,
    ) -> None:
        super().__init__(error)
        self.status = status
        self.retry_after_s = retry_after_s
        self.body = {"error": error, "rule": rule, "mend": mend, **more}


def no_such_session() -> Problem:
    """Return the same problem for an unknown session and a wrong token, so that neither can be guessed."""
    return Problem(
        404,
        "there is no such session for this token",
        rule="a session answers only to the token that was given when it began",
        mend="Open the study's page again.",
    )


FREQUENT = frozenset({"trial", "event"})
LARGEST_BODY = 256 * 1024
LARGEST_EVENT = 32 * 1024
DEEPEST = 12
LONGEST_RULE = 300
LARGEST_WHOLE = 2.0**53
"""Up to this value, a float represents every whole number exactly."""
_FORMATS = FormatChecker(formats=())
_FORMATS.checks("date-time")(is_moment)
_BRACKET = re.compile(r"[\[\]{}]")
# possessive, with an optional closing mark: matched text is never scanned again
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_SURROGATE_OR_NUL = re.compile("[\0\ud800-\udfff]")
# only an escape can encode a surrogate or a zero byte, only a long or exponential number can be infinite
_PERHAPS_NOT_STORABLE = re.compile(r"\\u|(?:^|[:,\[\s])-?\d[\d.]*[eE]\+?\d{3}|\d{200}")


@cache
def validator(name: str) -> Draft202012Validator:
    """Return the validator of one kind of body: the name of a file in ``schemas/``."""
    text = resources.files(__package__).joinpath("schemas", f"{name}.json").read_text("utf-8")
    schema = json.loads(text)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=_FORMATS)


@cache
def acceptance(name: str) -> Accepts:
    """Return a fast check of whether a body is valid, for those sent with every trial."""
    schema = validator(name).schema
    assert isinstance(schema, dict)
    return acceptor(schema)


def read_body(request: Request, name: str) -> dict[str, Any]:
    """Return the validated JSON body of a request."""
    if request.mimetype != "application/json":
        raise Problem(415, "the body is not JSON", rule="send application/json")
    data = request.get_data(cache=False)
    if name == "event" and len(data) > LARGEST_EVENT:
        raise Problem(413, "the event is too large", rule=f"an event has at most {LARGEST_EVENT // 1024} KB")
    body = parse(data)
    if name not in FREQUENT or not acceptance(name)(body):
        error = best_match(validator(name).iter_errors(body))
        if error is not None:
            raise _bad(_place(error), _rule(error))
    assert isinstance(body, dict)
    return body


def parse(data: bytes, deepest: int = DEEPEST) -> object:
    """Return JSON that a database can store: limited depth, no NaN, no infinity; 1.0 becomes 1, as in a browser.

    Surrogates and zero bytes, which a browser can send and a database cannot store, become U+FFFD: an odd character is no
    reason to lose an answer.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise _bad("the body", "is UTF-8") from None
    if _depth(text) > deepest:
        raise _bad("the body", f"nests at most {deepest} deep")
    try:
        value = json.loads(text, parse_constant=_no_constant, parse_float=_number)
    except (ValueError, RecursionError):
        raise _bad("the body", "is valid JSON") from None
    return _storable(value) if _PERHAPS_NOT_STORABLE.search(text) else value


def _bad(what: str, rule: str) -> Problem:
    return Problem(400, f"{what} was not accepted", rule=f"{what} {rule}"[:LONGEST_RULE])


def _depth(text: str) -> int:
    depth = deepest = 0
    if text.count("{") + text.count("[") <= 1:
        return 1
    for bracket in _BRACKET.findall(_STRING.sub("", text)):
        if bracket in "[{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _number(text: str) -> float | int:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) <= LARGEST_WHOLE else value


def _storable(value: object) -> object:
    if isinstance(value, str):
        return _SURROGATE_OR_NUL.sub("\ufffd", value)
    if isinstance(value, float) and not math.isfinite(value):
        raise _bad("a number", "is finite")
    if isinstance(value, list):
        return [_storable(part) for part in value]
    if isinstance(value, dict):
        return {_storable(name): _storable(part) for name, part in value.items()}
    return value


def _place(error: ValidationError) -> str:
    return ".".join(str(part) for part in error.absolute_path)[:100] or "the body"


def _rule(error: ValidationError) -> str:
    expected = json.dumps(error.validator_value, ensure_ascii=False, default=str)
    return f"must satisfy {error.validator}: {expected}"
