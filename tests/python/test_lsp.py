"""crema lsp, driven as an editor drives it."""
import json
import os
import pathlib
import subprocess

import pytest

CREMA = os.environ["CREMA_TOOLS"] + "/crema"
ROOT = pathlib.Path(__file__).resolve().parents[2]

LENET = """name: "LeNet"
layer {
  name: "data"
  type: "Input"
  top: "data"
  input_param { shape { dim: 2 dim: 1 dim: 28 dim: 28 } }
}
layer {
  name: "conv1"
  type: "Convolution"
  bottom: "data"
  top: "conv1"
  convolution_param {
    num_output: 20
    kernel_size: 5
    weight_filler { type: "xavier" }
  }
}
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer {
  name: "ip"
  type: "InnerProduct"
  bottom: "conv1"
  top: "ip"
  inner_product_param { num_output: 10 }
}
"""


class Editor:
    def __init__(self, folder="/tmp"):
        self.process = subprocess.Popen([CREMA, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder,
                                        env=dict(os.environ, CREMA_FLAGS="", XDG_CONFIG_HOME=os.devnull))
        self.number, self.version, self.uri = 0, 0, f"file://{folder}/net.prototxt"
        self.published = {}  # by file and version: what was said of its words, then of its meaning
        self.capabilities = self.ask("initialize", {"capabilities": {}})["capabilities"]
        self.tell("initialized", {})

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def receive(self):
        length = 0
        while (line := self.process.stdout.readline().strip()) != b"":
            length = int(line.split(b":")[1])
        message = json.loads(self.process.stdout.read(length))
        if message.get("method") == "textDocument/publishDiagnostics":
            params = message["params"]
            key = params["uri"], params["version"]
            self.published[key] = self.published.get(key, []) + [params["diagnostics"]]
        return message

    def tell(self, method, params):
        self.send({"method": method, "params": params})

    def ask(self, method, params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while (message := self.receive()).get("id") != self.number:
            pass
        if "error" in message:
            raise RuntimeError(message["error"]["message"])
        return message["result"]

    def at(self, method, line, character, **more):
        return self.ask("textDocument/" + method, {"textDocument": {"uri": self.uri},
                                                   "position": {"line": line, "character": character}, **more})

    def open(self, text, uri=None):
        self.uri, self.version, self.text = uri or self.uri, self.version + 1, text
        self.tell("textDocument/didOpen", {"textDocument": {"uri": self.uri, "languageId": "prototxt",
                                                            "version": self.version, "text": text}})

    def change(self, begin, end, text):
        """begin, end: offsets in the text, which has only ASCII characters."""
        def position(offset):
            before = self.text[:offset]
            return {"line": before.count("\n"), "character": offset - (before.rfind("\n") + 1)}
        self.version += 1
        self.tell("textDocument/didChange", {
            "textDocument": {"uri": self.uri, "version": self.version},
            "contentChanges": [{"range": {"start": position(begin), "end": position(end)}, "text": text}]})
        self.text = self.text[:begin] + text + self.text[end:]

    def mistakes(self):
        """Those of the current version: of its words, or, if there are none, of its meaning."""
        while True:
            lists = self.published.get((self.uri, self.version), [])
            if len(lists) > 1 or (lists and lists[0]):
                return [(f"{d['range']['start']['line'] + 1}:{d['range']['start']['character'] + 1}", d["message"])
                        for d in lists[-1]]
            self.receive()

    def close(self):
        self.ask("shutdown", None)
        self.tell("exit", None)
        return self.process.wait(10)


@pytest.fixture(name="editor")
def make_editor(tmp_path):
    editor = Editor(str(tmp_path))
    yield editor
    if editor.process.poll() is None:
        assert editor.close() == 0


# What is replaced in LeNet, by what; place and beginning of the message; what a quick fix makes of it.
MISTAKES = [
    ('type: "Convolution"', 'type: "Convolutoin"', "10:9", 'there is no layer type "Convolutoin"', '"Convolution"'),
    ('type: "Convolution"', 'type: "Conv2d"', "10:9", 'there is no layer type "Conv2d"', '"Convolution"'),
    ("num_output: 20", "num_ouput: 20", "14:5", "", "num_output"),
    ("    num_output: 20\n", "", "8:1", 'layer "conv1": convolution_param has no num_output', None),
    ("kernel_size: 5", "kernel_size: 50", "", 'layer "conv1": the kernel does not fit', None),
    ("kernel_size: 5", "kernel_size:", "15:16", 'expected a value after ":"', None),
    ("kernel_size: 5", "kernel_size: five", "15:18", 'layer "conv1": "kernel_size" expects', None),
    ("kernel_size: 5", "pad: 1 pad: 2 pool: MAX kernel_size: 5", "15:19", "", None),
    ('bottom: "data"', 'bottom: "dta"', "11:11", 'layer "conv1": bottom 0 is "dta"', '"data"'),
    ('top: "ip"', 'top: "data"', "", 'layer "ip"', None),
    ('name: "conv1"\n', 'name: "conv1\n', "9:9", "this text has no closing", None),
    ('    weight_filler { type: "xavier" }\n  }\n', '    weight_filler { type: "xavier" }\n', "13:21", "this block is not closed",
     None),
    ('name: "LeNet"', 'name: "LeNet" }', "1:15", '"}" closes no block', None),
    ('type: "xavier"', 'type: "xaver"', "", 'layer "conv1"', None),
]


@pytest.mark.parametrize("old,new,place,message,fix", MISTAKES, ids=[row[1].strip()[:30] or row[0].strip() for row in MISTAKES])
def test_says_what_is_wrong(editor, old, new, place, message, fix):
    editor.open(LENET)
    assert editor.mistakes() == []
    begin = LENET.index(old)
    editor.change(begin, begin + len(old), new)
    found = editor.mistakes()
    assert any(where.startswith(place) and what.startswith(message) for where, what in found), found
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 100, "character": 0}}
    actions = editor.ask("textDocument/codeAction", {"textDocument": {"uri": editor.uri}, "range": whole, "context": {"diagnostics": []}})
    assert [action["edit"]["changes"][editor.uri][0]["newText"] for action in actions] == ([fix] if fix else [])
    editor.change(begin, begin + len(new), old)
    assert editor.mistakes() == []


