"""Scrambled Bench (Cao et al., 2023): recovery of scrambled sentences, and questions about scrambled texts."""

from stimuli.papers import Paper

PAPER = Paper(
    "scrambled-bench",
    __name__,
    prompt="protocol:prompt_name",
    parsers={"scrambled_bench": "protocol:score_scrambled_bench"},
    reply_form="protocol:in_its_words",
    released="released:read_scrambled_bench",
    chapters={"scrambled-bench": "chapter:write"},
    figure_tables={
        r"(scrambled_bench_\d+)_(?:scrambles|sizes)": ("{}",),
        r"scrambled_bench_\d+_categories": ("scrambled_bench_8",),
    },
    reproduction="chapter.reproduction:reproduce",
)
