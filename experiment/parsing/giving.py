"""Where a reply gives a label: announced ("Answer: B"), or in a clause that says nothing else ("but I think it is B", "so yes").

A clause gives a label only as a whole: what leads to it, who thinks so, how surely, the label, and what may stand behind it.
Whatever else is in it (a negation, "could be", another label) leaves it without one. A negation or a supposition earlier in the
sentence counts against the label, unless the sentence turns ("I am not sure, but A") or concludes ("It is not named, so no").
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from functools import cache, lru_cache

from experiment.parsing.naming import BLANK, DETERMINERS, MOST_LABELS, Told, cased, flags, spelt
from experiment.parsing.text import words

OPEN = r"[\"'“„«(\[*_`$「『（]{0,4}"
SHUT = r"[\"'”“»)\]*_`$」』）]{0,4}"
_SENTENCE = re.compile(r"[.!?\n;。！？；؟۔।]")
_LOOK_BACK = 300
"""Characters before a label in which a negation is looked for: a sentence."""
_END = r"\s?(?:[.!\n}\]。．！۔।]|$)"


_QUOTED = r"[\"'“„«*_`]{1,3}[^\"'”“»*_`\n]{1,60}[\"'”“»*_`]{1,3}"


@dataclass(frozen=True)
class Given:
    """Where a label is given first, and whether in so many words ("the answer is", "I think") rather than by itself."""

    end: int
    is_said: bool


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Return the words of a kind as a pattern."""
    return re.compile(rf"(?<!\w)(?:{words(name)})(?!\w)", re.IGNORECASE)


@cache
def _begins(name: str, before: str) -> re.Pattern[str]:
    """Return the words of a kind behind what may stand before them at the beginning of a text."""
    return re.compile(rf"{before}(?:{words(name)})(?!\w)", re.IGNORECASE)


@cache
def mark() -> str:
    """Return what may stand behind a label that is given: a mark, brackets up to the sentence's end, or a reason."""
    brackets = r"\s?\([^()\n]{1,200}\)\s?(?:[.!\n]|$)"
    return rf"(?:\s?(?:[.,;:)\]}}!\n。．、，：；！）؛،۔।]|$|[-–—] )|{brackets}| (?i:{words('since')})(?!\w))"


@cache
def _announcements() -> tuple[tuple[str, str], ...]:
    """Return patterns of what stands before a label that is announced, each with what may stand behind it."""
    answer, name, link = words("answer"), words("name"), rf"(?: (?:{words('link')})){{0,4}}"
    quotes = r"[\"'*_`]{0,4}"
    asked = rf"(?: (?:{words('asked')}))?"
    return (
        (
            rf"(?<!\w)(?:{answer}){quotes}{asked}{link}{quotes}\s?[:=]?{quotes}{link}(?: (?:{name}))?\s{{0,4}}",
            mark(),
        ),
        (rf"[\"'](?:{answer}|{name})[\"']\s?:\s?", r"\s?[,}\]]"),
        (rf"<(?:{answer}|{name})>\s{{0,4}}", r"\s{0,4}</"),
        (rf"(?<!\w)(?:{words('choosing')})(?: for| que| auf)?{link}(?: (?:{name}))?\s?:?\s?", mark()),
        (rf"(?<!\w)(?:{name})(?: (?:is|ist|es))?{quotes}\s?[:=]?{quotes}\s?", _END),
        (rf"\A\W{{0,4}}(?:(?:the|la|el|die) )?(?:{name}) ", mark()),
    )