def test_never_blanks_the_rest(editor):
    """A net that is typed letter by letter: the mistakes are in the line of the cursor or those before it that are open."""
    editor.open("")
    for i, letter in enumerate(LENET):
        editor.change(i, i, letter)
        if i % 37 == 0:
            symbols = editor.ask("textDocument/documentSymbol", {"textDocument": {"uri": editor.uri}})
            done = LENET[:i].count('\n}\n') + LENET[:i].count("conv1\" }\n")
            assert len(symbols) >= done, LENET[:i]
    assert editor.mistakes() == []


def test_shapes_behind_tops(editor):
    editor.open(LENET)
    assert editor.mistakes() == []
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 100, "character": 0}}
    hints = editor.ask("textDocument/inlayHint", {"textDocument": {"uri": editor.uri}, "range": whole})
    assert [(hint["position"]["line"] + 1, hint["label"]) for hint in hints] == [
        (5, "2x1x28x28"), (12, "2x20x24x24"), (19, "2x20x24x24"), (24, "2x10")]


# Where, and some of what may be written there, the first of all or anywhere.
COMPLETIONS = [
    (13, 4, {"kernel_size", "bias_term"}),  # in convolution_param, without those that are set
    (7, 8, {"bottom", "pooling_param"}),
    (9, 9, {"Convolution", "Pooling"}),
    (10, 11, {"data"}),
    (22, 12, {"conv1", "data"}),
    (15, 27, {"xavier", "gaussian"}),
]


@pytest.mark.parametrize("line,character,labels", COMPLETIONS)
def test_completes(editor, line, character, labels):
    editor.open(LENET)
    found = {item["label"] for item in editor.at("completion", line, character)}
    assert labels <= found


def test_completes_what_is_begun(editor):
    begun = LENET.replace('  top: "conv1"\n', '  top: "conv1"\n  pool\n', 1)
    editor.open(begun)
    assert "pooling_param" in {item["label"] for item in editor.at("completion", 12, 6)}
    editor.open('layer { name: "a" pooling_param { pool: ')
    assert {item["label"] for item in editor.at("completion", 0, 40)} >= {"MAX", "AVE"}
    editor.open('base_lr: 0.1\nlr_policy: "')
    assert "step" in {item["label"] for item in editor.at("completion", 1, 12)}
    editor.open("name: 'a' # comm")
    assert editor.at("completion", 0, 14) == []


