"""crema lsp, driven as an editor drives it."""
import pathlib
import random
import re

import pytest
from lsp_editor import Editor, apply, rows
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

TRAINED = LENET.replace("""  type: "Input"
  top: "data"
  input_param { shape { dim: 2 dim: 1 dim: 28 dim: 28 } }
""", """  type: "DummyData"
  top: "data"
  top: "label"
  dummy_data_param { shape { dim: 2 dim: 1 dim: 28 dim: 28 } shape { dim: 2 } }
""") + 'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }\n'


@pytest.fixture(name="editor")
def make_editor(tmp_path):
    editor = Editor(str(tmp_path))
    yield editor
    if editor.process.poll() is None:
        assert editor.close() == 0


SOLVER = """net: "net.prototxt"
test_iter: 100
test_interval: 500
base_lr: 0.01
momentum: 0.9
lr_policy: "step"
gamma: 0.1
stepsize: 1000
max_iter: 10000
display: 100
snapshot_prefix: "lenet"
type: "SGD"
"""


def test_says_what_is_wrong(editor, tmp_path):
    """Each mistake of lsp_mistakes.tsv, and its quick fix, after which it is gone."""
    (tmp_path / "net.prototxt").write_text(TRAINED)
    wrong = []
    for base, old, new, where, message, fix in rows("lsp_mistakes.tsv"):
        whole, new = {"net": LENET, "solver": SOLVER}[base], new.replace("(removed)", "")
        editor.open(whole, (tmp_path / f"edited_{base}.prototxt").as_uri())
        before = editor.look()
        begin = whole.index(old)
        editor.change(begin, begin + len(old), new)
        found = editor.look()
        message = message.replace("FOLDER", str(tmp_path))[:60].rstrip()
        is_said = any(place == where and text.startswith(message[:len(text)]) for place, text in found)
        edits = [action["edit"]["changes"][editor.uri] for action in editor.fixes()]
        fixes = [edit["newText"] for [edit] in edits]
        if before or not is_said or fixes != ([] if fix == "-" else [fix.replace("(removed)", "")]):
            wrong.append((new, before, found, fixes))
        if edits:
            editor.open(apply(editor.text, edits[0]))
            wrong += [(new, "is not fixed", left) for left in editor.look() if left in found]
    assert not wrong


def test_says_several_mistakes_at_once(editor):
    """A layer that is wrong hides no other; what only follows from it is not said."""
    editor.open(LENET.replace("kernel_size: 5", "kernel_size: -5") + """
layer { name: "a" type: "ReLU" bottom: "ip" top: "a" }
layer { name: "b" type: "ReLU" botom: "data" top: "b" }
layer { name: "c" type: "ReLU" bottom: "b" top: "c" }
layer { name: "d" type: "InnerProduct" bottom: "data" top: "d" }
layer { name: "e" type: "ReLU" bottom: "dta" top: "e" }
layer { name: "f" type: "ReLU" bottom: "data" top: "f" }
""")
    assert sorted(place for place, _ in editor.look()) == ["15:18", "29:32", "31:1", "32:40"]
    assert ("33:55", "2x1x28x28") in editor.hints()
    editor.open(TRAINED.replace("Convolution", "Convolutoin", 1))  # which reads the data
    items = editor.ask("textDocument/diagnostic", {"textDocument": {"uri": editor.uri}})["items"]
    assert [found["message"][:22] for found in items] == ["there is no layer type"]


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


def test_hints_behind_tops_layers_and_variables(editor):
    editor.open(LENET)
    assert editor.hints() == [
        ("5:14", "2x1x28x28"), ("8:8", "520 parameters, 576,000 multiply-adds"), ("12:15", "2x20x24x24"),
        ("19:64", "2x20x24x24"), ("20:8", "115,210 parameters, 230,400 multiply-adds"), ("24:12", "2x10")]
    editor.change(len(LENET), len(LENET), "lay")
    assert ("24:12", "2x10") in editor.hints() and [place for place, _ in editor.look()] == ["27:1"]
    editor.open(LENET)
    begin = LENET.index("name: \"relu1")
    editor.change(begin, begin, "nme: ")  # those of other layers stay
    assert ("12:15", "2x20x24x24") in editor.hints()
    editor.open('$w ?= 4\n$n = 2 * $w\nlayer { name: "in" type: "Input" top: "x" input_param { shape { dim: 1 dim: $n } } }\n'
                'repeat $i = 1..3 { layer { name: "a$i" type: "ReLU" bottom: "x" top: "x" } }\n')
    assert editor.hints() == [("2:12", "= 8"), ("3:42", "1x8"), ("3:79", "= 8"), ("4:39", '= "a1", "a2", "a3"'), ("4:73", "1x8")]


