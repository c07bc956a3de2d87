"""Whether a model reads from left to right: log-probabilities of a model that sees what comes behind are of no use.

transformers loads BERT, XLNet and their like under the same name as language models; they see a label before it is scored.
"""

from __future__ import annotations

import math

from experiment.models.local.head import CausalModel
from experiment.models.local.parity import TOLERANCE, TOLERANCE_16_BIT
from experiment.models.local.rows import Ids
from stimuli.errors import UserError

_TOKENS = 16
_CHANGED = 4
_MUCH = 10
"""How many times what counts as rounding the difference must be: quantised layers round together what stands beside each other."""


def require_causal(model: CausalModel, ids: Ids, dtype: str, name: str) -> None:
    """Refuse a model whose log-probabilities of a text's beginning change with its last tokens.

    Parameters
    ----------
    model : CausalModel
    ids : array of int, shape (tokens,)
        A text to look with; its first tokens are enough, and one that is very short tells nothing.
    dtype : str
    name : str
        What the study calls the model.

    Raises
    ------
    UserError
        It sees what comes behind.
    """
    import torch

    begun = ids[:_TOKENS].tolist()
    changed = min(_CHANGED, len(begun) - 1)
    if changed < 1:
        return
    other = [*begun[:-changed], *((one + 1) % model.vocabulary for one in begun[-changed:])]
    forwarded, calls = model.forwarded, model.calls
    with torch.inference_mode():
        places = range(len(begun) - changed)
        left, right = (
            model.logits(torch.tensor([one], device=model.device), places, use_cache=False).log_softmax(-1)
            for one in (begun, other)
        )
        apart = float((left - right).abs().max().item())
    model.forwarded, model.calls = forwarded, calls
    model.check_tokens += 2 * len(begun)
    if math.isfinite(apart) and apart > _MUCH * TOLERANCE.get(dtype, TOLERANCE_16_BIT):
        raise UserError(
            f"{name} ({type(model.model).__name__}) sees the tokens that come behind a token: the log-probabilities of a beginning "
            f"change by {apart:.2g} nats with the text's last tokens",
            mend="Name a model that writes text from left to right. BERT-like models do so only where they were trained for it and "
            "their config.json says is_decoder: true.",
        )
