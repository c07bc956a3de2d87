"""The Word file and the LaTeX files of a report say what the page says, in styles, tables and pictures of their own."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import docx
import pytest
from docx.oxml.ns import qn
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from analysis.report.apa_tables import ApaTable, Head
from analysis.report.document import Document, document_of
from analysis.report.docx_file import fitted_columns, write_docx
from analysis.report.inline import plain_text, runs_of
from analysis.report.latex_files import escaped, table_in_latex, write_latex
from analysis.report.nodes import Bullets, Facts, Heading, Paragraph, PlannedFinding
from analysis.report.numbering import Illustrated, Numbered
from analysis.report.references import cited_in, known, read_bibtex
from tests.analysis.conftest import Rehearsal

WHEN = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
NASTY = "50% & 3_a #1 $x$ {b} ~ ^ \\end{document} <tag> \"q\" 'r' | − × Ω 語 ü"


@pytest.fixture(scope="module")
def word(rehearsal: Rehearsal) -> Any:
    return docx.Document(str(rehearsal.page.parent / "report.docx"))


def texts(word: Any, style: str) -> list[str]:
    return [one.text for one in word.paragraphs if one.style.name == style]


def test_every_heading_of_the_page_is_a_heading_in_word(rehearsal: Rehearsal, word: Any) -> None:
    for level in (2, 3):
        wanted = [
            plain_text(node.text)
            for node in document_of(rehearsal.content, WHEN).nodes
            if isinstance(node, Heading) and node.level == level
        ]
        found = texts(word, f"Heading {level - 1}")
        assert len(wanted) >= 3 and all(any(one.startswith(text) for one in found) for text in wanted)


def test_every_paragraph_of_the_page_is_in_word_with_its_italics(rehearsal: Rehearsal, word: Any) -> None:
    said = {one.text: one for one in word.paragraphs}
    paragraphs = [n for n in document_of(rehearsal.content, WHEN).nodes if isinstance(n, Paragraph)]
    assert len(paragraphs) > 10
    for one in paragraphs:
        found = said[plain_text(one.text)]
        italic = "".join(run.text for run in found.runs if run.italic)
        assert italic == "".join(run.text for run in runs_of(one.text) if run.italic)


def test_tables_are_tables_with_three_rules_a_bold_number_and_an_italic_title(
    rehearsal: Rehearsal, word: Any
) -> None:
    tables = [one for one in document_of(rehearsal.content, WHEN).nodes if isinstance(one, Numbered)]
    assert len(word.tables) == len(tables) and tables[0].number == "1"
    assert texts(word, "Table Number")[:1] and word.styles["Table Number"].font.bold
    assert word.styles["Table Title"].font.italic
    for one in tables:
        assert f"Table {one.number}" in texts(word, "Table Number")
        assert one.table.title in texts(word, "Table Title")
    model = tables[0].table
    laid = word.tables[0]
    assert [cell.text for cell in laid.rows[0].cells] == list(model.columns)
    assert [cell.text for cell in laid.rows[2].cells] == list(model.rows[1])
    ruled = [
        (place, edge.tag.split("}")[1])
        for place, row in enumerate(laid.rows)
        for edge in row._tr.tc_lst[0].tcPr.iter(qn("w:top"), qn("w:bottom"))
        if edge.getparent().tag == qn("w:tcBorders")
    ]
    assert ruled == [(0, "top"), (0, "bottom"), (len(laid.rows) - 1, "bottom")]
    assert laid.rows[0]._tr.trPr.find(qn("w:tblHeader")) is not None
    assert not list(laid._tbl.iter(qn("w:insideH"), qn("w:insideV")))


def test_figures_are_pictures_with_alternative_text(rehearsal: Rehearsal, word: Any) -> None:
    told = [shape._inline.docPr.get("descr") for shape in word.inline_shapes]
    figures = [one for one in document_of(rehearsal.content, WHEN).nodes if isinstance(one, Illustrated)]
    assert told == [one.drawing.alternative for one in figures] and figures
    assert all(shape.width <= docx.shared.Inches(6.5) for shape in word.inline_shapes)


def test_a_page_of_word_has_the_answers_text_and_the_next_one_its_figure_and_table(word: Any) -> None:
    styles = [one.style.name for one in word.paragraphs]
    end = [n for n, style in enumerate(styles) if style == "Heading 1"][1]
    told, drawn = (
        [n for n, style in enumerate(styles[:end]) if style in names]
        for names in ({"Finding", "Small Text"}, {"Figure Picture", "Table Title"})
    )
    assert told and len(drawn) == 3 and max(told) < min(drawn)


def test_report_tex_takes_in_every_table_and_figure_once(rehearsal: Rehearsal) -> None:
    folder = rehearsal.page.parent
    tex = "".join((folder / name).read_text("utf-8") for name in ("report.tex", "supplement.tex"))
    printed = [one for one in rehearsal.content.all_tables() if not one.refused]
    wanted = [f"latex/{one.table.name}" for one in printed]
    assert sorted(re.findall(r"\\input\{(latex/[^}]+)\}", tex)) == sorted(wanted)
    pictures = [
        f"figures/{one.drawing.name}.png" for one in rehearsal.content.all_figures() if not one.refused
    ]
    assert sorted(re.findall(r"\{(figures/[^}]+)\}", tex)) == sorted(pictures)
    for name in wanted:
        table = (folder / f"{name}.tex").read_text("utf-8")
        assert [table.count(rule) for rule in ("\\toprule", "\\midrule", "\\bottomrule")] in (
            [1, 1, 1],
            [2, 2, 1],
        )


def test_references_are_those_cited_and_each_is_listed_in_every_format(
    rehearsal: Rehearsal, word: Any
) -> None:
    folder = rehearsal.page.parent
    own = read_bibtex((folder / "references.bib").read_text("utf-8"))
    listed = document_of(rehearsal.content, WHEN).references
    assert list(own) == [one.key for one in listed] and {"wrods", "bates2015lme4", "rcore"} <= set(own)
    assert len(own) < len(known())
    listed_in = []
    for document in (word, docx.Document(str(folder / "supplement.docx"))):
        entries = set(texts(document, "Reference"))
        listed_in.append(entries - {plain_text(own["wrods"].apa())})
        cells = [cell.text for table in document.tables for row in table.rows for cell in row.cells]
        others = [one.text for one in document.paragraphs if one.text not in entries]
        cited = cited_in("\n".join([*others, *cells]))
        assert listed_in[-1] == {plain_text(entry.apa()) for entry in cited}
    for one in listed:
        assert str(one.apa()) in rehearsal.html
    assert own["wrods"].fields["version"]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("the wording of Cao et al. (2023), Scrambled Bench", ["cao2023"]),
        (
            "after Benjamini and Hochberg (1995); (Benjamini & Yekutieli, 2005)",
            ["benjamini1995", "benjamini2005"],
        ),
        ("McMorey, 2008; Bates et al., 2015; Cao et al., 20231", []),
    ],
)
def test_a_text_cites_in_parentheses_and_in_running_text(text: str, keys: list[str]) -> None:
    assert [entry.key for entry in cited_in(text)] == keys


def test_every_known_reference_has_what_its_kind_needs() -> None:
    for one in known().values():
        needed = {"article": {"journal", "author", "title", "year"}}.get(
            one.kind, {"author", "title", "year"}
        )
        assert needed <= set(one.fields), one.key
        assert "{" not in str(one.apa()) and "\\" not in str(one.apa()) and "  " not in str(one.apa())


@given(st.text(max_size=60))
def test_no_text_is_a_command_to_latex(text: str) -> None:
    written = escaped(text)
    bare = re.sub(r"\\[\\{}$&#_%,]|\\[a-zA-Z]+(\{\})?|\$[^$]*\$", "", written)
    assert not re.search(r"(?<!\\)[$&#_%^~]", bare.replace("~", "")) and bare.count("{") == bare.count("}")


def nasty() -> Document:
    """A document that holds every kind of node with letters that break formats which are not escaped."""
    rows = (Head([NASTY]), ("[a]", NASTY), ("*", "[1.0, 2.0]"), Head(["Random", "SD"]), ("b", ""))
    long = tuple((f"row {n}", "1") for n in range(60))
    return Document(
        NASTY,
        Markup("Study <code>{}</code>").format(NASTY),
        (NASTY,),
        (NASTY,),
        (
            Heading(2, Markup("{}").format(NASTY), (NASTY,)),
            Paragraph(Markup("<b>{}</b> <code>{}</code>").format(NASTY, NASTY), anchor="p1"),
            Bullets((Markup("[label] {}").format(NASTY),)),
            Bullets((Markup("<code>{}</code>").format(NASTY),), ordered=True),
            PlannedFinding(NASTY, Markup("{}").format(NASTY), NASTY, NASTY),
            Facts(((NASTY, NASTY),)),
            Numbered("1", ApaTable("table_01_nasty", NASTY, ("A", NASTY), rows, NASTY)),
            Numbered("S2", ApaTable("table_s02_long", "Long", ("A", "Percent [95% CI]"), long, "Note.")),
            Heading(4, Markup("{}").format(NASTY)),
        ),
        (Heading(2, Markup("Supplement"), anchor="supplement"), Paragraph(Markup("{}").format(NASTY))),
        (known()["bates2015lme4"],),
    )


def test_any_text_goes_into_word_as_it_stands(tmp_path: Path) -> None:
    word = docx.Document(str(write_docx(nasty(), tmp_path, {"1": NASTY}, WHEN)))
    assert sum(NASTY in one.text for one in word.paragraphs) >= 8
    assert word.tables[0].cell(2, 1).text == NASTY


def test_the_supplement_is_a_file_of_its_own_in_word_and_latex(tmp_path: Path) -> None:
    own = ApaTable("table_f01_own", "Own", ("A", "b"), (("a", "1"),))
    word = docx.Document(
        str(write_docx(nasty(), tmp_path, {"1": "of the first", "F1": "of the filed"}, WHEN))
    )
    lines = [one.text for one in word.paragraphs]
    assert "Table 1. of the first" in lines and not any("of the filed" in line for line in lines)
    more = docx.Document(str(tmp_path / "supplement.docx"))
    assert "Supplement" in texts(more, "Heading 1") and "Supplement" not in texts(word, "Heading 1")
    written = write_latex(nasty(), tmp_path, {}, [Numbered("F1", own)]).read_text("utf-8")
    assert "Supplement" not in written and "Supplement" in (tmp_path / "supplement.tex").read_text("utf-8")
    assert (tmp_path / "latex" / "table_f01_own.tex").is_file()


@pytest.mark.parametrize("program", ["pdflatex", "xelatex"])
def test_report_tex_compiles_whatever_the_texts_hold(tmp_path: Path, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    write_latex(nasty(), tmp_path, {"1": NASTY})
    done = subprocess.run(
        [program, "-interaction=nonstopmode", "-halt-on-error", "report.tex"],
        cwd=tmp_path, capture_output=True, timeout=250, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout.decode("utf-8", "replace")[-3000:]
    assert (tmp_path / "report.pdf").stat().st_size > 5000


@pytest.mark.parametrize(
    ("cells", "letters", "kind", "size"),
    [
        (4, 6, "table", "small"),
        (6, 10, "table", "footnotesize"),
        (7, 9, "sidewaystable", "small"),
        (7, 12, "sidewaystable", "footnotesize"),
    ],
)
def test_a_wide_table_is_turned_in_latex_before_its_letters_shrink(
    cells: int, letters: int, kind: str, size: str
) -> None:
    laid = ApaTable(
        "own", "Own", ("Contrast", *("b",) * cells), (("initial − internal", *("8" * letters,) * cells),)
    )
    written = table_in_latex(Numbered("1", laid), "")
    assert f"\\begin{{{kind}}}" in written and f"\\{size}\n" in written and f"\\end{{{kind}}}" in written
    assert "resizebox" not in written and "scriptsize" not in written
    head = ApaTable(
        "own", "Own", ("Contrast", "Clustered by participants"), (("initial − internal", "same"),)
    )
    assert "participants" in table_in_latex(Numbered("1", head), ""), "no word of a head breaks"


def test_intervals_of_the_answers_table_stay_on_one_line() -> None:
    heads = ("Contrast", "Estimate [95% CI]", "p", "Detectable", "Checks", "Grade")
    rows = (
        ("simulated readers vs. restorer", "−20.6 [−41.3, 0.1]", ".051", "27.2", "0 of 3", "Contradicted"),
    )
    size, widths = fitted_columns(
        ApaTable("own", "Own", heads, (Head(["accuracy: initial − internal"]), *rows))
    )
    for cell, width in list(zip(rows[0], widths, strict=True))[1:]:
        font = FontProperties(family="DejaVu Serif", size=size)
        assert TextPath((0, 0), cell, prop=font).get_extents().width / 72 <= width - 0.06, cell
    assert sum(widths) <= 6.5 + 1e-6


def test_the_running_head_of_word_and_latex_names_the_readers_that_are_not_data(
    rehearsal: Rehearsal, word: Any
) -> None:
    head = "Contains simulated readers and baselines: not data"
    assert head in word.sections[0].header.paragraphs[0].text
    assert head in (rehearsal.page.parent / "report.tex").read_text("utf-8")
    assert "November 21, 2026" in texts(word, "Byline")[0]


LONG = "vertauschte_Anfangsbuchstaben_des_Wort"


@pytest.mark.parametrize("columns", [5, 12])
@pytest.mark.parametrize("name", ["final", f"{LONG} − Buchstabendreher_im_Inneren_der_Woerter"])
def test_no_number_and_no_word_of_a_head_breaks_in_a_table_with_long_names(columns: int, name: str) -> None:
    numbers = [
        "0.335",
        "−1.06",
        "< .001",
        "[−1.06, 12.35]",
        "1,234",
        "Variance",
        "0.12",
        "−0.45",
        "99.95",
        ".081",
        "12.30",
    ]
    heads = [
        "Difference",
        "b",
        "SE",
        "p adjusted",
        "95% CI",
        "Correlation",
        "OR",
        "Points",
        "df",
        "z",
        "M",
        "SD",
    ]
    laid = ApaTable(
        "long", "Long names", tuple(heads[:columns]), ((name, *numbers[: columns - 1]), Head(["People"]))
    )
    size, widths = fitted_columns(laid)
    assert sum(widths) <= 6.5 + 1e-6 and size >= 7
    for head, cell, width in list(zip(heads, (name, *numbers), widths, strict=False))[1:]:
        for piece in (*head.split(), *re.split(r"(?<!<) ", cell)):
            # DejaVu Serif is the widest of what stands in for Times; a cell has 0.06 inches of margins
            font = FontProperties(family="DejaVu Serif", size=size)
            assert TextPath((0, 0), piece, prop=font).get_extents().width / 72 <= width - 0.06, (piece, width)
