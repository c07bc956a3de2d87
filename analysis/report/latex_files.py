"""Writes a report for LaTeX: one file per table (booktabs), ``report.tex`` with all of them, and the references cited.

A table's file can go into any document that loads booktabs, caption, longtable and rotating; ``report.tex`` compiles with pdflatex and
xelatex.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import Any

import jinja2
from markupsafe import escape

from analysis.names import as_given
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.document import Document, of_printed
from analysis.report.inline import head_markup, note_markup, runs_of
from analysis.report.nodes import Node
from analysis.report.numbering import Numbered
from analysis.report.references import as_bibtex

LONGEST = 34
"""A table with more rows than this runs over pages."""
SIZES = ((r"\small", 84), (r"\footnotesize", 96))
"""Sizes of letters, and how many a line of each holds."""
TURNED = 1.38
"""How much longer a line is on a page that is turned."""
SHORTEST_LINE = 8
"""Letters up to which a line of a column's head is not broken."""
LONG_NAME, WRAPPED = 42, r"p{0.36\linewidth}"
"""Letters above which names in the first column wrap."""
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    '"': r"\textquotedbl{}", "'": "'", "`": r"\textasciigrave{}", "\u00a0": "~", "\n": " ", "\t": " ",
    "\u2002": " ", "\u2003": " ", "\u2009": r"\,", "\u202f": r"\,", "\u200b": "", "\u00ad": r"\-",
    "–": "--", "—": "---", "‘": "`", "’": "'", "“": "``", "”": "''", "…": r"\ldots{}",
    "•": r"\textbullet{}", "·": r"\textperiodcentered{}",
    "−": "$-$", "×": r"$\times$", "÷": r"$\div$", "±": r"$\pm$", "≤": r"$\leq$", "≥": r"$\geq$", "≠": r"$\neq$", "≈": r"$\approx$",
    "∞": r"$\infty$", "√": r"$\surd$", "→": r"$\rightarrow$", "←": r"$\leftarrow$", "↔": r"$\leftrightarrow$", "′": "$'$", "″": "$''$",
    "²": r"\textsuperscript{2}", "³": r"\textsuperscript{3}", "¹": r"\textsuperscript{1}", "½": r"$\tfrac12$", "°": r"\textdegree{}",
    "Σ": r"$\Sigma$", "Δ": r"$\Delta$", "∑": r"$\sum$", "∼": r"$\sim$",
    "⁻": r"\textsuperscript{$-$}", "µ": r"$\mu$", "€": r"\texteuro{}",
}  # fmt: skip
_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "varepsilon", "ζ": "zeta", "η": "eta", "θ": "theta", "λ": "lambda",
    "κ": "kappa", "μ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "varphi", "χ": "chi",
    "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Θ": "Theta", "Λ": "Lambda", "Π": "Pi", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega",
}  # fmt: skip
_TABLE = str.maketrans(_SPECIAL | {letter: f"${{\\{name}}}$" for letter, name in _GREEK.items()})
_LATIN = re.compile(r"[\u0020-\u017f\u0218-\u021b]")


def escaped(text: str) -> str:
    """Write any text so that LaTeX sets it as it stands: nothing in it is a command."""
    return str(text).translate(_TABLE)


def set_markup(markup: str) -> str:
    """Write a paragraph's markup in LaTeX."""
    parts = []
    for run in runs_of(markup):
        if not run.text:
            continue
        # long names break after underscores and slashes, formulas also after their other signs
        text = re.sub(r"(\\_|/)", r"\1\\allowbreak{}", escaped(run.text))
        if run.code:
            text = r"\texttt{" + re.sub(r"(\||:|\*)", r"\1\\allowbreak{}", text) + "}"
        for on, command in (
            (run.italic, "textit"),
            (run.bold, "textbf"),
            (run.sub, "textsubscript"),
            (run.sup, "textsuperscript"),
        ):
            text = f"\\{command}{{{text}}}" if on else text
        parts.append(text)
    return "".join(parts)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"tex": escaped, "markup": lambda text: set_markup(escape(text)), "row": _laid_row}
    environment.filters["note"] = lambda text: set_markup(note_markup(text))
    # a bracket at the head of an item would be read as its label
    environment.filters["unbracketed"] = lambda text: f"{{}}{text}" if text.startswith("[") else text
    # paths of files and addresses break behind slashes and underscores
    environment.filters["breaking"] = lambda text: re.sub(r"(/|\\_)", r"\1\\allowbreak{}", text)
    return environment


def _written(name: str, **facts: Any) -> str:
    return _environment().get_template(f"{name}.tex.jinja").render(**facts)


