"""Messages as text and token ids, always tokenized as one whole string; shared beginnings are tokenized once.

A tokenizer first splits a text into pieces and then tokenizes each piece separately. Two texts that are equal up to the end of
a piece therefore have the same tokens before that piece, and the rest has the tokens that it would have alone. Such a *border*
is sought between texts with a common beginning, and is used only if the tokens before it and those of the rest together equal
those of the whole. A tokenizer that does not split (see :meth:`word_ids`) has no borders, and each of its texts is tokenized
whole.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from experiment.models.engine import Message, RegionScore, Request
from experiment.models.local.rows import common_length
from stimuli.errors import UserError

_BLANKS = frozenset({"Ġ", "▁", "Ċ", "ĉ", "č", "ċ", "Č", " ", "\n", "\t", "\r"})
"""Signs for blanks and line ends in byte-level, SentencePiece and character tokenizers."""

_BLANK_BYTES = frozenset({"<0x20>", "<0x0A>", "<0x09>", "<0x0D>"})


@dataclass(frozen=True)
class RegionTokens:
    """Tokens of one region in a row."""

    # first, last: positions of its first token and after its last
    first: int
    last: int
    begins_word: bool  # whether its first token can begin a word, that is, includes the blank before it
    ends_word: bool  # whether the next token can begin a word, or there is none

    @property
    def is_scored(self) -> bool:
        """Whether it has tokens and is not at the very beginning."""
        return 1 <= self.first < self.last


def find_regions(
    text: str,
    offsets: Sequence[tuple[int, int]],
    spans: Sequence[tuple[int, int]],
    begins: Sequence[bool],
    special_before: int = 0,
) -> list[RegionTokens]:
    """Return the tokens of each span of a text; ``offsets`` and ``begins`` describe its tokens, which ``special_before`` precede.

    A token belongs to the region of its first non-blank character, so that the blank before a word goes with the word, and a
    single blank right before a region with the region. A token across the border of two regions belongs to the first.
    """
    offsets = _without_gaps(text, offsets)
    starts: list[int] = []
    for start, end in offsets:
        position = start
        while position < end and text[position].isspace():
            position += 1
        starts.append(position)
    regions = []
    number = 0
    for start, end in spans:
        while number < len(starts) and (starts[number] < start or _is_blank(text, offsets[number], start)):
            number += 1
        first = number
        while number < len(starts) and starts[number] < end:
            number += 1
        while first > 0 and first < number and _is_leading(text, offsets[first - 1], start):
            first -= 1
        begins_word = first < number and begins[first]
        ends_word = number >= len(begins) or begins[number]
        regions.append(RegionTokens(first + special_before, number + special_before, begins_word, ends_word))
    return regions


def region_targets(
    regions: Sequence[RegionTokens], ids: Sequence[int]
) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the targets and borders that score these regions in a row."""
    targets, borders = [], []
    for region in regions:
        if region.is_scored:
            targets += [(position, int(ids[position])) for position in range(region.first, region.last)]
            if region.ends_word:
                borders.append(region.last)
            if region.begins_word:
                borders.append(region.first)
    return targets, sorted(set(borders))


def score_regions(
    regions: Sequence[RegionTokens],
    ids: Sequence[int],
    logprobs: Mapping[tuple[int, int], float],
    borders: Mapping[int, float],
    entropies: Mapping[int, float],
    *,
    marks_beginnings: bool,
) -> tuple[RegionScore, ...]:
    """Return surprisal and entropy of each region in nats; uncorrected without ``marks_beginnings`` (blanks that mark words)."""
    scores = []
    for region in regions:
        count = region.last - region.first
        if not region.is_scored:
            scores.append(RegionScore(None, count))
            continue
        total = math.fsum(
            logprobs[position, int(ids[position])] for position in range(region.first, region.last)
        )
        if marks_beginnings:
            total += borders[region.last] if region.ends_word else 0.0
            total -= borders[region.first] if region.begins_word else 0.0
        scores.append(RegionScore(-total, count, entropies.get(region.first)))
    return tuple(scores)


def word_beginnings(tokenizer: Any, vocabulary: int) -> list[bool]:
    """Return for every token of the model's output whether it can begin a word: it starts with a blank, or is special."""
    special = set(tokenizer.all_special_ids)
    begins = [False] * vocabulary
    for piece, number in tokenizer.get_vocab().items():
        if number < vocabulary:
            begins[number] = number in special or piece[:1] in _BLANKS or piece in _BLANK_BYTES
    return begins


