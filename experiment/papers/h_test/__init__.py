"""H-TEST (Lee & Lim, 2024): rules about letters and sounds, and letter geometry."""

from stimuli.papers import Paper

PAPER = Paper(
    "h-test",
    __name__,
    materials={"htest": "items:items_from_htest", "letter_geometry": "items:items_from_letter_geometry"},
    practice={"htest": "items:practice_of_rule"},
    prompt="protocol:prompt_name",
    parsers={"htest": "protocol:score_htest", "letter_geometry": "protocol:score_letter_geometry"},
    judged="protocol:htest_label",
    verdicts="verdicts:tables",
    chapters={"h-test": "chapter:write", "letter-geometry": "chapter:write_geometry"},
    figure_tables={r"h_test_(?:examples|families)": (r"h_test_full(?:_.+)?",)},
    together="chapter",
)
