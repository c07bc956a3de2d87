"""What tokenizers of five kinds make of words with gaps between their letters."""

from __future__ import annotations

from pathlib import Path

import pytest

from stimuli.scramble.text import scramble_conditions
from stimuli.scramble.types import GAPS, without_gaps

tokenizers = pytest.importorskip("tokenizers")

TEXT = "The company asks parents to check those toys."
DOCS = Path(__file__).resolve().parents[2] / "docs"
MODERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def _trained(kind):
    """Train a small tokenizer that cuts and normalizes as a family of models does."""
    before, normal = tokenizers.pre_tokenizers, tokenizers.normalizers
    if kind in ("bytes", "bytes, newer"):
        made = tokenizers.Tokenizer(tokenizers.models.BPE())
        made.pre_tokenizer = before.ByteLevel(add_prefix_space=False)
        if kind != "bytes":
            cut = before.Split(tokenizers.Regex(MODERN), "isolated")
            made.pre_tokenizer = before.Sequence([cut, before.ByteLevel(False, use_regex=False)])
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=1500, initial_alphabet=before.ByteLevel.alphabet(), show_progress=False
        )
    elif kind == "wordpiece":
        made = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="?"))
        made.normalizer, made.pre_tokenizer = normal.BertNormalizer(), before.BertPreTokenizer()
        trainer = tokenizers.trainers.WordPieceTrainer(
            vocab_size=1500, special_tokens=["?"], show_progress=False
        )
    else:
        made = tokenizers.Tokenizer(tokenizers.models.Unigram())
        made.pre_tokenizer = before.Metaspace()
        if kind == "pieces, folded":
            spaces = normal.Replace(tokenizers.Regex(" {2,}"), " ")
            made.normalizer = normal.Sequence([normal.NFKC(), spaces])
        trainer = tokenizers.trainers.UnigramTrainer(
            vocab_size=1500, unk_token="?", special_tokens=["?"], show_progress=False
        )
    lines = [line for page in sorted(DOCS.glob("*.md"))[:4] for line in page.read_text("utf-8").splitlines()]
    made.train_from_iterator([*lines, *["x".join(GAPS.values())] * 9], trainer)
    return made


@pytest.fixture(scope="module", params=["bytes", "bytes, newer", "pieces", "pieces, folded", "wordpiece"])
def kind_and_tokens(request):
    made = _trained(request.param)
    return request.param, lambda text: made.encode(text).tokens


@pytest.mark.parametrize("gap", GAPS)
def test_a_spaced_scramble_has_nearly_as_many_tokens_as_its_control(kind_and_tokens, gap):
    _, tokens = kind_and_tokens
    kinds = {
        "plain": "KFL",
        "spaced": f"KFL(spaced=true,gap={gap})",
        "control": f"space:letters(gap={gap},min_letters=4)",
    }
    shown = {level: one.text for level, one in scramble_conditions(TEXT, kinds, seed=1).items()}
    counts = {level: len(tokens(text)) for level, text in shown.items()}
    assert abs(counts["spaced"] - counts["control"]) <= 0.1 * counts["control"]
    assert counts["plain"] > len(tokens(TEXT)) * 1.2


@pytest.mark.parametrize("gap", GAPS)
def test_which_tokenizers_see_where_a_word_ends(kind_and_tokens, gap):
    kind, tokens = kind_and_tokens
    text = "company asks parents"
    shown = scramble_conditions(text, {"": f"space:letters(gap={gap})"}, seed=1)[""].text
    run_together = GAPS[gap].join(text.replace(" ", ""))
    seen = tokens(shown) != tokens(run_together)
    folded = kind in ("pieces, folded", "wordpiece")
    assert seen == (gap == "dot" or (gap != "space" and not folded))


@pytest.mark.parametrize("gap", GAPS)
def test_a_word_without_its_gaps_is_the_word(gap):
    shown = scramble_conditions(TEXT, {"": f"space:letters(gap={gap})"}, seed=1)[""]
    assert [without_gaps(change.shown) for change in shown.changes] == TEXT.rstrip(".").split()
    if gap != "space":
        assert [without_gaps(word) for word in shown.text.split(" ")] == TEXT.split()
