"""Files that are not what their names say."""

from __future__ import annotations

import gzip
import io
import zipfile

import pytest

from stimuli.corpora.encodings import kind_of_bytes
from stimuli.corpora.tables import read_table
from stimuli.errors import UserError


def workbook():
    from openpyxl import Workbook

    book, stream = Workbook(), io.BytesIO()
    book.active.append(["item", "sentence"])
    book.save(stream)
    return stream.getvalue()


def archive(**names):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        for name, content in names.items():
            made.writestr(name.replace("__", "/"), content)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (workbook(), "an Excel workbook"),
        (archive(mimetype="application/vnd.oasis.opendocument.spreadsheet"), "an OpenDocument spreadsheet"),
        (archive(word__document="x"), "a Word document"),
        (archive(Index__Document="x"), "a Numbers or Pages document"),
        (archive(items="x"), "a ZIP archive"),
        (workbook()[:400], "a ZIP archive that is cut off"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "an old Excel workbook, or one with a password"),
        (b"%PDF-1.7\n", "a PDF document"),
        (gzip.compress(b"item,sentence\n", mtime=0), "a file compressed by gzip"),
    ],
)
def test_a_table_that_is_another_kind_of_file_is_named_as_such(tmp_path, raw, kind):
    file = tmp_path / "sentences.csv"
    file.write_bytes(raw)
    with pytest.raises(UserError, match=rf"sentences\.csv is {kind}, not a text file") as told:
        read_table(file)
    assert told.value.mend


@pytest.mark.parametrize(
    "raw", [b"", b"PK\n", b"item,sentence\n", "Größe,Wort\n".encode(), b"\xff\xfei\0t\0e\0m\0"]
)
def test_texts_are_of_no_other_kind(raw):
    assert kind_of_bytes(raw) is None


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_table_in_utf_16_is_read(tmp_path, encoding):
    file = tmp_path / "sentences.csv"
    file.write_bytes("item,sentence\ns1,Der *Gärtner* gießt.\n".encode(encoding))
    assert read_table(file)[0]["sentence"] == "Der *Gärtner* gießt."
