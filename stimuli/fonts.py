"""Fonts of figures: Matplotlib's own has no Chinese, Japanese or Korean letters, which it would draw as boxes."""

from __future__ import annotations

from functools import cache

FURTHER = (
    ("Noto Sans CJK JP", "Noto Sans JP", "Hiragino Sans", "Yu Gothic", "MS Gothic"),
    ("Noto Sans CJK SC", "Noto Sans SC", "PingFang SC", "Microsoft YaHei", "SimHei"),
    ("Noto Sans CJK KR", "Noto Sans KR", "Apple SD Gothic Neo", "Malgun Gothic"),
)
"""Fonts of Japanese, Chinese and Korean systems; the first that is installed is used for letters that the main font lacks."""


@cache
def font_families() -> tuple[str, ...]:
    """Return the fonts of figures, the main one first."""
    from matplotlib.font_manager import get_font_names

    installed = set(get_font_names())
    further = (next((name for name in names if name in installed), None) for names in FURTHER)
    return ("sans-serif", *(name for name in further if name is not None))
