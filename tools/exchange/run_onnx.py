"""Runs an ONNX model, or a Caffe net, in every runtime that this Python has: `python3 - FOLDER`.

FOLDER/job.tsv: lines "model", PATH; "input", NAME, EXTENTS ("2,3"); "output", NAME; "draws", COUNT. Of a Caffe net also
"weights", PATH; and behind each output's NAME the layer that makes it. Of an ONNX model also, in its order,
"model_input", NAME, TYPE (ONNX's number) and "model_output", NAME. In all, tabs, line breaks and \\ are escaped with \\.
FOLDER/inputs: floats, all inputs of the first draw, then of the next.
Writes FOLDER/MODULE, the outputs in the same order, each as its size (int64) and floats, and prints
RUNTIME, MODULE, VERSION, and why it failed or "".
"""
import importlib
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy


class Job:
    def __init__(self, folder):
        self.folder = folder
        self.draws, self.model, self.weights = 1, "", ""
        self.shapes = {}  # of inputs
        self.outputs, self.makers = [], []
        self.model_inputs, self.model_outputs = {}, []
        for line in (folder / "job.tsv").read_bytes().decode(errors="surrogateescape").split("\n")[:-1]:
            kind, name, *more = [unescaped(field) for field in line.split("\t")]
            if kind == "draws":
                self.draws = int(name)
            elif kind == "model":
                self.model = name
            elif kind == "weights":
                self.weights = name
            elif kind == "output":
                self.outputs.append(name)
                self.makers += more
            elif kind == "model_input":
                self.model_inputs[name] = int(more[0])
            elif kind == "model_output":
                self.model_outputs.append(name)
            else:
                self.shapes[name] = [int(extent) for extent in more[0].split(",") if extent]

    def inputs(self):
        """The inputs of each draw by name."""
        values = numpy.fromfile(self.folder / "inputs", numpy.float32)
        for _ in range(self.draws):
            inputs = {}
            for name, shape in self.shapes.items():
                count = int(numpy.prod(shape))
                inputs[name] = values[:count].reshape(shape)
                values = values[count:]
            yield inputs


def unescaped(field):
    return re.sub(r"\\(.)", lambda found: {"t": "\t", "n": "\n", "r": "\r"}.get(found[1], found[1]), field)


def with_onnxruntime(job):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(job.model, options, providers=["CPUExecutionProvider"])
    types = {value.name: value.type[7:-1] for value in session.get_inputs()}
    names = {"float": "float32", "double": "float64"}

    def run(inputs):
        return session.run(job.outputs, {name: values.astype(names.get(types[name], types[name]))
                                     for name, values in inputs.items() if name in types})

    return run


