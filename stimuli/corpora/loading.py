"""Loads a corpus by name from the user's files or from the hub, and draws seeded subsets of it."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from stimuli.corpora.corpus import (
    BadRecord,
    Corpus,
    CorpusSplit,
    Loaded,
    RawRecord,
    Record,
    RecordLocation,
    SourceText,
)
from stimuli.entry_points import registry
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed

_NAME = re.compile(r"(?P<repository>[^:@]+)(?::(?P<configuration>[^:@]+))?(?:@(?P<revision>[^:@]+))?")


@dataclass(frozen=True)
class HubName:
    """A data set of the hub: ``owner/name``, with ``:configuration`` and ``@revision`` where wanted."""

    repository: str  # owner and name, or a local folder
    configuration: str | None = None  # as the hub calls them
    revision: str | None = None

    @classmethod
    def parse(cls, given: str) -> HubName:
        """Read a name as a study gives it; an existing folder is taken as it is."""
        if Path(given).is_dir():
            return cls(given)
        match = _NAME.fullmatch(given.strip())
        if not match or match["repository"].count("/") > 1:
            raise UserError(
                f"hub name {given!r} is not owner/name, owner/name:configuration or owner/name@revision",
                mend="Copy it from the data set's page, as in openai/gsm8k:main.",
            )
        return cls(match["repository"], match["configuration"], match["revision"])

    def __str__(self) -> str:
        """Write the name as :meth:`parse` reads it."""
        configuration = f":{self.configuration}" if self.configuration else ""
        return f"{self.repository}{configuration}" + (f"@{self.revision}" if self.revision else "")


def hub_splits(name: HubName, split: str | None) -> Iterator[tuple[str, Iterator[RawRecord]]]:
    """Yield the splits of a data set, each with its rows."""
    datasets = _package()
    folder = Path(name.repository)
    saved = folder.is_dir() and any((folder / mark).is_file() for mark in ("dataset_dict.json", "state.json"))
    try:
        if saved:
            loaded = datasets.load_from_disk(name.repository)
        else:
            loaded = datasets.load_dataset(name.repository, name.configuration, revision=name.revision)
    except Exception as error:  # the package raises a dozen kinds, from network errors to its own
        message_lines = str(error).strip().splitlines()
        raise UserError(
            f"{name} could not be loaded from the hub: {message_lines[0] if message_lines else type(error).__name__}",
            mend="Check the name and the network, or download the corpus and give its path.",
            exit_code=1,
        ) from None
    splits: Mapping[str, Any] = loaded if isinstance(loaded, Mapping) else {split or "all": loaded}
    if split is not None and split not in splits:
        raise unknown_name(f"split of {name}", split, splits)
    for split_name in [split] if split is not None else list(splits):
        yield split_name, iter(splits[split_name])


def _package() -> Any:
    try:
        return import_module("datasets")
    except ImportError:
        raise UserError(
            "loading by hub name needs the package datasets, which is not installed",
            mend='Install it: pip install "wrods[hub]". Or download the corpus and give its path.',
        ) from None


ENTRY_POINTS = "wrods.corpora"
_Located = tuple[RecordLocation, RawRecord | UserError]
OnBad = Literal["stop", "skip"]
_SAME_SPLIT = {"validation": "dev", "valid": "dev", "val": "dev"}


@functools.cache
def corpora() -> Mapping[str, Corpus]:
    """Return every corpus by its name: the built-in ones and those that installed packages add."""
    from stimuli.corpora import aqua, boolq, csqa, dream, gsm8k, mbpp, realtimeqa, squad

    modules = (realtimeqa, dream, aqua, gsm8k, mbpp, boolq, squad, csqa)
    known = registry([module.CORPUS for module in modules], ENTRY_POINTS, Corpus)
    for corpus in known.values():
        if corpus.reading_field not in corpus.fields:
            raise UserError(
                f"corpus {corpus.name!r}: reading field {corpus.reading_field!r} is none of {', '.join(corpus.fields)}"
            )
    return known


def load_corpus(
    name: str,
    where: Path | Iterable[Path] | None = None,
    *,
    split: str | None = None,
    selection: str | None = None,
    on_bad: OnBad = "stop",
    hub: str | None = None,
) -> Loaded:
    """Load a corpus from the user's own copy, or from the hub.

    Parameters
    ----------
    name : str
        Name in the registry, such as ``dream``.
    where : Path or iterable of Path, optional
        A file in the corpus's own format, a folder with such files, or several of them.
    split : str, optional
        The one split to load (``validation`` and ``dev`` are the same); all where None.
    selection : str, optional
        A published selection, such as ``annotated`` of DREAM.
    on_bad : {"stop", "skip"}
        What a broken record does: stop the load, or be listed in ``bad`` while the others load.
    hub : str, optional
        ``owner/name``, ``owner/name:configuration`` or ``owner/name@revision`` on the hub, or a folder that
        ``datasets`` reads; instead of ``where``.

    Returns
    -------
    Loaded
        Records in the order of the files, files by split and name; nothing double is left out.
    """
    corpus = corpus_named(name)
    if selection is not None and selection not in corpus.selections:
        if not corpus.selections:
            raise UserError(f"{corpus.title} has no selections, but {selection!r} was requested")
        raise unknown_name(f"selection of {corpus.title}", selection, corpus.selections)
    if (where is None) == (hub is None):
        raise UserError(f"{corpus.title} is loaded from a path or by a hub name: give one of the two")
    warnings = [corpus.notice] if corpus.notice else []
    files: list[Path] = []
    if hub is not None:
        raw = _from_hub(corpus, hub, split)
    else:
        assert where is not None
        sources, left_out = _sources(corpus, [where] if isinstance(where, Path) else list(where), split)
        files = [file for file, _ in sources]
        warnings += left_out
        raw = (
            (RecordLocation(corpus, part, file, line), row)
            for file, part in sources
            for line, row in corpus.rows(file)
        )
    records, bad = _read(corpus, raw, on_bad, split)
    if selection is not None:
        records = list(corpus.selections[selection](records, files))
    return Loaded(
        records=tuple(records),
        bad=tuple(bad),
        duplicates=duplicates(records, corpus.same),
        warnings=tuple(warnings + _facts(corpus, records)),
        files=tuple(files + _beside(corpus, files)),
    )


def _beside(corpus: Corpus, files: Sequence[Path]) -> list[Path]:
    folders = dict.fromkeys(file.parent for file in files)
    return [file for folder in folders for name in corpus.beside for file in sorted(folder.glob(name))]


def duplicates(records: Sequence[Record], same: Sequence[str] = ()) -> tuple[tuple[str, ...], ...]:
    """Return the ids of records that are the same, a tuple for each of them."""
    earlier = list(range(len(records)))

    def first_of(place: int) -> int:
        while earlier[place] != place:
            place = earlier[place]
        return place

    first_with: dict[Hashable, int] = {}
    for place, record in enumerate(records):
        for key in _identities(record, same):
            low, high = sorted((first_of(first_with.setdefault(key, place)), first_of(place)))
            earlier[high] = low
    groups: dict[int, list[str]] = defaultdict(list)
    for place, record in enumerate(records):
        groups[first_of(place)].append(record.record_id)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def _identities(record: Record, same: Sequence[str]) -> Iterator[Hashable]:
    yield tuple((field, " ".join(text.casefold().split())) for field, text in sorted(record.texts.items()))
    yield from ((name, record.extra[name]) for name in same if record.extra.get(name) is not None)


_Source = tuple[Path, str | None]
"""A file with its split."""


def corpus_named(name: str) -> Corpus:
    """Return a corpus by the name that study files have for it."""
    known = corpora()
    if name not in known:
        raise unknown_name("corpus", name, known)
    return known[name]


def _canonical(split: str | None) -> str | None:
    return None if split is None else _SAME_SPLIT.get(split.lower(), split.lower())


def _sources(corpus: Corpus, given: Sequence[Path], split: str | None) -> tuple[list[_Source], list[str]]:
    """Find the files to read and say which parts were left out."""
    files: list[_Source] = []
    left_out: list[str] = []
    for path in given:
        if path.is_dir():
            sources, notes = _in_folder(corpus, path, split)
            files += sources
            left_out += notes
        else:
            part = corpus.part_of(path)
            known = part.split if part else None
            if split is not None and known is not None and _canonical(known) != _canonical(split):
                raise UserError(
                    f"{path} is split {known!r} of {corpus.title} by its name, but {split!r} was requested",
                    mend=f"Name the file of split {split!r}, or leave split out.",
                )
            files.append((path, known or split))
    order = {part.split: place for place, part in enumerate(corpus.parts)}
    files.sort(key=lambda source: (order.get(source[1], len(order)), source[0].name, str(source[0])))
    return files, left_out


def _in_folder(corpus: Corpus, folder: Path, split: str | None) -> tuple[list[_Source], list[str]]:
    by_part: dict[CorpusSplit, list[Path]] = defaultdict(list)
    for file in sorted(folder.iterdir()):
        part = corpus.part_of(file)
        if part is not None and file.is_file():
            by_part[part].append(file)
    if not by_part:
        names = ", ".join(name for part in corpus.parts for name in part.names)
        raise UserError(
            f"{folder} has no file of {corpus.title}",
            mend=f"Its files are named like {names}; or name the file itself.",
        )
    if split is None:
        wanted = {part: files for part, files in by_part.items() if not part.left_out}
    else:
        named = [part for part in by_part if part.split and _canonical(part.split) == _canonical(split)]
        unnamed = [part for part in by_part if part.split is None and not part.left_out]
        wanted = {part: by_part[part] for part in named or unnamed}
    if not wanted and split is None:
        wanted = dict(by_part)
    if not wanted:
        raise unknown_name(
            f"split of {corpus.title} in {folder}", str(split), [str(p.split) for p in by_part if p.split]
        )
    for part, files in wanted.items():
        if len(files) > 1 and not part.many:
            of_split = f" for split {part.split!r}" if part.split else ""
            raise UserError(
                f"{folder} has {len(files)} files of {corpus.title}{of_split}: {', '.join(file.name for file in files)}",
                mend="They may hold the same records: name the file to load.",
            )
    notes = [
        f"{files[0].name} is left out: {part.left_out}."
        for part, files in by_part.items()
        if part.left_out and part not in wanted and split is None
    ]
    return [(file, part.split or split) for part, files in wanted.items() for file in files], notes


def _from_hub(corpus: Corpus, given: str, split: str | None) -> Iterator[_Located]:
    if corpus.hub is None:
        raise UserError(
            f"{corpus.title} is not loaded from the hub", mend="Download its files and give their folder."
        )
    name = HubName.parse(given)
    if name.configuration is None and name.repository == corpus.hub.repository:
        name = HubName(name.repository, corpus.hub.configuration, name.revision)
    theirs = {_canonical(ours): hubs for ours, hubs in corpus.hub.splits.items()}
    ours = {hubs: split_name for split_name, hubs in corpus.hub.splits.items()}
    asked = None if split is None else theirs.get(_canonical(split), split)
    for hub_split, rows in hub_splits(name, asked):
        for number, row in enumerate(corpus.hub.original(rows), 1):
            yield RecordLocation(corpus, ours.get(hub_split, hub_split), Path(str(name)), number), row


def _read(
    corpus: Corpus, raw: Iterable[_Located], on_bad: OnBad, split: str | None
) -> tuple[list[Record], list[BadRecord]]:
    records: list[Record] = []
    bad: list[BadRecord] = []
    first: UserError | None = None
    seen: dict[tuple[str | None, str, str], RecordLocation] = {}
    for place, row in raw:
        try:
            if isinstance(row, UserError):
                raise row
            for record in corpus.read(row, place):
                if split is not None and _canonical(record.split) != _canonical(split):
                    continue
                twin = seen.setdefault((record.split, record.file, record.record_id), place)
                if twin is not place:
                    raise place.fault(f"id {record.record_id!r} is used twice (first in line {twin.line})")
                records.append(record)
        except UserError as error:
            if on_bad == "stop":
                raise
            first = first or error
            bad.append(BadRecord(place.file.name, place.line, error.message.removeprefix(f"{place.said}: ")))
    if not records:
        if first is not None:
            raise UserError(
                f"none of {len(bad)} records could be read; the first: {first.message}",
                mend=first.mend or f"Is this a file of {corpus.title}?",
            )
        raise UserError(
            f"{corpus.title} has no records there" + (f" of split {split!r}" if split else ""),
            mend=f"Is this a file of {corpus.title}? Is it empty?",
        )
    return records, bad


def _facts(corpus: Corpus, records: Sequence[Record]) -> list[str]:
    """Return warnings about records without an answer or a text, and about duplicate options."""
    total = len(records)
    unlabelled = sum(r.answer is None and r.extra.get("answerable") != 0.0 for r in records)
    unanswerable = sum(r.extra.get("answerable") == 0.0 for r in records)
    unread = sum(corpus.reading_field not in record.texts for record in records)
    twice = sum((r.choices or ()).count(r.answer or "") > 1 for r in records)
    facts = [
        (unlabelled, "are not labelled and have no answer"),
        (unanswerable, "ask what their text does not answer (answerable is 0)"),
        (unread, f"have no {corpus.reading_field}"),
        (twice, "have the right answer's text among their options twice"),
    ]
    return [f"{number} of {total} records of {corpus.title} {what}." for number, what in facts if number]


Shares = Literal["proportional", "equal"]
_OWN_FIELDS = ("split", "answer", "corpus")


def subset(
    records: Sequence[Record],
    number: int | None,
    seed: int,
    by: str | None = None,
    *,
    shares: Shares = "proportional",
) -> list[Record]:
    """Return a sample of records; a larger sample with the same seed includes a smaller one.

    Whether a record is drawn depends only on the seed and on its corpus, split and id, not on the order of files.
    Seats are assigned to strata by Webster's divisor method, the unbiased method under which no stratum loses a
    seat when the sample grows (Balinski & Young, 1982, Fair Representation).

    Parameters
    ----------
    records : sequence of Record
        What to draw from.
    number : int or None
        How many; all where None.
    seed : int
        The study's seed.
    by : str, optional
        Stratum of a record: ``split``, ``answer``, ``corpus`` or an entry of ``extra`` such as ``categories``.
    shares : {"proportional", "equal"}
        Whether strata are drawn in proportion to their sizes, or in equal numbers until they are exhausted.

    Returns
    -------
    list of Record
        In the order given.
    """
    if number is None:
        return list(records)
    if not 0 <= number <= len(records):
        raise UserError(f"{number} records were requested, but there are {len(records)}")

    def luck(place: int) -> tuple[int, str]:
        record = records[place]
        drawn = stable_seed(seed, "subset", record.corpus, record.split, record.record_id)
        return drawn, record.record_id

    strata: dict[str, list[int]] = defaultdict(list)
    for place, record in enumerate(records):
        strata[_stratum(record, by)].append(place)
    queue: list[tuple[Fraction, int, int]] = []
    for stratum, places in strata.items():
        tie = stable_seed(seed, "subset", "stratum", stratum)
        lucky = sorted(places, key=luck)
        for rank, place in enumerate(lucky):
            seats = Fraction(2 * rank + 1, 2 * len(places) if shares == "proportional" else 2)
            queue.append((seats, tie, place))
    drawn = sorted(queue, key=lambda seat: seat[:2])[:number]
    return [records[place] for place in sorted(place for _, _, place in drawn)]


def _stratum(record: Record, by: str | None) -> str:
    if by is None:
        return ""
    if by in record.extra:
        return str(record.extra[by])
    if by not in _OWN_FIELDS:
        raise unknown_name("field to draw by", by, (*_OWN_FIELDS, *record.extra))
    return str(getattr(record, by))


def texts_of(records: Sequence[Record], field: str | None = None) -> list[SourceText]:
    """Return the distinct texts of a field, or of each corpus's reading field, each named by its first record that has one."""
    first: dict[str, SourceText] = {}
    for record in records:
        name = field or corpora()[record.corpus].reading_field
        if name in record.texts:
            text = record.texts[name]
            first.setdefault(
                text, SourceText(record.record_id, text, record.corpus, record.split, record.licence)
            )
    if records and not first:
        raise unknown_name("text field", str(field), {name for record in records for name in record.texts})
    return list(first.values())