def test_python_layers_are_left_out(editor):
    editor.open(LENET + 'layer { name: "p" type: "Python" bottom: "ip" top: "p" python_param { module: "m" layer: "L" } }\n'
                'layer { name: "r" type: "ReLU" bottom: "p" top: "r" }\n'
                'layer { name: "s" type: "ReLU" bottom: "ip" top: "s" }\n')
    assert editor.look() == [] and editor.hints()[-1] == ("29:53", "2x10")


def test_completes(editor, tmp_path):
    (tmp_path / "digits_lmdb").mkdir()
    for name in ("block.prototxt", "list.txt", "mean.binaryproto", "weights.caffemodel", "digits_lmdb/data.mdb"):
        (tmp_path / name).write_text("")
    wrong = []
    for text, there, absent in rows("lsp_completions.tsv"):
        at = text.index("|")
        editor.open(text.replace("|", "", 1))
        line, column = text[:at].count("\n"), at - (text.rfind("\n", 0, at) + 1)
        found = {item["label"] for item in editor.at("completion", line, column)}
        missing = set(filter(None, there.split(","))) - found
        extra = set(filter(None, absent.split(","))) & found
        if missing or extra:
            wrong.append((text, missing, extra))
    assert not wrong


@pytest.mark.parametrize("name, text, first", [
    ("net", "|", ["layer", "name", "conv", "conv-relu"]),
    ("my_solver", "|", ["net", "base_lr", "lr_policy", "max_iter"]),
    ("net", 'layer {\n  type: "Pooling"\n  |\n}', ["name", "bottom", "top", "include", "param", "pooling_param"]),
    ("net", "layer { data_param { | } }", ["source", "backend", "batch_size"])])
def test_completes_what_is_likely_first(editor, tmp_path, name, text, first):
    at = text.index("|")
    editor.open(text.replace("|", ""), (tmp_path / f"{name}.prototxt").as_uri())
    items = editor.at("completion", text[:at].count("\n"), at - (text.rfind("\n", 0, at) + 1))
    assert [item["label"] for item in items][:len(first)] == first
    assert [item["sortText"] for item in items] == sorted(item["sortText"] for item in items)
    assert items[0]["detail"] and any("documentation" in item for item in items)


@pytest.mark.parametrize("has_snippets", [False, True])
def test_marks_snippets_for_editors_that_know_them(tmp_path, has_snippets):
    """Others would write $0 into the file."""
    support = {"textDocument": {"completion": {"completionItem": {"snippetSupport": has_snippets}}}}
    editor = Editor(str(tmp_path), capabilities=support)
    editor.open("")
    texts = [item["insertText"] for item in editor.at("completion", 0, 0)]
    assert any("$" in text for text in texts) == has_snippets
    assert any("layer {\n  name: \"conv1\"\n" in text for text in texts) != has_snippets
    assert editor.close() == 0


def test_snippets_read_the_data_above(editor):
    rows = [("", "data"), (TRAINED[:TRAINED.index("layer", 30)], "data"), (LENET, "ip"), (TRAINED, "ip")]
    for text, blob in rows:
        editor.open(text)
        items = {item["label"]: item for item in editor.at("completion", text.count("\n"), 0)}
        assert f'bottom: "{blob}"' in items["conv"]["insertText"], text


def test_words_of_other_frameworks_alone(editor):
    editor.open("epochs: 10\nlr: 0.1\n")
    assert [place for place, _ in editor.look()] == ["1:1", "2:1"]
    editor.open('Layer { Name: "x" Type: "ReLU" }')
    assert editor.look()[0][1] == 'NetParameter has no field "Layer" (did you mean "layer"?)'


