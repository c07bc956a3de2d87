"""Mind Scramble's summaries and programs, from what models wrote to the paper's layout: field, cosine, handover, table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from analysis import load
from experiment.building import build_study
from experiment.checking import load_study
from experiment.exporting.export import hand_over
from experiment.models import ModelSettings
from experiment.models.judges.similarity import (
    PLACEHOLDER,
    Embedder,
    _about_intact_texts,
    _text,
    compare_texts,
    embedding_settings,
)
from experiment.papers.mind_scramble.chapter import together, write
from experiment.papers.mind_scramble.chapter.measures import IN_PLACE, NEARNESS, values_of
from experiment.scoring.rescoring import StoredResponse
from experiment.store import open_store
from experiment.study import Study
from tests.analysis.chapters import chapter_of, tables_in
from tests.experiment.commands import worked
from tests.experiment.models.test_rescoring import run
from tests.experiment.models.tiny_models import tiny_llama
from tests.experiment.test_mind_scramble import ONCE, made

LEVELS = ("BASE", "REO-ALL", "WORD-REO-ALL", "SENT-REO-ALL")


def said_of(trial: dict[str, Any]) -> str:
    level = trial["condition"]["scramble"]
    if level == "REO-ALL":
        return "I am sorry, there is nothing that I can tell of it."
    about = f"It is about {trial['item_id']}."
    return f">summarized: {about}" if level == "WORD-REO-ALL" else f"Here you are.\n>summarized: {about}\n"


@pytest.mark.shared
def test_summaries_go_from_replies_to_the_paper_s_table(tmp_path, shared):
    encoder = tiny_llama(tmp_path / "encoder", seed=3)
    named = {"models:  ": f'models:\n  embeddings: {{use: "hf:{encoder}"}}\n  # '}
    folder = made(
        tmp_path, "summarise", shared / "data", corrected=False, items=2, levels=LEVELS, edits=ONCE | named
    )
    study = load_study(folder)
    build_study(study)
    with open_store(folder) as store:
        run(study, store, said_of, reader="m")
        run(study, store, lambda trial: f">summarized: {trial['item_id']}", reader="n")
        worked("run", folder, "--model", "oracle")
        compare_texts(study, store, Embedder(embedding_settings(study)))
        data = hand_over(study, store, tmp_path / "data")
    rows = pd.read_parquet(data / "answer_similarity.parquet")
    assert len(rows) == 16, "the baseline, which sums nothing up, has no stand-in compared with itself"
    assert set(rows["compared_with"]) == {"own answer about the intact text"}
    assert set(rows["use"]) == {f"hf:{encoder}"}
    tables = load(data)
    found = tables.trials.merge(rows, on=["session_id", "trial_index", "attempt"]).query("reader == 'm'")
    by_level = found.groupby("scramble")["similarity"].agg(["min", "max"])
    assert by_level.loc[["BASE", "WORD-REO-ALL", "SENT-REO-ALL"]].to_numpy() == pytest.approx(1, abs=1e-5), (
        "the field alone is compared, whatever stands before it"
    )
    embedder = Embedder(ModelSettings(f"hf:{encoder}"))
    for row in found[found["scramble"] == "REO-ALL"].to_dict("records"):
        one, other = embedder.embed([PLACEHOLDER, f"It is about {row['item_id']}."])
        assert row["similarity"] == pytest.approx(float(one @ other), abs=1e-5)
    chapter = chapter_of(write, tables)
    assert "cosine" in " ".join(map(str, chapter.methods))
    table = tables_in(chapter)["ms_reordering"]
    assert "Table 2" in table.note and "cosine" in table.title
    cells = dict(zip(table.columns, next(row for row in table.rows if row[0] == "m"), strict=True))
    assert cells["BASE"] == cells["Word ALL"] == "100.0"
    lost = 100 * found[found["scramble"] == "REO-ALL"]["similarity"].mean()
    assert cells["Character ALL"] == f"{lost:.1f}" != "100.0"
    found = {one.name: one for one in together([data])}
    assert "table_2" in found and "table_1" not in found


@pytest.mark.shared
def test_restored_passages_have_the_released_measure_and_nearness_by_their_names(tmp_path, shared):
    folder = made(tmp_path, "rectify", shared / "data", corrected=False, items=2, levels=LEVELS, edits=ONCE)
    study = load_study(folder)
    build_study(study)

    def fixed(trial: dict[str, Any]) -> str:
        intact = str(trial["answer"])
        return {
            "BASE": f">fixed: {intact}",
            "REO-ALL": f">fixed: {' '.join(intact.split()[:3])}",
            "WORD-REO-ALL": f">fixed: Then {intact}",
            "SENT-REO-ALL": "I cannot.",
        }[trial["condition"]["scramble"]]

    with open_store(folder) as store:
        run(study, store, fixed, reader="m")
        tables = load(hand_over(study, store, tmp_path / "data"))
    released, near = values_of(tables, "scramble")
    assert (released.measure, near.measure) == (IN_PLACE, NEARNESS)
    assert released.mean("m", "REO-ALL") == 100 and near.mean("m", "REO-ALL") < 20, "a reply cut short"
    assert released.mean("m", "WORD-REO-ALL") < 10 and near.mean("m", "WORD-REO-ALL") > 95, "a word before it"
    assert "SENT-REO-ALL" not in released.levels and near.mean("m", "SENT-REO-ALL") < 10, "no field"


def response(raw: str, trial: dict[str, Any], counts: dict[str, Any] | None = None) -> StoredResponse:
    plan = {"prompt_variant": 1, "replicate": 1}
    return StoredResponse(
        "m", "model", "s", plan, cast("Any", trial), 1, None, raw, False, "answered", counts
    )


def shown(task: str, field: str, condition: str = "BASE", **step: Any) -> dict[str, Any]:
    return {
        "set": task,
        "item_id": "i",
        "shown": {field: "text"},
        "intact": {field: "text"},
        "condition": {"scramble": condition},
        "exemplars": [],
        "answer": None,
        "accepted": [],
        "is_practice": False,
        "steps": [{"step": "answer", "read_as": "text", "text": "", "multiline": True} | step],
    }


def test_the_answer_compared_with_is_that_of_base_not_of_another_intact_text():
    study = cast(
        "Study", SimpleNamespace(factors={"scramble": {"BASE": "none", "SENT-REO-ALL": "SENT-REO-ALL"}})
    )
    base = (response("", shown("summarise", "passage")), "of BASE")
    other = (response("", shown("summarise", "passage", "SENT-REO-ALL")), "of another")
    for given in ([base, other], [other, base]):
        assert [text for _, text in _about_intact_texts(study, given).values()] == ["of BASE"]


def test_what_is_compared_of_a_program_does_not_hang_on_what_judged_it_before():
    trial = shown("complete", "text", read_as="code")
    raw = "Sure:\n```python\nx = 1\n```\nIt sets x."
    judged = {"response_status": "valid", "response": "another"}
    assert _text(response(raw, trial), None) == _text(response(raw, trial, judged), None) == "x = 1"
    assert _text(response(f">code: {raw}", trial), "published") == raw, "the released field, as it is"
    assert _text(response(raw, trial), "published") == ""
