"""Compare reports with earlier ones: ``python -m tests.golden write|check FOLDER [STUDY …]``.

``FOLDER/studies`` holds what ``wrods report`` reads. ``write`` keeps numbers, tables, texts and figures of each report, with all
optional chapters, in ``FOLDER/base``; ``check`` writes them into ``FOLDER/now`` and prints what differs.
"""

from __future__ import annotations

import difflib
import html
import math
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from matplotlib.image import imread

from analysis.report.chapters import optional_names

RELATIVE = 1e-9
MAX_LINES = 12
"""Printed of the difference of one file."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_CHANGES_DAILY = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T_ ]\d\d[-:]\d\d(?:[-:]\d\d)?)?|\d{1,2} [A-Z][a-z]+ 20\d\d|\b\d+\.\d+\.\d+(?:\.dev\d+\S*)?"
    r"|\b\d\d:\d\d\b|(?<![\w.])(?=\d*[a-f])[0-9a-f]{12,64}\b|\b\d+\s(?:bytes|kB|MB)\b"
)
"""Dates, times, versions, hashes and sizes of files."""
_KEPT = ["numbers.json", "tables/*.csv", "models/*.csv", "*.R", "*.tex", "report.html", "figures/*.png"]


def _text(markup: str) -> str:
    """Return the text of a page, a line per block."""
    markup = re.sub(r"(?s)<(script|style|svg)\b.*?</\1>", "", markup)
    markup = re.sub(r"</?(?:p|tr|h\d|li|div|table|section|figure)\b[^>]*>", "\n", markup)
    text = html.unescape(re.sub(r"<[^>]+>", " ", markup))
    return "\n".join(line for raw in text.splitlines() if (line := " ".join(raw.split())))


def snapshot(study: Path, folder: Path) -> None:
    """Write a study's report and keep what is compared in a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as work:
        shutil.copytree(study, own := Path(work) / study.name)
        data = own if (own / "study.yaml").exists() else next(own.rglob("trials.parquet")).parent
        chapters = [word for name in optional_names() for word in ("--with", name)]
        command = [
            sys.executable,
            "-m",
            "experiment.cli",
            "report",
            str(data),
            "--out",
            f"{work}/out",
            *chapters,
        ]
        run = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        if run.returncode:
            raise SystemExit(f"{study.name}: {run.stderr[-3000:]}")
        report = Path(run.stdout.splitlines()[-1]).parent
        for file in (one for pattern in _KEPT for one in report.glob(pattern)):
            kept = folder / file.relative_to(report)
            kept.parent.mkdir(parents=True, exist_ok=True)
            if file.suffix == ".png":
                shutil.copy(file, kept)
            else:
                text = _text(file.read_text("utf-8")) if file.suffix == ".html" else file.read_text("utf-8")
                kept.write_text(_CHANGES_DAILY.sub("…", text), "utf-8")


def _same(before: str, now: str) -> bool:
    """Return whether two lines differ at most by rounding errors of their numbers."""
    return before == now or (
        _NUMBER.sub("#", before) == _NUMBER.sub("#", now)
        and all(
            math.isclose(float(a), float(b), rel_tol=RELATIVE)
            for a, b in zip(_NUMBER.findall(before), _NUMBER.findall(now), strict=True)
        )
    )


def _differences(before: Path, now: Path) -> Iterator[str]:
    """Yield lines that describe how two versions of one file differ."""
    if before.suffix == ".png":
        old_pixels, new_pixels = imread(before), imread(now)
        if old_pixels.shape != new_pixels.shape:
            yield f"size {old_pixels.shape[:2]}, now {new_pixels.shape[:2]}"
        elif share := (abs(old_pixels - new_pixels).max(axis=2) > 0.1).mean():
            yield f"{share:.3%} of pixels differ"
        return
    old, new = before.read_text("utf-8").splitlines(), now.read_text("utf-8").splitlines()
    if len(old) != len(new) or not all(map(_same, old, new)):
        lines = list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]
        changed = [line[:300] for line in lines if not line.startswith("@@")]
        yield from changed[:MAX_LINES]
        if len(changed) > MAX_LINES:
            yield f"… and {len(changed) - MAX_LINES} more lines"


def compare(before: Path, now: Path) -> Iterator[str]:
    """Yield the files in which two snapshots differ, each with its changed lines."""
    for name in sorted({str(one.relative_to(top)) for top in (before, now) for one in top.rglob("*.*")}):
        if not (before / name).exists() or not (now / name).exists():
            yield f"{name}: {'missing' if (before / name).exists() else 'new'}"
        elif lines := list(_differences(before / name, now / name)):
            yield "\n    ".join([f"{name}:", *lines])


if __name__ == "__main__":
    task, top, named = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    any_differs = False
    for study in sorted((top / "studies").iterdir()):
        if not named or study.name in named:
            folder = top / ("base" if task == "write" else "now") / study.name
            snapshot(study, folder)
            found = list(compare(top / "base" / study.name, folder))
            any_differs |= bool(found)
            print("\n  ".join([f"{study.name}: {len(found)} files differ", *found]), flush=True)
    sys.exit(any_differs)
