"""Items as pictures, as a participant sees them, for models with vision.

The font (Source Code Pro), size, colours, line spacing and grid of cells are those that participants see, set in
``static/src/style.css``; missing letters come from DejaVu Sans Mono, as on the pages. Lines break where the plan breaks them.
Each letter is drawn in its own cell, so that a picture does not depend on the system's text layout; the hash covers size and
pixels, so that it does not depend on PNG compression.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.metadata
import io
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiment.bundle import bundle_folder
from experiment.media import SUFFIXES, contents_of
from experiment.procedure.steps import break_lines
from stimuli.errors import UserError

MARK = "\ufffc"
"""Stands for a picture in a message: Unicode's object replacement character."""

FAMILY = "Source Code Pro"
FALLBACK = "DejaVuSansMono.ttf"
SANS, SANS_FALLBACK = "source-sans-3-{}-wght-normal.woff2", "DejaVuSans.ttf"
_SUBSETS = ("latin", "latin-ext", "greek", "greek-ext", "cyrillic", "cyrillic-ext", "vietnamese")
_FILE = "source-code-pro-{}-wght-normal.woff2"
_WEIGHT = 400

SIZE = 28.8
"""Letter size in pixels: 1.6 rem of 112.5% of 16 pixels."""
ADVANCE = 0.6
"""Width of a cell, relative to the letter size."""
LINE = 1.6
"""Line spacing, relative to the letter size."""
INK, PAPER = "#1d1d1f", "#fbfaf7"
MARGIN = 24
"""Empty pixels on each side."""
LOOK: Mapping[str, object] = {
    "font": f"{FAMILY} {_WEIGHT}", "size_px": SIZE, "line_px": round(LINE * SIZE, 2), "margin_px": MARGIN, "ink": INK, "paper": PAPER,
}  # fmt: skip
"""Appearance of every picture; part of the work keys."""
MOST_COLUMNS, MOST_LINES = 116, 44
"""Most cells per line and lines per picture: 2,048 pixels each; vision models shrink larger pictures."""


@dataclass(frozen=True)
class Picture:
    """A text that is shown as a picture."""

    lines: tuple[str, ...]  # from top to bottom
    ink: str = INK
    paper: str = PAPER
    share: float = 1.0  # of the usual size of letters
    font: str = "mono"

    @classmethod
    def of(cls, text: str, lines: Sequence[str] = (), style: Mapping[str, str] | None = None) -> Picture:
        """Return the picture of a text, in its planned lines if there are any, in the look of its step."""
        planned_lines = tuple(unicodedata.normalize("NFC", line) for line in lines or break_lines(text))
        _check(text, planned_lines)
        look = style or {}
        share = float(look.get("size", "100%").removesuffix("%")) / 100
        return cls(
            planned_lines,
            look.get("colour", INK),
            look.get("background", PAPER),
            share,
            look.get("font", "mono"),
        )

    @property
    def size(self) -> float:
        """Size of the letters in pixels."""
        return SIZE * self.share

    @property
    def style(self) -> dict[str, str]:
        """The look of the text as a study writes it; empty for the usual one."""
        given = {"colour": (self.ink, INK), "background": (self.paper, PAPER)}
        given |= {"font": (self.font, "mono"), "size": (f"{100 * self.share:g}%", "100%")}
        return {name: value for name, (value, usual) in given.items() if value != usual}

    @property
    def text(self) -> str:
        """The text in the picture."""
        return "\n".join(self.lines)

    @property
    def width(self) -> int:
        """Width in pixels."""
        return math.ceil(max(map(self.length, self.lines))) + 2 * MARGIN

    def length(self, line: str) -> float:
        """Return the width of a line in pixels: of equal cells, or of letters one after another."""
        if self.font == "mono":
            return len(line) * ADVANCE * self.size
        return float(sum(_font_of(letter, self.size, self.font).getlength(letter) for letter in line))

    @property
    def height(self) -> int:
        """Height in pixels."""
        return math.ceil(len(self.lines) * LINE * self.size) + 2 * MARGIN

    @property
    def tokens(self) -> int:
        """Approximate upper limit of the tokens that servers count: OpenAI 85 and 170 per tile of 512², or 2.46 per patch of 32²."""
        tiles = math.ceil(self.width / 512) * math.ceil(self.height / 512)
        patches = math.ceil(self.width / 32) * math.ceil(self.height / 32)
        return max(85 + 170 * tiles, math.ceil(2.46 * patches))

    @property
    def sha256(self) -> str:
        """Hash of width, height and pixels (RGB, row by row)."""
        return _drawn(self)[1]

    @property
    def png(self) -> bytes:
        """The picture as a PNG file."""
        return _drawn(self)[0]

    @property
    def data_url(self) -> str:
        """The PNG file as a data URL within a request."""
        return f"data:image/png;base64,{base64.b64encode(self.png).decode()}"

    def image(self) -> Any:
        """Return a Pillow image, mode RGB."""
        from PIL import Image

        return Image.open(io.BytesIO(self.png)).convert("RGB")

    def to_json(self) -> dict[str, object]:
        """Return the picture's text, hash, size and appearance, from which :func:`picture_of` redraws it."""
        size = {"width": self.width, "height": self.height}
        styled = {"style": self.style} if self.style else {}
        return {"text": self.text, "sha256": self.sha256, **size, **LOOK, **styled}