def _without_gaps(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return offsets in which a token includes the blanks before it, even if the tokenizer reports it without them."""
    extended: list[tuple[int, int]] = []
    end_before = 0
    for start, end in offsets:
        start = end_before if end_before < start and text[end_before:start].isspace() else start
        extended.append((start, end))
        end_before = max(end_before, end)
    return extended


def _is_blank(text: str, offset: tuple[int, int], before: int) -> bool:
    """Return whether a token is only blanks and ends before a region begins."""
    return text[offset[0] : offset[1]].isspace() and offset[1] <= before


def _is_leading(text: str, offset: tuple[int, int], start: int) -> bool:
    """Return whether a token is the one blank right before a region."""
    return offset[1] == start and offset[1] - offset[0] == 1 and text[offset[0] : offset[1]] == " "


@dataclass(frozen=True)
class ReasoningMarks:
    """The marks around reasoning in one family's template; ``between`` precedes the answer."""

    opens: str
    ends: str
    between: str = "\n\n"


FAMILIES = (
    ReasoningMarks("<think>", "</think>"),
    ReasoningMarks("<thinking>", "</thinking>"),
    ReasoningMarks("<thought>", "</thought>"),
    ReasoningMarks("[THINK]", "[/THINK]", ""),
    ReasoningMarks("<|channel|>analysis<|message|>", "<|channel|>final<|message|>", ""),
)
_TURN = "<|end|><|start|>assistant"
"""Separates reasoning and answer in models that write them as two turns."""


@dataclass(frozen=True)
class ReasoningSplit:
    """A generated text, split into reasoning and answer."""

    reasoning: str | None
    tokens: int  # number of leading tokens that are reasoning, its marks included
    answer: str
    is_ended: bool  # whether no reasoning is open at the end


class Thoughts:
    """Finds the reasoning in generated text, by the marks in the vocabulary and chat template."""

    def __init__(self, tokenizer: Any, decode: Callable[[Sequence[int]], str]) -> None:
        special_tokens = {*tokenizer.get_added_vocab(), *tokenizer.all_special_tokens}
        template = str(getattr(tokenizer, "chat_template", None) or "")
        self.marks = next(
            (family for family in FAMILIES if family.ends in special_tokens or family.ends in template), None
        )
        if self.marks is None and "<|channel|>" in special_tokens:
            self.marks = FAMILIES[-1]
        self._tokenizer = tokenizer
        self._decode = decode

    def is_opened_by(self, prompt: str) -> bool:
        """Return whether a prompt ends with open reasoning."""
        return self.marks is not None and prompt.rstrip().endswith(self.marks.opens)

    def apart(self, ids: Sequence[int], *, opened: bool) -> ReasoningSplit:
        """Split generated tokens, whose reasoning the prompt may have ``opened``; unended reasoning leaves no answer."""
        if self.marks is None:
            return ReasoningSplit(None, 0, self._decode(ids), True)
        raw = self.raw(ids)
        before, end, _ = raw.partition(self.marks.ends)
        if not end:
            if opened or raw.lstrip().startswith(self.marks.opens):
                return ReasoningSplit(self._thought(raw), len(ids), "", False)
            return ReasoningSplit(None, 0, self._decode(ids), True)
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
        return ReasoningSplit(thought or None, low, answer.lstrip("\n"), True)

    def raw(self, ids: Sequence[int]) -> str:
        """Return tokens as text, including special ones."""
        text: str = self._tokenizer.decode(
            list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text

    def _thought(self, text: str) -> str:
        assert self.marks is not None
        return text.replace(self.marks.opens, "", 1).replace(_TURN, "").strip()


class Stops:
    """Decides whether a generation has ended: by a stop text after the reasoning, or with the reasoning."""

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
        """Return whether the last of these tokens completes a stop text or the reasoning."""
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
        """Return the number of tokens before the answer, or None while reasoning is open or may still begin."""
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


Template = Literal["chat", "plain"]
_PLACEHOLDER = "\ue0f5{}\ue0f6"
"""Placeholder for a message when a template is rendered to find what it adds around messages; Unicode private use."""


@dataclass(frozen=True)
class LabelTokens:
    """A label after a prompt."""

    label: str
    ids: tuple[int, ...]  # tokens of prompt and label as one string
    start: int  # index of the first token that is scored; the same for all labels of a request

    @property
    def targets(self) -> tuple[int, ...]:
        """The tokens that are scored."""
        return self.ids[self.start :]


@dataclass(frozen=True)
class FoilTokens:
    """A text up to the end of a foil in the place of a region, and the foil's tokens in it."""

    ids: tuple[int, ...]
    region: RegionTokens


@dataclass(frozen=True)
class Tokens:
    """A request as tokens; ``labels`` is empty if text is generated, ``regions`` if none is requested."""

    text: str
    ids: tuple[int, ...]
    labels: tuple[LabelTokens, ...]
    regions: tuple[RegionTokens, ...] = ()
    foils: tuple[FoilTokens | None, ...] = ()  # by region
    # Input of the encoder, if the model has one; ``ids`` is then the beginning of its decoder's text
    source: tuple[int, ...] | None = None


class Wording:
    """Converts messages to text and token ids for one tokenizer, with the tokens that begin a decoder's text."""

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
                "the study sets template: chat, but the tokenizer of this model has no chat template",
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
        """Return the tokens of a whole text; text from a template already includes its special tokens."""
        ids = self.encoder.ids(text)
        return ids if self.template == "chat" else (*self._before, *ids)

    def tokens(self, request: Request) -> Tokens:
        """Return a request as tokens, with every label after the prompt."""
        text = self.text(request.messages)
        if self.decoder_start is not None:
            return self._of_two_texts(text, request.labels or ())
        if request.regions:
            ids, regions, foils = self._regions(text, request)
        else:
            ids, regions, foils = self.ids(text), (), ()
        if not ids:
            raise ValueError("the prompt is empty: there is no token to go on from")
        if request.labels is None:
            return Tokens(text, ids, (), regions, foils)
        space = " " if self.leading_space and not text[-1:].isspace() else ""
        sequences = [self.ids(text + space + label) for label in request.labels]
        return Tokens(text, ids, labels_behind(ids, request.labels, sequences), regions, foils)

    def after_thought(self, tokens: Tokens, thought: Sequence[int], labels: Sequence[str]) -> Tokens:
        """Return a request's tokens with labels after the generated reasoning; a missing end mark is added."""
        marks = self.thoughts.marks
        assert marks is not None
        raw = self.thoughts.raw(thought)
        end = marks.between if marks.ends in raw else f"\n{marks.ends}{marks.between}"
        before = (*tokens.ids, *thought) if thought else tokens.ids
        if not thought:
            end = ""
        own_ids = self.encoder.ids(end) if end else ()
        space = " " if self.leading_space and not (end or tokens.text)[-1:].isspace() else ""
        sequences = [(*before, *self.encoder.ids(end + space + label)) for label in labels]
        ids = (*before, *own_ids)
        start = min(common_length(ids, sequence) for sequence in sequences)
        labelled = tuple(
            LabelTokens(label, sequence, start) for label, sequence in zip(labels, sequences, strict=True)
        )
        return Tokens(tokens.text + raw + end, ids, labelled)

    def _of_two_texts(self, text: str, labels: Sequence[str]) -> Tokens:
        """Return the encoder's text and the decoder's text as separate tokens."""
        assert self.decoder_start is not None
        source = tuple(self.tokenizer(text)["input_ids"])
        if not source:
            raise ValueError("the prompt is empty: there is no token to read")
        begun = self.decoder_start
        labelled = [LabelTokens(label, (*begun, *self.encoder.ids(label)), len(begun)) for label in labels]
        for label in labelled:
            if not label.targets:
                raise ValueError(f"label {label.label!r} cannot be scored: it has no token")
        return Tokens(text, begun, tuple(labelled), source=source)

    def _regions(
        self, text: str, request: Request
    ) -> tuple[tuple[int, ...], tuple[RegionTokens, ...], tuple[FoilTokens | None, ...]]:
        """Return the tokens of a text, and those of a request's regions and of the foils in their place."""
        spans = self._places(text, request)
        ids, regions = self._spans(text, spans)
        foils = [
            None if span.foil is None else self._foil(text, place, span.foil)
            for span, place in zip(request.regions, spans, strict=True)
        ]
        return ids, regions, tuple(foils)

    def _foil(self, text: str, place: tuple[int, int], foil: str) -> FoilTokens:
        begin, end = place
        ids, (region,) = self._spans(text[:begin] + foil + text[end:], [(begin, begin + len(foil))])
        return FoilTokens(ids[: region.last], region)

    def _spans(
        self, text: str, spans: Sequence[tuple[int, int]]
    ) -> tuple[tuple[int, ...], tuple[RegionTokens, ...]]:
        whole = self.encoder.whole(text)
        begins = self.beginnings
        before = () if self.template == "chat" else self._before
        mask = [begins[token] for token in whole.ids]
        return (*before, *whole.ids), tuple(find_regions(text, whole.offsets, spans, mask, len(before)))

    def _places(self, text: str, request: Request) -> list[tuple[int, int]]:
        """Return the positions of messages' spans in a rendered text; templates may strip a message's ends."""
        marked = [Message(message.role, _PLACEHOLDER.format(n)) for n, message in enumerate(request.messages)]
        between = re.split(_PLACEHOLDER.format(r"\d+"), self.text(marked))
        starts: list[int] = []
        cursor = len(between[0])
        for message, after in zip(request.messages, between[1:], strict=False):
            content = message.content
            for variant in (content, content.rstrip(), content.lstrip(), content.strip()):
                if text.startswith(variant + after, cursor):
                    break
            else:
                break
            starts.append(cursor - (content.find(variant) if variant else 0))
            cursor += len(variant) + len(after)
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
        """Whether each token of the tokenizer can begin a word."""
        if self._begins is None:
            self._begins = word_beginnings(self.tokenizer, self._last + 1)
        return self._begins

    @property
    def marks_beginnings(self) -> bool:
        """Whether this tokenizer's tokens include the blank before a word, judged by one word."""
        begins = self.beginnings
        return any(begins[token] for token in self.encoder.ids("a a")[1:])

    def begins_word(self, vocabulary: int) -> list[bool]:
        """Return for every token whether it can begin a word; ids beyond the tokenizer's own cannot."""
        begins = self.beginnings[:vocabulary]
        return begins + [False] * (vocabulary - len(begins))

    def decode(self, ids: Sequence[int]) -> str:
        """Return generated tokens as text, without special tokens."""
        text: str = self.tokenizer.decode(
            [token for token in ids if token <= self._last],
            skip_special_tokens=True,
            clean_up_tokenization_spaces=False,
        )
        return text

    def describe(self) -> dict[str, object]:
        """Return everything that can change a prompt: hashes of tokenizer and template, and the settings."""
        template = self.tokenizer.chat_template if self.template == "chat" else None
        return {
            "tokenizer_hash": self._hash,
            "template": self.template,
            "template_hash": digest_of(str(template)) if template else None,
            "leading_space": self.leading_space,
            "thinking": self.thinking if self.template == "chat" else None,
        }

    def _apply(self, turns: Sequence[Mapping[str, str]]) -> str:
        text: str = self.tokenizer.apply_chat_template(
            list(turns), tokenize=False, add_generation_prompt=True, enable_thinking=self.thinking
        )
        return text


def labels_behind(
    ids: Sequence[int], labels: Sequence[str], sequences: Sequence[tuple[int, ...]]
) -> tuple[LabelTokens, ...]:
    """Return labels after a prompt; ``sequences`` has the tokens of prompt and label for each label."""
    start = min(common_length(ids, sequence) for sequence in sequences)
    for label, sequence in zip(labels, sequences, strict=True):
        if start < 1 or len(sequence) <= start:
            raise ValueError(f"label {label!r} cannot be scored: it adds no token after the prompt")
    return tuple(
        LabelTokens(label, sequence, start) for label, sequence in zip(labels, sequences, strict=True)
    )


def _without_system(turns: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Return turns with system messages joined to the first user message, for templates without a system role."""
    system_texts = [turn["content"] for turn in turns if turn["role"] == "system"]
    rest = [dict(turn) for turn in turns if turn["role"] != "system"]
    if rest:
        rest[0]["content"] = "\n\n".join([*system_texts, rest[0]["content"]])
    return rest or [{"role": "user", "content": "\n\n".join(system_texts)}]


def _template_fault(error: Exception) -> UserError:
    return UserError(
        f"the chat template of this model cannot render the messages: {error}",
        mend="Write template: plain for this model.",
    )


def _special_before(tokenizer: Any) -> tuple[int, ...]:
    """Return the special tokens that the tokenizer adds before a text (usually a BOS token)."""
    plain: list[int] = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole: list[int] = tokenizer("a")["input_ids"]
    for start in range(len(whole) - len(plain) + 1):
        if whole[start : start + len(plain)] == plain:
            return tuple(whole[:start])
    return ()


def _tokenizer_hash(tokenizer: Any) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return digest_of(backend.to_str())
    return digest_of(repr(sorted(tokenizer.get_vocab().items())))


def digest_of(text: str) -> str:
    """Return a short hash of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


WORTH_BORDER = 256
"""Least number of common characters before a border is sought; also the length of a rest before a deeper one is sought."""

_LOOKAHEAD = 2
_TRIES = 6
_RECENT = 4
_MOST = 32


@dataclass(frozen=True)
class Encoded:
    """A whole text as tokens."""

    ids: tuple[int, ...]
    offsets: list[tuple[int, int]]  # first character of each token, and the one after its last
    words: list[int | None]  # the piece of the text to which each token belongs


@dataclass(frozen=True)
class _Border:
    """A place in a text before which its tokens are known."""

    text: str  # up to the end of the piece that begins at the border; texts with this beginning have these tokens
    cut: int
    ids: tuple[int, ...]


class TextEncoder:
    """Converts texts to tokens without special ones; ``characters`` counts those tokenised so far."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.characters = 0
        self._borders: list[_Border] = []
        self._recent: list[str] = []

    def ids(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a whole text."""
        deepest_border = max(
            (border for border in self._borders if text.startswith(border.text)),
            key=lambda border: border.cut,
            default=None,
        )
        if deepest_border is not None and len(text) - deepest_border.cut <= 4 * WORTH_BORDER:
            return deepest_border.ids + self._plain(text[deepest_border.cut :])
        if not getattr(self.tokenizer, "is_fast", False) or len(text) < WORTH_BORDER:
            return self._plain(text)
        whole = self.whole(text)
        self._learn(text, whole, 0 if deepest_border is None else deepest_border.cut)
        return whole.ids

    def whole(self, text: str) -> Encoded:
        """Return the tokens of a whole text with their positions."""
        if not getattr(self.tokenizer, "is_fast", False):
            raise ValueError("this tokenizer does not say which characters its tokens stand for")
        self.characters += len(text)
        encoding = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        return Encoded(tuple(encoding["input_ids"]), encoding["offset_mapping"], encoding.word_ids(0))

    def _plain(self, text: str) -> tuple[int, ...]:
        self.characters += len(text)
        return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _learn(self, text: str, whole: Encoded, known_cut: int) -> None:
        """Find a border between this text and earlier ones, deeper than the known one."""
        common = max((_common(text, other) for other in self._recent), default=0)
        self._recent = [*self._recent[1 - _RECENT :], text]
        if common < known_cut + WORTH_BORDER:
            return
        tries = 0
        end = len(whole.ids)
        for position in range(len(whole.ids) - 1, 0, -1):
            if whole.words[position] is None or whole.words[position] == whole.words[position - 1]:
                continue
            cut, behind = whole.offsets[position - 1][1], whole.offsets[end - 1][1]
            end = position
            if behind + _LOOKAHEAD > common or not text[cut:behind].strip():
                continue
            if whole.ids[:position] + self._plain(text[cut:]) == whole.ids:
                border = _Border(text[: behind + _LOOKAHEAD], cut, whole.ids[:position])
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


_NAMES = ("max_position_embeddings", "n_positions", "max_seq_len")
"""Names of the number of positions in configurations of transformers; the last is MPT's."""


@dataclass(frozen=True)
class ContextLength:
    """The most tokens that a model takes; None if its configuration sets no limit."""

    text: int | None  # of a decoder's input and output
    source: int | None = None  # of an encoder's input, if the model has one


def context_length_of(config: Any) -> ContextLength:
    """Return a model's context length from its configuration; for an encoder–decoder both limits (T5Gemma, LED)."""
    if not getattr(config, "is_encoder_decoder", False):
        return ContextLength(_positions(config.get_text_config(), _NAMES))
    encoder, decoder = (getattr(config, name, None) or config for name in ("encoder", "decoder"))
    return ContextLength(
        _positions(decoder, ("max_decoder_position_embeddings", *_NAMES)),
        _positions(encoder, ("max_encoder_position_embeddings", *_NAMES)),
    )


def require_fitting(tokens: Tokens, request: Request, reach: ContextLength, *, thinks: bool) -> None:
    """Raise an error for a request that exceeds the context; one that ``thinks`` generates even if only labels are requested."""
    if tokens.source is not None and reach.source is not None and len(tokens.source) > reach.source:
        raise ValueError(
            f"the prompt takes {len(tokens.source)} tokens, and the model reads at most {reach.source}"
        )
    if reach.text is None:
        return
    continues = request.labels is None or request.also_text or thinks
    continued = len(tokens.ids) + request.max_tokens if continues else 0
    longest = max([len(label.ids) for label in tokens.labels] + [continued, len(tokens.ids)])
    if longest <= reach.text:
        return
    if tokens.source is None:
        raise ValueError(f"prompt and answer take {longest} tokens, and the model reads at most {reach.text}")
    raise ValueError(
        f"the answer may take {longest} tokens, and the model writes at most {reach.text}; a lower max_tokens lets it"
    )


def _positions(config: Any, names: tuple[str, ...]) -> int | None:
    """Return the first number in a configuration under one of the names."""
    for name in names:
        most = getattr(config, name, None)
        if isinstance(most, int) and most > 0:
            return most
    return None
