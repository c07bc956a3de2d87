"""Which torchvision belongs beside a PyTorch, and what is said of one that does not load."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from experiment.models.local.checkpoints import Source, load_tokenizer
from experiment.models.local.torchvision_beside import how_to_get_it, not_loading, version_beside
from experiment.models.settings import NotThereYet
from hatch_build import read_pins

REPOSITORY = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("torch", "torchvision"),
    [("2.4.0", "0.19.0"), ("2.5.1+cu124", "0.20.1"), ("2.9.1", "0.24.1"), ("2.13.0+cpu", "0.28.0")],
)
def test_torchvision_goes_with_pytorch_release_by_release(torch: str, torchvision: str) -> None:
    assert version_beside(torch) == torchvision


@pytest.mark.parametrize("torch", ["2.14.0.dev20260901+cpu", "2.14.0rc1", "1.13.1", "3.0.0"])
def test_of_what_is_no_release_no_version_is_claimed(torch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="not known"):
        version_beside(torch)
    monkeypatch.setattr("importlib.metadata.version", lambda _: torch)
    assert torch in how_to_get_it() and "==" not in how_to_get_it()


def test_a_build_of_its_own_is_told_where_to_get_torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _: "2.13.0")
    assert how_to_get_it() == 'pip install torchvision==0.28.0, or pip install "wrods[pictures]".'
    monkeypatch.setattr("importlib.metadata.version", lambda _: "2.13.0+cpu")
    assert "torchvision==0.28.0 with the --index-url" in how_to_get_it()
    assert "wrods[pictures]" not in how_to_get_it()  # that one may be built for CUDA


def test_versions_that_are_pinned_belong_together() -> None:
    pins = read_pins((REPOSITORY / "constraints.txt").read_text("utf-8"))
    pinned = {pin.name: pin.version for pin in pins}
    assert pinned["torchvision"] == version_beside(pinned["torch"])


def test_a_torchvision_that_does_not_load_is_told_of_where_a_model_cannot_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    (tmp_path / "torchvision").mkdir()
    fault = "operator torchvision::nms does not exist"
    (tmp_path / "torchvision" / "__init__.py").write_text(f"raise RuntimeError({fault!r})")
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = not_loading()
    assert found is not None and fault in found.message

    def lazy(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("Could not import module 'LlamaConfig'.")

    monkeypatch.setattr("transformers.AutoConfig.from_pretrained", lazy)
    with pytest.raises(NotThereYet, match="torchvision is installed and does not load") as told:
        load_tokenizer(Source(str(tmp_path), True, None))
    assert "pip uninstall torchvision" in (told.value.mend or "")
