"""Letter position: transposed and substituted letters by place and distance, as reading research studies them."""

from stimuli.papers import Paper

PAPER = Paper(
    "letter-position",
    __name__,
    chapters={"letters": "chapter:write"},
    figure_tables={
        r"letter_curves(?:_\d+)?": ("letter_places_start", "letter_places_end"),
        r"letter_curves_zones(?:_\d+)?": ("letter_places_start", "letter_places_end", "letter_zones"),
        r"letter_(?:zones|map)(?:_.*)?": ("letter_zones",),
    },
)
