"""Published designs, written from their Method sections: each can be built, or is refused with the reason.

The studies are in ``published_designs``; their materials are as small as they can be.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from experiment.building import build_study
from experiment.checking import load_study
from experiment.procedure import plan_session, trials_of
from experiment.study import Study
from stimuli.errors import UserError
from tests.conftest import sound

DESIGNS = {
    file.stem[3:]: file for file in sorted((Path(__file__).parent / "published_designs").glob("*.yaml"))
}
MODEL = Path(__file__).parents[2] / "experiment/demo/model"
YES_NO = ("Yes", "No")
WORDS = [
    "garden", "market", "window", "pocket", "butter", "silver",
    "planet", "carpet", "monkey", "pencil", "kitten", "ladder",
]  # fmt: skip
RELATED = [
    "flower", "stall", "curtain", "jacket", "bread", "gold", "star", "floor", "banana", "paper", "cat", "climb",
]  # fmt: skip
NONWORDS = [
    "gadrin", "marlet", "wendow", "picket", "butlor", "solver",
    "plenet", "corpet", "mankey", "pincel", "kotten", "lodder",
]  # fmt: skip
PRIMES = list(zip(RELATED, RELATED[5:] + RELATED[:5], strict=True))
STRINGS = (
    "blark stome grint pluth drabe flone snime crobe glurn thark plome sneld "
    "dwint tunch fripe glonk brust smade clorp spune trosk kneap thurp scrob"
)
INKS = {"red": "#c00000", "green": "#007a33", "blue": "#0040c0"}
Rows = Iterable[Iterable[str]]


def table(file: Path, head: str, rows: Rows) -> None:
    with file.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened, lineterminator="\n").writerows([head.split(","), *rows])


def plausibility_rating(folder: Path) -> None:
    rows = [(f"s{i}", f"The *gardener* watered the *flowers* near wall {i}.", f"The *gardener* watered the *thunder* near wall {i}.")
            for i in range(12)]  # fmt: skip
    table(folder / "sentences.csv", "item,sentence:plausible,sentence:implausible", rows)
    table(
        folder / "practice.csv",
        "item,sentence",
        [("p1", "The dog chased the cat."), ("p2", "The moon drank.")],
    )


def questions(folder: Path) -> None:
    rows = [
        ("p1", "The postman rang twice today.", "Did he ring?", "Yes"),
        ("p2", "The door was green.", "Was it red?", "No"),
    ]
    table(folder / "practice.csv", "item,sentence,question,answer", rows)


def garden_path(folder: Path) -> None:
    sentence = "While Anna dressed{{|,}} the baby [critical: spat up] on the bed {}."
    rows = [(f"g{i}", sentence.format(i), "Did Anna dress?", YES_NO[i // 2 % 2], "") for i in range(8)]
    rows += [
        (f"f{i}", f"The dog ran along the beach in year {i}.", "Did it run?", YES_NO[i % 2], "filler")
        for i in range(14)
    ]
    table(folder / "sentences.csv", "item,sentence,question,answer,role", rows)
    questions(folder)


def chinese_spacing(folder: Path) -> None:
    sentence = "他 / 昨天 / 在 / 家 / 里 / [critical: {}] / 了 / 第{} / 本 / 书 / 。"
    rows = [(f"s{i}", level, sentence.format(word, i), "他在家吗？", "是否"[i % 2])
            for i in range(8) for level, word in (("plausible", "看"), ("implausible", "喝"))]  # fmt: skip
    table(folder / "sentences.csv", "编号,plausibility,句子,question,answer", rows)
    practice = [
        ("p1", "我 / 喜欢 / 读书 / 。", "喜欢吗？", "是"),
        ("p2", "他 / 不 / 来 / 。", "他来吗？", "否"),
    ]
    table(folder / "practice.csv", "编号,句子,question,answer", practice)


def a_maze(folder: Path) -> None:
    rows = [(f"s{i}", f"The old king put the [critical: {{bread|plate}}] on the table {word}.")
            for i, word in enumerate(("today", "again", "slowly", "quickly"))]  # fmt: skip
    table(folder / "sentences.csv", "item,sentence", rows)
    table(
        folder / "practice.csv",
        "item,sentence,foils",
        [("p1", "The pupil opened the window.", "whose loose are himself")],
    )


def stroop_readers(folder: Path) -> None:
    rows = []
    for i, (answer, other, neutral) in enumerate(
        [("red", "green", "chair"), ("green", "blue", "desk"), ("blue", "red", "leg")] * 2
    ):
        words = {"congruent": answer, "incongruent": other, "neutral": neutral}
        rows += [(f"w{i}", level, f"*{word}*", INKS[answer], answer) for level, word in words.items()]
    table(folder / "words.csv", "item,agreement,sentence,ink,answer", rows)
    practice = [
        (f"p{i}", "neutral", "lamp", ink, answer) for i, (answer, ink) in enumerate([*INKS.items()] * 4)
    ]
    table(folder / "practice.csv", "item,agreement,sentence,ink,answer", practice)


def look_transposition(folder: Path) -> None:
    sentence = "Der alte *Gärtner* gießt im Sommer die *Blumen* neben Haus {}."
    rows = [
        (f"s{i}", sentence.format(i), "Ist es Sommer?", ("Ja", "Nein")[(i // 6 + i) % 2]) for i in range(24)
    ]
    table(folder / "saetze.csv", "item,sentence,question,answer", rows)


def neighbourhood(folder: Path) -> None:
    words = {
        "common,few": "world music image today queen young", "common,many": "light store horse share train black",
        "rare,few": "idyll gnome ulcer igloo hyena quail", "rare,many": "slate stale crate latch hatch lager",
    }  # fmt: skip
    rows = [
        (word, word, *levels.split(","), "word", "") for levels, all in words.items() for word in all.split()
    ]
    table(folder / "strings.csv", "item,sentence,frequency,neighbours,answer,role",
          [*rows, *((word, word, "", "", "nonword", "filler") for word in STRINGS.split())])  # fmt: skip
    practice = [(f"p{i}", *pair) for i, pair in enumerate([("table", "word"), ("blick", "nonword")] * 10)]
    table(folder / "practice.csv", "item,sentence,answer", practice)


def primed(folder: Path, levels: str, primes: Sequence[tuple[str, str]], filler: tuple[str, str]) -> None:
    rows = [(f"w{i}", word, *primes[i % len(primes)], "word", "") for i, word in enumerate(WORDS)]
    rows += [(f"n{i}", word, *filler, "nonword", "filler") for i, word in enumerate(NONWORDS)]
    columns = ",".join(f"prime:{level}" for level in levels.split())
    table(folder / "targets.csv", f"item,target,{columns},answer,role", rows)
    practice = [("p1", "summer", "winter", "word"), ("p2", "sommir", "button", "nonword")]
    table(folder / "practice.csv", "item,target,prime,answer", practice)


def window_or_cumulative(folder: Path) -> None:
    rows = [(f"s{i}", f"The old [critical: *gardener*] watered flowers in year {i}.", "Did he water?", YES_NO[i // 3 % 2], "")
            for i in range(12)]  # fmt: skip
    rows += [
        (f"f{i}", f"The dog ran along the beach in year {i}.", "Did it run?", YES_NO[i % 2], "filler")
        for i in range(12)
    ]
    table(folder / "sentences.csv", "item,sentence,question,answer,role", rows)
    questions(folder)


def acceptability_heard(folder: Path) -> None:
    rows = [
        (f"s{i}", f"The keys {i} are here.", f"The keys {i} is here.", f"g{i}.wav", f"b{i}.wav", "")
        for i in range(6)
    ]
    rows += [(f"f{i}", f"The dog {i} barks.", "", f"f{i}.wav", "", "filler") for i in range(10)]
    table(folder / "sentences.csv", "item,sentence:good,sentence:bad,voice:good,voice:bad,role", rows)
    table(folder / "practice.csv", "item,sentence,voice", [("p1", "The cat sleeps.", "p1.wav")])
    for name in [*(name for row in rows for name in row[3:5] if name), "p1.wav"]:
        (folder / name).write_bytes(sound())


def reading_aloud(folder: Path) -> None:
    table(folder / "words.csv", "item,sentence,regularity,answer", [("w1", "mint", "regular", "mint")])


MATERIALS: dict[str, Callable[[Path], None]] = {
    "plausibility-rating": plausibility_rating,
    "garden-path": garden_path,
    "chinese-spacing": chinese_spacing,
    "a-maze": a_maze,
    "stroop-readers": stroop_readers,
    "look-transposition": look_transposition,
    "neighbourhood": neighbourhood,
    "three-soas": lambda folder: primed(folder, "related unrelated", PRIMES, ("river", "pillow")),
    "window-or-cumulative": window_or_cumulative,
    "acceptability-heard": acceptability_heard,
    "translation-priming": lambda folder: primed(folder, "translation unrelated", [("Blume", "Kerze")], ("Fluss", "")),
    "reading-aloud": reading_aloud,
}  # fmt: skip


def written(folder: Path, name: str, *changes: tuple[str, str]) -> Path:
    """Write a design with its materials; changes are of its text."""
    text = DESIGNS[name].read_text("utf-8").replace("hf:MODEL", f"hf:{MODEL}")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    (folder / "texts").mkdir()
    (folder / "study.yaml").write_text(text, "utf-8")
    for page in ("consent", "instructions", "keys", "debrief"):
        (folder / f"texts/{page}.md").write_text(f"# {page}\n", "utf-8")
    MATERIALS[name](folder)
    return folder


def first_session(study: Study) -> list[dict[str, Any]]:
    return trials_of(plan_session(study, study.items, list_id=1))


@pytest.mark.parametrize("name", [name for name in DESIGNS if name != "reading-aloud"])
def test_a_published_design_is_built_and_plans_sessions(tmp_path, name):
    study = load_study(written(tmp_path, name))
    build_study(study)
    study = load_study(tmp_path)
    for trial in first_session(study):
        assert trial["is_practice"] or trial["is_filler"] or set(trial["condition"]) == set(study.factors)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("reading-aloud", None, "say needs the onset of speech"),
        ("plausibility-rating", ("plausible", "likely"), "but the materials have none"),
        ("garden-path", ("critical: marked", "critcal: marked"), "critical"),
        ("garden-path", ("only: 33%", "only: quesiton"), "quesiton"),
        ("look-transposition", ("      levels: {look: [plain, mixed_case]}        # qwen reads text: it does not see fonts\n", ""),
         "between.* names qwen, which reads text, but the compared level sans is a style"),
        ("translation-priming", ("between: [human]", "between: [human, qwen]"), "models read the same at all levels of group"),
        ("neighbourhood", ("{on: {letters: 0}}", "{on: {letters: 0, old20: 0.001}}"), "so that no item is left"),
        ("window-or-cumulative", ("as: moving_window}\n", "as: boundary}\n"), "a browser has no eye position"),
        ("three-soas", ("      fixation: 500 ms\n", "      staircase: {start: 300 ms}\n"), "depend on earlier answers"),
        ("three-soas", ("wanted: 60", "wanted: 60, sessions: 2"), "a study is one session"),
        ("three-soas", ("compare: [relation, soa]", "compare: [relation, soa, answer]"), "has 3 factors; two can be compared"),
        ("acceptability-heard", ("{name: confidence, ", "{"), "without a name"),
        ("translation-priming", ("[de, nl]}}}", "[de, en]}}}"), "belong to both native and learner"),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_refused_with_the_reason(tmp_path, name, change, words):
    with pytest.raises(UserError, match=words):
        build_study(load_study(written(tmp_path, name, *([change] if change else []))))
