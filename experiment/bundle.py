"""Finds the built front end: inside the package if it was installed from a wheel, else in the source tree."""

from __future__ import annotations

from pathlib import Path

from stimuli.errors import UserError

FILES = ("wrods.js", "wrods.css")

_PACKAGE = Path(__file__).resolve().parent
_IN_PACKAGE = _PACKAGE / "_bundle"
_IN_TREE = _PACKAGE.parent / "static" / "dist"


def bundle_folder(*, candidates: tuple[Path, ...] = (_IN_PACKAGE, _IN_TREE)) -> Path:
    """Return the folder with ``wrods.js``, ``wrods.css`` and ``fonts/``.

    ``candidates``: folders to search, the first match wins: a wheel has the bundle in ``experiment/_bundle``; an editable
    installation and a source tree have it in ``static/dist``.
    """
    for folder in candidates:
        if all((folder / name).is_file() for name in FILES):
            return folder
    looked = ", ".join(str(folder) for folder in candidates)
    raise UserError(
        f"the browser pages are not built: none of {looked} holds {' and '.join(FILES)}",
        mend="Build them with `pip install -e .` in the source tree, or with `npm ci && npm run build` in static/.",
        exit_code=1,
    )
