"""Lays out a chapter from data: tables from ``tables.yaml``, sentences from ``text.md.j2``, both in the chapter's folder.

Both files are written in Jinja, with the functions of :mod:`analysis.apa` and of :data:`WORDS`. A table is a list of columns, each
with its head and an expression that is computed from each row. A text has one ``{% block %}`` for each passage: an empty line ends
a paragraph, ``###`` begins a heading, ``*x*`` is italic, and a table or figure in a separate paragraph is placed there.
Values are never rewritten: neither asterisks nor spaces in the name of a level mean anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined, Template, Undefined, UndefinedError, pass_context
from jinja2.ext import Extension
from jinja2.runtime import Context
from markupsafe import Markup
from ruamel.yaml import YAML

from analysis import apa, readers
from analysis.figures import Drawing
from analysis.mixed import Fit
from analysis.names import sentence, upper_first
from analysis.report import filters
from analysis.report.apa_tables import ApaTable, Head, Origin, decimals
from analysis.report.blocks import Block, Chapter, Draft, marks_of
from analysis.report.condense_levels import by_level, which_of
from analysis.report.effect_sizes import p_of_all, p_said
from analysis.report.references import cite
from analysis.results import as_percent

_CODE = re.compile(r"(\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\})", re.DOTALL)
_ITALIC = re.compile(r"\*([^\s*][^*]*)\*")
_EMPTY = re.compile(r"\n\s*\n")
_SPACE, _LINE, _PLACED, _END = "\ue000", "\ue001", "\ue002", "\ue003"
"""Stand for spaces and line ends of values, for what is placed, and for the end of a paragraph."""


class _Paragraphs(Extension):
    """Turns ``*x*`` in a template's own words into ``<i>x</i>``, ``&nbsp;`` into that sign, empty lines into ends of paragraphs."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        parts = _CODE.split(source)
        return "".join(
            part
            if n % 2
            else _EMPTY.sub(f"\n{_END}\n", _ITALIC.sub(r"<i>\1</i>", part.replace("&nbsp;", "\u00a0")))
            for n, part in enumerate(parts)
        )


@pass_context
def _put(context: Context, value: Any) -> Any:
    """Keep the spaces of a value, and note what is to be placed."""
    if isinstance(value, ApaTable | Drawing):
        placed: list[Block] = context["placed"]
        placed.append(value)
        return f"{_PLACED}{len(placed) - 1}{_PLACED}"
    if callable(value) and not isinstance(value, Undefined):
        raise UndefinedError(f"{value!r} is a function: a value of this name is missing")
    if isinstance(value, str) and not isinstance(value, Markup):  # what macros return has been put already
        return value.replace(" ", _SPACE).replace("\n", _LINE)
    return value


def _with_kinds(formatter: Callable[..., str]) -> Callable[..., str]:
    """Let a template call what names readers without giving it their kinds."""

    @pass_context
    def called(context: Context, *arguments: Any) -> str:
        return formatter(*arguments, context["kinds"])

    return called


def _reference(*blocks: ApaTable | Drawing) -> Markup:
    """Refer to tables and figures of the same chapter; the report puts their numbers there."""
    return Markup("").join(
        Markup("[[{}:{}]]").format("figure" if isinstance(block, Drawing) else "table", block.name)
        for block in blocks
    )


WORDS: dict[str, Any] = {
    **{name: value for module in (apa, filters) for name, value in vars(module).items() if name[0] != "_"},
    **{name: _with_kinds(getattr(readers, name)) for name in ("named", "listed", "theirs")},
    **{"headed": _with_kinds(readers.headed_as), "spoken": readers.spoken},
    "marked": _with_kinds(lambda group, kinds: readers.marked(group, kinds.get(group, "model"))),
    **{"as_percent": as_percent, "decimals": decimals, "str": str, "len": len, "range": range, "cite": cite},
    **{
        "p_said": p_said,
        "p_of_all": p_of_all,
        "upper_first": upper_first,
        "sentence": sentence,
        "ref": _reference,
    },
    **{"by_level": by_level, "which_of": which_of},
}
"""What tables and texts may call. ``marked``, ``named``, ``headed``, ``listed`` and ``theirs`` need ``kinds`` among the values."""


@cache
def _environment(autoescape: bool) -> Environment:
    environment = Environment(
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_put if autoescape else None,
        extensions=[_Paragraphs] if autoescape else [],
    )
    environment.globals.update(WORDS)
    return environment


@cache
def _template(text: str) -> Template:
    return _environment(False).from_string(text)