def test_says_that_nothing_is_learned(editor):
    text = re.sub(r"layer \{ name: \"loss\".*\n", "", TRAINED)
    editor.open(text)
    assert "nothing will be learned; for classes add layer" in editor.look()[0][1]
    editor.open(LENET)
    assert editor.look() == []


def test_snippets_are_right(editor, tmp_path):
    (tmp_path / "train_val.prototxt").write_text(TRAINED)
    editor.open("")
    snippets = [item for item in editor.at("completion", 0, 0) if item["kind"] == 15]
    assert len(snippets) >= 10
    data = 'layer { name: "i" type: "Input" top: "data" top: "label" input_param { shape { dim: [2, 3, 32, 32] } shape { dim: 2 } } }\n'
    for item in snippets:
        text = re.sub(r"\$\{\d+:([^}]*)\}", r"\1", item["insertText"])
        with_data = "solver" in item["label"] or "Input" in text or "Data" in text
        editor.open(text if with_data else data + text)
        assert editor.look() == [], item["label"]
        params = {"textDocument": {"uri": editor.uri}, "options": {}}
        assert editor.ask("textDocument/formatting", params) == []


def test_explains_and_finds(editor):
    editor.open(LENET)
    assert "num_output" in editor.at("hover", 13, 6)["contents"]["value"]
    assert "filter slides" in editor.at("hover", 9, 12)["contents"]["value"]
    assert "20x1x5x5" in editor.at("hover", 9, 12)["contents"]["value"]
    assert editor.at("hover", 0, 8) is None
    blob = editor.at("hover", 11, 9)["contents"]["value"]
    assert "2x20x24x24, 90.0 KiB" in blob and "written by `conv1`" in blob and "read by `relu1`" in blob
    assert "`conv1`, `relu1` run as one step" in blob
    assert "written by `relu1`" in editor.at("hover", 22, 13)["contents"]["value"]
    assert editor.at("definition", 22, 13)["range"]["start"] == {"line": 18, "character": 57}
    references = editor.at("references", 11, 9, context={"includeDeclaration": True})
    assert [r["range"]["start"]["line"] for r in references] == [11, 18, 18, 22]
    edits = editor.at("rename", 11, 9, newName="c")["changes"][editor.uri]
    assert len(edits) == 4 and {e["newText"] for e in edits} == {"c"}
    with pytest.raises(RuntimeError, match="only blobs, layers"):
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


def test_rate_as_numbers(editor, tmp_path):
    (tmp_path / "net.prototxt").write_text(TRAINED)
    editor.open(SOLVER.replace('"step"', '"multistep"').replace("stepsize: 1000", "stepvalue: [3000, 6000] warmup_iter: 10"))
    assert editor.look() == []
    for line, column in ((3, 2), (3, 10), (5, 14)):
        text = editor.at("hover", line, column)["contents"]["value"]
        assert "| 5 | 0.005 |" in text and "| 2,999 | 0.01 |" in text and "| 3,000 | 0.001 |" in text
        assert "| 9,999 | 0.0001 |" in text


def test_colours_words(editor):
    legend = editor.legend
    editor.open('# what\n$n = 3\nlayer { name: "a_${n}" type: "ReLU" top: "x" relu_param { negative_slope: $n engine: CAFFE } }\n'
                'repeat 2 { no_field: 1 }\n')
    data = editor.ask("textDocument/semanticTokens/full", {"textDocument": {"uri": editor.uri}})["data"]
    words, line, column = [], 0, 0
    for i in range(0, len(data), 5):
        column = data[i + 1] + (column if data[i] == 0 else 0)
        line += data[i]
        words.append((editor.text.split("\n")[line][column:column + data[i + 2]], legend["tokenTypes"][data[i + 3]]))
    assert words == [
        ("# what", "comment"), ("$n", "variable"), ("3", "number"), ("layer", "property"), ("name", "property"), ('"a_${', "string"),
        ("n", "variable"), ('}"', "string"), ("type", "property"), ('"ReLU"', "type"), ("top", "property"), ('"x"', "parameter"),
        ("relu_param", "property"), ("negative_slope", "property"), ("$n", "variable"), ("engine", "property"), ("CAFFE", "enumMember"),
        ("repeat", "keyword"), ("2", "number"), ("1", "number")]


