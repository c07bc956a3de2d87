"""Writes a report as a Word file to edit: styles for headings and text, real tables with three rules, figures as pictures.

Close to an APA manuscript (7th edition), with lines 1.5 apart; all depends on styles, so that a journal's template restyles it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import docx
from docx.document import Document as WordDocument
from docx.enum.style import WD_STYLE_TYPE
from docx.enum.table import WD_TABLE_ALIGNMENT
from docx.enum.text import WD_ALIGN_PARAGRAPH, WD_LINE_SPACING
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import Emu, Inches, Pt, RGBColor
from docx.table import Table, _Cell, _Row
from docx.text.paragraph import Paragraph as WordParagraph
from markupsafe import Markup

from analysis.names import as_given
from analysis.report.apa_tables import ApaTable, Cut, Head
from analysis.report.document import Document, of_printed
from analysis.report.inline import head_markup, note_markup, runs_of
from analysis.report.nodes import Bullets, Facts, Heading, Node, Paragraph, PlannedFinding
from analysis.report.numbering import Illustrated, Numbered

FONT, CODE_FONT = "Times New Roman", "Courier New"
TEXT_WIDTH = 6.5
"""Inches between the margins of a letter page."""
MOST_TALL = 7.2
"""Largest height in inches of a picture that shares a page with its number, title and note."""
SIZES = ((6, 10.0), (8, 9.0), (10, 8.0))
"""Font size of a table by its number of columns; beyond, the smallest."""
SMALLEST, LEGIBLE, FINEST = 7.0, 8.0, 6.5
"""Points: letters of the tables with most columns; below the second no letters shrink for the sake of a long name; the third are
for tables of many columns in which a word would break, or that would be wider than the page."""
LEAST_NAME, MOST_OF_NAMES = 1.2, 0.45
"""Inches that a first column of names keeps where it can, and its share of the width at most where cells would else wrap."""
_PIECES = re.compile(r"(?<!<)\s+|(?<=\w-)(?=\w)")
"""Where a cell may break: at blanks and behind hyphens. Word does not part a sign from the number behind it, as in < .001."""
LETTER = 0.61
"""Width of a usual letter by the size of the font: in Times half of it, wider in what stands in for Times where that is missing."""
SLACK = 1.05
"""By how much columns are wider than their longest cell where a page has room: fonts differ in the width of a minus sign."""
RULE = {"val": "single", "sz": "8", "space": "0", "color": "000000"}


def write_docx(document: Document, folder: Path, sources: Mapping[str, str], when: datetime) -> Path:
    """Write ``report.docx`` (Answer and manuscript) and ``supplement.docx``; return the path of the first."""
    if document.supplement:
        _write_file(document, document.supplement, folder / "supplement.docx", sources, when)
    return _write_file(document, document.nodes, folder / "report.docx", sources, when)


def _write_file(
    document: Document, nodes: Sequence[Node], path: Path, sources: Mapping[str, str], when: datetime
) -> Path:
    """Write some nodes of a document into a file with its title, and where the numbers of its tables come from."""
    word = docx.Document()
    _page(word, document)
    _styles(word)
    word.core_properties.title = document.title
    word.core_properties.author = ""
    word.core_properties.comments = ""
    word.core_properties.created = word.core_properties.modified = when.replace(tzinfo=None)
    word.add_paragraph(document.title, style="Title")
    _write_runs(word.add_paragraph(style="Byline"), str(document.byline))
    for line in (*document.banner, *(f"Warning. {warning}" for warning in document.warnings)):
        word.add_paragraph(line, style="Not Data")
    for node in _text_before_floats(nodes):
        _write(word, node, path.parent)
    if printed := of_printed(nodes, sources):
        word.add_paragraph("Where the numbers come from", style="Heading 1")
        for number, words in printed:
            paragraph = word.add_paragraph(style="Table Note")
            paragraph.add_run(f"Table {number}. ").bold = True
            paragraph.add_run(words)
    for element in word.element.iter(qn("w:t")):
        element.text = as_given(element.text or "")
    word.save(str(path))
    return path


def _text_before_floats(nodes: Sequence[Node]) -> Iterator[Node]:
    """Yield the Answer's text before its figure and table, so that a page can hold each; all other nodes in order."""
    end = next((place for place, node in enumerate(nodes) if isinstance(node, Facts)), 0)
    answer = nodes[: end + 1]
    for are_floats in (False, True):
        yield from (one for one in answer if isinstance(one, Illustrated | Numbered) == are_floats)
    yield from nodes[end + 1 :]


