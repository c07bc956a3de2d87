"""Finds the one label in a reply, in English, German or Spanish; doubtful replies are unparsed, never guessed.

A list of labels is an echo of the question only if a colon or a question mark follows it, a question only if it names no label
or several, and a highest rating only on a scale of three or more numbers; everything else is doubtful.

A label is named only if its letters are not part of a longer label or an idiom: "agree" is not named by "strongly agree" if
that is a label too, nor "no" by "no doubt". A clause gives a label only as a whole ("but I think it is B"): introduction,
subject, certainty, label, and allowed continuation. An earlier negation or supposition in the sentence counts against the
label, unless the sentence turns ("I am not sure, but A") or concludes ("It is not named, so no").
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from experiment.parsing.text import WRAPPING, Parsed, fold, tidy, unmarked, words

MOST_LABELS = 4096
"""Labels whose patterns are cached: a study has only a few."""
BLANK = "\N{MIDDLE DOT}"
"""Replaces each letter of text other than the label searched for."""
_BETWEEN = r"[ ,(*_\"'-]{1,4}"
DETERMINERS = r"(?:(?:the|this|that|given|das|dieses|die|diese|la|esta|el|este) ){1,2}"


@dataclass(frozen=True)
class SearchableReply:
    """A reply prepared for the search for labels.

    ``shown``: for each label the text, of the same length, with longer labels that contain it blanked.
    """

    text: str
    labels: tuple[str, ...]
    shown: Mapping[str, str]

    def places(self, label: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
        """Return the positions where a label is named within a range, as (begin, end)."""
        text = self.shown[label][start:end]
        return [(start + m.start(), start + m.end()) for m in _of_label("named", label).finditer(text)]

    def others(self, label: str) -> list[str]:
        """Return the other labels."""
        return [other for other in self.labels if other != label]


def told(reply: str, labels: Sequence[str]) -> SearchableReply:
    """Return a tidy reply with words of longer labels reordered, and idioms that contain a label blanked.

    Only a label that is another with words before or after it is reordered: "agree strongly" becomes "strongly agree".
    """
    together = tuple(labels)
    for turned, label in _turned(together):
        reply = label.join(turned.split(reply))
    if not _have_idioms(together):
        reply = pattern("idiom").sub(_blank, reply)
    return SearchableReply(
        reply, together, {label: _without_longer(reply, label, together) for label in together}
    )


@lru_cache(MOST_LABELS)
def _naming_the_item(label: str) -> re.Pattern[str] | None:
    """Return a pattern for places where a label that is also a noun for items names the item: "the word is", "this word 'garden'"."""
    if re.fullmatch(words("item"), label, re.IGNORECASE) is None:
        return None
    quoted = r"[\"'“„«*_`]{1,3}[^\"'”“»*_`\n]{1,60}[\"'”“»*_`]{1,3}"
    being = rf"(?:{words('being')}|isn't|is|was|looks|seems|appears|cannot|can't|does|has|contains|you|shown|given|above|below)"
    return re.compile(
        rf"(?<!\w){DETERMINERS}(?P<noun>{spelt(label)})(?= {quoted}| {being}(?!\w))", re.IGNORECASE
    )


@lru_cache(MOST_LABELS)
def _turned(labels: tuple[str, ...]) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return patterns of labels of several words in another order, with the label that is meant."""
    patterns = []
    for label in labels:
        for other in labels:
            more = _more(other, label)
            if more is None or _is_negation(more):
                continue
            turned = f"{other} {more}" if fold(label).endswith(fold(other)) else f"{more} {other}"
            if fold(turned) not in map(fold, labels):
                patterns.append((re.compile(rf"(?<!\w){re.escape(turned)}(?!\w)", re.IGNORECASE), label))
    return tuple(patterns)


@lru_cache(MOST_LABELS)
def _have_idioms(labels: tuple[str, ...]) -> bool:
    return any(pattern("idiom").search(label) for label in labels)


def _blank(match: re.Match[str]) -> str:
    return BLANK * len(match[0])


