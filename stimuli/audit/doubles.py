"""Texts that stand twice: among the test items, and between exemplars or practice and the test items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stimuli.audit.findings import Finding, counted, quoted
from stimuli.audit.grouping import CARRIER, SIMILAR, folded, shown_text
from stimuli.features import bag
from stimuli.item import Item

DUPLICATES, LEAKS = "duplicates", "leaks"
_SHOWN_BEFORE = ("exemplar", "practice")
_FEWEST_WORDS = 3


WITHHELD = "withheld"


@dataclass(frozen=True)
class Double:
    """A text that several items of one set show.

    ``kind`` is ``same`` (the same characters), ``folded`` (the same up to case, spaces and composition) or ``intact``
    (the same before it was changed).
    """

    set_name: str
    kind: str
    text: str
    items: tuple[str, ...]
    answers: tuple[str | None, ...]

    @property
    def contradicts(self) -> bool:
        """Tell whether one text is to be answered in two ways."""
        return self.kind == "same" and len(self.answers) > 1


@dataclass(frozen=True)
class Duplicates:
    """Texts of test items that stand twice."""

    doubles: tuple[Double, ...]

    def findings(self) -> list[Finding]:
        """Name contradictions first, then texts that stand twice, then those that differ in case only."""
        told = []
        for set_name in dict.fromkeys(one.set_name for one in self.doubles):
            own = [one for one in self.doubles if one.set_name == set_name]
            clash = [one.text for one in own if one.contradicts]
            same = [one.text for one in own if one.kind == "same" and not one.contradicts]
            before = [one.text for one in own if one.kind == "intact"]
            near = [one.text for one in own if one.kind == "folded" and len(one.answers) < 2]
            if clash:
                told.append(
                    Finding("grave", DUPLICATES, f"{set_name}: one text under two answers: {quoted(clash)}")
                )
            if same:
                told.append(
                    Finding(
                        "mend",
                        DUPLICATES,
                        f"{set_name}: {counted(len(same), 'text')} shown by several test items: {quoted(same)}",
                    )
                )
            if before:
                told.append(
                    Finding(
                        "mend",
                        DUPLICATES,
                        f"{set_name}: the same intact text in several items: {quoted(before)}",
                    )
                )
            if near:
                told.append(
                    Finding(
                        "look",
                        DUPLICATES,
                        f"{set_name}: {counted(len(near), 'text')} the same but for case or spaces: {quoted(near)}",
                    )
                )
        return told


@dataclass(frozen=True)
class Leak:
    """What an item shown before the test gives away.

    ``kind`` is ``same text``, ``same but for case``, ``same carrier``, ``shared words`` (``overlap`` of them) or
    ``answer in the text``.
    """

    set_name: str
    kind: str
    before: str | None
    test: str
    text: str
    overlap: float | None = None


@dataclass(frozen=True)
class Leaks:
    """Leaks into the test items, and the share of words from which two texts count as near."""

    threshold: float
    compared: int
    leaks: tuple[Leak, ...]

    def findings(self) -> list[Finding]:
        """Name test texts among exemplars as grave; near texts and carriers to be mended."""
        told = []
        levels = {
            "same text": "grave",
            "same but for case": "mend",
            "same carrier": "mend",
            "answer in the text": "mend",
            "shared words": "look",
        }
        for set_name in dict.fromkeys(one.set_name for one in self.leaks):
            for kind, level in levels.items():
                own = [one.text for one in self.leaks if (one.set_name, one.kind) == (set_name, kind)]
                if own:
                    told.append(Finding(level, LEAKS, f"{set_name}: {self._said(kind, own)}"))  # type: ignore[arg-type]
        return told

    def _said(self, kind: str, texts: list[str]) -> str:
        number = counted(len(set(texts)), "test text")
        said = {
            "same text": f"{number} also among the exemplars or practice items",
            "same but for case": f"{number} among the exemplars or practice items but for case or spaces",
            "same carrier": f"{number} made from the carrier of an exemplar or practice item",
            "answer in the text": f"{number} with the right answer, and no other choice, in the text beside it",
            "shared words": f"{number} with {self.threshold:.0%} or more of the words of an exemplar or practice item",
        }
        return f"{said[kind]}: {quoted(list(dict.fromkeys(texts)))}"


def duplicates(items: Sequence[Item]) -> Duplicates:
    """Find texts that several test items of one set show; the conditions of one item are one text each.

    Items whose text is withheld are left aside: their questions may well be the same.
    """
    found: list[Double] = []
    for set_name in dict.fromkeys(item.set_name for item in items):
        own = [
            item for item in items if item.set_name == set_name and item.provenance["operation"] != WITHHELD
        ]
        same = _doubles(set_name, "same", own, [shown_text(item) for item in own])
        known = {one.items for one in same}
        near = _doubles(set_name, "folded", own, [folded(shown_text(item)) for item in own])
        changed = [item for item in own if item.intact]
        before = _doubles(set_name, "intact", changed, [_intact_text(item) for item in changed])
        found += same + [one for one in (*near, *before) if one.items not in known]
    return Duplicates(tuple(found))


def _intact_text(item: Item) -> str:
    return "\n".join(item.intact.get(name, text) for name, text in item.shown.items())


def _doubles(set_name: str, kind: str, items: Sequence[Item], texts: Sequence[str]) -> list[Double]:
    by_text: dict[str, list[Item]] = {}
    for item, text in zip(items, texts, strict=True):
        by_text.setdefault(text, []).append(item)
    found = []
    for text, own in by_text.items():
        ids = tuple(dict.fromkeys(item.item_id for item in own))
        if len(ids) > 1:
            answers = tuple(dict.fromkeys(item.answer for item in own))
            found.append(Double(set_name, kind, text, ids, answers))
    return found


def leaks(items: Sequence[Item], near: float = SIMILAR) -> Leaks | None:
    """Find what exemplars, practice items and questions give away; None where nothing could leak.

    Parameters
    ----------
    items : sequence of Item
        All items, of every role.
    near : float
        Share of different words in common (Jaccard index) from which texts count as near; texts of fewer than three words
        are compared as wholes only.
    """
    test = [item for item in items if item.role == "test"]
    before = [item for item in items if item.role in _SHOWN_BEFORE]
    found = _answers_in_text(test)
    for set_name in dict.fromkeys(item.set_name for item in test):
        own = [item for item in test if item.set_name == set_name]
        earlier = [item for item in before if item.set_name == set_name]
        others = [item for item in before if item.set_name != set_name]
        found += _from_earlier(set_name, own, earlier, others, near)
    could = bool(before) or any(_beside(item) for item in test)
    return Leaks(near, len(before), tuple(found)) if could else None


def _from_earlier(
    set_name: str, test: Sequence[Item], earlier: Sequence[Item], others: Sequence[Item], near: float
) -> list[Leak]:
    exact = {shown_text(item): item for item in (*reversed(others), *reversed(earlier))}
    case = {folded(shown_text(item)): item for item in reversed(earlier)}
    carriers = {
        item.covariates[CARRIER]: item
        for item in reversed(earlier)
        if item.covariates.get(CARRIER) is not None
    }
    bags = [(bag(shown_text(item)), item) for item in earlier]
    found = []
    seen: set[tuple[str, str]] = set()
    for item in test:
        text = shown_text(item)
        if (item.item_id, text) in seen:
            continue
        seen.add((item.item_id, text))
        carrier = carriers.get(item.covariates.get(CARRIER))
        if text in exact:
            found.append(Leak(set_name, "same text", exact[text].item_id, item.item_id, text))
        elif folded(text) in case:
            found.append(Leak(set_name, "same but for case", case[folded(text)].item_id, item.item_id, text))
        elif carrier is not None:
            found.append(Leak(set_name, "same carrier", carrier.item_id, item.item_id, text))
        else:
            share, nearest = _nearest(bag(text), bags)
            if nearest is not None and share >= near:
                found.append(
                    Leak(set_name, "shared words", nearest.item_id, item.item_id, text, round(share, 3))
                )
    return found


def _nearest(words: frozenset[str], bags: Sequence[tuple[frozenset[str], Item]]) -> tuple[float, Item | None]:
    best, nearest = 0.0, None
    if len(words) >= _FEWEST_WORDS:
        for other, item in bags:
            shared = len(words & other)
            if shared and shared / (len(words) + len(other) - shared) > best:
                best, nearest = shared / (len(words) + len(other) - shared), item
    return best, nearest


def _beside(item: Item) -> list[str]:
    """Return the texts that conditions do not change and that stand beside one that they may: questions."""
    if item.answer is None or len(item.shown) < 2:
        return []
    return [text for name, text in item.shown.items() if name not in item.intact]


def _answers_in_text(items: Sequence[Item]) -> list[Leak]:
    found = []
    seen: set[tuple[str, str]] = set()
    for item in items:
        answer = folded(item.answer or "")
        others = [folded(choice) for choice in item.choices or () if choice != item.answer]
        if len(answer) < 3 or (item.set_name, item.item_id) in seen:
            continue
        for text in _beside(item):
            words = f" {' '.join(_words(folded(text)))} "
            if _holds(words, answer) and not any(_holds(words, other) for other in others):
                seen.add((item.set_name, item.item_id))
                found.append(Leak(item.set_name, "answer in the text", None, item.item_id, text))
                break
    return found


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c in "'-" else " " for c in text).split()


def _holds(words: str, phrase: str) -> bool:
    wanted = " ".join(_words(phrase))
    return bool(wanted) and f" {wanted} " in words
