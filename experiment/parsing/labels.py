"""Finds the one label that a reply gives, in English, German or Spanish; what is doubtful is unparsed, never guessed.

An article or a letter inside a sentence ("A good question", "I cannot tell") is never the label A, nor "no" in "There is no
way to tell" the label No. A label counts where it is the whole reply, stands first or alone on a line, is announced ("Answer: B",
``{"answer": "B"}``), chosen ("I choose B"), or closes a sentence that names no other. It does not count behind a negation
or in a supposition, nor where the reply goes on to another label.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from functools import cache

from experiment.parsing.text import WRAPPING, Parsed, fold, tidy, unmarked, words

_SENTENCE = re.compile(r"[.!?\n;。！？；؟۔।]")
_LOOK_BACK = 300
"""Characters before a label in which a negation is looked for: a sentence."""
_OPEN = r"[\"'“„«(\[*_`$「『（]{0,4}"
_SHUT = r"[\"'”“»)\]*_`$」』）]{0,4}"
_MARK = r"\s?(?:[.,;:)\]}!\n。．、，：；！）؛،۔।]|$|[-–—] )"
_END = r"\s?(?:[.!\n}\]。．！۔।]|$)"


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{words(name)})(?!\w)", re.IGNORECASE)


@cache
def _announcements() -> tuple[tuple[str, str], ...]:
    """Return patterns of what stands before a label that is given, each with what may stand behind it."""
    answer, name, link = words("answer"), words("name"), rf"(?: (?:{words('link')})){{0,4}}"
    quotes = r"[\"'*_`]{0,4}"
    return (
        (rf"(?<!\w)(?:{answer}){quotes}{link}{quotes}\s?[:=]?{quotes}{link}(?: (?:{name}))?\s?", _MARK),
        (rf"[\"'](?:{answer}|{name})[\"']\s?:\s?", r"\s?[,}\]]"),
        (rf"(?<!\w)(?:{words('choosing')})(?: for)?{link}(?: (?:{name}))?\s?:?\s?", _MARK),
        (rf"(?<!\w)(?:{name})(?: (?:is|ist|es))?{quotes}\s?[:=]?{quotes}\s?", _END),
        (rf"\A\W{{0,4}}(?:(?:the|la|el|die) )?(?:{name}) ", _MARK),
        (
            rf"(?:\A|[.!?\n]\s?)(?:(?:{words('so')}),? )?(?:{words('copula')})(?: (?:{words('article')}))?(?: (?:{name}))? ",
            r"[.!]?\s?(?:$|\n)",
        ),
    )


def parse_label(reply: str | None, labels: Sequence[str], options: Sequence[str] | None = None) -> Parsed:
    """Find the one label that a reply gives.

    Parameters
    ----------
    reply : str or None
    labels : sequence of str
        The labels as shown.
    options : sequence of str, optional
        What each label stands for where labels are letters; an option in its own words counts as its label.
    """
    if reply is None or not reply.strip():
        return Parsed(None, "empty")
    reply = unmarked(tidy(reply).replace("’", "'"))
    whole = _whole(reply, labels)
    if whole is not None:
        return Parsed(whole, "valid")
    announced = {label for label in labels if _is_announced(label, reply, labels)}
    first = {label for label in labels if _stands_first(label, reply) and not _is_heading(label, reply)}
    given = announced | first
    if len(given) == 1:
        (label,) = given
        return _only(label, reply, labels, is_announced=label in announced)
    if given:
        return Parsed(None, "unparsed")
    worded = _by_option(reply, labels, options or ())
    if worded is not None:
        return Parsed(worded, "valid")
    if _pattern("refused").search(reply):
        return Parsed(None, "refused")
    mentioned = [label for label in labels if _stands_in(label, reply)]
    if (
        len(mentioned) == 1
        and not _pattern("denied").search(reply)
        and not _pattern("supposed").search(reply)
    ):
        (label,) = mentioned
        if _closes(label, reply) or all(_is_telling(one) for one in labels):
            return Parsed(label, "valid")
    return Parsed(None, "unparsed")


def is_whole(label: str, reply: str) -> bool:
    """Say whether a reply is a label and nothing else but marks around it."""
    return _whole(unmarked(tidy(reply)), [label]) is not None


def ends_open(label: str, reply: str) -> bool:
    """Say whether a reply ends with a label and no mark behind it, as a sentence does that was cut short."""
    return re.search(rf"(?<!\w){_spelt(label)}\s*\Z", reply, _flags(label)) is not None


def _whole(reply: str, labels: Sequence[str]) -> str | None:
    """Return the label that a reply is, marks around it and hyphens in it aside."""
    told = fold(reply.strip(WRAPPING))
    exact = {fold(label.strip(WRAPPING) or label): label for label in labels}
    if told in exact:
        return exact[told]
    joined: dict[str, list[str]] = {}
    for name, label in exact.items():
        joined.setdefault(name.replace("-", "").replace(" ", ""), []).append(label)
    same = joined.get(told.replace("-", "").replace(" ", ""), [])
    return same[0] if len(same) == 1 and len(told) > 1 else None


def _only(label: str, reply: str, labels: Sequence[str], *, is_announced: bool) -> Parsed:
    """Return the label that alone is given, unless the reply doubts it, takes it back or names another as well."""
    others = [other for other in labels if other != label]
    found = re.search(rf"(?<!\w){_spelt(label)}(?!\w)", reply, _flags(label))
    rest = reply[found.end() :] if found else ""
    named = [other for other in others if _stands_in(other, rest)]
    if named and _pattern("corrected").search(rest) and not _is_denied_in(named, rest, labels):
        return Parsed(None, "unparsed")
    lines = [line.strip() for line in reply.split("\n") if line.strip()]
    last = re.split(r"[.!?;:,] |\n", reply.strip())[-1]
    if any(fold(text.strip(WRAPPING)) == fold(other) for other in others for text in (lines[-1], last)):
        return Parsed(None, "unparsed")
    if any(_is_explained(other, rest) for other in named):
        return Parsed(None, "unparsed")
    if is_announced:
        return Parsed(label, "valid")
    if named and _is_only_labels(rest, labels):
        return Parsed(None, "unparsed")
    if any(_begins_a_line(other, lines[1:]) or _is_listed(other, rest) for other in named):
        return Parsed(None, "unparsed")
    if _pattern("refused").search(rest):
        return Parsed(None, "refused")
    return Parsed(label, "valid")


def _is_denied_in(named: Sequence[str], rest: str, labels: Sequence[str]) -> bool:
    """Say whether other labels are named only to deny them: "A. B would be wrong, but not A"."""
    return all(
        _is_denied(match.start(), rest, other, labels)
        for other in named
        for match in re.finditer(rf"(?<!\w){_spelt(other)}(?!\w)", rest, _flags(other))
    )


def _is_announced(label: str, reply: str, labels: Sequence[str]) -> bool:
    for before, after in _announcements():
        pattern = re.compile(rf"(?i:{before})(?P<label>{_OPEN}{_cased(label)}{_SHUT}){after}")
        for match in pattern.finditer(reply):
            if not _is_denied(match.start("label"), reply, label, labels):
                return True
    return False


def _is_denied(place: int, reply: str, label: str, labels: Sequence[str]) -> bool:
    """Say whether a label stands behind a negation or in a supposition, in its own sentence and behind any other label."""
    before = reply[max(0, place - _LOOK_BACK) : place]
    ends = deque((match.end() for match in _SENTENCE.finditer(before)), maxlen=1)
    sentence = before[ends[0] :] if ends else before
    if _pattern("supposed").search(sentence):
        return True
    for other in labels:
        named = deque(
            (m.end() for m in re.finditer(rf"(?<!\w){_spelt(other)}(?!\w)", sentence, _flags(other))),
            maxlen=1,
        )
        if other != label and named:
            sentence = sentence[named[0] :]
    return _pattern("denied").search(sentence) is not None


def _stands_first(label: str, reply: str) -> bool:
    """Say whether a label is alone on the first line, or first on it and then a mark."""
    first = next((line.strip() for line in reply.split("\n") if line.strip()), "")
    if fold(first.strip(WRAPPING)) == fold(label.strip(WRAPPING) or label):
        return True
    return re.match(rf"{_OPEN}{_spelt(label)}{_SHUT}{_MARK}", first, _flags(label)) is not None


def _is_heading(label: str, reply: str) -> bool:
    """Say whether a reply is a word that sentences have anyway, as a heading of one other word: "Word: garden"."""
    said = re.fullmatch(rf"\W*{_spelt(label)}{_SHUT}\s?[:：]\W*\w[\w'-]*\W*", reply, _flags(label))
    return said is not None and re.fullmatch(words("everyday"), fold(label)) is not None


def _begins_a_line(label: str, lines: Sequence[str]) -> bool:
    pattern = re.compile(rf"[-*•>\s]{{0,4}}{_OPEN}{_spelt(label)}{_SHUT}{_MARK}", _flags(label))
    return any(pattern.match(line) for line in lines)


def _is_listed(label: str, rest: str) -> bool:
    """Say whether a label stands in a list of options: (B) text."""
    return re.search(rf"(?:^|\s)\(?{_spelt(label)}\)\s\w", rest, _flags(label)) is not None


def _is_explained(label: str, rest: str) -> bool:
    """Say whether a reply explains what another label stands for, as it does before it decides: "Group B: lines without"."""
    return re.search(rf"(?<!\w)(?i:{words('name')}) {_cased(label)}\s?:", rest) is not None


def _is_only_labels(rest: str, labels: Sequence[str]) -> bool:
    """Say whether nothing but labels and what joins them follows: "A, B", "A. And B"."""
    for label in labels:
        rest = re.sub(rf"(?<!\w){_spelt(label)}(?!\w)", " ", rest, flags=_flags(label))
    return not re.search(r"\w", _pattern("and").sub(" ", rest))


def _closes(label: str, reply: str) -> bool:
    """Say whether a label closes the reply behind a mark: "Based on the rule, A"."""
    return re.search(rf"[,:;–—-]\s?{_OPEN}{_spelt(label)}{_SHUT}[.!]?\s*\Z", reply, _flags(label)) is not None


def _by_option(reply: str, labels: Sequence[str], options: Sequence[str]) -> str | None:
    """Return the label of the option that a reply is, or announces, in the option's own words."""
    lines = [line for line in reply.split("\n") if line.strip()]
    before = (
        rf"(?<!\w)(?:{words('answer')})[\"'*_`]{{0,4}}(?: (?:is|ist|lautet|es))?\s?[:=]?[\"'*_`]{{0,4}}\s?"
    )
    last = deque(re.finditer(before, reply, re.IGNORECASE), maxlen=1)
    announced = [reply[match.end() :].split("\n")[0] for match in last]
    told = {fold(text.strip(WRAPPING)) for text in (*announced, reply, *lines[:1], *lines[-1:])}
    found = [
        label
        for label, option in zip(labels, options, strict=False)
        if fold(option.strip(WRAPPING) or option) in told
    ]
    return found[0] if len(found) == 1 else None


def _stands_in(label: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){_spelt(label)}(?!\w)", text, _flags(label)) is not None


def _spelt(label: str) -> str:
    """Return a label as a pattern; "nonword" is also written non-word and non word."""
    escaped = re.escape(label)
    return re.sub(r"\A(?i:(non|pseudo))(?=\w)", r"\1[- ]?", escaped)


def _cased(label: str) -> str:
    return _spelt(label) if len(label) == 1 else f"(?i:{_spelt(label)})"


def _flags(label: str) -> re.RegexFlag:
    return re.IGNORECASE if len(label) > 1 else re.RegexFlag(0)


def _is_telling(label: str) -> bool:
    """Say whether a label is no word that sentences have anyway ("no", "yes", "true")."""
    return len(label) >= 4 and re.fullmatch(words("everyday"), fold(label)) is None
