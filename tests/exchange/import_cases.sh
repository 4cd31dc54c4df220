#!/usr/bin/env bash
# ONNX's own tests of operators, which its package generates, through the import; those that it computes
# of constants also with constants only.
#   import_cases.sh BUILD PYTHON [-v]
set -euo pipefail
build=$1 python=$2
"$python" -c 'import onnx' 2>/dev/null || { echo "skipped: $python has no onnx (data_scripts/setup.sh --tests)"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# What the import computes of constants.
folds=$(grep -rhoP '^FOLD_OPERATOR\(\K\w+' "$(dirname "$0")/../../src/exchange/onnx/operators")
"$python" - "$folder" $folds <<'PYTHON'
"""Writes the cases of operators that opset 21 has, with models and tensors."""
import pathlib
import sys
import warnings

import numpy
import onnx
from onnx import helper, numpy_helper

warnings.simplefilter("ignore")
from onnx.backend.test.case.node import collect_testcases



def write(name, model, inputs, outputs):
    folder = pathlib.Path(sys.argv[1]) / name
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for kind, values in (("input", inputs), ("output", outputs)):
        for i, value in enumerate(values):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(value).SerializeToString())


def on_constants(model, inputs, output):
    """The same operator on constants, added to an input."""
    folded = onnx.ModelProto()
    folded.CopyFrom(model)
    graph = folded.graph
    for value, array in zip(graph.input, inputs):
        graph.initializer.append(numpy_helper.from_array(array, value.name))
    result = graph.output[0].name
    del graph.input[:], graph.output[:]
    for values, name in ((graph.input, "added_to"), (graph.output, "sum")):
        values.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, output.shape))
    graph.node.append(helper.make_node("Add", ["added_to", result], ["sum"]))
    added_to = numpy.linspace(-1, 1, output.size, dtype=numpy.float32).reshape(output.shape)
    return folded, [added_to], [added_to + output]


oldest = {}
for schema in onnx.defs.get_all_schemas_with_history():
    oldest[schema.name] = min(oldest.get(schema.name, 99), schema.since_version)
for case in collect_testcases(""):
    model = case.model
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    if set(opsets) - {"", "ai.onnx"}:
        continue
    inputs, outputs = case.data_sets[0]
    arrays = [*inputs, *outputs]
    if not all(isinstance(value, numpy.ndarray) and value.dtype.kind in "fiub" for value in arrays):
        continue
    if any(value.dtype == numpy.float16 for value in arrays):  # their results have three digits
        continue
    # Each case has the first opset of its operator. Of those that opset 21 does not have, what it has
    # of the operator means the same.
    if any(oldest.get(node.op_type, 99) > 21 for node in model.graph.node):
        continue
    for entry in model.opset_import:
        entry.version = min(max(entry.version, 9), 21)
    write(case.name, model, inputs, outputs)
    nodes = model.graph.node
    if len(nodes) == 1 and nodes[0].op_type in sys.argv[2:] and outputs[0].dtype == numpy.float32:
        write("test_folded_" + case.name[5:], *on_constants(model, inputs, outputs[0]))
PYTHON
"$build/tests/exchange_cases" import_cases "$folder" ${3:-}
