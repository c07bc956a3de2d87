"""Thoughts that models write before their answers: where they end, and answer and thought apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Marks:
    """What stands around a thought in one family's template; ``between`` is what stands before the answer."""

    opens: str
    ends: str
    between: str = "\n\n"


FAMILIES = (
    Marks("<think>", "</think>"),
    Marks("<thinking>", "</thinking>"),
    Marks("<thought>", "</thought>"),
    Marks("[THINK]", "[/THINK]", ""),
    Marks("<|channel|>analysis<|message|>", "<|channel|>final<|message|>", ""),
)
_TURN = "<|end|><|start|>assistant"
"""What stands between thought and answer of models that write them as two turns."""


@dataclass(frozen=True)
class Apart:
    """A generated text, taken apart."""

    reasoning: str | None
    tokens: int  # how many leading tokens are thought, its marks among them
    answer: str
    is_ended: bool  # whether no thought is open at the end


class Thoughts:
    """Finds the thoughts in what a model generates.

    ``tokenizer``: a transformers tokenizer; its vocabulary and its chat template say which marks the model knows.
    ``decode``: turns tokens into text without special tokens.
    """

    def __init__(self, tokenizer: Any, decode: Callable[[Sequence[int]], str]) -> None:
        known = {*tokenizer.get_added_vocab(), *tokenizer.all_special_tokens}
        template = str(getattr(tokenizer, "chat_template", None) or "")
        self.marks = next((one for one in FAMILIES if one.ends in known or one.ends in template), None)
        if self.marks is None and "<|channel|>" in known:
            self.marks = FAMILIES[-1]
        self._tokenizer = tokenizer
        self._decode = decode

    def is_opened_by(self, prompt: str) -> bool:
        """Whether a prompt ends with an open thought."""
        return self.marks is not None and prompt.rstrip().endswith(self.marks.opens)

    def apart(self, ids: Sequence[int], *, opened: bool) -> Apart:
        """Take generated tokens apart; a thought that never ends is all there is.

        ``opened``: whether the prompt has opened the thought.
        """
        if self.marks is None:
            return Apart(None, 0, self._decode(ids), True)
        raw = self.raw(ids)
        before, end, _ = raw.partition(self.marks.ends)
        if not end:
            if opened or raw.lstrip().startswith(self.marks.opens):
                return Apart(self._thought(raw), len(ids), "", False)
            return Apart(None, 0, self._decode(ids), True)
        low, high = 1, len(ids)
        while low < high:
            middle = (low + high) // 2
            if self.marks.ends in self.raw(ids[:middle]):
                high = middle
            else:
                low = middle + 1
        left_over = self.raw(ids[:low]).partition(self.marks.ends)[2]
        thought = self._thought(before)
        answer = left_over + self._decode(ids[low:])
        return Apart(thought or None, low, answer.lstrip("\n"), True)

    def raw(self, ids: Sequence[int]) -> str:
        """Return tokens as text, special ones too."""
        text: str = self._tokenizer.decode(
            list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text

    def _thought(self, text: str) -> str:
        assert self.marks is not None
        return text.replace(self.marks.opens, "", 1).replace(_TURN, "").strip()


class Stops:
    """Says of the tokens so far whether a generation has come to its end by what it says.

    ``texts``: stop texts; within a thought they mean nothing.
    ``opened``: whether the prompt has opened a thought.
    ``thought_only``: whether the end of the thought is the end.
    """

    def __init__(
        self,
        texts: Sequence[str],
        thoughts: Thoughts,
        decode: Callable[[Sequence[int]], str],
        *,
        opened: bool,
        thought_only: bool = False,
    ) -> None:
        self._texts = texts
        self._thoughts = thoughts
        self._decode = decode
        self._opened = opened
        self._thought_only = thought_only
        self._reach = 4 * max(map(len, texts), default=0) + 4
        self._seen = 0
        self._after: int | None = None

    def __call__(self, ids: Sequence[int]) -> bool:
        """Return whether the last of these tokens completes a stop text, or the thought."""
        if not self._texts and not self._thought_only:
            return False
        if len(ids) <= self._seen:
            self._after = None
        self._seen = len(ids)
        if self._after is None:
            self._after = self._begin(ids)
        if self._thought_only:
            return self._after is not None
        if self._after is None or not self._texts:
            return False
        tail = self._decode(ids[max(self._after, len(ids) - self._reach) :])
        return any(text in tail for text in self._texts)

    def _begin(self, ids: Sequence[int]) -> int | None:
        """Return how many tokens stand before the answer, or None while a thought is open or may yet begin."""
        marks = self._thoughts.marks
        if marks is None:
            return 0
        if not self._opened:
            head = self._thoughts.raw(ids[: len(marks.opens) + 4]).lstrip()
            if not head.startswith(marks.opens):
                return None if marks.opens.startswith(head) else 0
        if marks.ends not in self._thoughts.raw(ids[-len(marks.ends) - 4 :]):
            return None
        return self._thoughts.apart(ids, opened=True).tokens
