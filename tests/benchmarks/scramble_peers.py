"""The peers' side of bench_scramble.py, run in an environment of their own: ``python scramble_peers.py PEER TEXTS [N]``.

Prints one JSON object: processor seconds by scramble, for the (first N) texts of a JSON file, each text on its own as in
an item.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

Augment = Callable[[str], object]


def nlpaug_augmenters() -> dict[str, Augment]:
    """nlpaug's matching augmenters, on every word and without its default limit of ten words a text."""
    import nlpaug.augmenter.char as char
    import nlpaug.augmenter.word as word

    def letters(action: str, **how: object) -> Augment:
        settings = {"aug_word_p": 1, "aug_word_max": None, **how}
        return char.RandomCharAug(action=action, **settings).augment

    every = {"aug_char_p": 1, "aug_char_max": None}
    one, two = {"aug_char_max": 1}, {"aug_char_min": 2, "aug_char_max": 2}
    return {
        "shuffle:all": letters("swap", swap_mode="random", min_char=2, **every),
        "keep:first_and_last": letters("swap", swap_mode="middle", **every),
        "keep:two_random": letters("swap", swap_mode="random", **every),
        "exchange:internal(count=2)": letters("swap", swap_mode="middle", **two),
        "transpose:internal": letters("swap", swap_mode="adjacent", **one),
        "substitute:all": letters("substitute", min_char=2, **every),
        "substitute:internal": letters("substitute", **two),
        "substitute:internal(count=1)": letters("substitute", **one),
        "insert:internal": letters("insert", **one),
        "delete:internal": letters("delete", **one),
        "words:neighbours": word.RandomWordAug(action="swap", aug_p=1, aug_max=None).augment,
    }


def textattack_augmenters() -> dict[str, Augment]:
    """TextAttack's matching transformations, on every word that they can change.

    It reads a list of stop words as it is imported, which NLTK would have to download; an empty one stands in for it, for
    none are passed over here.
    """
    data = tempfile.mkdtemp()
    os.environ["NLTK_DATA"] = data
    Path(data, "corpora", "stopwords").mkdir(parents=True)
    Path(data, "corpora", "stopwords", "english").touch()
    from textattack.augmentation import Augmenter
    from textattack.transformations import (
        WordInnerSwapRandom,
        WordSwapNeighboringCharacterSwap,
        WordSwapRandomCharacterDeletion,
        WordSwapRandomCharacterInsertion,
        WordSwapRandomCharacterSubstitution,
    )

    found = {
        "transpose:internal": WordSwapNeighboringCharacterSwap(skip_first_char=True, skip_last_char=True),
        "substitute:internal(count=1)": WordSwapRandomCharacterSubstitution(),
        "insert:internal": WordSwapRandomCharacterInsertion(),
        "delete:internal": WordSwapRandomCharacterDeletion(),
        "words:shuffle": WordInnerSwapRandom(),
    }
    return {
        name: Augmenter(transformation, pct_words_to_swap=1.0).augment
        for name, transformation in found.items()
    }


def main() -> None:
    """Time every augmenter of a peer over the texts."""
    peer, file, *most = sys.argv[1:4]
    texts = json.loads(Path(file).read_text("utf-8"))["timed"][: int(most[0]) if most and most[0] else None]
    augmenters = {"nlpaug": nlpaug_augmenters, "textattack": textattack_augmenters}[peer]()
    seconds = {}
    for name, augment in augmenters.items():
        augment(texts[0])
        began = time.process_time()
        for text in texts:
            augment(text)
        seconds[name] = time.process_time() - began
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