def test_files_that_include_each_other(editor, tmp_path):
    """New names in all files that share them; files that are changed but not saved."""
    block = 'layer { name: "$name" type: "ReLU" bottom: "x" top: "$name" }\n'
    net = ('layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 1 dim: 4 } } }\n'
           'include: "block.prototxt" { name: "a" }\n')
    other = 'layer { name: "y" type: "Input" top: "x" }\ninclude: "sub/../block.prototxt" { name: "b" }\n'
    (tmp_path / "sub").mkdir()
    for name, text in (("block", block), ("net", net), ("other", other), ("alone", net.split("include")[0])):
        (tmp_path / f"{name}.prototxt").write_text(text)
    editor.open(net)
    assert editor.look() == []

    def renamed(line, column, name):
        changes = editor.at("rename", line, column, newName=name)["changes"]
        texts = {"block": block, "net": net, "other": other}
        return {uri.split("/")[-1][:-9]: apply(texts[uri.split("/")[-1][:-9]], edits) for uri, edits in changes.items()}
    assert renamed(0, net.index('"x"') + 1, "z") == {"net": net.replace('"x"', '"z"'), "block": block.replace('"x"', '"z"'),
                                   "other": other.replace('"x"', '"z"')}
    assert renamed(1, 28, "title") == {"net": net.replace("name: \"a\"", "title: \"a\""), "block": block.replace("$name", "$title"),
                                       "other": other.replace("name: \"b\"", "title: \"b\"")}
    for name in ("$name", "", "a\0b", "a\rb", 'a"b'):
        with pytest.raises(RuntimeError, match="is no name of a blob"):
            editor.at("rename", 0, net.index('"x"') + 1, newName=name)
    references = editor.at("references", 0, net.index('"x"') + 1, context={})
    assert sorted(r["uri"].split("/")[-1] for r in references) == ["block.prototxt", "net.prototxt", "other.prototxt"]
    # The block is changed in the editor only.
    uri = editor.uri
    editor.open(block.replace("ReLU", "Relu"), (tmp_path / "block.prototxt").as_uri())
    assert editor.at("definition", 0, block.index('"x"') + 1)["uri"].endswith(("net.prototxt", "other.prototxt"))
    editor.uri = uri
    [(where, text)] = editor.look()
    assert where.startswith("2:") and "Relu" in text
    editor.tell("textDocument/didClose", {"textDocument": {"uri": (tmp_path / "block.prototxt").as_uri()}})
    assert editor.look() == []


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


def test_says_only_what_is_wrong(editor, tmp_path):
    """Files of one statement, and of includes alone."""
    (tmp_path / "in.prototxt").write_text('layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 1 dim: 4 } } }\n')
    (tmp_path / "relu.prototxt").write_text('layer { name: "r" type: "ReLU" bottom: "y" top: "y" }\n')
    (tmp_path / "part.prototxt").write_text('bottom: "y" top: "z"\n')
    (tmp_path / "outer.prototxt").write_text('include: "in.prototxt"\n')
    wrong = []
    for text, expected in (
            ('layer { name: "a" type: "Relu" top: "x" }\n', ["1:25"]), ('layer { name: "a" type: "ReLU" nme: 1 }\n', ["1:32"]),
            ('layer { name: "a" type: "LRN" lrn_param { alpha: "a" } }\n', ["1:50"]), ("layers { type: RELUU }\n", ["1:16"]),
            ("layer", ["1:1"]), ("layer { }\n", ["1:1"]), ('include: "in.prototxt"\n', []), ('include: "part.prototxt"\n', []),
            ('include: "nothing.prototxt"\n', ["1:10"]), ('include: "outer.prototxt"\ninclude: "relu.prototxt"\n', ["2:1"])):
        editor.open(text)
        found = [place for place, _ in editor.look()]
        wrong += [(text, found)] if found != expected else []
    assert not wrong
    editor.open(LENET.replace('bottom: "conv1" top: "conv1"', 'bottom: "cnv1" top: "cnv1"'))  # in place
    assert [place for place, _ in editor.look()] == ["19:44"]
    # That conv1 is read by no layer only follows from the mistake.
    editor.open(TRAINED.replace("num_output: 10", "num_output: 10 engine: LOOP"))
    assert [place for place, _ in editor.look()] == ["26:48"]
    editor.open('layers { layer { name: "d" type: "data" source: "s" batchsize: 1 } top: "x" }\n'
                'layers { layer { name: "l" type: "local" } bottom: "x" top: "y" }\n'
                'layers { layer { name: "r" type: "relu" } bottom: "y" top: "y" }\n')
    assert [place for place, message in editor.look() if "V0" not in message] == ["2:28"]
    editor.open(LENET.replace("    num_output: 20\n", "<<<<<<< HEAD\n    num_output: 20\n=======\n    num_output: 30\n>>>>>>> a branch\n"))
    assert [(place, message[:16]) for place, message in editor.look()] == [(f"{line}:1", "a merge conflict") for line in (14, 16, 18)]
    editor.open('name: "n"\ninput: "x" input_dim: 1 input_dim: 1 input_dim: 2 input_dim: 2\n'
                'layers { name: "d" type: DATA top: "y" data_param { source: "s" batch_size: 1 mirror: true } }\n')
    assert sorted(place for place, _ in editor.look()) == ["2:1", "3:1"]
    relu = (tmp_path / "relu.prototxt").as_uri()
    editor.open('include: "in.prototxt"\ninclude: "relu.prototxt"\n')
    uri = editor.uri
    editor.open('layer { name: "r" type: "ReLU" bottom: "x" top: "x" }\n', relu)
    editor.uri = uri
    assert editor.look() == []


