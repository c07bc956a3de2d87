"""Messages to text and token ids, always as one whole string; what texts share is tokenized once.

A tokenizer first splits a text into pieces and then turns each piece into tokens by itself. Where a piece begins, two
texts that are equal up to the end of that piece therefore have the same tokens before it, and the rest has the tokens that it
would have alone. Such a *border* is sought between texts that begin alike, and is used only if the tokens before it and
those of the rest together were those of the whole. A tokenizer that does not split (see :meth:`word_ids`) has no borders, and
each of its texts is tokenized whole.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from experiment.models.engine import Message, Request
from experiment.models.local.regions import RegionTokens, find_regions, word_beginnings
from experiment.models.local.thoughts import Thoughts
from stimuli.errors import UserError

Template = Literal["chat", "plain"]
_PLACEHOLDER = "\ue0f5{}\ue0f6"
"""Stands for a message where a template is rendered to see what it puts around messages; of Unicode's private use."""


@dataclass(frozen=True)
class LabelTokens:
    """A label in its place after a prompt."""

    label: str
    ids: tuple[int, ...]  # tokens of prompt and label as one string
    start: int  # index of the first token that is scored; the same for all labels of a request

    @property
    def targets(self) -> tuple[int, ...]:
        """The tokens that are scored."""
        return self.ids[self.start :]


@dataclass(frozen=True)
class Tokens:
    """A request in tokens; ``labels`` is empty where text is generated, ``regions`` where none is asked."""

    text: str
    ids: tuple[int, ...]
    labels: tuple[LabelTokens, ...]
    regions: tuple[RegionTokens, ...] = ()
    # What an encoder reads, where the model has one; ``ids`` is then what its decoder begins with
    source: tuple[int, ...] | None = None


