"""Training sets: scrambled texts for language modelling, and labelled texts of H-TEST tasks.

Training texts that match a test text are excluded. A/B texts match if they have the same words in any order, with any capitals,
marks and notation of numbers and operations, and rhymes if they share a couple. Running text matches if a sample is one of the
texts, or has a sequence of words in common with one.

Sources are plain text, JSON Lines with a field, Parquet and Arrow (Wikipedia as stored by the package ``datasets``), a folder
of any of these, and the output of WikiExtractor (files ``wiki_00`` with ``<doc>`` or with JSON lines).

Which samples are used and which words change depends only on the seed and the text, and a word changes only if *every* rule of
the training runs can change it. Runs with one seed and source therefore differ only in what is done to those words: they have
the same texts, in the same order, with the same changed words (none in the control).
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stimuli.corpora.corpus import SourceText, json_lines, json_rows
from stimuli.errors import UserError, missing_column, unknown_name
from stimuli.htest.released import LABELS, RELEASED_TASKS
from stimuli.htest.rules import data, plain_words, rule
from stimuli.recipes.htest import GeneratedItem, generate
from stimuli.scramble.conditions import DEFAULT, TextRandom
from stimuli.scramble.text import Occurrences, ScrambleConditions
from stimuli.scramble.types import checked_rate, parse_operation
from stimuli.seeds import stable_draws_of, stable_seed
from stimuli.words import cut, movable_places, nfc

Record = dict[str, Any]
"""A line of a training file: a text whose every token is predicted, or a prompt with the reply to learn; and its provenance."""


ROW = 13
"""Words in a row that tell that a sample holds a study's text (as for contamination in Brown et al., 2020)."""
_FEWEST = 8
"""Smallest number of words for which a whole text is searched for inside samples; a few words occur in many texts by chance."""
_PARTED = re.compile(r"[\W_]+")

Key = tuple[str, ...]


def word_keys(text: str, task: str | None = None) -> set[Key]:
    """Return what two A/B texts have in common when one is a near copy of the other."""
    keys = {_key(text)}
    if task == "rhyme":
        keys |= {_key(part) for part in text.split(",")}
    return {key for key in keys if key}


def barred_keys(task: str, held_out: Iterable[str], of_other_tasks: Iterable[str] = ()) -> set[Key]:
    """Return what no line of a training set of a task may have in common with a study's texts."""
    keys_of_test_texts = (word_keys(text, task) for text in held_out)
    return set().union(*keys_of_test_texts, *(word_keys(text) for text in of_other_tasks))


def _key(text: str) -> Key:
    with_operations = _operations().sub(lambda match: f" {_OPERATIONS[match[0].strip()]} ", text.casefold())
    words = _PARTED.split(" ".join(plain_words(with_operations)))
    return tuple(sorted(_digits().get(word, word) for word in words if word))


_OPERATIONS = {
    way: f"operation{place}"
    for place, ways in enumerate(
        (
            ("plus", "+"),
            ("minus", "-", "−"),
            ("times", "multiplied by", "*", "×"),
            ("divided by", "over", "/", "÷"),
            ("modulo", "percent", "%"),
            ("equal to", "equals", "equals to", "="),
            ("approximately equal to", "≈"),
            ("less than", "smaller than", "<"),
            ("greater than", "more than", "larger than", ">"),
            ("to the power of", "power of", "^"),
        )
    )
    for way in ways
}
"""Ways to write an operation, under one name for all that mean the same."""


@functools.cache
def _operations() -> re.Pattern[str]:
    ways = "|".join(map(re.escape, sorted(_OPERATIONS, key=len, reverse=True)))
    return re.compile(rf"(?<!\S)(?:{ways})(?!\S)")


@functools.cache
def _digits() -> dict[str, str]:
    words: list[str] = data("numbers")["number_words"]
    # Up to twenty a word's place is its value; the tens and powers stand behind in their order.
    values = [*range(21), *range(30, 100, 10), 100, 1000, 10**6, 10**9]
    return {word: str(value) for word, value in zip(words, values, strict=True)}