def with_openvino(job):
    import openvino

    core = openvino.Core()
    model = core.compile_model(core.read_model(job.model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    places = {name: i for i, output in enumerate(model.outputs) for name in output.names}
    types = {name: value.element_type.to_dtype() for value in model.inputs for name in value.names}

    def run(inputs):
        result = list(model({name: values.astype(types[name]) for name, values in inputs.items()
                             if name in types}).values())
        return [result[places[name]] for name in job.outputs]

    return run


def with_opencv(job):
    import cv2

    net = cv2.dnn.readNetFromONNX(job.model)

    def run(inputs):
        for name, values in inputs.items():
            net.setInput(values, name)
        return net.forward(job.outputs)

    return run


def caffe_with_opencv(job):
    import cv2

    net = cv2.dnn.readNetFromCaffe(job.model, job.weights)
    net.enableWinograd(False)  # which rounds more
    known = net.getLayerNames()
    # Some layers are called by their top there.
    names = [layer if layer in known else blob for blob, layer in zip(job.outputs, job.makers)]

    def run(inputs):
        for name, values in inputs.items():
            net.setInput(values, name)
        return net.forward(names)

    return run


def loaded_by_ncnn(param, weights):
    """The net in ncnn, with float32 throughout."""
    import ncnn

    types = {line.split()[0] for line in param.read_text().splitlines()[2:]}
    unknown = sorted(name for name in types if ncnn.layer_to_index(name) < 0)
    if unknown:
        raise RuntimeError(f"ncnn has no layer {', '.join(unknown)}")
    net = ncnn.Net()
    for option in dir(net.opt):
        if "fp16" in option or "bf16" in option or "winograd" in option or option == "use_vulkan_compute":
            setattr(net.opt, option, False)
    if net.load_param(str(param)) or net.load_model(str(weights)):
        raise RuntimeError("ncnn cannot load the converted model")
    return net


def run_by_ncnn(net, inputs, outputs):
    """inputs: blob, values, axis of the batch (233: none); outputs: blob, that axis."""
    import ncnn

    extractor = net.create_extractor()
    extractor.set_light_mode(False)  # it keeps every blob
    for blob, values, axis in inputs:
        extractor.input(blob, ncnn.Mat(numpy.ascontiguousarray(values), batch_index=axis).clone())
    results = []
    for blob, axis in outputs:
        code, result = extractor.extract(blob)
        if code or not result.total():
            raise RuntimeError(f"ncnn cannot compute {blob}")
        results.append(numpy.array(result.numpy(batch_index=axis)))
    return results


def pnnx_program():
    """pnnx of this Python, without importing it: that needs PyTorch, the program does not."""
    package = importlib.util.find_spec("pnnx")
    inside = [shutil.which("pnnx", path=folder) for folder in package.submodule_search_locations] if package else []
    return next(filter(None, inside), shutil.which("pnnx"))


def with_ncnn(job):
    folder = job.folder / "pnnx"
    folder.mkdir()
    source = pathlib.Path(job.model)
    for beside in source.parent.iterdir():  # pnnx writes beside the model; weights may be in another file
        (folder / beside.name).symlink_to(beside)
    types = {1: "f32", 2: "u8", 6: "i32", 7: "i64", 11: "f64"}
    shapes = ",".join(f"{job.shapes[name]}{types[kind]}".replace(" ", "") for name, kind in job.model_inputs.items())
    files = {key: folder / f"crema.{key}" for key in ("pnnxparam", "pnnxbin", "pnnxpy", "pnnxonnx", "ncnnparam", "ncnnbin",
                                                      "ncnnpy")}
    done = subprocess.run([pnnx_program(), folder / source.name, f"inputshape={shapes}", "fp16=0",
                           *(f"{key}={path}" for key, path in files.items())], capture_output=True, text=True)
    if done.returncode or not files["ncnnparam"].exists():
        end = f"crashes with signal {-done.returncode}" if done.returncode < 0 else f"ends with {done.returncode}"
        said = [line.strip() for line in (done.stderr + done.stdout).splitlines()
                if re.search(r"\b(error|failed)\b", line, re.I)]
        raise RuntimeError(": ".join([f"pnnx {end}", *said[-1:]]))
    net = loaded_by_ncnn(files["ncnnparam"], files["ncnnbin"])
    # pnnx numbers inputs and outputs, and decides which axis is the batch.
    example = files["ncnnpy"].read_text()
    axes = {f"in{i}": int(axis) for i, axis in re.findall(r"in(\d+)\.numpy\(\), batch_index=(\d+)", example)}
    axes |= {f"out{i}": int(axis) for i, axis in re.findall(r"out(\d+)\.numpy\(batch_index=(\d+)\)", example)}
    places = {name: f"out{i}" for i, name in enumerate(job.model_outputs)}
    known = set(net.input_names())

    def run(inputs):
        given = []
        for i, (name, kind) in enumerate(job.model_inputs.items()):
            if f"in{i}" in known:
                dtype = {2: "uint8", 6: "int32", 7: "int32"}.get(kind, "float32")
                given.append((f"in{i}", inputs[name].astype(dtype), axes[f"in{i}"]))
        return run_by_ncnn(net, given, [(places[name], axes[places[name]]) for name in job.outputs])

    return run


def caffe_with_ncnn(job):
    param, weights = job.folder / "caffe.param", job.folder / "caffe.bin"
    done = subprocess.run(["caffe2ncnn", job.model, job.weights, param, weights], capture_output=True, text=True)
    if done.returncode or not param.exists():
        raise RuntimeError(f"caffe2ncnn ends with {done.returncode}: {(done.stderr.splitlines() or [''])[-1]}")
    net = loaded_by_ncnn(param, weights)
    types, tops = {}, {}  # the first top of each layer: blobs that layers change in place have other names there
    for line in param.read_text().splitlines()[2:]:
        kind, layer, bottoms, _, *blobs = line.split()
        types[layer], tops[layer] = kind, "".join(blobs[int(bottoms):][:1])

    def run(inputs):
        given = [(name, values, 0) for name, values in inputs.items() if name in net.input_names()]
        results = run_by_ncnn(net, given, [(tops[layer], 0) for layer in job.makers])
        # Its detections do not name their image; a batch has one.
        return [numpy.insert(result, 0, 0, -1) if types[layer] == "DetectionOutput" else result
                for layer, result in zip(job.makers, results)]

    return run


# Title, module, function that starts it, and what it needs beside the module.
CAFFE_RUNTIMES = [("OpenCV", "cv2", caffe_with_opencv, None),
                  ("ncnn", "ncnn", caffe_with_ncnn, lambda: shutil.which("caffe2ncnn"))]
RUNTIMES = [("ONNX Runtime", "onnxruntime", with_onnxruntime, None), ("OpenVINO", "openvino", with_openvino, None),
            ("OpenCV", "cv2", with_opencv, None), ("ncnn", "ncnn", with_ncnn, pnnx_program)]


def run_in(job, module, start):
    """Writes what a runtime computes; returns why it cannot, or ""."""
    try:
        run = start(job)
        with open(job.folder / module, "wb") as out:
            for inputs in job.inputs():
                for result in run(inputs):
                    out.write(numpy.int64(result.size).tobytes())
                    out.write(numpy.ascontiguousarray(result, numpy.float32).tobytes())
    except Exception as error:  # whatever a runtime throws is its answer
        return " ".join(f"{type(error).__name__}: {error}".split())[:500]
    return ""


def answer(job, title, module, start, needed):
    """Prints the line of a runtime, if it is there."""
    try:
        version = importlib.import_module(module).__version__.split("-")[0]
    except ImportError:
        return
    # OpenCV 5 does not read Caffe's files.
    if (needed and not needed()) or (job.weights and module == "cv2" and version.split(".")[0] != "4"):
        return
    print(title, module, version, run_in(job, module, start), sep="\t", flush=True)


def main():
    job = Job(pathlib.Path(sys.argv[1]))
    for runtime in CAFFE_RUNTIMES if job.weights else RUNTIMES:
        child = os.fork()  # one that crashes does not end the others
        if child == 0:
            try:
                answer(job, *runtime)
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            print(*runtime[:2], "", f"it crashes with signal {os.WTERMSIG(status)}", sep="\t", flush=True)


main()