@cache
def _clause() -> tuple[str, str]:
    """Return patterns of what stands before and behind the label of a clause that gives it and says nothing else."""
    so, turn, surely = words("so"), words("turn"), words("surely")
    subject = (
        rf"(?P<subject>(?:(?:(?:{words('item')}|{DETERMINERS}{BLANK}+)(?: {_QUOTED})?|{words('it')}|{_QUOTED})"
        rf"(?:'s| (?:(?:{surely}) )?(?:{words('being')})))|{words('turned')}"
        rf"|(?:{words('choosing')})(?: for| que| auf)?)(?: (?:{surely})){{0,2}} "
    )
    start = (
        rf"(?:(?:\A|[.!?\n;:,(–—。]| -(?= ))[\s\"'*_`>#-]{{0,4}}|(?<=\s)(?=(?:{so}|{turn}) )(?P<within>))"
        rf"(?P<lead>(?:(?:and|{so}|(?P<turn>{turn}))[,:]? ){{0,2}})"
    )
    before = (
        rf"{start}(?P<from>)(?:(?P<surely>{surely})[,:]? ){{0,2}}(?:(?P<thinking>{words('thinking')})[,:]? )?"
        rf"(?:(?:{surely}),? ){{0,2}}(?:{subject}|(?P<verb_last>{words('it')})(?: zu)? )?"
        rf"(?:(?:{words('article')}) )?(?:(?:{words('name')}) )?"
    )
    behind = rf"(?:,? (?P<ending>{words('ending')}))?(?=\s?(?:[.!,;\n)]|$)| [-–—] | \(| (?:{words('since')})(?!\w))"
    return before, behind


@lru_cache(MOST_LABELS)
def _announcing(label: str) -> tuple[re.Pattern[str], ...]:
    return tuple(
        re.compile(rf"(?i:{before})(?P<label>{OPEN}{cased(label)}{SHUT}){after}")
        for before, after in _announcements()
    )


@lru_cache(MOST_LABELS)
def _giving(label: str) -> re.Pattern[str]:
    before, behind = _clause()
    return re.compile(rf"(?i:{before})(?P<label>{OPEN}{cased(label)}{SHUT})(?i:{behind})")


@lru_cache(MOST_LABELS)
def _ends_a_word(label: str) -> re.Pattern[str]:
    """Return what every text has in which a label is given; looking for it first spares most texts the long patterns."""
    return re.compile(rf"{cased(label)}(?![^\W_])")


@lru_cache(MOST_LABELS)
def anywhere(label: str) -> re.Pattern[str]:
    """Return a label as a pattern, where nothing of a word stands beside it."""
    return re.compile(rf"(?<!\w){spelt(label)}(?!\w)", flags(label))


def announced(label: str, reply: Told) -> Given | None:
    """Return where a label is first announced; None where it never is, or only behind a negation or in a supposition."""
    if not _ends_a_word(label).search(reply.shown[label]):
        return None
    found = []
    for one in _announcing(label):
        for match in one.finditer(reply.shown[label]):
            place = match.start("label")
            heading = match.start() if "\n" in match[0][: place - match.start()] else place
            if is_denied(place, reply, label) or is_denied(heading, reply, label):
                continue
            if _is_conditional(reply.text[match.end("label") :]):
                continue
            found.append(match.end("label"))
            break
    return Given(min(found), True) if found else None


def in_clause(label: str, reply: Told) -> Given | None:
    """Return where a clause first gives a label and says nothing else; None where none does."""
    if not _ends_a_word(label).search(reply.shown[label]):
        return None
    for match in _giving(label).finditer(reply.shown[label]):
        is_said = any(match[name] for name in ("subject", "thinking", "ending"))
        is_led = bool(match["lead"].strip()) or match["surely"] is not None
        if not (is_said or is_led) or (match["within"] is not None and not match["subject"]):
            continue
        if match["verb_last"] and not match["ending"]:
            continue
        place = match.start("from")
        # "A" in front of a label is another label before it is an article
        named = [one for one in reply.labels if reply.places(one, match.start("lead"), match.start("label"))]
        if named or is_denied(place, reply, label):
            continue
        if match["turn"] and pattern("only").search(
            reply.text[max(0, match.start() - _LOOK_BACK) : match.start()]
        ):
            continue
        if not (is_said or match["turn"]) and pattern("refused").search(reply.text[: match.start()]):
            continue
        rest = re.split(r"[.!?\n;]", reply.text[match.end() :], maxsplit=1)[0]
        if _is_conditional(rest) or _goes_on(label, reply, match.end(), match.end() + len(rest)):
            continue
        return Given(match.end("label"), is_said)
    return None


@lru_cache(MOST_LABELS)
def _contrasting(label: str, others: tuple[str, ...]) -> re.Pattern[str]:
    named = rf"(?: (?i:{words('article')}))?(?: (?i:{words('name')}))? {OPEN}"
    denied = rf"(?i:{words('no_other')}){named}(?:{'|'.join(map(cased, others))}){SHUT},?"
    _, behind = _clause()
    return re.compile(
        rf"(?<!\w){denied} (?i:{words('contrast')}){named[: -len(OPEN)]}(?P<label>{OPEN}{cased(label)}{SHUT})(?i:{behind})"
    )


