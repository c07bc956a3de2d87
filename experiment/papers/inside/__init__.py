"""Inside models: what training on scrambled text or H-TEST changes, and what hidden states tell."""

from stimuli.papers import Paper

PAPER = Paper(
    "inside",
    __name__,
    checks={"tuning": "tuning:check_trainings"},
    chapters={
        "trained": "chapters:write_trained",
        "representations": "chapters:write_representations",
        "probing": "chapters:write_probing",
    },
    answers="chapters:answers_of_trained",
    figure_tables={
        r"representations_map_(.+?)(?:_\d+)?": ("representations_cells_{}",),
        r"probing_(?:layers|steps)_([a-z]+)(?:_\d+)?": ("probing_layers_{}",),
    },
)