class Wording:
    """How one tokenizer turns messages into text and ids.

    ``tokenizer``: a transformers tokenizer.
    ``template``: None takes the tokenizer's chat template where it has one.
    ``leading_space``: whether a space stands before a label; None puts one after plain text and none after a chat
    template.
    ``thinking``: given to chat templates that know of reasoning (``enable_thinking``).
    ``decoder_start``: with which tokens the decoder begins, for models that read with an encoder and answer with a
    decoder.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        template: Template | None = None,
        leading_space: bool | None = None,
        thinking: bool = False,
        decoder_start: tuple[int, ...] | None = None,
    ) -> None:
        has_template = bool(getattr(tokenizer, "chat_template", None))
        if template == "chat" and not has_template:
            raise UserError(
                "template: chat was asked for, but the tokenizer of this model has no chat template",
                mend="Write template: plain, or leave it out.",
            )
        self.tokenizer = tokenizer
        self.template: Template = template or ("chat" if has_template else "plain")
        self.leading_space = leading_space if leading_space is not None else self.template == "plain"
        self.thinking = thinking
        self.system_role = "as given"
        self._before = _special_before(tokenizer)
        self._hash = _tokenizer_hash(tokenizer)
        self.decoder_start = decoder_start
        self.encoder = TextEncoder(tokenizer)
        self.thoughts = Thoughts(tokenizer, self.decode)
        self._last = max(tokenizer.get_vocab().values(), default=-1)
        self._begins: list[bool] | None = None

    def text(self, messages: Sequence[Message]) -> str:
        """Return the text that the model reads."""
        if self.template == "plain":
            return "\n\n".join(message.content for message in messages)
        turns = [{"role": message.role, "content": message.content} for message in messages]
        if self.system_role == "as given":
            try:
                return self._apply(turns)
            except Exception as error:
                if turns[0]["role"] != "system":
                    raise _template_fault(error) from error
                self.system_role = "joined to the first user message"
        try:
            return self._apply(_without_system(turns))
        except Exception as error:
            raise _template_fault(error) from error

    def ids(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a whole text; a template's text already holds its special tokens."""
        found = self.encoder.ids(text)
        return found if self.template == "chat" else (*self._before, *found)

    def tokens(self, request: Request) -> Tokens:
        """Return a request in tokens, with every label in its place."""
        text = self.text(request.messages)
        if self.decoder_start is not None:
            return self._of_two_texts(text, request.labels or ())
        if request.regions:
            ids, regions = self._regions(text, request)
        else:
            ids, regions = self.ids(text), ()
        if not ids:
            raise ValueError("the prompt is empty: there is no token to go on from")
        if request.labels is None:
            return Tokens(text, ids, (), regions)
        space = " " if self.leading_space and not text[-1:].isspace() else ""
        whole = [self.ids(text + space + label) for label in request.labels]
        start = min(_common_length(ids, one) for one in whole)
        for label, one in zip(request.labels, whole, strict=True):
            if start < 1 or len(one) <= start:
                raise ValueError(f"label {label!r} cannot be scored: it adds no token after the prompt")
        labels = tuple(
            LabelTokens(label, one, start) for label, one in zip(request.labels, whole, strict=True)
        )
        return Tokens(text, ids, labels, regions)

    def after_thought(self, tokens: Tokens, thought: Sequence[int], labels: Sequence[str]) -> Tokens:
        """Return a request's tokens with labels behind a thought that the model has generated.

        The thought's own tokens are kept as they were generated. The mark that ends it is put in where the model has not
        come to it.
        """
        marks = self.thoughts.marks
        assert marks is not None
        raw = self.thoughts.raw(thought)
        end = marks.between if marks.ends in raw else f"\n{marks.ends}{marks.between}"
        before = (*tokens.ids, *thought) if thought else tokens.ids
        if not thought:
            end = ""
        own = self.encoder.ids(end) if end else ()
        space = " " if self.leading_space and not (end or tokens.text)[-1:].isspace() else ""
        whole = [(*before, *self.encoder.ids(end + space + label)) for label in labels]
        ids = (*before, *own)
        start = min(_common_length(ids, one) for one in whole)
        found = tuple(LabelTokens(label, one, start) for label, one in zip(labels, whole, strict=True))
        return Tokens(tokens.text + raw + end, ids, found)

    def _of_two_texts(self, text: str, labels: Sequence[str]) -> Tokens:
        """Return what the encoder reads and what the decoder is to say, each a text of its own."""
        assert self.decoder_start is not None
        source = tuple(self.tokenizer(text)["input_ids"])
        if not source:
            raise ValueError("the prompt is empty: there is no token to read")
        begun = self.decoder_start
        found = [LabelTokens(label, (*begun, *self.encoder.ids(label)), len(begun)) for label in labels]
        for label in found:
            if not label.targets:
                raise ValueError(f"label {label.label!r} cannot be scored: it has no token")
        return Tokens(text, begun, tuple(found), (), source)

    def _regions(self, text: str, request: Request) -> tuple[tuple[int, ...], tuple[RegionTokens, ...]]:
        """Return the tokens of a text and those of a request's regions."""
        spans = self._places(text, request)
        whole = self.encoder.whole(text)
        begins = self.beginnings
        before = () if self.template == "chat" else self._before
        mask = [begins[one] for one in whole.ids]
        return (*before, *whole.ids), tuple(find_regions(text, whole.offsets, spans, mask, len(before)))

    def _places(self, text: str, request: Request) -> list[tuple[int, int]]:
        """Return where in a rendered text the spans of messages stand; templates may strip a message's ends."""
        marked = [Message(one.role, _PLACEHOLDER.format(n)) for n, one in enumerate(request.messages)]
        between = re.split(_PLACEHOLDER.format(r"\d+"), self.text(marked))
        starts: list[int] = []
        cursor = len(between[0])
        for message, after in zip(request.messages, between[1:], strict=False):
            content = message.content
            for kept in (content, content.rstrip(), content.lstrip(), content.strip()):
                if text.startswith(kept + after, cursor):
                    break
            else:
                break
            starts.append(cursor - (content.find(kept) if kept else 0))
            cursor += len(kept) + len(after)
        if (
            len(starts) < len(request.messages)
            or len(between) != len(request.messages) + 1
            or cursor != len(text)
        ):
            raise ValueError(
                "the chat template changes the text of a message, so its regions are not to be found"
            )
        return [
            (starts[span.message] + span.start, starts[span.message] + span.end) for span in request.regions
        ]

    @property
    def beginnings(self) -> list[bool]:
        """Whether a new word can begin with each token of the tokenizer."""
        if self._begins is None:
            self._begins = word_beginnings(self.tokenizer, self._last + 1)
        return self._begins

    @property
    def marks_beginnings(self) -> bool:
        """Whether this tokenizer's tokens hold the blank before a word, as far as one word tells."""
        begins = self.beginnings
        return any(begins[one] for one in self.encoder.ids("a a")[1:])

    def begins_word(self, vocabulary: int) -> list[bool]:
        """Return for every token whether a new word can begin with it; ids beyond the tokenizer's own begin nothing."""
        known = self.beginnings[:vocabulary]
        return known + [False] * (vocabulary - len(known))

    def decode(self, ids: Sequence[int]) -> str:
        """Return generated tokens as text, without special tokens."""
        text: str = self.tokenizer.decode(
            [one for one in ids if one <= self._last],
            skip_special_tokens=True,
            clean_up_tokenization_spaces=False,
        )
        return text

    def describe(self) -> dict[str, object]:
        """Return what may change a prompt: hashes of tokenizer and template, and the settings."""
        template = self.tokenizer.chat_template if self.template == "chat" else None
        return {
            "tokenizer_hash": self._hash,
            "template": self.template,
            "template_hash": _digest(str(template)) if template else None,
            "leading_space": self.leading_space,
            "thinking": self.thinking if self.template == "chat" else None,
        }

    def _apply(self, turns: Sequence[Mapping[str, str]]) -> str:
        text: str = self.tokenizer.apply_chat_template(
            list(turns), tokenize=False, add_generation_prompt=True, enable_thinking=self.thinking
        )
        return text


