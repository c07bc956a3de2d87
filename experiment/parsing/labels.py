"""Find the one label that a reply gives, in English, German or Spanish; what is doubtful is unparsed, never guessed.

A list of labels is an echo of the question only if a colon or a question mark follows it, a question only if it names no label or
several, and a highest rating only on a scale of three or more numbers; the parser doubts everything else.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from functools import cache, lru_cache

from experiment.parsing.giving import (
    OPEN,
    SHUT,
    announced,
    anywhere,
    are_denied,
    contrasted,
    in_clause,
    mark,
    pattern,
)
from experiment.parsing.naming import MOST_LABELS, Told, cased, flags, is_graded, spelt, told
from experiment.parsing.text import WRAPPING, Parsed, fold, tidy, unmarked, words


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
    said = told(without_echo(_unforced(reply), labels), labels)
    whole = _whole(said.text, labels)
    parsed = Parsed(whole, "valid") if whole is not None else _found(said, options or ())
    if parsed.value is not None and is_graded(parsed.value, said):
        return Parsed(None, "unparsed")
    return parsed


def _found(said: Told, options: Sequence[str]) -> Parsed:
    """Return the label that a reply with more in it gives."""
    given: dict[str, tuple[int, bool]] = {}
    for label in said.labels:
        ways = (announced(label, said), in_clause(label, said), contrasted(label, said))
        places = [one for one in ways if one is not None]
        first = _stands_first(label, said)
        if first is None or _is_heading(label, said.text):
            first = _closes_alone(label, said)
        ends = [one.end for one in places] + ([] if first is None else [first])
        if ends:
            given[label] = min(ends), any(one.is_said for one in places)
    if len(given) == 1:
        ((label, (end, is_said)),) = given.items()
        return _only(label, said, end, is_said=is_said)
    if given:
        return Parsed(None, "unparsed")
    worded = _by_option(said.text, said.labels, options)
    if worded is not None:
        return Parsed(worded, "valid")
    if pattern("refused").search(said.text):
        return Parsed(None, "refused")
    mentioned = [label for label in said.labels if said.places(label)]
    if len(mentioned) == 1:
        (label,) = mentioned
        around = anywhere(label).sub(" ", said.shown[label])
        if any(pattern(name).search(around) for name in ("denied", "supposed")):
            return Parsed(None, "unparsed")
        if _closes(label, said.text) or all(_is_telling(one) for one in said.labels):
            return Parsed(label, "valid")
    return Parsed(None, "unparsed")


_NEGATIVE = re.compile(r"[-−]\d")


def is_whole(label: str, reply: str) -> bool:
    """Say whether a reply is a label and nothing else but marks around it."""
    return _whole(unmarked(tidy(reply)), [label]) is not None


def ends_open(label: str, reply: str) -> bool:
    """Say whether a reply ends with a label and no mark behind it, as a sentence does that was cut short."""
    return re.search(rf"(?<!\w){spelt(label)}\s*\Z", reply, flags(label)) is not None


def _whole(reply: str, labels: Sequence[str]) -> str | None:
    """Return the label that a reply is, marks around it and hyphens in it aside."""
    if (bare := reply.strip(WRAPPING)) in labels:
        return bare
    told = fold(bare)
    if _NEGATIVE.match(told) and told not in labels:
        return None
    exact = {fold(label.strip(WRAPPING) or label): label for label in labels}
    if told in exact:
        return exact[told]
    joined: dict[str, list[str]] = {}
    for name, label in exact.items():
        joined.setdefault(name.replace("-", "").replace(" ", ""), []).append(label)
    same = joined.get(told.replace("-", "").replace(" ", ""), [])
    return same[0] if len(same) == 1 and len(told) > 1 else None


def _only(label: str, said: Told, end: int, *, is_said: bool) -> Parsed:
    """Return the label that alone is given, unless the reply doubts it, takes it back or names another as well."""
    others = said.others(label)
    rest = said.text[end:]
    named = [other for other in others if said.places(other, end)]
    undenied = not are_denied(named, said, end)
    if named and pattern("corrected").search(rest) and undenied:
        return Parsed(None, "unparsed")
    brackets = re.match(r"\s?\([^()\n]{1,200}\)", rest)
    if brackets is not None and not are_denied(others, said, end, end + brackets.end()):
        return Parsed(None, "unparsed")
    lines = [line.strip() for line in said.text.split("\n") if line.strip()]
    last = re.split(r"[.!?;:,] |\n", said.text.strip())[-1]
    if any(fold(text.strip(WRAPPING)) == fold(other) for other in others for text in (lines[-1], last)):
        return Parsed(None, "unparsed")
    if any(_is_explained(other, rest) or _is_possible(other, rest) for other in named):
        return Parsed(None, "unparsed")
    if _declines_in_the_end(rest):
        return Parsed(None, "refused")
    if is_said and not _begins_with_excuse(label, rest):
        is_below = "\n" in said.text[:end].rstrip() and any(
            _begins_a_line(other, lines[1:]) for other in named
        )
        return Parsed(None, "unparsed") if is_below else Parsed(label, "valid")
    if named and _is_only_labels(rest, said.labels):
        return Parsed(None, "unparsed")
    if any(_begins_a_line(other, lines[1:]) or _is_listed(other, rest) for other in named):
        return Parsed(None, "unparsed")
    if pattern("refused").search(_without_doubts(rest)):
        return Parsed(None, "refused")
    return Parsed(label, "valid")


def _is_possible(label: str, rest: str) -> bool:
    """Say whether what follows an answer holds another label possible: "A, or perhaps B", "A. But it could be B"."""
    joined, possible = _possibly(label)
    return joined.match(rest) is not None or possible.search(rest) is not None


@lru_cache(MOST_LABELS)
def _possibly(label: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    near = rf"[^\w.!?\n;]+(?:\w+ ){{0,2}}{OPEN}{cased(label)}(?!\w)"
    joined = rf"[^\w.!?\n;]{{1,6}}(?i:{words('or')}){near}"
    return re.compile(joined), re.compile(rf"(?<!\w)(?i:{words('possible')}){near}")


def _declines_in_the_end(rest: str) -> bool:
    """Say whether the last sentence of a reply declines and says nothing else: "The text says it is A. I cannot tell."."""
    sentences = [one for one in re.split(r"[.!?\n;]", rest.rstrip(WRAPPING)) if one.strip()]
    return (
        len(sentences) > 0
        and re.search(r"[.!?\n;]", rest.rstrip(WRAPPING)) is not None
        and _declines().fullmatch(_without_doubts(sentences[-1])) is not None
    )


@cache
def _declines() -> re.Pattern[str]:
    return re.compile(rf"\W*(?:{words('refused')})(?: (?:{words('declining')}))?\W*", re.IGNORECASE)


def _unforced(reply: str) -> str:
    """Return a reply without "if I had to guess," before an answer."""
    return _forced().sub("", reply)


@cache
def _forced() -> re.Pattern[str]:
    forced = rf"(?<!\w)(?:{words('if_forced')})(?:[,:] (?=\S)| (?=(?:i|it|my|the answer)(?!\w)))"
    return re.compile(forced, re.IGNORECASE)


def _begins_with_excuse(label: str, rest: str) -> bool:
    """Say whether what follows an answer declines at once: "Answer: No, I cannot tell"."""
    rest = _without_doubts(rest)
    if _excuse().match(rest):
        return True
    sentences = re.split(r"[.!?\n;]+", rest, maxsplit=2)
    is_nay = re.fullmatch(words("nay"), fold(label)) is not None
    return is_nay and any(pattern("refused").search(one) for one in sentences[:2])


@cache
def _excuse() -> re.Pattern[str]:
    return re.compile(rf"[ ,:*–—-]{{1,6}}(?:{words('refused')})(?!\w)", re.IGNORECASE)


def _without_doubts(rest: str) -> str:
    """Return what follows an answer without a doubt that leaves it one: "A, but I am not sure"."""
    return _doubts().sub("", rest)


@cache
def _doubts() -> re.Pattern[str]:
    turn, unsure = rf"(?:{words('turn')}|{words('since')})", rf"(?:{words('unsure')})"
    doubts = rf"(?<!\w)(?:{turn} {unsure}|{unsure},? (?:though|however|aber|jedoch))(?!\w)"
    return re.compile(doubts, re.IGNORECASE)


def _stands_first(label: str, said: Told) -> int | None:
    """Return where a label ends that is alone on the first line, or first on it and then a mark; None where it is not."""
    text = said.shown[label]
    begin = len(text) - len(text.lstrip())
    first = text[begin:].split("\n", 1)[0].rstrip()
    if fold(first.strip(WRAPPING)) == fold(label.strip(WRAPPING) or label):
        return begin + len(first)
    found = _marked(label).match(first)
    return None if found is None else begin + found.end()


@lru_cache(MOST_LABELS)
def _marked(label: str) -> re.Pattern[str]:
    return re.compile(rf"{OPEN}{spelt(label)}{SHUT}(?={mark()})", flags(label))


def _closes_alone(label: str, said: Told) -> int | None:
    """Return where a label ends that is alone on the last line of a reply which does not decline; None where it is not."""
    above, _, last = said.shown[label].rstrip().rpartition("\n")
    if fold(last.strip(WRAPPING)) != fold(label.strip(WRAPPING) or label) or (
        len(label) == 1 and label not in last
    ):
        return None
    if above.rstrip().endswith((":", ",")) or pattern("refused").search(above):
        return None
    return len(said.shown[label].rstrip())


def _is_heading(label: str, reply: str) -> bool:
    """Say whether a reply is a word that sentences have anyway, as a heading of one other word: "Word: garden"."""
    return _is_everyday(label) and _heading(label).fullmatch(reply) is not None


@lru_cache(MOST_LABELS)
def _is_everyday(label: str) -> bool:
    return re.fullmatch(words("everyday"), fold(label)) is not None


@lru_cache(MOST_LABELS)
def _heading(label: str) -> re.Pattern[str]:
    return re.compile(rf"\W*{spelt(label)}{SHUT}\s?[:：]\W*\w[\w'-]*\W*", flags(label))


def _begins_a_line(label: str, lines: Sequence[str]) -> bool:
    return any(_beginning(label).match(line) for line in lines)


@lru_cache(MOST_LABELS)
def _beginning(label: str) -> re.Pattern[str]:
    return re.compile(rf"[-*•>\s]{{0,4}}{OPEN}{spelt(label)}{SHUT}{mark()}", flags(label))


def _is_listed(label: str, rest: str) -> bool:
    """Say whether a label stands in a list of options: (B) text."""
    return re.search(rf"(?:^|\s)\(?{spelt(label)}\)\s\w", rest, flags(label)) is not None


def _is_explained(label: str, rest: str) -> bool:
    """Say whether a reply explains what another label stands for, as it does before it decides: "Group B: lines without"."""
    return _explaining(label).search(rest) is not None


@lru_cache(MOST_LABELS)
def _explaining(label: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?i:{words('name')}) {cased(label)}\s?:")


def _is_only_labels(rest: str, labels: Sequence[str]) -> bool:
    """Say whether nothing but labels and what joins them follows: "A, B", "A. And B"."""
    for label in labels:
        rest = anywhere(label).sub(" ", rest)
    return not re.search(r"\w", pattern("and").sub(" ", rest))


def _closes(label: str, reply: str) -> bool:
    """Say whether a label closes the reply behind a mark: "Based on the rule, A", "Of course! Yes"."""
    return re.search(rf"[,:;.!–—-]\s?{OPEN}{spelt(label)}{SHUT}[.!]?\s*\Z", reply, flags(label)) is not None


def _by_option(reply: str, labels: Sequence[str], options: Sequence[str]) -> str | None:
    """Return the label of the option that a reply is, or announces, in the option's own words."""
    lines = [line for line in reply.split("\n") if line.strip()]
    if not options:
        return None
    last = deque(_answering().finditer(reply), maxlen=1)
    announced = [reply[match.end() :].split("\n")[0] for match in last]
    told = {fold(text.strip(WRAPPING)) for text in (*announced, reply, *lines[:1], *lines[-1:])}
    found = [
        label
        for label, option in zip(labels, options, strict=False)
        if fold(option.strip(WRAPPING) or option) in told
    ]
    return found[0] if len(found) == 1 else None


