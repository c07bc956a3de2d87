"""What an installation is made of: versions with hashes, no copyleft, notices and a bill of materials."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hatch_build import (
    BuildFailed,
    Pin,
    bill_of_materials,
    bundled_packages,
    read_pins,
    shipped_components,
    third_party_notices,
)
from tests.write_constraints import ANY_BUILD, SYSTEMS, licence_of, resolved, written

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PINS = {pin.name: pin for pin in read_pins((ROOT / "constraints.txt").read_text("utf-8"))}
INSTALLERS = ("README.md", "Makefile", "deploy/Dockerfile")
PERMISSIVE = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "CNRI-Python",
    "ISC", "MIT", "MIT-0", "MIT-CMU", "PSF-2.0", "Zlib",
}  # fmt: skip
REVIEWED = {
    "tqdm": "MPL-2.0 in some files: it binds who changes and passes on those files. wrods uses them unchanged.",
    "wordfreq": "CC BY-SA 4.0 for the word lists: it binds who passes on them or a list made of them. wrods' wheel has none.",
}
REVIEWED_TEXTS = {
    "numpy": "libgfortran (GPL with the runtime exception) and libquadmath (LGPL), as libraries of their own",
    "scipy": "libgfortran (GPL with the runtime exception) and libquadmath (LGPL), as libraries of their own",
    "scikit-learn": "libgomp (GPL with the runtime exception), as a library of its own",
}
"""Distributions whose licence files hold the text of a GNU licence, for parts that others wrote."""
OWN_LICENCES = {
    "MIT",
    "MIT, written for wrods",
    "CC0-1.0",
    "facts, MIT as compiled here",
    "facts, no rights claimed",
    "facts about published data; no text of either is reproduced beyond the characters mended",
    "facts about published procedures; no text or code of either is reproduced",
}


@cache
def asked_by(name: str) -> list[Requirement]:
    """Return what a distribution requires; what is not installed here requires nothing that is known."""
    try:
        return [Requirement(one) for one in distribution(name).requires or ()]
    except PackageNotFoundError:
        return []


def needed(requirements: list[str], systems: list[dict[str, str]] | None = None) -> set[str]:
    """Return the names that installed metadata ask for, directly or not: here, or on any of the systems."""
    open_, seen = [Requirement(one) for one in requirements], {}
    while open_:
        one = open_.pop()
        name = canonicalize_name(one.name)
        extras = {"", *one.extras}
        new = extras - seen.get(name, set())
        seen.setdefault(name, set()).update(extras)
        for further in asked_by(name) if new else ():
            if further.marker is None or any(
                further.marker.evaluate(system | {"extra": extra})
                for extra in new
                for system in systems or [{}]
            ):
                open_.append(further)
    return set(seen)


def requirements(*extras: str) -> list[str]:
    optional = PROJECT["project"]["optional-dependencies"]
    return [*PROJECT["project"]["dependencies"], *(one for extra in extras for one in optional[extra])]


PLAIN = needed(requirements())


# hashes


@pytest.mark.parametrize("file", ["constraints.txt", "pip.txt"])
def test_every_pinned_line_has_a_hash_and_names_no_place(file: str) -> None:
    text = (ROOT / file).read_text("utf-8")
    lines = [line for line in text.splitlines() if line[0] not in "# "]
    pins = read_pins(text)
    assert lines and len(pins) == len(lines), "a line that pins no version"
    assert {pin.name for pin in pins if not pin.hashes} <= set(ANY_BUILD)
    assert len({line.split("==")[0] for line in lines}) == len(lines)
    assert not re.search(r"://|file:|^-|--(?!hash=sha256:)", text, re.M)


def test_installed_versions_are_the_pinned_ones() -> None:
    here = needed([*requirements("local", "dev"), *PROJECT["build-system"]["requires"]])
    installed = {name: version(name).partition("+")[0] for name in here}
    assert installed == {name: PINS[name].version for name in here}


def test_every_requirement_on_every_system_is_pinned() -> None:
    asked = [
        *requirements(*PROJECT["project"]["optional-dependencies"]),
        *PROJECT["build-system"]["requires"],
    ]
    assert needed(asked, SYSTEMS) - set(PINS) == set(), "run: make constraints"


def test_a_plain_installation_is_marked_as_such_and_has_no_torch() -> None:
    plain = {name for name, pin in PINS.items() if pin.scope == "plain"}
    assert plain == needed(requirements(), SYSTEMS)
    assert PINS["torch"].scope == "local" and not {
        name for name in plain if name.startswith(("torch", "nvidia"))
    }


@pytest.mark.parametrize("file", INSTALLERS)
def test_every_installation_that_is_documented_checks_hashes(file: str) -> None:
    text = (ROOT / file).read_text("utf-8")
    installing = re.findall(r"(?m)^.*pip install (.+)$", text)
    bare = [line for line in installing if "--requirement pip.txt" not in line]
    assert len(installing) > len(bare) > 0
    for line in bare:
        words = shlex.split(line)
        assert {"--no-require-hashes"} <= set(words), line
        for option in ("--constraint", "--build-constraint"):
            assert words[words.index(option) + 1] == "constraints.txt", line


def test_every_npm_package_is_locked_with_its_hash() -> None:
    packages = json.loads((ROOT / "static" / "package-lock.json").read_text("utf-8"))["packages"]
    assert [
        name
        for name, told in packages.items()
        if name and not told.get("integrity", "").startswith("sha512-")
    ] == []
    assert "omit-lockfile-registry-resolved=true" in (ROOT / "static" / ".npmrc").read_text("utf-8")


def test_constraints_are_written_in_the_form_that_is_read() -> None:
    digest = "sha256:" + "a" * 64
    whole = (
        f"click==8.1 ; sys_platform != 'emscripten' \\\n    --hash={digest} \\\n    --hash={digest}\n"
        f"only-there==1.0 ; sys_platform == 'emscripten' \\\n    --hash={digest}\n"
        f"torch==2.13.0 \\\n    --hash={digest}\npip==26.3 \\\n    --hash={digest}\n"
    )
    constraints, pip = written(whole, plain={"click"}, local={"torch"})
    click, torch = read_pins(constraints)
    assert click == Pin("click", "8.1", "plain", "BSD-3-Clause", ("a" * 64,) * 2)
    assert torch == Pin("torch", "2.13.0", "local", None, ())
    assert [pin.name for pin in read_pins(pip)] == ["pip"]


def test_two_versions_of_a_name_are_refused() -> None:
    with pytest.raises(ValueError, match=r"numpy==2\.5 .*numpy==2\.4"):
        resolved("numpy==2.4 ; python_version < '3.12'\nnumpy==2.5 ; python_version >= '3.12'\n")


# licences


def test_no_dependency_of_a_plain_installation_is_copyleft() -> None:
    licences = {name: licence_of(name) for name in PLAIN}
    assert {name: PINS[name].licence for name in PLAIN} == licences, "run: make constraints"
    found = {name: set(re.split(r" AND | OR |[()]", licence)) - {""} for name, licence in licences.items()}
    others = {name for name, parts in found.items() if parts - PERMISSIVE}
    assert others == PLAIN & set(REVIEWED), "replace it, or read what it binds and say so in REVIEWED"


def test_gnu_licence_texts_in_a_plain_installation_are_reviewed() -> None:
    heading = re.compile(r"GNU (LESSER |LIBRARY |AFFERO )?GENERAL PUBLIC LICENSE")
    found = {
        name
        for name in PLAIN
        for file in distribution(name).files or ()
        if re.search(r"(?i)licen[cs]e|copying|notice", str(file)) and file.suffix not in (".py", ".pyc")
        if heading.search(Path(str(file.locate())).read_text("utf-8", errors="replace"))
    }
    assert found <= set(REVIEWED_TEXTS), found - set(REVIEWED_TEXTS)


def test_what_was_reviewed_is_on_the_page() -> None:
    page = (ROOT / "docs" / "supply-chain.md").read_text("utf-8")
    assert [
        name for name in (*REVIEWED, *REVIEWED_TEXTS, *ANY_BUILD, "psycopg") if f"`{name}`" not in page
    ] == []
    assert {name: licence_of(name) for name in ("psycopg", "psycopg-binary")} == dict.fromkeys(
        ("psycopg", "psycopg-binary"), "LGPL-3.0-only"
    )


# what the wheel contains


def test_every_file_of_others_is_listed() -> None:
    listed = {file for part in shipped_components(ROOT) for file in part["files"]}
    texts = {part.get("text") for part in shipped_components(ROOT)}
    of_others = set()
    for package in ("stimuli", "experiment", "analysis"):
        for file in (ROOT / package).rglob("*"):
            name = file.relative_to(ROOT).as_posix()
            if re.match(r"(?i)licen[cs]e|copying|notice", file.name) and file.suffix not in (".py", ".pyc"):
                assert name in texts, name
            if file.suffix == ".json":
                told = set(re.findall(r'"licen[cs]e": "([^"]+)"', file.read_text("utf-8")))
                if told - OWN_LICENCES:
                    of_others.add(name)
    assert {name for name in of_others if not name.endswith("/source.json")} <= listed
    assert [file for file in listed if not (ROOT / file).is_file()] == []


def test_the_notices_hold_each_licence() -> None:
    notices = third_party_notices(ROOT)
    for package in bundled_packages(ROOT / "static"):
        assert f"## {package.name} {package.version} ({package.licence})\n" in notices
        assert package.text in notices
    assert {"jspsych", "uplot", "@fontsource-variable/source-sans-3"} <= {
        package.name for package in bundled_packages(ROOT / "static")
    }
    for part in shipped_components(ROOT):
        assert part["note"] in notices
        if "text" in part:
            assert (ROOT / part["text"]).read_text("utf-8").strip() in notices
    for owner in (
        "Joshua R. de Leeuw",
        "Carnegie Mellon University",
        "Unicode, Inc.",
        "Bruce W. Lee",
        "Leon Sorokin",
    ):
        assert owner in notices


def test_a_bundled_package_without_licence_text_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "licences.md").write_text("# Licenses\n\n## left-pad - 1.0.0 (MIT)\n\n")
    (tmp_path / "dist" / "dashboard-licences.md").write_text("# Licenses\n")
    with pytest.raises(BuildFailed, match=r"left-pad 1\.0\.0 .*left-pad-licence\.txt"):
        bundled_packages(tmp_path)


@pytest.fixture(scope="module")
def materials() -> dict[str, Any]:
    return bill_of_materials(ROOT)


def test_the_bill_of_materials_is_valid(materials: dict[str, Any]) -> None:
    cyclonedx = pytest.importorskip("cyclonedx.validation.json")
    from cyclonedx.schema import SchemaVersion

    assert cyclonedx.JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(materials)) is None


def test_the_bill_of_materials_lists_what_is_shipped_and_what_is_installed(materials: dict[str, Any]) -> None:
    installed = {one["name"]: one for one in materials["components"]}
    assert set(installed) == {name for name, pin in PINS.items() if pin.scope == "plain"}
    numpy = installed["numpy"]
    assert numpy["purl"] == f"pkg:pypi/numpy@{PINS['numpy'].version}"
    assert numpy["licenses"] == [{"expression": PINS["numpy"].licence}]
    assert [one["content"] for one in numpy["externalReferences"][0]["hashes"]] == list(PINS["numpy"].hashes)
    whole = materials["metadata"]["component"]
    contained = {one["name"]: one for one in whole["components"]}
    assert set(contained) == {one.name for one in bundled_packages(ROOT / "static")} | {
        part["name"] for part in shipped_components(ROOT)
    }
    assert contained["@fontsource-variable/source-sans-3"]["purl"].startswith(
        "pkg:npm/%40fontsource-variable/source-sans-3@"
    )
    (direct,) = materials["dependencies"]
    assert direct["ref"] == whole["purl"] == f"pkg:pypi/wrods@{PROJECT['project']['version']}"
    assert len(direct["dependsOn"]) == len(PROJECT["project"]["dependencies"])


@pytest.mark.full
def test_a_wheel_carries_notices_and_bill_and_is_built_the_same_again(tmp_path: Path) -> None:
    source = tmp_path / "source"  # a copy: other tests use the pages in static/dist
    ignored = shutil.ignore_patterns("node_modules", "dist", "__pycache__")
    for name in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]:
        here, there = ROOT / name[1:], source / name[1:]
        if here.is_dir():
            shutil.copytree(here, there, ignore=ignored)
        else:
            shutil.copy(here, there)
    shutil.copy(ROOT / "pyproject.toml", source)
    (source / "static" / "node_modules").symlink_to(ROOT / "static" / "node_modules")
    built = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
        done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        built += folder.glob("*.whl")
    one, two = built
    assert one.read_bytes() == two.read_bytes()
    with zipfile.ZipFile(one) as archive:
        about = f"wrods-{PROJECT['project']['version']}.dist-info"
        assert archive.read(f"{about}/licenses/THIRD_PARTY_NOTICES.md").decode() == third_party_notices(ROOT)
        assert json.loads(archive.read(f"{about}/sboms/wrods.cdx.json")) == bill_of_materials(ROOT)
        told = archive.read(f"{about}/METADATA").decode()
        assert "License-File: LICENSE\n" in told and "License-File: THIRD_PARTY_NOTICES.md\n" in told
        shipped = {f"wrods/{file}" for part in shipped_components(ROOT) for file in part["files"]}
        assert shipped <= set(archive.namelist())
        assert {name.partition("/")[0] for name in archive.namelist()} == {"wrods", about}
        archive.extractall(tmp_path / "site")
    (tmp_path / "analysis.py").write_text("OWN = True\n", "utf-8")
    code = (
        "import analysis, sys\nfrom wrods.experiment.cli import main\nassert analysis.OWN\n"
        "for words in ('new S --from letter-position', 'build S', 'simulate S --readers 6', 'report S'):\n"
        "    main(words.split(), standalone_mode=False)\n"
        "assert not {'stimuli', 'experiment'} & set(sys.modules)"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0
