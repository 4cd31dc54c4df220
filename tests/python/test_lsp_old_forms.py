"""crema lsp writes layers as they were written until 2014 in today's form."""
import pathlib
import re
import subprocess

import pytest
from lsp_editor import CREMA, Editor, apply, rows
ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(name="editor")
def make_editor(tmp_path):
    editor = Editor(str(tmp_path))
    yield editor
    assert editor.close() == 0


def old_form_fixes(editor):
    return {fix["title"]: fix["edit"]["changes"][editor.uri] for fix in editor.fixes() if "today's form" in fix["title"]}


def test_writes_todays_form(editor):
    """Each layer of lsp_old_forms.tsv, alone and before another."""
    wrong = []
    other = 'layers { name: "other" type: RELU }\n'
    for old, new in rows("lsp_old_forms.tsv"):
        editor.open(old)
        found = [apply(old, edits) for edits in old_form_fixes(editor).values()]
        wrong += [(old, found)] if found != ([] if new == "-" else [new]) else []
        if new == "-":
            continue
        editor.open(old + "\n" + other)
        fixes = old_form_fixes(editor)
        assert [apply(editor.text, edits) for edits in fixes.values()] == [
            new + '\nlayer { name: "other" type: "ReLU" }\n', new + "\n" + other]
    assert not wrong


def test_todays_form_means_the_same(editor, tmp_path):
    """What the quick fix makes of whole files is what upgrade_net_proto_text makes of them."""
    def upgraded(path):
        out = tmp_path / "upgraded.prototxt"
        subprocess.run([CREMA, "upgrade_net_proto_text", path, out], check=True, capture_output=True)
        return out.read_text()
    paths = [path for folder in ("models", "tests/corpus", "tests/goldens/legacy")
             for path in sorted((ROOT / folder).rglob("*.prototxt")) if not path.name.startswith("v0_")]
    old = [path for path in paths if re.search(r"^\s*layers\s*:?\s*[{<]", path.read_text(), re.M)]
    assert len(old) >= 8
    for path in old:
        editor.open(path.read_text(), path.as_uri())
        (tmp_path / path.name).write_text(apply(editor.text, old_form_fixes(editor)["Write all layers in today's form"]))
        assert upgraded(tmp_path / path.name) == upgraded(path), path
        assert "layers {" not in (tmp_path / path.name).read_text()