def write_latex(
    document: Document, folder: Path, sources: Mapping[str, str], filed: Sequence[Numbered] = ()
) -> Path:
    """Write ``report.tex``, ``supplement.tex``, ``latex/*.tex`` and ``references.bib``; return the path of the first."""
    (folder / "latex").mkdir(exist_ok=True)
    for node in (*document.all_nodes, *filed):
        if isinstance(node, Numbered):
            words = sources.get(node.number, "")
            file = folder / "latex" / as_given(f"{node.table.name}.tex")
            file.write_text(as_given(table_in_latex(node, words)), "utf-8")
    (folder / "references.bib").write_text(as_bibtex(document.references), "utf-8")
    if document.supplement:
        _write_file(document, document.supplement, folder / "supplement.tex", sources)
    return _write_file(document, document.nodes, folder / "report.tex", sources)


def _write_file(document: Document, nodes: Sequence[Node], path: Path, sources: Mapping[str, str]) -> Path:
    """Write some nodes of a document into a file that compiles."""
    body = _written("body", nodes=nodes)
    texts = [body, document.title, str(document.byline), *document.banner]
    texts += [table_in_latex(node, "") for node in nodes if isinstance(node, Numbered)]
    # what neither Latin fonts nor our own replacements cover
    letters = {letter for text in texts for letter in escaped(text) if not _LATIN.match(letter)} - {
        "\n",
        "\t",
    }
    odd = [f"{ord(letter):04X}" for letter in sorted(letters)]
    printed = of_printed(nodes, sources)
    text = _written("report", document=document, body=body.removesuffix("\n"), odd=odd, printed=printed)
    path.write_text(as_given(text), "utf-8")
    return path


def table_in_latex(shown: Numbered, source: str) -> str:
    """Return a table as LaTeX: caption above, three rules, note below; a comment at its head says where its numbers come from."""
    apa_table, n_columns = shown.table, len(shown.table.columns)
    first, *cells = apa_table.widths(lambda index, is_head, text: [] if is_head and index else [text])
    heads = [[apa_table.columns[0]]] + [
        wrap(column.replace("% CI", "%\u00a0CI"), max(SHORTEST_LINE, int(width)), break_long_words=False)
        or [""]
        for column, width in zip(apa_table.columns[1:], cells, strict=True)
    ]
    others = apa_table.widths(lambda index, is_head, text: heads[index] if is_head else [text])[1:]
    width, is_long = min(first, LONG_NAME) + sum(others) + 2 * n_columns, len(apa_table.rows) > LONGEST
    size = next((size for size, room in SIZES if width <= room), None)
    is_turned = size is None and not is_long
    if is_turned:
        size = next((size for size, room in SIZES if width <= TURNED * room), None)
    return _written(
        "table",
        number=shown.number,
        laid=apa_table,
        source=" ".join(source.split()),
        size=size or (r"\scriptsize" if is_long else SIZES[-1][0]),
        columns=f"@{{}}{WRAPPED if first > LONG_NAME else 'l'}*{{{n_columns - 1}}}{{c}}@{{}}",
        head=_head(heads, [apa_table.is_symbol(column) for column in apa_table.columns]),
        is_long=is_long,
        is_turned=is_turned,
        is_wide=size is None,
    )


def _head(heads: Sequence[Sequence[str]], symbols: Sequence[bool]) -> str:
    """Set the heads of columns, of which long ones have several lines."""
    lines = [
        [_braced(set_markup(str(head_markup(line, is_symbol)))) for line in head]
        for head, is_symbol in zip(heads, symbols, strict=True)
    ]
    stacked = [r" \\ ".join(head) for head in lines]
    return _cells(
        f"\\shortstack{{{text}}}" if len(head) > 1 else text
        for head, text in zip(lines, stacked, strict=True)
    )


def _laid_row(row: Sequence[str], laid: ApaTable) -> str:
    if isinstance(row, Head):
        if len(row) == 1:
            return f"\\multicolumn{{{len(laid.columns)}}}{{@{{}}l}}{{{escaped(row[0])}}}\\\\"
        return "\\addlinespace " + _row([str(head_markup(cell, laid.is_symbol(cell))) for cell in row])
    indent = "\\hspace{1em}" if laid.has_heads else ""
    return indent + _row([str(head_markup(cell, False)) for cell in row])


def _row(cells: Sequence[str]) -> str:
    return _cells(map(_braced, map(set_markup, cells)))


def _cells(texts: Iterable[str]) -> str:
    return " & ".join(texts) + " \\\\"


def _braced(text: str) -> str:
    """Keep a bracket at the head of a row, or of a line, from being read as an option of the line before."""
    return f"{{{text}}}" if text.startswith(("[", "*")) else text
