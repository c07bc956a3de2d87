"""The keys that a study may use: one list (``keys.json``) for the check, the schema and the page in the browser.

A key is named by what a browser reports for one stroke without Ctrl or Alt, in lower case, as jsPsych compares it: the letter,
digit or sign that it writes, or the key's name. Digits of all scripts are equivalent, and so are the two letters i of Turkish.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache
from importlib import resources
from typing import Any

from stimuli.errors import nearest

FUNCTION_KEY = re.compile(r"f([1-9]|1[0-9]|2[0-4])")
COMBINATION = re.compile(
    r"(ctrl|control|strg|alt|altgr|option|shift|cmd|command|meta|win)\s*[-+ ]\s*\S+", re.IGNORECASE
)
NUMBER_PAD = re.compile(r"(?:numpad|num|kp|keypad)([0-9])|(?:digit|key)([0-9a-z])")
BY_INPUT_METHOD = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "YI SYLLABLE")
"""Unicode names of letters that an input method composes from several strokes."""


@cache
def _list() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("keys.json").read_text("utf-8")
    return dict(json.loads(text))


def key_name(key: object) -> str:
    """Return the canonical name of a key: ``J`` and ``j``, ``left`` and ``ArrowLeft``, ``1`` and ``١`` are equal."""
    narrow = "".join(chr(ord(sign) - 0xFEE0) if "！" <= sign <= "～" else sign for sign in str(key))
    lower = unicodedata.normalize("NFC", narrow.lower().replace("i\u0307", "i")).replace("ı", "i")
    for zero in _list()["zeros"] if len(lower) == 1 else "":
        if 0 <= ord(lower) - ord(zero) < 10:
            return str(ord(lower) - ord(zero))
    return str(_list()["aliases"].get(lower, lower))


def stroke_name(key: object) -> str | None:
    """Return a browser's name of a named key (``ArrowLeft``); None for keys that are named by what they write."""
    name = key_name(key)
    return next((sent for sent in _list()["named"] if sent.lower() == name), None)


def key_fault(key: object) -> str | None:
    """Return why a study cannot use a key, with the nearest valid one; None if it can."""
    name, key_lists = key_name(key), _list()
    if stroke_name(key) is not None:
        return None
    if name in key_lists["taken"]:
        return f"this key {key_lists['taken'][name]}; choose a letter or a digit"
    if FUNCTION_KEY.fullmatch(name):
        return "function keys belong to the browser and to the computer (F5 reloads the page); choose a letter or a digit"
    if COMBINATION.fullmatch(name):
        return "an answer is one key, pressed alone; choose a letter or a digit"
    if len(name) == 1:
        return _fault_of_sign(name)
    simple = re.sub(r"[\s_.-]", "", name)
    pad = NUMBER_PAD.fullmatch(simple)
    close = (
        (pad[1] or pad[2])
        if pad
        else key_lists["mistaken"].get(simple) or nearest(simple, key_lists["named"])
    )
    hint = f" (did you mean {close!r}?)" if close else ""
    named = ", ".join(key_lists["named"])
    return f"no keyboard has this key{hint}; a key is one letter, digit or sign, or one of: {named}"


def _fault_of_sign(sign: str) -> str | None:
    key_lists = _list()
    if sign in key_lists["mistaken"]:
        return f"no key writes this sign; did you mean {key_lists['mistaken'][sign]!r}?"
    if unicodedata.name(sign, "").startswith(BY_INPUT_METHOD):
        return "an input method makes this letter out of several strokes; choose a Latin letter or a digit"
    is_letter = unicodedata.category(sign) in ("Ll", "Lo", "Lm") and (
        sign in key_lists["composed"] or unicodedata.normalize("NFD", sign) == sign
    )
    if is_letter or sign.isdecimal() or (sign.isascii() and sign.isprintable()) or sign in key_lists["dead"]:
        return None
    return "no key writes this sign by itself; choose a letter or a digit"


def key_remark(key: object) -> str | None:
    """Return how a valid key differs between keyboards; None if it does not."""
    name = key_name(key)
    if len(name) != 1 or unicodedata.category(name)[0] in "LN":
        return None
    if name in _list()["dead"]:
        return "on many keyboards it writes nothing until the next key"
    return "on keyboards of other countries it needs Shift or is in another place"
