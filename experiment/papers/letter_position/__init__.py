"""Letter position: transposed and substituted letters by place and distance, as reading research studies them."""

from stimuli.papers import Paper

PAPER = Paper(
    "letter-position",
    __name__,
    chapters={"letters": "chapter:write"},
    figure_tables={
        r"letter_curves.*": ("letter_places_start", "letter_places_end"),
        r"letter_(?:curves|map_).*": ("letter_zones",),
    },
)
