"""Derive the English word lists of ``stimuli/lexicon/scowl`` from the files of a SCOWL release.

``python -m tests.write_word_lists FOLDER`` with the folder that holds ``english-words.10`` and its like. A form stands
once, in the first list that has it; possessives are left out, since a scramble judges what stands before their
apostrophe.
"""

from __future__ import annotations

import lzma
import re
import sys
from pathlib import Path

LISTS = {
    "words 35": (("words", "contractions"), 35),
    "words 60": (("words", "contractions"), 60),
    "words 70": (("words", "contractions"), 70),
    "names 70": (("upper", "proper-names"), 70),
    "abbreviations 70": (("abbreviations",), 70),
}
"""Classes and greatest size of each list; a list of names or abbreviations also holds all sizes below."""
SPELLINGS = ("english", "american", "british")


def write(folder: Path, target: Path) -> dict[str, int]:
    """Write the lists one after the other, and return the number of forms in each."""
    seen: set[str] = set()
    lines: list[str] = []
    sizes: dict[str, int] = {}
    for name, (classes, largest) in LISTS.items():
        forms: set[str] = set()
        for path in folder.iterdir():
            parts = re.fullmatch(r"(.+?)-(.+)\.(\d+)", path.name)
            if parts and parts[1] in SPELLINGS and parts[2] in classes and int(parts[3]) <= largest:
                forms.update(path.read_text("utf-8").lower().split())
        new = sorted(form for form in forms - seen if not form.endswith("'s"))
        seen.update(new)
        sizes[name] = len(new)
        lines += [f"[{name}]", *new]
    target.write_bytes(lzma.compress("".join(f"{line}\n" for line in lines).encode(), preset=9))
    return sizes


if __name__ == "__main__":
    print(write(Path(sys.argv[1]), Path("stimuli/lexicon/scowl/english.txt.xz")))