@cache
def _answering() -> re.Pattern[str]:
    before = (
        rf"(?<!\w)(?:{words('answer')})[\"'*_`]{{0,4}}(?: (?:is|ist|lautet|es))?\s?[:=]?[\"'*_`]{{0,4}}\s?"
    )
    return re.compile(before, re.IGNORECASE)


def _is_telling(label: str) -> bool:
    """Say whether a label is no word that sentences have anyway ("no", "yes", "true")."""
    return len(label) >= 4 and not _is_everyday(label)


_MARKS = r"[\"'*_`>#-]{0,4}"
_DASH = r"\s?[-–—]\s?"
_FEWEST_RATINGS = 3


def without_echo(reply: str, labels: Sequence[str]) -> str:
    """Return a tidy reply without the question's own labels and scale before its answer, and "4 out of 5" as "4".

    Where nothing would be left, the reply stays as it is.
    """
    together = tuple(labels)
    asks, tells = "?" in reply, ":" in reply
    if asks:
        reply = _without_question(reply, together)
    if asks or tells:
        reply = _unlisted(_listed(together), reply)
    ratings = _ratings(together)
    if ratings is not None:
        scale, share = ratings
        if "-" in reply or "–" in reply or scale.search(reply):
            reply = _unlisted(scale, reply)
        reply = share.sub(r"\g<rating>", reply)
    return reply