def _page(word: WordDocument, document: Document) -> None:
    """Set letter paper with one-inch margins; each page bears its number and which readers are not data."""
    section = word.sections[0]
    section.page_width, section.page_height = Inches(8.5), Inches(11)
    section.left_margin = section.right_margin = section.top_margin = section.bottom_margin = Inches(1)
    head = section.header.paragraphs[0]
    head.alignment = WD_ALIGN_PARAGRAPH.RIGHT
    if document.running_head:
        mark = head.add_run(f"{document.running_head} \u2003")
        mark.bold, mark.font.size, mark.font.color.rgb = True, Pt(9), RGBColor(0x8A, 0x1C, 0x00)
    number = OxmlElement("w:instrText")
    number.set(qn("xml:space"), "preserve")
    number.text = " PAGE "
    for part in (_element("fldChar", fldCharType="begin"), number, _element("fldChar", fldCharType="end")):
        head.add_run()._r.append(part)


def _element(tag: str, **settings: str) -> Any:
    element = OxmlElement(f"w:{tag}")
    for name, value in settings.items():
        element.set(qn(f"w:{name}"), value)
    return element


def _styles(word: WordDocument) -> None:
    _font(word.styles["Normal"], 12)
    normal = word.styles["Normal"].paragraph_format
    normal.line_spacing_rule, normal.space_after = WD_LINE_SPACING.ONE_POINT_FIVE, Pt(0)
    title = word.styles["Title"]
    _font(title, 14, bold=True)
    title.paragraph_format.alignment = WD_ALIGN_PARAGRAPH.CENTER
    title.paragraph_format.space_after = Pt(6)
    borders = title.element.find(".//" + qn("w:pBdr"))
    if borders is not None:
        borders.getparent().remove(borders)
    for level, centred, italic in ((1, True, False), (2, False, False), (3, False, True)):
        style = word.styles[f"Heading {level}"]
        _font(style, 12, bold=True, italic=italic)
        style.paragraph_format.alignment = WD_ALIGN_PARAGRAPH.CENTER if centred else WD_ALIGN_PARAGRAPH.LEFT
        style.paragraph_format.space_before, style.paragraph_format.space_after = Pt(12), Pt(0)
        style.paragraph_format.keep_with_next = True
    body = _style(word, "Body Text", 12)
    body.paragraph_format.first_line_indent, body.paragraph_format.space_after = Inches(0.5), Pt(0)
    for name, size, settings in (
        ("Byline", 11, {"alignment": WD_ALIGN_PARAGRAPH.CENTER, "space_after": Pt(12)}),
        ("Not Data", 11, {"space_after": Pt(6)}),
        ("Small Text", 10, {"space_after": Pt(3)}),
        ("Reference", 11, {"left_indent": Inches(0.5), "first_line_indent": Inches(-0.5)}),
        ("Table Number", 12, {"keep_with_next": True, "space_before": Pt(14)}),
        ("Table Title", 12, {"keep_with_next": True, "space_after": Pt(6)}),
        ("Step", 10, {"left_indent": Inches(0.3), "first_line_indent": Inches(-0.3), "space_after": Pt(3)}),
        ("Warning", 11, {"space_after": Pt(6)}),
        ("Finding", 11, {"space_after": Pt(6)}),
        ("Table Cell", 10, {"space_before": Pt(1), "space_after": Pt(1)}),
        ("Table Note", 9, {"space_before": Pt(4), "space_after": Pt(8)}),
        ("Figure Picture", 12, {"keep_with_next": True}),
    ):
        is_bold = name in ("Table Number", "Not Data", "Warning")
        style = _style(word, name, size, bold=is_bold, italic=name == "Table Title")
        style.paragraph_format.line_spacing_rule = WD_LINE_SPACING.SINGLE
        for setting, value in settings.items():
            setattr(style.paragraph_format, setting, value)
    word.styles["Not Data"].font.color.rgb = RGBColor(0x8A, 0x1C, 0x00)