@dataclass(frozen=True)
class FilePicture(Picture):
    """A picture of the materials, sent as it is."""

    name: str = ""  # the name of the file under which pages load it: its hash
    description: str = ""  # in words, if the materials have any

    @property
    def text(self) -> str:
        """The description of the picture."""
        return self.description

    @property
    def width(self) -> int:
        """Width in pixels."""
        return int(self.image().width)

    @property
    def height(self) -> int:
        """Height in pixels."""
        return int(self.image().height)

    @property
    def sha256(self) -> str:
        """Hash of the file."""
        return hashlib.sha256(self.png).hexdigest()

    @property
    def png(self) -> bytes:
        """The contents of the file, in its own format."""
        return contents_of(self.name)

    @property
    def data_url(self) -> str:
        """The file as a data URL within a request."""
        sent_as = SUFFIXES["image"][Path(self.name).suffix]
        return f"data:{sent_as};base64,{base64.b64encode(self.png).decode()}"

    def to_json(self) -> dict[str, object]:
        """Return the file's name, hash and size, and its description."""
        size = {"width": self.width, "height": self.height}
        return {"text": self.text, "file": self.name, "sha256": self.sha256, **size}


def picture_of(description: Mapping[str, Any]) -> Picture:
    """Return the picture that the store or an export describes."""
    text = str(description["text"])
    if "file" in description:
        return FilePicture((), name=str(description["file"]), description=text)
    picture = Picture.of(text, text.split("\n"), description.get("style"))
    if picture.sha256 != description["sha256"]:
        raise UserError(
            f"the picture of {text!r} has other pixels now than when it was sent ({picture.sha256[:12]}, then "
            f"{str(description['sha256'])[:12]})",
            mend="Take the versions of Pillow and of wrods under which the run was made; its record names them.",
        )
    return picture


@functools.cache
def drawn_with() -> dict[str, str]:
    """Return everything that can change a pixel: font files with their hashes, and versions of the drawing libraries."""
    from PIL import features

    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in _files()}
    freetype = str(features.version("freetype2"))
    return {"pillow": importlib.metadata.version("pillow"), "freetype": freetype, **files}


def _check(text: str, lines: Sequence[str]) -> None:
    if not any(line.strip() for line in lines):
        raise UserError(
            "a text without letters is to be shown as a picture",
            mend="Let the block show a field that holds text, or show text (presentation: text).",
        )
    longest = max(map(len, lines))
    if longest > MOST_COLUMNS or len(lines) > MOST_LINES:
        raise UserError(
            f"the text {_begun(text)} takes {len(lines)} lines of up to {longest} letters; a picture holds {MOST_LINES} lines of "
            f"{MOST_COLUMNS}",
            mend="Take shorter texts for the model that looks at pictures, or presentation: text.",
        )
    for letter in dict.fromkeys("".join(lines)):
        if letter == MARK or unicodedata.bidirectional(letter) in ("R", "AL") or _font_of(letter) is None:
            raise UserError(
                f"the text {_begun(text)} holds {letter!r} (U+{ord(letter):04X}), which cannot be drawn: {FAMILY} and DejaVu Sans "
                "Mono have no glyph for it, or it is written from right to left",
                mend="Show this text to models as text (presentation: text).",
            )


def _begun(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:39]}…")


@functools.lru_cache(maxsize=4096)
def _drawn(picture: Picture) -> tuple[bytes, str]:
    """Return a picture's file and hash."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (picture.width, picture.height), picture.paper)
    draw, size = ImageDraw.Draw(image), picture.size
    ascent, descent = _fonts(size, picture.font)[0].getmetrics()
    above = (LINE * size - (ascent + descent)) / 2 + ascent
    for row, line in enumerate(picture.lines):
        base = MARGIN + round(row * LINE * size + above)
        for column, letter in enumerate(line):
            if not letter.isspace():
                at = (MARGIN + picture.length(line[:column]), base)
                draw.text(at, letter, picture.ink, _font_of(letter, size, picture.font), "ls")
    file = io.BytesIO()
    image.save(file, "PNG")
    extent = f"{image.width}x{image.height} ".encode()
    return file.getvalue(), hashlib.sha256(extent + image.tobytes()).hexdigest()


@functools.cache
def _font_of(letter: str, size: float = SIZE, family: str = "mono") -> Any:
    """Return the first font that draws a letter; None if no font does, or it has no width (a combining mark)."""
    if unicodedata.category(letter) in ("Mn", "Me", "Cf", "Cc", "Co", "Cs", "Cn"):
        return None
    if letter.isspace():
        return _fonts(size, family)[0]
    return next(
        (font for font in _fonts(size, family) if bytes(font.getmask(letter)) != _missing(font)), None
    )


@functools.cache
def _missing(font: Any) -> bytes:
    """Return the glyph that a font draws for a missing letter."""
    return bytes(font.getmask("\U0010ffff"))


@functools.cache
def _fonts(size: float = SIZE, family: str = "mono") -> tuple[Any, ...]:
    from PIL import ImageFont

    fonts = []
    for path in _files(*((_FILE, FALLBACK) if family == "mono" else (SANS, SANS_FALLBACK))):
        try:
            font = ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)
            if path.suffix != ".ttf":
                font.set_variation_by_axes([_WEIGHT])
        except (OSError, NotImplementedError) as fault:
            raise UserError(
                f"Pillow cannot read the font {path.name} of the pages ({fault})",
                mend="Install Pillow from PyPI (pip install --force-reinstall pillow): its FreeType reads WOFF2.",
                exit_code=1,
            ) from fault
        fonts.append(font)
    return tuple(fonts)


@functools.cache
def _files(name: str = _FILE, fallback: str = FALLBACK) -> tuple[Path, ...]:
    import matplotlib

    font_folder = bundle_folder() / "fonts"
    last = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / fallback
    return (*(font_folder / name.format(subset) for subset in _SUBSETS), last)
