"""H-TEST (Lee & Lim, 2024): rules about letters and sounds, and letter geometry."""

from stimuli.papers import OwnFactor, Paper

PAPER = Paper(
    "h-test",
    __name__,
    materials={"htest": "items:items_from_htest", "letter_geometry": "items:items_from_letter_geometry"},
    own_factors={
        "htest": OwnFactor(
            "task",
            "H-TEST",
            "grammar:tasks_of",
            controls={"none": "as it is", "Sub": "other letters instead of those of the text"},
            advice="Examples tell the classes apart, and who has seen those of a rule once knows it. To take them away, withhold "
            "them for whole sessions, design: between: {evidence: {examples: {exemplars: 4}, none: {exemplars: 0}}}, or shuffle "
            "their labels: {exemplars: 4, example_labels: shuffled}.",
            check="grammar:check_htest",
            session_settings=("exemplars", "example_labels", "items"),
            language="grammar:language_of_items",
            by_answer=True,
        ),
        "letter_geometry": OwnFactor(
            "family",
            "letter geometry",
            "grammar:families_of",
            controls={
                "none": "as it is",
                "Sub": "other symbols in the question, of which no option is the result",
                "withhold": "the question left out",
            },
            language="grammar:language_of_items",
            differs=True,
        ),
    },
    practice={"htest": "items:practice_of_rule"},
    prompt="protocol:prompt_name",
    parsers={"htest": "protocol:score_htest", "letter_geometry": "protocol:score_letter_geometry"},
    judged="protocol:htest_label",
    verdicts="verdicts:tables",
    chapters={"h-test": "chapter:write", "letter-geometry": "chapter:write_geometry"},
    figure_tables={r"h_test_(?:examples|families)": (r"h_test_full(?:_.+)?",)},
    together="chapter",
)