def _style(word: WordDocument, name: str, size: float, *, bold: bool = False, italic: bool = False) -> Any:
    style_names = [style.name for style in word.styles]
    style = word.styles[name] if name in style_names else word.styles.add_style(name, WD_STYLE_TYPE.PARAGRAPH)
    style.base_style = word.styles["Normal"]
    _font(style, size, bold=bold, italic=italic)
    return style


def _font(style: Any, size: float, *, bold: bool = False, italic: bool = False) -> None:
    style.font.name, style.font.size = FONT, Pt(size)
    style.font.bold, style.font.italic = bold, italic
    style.font.color.rgb = RGBColor(0, 0, 0)
    fonts = style.element.get_or_add_rPr().get_or_add_rFonts()
    for attribute in ("ascii", "hAnsi", "eastAsia", "cs"):
        fonts.set(qn(f"w:{attribute}"), FONT)
    for attribute in ("asciiTheme", "hAnsiTheme", "eastAsiaTheme", "cstheme"):
        fonts.attrib.pop(qn(f"w:{attribute}"), None)


_PARAGRAPHS = {"body": "Body Text", "warning": "Warning", "small": "Small Text", "reference": "Reference"}


def _write(word: WordDocument, node: Node, folder: Path) -> None:
    if isinstance(node, Heading):
        marks = "".join(f" [{mark}]" for mark in node.marks)
        _write_runs(word.add_paragraph(style=f"Heading {node.level - 1}"), f"{node.text}{marks}")
    elif isinstance(node, Paragraph):
        _write_runs(word.add_paragraph(style=_PARAGRAPHS[node.kind]), str(node.text))
    elif isinstance(node, Bullets):
        for number, item in enumerate(node.items, 1):
            # numbers are text: Word would count on from the list before
            paragraph = word.add_paragraph(style="Step" if node.ordered else "List Bullet")
            _write_runs(
                paragraph, f"{number}.\t{item}" if node.ordered else str(item), 10.0 if node.ordered else None
            )
    elif isinstance(node, Facts):
        for name, words in node.pairs:
            text = Markup("<b>{}. </b>{}").format(name, words)
            _write_runs(word.add_paragraph(style="Small Text"), text)
    elif isinstance(node, Illustrated):
        _figure(word, node, folder)
    elif isinstance(node, PlannedFinding):
        _write_runs(word.add_paragraph(style="Finding"), node.markup)
    else:
        _table(word, node)


def _write_runs(paragraph: WordParagraph, markup: str, size: float | None = None) -> None:
    for piece in runs_of(markup):
        run = paragraph.add_run(piece.text)
        run.italic, run.bold = piece.italic or None, piece.bold or None
        run.font.subscript, run.font.superscript = piece.sub or None, piece.sup or None
        if piece.code:
            run.font.name, run.font.size = CODE_FONT, Pt((size or 11.0) - 1)
        elif size is not None:
            run.font.size = Pt(size)


