"""Texts for language modelling, scrambled in a share of the samples and of their words: FT-RS, FT-KF&Adj, FT-Ori.

Which samples and which words change hangs on the seed and the text alone, and a word changes only where *every* rule of the
training can change it. Trainings of one seed on one source therefore differ in what is done to those words and in nothing
else: the same texts, in the same order, with the same words touched (none in the control).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from stimuli.corpora.source_text import SourceText
from stimuli.errors import UserError, unknown_name
from stimuli.scramble.registry import Operation, checked_rate, parse_operation
from stimuli.scramble.settings import DEFAULT, Draws, Scrambled, ScrambleSettings
from stimuli.scramble.stream import Occurrences
from stimuli.scramble.text import Conditions, OperationSpec
from stimuli.scramble.words import cut, movable_places, nfc
from stimuli.seeds import stable_draws_of
from stimuli.training.held_out import HeldOut
from stimuli.training.records import Passage

FT_RS, FT_KF_ADJ, FT_ORI = "FT-RS", "FT-KF&Adj", "FT-Ori"
PUBLISHED_RULES: Mapping[str, str] = {
    FT_RS: "shuffle:all(min_letters=3)",
    FT_KF_ADJ: "transpose:after_first",
    FT_ORI: "none",
}
"""What is done to a drawn word (Cao et al., 2023, appendix A.4): all letters shuffled; the first kept and two later
neighbours exchanged; nothing, the control."""

SAMPLES, WORDS = 0.6, 0.3
"""Shares of the samples, and of their words with more than two letters, that change (ibid.)."""

LONG = 3
"""Fewest letters of a word that counts ("more than two letters")."""


@dataclass
class Counts:
    """What became of the samples that were read so far."""

    samples: int = 0  # samples; those that the share drew; those in which a word changed
    drawn: int = 0
    changed: int = 0
    left_out: int = 0  # samples that hold texts of the study, which no training sees; not among samples
    words: int = 0  # words of the drawn samples; those with more than two letters
    long_words: int = 0
    # words that the share asks for; those that changed (under the control: that change under the other rules)
    wanted: int = 0
    changed_words: int = 0
    # words with more than two letters that some rule cannot change, by the reason
    cannot_change: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, object]:
        """Return the counts with the shares that they make."""
        return {
            "samples": self.samples,
            "samples_left_out": self.left_out,
            "samples_drawn": self.drawn,
            "share_of_samples_drawn": _share(self.drawn, self.samples),
            "samples_changed": self.changed,
            "words_of_drawn_samples": self.words,
            "words_with_more_than_two_letters": self.long_words,
            "words_wanted": self.wanted,
            "words_changed": self.changed_words,
            "share_of_words_changed": _share(self.changed_words, self.long_words),
            "words_that_cannot_change": dict(sorted(self.cannot_change.items())),
        }


def _share(part: int, of: int) -> float | None:
    return part / of if of else None


class ScrambledTexts:
    """Samples of a training under one rule, matched with the other rules of the same seed and source."""

    def __init__(
        self,
        texts: Iterable[SourceText | str],
        rule: str,
        *,
        seed: int,
        samples: float = SAMPLES,
        words: float = WORDS,
        rules: Mapping[str, OperationSpec] = PUBLISHED_RULES,
        settings: ScrambleSettings = DEFAULT,
        held_out: HeldOut | None = None,
    ) -> None:
        if rule not in rules:
            raise unknown_name("training rule", rule, rules)
        self._texts = texts
        self.rule = rule
        self._seed = seed
        self._samples = checked_rate(samples, "samples")
        self._words = checked_rate(words, "words")
        self._operations = {name: _letters_only(name, given) for name, given in rules.items()}
        self._changing = [name for name, one in self._operations.items() if not one.changes_nothing]
        whole = {name: self._operations[name] for name in self._changing}
        self._conditions = Conditions(whole, replace(settings, eligibility="common")) if whole else None
        self._held_out = held_out
        self.counts = Counts()

    def __iter__(self) -> Iterator[Passage]:
        counts = self.counts = Counts()
        seen = Occurrences()
        for given in self._texts:
            source = given if isinstance(given, SourceText) else SourceText("", given, "")
            plain = nfc(source.text)
            if self._held_out is not None and self._held_out.in_text(plain):
                counts.left_out += 1
                continue
            counts.samples += 1
            draws = Draws(self._seed, plain, seen.before(plain))
            text, changed = self._of_sample(plain, draws, counts)
            told = {"source": source.source, "source_id": source.source_id} if source.source else {}
            yield Passage(text, {**told, "rule": self.rule, "changed_words": changed})

    def _of_sample(self, plain: str, draws: Draws, counts: Counts) -> tuple[str, int]:
        purpose = (draws.seed, "training: which samples")
        number, part = stable_draws_of(2, purpose, draws.item, draws.occurrence)
        if self._conditions is None or number >= self._samples * 2**64:
            return plain, 0
        counts.drawn += 1
        pieces, fixed = cut(plain)
        places = len(pieces) // 2
        long = sum(
            place not in fixed and len(movable_places(word)) >= LONG
            for place, word in enumerate(pieces[1::2])
        )
        every = self._conditions.scrambled(plain, draws, None)
        changes = {change.word: change.shown for change in self._of_rule(every).changes}
        # Up or down by a draw: short samples, each to the nearest, would all miss the share on the same side.
        wanted = int(self._words * long + part / 2**64)
        ranks = draws.numbers(places, "which words")
        chosen = sorted(changes, key=ranks.__getitem__)[:wanted]
        counts.words += places
        counts.long_words += long
        counts.wanted += wanted
        counts.changed_words += len(chosen)
        counts.changed += bool(chosen)
        counts.cannot_change.update(one.reason for one in next(iter(every.values())).left_intact)
        if self.rule not in every:
            return plain, 0
        for word in chosen:
            pieces[2 * word + 1] = changes[word]
        return "".join(pieces), len(chosen)

    def _of_rule(self, every: Mapping[str, Scrambled]) -> Scrambled:
        return every.get(self.rule, every[self._changing[0]])


def _letters_only(name: str, given: OperationSpec) -> Operation:
    operation = parse_operation(given)
    if operation.type.unit != "letter":
        raise UserError(
            f"training rule {name!r} is {operation.name}, which moves {operation.type.unit}s",
            mend="Rules of a training change letters of words, so that all of them can change the same words: "
            "shuffle: all, transpose: after_first, keep: first_and_last …",
        )
    return replace(operation, rate=1.0, texts=1.0)