def _without_question(reply: str, labels: tuple[str, ...]) -> str:
    found = _question().match(reply)
    if found is None:
        return reply
    named = sum(_word(label).search(found[0]) is not None for label in labels)
    return reply if named == 1 else reply[found.end() :]


def _unlisted(echo: re.Pattern[str], reply: str) -> str:
    left = echo.sub(r"\g<before>", reply)
    return left if re.search(r"\w", left) else reply


@cache
def _question() -> re.Pattern[str]:
    begins = rf"\A[\s>*_\"'#-]{{0,4}}(?:(?:{words('asking')})(?= )|¿)"
    return re.compile(rf"{begins}[^.!?\n:;]{{4,300}}\?[\"'*_]{{0,3}}\s+(?=\S)", re.IGNORECASE)


@lru_cache(MOST_LABELS)
def _word(label: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){cased(label)}(?!\w)")


@lru_cache(MOST_LABELS)
def _listed(labels: tuple[str, ...]) -> re.Pattern[str]:
    """Return several labels that are offered, at the beginning of a line or behind the name of the answer."""
    one = rf"[\"'*_`(]{{0,3}}(?:{'|'.join(cased(label) for label in sorted(labels, key=len, reverse=True))})[\"'*_`)]{{0,3}}"
    offered = rf"\(?{one}(?:\s?(?:,? (?i:{words('or')}) |[,/|])\s?{one})+\)?"
    answer = rf"(?i:{words('answer')})[\"'*_]{{0,3}} ?"
    before = rf"(?P<before>^[ ]?{_MARKS}(?:{answer})?|(?<!\w){answer}(?=\())"
    return re.compile(rf"{before}{offered}[\"'*_]{{0,3}}\s?[:?][\"'*_]{{0,3}}[ \n]{{0,2}}", re.MULTILINE)


@lru_cache(MOST_LABELS)
def _ratings(labels: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]] | None:
    """Return how the scale is named, and a rating with the highest one behind it; None where labels are no scale of numbers."""
    if len(labels) < _FEWEST_RATINGS or not all(re.fullmatch(r"\d{1,3}", label) for label in labels):
        return None
    numbers = sorted(map(int, labels))
    if numbers != list(range(numbers[0], numbers[-1] + 1)):
        return None
    low, high = numbers[0], numbers[-1]
    span = (
        rf"(?:{low} (?:{words('up_to')}) {high}|{low}{_DASH}{high})(?:[- ](?:point )?scale| skala| escala)?"
    )
    scale = rf"(?P<before>)(?:(?<!\w)(?:{words('scale')}) {span}(?:,| ?:)?\s?|\s?\((?:(?:{words('scale')}) )?{span}\))"
    rating = "|".join(sorted(labels, key=len, reverse=True))
    share = rf"(?<![\w.,/-])(?P<rating>{rating})(?:\s?/\s?| (?:{words('of_most')}) ){high}(?![\w/%]|[.,]\d)"
    return re.compile(scale, re.IGNORECASE), re.compile(share, re.IGNORECASE)
