"""Writes a report for LaTeX: a file a table (booktabs), ``report.tex`` that holds them all, and the references that it cites.

A table's file can go into any document that loads booktabs, caption and longtable; ``report.tex`` compiles with pdflatex and xelatex.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from markupsafe import escape

from analysis.report.apa_tables import ApaTable, Head
from analysis.report.document import Document, of_printed
from analysis.report.inline import head_markup, note_markup, runs_of
from analysis.report.nodes import Bullets, Facts, Finding, Heading, Node, Paragraph
from analysis.report.numbered import Illustrated, Numbered
from analysis.report.references import as_bibtex

LONGEST = 34
"""A table with more rows than this runs over pages."""
PREAMBLE = r"""
% Compiles with pdflatex or xelatex (twice, for longer tables). Each table stands in a file of its own in latex/.
\documentclass[11pt]{article}
\usepackage{iftex}
\ifPDFTeX
  \usepackage[utf8]{inputenc}
  \usepackage[T1]{fontenc}
  \usepackage{lmodern}
  \usepackage{textcomp}
\else
  \usepackage{fontspec}
\fi
\usepackage[margin=1in]{geometry}
\usepackage{amsmath,array,booktabs,longtable,graphicx,float,caption,fancyhdr}
\usepackage[hidelinks]{hyperref}
\captionsetup{labelfont=bf,textfont=it,labelsep=newline,singlelinecheck=off,justification=raggedright,position=top}
\floatplacement{table}{H}
\floatplacement{figure}{H}
\setlength{\LTleft}{0pt}
\emergencystretch=3em
\pagestyle{fancy}\fancyhf{}\fancyhead[R]{\thepage}\renewcommand{\headrulewidth}{0pt}
""".lstrip()
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
        text = escaped(run.text)
        if run.code:
            # long formulas break at blanks and after signs of a formula
            text = r"\texttt{" + re.sub(r"(\\_|\||:|\*|/)", r"\1\\allowbreak{}", text) + "}"
        for on, command in (
            (run.italic, "textit"),
            (run.bold, "textbf"),
            (run.sub, "textsubscript"),
            (run.sup, "textsuperscript"),
        ):
            text = f"\\{command}{{{text}}}" if on else text
        parts.append(text)
    return "".join(parts)


def write_latex(
    document: Document, folder: Path, sources: Mapping[str, str], filed: Sequence[Numbered] = ()
) -> Path:
    """Write ``report.tex``, ``supplement.tex``, ``latex/*.tex`` and ``references.bib``; return the path of the first."""
    (folder / "latex").mkdir(exist_ok=True)
    for one in (*document.all_nodes, *filed):
        if isinstance(one, Numbered):
            words = sources.get(one.number, "")
            (folder / "latex" / f"{one.table.name}.tex").write_text(table_in_latex(one, words), "utf-8")
    (folder / "references.bib").write_text(as_bibtex(document.references), "utf-8")
    if document.supplement:
        _write_file(document, document.supplement, folder / "supplement.tex", sources)
    return _write_file(document, document.nodes, folder / "report.tex", sources)


def _write_file(document: Document, nodes: Sequence[Node], path: Path, sources: Mapping[str, str]) -> Path:
    """Write some nodes of a document into a file that compiles."""
    body = "\n".join(line for node in nodes for line in _lines(node))
    path.write_text(
        "\n".join(
            [
                PREAMBLE,
                *_head(document, nodes, body),
                body,
                *_sources(of_printed(nodes, sources)),
                "\\end{document}",
                "",
            ]
        ),
        "utf-8",
    )
    return path


def _head(document: Document, nodes: Sequence[Node], body: str) -> Iterator[str]:
    texts = [body, document.title, str(document.byline), *document.banner]
    for node in nodes:
        if isinstance(node, Numbered):
            texts.append(table_in_latex(node, ""))
    odd = sorted({letter for text in texts for letter in escaped_leftovers(text)})
    if odd:
        yield "% Letters that pdflatex has no font for; xelatex with a font that has them sets them as they are."
        yield "\\ifPDFTeX"
        yield from (
            f"  \\DeclareUnicodeCharacter{{{ord(letter):04X}}}{{[U+{ord(letter):04X}]}}" for letter in odd
        )
        yield "\\fi"
    if document.banner:
        yield "\\fancyhead[L]{\\footnotesize\\textbf{Holds readers that are not data}}"
    yield f"\\title{{{escaped(document.title)}}}"
    yield f"\\author{{}}\n\\date{{{set_markup(str(document.byline))}}}"
    yield "\\begin{document}\n\\maketitle\n\\thispagestyle{fancy}"
    for line in (*document.banner, *(f"Warning. {one}" for one in document.warnings)):
        yield f"\\noindent\\textbf{{{escaped(line)}}}\\par\\medskip"


def escaped_leftovers(text: str) -> set[str]:
    """Return the letters of a text that neither Latin fonts nor our own replacements cover."""
    return {letter for letter in escaped(text) if not _LATIN.match(letter) and letter not in "\n\t"}


def _lines(node: Node) -> Iterator[str]:
    if isinstance(node, Heading):
        marks = "".join(f" [{escaped(mark)}]" for mark in node.marks)
        kind = {2: "section", 3: "subsection"}.get(node.level, "subsubsection")
        yield f"\n\\{kind}*{{{set_markup(str(node.text))}{marks}}}"
    elif isinstance(node, Paragraph):
        before = {
            "reference": "\\noindent\\hangindent=2em ",
            "small": "\\noindent ",
            "warning": "\\noindent ",
        }
        yield f"\n{before.get(node.kind, '')}{set_markup(str(node.text))}\n"
    elif isinstance(node, Bullets):
        kind = "enumerate" if node.ordered else "itemize"
        yield f"\\begin{{{kind}}}"
        yield from (f"\\item {_unbracketed(set_markup(str(item)))}" for item in node.items)
        yield f"\\end{{{kind}}}"
    elif isinstance(node, Facts):
        if node.pairs:
            yield "\\begin{description}"
            yield from (
                f"\\item[{{{escaped(name)}}}] {set_markup(escape(words))}" for name, words in node.pairs
            )
            yield "\\end{description}"
    elif isinstance(node, Illustrated):
        yield from _figure(node)
    elif isinstance(node, Finding):
        yield f"\n\\noindent{set_markup(node.markup)}\\par\\medskip\n"
    else:
        yield f"\\input{{latex/{node.table.name}}}"


def _unbracketed(text: str) -> str:
    """Keep a bracket at the head of an item from being read as its label."""
    return f"{{}}{text}" if text.startswith("[") else text


def _figure(shown: Illustrated) -> Iterator[str]:
    yield "\\begin{figure}"
    yield f"\\renewcommand{{\\thefigure}}{{{shown.number}}}"
    yield f"\\caption{{{escaped(shown.drawing.title)}}}\\label{{fig:{shown.drawing.name}}}"
    # at its own size, and smaller only where the page is too narrow or too short
    yield "\\resizebox{!}{\\ifdim\\height>.78\\textheight .78\\textheight\\else\\height\\fi}{%"
    yield "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%"
    yield f"\\includegraphics{{figures/{shown.drawing.name}.png}}}}}}"
    yield f"\\par\\medskip{{\\footnotesize\\raggedright\\textit{{Note.}} {set_markup(str(note_markup(shown.drawing.note)))}\\par}}"
    yield "\\end{figure}"


def table_in_latex(shown: Numbered, source: str) -> str:
    """Return a table as LaTeX: caption above, three rules, note below."""
    laid = shown.table
    size = (
        "\\small"
        if len(laid.columns) <= 6
        else "\\footnotesize"
        if len(laid.columns) <= 8
        else "\\scriptsize"
    )
    caption = f"\\caption{{{escaped(laid.title)}}}\\label{{tab:{laid.name}}}"
    counter = f"\\renewcommand{{\\thetable}}{{{shown.number}}}"
    columns = f"@{{}}{_first_column(laid)}*{{{len(laid.columns) - 1}}}{{c}}@{{}}"
    head = _row([str(head_markup(one, laid.is_symbol(one))) for one in laid.columns])
    body = [_laid_row(row, laid) for row in laid.rows]
    note = _note(laid)
    lines = [f"% Table {shown.number}. {_comment(source)}".rstrip()]
    if len(laid.rows) > LONGEST:
        lines += [
            f"{{{size}\\setlength{{\\tabcolsep}}{{3pt}}{counter}",
            f"\\begin{{longtable}}{{{columns}}}",
            f"{caption}\\\\",
        ]
        lines += [
            "\\toprule",
            head,
            "\\midrule",
            "\\endfirsthead",
            "\\toprule",
            head,
            "\\midrule",
            "\\endhead",
        ]
        lines += ["\\bottomrule", "\\endfoot", *body, "\\end{longtable}", *note, "}"]
    else:
        inner = [
            f"\\begin{{tabular}}{{{columns}}}",
            "\\toprule",
            head,
            "\\midrule",
            *body,
            "\\bottomrule",
            "\\end{tabular}",
        ]
        wide = _is_wide(laid)
        inner = ["\\resizebox{\\linewidth}{!}{%", *inner, "}"] if wide else inner
        lines += [
            "\\begin{table}",
            counter,
            caption,
            size,
            "\\setlength{\\tabcolsep}{3pt}",
            *inner,
            *note,
            "\\end{table}",
        ]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> str:
    return " ".join(text.split())


def _note(laid: ApaTable) -> list[str]:
    if not laid.note:
        return []
    return [
        f"\\par\\smallskip{{\\footnotesize\\raggedright\\textit{{Note.}} {set_markup(str(note_markup(laid.note)))}\\par}}"
    ]


def _characters(laid: ApaTable) -> list[int]:
    """Return the longest cell of each column."""
    rows = [laid.columns, *(row for row in laid.rows if len(row) > 1)]
    return [
        max((len(str(row[place])) for row in rows if place < len(row)), default=1)
        for place in range(len(laid.columns))
    ]


def _first_column(laid: ApaTable) -> str:
    """Let a long first column wrap."""
    return "p{0.36\\linewidth}" if _characters(laid)[0] > 42 else "l"


def _is_wide(laid: ApaTable) -> bool:
    widths = _characters(laid)
    room = {6: 84, 8: 96}.get(next((most for most in (6, 8) if len(widths) <= most), 0), 112)
    return min(widths[0], 42) + sum(widths[1:]) + 2 * len(widths) > room


def _laid_row(row: Sequence[str], laid: ApaTable) -> str:
    if isinstance(row, Head):
        if len(row) == 1:
            return f"\\multicolumn{{{len(laid.columns)}}}{{@{{}}l}}{{{escaped(row[0])}}}\\\\"
        return "\\addlinespace " + _row([str(head_markup(one, laid.is_symbol(one))) for one in row])
    indent = "\\hspace{1em}" if laid.has_heads else ""
    return indent + _row([str(head_markup(one, False)) for one in row])


def _row(cells: Sequence[str]) -> str:
    # braces keep a bracket at the head of a row from being read as an option of the line before
    return (
        " & ".join(
            f"{{{text}}}" if (text := set_markup(cell)).startswith(("[", "*")) else text for cell in cells
        )
        + " \\\\"
    )


def _sources(printed: Sequence[tuple[str, str]]) -> Iterator[str]:
    if printed:
        yield "\\section*{Where the numbers come from}\n{\\footnotesize\\raggedright"
        for number, words in printed:
            words = re.sub(r"(/|\\_)", r"\1\\allowbreak{}", escaped(words))
            yield f"\\textbf{{Table {number}.}} {words}\\par"
        yield "}"