def _common_length(left: Sequence[int], right: Sequence[int]) -> int:
    """Return how many leading tokens two sequences have in common."""
    shorter = min(len(left), len(right))
    differ = np.asarray(left[:shorter]) != np.asarray(right[:shorter])
    return int(differ.argmax()) if differ.any() else shorter


def _without_system(turns: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Join system messages to the first user message, for templates that know no system role."""
    said = [turn["content"] for turn in turns if turn["role"] == "system"]
    rest = [dict(turn) for turn in turns if turn["role"] != "system"]
    if rest:
        rest[0]["content"] = "\n\n".join([*said, rest[0]["content"]])
    return rest or [{"role": "user", "content": "\n\n".join(said)}]


def _template_fault(error: Exception) -> UserError:
    return UserError(
        f"the chat template of this model cannot render the messages: {error}",
        mend="Write template: plain for this model.",
    )


def _special_before(tokenizer: Any) -> tuple[int, ...]:
    """Return the special tokens that the tokenizer puts before a text (a BOS token, usually)."""
    plain: list[int] = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole: list[int] = tokenizer("a")["input_ids"]
    for start in range(len(whole) - len(plain) + 1):
        if whole[start : start + len(plain)] == plain:
            return tuple(whole[:start])
    return ()


def _tokenizer_hash(tokenizer: Any) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return _digest(backend.to_str())
    return _digest(repr(sorted(tokenizer.get_vocab().items())))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


WORTH_BORDER = 256
"""Characters that texts must have in common before a border is looked for; also how much a rest may have before a
deeper one is."""

_LOOKAHEAD = 2
_TRIES = 6
_RECENT = 4
_MOST = 32


@dataclass(frozen=True)
class Encoded:
    """A whole text in tokens."""

    ids: tuple[int, ...]
    offsets: list[tuple[int, int]]  # first character of each token and the one behind its last
    words: list[int | None]  # which piece of the text each token is part of


@dataclass(frozen=True)
class _Border:
    """A place in a text before which its tokens are known."""

    text: str  # up to the end of the piece that begins at the border; texts that begin so have these tokens
    cut: int
    ids: tuple[int, ...]


class TextEncoder:
    """Turns texts into tokens without special ones.

    ``tokenizer``: a transformers tokenizer.
    ``characters``: how many characters were tokenised so far.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.characters = 0
        self._borders: list[_Border] = []
        self._recent: list[str] = []

    def ids(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a whole text."""
        known = max(
            (border for border in self._borders if text.startswith(border.text)),
            key=lambda border: border.cut,
            default=None,
        )
        if known is not None and len(text) - known.cut <= 4 * WORTH_BORDER:
            return known.ids + self._plain(text[known.cut :])
        if not getattr(self.tokenizer, "is_fast", False) or len(text) < WORTH_BORDER:
            return self._plain(text)
        whole = self.whole(text)
        self._learn(text, whole, 0 if known is None else known.cut)
        return whole.ids

    def whole(self, text: str) -> Encoded:
        """Return the tokens of a whole text and where they stand."""
        if not getattr(self.tokenizer, "is_fast", False):
            raise ValueError("this tokenizer does not say which characters its tokens stand for")
        self.characters += len(text)
        found = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        return Encoded(tuple(found["input_ids"]), found["offset_mapping"], found.word_ids(0))

    def _plain(self, text: str) -> tuple[int, ...]:
        self.characters += len(text)
        return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _learn(self, text: str, whole: Encoded, known: int) -> None:
        """Look for a border between this text and those before it, deeper than the one that was known."""
        common = max((_common(text, other) for other in self._recent), default=0)
        self._recent = [*self._recent[1 - _RECENT :], text]
        if common < known + WORTH_BORDER:
            return
        tries = 0
        end = len(whole.ids)
        for place in range(len(whole.ids) - 1, 0, -1):
            if whole.words[place] is None or whole.words[place] == whole.words[place - 1]:
                continue
            cut, behind = whole.offsets[place - 1][1], whole.offsets[end - 1][1]
            end = place
            if behind + _LOOKAHEAD > common or not text[cut:behind].strip():
                continue
            if whole.ids[:place] + self._plain(text[cut:]) == whole.ids:
                border = _Border(text[: behind + _LOOKAHEAD], cut, whole.ids[:place])
                self._borders = [*self._borders[1 - _MOST :], border]
                return
            tries += 1
            if tries == _TRIES:
                return


def _common(left: str, right: str) -> int:
    """Return how many leading characters two texts have in common."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