def test_explains_and_finds(editor):
    editor.open(LENET)
    assert "num_output" in editor.at("hover", 13, 6)["contents"]["value"]
    assert "filter slides" in editor.at("hover", 9, 12)["contents"]["value"]
    assert editor.at("hover", 0, 8) is None
    assert editor.at("definition", 22, 13)["range"]["start"] == {"line": 18, "character": 57}
    references = editor.at("references", 11, 9, context={"includeDeclaration": True})
    assert [r["range"]["start"]["line"] for r in references] == [11, 18, 18, 22]
    edits = editor.at("rename", 11, 9, newName="c")["changes"][editor.uri]
    assert len(edits) == 4 and {e["newText"] for e in edits} == {"c"}
    with pytest.raises(RuntimeError, match="only blobs and variables"):
        editor.at("rename", 0, 2, newName="c")
    symbols = editor.ask("textDocument/documentSymbol", {"textDocument": {"uri": editor.uri}})
    assert [(s["name"], s.get("detail")) for s in symbols] == [
        ("name", '"LeNet"'), ("data", "Input"), ("conv1", "Convolution"), ("relu1", "ReLU"), ("ip", "InnerProduct")]
    folds = editor.ask("textDocument/foldingRange", {"textDocument": {"uri": editor.uri}})
    assert {"startLine": 7, "endLine": 17} in folds


def test_variables_and_includes(editor, tmp_path):
    (tmp_path / "a block.prototxt").write_text("")
    (tmp_path / "block.prototxt").write_text(
        'layer { name: $name type: "ReLU" bottom: "x" top: "x" relu_param { negative_slop: 1 } }\n')
    text = ('$width ?= 4\nlayer { name: "in" type: "Input" top: "x" input_param { shape { dim: 1 dim: $width } } }\n'
            'include: "block.prototxt" { name: "a" }\n')
    editor.open(text)
    [(place, message)] = editor.mistakes()
    assert place.startswith("3:") and "negative_slop" in message
    references = editor.at("references", 0, 3, context={})
    assert [r["range"]["start"]["line"] for r in references] == [0, 1]
    assert editor.at("definition", 2, 12)["uri"].endswith("/block.prototxt")
    editor.open('include: "a block.prototxt"\n')
    assert editor.at("definition", 0, 12)["uri"] == (tmp_path / "a block.prototxt").as_uri()
    # Of a file that others include only names are judged.
    editor.open((tmp_path / "block.prototxt").read_text(), "file://" + str(tmp_path / "block.prototxt"))
    assert [place for place, _ in editor.mistakes()] == ["1:68"]


def test_formats(editor):
    loose = LENET.replace("  ", "")
    editor.open(loose)
    params = {"textDocument": {"uri": editor.uri}, "options": {"tabSize": 2, "insertSpaces": True}}
    [edit] = editor.ask("textDocument/formatting", params)
    assert edit["newText"] == LENET
    editor.change(0, len(loose), "layer {")
    with pytest.raises(RuntimeError, match="not closed"):
        editor.ask("textDocument/formatting", params)


def test_positions_are_in_utf16(editor):
    editor.open('name: "\u00e4\U0001F600" nme: 1\n')
    assert [place for place, _ in editor.mistakes()] == ["1:13"]


def test_models_have_no_mistakes(editor):
    """Every net and solver here, with the files around it."""
    wrong = {}
    for path in sorted((ROOT / "models").rglob("*.prototxt")):
        editor.open(path.read_text(), path.as_uri())
        found = editor.mistakes()
        if found:
            wrong[str(path.relative_to(ROOT))] = found
        editor.tell("textDocument/didClose", {"textDocument": {"uri": editor.uri}})
    assert wrong == {}


def test_survives_nonsense(editor):
    for body in (b"{", b"[]", b'"x"', b'{"method": 3}', b'{"id": 1, "method": "textDocument/hover", "params": {}}',
                 b'{"id": 2, "method": "no/such"}', b'{"method": "textDocument/didChange", "params": {"textDocument": 3}}'):
        editor.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    editor.process.stdin.flush()
    editor.open(LENET)
    assert editor.mistakes() == []
