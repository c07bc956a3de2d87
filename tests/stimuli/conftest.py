"""Packages that add scrambles or rules, as pip installs them."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a package with one entry point on the path; the registry that reads it starts afresh, then and behind the test."""
    registries = []

    def put(module, registry, group, value):
        (tmp_path / "extra_parts.py").write_text(module, "utf-8")
        info = tmp_path / "extra_parts-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extra-parts\nVersion: 1.0\n", "utf-8")
        (info / "entry_points.txt").write_text(f"[{group}]\nextra = extra_parts:{value}\n", "utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "extra_parts", raising=False)
        registries.append(registry)
        registry.cache_clear()

    yield put
    for registry in registries:
        registry.cache_clear()
