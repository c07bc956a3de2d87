"""Mind Scramble (TypoBench, 2024): tasks on texts with changed letters, words and sentences."""

from stimuli.papers import Paper

PAPER = Paper(
    "mind-scramble",
    __name__,
    prompt="protocol:prompt_name",
    parsers={"typobench": "protocol:score_typobench"},
    reply_form="protocol:in_its_field",
    compared="protocol:compared_text",
    verdicts="verdicts:tables",
    chapters={"mind-scramble": "chapter:write"},
    answers="chapters:answers",
    together="chapter",
    figure_tables={"ms_costs": (), r"ms_series(.*)": ("ms_slopes{}",)},
)