@lru_cache(MOST_LABELS)
def _graded(label: str, labels: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Return patterns of a label with a degree, unlike "agree" "somewhat agree"; none unless a longer label contains it."""
    longer = [more for other in labels if (more := _more(label, other)) is not None]
    if not longer:
        return ()
    degree = "|".join([words("degree"), *(re.escape(more) for more in longer if not _is_negation(more))])
    by_label = rf"(?<!\w){spelt(label)}(?!\w)"
    return tuple(
        re.compile(pattern, re.IGNORECASE)
        for pattern in (
            rf"(?<!\w)(?:{degree}){_BETWEEN}(?:\w+ ){{0,2}}{by_label}",
            rf"{by_label}{_BETWEEN}(?:\w+ ){{0,2}}(?:{degree})(?!\w)",
        )
    )


@lru_cache(MOST_LABELS)
def spelt(label: str) -> str:
    """Return a label as a pattern; "nonword" is also written non-word and non word."""
    return re.sub(r"\A(?i:(non|pseudo))(?=\w)", r"\1[- ]?", re.escape(label))


@lru_cache(MOST_LABELS)
def cased(label: str) -> str:
    """Return a label as a pattern in which a single letter is case-sensitive, because an article is not a label."""
    return spelt(label) if len(label) == 1 else f"(?i:{spelt(label)})"


def flags(label: str) -> re.RegexFlag:
    """Return the flags for patterns of :func:`spelt`."""
    return re.IGNORECASE if len(label) > 1 else re.RegexFlag(0)


_PHRASES: Mapping[str, Callable[[], str]] = {
    # "if I had to guess," before an answer
    "forced": lambda: rf"(?<!\w)(?:{words('if_forced')})(?:[,:] (?=\S)| (?=(?:i|it|my|the answer)(?!\w)))",
    "question": lambda: (
        rf"\A[\s>*_\"'#-]{{0,4}}(?:(?:{words('asking')})(?= )|¿)[^.!?\n:;]{{4,300}}\?[\"'*_]{{0,3}}\s+(?=\S)"
    ),
    "answering": lambda: (
        rf"(?<!\w)(?:{words('answer')})[\"'*_`]{{0,4}}(?: (?:is|ist|lautet|es))?\s?[:=]?[\"'*_`]{{0,4}}\s?"
    ),
    "turning": lambda: (
        rf"(?:(?:\A|[,;:–—-]\s?)(?:{words('turn')})|(?<!anything)(?<!nothing)(?<!none)(?<!all)\s(?:but|aber|pero))[\s,:]"
    ),
    # after punctuation or an "and", or where a separate clause begins
    "concluding": lambda: (
        rf"(?:(?:\A|[,;:–—-]\s?|\s(?:and|und|y)\s)(?:{words('so')})[\s,:]|(?<!not)(?<!think)(?<!say)\s(?:{words('so')}) "
        rf"(?=(?:{words('it')}|{words('item')}|i|ich|(?:(?:the|my|die|meine|la|mi) )?(?:{words('answer')}))(?!\w)))"
    ),
    # "Answer: No, I cannot tell"
    "excuse": lambda: rf"[ ,:*–—-]{{1,6}}(?:{words('refused')})(?!\w)",
    "only declining": lambda: rf"\W*(?:{words('refused')})(?: (?:{words('declining')}))?\W*",
    # one that does not retract an answer: "A, but I am not sure"
    "doubt": lambda: (
        rf"(?<!\w)(?:(?:{words('turn')}|{words('since')}) (?:{words('unsure')})"
        rf"|(?:{words('unsure')}),? (?:though|however|aber|jedoch))(?!\w)"
    ),
}


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Return a phrase, or else a kind of words, as a pattern."""
    source = _PHRASES[name]() if name in _PHRASES else rf"(?<!\w)(?:{words(name)})(?!\w)"
    return re.compile(source, re.IGNORECASE)


def _is_negation(more: str) -> bool:
    return pattern("denied").search(more) is not None or pattern("nay").search(more) is not None


def _more(label: str, longer: str) -> str | None:
    """Return the words that a longer label adds before or after another; None if it does not contain it so."""
    short, other = fold(label), fold(longer)
    if other.endswith(f" {short}"):
        return other[: -len(short) - 1]
    return other[len(short) + 1 :] if other.startswith(f"{short} ") else None


def _without_longer(reply: str, label: str, labels: tuple[str, ...]) -> str:
    item = _naming_the_item(label)
    if item is not None:
        reply = item.sub(lambda match: match[0][: -len(match["noun"])] + BLANK * len(match["noun"]), reply)
    for longer in _longer(label, labels):
        reply = longer.sub(_blank, reply)
    return reply


@lru_cache(MOST_LABELS)
def _longer(label: str, labels: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of longer labels that contain a label."""
    patterns = []
    for other in labels:
        spellings = (other, re.sub(r"\A(non|pseudo)(?=\w)", r"\1 ", other, flags=re.IGNORECASE))
        within = rf"(?<!\w){re.escape(label)}(?!\w)"
        if other != label and any(
            len(spelling) > len(label) and re.search(within, spelling, flags(label)) for spelling in spellings
        ):
            patterns.append(re.compile(rf"(?<!\w){spelt(other)}(?!\w)", flags(other)))
    return tuple(patterns)


OPEN = r"[\"'“„«(\[*_`$「『（]{0,4}"
SHUT = r"[\"'”“»)\]*_`$」』）]{0,4}"
_SENTENCE = re.compile(r"[.!?\n;。！？；؟۔।]")
_LOOK_BACK = 300
"""Characters before a label that are searched for a negation: about a sentence."""
_END = r"\s?(?:[.!\n}\]。．！۔।]|$)"


_QUOTED = r"[\"'“„«*_`]{1,3}[^\"'”“»*_`\n]{1,60}[\"'”“»*_`]{1,3}"


@dataclass(frozen=True)
class GivenLabel:
    """Position where a label is first given, and whether it is stated ("the answer is", "I think") rather than given alone."""

    end: int
    is_said: bool


@cache
def _begins(name: str, before: str) -> re.Pattern[str]:
    """Return the pattern of a kind of words after a prefix at the beginning of a text."""
    return re.compile(rf"{before}(?:{words(name)})(?!\w)", re.IGNORECASE)


@cache
def mark() -> str:
    """Return a pattern of what may follow a given label: punctuation, brackets up to the sentence's end, or a reason."""
    brackets = r"\s?\([^()\n]{1,200}\)\s?(?:[.!\n]|$)"
    return rf"(?:\s?(?:[.,;:)\]}}!\n。．、，：；！）؛،۔।]|$|[-–—] )|{brackets}| (?i:{words('since')})(?!\w))"


@cache
def _announcements() -> tuple[tuple[str, str], ...]:
    """Return patterns of what precedes an announced label, each with what may follow it."""
    answer, name, link = words("answer"), words("name"), rf"(?: (?:{words('link')})){{0,4}}"
    quotes = r"[\"'*_`]{0,4}"
    participle = rf"(?: (?:{words('asked')}))?"
    return (
        (
            rf"(?<!\w)(?:{answer}){quotes}{participle}{link}{quotes}\s?[:=]?{quotes}{link}(?: (?:{name}))?\s{{0,4}}",
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
    """Return patterns of what precedes and follows the label in a clause that only gives it."""
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


_OF_LABEL: Mapping[str, Callable[[str], str]] = {
    "named": lambda label: rf"(?<![\w-]){spelt(label)}(?!\w)",
    "anywhere": lambda label: rf"(?<!\w){spelt(label)}(?!\w)",
    # every text that gives a label matches; testing it first avoids the slow patterns for most texts
    "ends a word": lambda label: rf"{spelt(label)}(?![^\W_])",
    "before a mark": lambda label: rf"{OPEN}{spelt(label)}{SHUT}(?={mark()})",
    # "Word: garden"
    "heading": lambda label: rf"\W*{spelt(label)}{SHUT}\s?[:：]\W*\w[\w'-]*\W*",
    "beginning of a line": lambda label: rf"[-*•>\s]{{0,4}}{OPEN}{spelt(label)}{SHUT}{mark()}",
    # in a list of options: (B) text
    "listed": lambda label: rf"(?:^|\s)\(?{spelt(label)}\)\s\w",
    # before a decision: "Group B: lines without"
    "explained": lambda label: rf"(?<!\w)(?i:{words('name')}) {spelt(label)}\s?:",
    # "Based on the rule, A", "Of course! Yes"
    "closing": lambda label: rf"[,:;.!–—-]\s?{OPEN}{spelt(label)}{SHUT}[.!]?\s*\Z",
    # like a truncated sentence
    "open end": lambda label: rf"(?<!\w){spelt(label)}\s*\Z",
}
"""Patterns of a label in its surroundings."""


@lru_cache(len(_OF_LABEL) * MOST_LABELS)
def _of_label(name: str, label: str) -> re.Pattern[str]:
    return re.compile(_OF_LABEL[name](label), flags(label))


def announced(label: str, reply: SearchableReply) -> GivenLabel | None:
    """Return where a label is first announced; None if never, or only after a negation or in a supposition."""
    if not _of_label("ends a word", label).search(reply.shown[label]):
        return None
    ends = []
    for announcing in _announcing(label):
        for match in announcing.finditer(reply.shown[label]):
            place = match.start("label")
            heading = match.start() if "\n" in match[0][: place - match.start()] else place
            if is_denied(place, reply, label) or is_denied(heading, reply, label):
                continue
            if _is_conditional(reply.text[match.end("label") :]):
                continue
            ends.append(match.end("label"))
            break
    return GivenLabel(min(ends), True) if ends else None


def in_clause(label: str, reply: SearchableReply) -> GivenLabel | None:
    """Return where a clause first gives a label and nothing else; None if none does."""
    if not _of_label("ends a word", label).search(reply.shown[label]):
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
        named = [
            label for label in reply.labels if reply.places(label, match.start("lead"), match.start("label"))
        ]
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
        return GivenLabel(match.end("label"), is_said)
    return None


@lru_cache(MOST_LABELS)
def _contrasting(label: str, others: tuple[str, ...]) -> re.Pattern[str]:
    named = rf"(?: (?i:{words('article')}))?(?: (?i:{words('name')}))? {OPEN}"
    denied = rf"(?i:{words('no_other')}){named}(?:{'|'.join(map(cased, others))}){SHUT},?"
    _, behind = _clause()
    return re.compile(
        rf"(?<!\w){denied} (?i:{words('contrast')}){named[: -len(OPEN)]}(?P<label>{OPEN}{cased(label)}{SHUT})(?i:{behind})"
    )


def contrasted(label: str, reply: SearchableReply) -> GivenLabel | None:
    """Return where a label is first given in contrast to a negated one: "It's not B but A"; None if never."""
    others = tuple(reply.others(label))
    if not others or not pattern("contrast").search(reply.text):
        return None
    for match in _contrasting(label, others).finditer(reply.text):
        rest = re.split(r"[.!?\n;]", reply.text[match.end() :], maxsplit=1)[0]
        if is_denied(match.start(), reply, label) or _is_conditional(rest):
            continue
        if not _goes_on(label, reply, match.end(), match.end() + len(rest)):
            return GivenLabel(match.end("label"), True)
    return None


def is_denied(place: int, reply: SearchableReply, label: str) -> bool:
    """Return whether a label follows a negation or is in a supposition, within its sentence and after any other label."""
    before = reply.text[max(0, place - _LOOK_BACK) : place]
    ends = deque((match.end() for match in _SENTENCE.finditer(before)), maxlen=1)
    sentence = before[ends[0] :] if ends else before
    sentence = _behind_a_turn(sentence)
    if pattern("supposed").search(sentence):
        return True
    sentence = _behind_a_conclusion(sentence)
    for other in reply.others(label):
        named = deque((m.end() for m in _of_label("anywhere", other).finditer(sentence)), maxlen=1)
        if named:
            sentence = sentence[named[0] :]
    return pattern("denied").search(sentence) is not None


def _behind_a_turn(sentence: str) -> str:
    """Return what follows a sentence's turn from a doubt: "I cannot tell whether it is A, but"."""
    turns = deque(pattern("turning").finditer(sentence), maxlen=1)
    if not turns:
        return sentence
    before, behind = sentence[: turns[0].start()], sentence[turns[0].end() :]
    is_doubt = pattern("refused").search(before) is not None
    return behind if is_doubt or not pattern("supposed").search(before) else sentence


def _behind_a_conclusion(sentence: str) -> str:
    """Return what follows a sentence's conclusion from a reason: "It is not named, so", "Since it has no capital,"."""
    so = deque(pattern("concluding").finditer(sentence), maxlen=1)
    if so:
        return sentence[so[0].end() :]
    if _begins("since", r"\W{0,4}").match(sentence):
        return sentence.partition(",")[2] or sentence
    return sentence


def _is_conditional(rest: str) -> bool:
    return _begins("supposed", r"[ ,(]{0,3}(?:only )?").match(rest) is not None


def _goes_on(label: str, reply: SearchableReply, start: int, end: int) -> bool:
    """Return whether the rest of a sentence names another label, except to deny it or to give a reason."""
    if _begins("since", r"\W{0,3}").match(reply.text[start:end]):
        return False
    return not are_denied(reply.others(label), reply, start, end)


def are_denied(labels: list[str], reply: SearchableReply, start: int, end: int | None = None) -> bool:
    """Return whether labels are named in a range only to deny them: "A. B would be wrong, but not A"."""
    return all(
        is_denied(place, reply, other) for other in labels for place, _ in reply.places(other, start, end)
    )


def parse_label(reply: str | None, labels: Sequence[str], options: Sequence[str] | None = None) -> Parsed:
    """Return the one label in a reply; the text of the option that a lettered label stands for counts as its label."""
    if reply is None or not reply.strip():
        return Parsed(None, "empty")
    reply = unmarked(tidy(reply).replace("’", "'"))
    whole = _whole(reply, labels)
    if whole is not None:
        return Parsed(whole, "valid")
    searchable = told(without_echo(pattern("forced").sub("", reply), labels), labels)
    whole = _whole(searchable.text, labels)
    parsed = Parsed(whole, "valid") if whole is not None else _found(searchable, options or ())
    graded = () if parsed.value is None else _graded(parsed.value, searchable.labels)
    if any(degree.search(searchable.shown[str(parsed.value)]) for degree in graded):
        return Parsed(None, "unparsed")
    return parsed


def _found(searchable: SearchableReply, options: Sequence[str]) -> Parsed:
    """Return the label in a reply with additional text."""
    given: dict[str, tuple[int, bool]] = {}
    for label in searchable.labels:
        ways = (announced(label, searchable), in_clause(label, searchable), contrasted(label, searchable))
        places = [way for way in ways if way is not None]
        first = _stands_first(label, searchable)
        # a common word can be the heading of one other word
        is_heading = _is_everyday(label) and _of_label("heading", label).fullmatch(searchable.text)
        if first is None or is_heading:
            first = _closes_alone(label, searchable)
        ends = [place.end for place in places] + ([] if first is None else [first])
        if ends:
            given[label] = min(ends), any(place.is_said for place in places)
    if len(given) == 1:
        ((label, (end, is_said)),) = given.items()
        return _only(label, searchable, end, is_said=is_said)
    if given:
        return Parsed(None, "unparsed")
    worded = _by_option(searchable.text, searchable.labels, options)
    if worded is not None:
        return Parsed(worded, "valid")
    if pattern("refused").search(searchable.text):
        return Parsed(None, "refused")
    mentioned = [label for label in searchable.labels if searchable.places(label)]
    if len(mentioned) == 1:
        (label,) = mentioned
        around = _of_label("anywhere", label).sub(" ", searchable.shown[label])
        if any(pattern(name).search(around) for name in ("denied", "supposed")):
            return Parsed(None, "unparsed")
        # words that are common in sentences ("no", "yes", "true") give no answer in passing
        tells = all(len(label) >= 4 and not _is_everyday(label) for label in searchable.labels)
        if tells or _of_label("closing", label).search(searchable.text):
            return Parsed(label, "valid")
    return Parsed(None, "unparsed")


_NEGATIVE = re.compile(r"[-−]\d")


def is_whole(label: str, reply: str) -> bool:
    """Return whether a reply is only a label, apart from marks around it."""
    return _whole(unmarked(tidy(reply)), [label]) is not None


def ends_open(label: str, reply: str) -> bool:
    """Return whether a reply ends with a label without punctuation, like a truncated sentence."""
    return _of_label("open end", label).search(reply) is not None


def _whole(reply: str, labels: Sequence[str]) -> str | None:
    """Return the label that equals a reply, ignoring marks around it and hyphens in it."""
    if (bare := reply.strip(WRAPPING)) in labels:
        return bare
    folded = fold(bare)
    if _NEGATIVE.match(folded) and folded not in labels:
        return None
    exact = {fold(label.strip(WRAPPING) or label): label for label in labels}
    if folded in exact:
        return exact[folded]
    joined: dict[str, list[str]] = {}
    for name, label in exact.items():
        joined.setdefault(name.replace("-", "").replace(" ", ""), []).append(label)
    same = joined.get(folded.replace("-", "").replace(" ", ""), [])
    return same[0] if len(same) == 1 and len(folded) > 1 else None


def _only(label: str, searchable: SearchableReply, end: int, *, is_said: bool) -> Parsed:
    """Return the only label given, unless the reply doubts it, retracts it or names another as well."""
    others = searchable.others(label)
    rest = searchable.text[end:]
    named = [other for other in others if searchable.places(other, end)]
    undenied = not are_denied(named, searchable, end)
    if named and pattern("corrected").search(rest) and undenied:
        return Parsed(None, "unparsed")
    brackets = re.match(r"\s?\([^()\n]{1,200}\)", rest)
    if brackets is not None and not are_denied(others, searchable, end, end + brackets.end()):
        return Parsed(None, "unparsed")
    lines = [line.strip() for line in searchable.text.split("\n") if line.strip()]
    last = re.split(r"[.!?;:,] |\n", searchable.text.strip())[-1]
    if any(fold(text.strip(WRAPPING)) == fold(other) for other in others for text in (lines[-1], last)):
        return Parsed(None, "unparsed")
    if any(_of_label("explained", other).search(rest) or _is_possible(other, rest) for other in named):
        return Parsed(None, "unparsed")
    if _declines_in_the_end(rest):
        return Parsed(None, "refused")
    beginnings = [_of_label("beginning of a line", other) for other in named]
    begins_a_line = any(beginning.match(line) for beginning in beginnings for line in lines[1:])
    if is_said and not _begins_with_excuse(label, rest):
        is_below = "\n" in searchable.text[:end].rstrip() and begins_a_line
        return Parsed(None, "unparsed") if is_below else Parsed(label, "valid")
    if named and not re.search(r"\w", _without_labels(rest, searchable.labels)):
        return Parsed(None, "unparsed")
    if begins_a_line or any(_of_label("listed", other).search(rest) for other in named):
        return Parsed(None, "unparsed")
    if pattern("refused").search(pattern("doubt").sub("", rest)):
        return Parsed(None, "refused")
    return Parsed(label, "valid")


def _is_possible(label: str, rest: str) -> bool:
    """Return whether text after an answer considers another label possible: "A, or perhaps B", "A. But it could be B"."""
    joined, possible = _possibly(label)
    return joined.match(rest) is not None or possible.search(rest) is not None


@lru_cache(MOST_LABELS)
def _possibly(label: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    near = rf"[^\w.!?\n;]+(?:\w+ ){{0,2}}{OPEN}{cased(label)}(?!\w)"
    joined = rf"[^\w.!?\n;]{{1,6}}(?i:{words('or')}){near}"
    return re.compile(joined), re.compile(rf"(?<!\w)(?i:{words('possible')}){near}")


def _declines_in_the_end(rest: str) -> bool:
    """Return whether a reply's last sentence only declines: "The text says it is A. I cannot tell."."""
    parts = re.split(r"[.!?\n;]", rest.rstrip(WRAPPING))
    last = next((part for part in reversed(parts) if part.strip()), "")
    return len(parts) > 1 and pattern("only declining").fullmatch(pattern("doubt").sub("", last)) is not None


def _begins_with_excuse(label: str, rest: str) -> bool:
    """Return whether text after an answer declines at once: "Answer: No, I cannot tell"."""
    rest = pattern("doubt").sub("", rest)
    if pattern("excuse").match(rest):
        return True
    sentences = re.split(r"[.!?\n;]+", rest, maxsplit=2)
    is_nay = re.fullmatch(words("nay"), fold(label)) is not None
    return is_nay and any(pattern("refused").search(sentence) for sentence in sentences[:2])


def _stands_first(label: str, searchable: SearchableReply) -> int | None:
    """Return where a label ends that is alone on the first line, or begins it before punctuation; None otherwise."""
    text = searchable.shown[label]
    begin = len(text) - len(text.lstrip())
    first = text[begin:].split("\n", 1)[0].rstrip()
    if fold(first.strip(WRAPPING)) == fold(label.strip(WRAPPING) or label):
        return begin + len(first)
    match = _of_label("before a mark", label).match(first)
    return None if match is None else begin + match.end()


def _closes_alone(label: str, searchable: SearchableReply) -> int | None:
    """Return where a label ends that is alone on the last line of a reply that does not decline; None otherwise."""
    above, _, last = searchable.shown[label].rstrip().rpartition("\n")
    if fold(last.strip(WRAPPING)) != fold(label.strip(WRAPPING) or label) or (
        len(label) == 1 and label not in last
    ):
        return None
    if above.rstrip().endswith((":", ",")) or pattern("refused").search(above):
        return None
    return len(searchable.shown[label].rstrip())


@lru_cache(MOST_LABELS)
def _is_everyday(label: str) -> bool:
    return re.fullmatch(words("everyday"), fold(label)) is not None


def _without_labels(rest: str, labels: Sequence[str]) -> str:
    """Return text without labels and conjunctions: empty of "A, B", "A. And B"."""
    for label in labels:
        rest = _of_label("anywhere", label).sub(" ", rest)
    return pattern("and").sub(" ", rest)


def _by_option(reply: str, labels: Sequence[str], options: Sequence[str]) -> str | None:
    """Return the label whose option's own text equals or is announced by a reply."""
    lines = [line for line in reply.split("\n") if line.strip()]
    if not options:
        return None
    last = deque(pattern("answering").finditer(reply), maxlen=1)
    announced = [reply[match.end() :].split("\n")[0] for match in last]
    folded = {fold(text.strip(WRAPPING)) for text in (*announced, reply, *lines[:1], *lines[-1:])}
    matching = [
        label
        for label, option in zip(labels, options, strict=False)
        if fold(option.strip(WRAPPING) or option) in folded
    ]
    return matching[0] if len(matching) == 1 else None


_MARKS = r"[\"'*_`>#-]{0,4}"
_DASH = r"\s?[-–—]\s?"
_FEWEST_RATINGS = 3


def without_echo(reply: str, labels: Sequence[str]) -> str:
    """Return a tidy reply without an echo of the question's labels and scale, and with "4 out of 5" as "4".

    If nothing would be left, the reply is returned unchanged.
    """
    together = tuple(labels)
    asks, tells = "?" in reply, ":" in reply
    if asks and (question := pattern("question").match(reply)) is not None:
        named = sum(_of_label("anywhere", label).search(question[0]) is not None for label in together)
        reply = reply if named == 1 else reply[question.end() :]
    if asks or tells:
        reply = _unlisted(_listed(together), reply)
    ratings = _ratings(together)
    if ratings is not None:
        scale, share = ratings
        if "-" in reply or "–" in reply or scale.search(reply):
            reply = _unlisted(scale, reply)
        reply = share.sub(r"\g<rating>", reply)
    return reply


def _unlisted(echo: re.Pattern[str], reply: str) -> str:
    left = echo.sub(r"\g<before>", reply)
    return left if re.search(r"\w", left) else reply


@lru_cache(MOST_LABELS)
def _listed(labels: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern of several offered labels, at the beginning of a line or after the name of the answer."""
    label_pattern = rf"[\"'*_`(]{{0,3}}(?:{'|'.join(cased(label) for label in sorted(labels, key=len, reverse=True))})[\"'*_`)]{{0,3}}"
    offered = rf"\(?{label_pattern}(?:\s?(?:,? (?i:{words('or')}) |[,/|])\s?{label_pattern})+\)?"
    answer = rf"(?i:{words('answer')})[\"'*_]{{0,3}} ?"
    before = rf"(?P<before>^[ ]?{_MARKS}(?:{answer})?|(?<!\w){answer}(?=\())"
    return re.compile(rf"{before}{offered}[\"'*_]{{0,3}}\s?[:?][\"'*_]{{0,3}}[ \n]{{0,2}}", re.MULTILINE)


@lru_cache(MOST_LABELS)
def _ratings(labels: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]] | None:
    """Return patterns of the scale's name and of a rating followed by the highest; None unless labels are a numeric scale."""
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
