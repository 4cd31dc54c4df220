"""Runs the configurations of tools/editors in the installed editors, and the VS Code extension in a stand-in for VS Code."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import xml.etree.ElementTree
import zipfile

import pytest
from lsp_editor import CREMA
from test_lsp import LENET

ROOT = pathlib.Path(__file__).resolve().parents[2]
EDITORS = ROOT / "tools/editors"
DRIVES = ROOT / "tests/editors"


def run(folder, *command):
    environment = dict(os.environ, PATH=f"{os.path.dirname(CREMA)}:{os.environ['PATH']}", HOME=str(folder), CREMA_FLAGS="",
                       XDG_CONFIG_HOME=str(folder))
    environment.pop("LD_PRELOAD", None)  # of a sanitizer, for Python's module
    done = subprocess.run([str(part) for part in command], cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def needs(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"no {program}")


@pytest.fixture(name="net")
def make_net(tmp_path):
    (tmp_path / "net.prototxt").write_text(LENET)
    return tmp_path / "net.prototxt"


@needs("node")
def test_vscode(net):
    answer = json.loads(run(net.parent, "node", DRIVES / "vscode_drive.js", EDITORS / "vscode", CREMA, net))
    assert len(answer["registered"]) == 11
    assert answer["mistake"]["severity"] == 0 and answer["mistake"]["message"].startswith('there is no layer type "Convolutoin"')
    assert answer["fix"] == 'Change to "Convolution"'
    assert "520 parameters, 576,000 multiply-adds" in [hint["label"] for hint in answer["hints"]]
    assert answer["hover"]["contents"]["value"].startswith("**conv1**: 2x20x24x24")
    assert answer["definition"]["range"][0]["line"] == 11 and len(answer["references"]) == 4
    assert [len(edits) for edits in answer["rename"]["edits"].values()] == [4]
    assert answer["refused"].startswith("only blobs") and answer["format"] == []
    assert [symbol["name"] for symbol in answer["symbols"]] == ["name", "data", "conv1", "relu1", "ip"]
    assert {"start": 7, "end": 17} in answer["folds"] and answer["tokens"]
    assert "ReLU" in [item["label"] for item in answer["completions"]]
    assert "block.prototxt to include" in answer["missing"]
    assert answer["again"].startswith('NetParameter has no field "nme"')
    answer = json.loads(run(net.parent, "node", DRIVES / "vscode_drive.js", EDITORS / "vscode", "no-such-program", net))
    assert "no-such-program cannot be started" in answer["warnings"][0] and "crema.path" in answer["warnings"][0]


def test_vsix(tmp_path):
    path = tmp_path / run(tmp_path, "/usr/bin/python3", EDITORS / "package_vscode.py", tmp_path).strip()
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    package = json.loads(files["extension/package.json"])
    assert path.name == f"crema-{package['version']}.vsix" and package["version"] != "0.0.0"
    for name in ("extension.vsixmanifest", "[Content_Types].xml"):
        xml.etree.ElementTree.fromstring(files[name])
    assert set(re.findall(r'Path="([^"]+)"', files["extension.vsixmanifest"])) <= set(files)
    endings = set(re.findall(r'Extension="([^"]+)"', files["[Content_Types].xml"]))
    assert {pathlib.Path(name).suffix for name in files if name[0] != "["} <= endings
    contributes = package["contributes"]
    named = [package["main"], contributes["grammars"][0]["path"], contributes["languages"][0]["configuration"]]
    assert {"extension/" + name[2:] for name in named} <= set(files)
    grammar = json.loads(files["extension/" + contributes["grammars"][0]["path"][2:]])
    assert grammar["scopeName"] == contributes["grammars"][0]["scopeName"]
    required = re.findall(r'require\("\./([a-z]+)"\)', "".join(files.values()))
    assert {f"extension/{name}.js" for name in required} <= set(files)


@needs("nvim")
def test_neovim(net):
    run(net.parent, "nvim", "--headless", "-u", EDITORS / "crema.lua", "-S", DRIVES / "nvim_drive.lua")
    answers = (net.parent / "answers.txt").read_text().splitlines()
    assert answers[0].startswith('10:9 there is no layer type "Convolutoin"')
    assert answers[1:3] == ['fixed:   type: "Convolution"', "hover: **conv1**: 2x20x24x24, 90.0 KiB in float32"]
    assert answers[3].startswith("completions: ") and answers[3] != "completions: 0"
    assert answers[4].startswith('renamed: layer { name: "relu1" type: "ReLU" bottom: "c" top: "c" }')
    assert answers[5:] == ["formatted: name: 'LeNet'"]


@needs("emacs")
def test_emacs(net):
    found = subprocess.run(["emacs", "--batch", "--eval", "(progn (require 'package) (package-initialize) (require 'eglot))"],
                           capture_output=True, check=False)
    if found.returncode != 0:
        pytest.skip("no eglot")
    lines = run(net.parent, "emacs", "--batch", "--eval", "(progn (require 'package) (package-initialize))", "-l",
                EDITORS / "crema.el", "-l", DRIVES / "emacs_drive.el").splitlines()
    assert [line for line in lines if line.startswith(("mode", "mistake", "symbols", "formatted", "waited"))] == [
        "mode: prototxt-mode", 'mistake: crema: there is no layer type "Convolutoin" (did you mean "Convolution"?)', "symbols: 5",
        "formatted: name: 'LeNet'"]


@needs("vim")
def test_vim(net):
    ale = pathlib.Path("/usr/share/vim-ale")  # as Debian has it
    if not ale.exists():
        pytest.skip("no ALE")
    net.write_text(LENET.replace('"Convolution"', '"Convolutoin"'))
    run(net.parent, "vim", "-es", "-u", "NONE", "-N", "-c", f"set runtimepath^={ale}", "-c",
        "runtime plugin/ale.vim", "-c", "filetype plugin on", "-c", f"source {EDITORS}/crema.vim",
        "-S", DRIVES / "vim_drive.vim")
    assert (net.parent / "answers.txt").read_text().startswith('10:9 there is no layer type "Convolutoin"')


def test_helix_and_kate():
    """These editors are not in the tests; their files are at least well-formed."""
    json.loads((EDITORS / "kate.json").read_text())
    xml.etree.ElementTree.fromstring((EDITORS / "kate_prototxt.xml").read_text().replace("<!DOCTYPE language>", ""))
    tomllib = pytest.importorskip("tomllib")
    [language] = tomllib.loads((EDITORS / "helix.toml").read_text())["language"]
    assert language["language-servers"] == ["crema"]
