"""The browser bundle is found where it was built, and built by the tools that are there."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import stat
from pathlib import Path
from types import ModuleType

import pytest

from experiment.bundle import bundle_folder
from stimuli.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "static"


@pytest.fixture(scope="module")
def hatch_build() -> ModuleType:
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def program(folder: Path, name: str, output: str) -> None:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\necho {output}\n", encoding="utf-8")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def test_a_missing_bundle_is_an_error_that_says_how_to_build_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=re.escape(str(tmp_path))) as raised:
        bundle_folder(candidates=(tmp_path,))
    assert raised.value.mend is not None and "pip install" in raised.value.mend


@pytest.mark.parametrize(
    ("told", "is_taken"),
    [("v20.19.0", True), ("v24.1.0", True), ("v20.18.9", False), ("v18.20.4", False), ("?", False)],
)
def test_only_a_node_that_is_new_enough_is_used(
    hatch_build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, is_taken: bool
) -> None:
    tools = tmp_path / "tools"
    program(tools, "node", told)
    program(tools, "npm", "11.0.0")
    monkeypatch.setenv("PATH", str(tools))
    assert (hatch_build.system_node() is not None) == is_taken


def test_without_any_node_the_build_says_what_to_install(
    hatch_build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(hatch_build, "find_spec", lambda name: None)
    with pytest.raises(hatch_build.BuildFailed, match=r"node >= 20\.19"):
        hatch_build.node_and_npm()


def test_a_failing_build_tells_the_command_its_output_and_the_mend(
    hatch_build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    program(tools, "node", "v24.1.0")
    program(tools, "npm", "no such registry; exit 3")
    (tmp_path / "package-lock.json").write_text("{}", encoding="utf-8")
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}/bin{os.pathsep}/usr/bin")
    with pytest.raises(hatch_build.BuildFailed) as raised:
        hatch_build.build_bundle(tmp_path)
    for part in ("npm ci", "exit 3", "no such registry", "npm registry"):
        assert part in str(raised.value)


def test_the_lock_file_names_no_registry_and_every_version_is_exact() -> None:
    lock = (STATIC / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
    package = json.loads((STATIC / "package.json").read_text(encoding="utf-8"))
    versions = [*package["dependencies"].values(), *package["devDependencies"].values()]
    assert all(version[0].isdigit() for version in versions), versions