def contrasted(label: str, reply: Told) -> Given | None:
    """Return where a label is first given against another that is denied: "It's not B but A"; None where it never is."""
    others = tuple(reply.others(label))
    if not others or not pattern("contrast").search(reply.text):
        return None
    for match in _contrasting(label, others).finditer(reply.text):
        rest = re.split(r"[.!?\n;]", reply.text[match.end() :], maxsplit=1)[0]
        if is_denied(match.start(), reply, label) or _is_conditional(rest):
            continue
        if not _goes_on(label, reply, match.end(), match.end() + len(rest)):
            return Given(match.end("label"), True)
    return None


def is_denied(place: int, reply: Told, label: str) -> bool:
    """Say whether a label stands behind a negation or in a supposition, in its own sentence and behind any other label."""
    before = reply.text[max(0, place - _LOOK_BACK) : place]
    ends = deque((match.end() for match in _SENTENCE.finditer(before)), maxlen=1)
    sentence = before[ends[0] :] if ends else before
    sentence = _behind_a_turn(sentence)
    if pattern("supposed").search(sentence):
        return True
    sentence = _behind_a_conclusion(sentence)
    for other in reply.others(label):
        named = deque((m.end() for m in anywhere(other).finditer(sentence)), maxlen=1)
        if named:
            sentence = sentence[named[0] :]
    return pattern("denied").search(sentence) is not None


@cache
def _turns() -> re.Pattern[str]:
    plain = r"(?<!anything)(?<!nothing)(?<!none)(?<!all)\s(?:but|aber|pero)"
    return re.compile(rf"(?:(?:\A|[,;:–—-]\s?)(?:{words('turn')})|{plain})[\s,:]", re.IGNORECASE)


@cache
def _conclusions() -> re.Pattern[str]:
    """Return where a sentence concludes: behind a mark or an "and", or where a clause of its own begins."""
    so = words("so")
    clause = rf"(?:{words('it')}|{words('item')}|i|ich|(?:(?:the|my|die|meine|la|mi) )?(?:{words('answer')}))"
    return re.compile(
        rf"(?:(?:\A|[,;:–—-]\s?|\s(?:and|und|y)\s)(?:{so})[\s,:]|(?<!not)(?<!think)(?<!say)\s(?:{so}) (?={clause}(?!\w)))",
        re.IGNORECASE,
    )


def _behind_a_turn(sentence: str) -> str:
    """Return what follows where a sentence turns away from a doubt: "I cannot tell whether it is A, but"."""
    turns = deque(_turns().finditer(sentence), maxlen=1)
    if not turns:
        return sentence
    before, behind = sentence[: turns[0].start()], sentence[turns[0].end() :]
    is_doubt = pattern("refused").search(before) is not None
    return behind if is_doubt or not pattern("supposed").search(before) else sentence


def _behind_a_conclusion(sentence: str) -> str:
    """Return what follows where a sentence concludes from a reason: "It is not named, so", "Since it has no capital,"."""
    so = deque(_conclusions().finditer(sentence), maxlen=1)
    if so:
        return sentence[so[0].end() :]
    if _begins("since", r"\W{0,4}").match(sentence):
        return sentence.partition(",")[2] or sentence
    return sentence


def _is_conditional(rest: str) -> bool:
    return _begins("supposed", r"[ ,(]{0,3}(?:only )?").match(rest) is not None


def _goes_on(label: str, reply: Told, start: int, end: int) -> bool:
    """Say whether the rest of a sentence names another label, other than to deny it or to give a reason."""
    if _begins("since", r"\W{0,3}").match(reply.text[start:end]):
        return False
    return not are_denied(reply.others(label), reply, start, end)


def are_denied(labels: list[str], reply: Told, start: int, end: int | None = None) -> bool:
    """Say whether labels are named between two places only to deny them: "A. B would be wrong, but not A"."""
    return all(
        is_denied(place, reply, other) for other in labels for place, _ in reply.places(other, start, end)
    )