def _figure(word: WordDocument, shown: Illustrated, folder: Path) -> None:
    word.add_paragraph(f"Figure {shown.number}", style="Table Number")
    word.add_paragraph(shown.drawing.title, style="Table Title")
    picture = folder / "figures" / as_given(f"{shown.drawing.name}.png")
    paragraph = word.add_paragraph(style="Figure Picture")
    inline = paragraph.add_run().add_picture(str(picture))
    scale = min(1.0, Inches(TEXT_WIDTH) / inline.width, Inches(MOST_TALL) / inline.height)
    inline.width, inline.height = (Emu(int(length * scale)) for length in (inline.width, inline.height))
    properties = inline._inline.docPr
    properties.set("name", f"Figure {shown.number}")
    properties.set("title", as_given(shown.drawing.title))
    properties.set("descr", as_given(shown.drawing.alternative))
    _note(word, shown.drawing.note)


def _note(word: WordDocument, note: str) -> None:
    paragraph = word.add_paragraph(style="Table Note")
    if note:
        _write_runs(paragraph, "<i>Note.</i> " + str(note_markup(note)))


def _table(word: WordDocument, shown: Numbered) -> None:
    apa_table = shown.table
    word.add_paragraph(f"Table {shown.number}", style="Table Number")
    word.add_paragraph(apa_table.title, style="Table Title")
    size, widths = fitted_columns(apa_table)
    table = word.add_table(rows=1 + len(apa_table.rows), cols=len(apa_table.columns))
    table.alignment, table.autofit = WD_TABLE_ALIGNMENT.LEFT, False
    _widths(table, widths)
    rows = list(table.rows)  # python-docx reads the whole table anew for each row that it is asked for
    _fill(
        rows[0],
        [str(head_markup(column, apa_table.is_symbol(column))) for column in apa_table.columns],
        size,
        head=True,
    )
    _rule(table, 0, "top")
    _rule(table, 0, "bottom")
    rows[0]._tr.get_or_add_trPr().append(_element("tblHeader"))  # repeated on every page that it runs over
    _together(rows, 0, last=False)
    for index, row in enumerate(apa_table.rows, 1):
        is_head = isinstance(row, Head)
        if is_head and len(row) == 1:
            cells = rows[index].cells
            _cell(cells[0].merge(cells[-1]), str(head_markup(row[0], False)), size)
        else:
            texts = [str(head_markup(cell, is_head and apa_table.is_symbol(cell))) for cell in row]
            _fill(rows[index], texts, size, head=is_head, indent=apa_table.has_heads)
        _together(rows, index, last=index == len(apa_table.rows))
    _rule(table, len(apa_table.rows), "bottom")
    _note(word, apa_table.note)


def _widths(table: Table, widths: Sequence[float]) -> None:
    """Set the columns of a table to so many inches."""
    for column, width in zip(table.columns, widths, strict=True):
        column.width = Inches(width)
    for row in table._tbl.tr_lst:
        for cell, width in zip(row.tc_lst, widths, strict=True):
            cell.width = Inches(width)


def fitted_columns(apa_table: ApaTable) -> tuple[float, list[float]]:
    """Return points of letters and inches of columns: letters shrink before a cell wraps or a word breaks, but stay legible."""
    usual = next((points for most, points in SIZES if len(apa_table.columns) <= most), SMALLEST)
    sizes = [usual - step for step in range(int(usual - min(usual, LEGIBLE)) + 1)]
    chosen = next((size for size in sizes if sum(_least(apa_table, size)) <= TEXT_WIDTH), None)
    legible = [size for size in sizes if chosen is not None and size <= chosen]
    whole = (size for size in legible if sum(_on_one_line(apa_table, size)) <= TEXT_WIDTH)
    unbroken = next(whole, None) or next(
        (size for size in legible if _names_alone_wrap(apa_table, size)), None
    )
    size = unbroken or chosen
    if size is None:
        candidates = (
            candidate
            for candidate in [*sizes, SMALLEST]
            if sum(_least(apa_table, candidate)[1:]) + LEAST_NAME <= TEXT_WIDTH
        )
        size = next(candidates, None)
    if size is None:
        fits = sum(_least(apa_table, FINEST)) <= TEXT_WIDTH
        size, chosen = FINEST if fits else SMALLEST, FINEST if fits else None
    least, full = _least(apa_table, size), _on_one_line(apa_table, size)
    if chosen is None:
        least[0] = max(TEXT_WIDTH - sum(least[1:]), LEAST_NAME / 2)
    if unbroken:
        least[1:] = full[1:]
        full[0] = min(full[0], TEXT_WIDTH - sum(full[1:]))
    else:
        full[0] = min(full[0], max(MOST_OF_NAMES * sum(full), 1.2))
    full = [max(pair) for pair in zip(full, least, strict=True)]
    room = min(TEXT_WIDTH, max(TEXT_WIDTH / 2, SLACK * sum(full)))
    if sum(full) <= room:
        return size, [width * room / sum(full) for width in full]
    wished = sum(full) - sum(least)
    spare = max(room - sum(least), 0.0) / wished if wished > 0 else 0.0
    return size, [narrow + (wide - narrow) * spare for narrow, wide in zip(least, full, strict=True)]


