"""Runs an ONNX model, or a Caffe net, in every runtime that this Python has: `python3 - FOLDER`.

FOLDER/job.tsv: lines "model", PATH; "input", NAME, EXTENTS ("2,3"); "output", NAME; "draws", COUNT. Of a Caffe net also
"weights", PATH; and behind each output's NAME the layer that makes it. In all, tabs, line breaks and \\ are escaped with \\.
FOLDER/inputs: floats, all inputs of the first draw, then of the next.
Writes FOLDER/MODULE, the outputs in the same order, each as its size (int64) and floats, and prints
RUNTIME, MODULE, VERSION, and why it failed or "".
"""
import importlib
import pathlib
import re
import sys

import numpy


def with_onnxruntime(path, outputs):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    types = {value.name: value.type[7:-1] for value in session.get_inputs()}
    names = {"float": "float32", "double": "float64"}

    def run(inputs):
        return session.run(outputs, {name: values.astype(names.get(types[name], types[name]))
                                     for name, values in inputs.items() if name in types})

    return run


def with_openvino(path, outputs):
    import openvino

    core = openvino.Core()
    model = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    places = {name: i for i, output in enumerate(model.outputs) for name in output.names}
    types = {name: value.element_type.to_dtype() for value in model.inputs for name in value.names}

    def run(inputs):
        result = list(model({name: values.astype(types[name]) for name, values in inputs.items()
                             if name in types}).values())
        return [result[places[name]] for name in outputs]

    return run


def with_opencv(path, outputs):
    import cv2

    net = cv2.dnn.readNetFromONNX(path)

    def run(inputs):
        for name, values in inputs.items():
            net.setInput(values, name)
        return net.forward(outputs)

    return run


def caffe_with_opencv(path, outputs):
    import cv2

    path, weights = path
    net = cv2.dnn.readNetFromCaffe(path, weights)
    net.enableWinograd(False)  # which rounds more
    known = net.getLayerNames()
    # Some layers are called by their top there.
    names = [layer if layer in known else blob for blob, layer in outputs]

    def run(inputs):
        for name, values in inputs.items():
            net.setInput(values, name)
        return net.forward(names)

    return run


CAFFE_RUNTIMES = [("OpenCV", "cv2", caffe_with_opencv)]
RUNTIMES = [("ONNX Runtime", "onnxruntime", with_onnxruntime), ("OpenVINO", "openvino", with_openvino),
            ("OpenCV", "cv2", with_opencv)]


def unescaped(field):
    return re.sub(r"\\(.)", lambda found: {"t": "\t", "n": "\n", "r": "\r"}.get(found[1], found[1]), field)


def main():
    folder = pathlib.Path(sys.argv[1])
    shapes, outputs, draws, model, weights = {}, [], 1, "", ""
    for line in (folder / "job.tsv").read_bytes().decode(errors="surrogateescape").split("\n")[:-1]:
        kind, name, *extents = [unescaped(field) for field in line.split("\t")]
        if kind == "draws":
            draws = int(name)
        elif kind == "model":
            model = name
        elif kind == "weights":
            weights = name
        elif kind == "output":
            outputs.append((name, extents[0]) if extents else name)
        else:
            shapes[name] = [int(extent) for extent in extents[0].split(",") if extent]
    for title, module, start in CAFFE_RUNTIMES if weights else RUNTIMES:
        try:
            version = importlib.import_module(module).__version__.split("-")[0]
        except ImportError:
            continue
        if weights and version.split(".")[0] != "4":  # OpenCV 5 does not read Caffe's files
            continue
        values = numpy.fromfile(folder / "inputs", numpy.float32)
        problem = ""
        try:
            run = start((model, weights) if weights else model, outputs)
            with open(folder / module, "wb") as out:
                for _ in range(draws):
                    inputs = {}
                    for name, shape in shapes.items():
                        count = int(numpy.prod(shape))
                        inputs[name] = values[:count].reshape(shape)
                        values = values[count:]
                    for result in run(inputs):
                        out.write(numpy.int64(result.size).tobytes())
                        out.write(numpy.ascontiguousarray(result, numpy.float32).tobytes())
        except Exception as error:  # whatever a runtime throws is its answer
            problem = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        print(title, module, version, problem, sep="\t", flush=True)


main()