class HeldOut:
    """Texts of a study that samples of running text, prompts and replies must not hold."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._whole: set[Key] = set()
        self._rows: dict[int, set[int]] = {}
        for text in texts:
            words = _running_words(text)
            if not words:
                continue
            self._whole.add(words)
            if len(words) >= _FEWEST:
                size = min(ROW, len(words))
                self._rows.setdefault(size, set()).update(map(hash, _rows(words, size)))

    def in_text(self, text: str) -> bool:
        """Return whether a sample is one of the texts, or has 13 words in a row of one (a shorter one of 8 or more words: all)."""
        words = _running_words(text)
        return words in self._whole or self._has_row(words)

    def in_prompt(self, text: str) -> bool:
        """Return whether a prompt or a reply has one of the texts as a separate line, with or without a caption, or a row of one."""
        return self._has_row(_running_words(text)) or any(
            _running_words(part) in self._whole
            for line in text.splitlines()
            for part in (line, line.partition(":")[2])
        )

    def _has_row(self, words: Key) -> bool:
        return any(hash(row) in hashes for size, hashes in self._rows.items() for row in _rows(words, size))


def _running_words(text: str) -> Key:
    return tuple(word for word in _PARTED.split(text.casefold()) if word)


def _rows(words: Key, size: int) -> Iterator[Key]:
    return (words[begin : begin + size] for begin in range(len(words) - size + 1))


_WIKI = re.compile(r"wiki_\d+")
_DOC = re.compile(r"<doc\b(?P<attributes>[^>]*)>\s*")
_ID = re.compile(r'\bid="(?P<id>[^"]*)"')
_ABOUT_A_DATA_SET = {"dataset_info.json", "dataset_dict.json", "state.json"}
_ROWS_AT_ONCE = 256
_BYTE_ORDER_MARK = "\ufeff"
_KNOWN = "texts (.txt), JSON Lines (.jsonl, .ndjson, .json), Parquet (.parquet), Arrow (.arrow) or WikiExtractor's wiki_00"


@dataclass(frozen=True)
class TextFiles:
    """Texts of files and folders; each time it is gone through, the files are read again, with flat memory."""

    paths: tuple[Path, ...]  # files, or folders whose files of a known kind count, in the order of names
    field: str = "text"  # which field of a row holds the text

    def __post_init__(self) -> None:
        if not self.paths:
            raise UserError("no file of texts is given", mend="Give a file or a folder with texts.")

    def files(self) -> list[tuple[Path, bool]]:
        """Return the files that are read, each with whether it was found in a folder."""
        files: list[tuple[Path, bool]] = []
        for path in self.paths:
            if path.is_file():
                if _reader(path) is None:
                    raise UserError(f"{path} is of no known kind", mend=f"Known: {_KNOWN}.")
                files.append((path, False))
            elif path.is_dir():
                in_folder = sorted(file for file in path.rglob("*") if file.is_file() and _reader(file))
                if not in_folder:
                    raise UserError(f"{path} holds no texts", mend=f"Known: {_KNOWN}.")
                files += [(file, True) for file in in_folder]
            else:
                raise UserError(f"{path} does not exist", mend="Give a file or a folder with texts.")
        return files

    def __iter__(self) -> Iterator[SourceText]:
        for file, in_folder in self.files():
            read = _reader(file)
            assert read is not None
            for source_id, text in read(file, self, in_folder):
                if text.strip():
                    yield SourceText(source_id, text, file.name)


_Reader = Callable[[Path, TextFiles, bool], Iterable[tuple[str, str]]]


def _reader(file: Path) -> _Reader | None:
    if file.name in _ABOUT_A_DATA_SET or file.name.startswith("."):
        return None
    if _WIKI.fullmatch(file.name):
        return _wiki
    return _READERS.get(file.suffix.lower())


def _plain(file: Path, asked: TextFiles, in_folder: bool) -> Iterator[tuple[str, str]]:
    if in_folder:
        yield file.stem, "".join(line for _, line in _lines(file))
        return
    gathered: list[str] = []
    begin = 0
    for number, line in _lines(file):
        text = line.rstrip("\n")
        if text.strip():
            begin = begin if gathered else number
            gathered.append(text)
        elif gathered:
            yield f"{file.stem}, line {begin}", "\n".join(gathered)
            gathered = []
    if gathered:
        yield f"{file.stem}, line {begin}", "\n".join(gathered)


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    with file.open("rb") as stream:
        for number, raw in enumerate(stream, 1):
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError:
                raise UserError(f"{file}, line {number}: not UTF-8", mend="Save the file as UTF-8.") from None
            line = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
            yield number, line.replace("\r\n", "\n")


def _json(file: Path, asked: TextFiles, in_folder: bool) -> Iterator[tuple[str, str]]:
    for number, row in json_rows(file):
        if isinstance(row, UserError):
            raise row
        yield _of_row(row, asked.field, f"{file}, line {number}", f"{file.stem}, line {number}")


def _of_row(row: Mapping[str, Any], field: str, where: str, named: str) -> tuple[str, str]:
    if field not in row:
        raise _no_field(where, field, row)
    text = row[field]
    if text is not None and not isinstance(text, str):
        raise UserError(f"{where}: {field!r} is {text!r}, not a text", mend="Name the field with the text.")
    row_id = row.get("id")
    return (str(row_id) if isinstance(row_id, str | int) else named), text or ""


def _no_field(where: str, field: str, there: Iterable[str]) -> UserError:
    error = missing_column(where, field, there)
    return UserError(error.message, mend=f"{error.mend} Name the field with the text: field: NAME.")


def _parquet(file: Path, asked: TextFiles, in_folder: bool) -> Iterator[tuple[str, str]]:
    from pyarrow import ArrowInvalid
    from pyarrow.parquet import ParquetFile

    try:
        table = ParquetFile(file)
        names = table.schema_arrow.names
        columns = _columns(file, asked.field, names)
        yield from _of_batches(file, asked.field, table.iter_batches(_ROWS_AT_ONCE, columns=columns))
    except (ArrowInvalid, OSError) as error:
        raise UserError(f"{file} cannot be read as Parquet: {error}", mend=_AGAIN) from None


def _arrow(file: Path, asked: TextFiles, in_folder: bool) -> Iterator[tuple[str, str]]:
    import pyarrow

    try:
        with pyarrow.memory_map(str(file)) as mapped:
            try:
                stream = pyarrow.ipc.open_stream(mapped)
            except pyarrow.ArrowInvalid:
                whole = pyarrow.ipc.open_file(mapped)
                batches = (whole.get_batch(place) for place in range(whole.num_record_batches))
                names = whole.schema.names
            else:
                batches, names = iter(stream), stream.schema.names
            columns = _columns(file, asked.field, names)
            parts = (
                batch.select(columns).slice(begin, _ROWS_AT_ONCE)
                for batch in batches
                for begin in range(0, batch.num_rows, _ROWS_AT_ONCE)
            )
            yield from _of_batches(file, asked.field, parts)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise UserError(f"{file} cannot be read as Arrow: {error}", mend=_AGAIN) from None


_AGAIN = "Is the file cut off? Get it again and compare its size."


def _columns(file: Path, field: str, there: list[str]) -> list[str]:
    if field not in there:
        raise _no_field(str(file), field, there)
    return [field, "id"] if "id" in there and field != "id" else [field]


def _of_batches(file: Path, field: str, batches: Iterable[Any]) -> Iterator[tuple[str, str]]:
    number = 0
    for batch in batches:
        for row in batch.to_pylist():
            number += 1
            yield _of_row(row, field, f"{file}, row {number}", f"{file.stem}, row {number}")


def _wiki(file: Path, asked: TextFiles, in_folder: bool) -> Iterator[tuple[str, str]]:
    with file.open("rb") as stream:
        if stream.read(1) == b"{":
            yield from _json(file, asked, in_folder)
            return
    gathered: list[str] | None = None
    article = ""
    for number, line in _lines(file):
        if opened := _DOC.match(line):
            article_id = _ID.search(opened["attributes"])
            article = article_id["id"] if article_id else f"{file.name}, line {number}"
            gathered = []
        elif line.startswith("</doc>"):
            if gathered is not None:
                yield article, "".join(gathered).strip("\n")
            gathered = None
        elif gathered is not None:
            gathered.append(line)
    if gathered is not None:
        raise UserError(f"{file}: the article {article!r} has no </doc>", mend=_AGAIN)


_READERS: Mapping[str, _Reader] = {
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _json),
    **{".txt": _plain, ".parquet": _parquet, ".arrow": _arrow},
}


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
class SampleCounts:
    """Counts of the samples read so far, by outcome."""

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
        held_out: HeldOut | None = None,
    ) -> None:
        if rule not in PUBLISHED_RULES:
            raise unknown_name("training rule", rule, PUBLISHED_RULES)
        self._texts = texts
        self.rule = rule
        self._seed = seed
        self._samples = checked_rate(samples, "samples")
        self._words = checked_rate(words, "words")
        self._operations = {
            name: replace(parse_operation(spec), rate=1.0, texts=1.0)
            for name, spec in PUBLISHED_RULES.items()
        }
        self._changing = [
            name for name, operation in self._operations.items() if not operation.changes_nothing
        ]
        changing = {name: self._operations[name] for name in self._changing}
        self._conditions = ScrambleConditions(changing, DEFAULT) if changing else None
        self._held_out = held_out
        self.counts = SampleCounts()

    def __iter__(self) -> Iterator[Record]:
        counts = self.counts = SampleCounts()
        seen = Occurrences()
        for entry in self._texts:
            source = entry if isinstance(entry, SourceText) else SourceText("", entry, "")
            plain = nfc(source.text)
            if self._held_out is not None and self._held_out.in_text(plain):
                counts.left_out += 1
                continue
            counts.samples += 1
            draws = TextRandom(self._seed, plain, seen.before(plain))
            text, changed = self._of_sample(plain, draws, counts)
            origin = {"source": source.source, "source_id": source.source_id} if source.source else {}
            yield {"text": text, "provenance": {**origin, "rule": self.rule, "changed_words": changed}}

    def _of_sample(self, plain: str, draws: TextRandom, counts: SampleCounts) -> tuple[str, int]:
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
        scrambled = self._conditions.scrambled(plain, draws, None)
        of_rule = scrambled.get(self.rule, scrambled[self._changing[0]])
        changes = {change.word: change.shown for change in of_rule.changes}
        # Up or down by a draw: short samples, each to the nearest, would all miss the share on the same side.
        wanted = int(self._words * long + part / 2**64)
        ranks = draws.numbers(places, "which words")
        chosen = sorted(changes, key=ranks.__getitem__)[:wanted]
        counts.words += places
        counts.long_words += long
        counts.wanted += wanted
        counts.changed_words += len(chosen)
        counts.changed += bool(chosen)
        counts.cannot_change.update(left.reason for left in next(iter(scrambled.values())).left_intact)
        if self.rule not in scrambled:
            return plain, 0
        for word in chosen:
            pieces[2 * word + 1] = changes[word]
        return "".join(pieces), len(chosen)


def released_training_set(
    folder: Path,
    task: str,
    *,
    seed: int,
    held_out: Iterable[str],
    of_other_tasks: Iterable[str] = (),
    published: bool = False,
) -> tuple[list[Record], dict[str, Any]]:
    """Return the lines of a task's fine-tuning file that are trained on, and counts.

    Counted are all lines, those whose text came before (``doubles``), those that are texts of the study or near copies, and those
    of the larger class beyond the smaller one (``unbalanced``).
    """
    if task not in RELEASED_TASKS:
        raise unknown_name("H-TEST task", task, RELEASED_TASKS)
    barred = barred_keys(task, held_out, of_other_tasks)
    seen: set[str] = set()
    usable: list[tuple[str, str, int]] = []
    all_lines: list[tuple[str, str, int]] = []
    doubles = near_copies = 0
    for number, record in json_lines(training_file(folder, task)):
        text, label = _line(record, f"{task}_train.jsonl, line {number}")
        all_lines.append((text, label, number))
        if text in seen:
            doubles += 1
        elif word_keys(text, task) & barred:
            near_copies += 1
        else:
            usable.append((text, label, number))
        seen.add(text)
    classes = {label: [line for line in usable if line[1] == label] for label in LABELS}
    fewer = min(map(len, classes.values()))
    if not fewer:
        raise UserError(
            f"{task}_train.jsonl has no {min(classes, key=lambda label: len(classes[label]))} texts other than those of the study",
            mend="Make a training set by the rule instead, or take the file as published.",
        )

    def drawn(line: tuple[str, str, int]) -> int:
        return stable_seed(seed, "released training set of H-TEST", task, line[2])

    balanced = [line for label in LABELS for line in sorted(classes[label], key=drawn)[:fewer]]
    records = [
        _htest_record(task, text, label, line=number)
        for text, label, number in (all_lines if published else sorted(balanced, key=drawn))
    ]
    counts = {"lines": len(all_lines), "doubles": doubles, "near_copies": near_copies}
    return records, {**counts, "unbalanced": len(usable) - 2 * fewer, "as_published": published}


def _htest_record(task: str, text: str, label: str, **origin: object) -> Record:
    return {
        "prompt": text, "reply": label, "provenance": {"task": task, "text": text, "label": label, **origin}
    }  # fmt: skip


def training_file(folder: Path, task: str) -> Path:
    """Return the fine-tuning file of a task."""
    for candidate in (folder, folder / "train", folder.parent / "train"):
        if (file := candidate / f"{task}_train.jsonl").is_file():
            return file
    raise UserError(
        f"no {task}_train.jsonl in {folder} or its folder train",
        mend="Give the folder with the released files.",
    )


def _line(record: Mapping[str, Any], where: str) -> tuple[str, str]:
    messages = record.get("messages")
    match messages:
        case [{"role": "user", "content": str(text)}, {"role": "assistant", "content": "A" | "B" as label}]:
            return text, label
    raise UserError(f"{where}: no text with the reply A or B: {messages!r}")


NUMBER = 1000
"""Texts of a task, half of each label (Lee & Lim, 2024, section 5)."""
_MORE = 1.5


def htest_training_set(
    task: str, *, seed: int, held_out: Iterable[str], of_other_tasks: Iterable[str] = (), number: int = NUMBER
) -> tuple[list[Record], dict[str, int]]:
    """Make the training set of one task with the rule's own generator, in an order drawn with the seed.

    Counted are the pairs that were left out as near copies of texts of the study, or of other pairs of the set.
    """
    if isinstance(number, bool) or not isinstance(number, int) or number < 2 or number % 2:
        raise UserError(
            f"number of texts is {number!r}; both labels get the same number, so it is an even whole number from 2"
        )
    rule(task)
    barred = barred_keys(task, held_out, of_other_tasks)
    seed_of_task = stable_seed(seed, "training set of H-TEST", task)
    requested = number
    while True:
        made = generate(task, exemplars=0, items=requested, seed=seed_of_task).test
        pairs, counts = _distinct_pairs(task, made, barred)
        if len(pairs) >= number // 2:
            break
        requested = 2 * int(requested / 2 * _MORE + 1)
    items = sorted(
        (item for pair in pairs[: number // 2] for item in pair),
        key=lambda item: stable_seed(seed_of_task, "order", item.number),
    )
    return [_htest_record(task, item.text, item.label, pair=item.pair, seed=seed) for item in items], counts


def _distinct_pairs(
    task: str, items: Iterable[GeneratedItem], barred: set[Key]
) -> tuple[list[list[GeneratedItem]], dict[str, int]]:
    """Keep the pairs that are near copies neither of a text held out nor of a pair kept before."""
    by_pair: dict[int | None, list[GeneratedItem]] = {}
    for item in items:
        by_pair.setdefault(item.pair, []).append(item)
    kept: list[list[GeneratedItem]] = []
    seen: set[Key] = set()
    near_copies = repeated = 0
    for pair in by_pair.values():
        keys: set[Key] = set().union(*(word_keys(item.text, task) for item in pair))
        keys_in_any_task: set[Key] = set().union(*(word_keys(item.text) for item in pair))
        if keys & barred:
            near_copies += 1
        elif keys_in_any_task & seen:
            repeated += 1
        else:
            seen |= keys_in_any_task
            kept.append(pair)
    return kept, {"near_copies_left_out": near_copies, "repeated_left_out": repeated}