def _least(apa_table: ApaTable, size: float) -> list[float]:
    """Return how wide each column must be for its longest piece without a blank, in inches."""
    return _inches(apa_table, size, lambda index, is_head, text: _PIECES.split(text))


def _names_alone_wrap(apa_table: ApaTable, size: float) -> bool:
    """Whether a page holds every cell on one line beside names that break between words."""
    least, full = _least(apa_table, size), _on_one_line(apa_table, size)
    return max(least[0], min(full[0], LEAST_NAME)) + sum(full[1:]) <= TEXT_WIDTH


def _on_one_line(apa_table: ApaTable, size: float) -> list[float]:
    """Return how wide each column is with every cell on one line; heads may wrap between words."""
    return _inches(
        apa_table, size, lambda index, is_head, text: [text] if not is_head else text.split() if index else []
    )


def _inches(apa_table: ApaTable, size: float, cut: Cut) -> list[float]:
    margins, indent = 0.15 if size > LEGIBLE else 0.1, 0.15 if apa_table.has_heads else 0.0
    widths = [width * LETTER * size / 72 + margins for width in apa_table.widths(cut)]
    return [widths[0] + indent, *widths[1:]]


def _fill(row: _Row, texts: Sequence[str], size: float, *, head: bool = False, indent: bool = False) -> None:
    for column, (cell, text) in enumerate(zip(row.cells, texts, strict=False)):
        paragraph = _cell(cell, text, size)
        if column:
            paragraph.alignment = WD_ALIGN_PARAGRAPH.CENTER
        elif indent and not head:
            paragraph.paragraph_format.left_indent = Inches(0.15)


def _cell(cell: _Cell, markup: str, size: float) -> WordParagraph:
    paragraph: WordParagraph = cell.paragraphs[0]
    # by its id: by its name python-docx would look through all styles for each of some thousand cells
    paragraph._p.style = "TableCell"
    _write_runs(paragraph, markup, size)
    properties = cell._tc.get_or_add_tcPr()
    margins = _element("tcMar")
    margins.extend([_element(side, w="40", type="dxa") for side in ("left", "right")])
    properties.append(margins)
    return paragraph


def _rule(table: Table, index: int, side: str) -> None:
    """Draw a rule over or under a row; nothing else of a table has lines."""
    for tc in table.rows[index]._tr.tc_lst:
        properties = tc.get_or_add_tcPr()
        borders = properties.find(qn("w:tcBorders"))
        if borders is None:
            borders = _element("tcBorders")
            margins = properties.find(qn("w:tcMar"))
            properties.append(borders) if margins is None else margins.addprevious(borders)
        borders.append(_element(side, **RULE))


def _together(rows: Sequence[_Row], index: int, *, last: bool) -> None:
    """Keep a row whole, and small tables on one page."""
    properties = rows[index]._tr.get_or_add_trPr()
    properties.insert(0, _element("cantSplit"))
    if last or len(rows) > 30:
        return
    for cell in rows[index].cells:
        for paragraph in cell.paragraphs:
            paragraph.paragraph_format.keep_with_next = True