def test_models_have_no_mistakes(editor):
    """Every net and solver here, with the files around it; in the corpus, what is not needed any more is told."""
    wrong = []
    for path in sorted((ROOT / "models").rglob("*.prototxt")) + sorted((ROOT / "tests/corpus").rglob("*.prototxt")):
        editor.open(path.read_text(), path.as_uri())
        wrong += [(path.name, found) for found in editor.look()
                  if "corpus" not in str(path) or not re.search("has no effect here|says the same|belong into", found[1])]
        editor.tell("textDocument/didClose", {"textDocument": {"uri": editor.uri}})
    assert wrong == []


def test_random_edits(editor, tmp_path):
    """What a server says of files that are edited, one of which the other includes, is what a fresh one says."""
    dice = random.Random(1)
    texts = {"net": LENET + 'include: "block.prototxt" { name: "b" }\n',
             "block": 'layer { name: "$name" type: "ReLU" bottom: "ip" top: "$name" }\n'}
    uris = {name: (tmp_path / f"{name}.prototxt").as_uri() for name in texts}
    fresh = Editor(str(tmp_path))
    for name, text in texts.items():
        editor.open(text, uris[name])
    pieces = ["layer {", "}", '"', "\n", " ", "#", "$name", 'top: "x"', "-1", ": ", "num_output: 4", "Conv", "ip", "5"]
    for _ in range(60):
        name = dice.choice(["net", "net", "block"])
        editor.uri, editor.text = uris[name], texts[name]
        begin = dice.randrange(len(texts[name]) + 1)
        end = min(len(texts[name]), begin + dice.choice([0, 0, 1, 9]))
        editor.change(begin, end, dice.choice(pieces))
        texts[name] = editor.text
        for other, text in texts.items():
            fresh.open(text, uris[other])
        for other, uri in uris.items():
            editor.uri = fresh.uri = uri
            assert editor.look() == fresh.look(), texts
            assert editor.hints() == fresh.hints() or editor.look(), texts
            line = dice.randrange(editor.text.count("\n") + 1)
            for method in ("hover", "definition", "completion"):
                assert editor.at(method, line, dice.randrange(40)) or True  # it survives
            try:
                editor.at("rename", line, dice.randrange(40), newName="z")
            except RuntimeError:  # no name, or one that is taken
                pass
    assert fresh.close() == 0


def test_survives_nonsense(editor):
    for body in (b"{", b"[]", b'"x"', b'{"method": 3}', b'{"id": 1, "method": "textDocument/hover", "params": {}}',
                 b'{"id": 2, "method": "no/such"}', b'{"method": "textDocument/didChange", "params": {"textDocument": 3}}'):
        editor.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    editor.process.stdin.flush()
    editor.open(LENET)
    assert editor.mistakes() == []