def _filled(text: str, values: Mapping[str, Any]) -> str:
    return _template(" ".join(str(text).split())).render(values)


@cache
def _expression(text: str) -> Any:
    return _environment(False).compile_expression(text, undefined_to_none=False)


NO_INTERVAL = f"{apa.MISSING} under CI: too few units for an interval, or nothing varies between them."
"""What a note says of intervals that are missing, unless it explains en dashes itself."""


def explains_dashes(note: str) -> bool:
    """Whether a note says what an en dash stands for; one between two words or numbers joins these."""
    return re.search(rf"(?<!\w){apa.MISSING}(?!\w)", note) is not None


class ChapterLayout:
    """The tables and texts of one chapter, in the files of a folder; ``constants`` are known in all of them."""

    def __init__(self, folder: Path, **constants: Any) -> None:
        self.folder, self.constants = folder, constants

    @cached_property
    def _tables(self) -> dict[str, Any]:
        loaded: dict[str, Any] = YAML(typ="safe").load((self.folder / "tables.yaml").read_text("utf-8"))
        return loaded

    @cached_property
    def names(self) -> dict[str, str]:
        """Names in ``tables.yaml`` (under ``_names``, in its order) of things that rows name as in code."""
        return dict(self._tables["_names"])

    @cached_property
    def _text(self) -> Template:
        return _environment(True).from_string((self.folder / "text.md.j2").read_text("utf-8"))

    def table(
        self,
        key: str,
        rows: pd.DataFrame | Iterable[Mapping[Any, Any]],
        name: str | None = None,
        fits: Sequence[Fit] = (),
        origin: Origin | None = None,
        **values: Any,
    ) -> ApaTable:
        """Lay out a table as ``tables.yaml`` has it under ``key``, with the columns of ``rows`` and ``values`` in its expressions.

        Keys of a table: ``title``; ``columns`` (of each the head and an expression, ``if`` with a condition where the column may
        be missing, and ``each`` with a list where there is a column for each of its values; a list among them is read as if its
        columns are inserted); ``group`` (an expression; where its value changes, ``heading`` is printed above the rows unless it is
        empty); ``missing`` (a condition under which a row has en dashes behind its first cell); ``note`` (a text, or a list of
        texts, of which some have an ``if``; ``heads`` are the columns there, and ``dashes`` those with a cell without a
        value, which the note has to explain); ``source`` (as in :class:`Origin`); ``drawn``;
        ``of_paper``. A column in which every cell is empty is left out.
        """
        spec, values = self._tables[key], {**self.constants, **values}
        records = list(rows.to_dict("records")) if isinstance(rows, pd.DataFrame) else list(rows)
        columns = [
            (_filled(head, {**values, "each": item}), _expression(str(cell)), item)
            for column in _flat(spec["columns"])
            if "if" not in column or _expression(column["if"])(**values)
            for item in (_expression(column["each"])(**values) if "each" in column else [None])
            for head, cell in column.items()
            if head not in ("if", "each")
        ]
        laid_rows: list[tuple[str, ...]] = []
        last = None
        for row in records:
            # a factor has the name that the study gave it, which may be that of a function
            row_values = {
                str(column): value for column, value in row.items() if column != values.get("factor")
            }
            context = {**values, **row_values, "row": row}
            if "group" in spec:
                group = _expression(spec["group"])(**context)
                heading = _filled(spec.get("heading", "{{ marked(reader_group) }}"), context)
                if group != last and heading:
                    laid_rows.append(Head([heading]))
                last = group
            shown = columns[:1] if "missing" in spec and _expression(spec["missing"])(**context) else columns
            cells = [cell(**{**context, "each": item}) for _, cell, item in shown]
            cells = [cell if isinstance(cell, str) else str(cell) for cell in cells]
            laid_rows.append((*cells, *[apa.MISSING] * (len(columns) - len(cells))))
        filled = [
            n
            for n in range(len(columns))
            if n == 0 or not laid_rows or any(len(row) > n and row[n] for row in laid_rows)
        ]
        heads = tuple(columns[n][0] for n in filled)
        dashes = {
            columns[n][0]
            for row in laid_rows
            if not isinstance(row, Head)
            for n in filled
            if row[n] == apa.MISSING
        }
        note = self._note(spec.get("note", ""), {**values, "heads": heads, "dashes": dashes})
        if any("CI" in head for head in dashes) and not explains_dashes(note):
            note = f"{note} {NO_INTERVAL}".strip()
        return ApaTable(
            name or key,
            _filled(spec["title"], values),
            heads,
            tuple(row if isinstance(row, Head) else tuple(row[n] for n in filled) for row in laid_rows),
            note,
            origin or self._origin(spec.get("source"), fits, values),
            drawn=bool(spec.get("drawn", False)),
            of_paper=bool(spec.get("of_paper", False)),
        )

    def chapter(
        self,
        name: str,
        written: Draft | Iterable[Block],
        groups: Iterable[str],
        kinds: dict[str, str],
        methods: Sequence[Markup] | None = None,
        part: str = "",
        **more: Any,
    ) -> Chapter | None:
        """Return a chapter (None without blocks) with its passages ``title``, ``question`` and ``methods``, named after ``part``."""
        if isinstance(written, Draft):
            more = {"fits": tuple(written.fits)} | more
            written = written.blocks
        blocks = tuple(written)
        if not blocks:
            return None
        more["methods"] = (self.sentences(f"{part}methods"),) if methods is None else tuple(methods)
        title, question = (
            self.sentences(f"{part}{passage}", **more).unescape() for passage in ("title", "question")
        )
        marks = marks_of(tuple(dict.fromkeys(groups)), kinds)
        return Chapter(name, title, blocks, marks, question=question, **more)

    def caption(self, key: str, **values: Any) -> tuple[str, str]:
        """Return the title and the note of a figure as ``tables.yaml`` has them."""
        spec, values = self._tables[key], {**self.constants, **values}
        return _filled(spec["title"], values), self._note(spec.get("note", ""), values)

    def blocks(self, passage: str, **values: Any) -> list[Block]:
        """Write a passage of ``text.md.j2``: its headings and paragraphs, with tables and figures where it places them."""
        placed: list[Block] = []
        context = self._text.new_context({**self.constants, **values, "placed": placed})
        text = "".join(self._text.blocks[passage](context))
        return [block for part in text.split(_END) for block in _of_paragraph(part, placed)]

    def paragraphs(self, passage: str, **values: Any) -> tuple[Markup, ...]:
        """Write a passage that holds paragraphs alone."""
        return tuple(block for block in self.blocks(passage, **values) if isinstance(block, Markup))

    def sentences(self, passage: str, **values: Any) -> Markup:
        """Write a passage that is one paragraph, or empty."""
        return Markup(" ").join(self.paragraphs(passage, **values))

    @staticmethod
    def _note(note: Any, values: Mapping[str, Any]) -> str:
        parts = [{"text": text} if isinstance(text, str) else text for text in _flat([note])]
        texts = [part["text"] for part in parts if "if" not in part or _expression(part["if"])(**values)]
        return " ".join(filter(None, (_filled(text, values) for text in texts)))

    @staticmethod
    def _origin(
        source: Mapping[str, Any] | None, fits: Sequence[Fit], values: Mapping[str, Any]
    ) -> Origin | None:
        if source is None:
            return Origin(tuple(fits)) if fits else None
        listed = {
            key: tuple(filter(None, (name for part in source.get(key, ()) for name in _names(part, values))))
            for key in ("columns", "seed", "beside")
        }
        where = source.get("where")
        return Origin(
            tuple(fits),
            rows=_filled(source.get("rows", ""), values),
            file=_filled(source.get("file", "trials.csv"), values),
            where=None if where is None else tuple(_expression(where)(**values)),
            computed=_filled(source.get("computed", ""), values),
            **listed,
        )


SENTENCES = ChapterLayout(Path(__file__).parent)
"""Text around the sections of a report."""


def _flat(parts: Iterable[Any]) -> Iterator[Any]:
    """Yield columns, or parts of a note, one by one, also those of lists among them."""
    for part in parts:
        yield from _flat(part) if isinstance(part, list) else (part,)


def _names(part: Any, values: Mapping[str, Any]) -> Iterable[str]:
    """Return one name of a source, or with ``each`` the names that an expression lists."""
    return _expression(part["each"])(**values) if isinstance(part, Mapping) else [_filled(part, values)]


def _of_paragraph(text: str, placed: Sequence[Block]) -> list[Block]:
    """Turn a paragraph of a template into what a chapter is made of."""
    content = re.sub(r"[ \n]+", " ", text).strip()
    if not content:
        return []
    if re.fullmatch(rf"(?:{_PLACED}\d+{_PLACED} ?)+", content):
        return [placed[int(number)] for number in re.findall(r"\d+", content)]
    content = content.replace(_SPACE, " ").replace(_LINE, "\n")
    return [Markup(f"<h3>{content.removeprefix('### ')}</h3>" if content.startswith("### ") else content)]
