#!/usr/bin/env python3
"""Inference on the CPU: Crema against ONNX Runtime, OpenVINO, ncnn, OpenCV dnn and torch.compile,
which run the same net, exported to ONNX, in turn; and against the same exported to C.

    python3 tests/bench/cpu_inference.py venv build/tools/crema
    --nets squeezenet,vgg16 --batches 1 --rounds 3 --threads 2 choose what is measured
    --peers gcc,clang measures the net exported to C, as these compile it (-O3 -march=native)
    --int8 measures the nets with 8-bit integers (crema quantize), exported as such

Makes the virtual environment if it is not there and installs the peers. Prints a row for each net
and batch: medians of the rounds in ms, and the fastest peer's time divided by Crema's, with the
smallest and the largest ratio of a round. ncnn runs single images only; torch.compile takes the
modules that pnnx writes.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
NETS = {
    "lenet": "models/lenet/digits_train_val.prototxt",
    "cifar10_full": "models/cifar10_full/train_val.prototxt",
    "yolo_tiny": "models/yolo/train_val.prototxt",
    "squeezenet": "models/squeezenet/train_val.prototxt",
    "mobilenet_v2": "models/mobilenet_v2/train_val.prototxt",
    "resnet50": "tests/bench/nets/resnet50.prototxt",
    "vgg16": "tests/bench/nets/vgg16.prototxt",
    "alexnet": "tests/bench/nets/alexnet.prototxt",
    "googlenet": "tests/bench/nets/googlenet.prototxt",
}
# The inputs in training and in use, where they are others than those of -assume default.
INPUTS = {
    "lenet": ("data={0}x1x28x28,label={0}", "data={0}x1x28x28,label={0}"),
    "cifar10_full": ("data={0}x3x32x32,label={0}", "data={0}x3x32x32,label={0}"),
    "yolo_tiny": ("data={0}x3x416x416,label={0}x50", "data={0}x3x416x416,objects=1x1x4x8"),
}
PACKAGES = ["numpy", "onnx", "onnxruntime", "openvino", "ncnn", "pnnx", "opencv-python-headless",
            "torch"]
PEERS = ["onnxruntime", "openvino", "ncnn", "opencv", "torch"]
# Not by default, as its converter, TensorFlow, is large: pip install ai-edge-litert tensorflow onnx
LITERT = "litert"
COMPILERS = ["gcc", "clang"]

# Prints the median of the passes of a net in C.
C_MAIN = """#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "%(name)s.h"
static float weights[%(upper)s_WEIGHTS_SIZE], x[%(upper)s_DATA_SIZE], %(declared)s;
static double times[1000];
static int order(const void *a, const void *b) {
  const double p = *(const double *)a, q = *(const double *)b;
  return (p > q) - (p < q);
}
int main(void) {
  FILE *const file = fopen("%(name)s.bin", "rb");
  if (!file || fread(weights, sizeof weights, 1, file) != 1) return 1;
  for (int i = 0; i < %(upper)s_DATA_SIZE; ++i) x[i] = rand() / (float)RAND_MAX;
  double all = 0;
  int count = -3;
  for (; count < 3 || (count < 1000 && all < %(seconds)s); ++count) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    %(name)s_run(weights, x, %(results)s);
    clock_gettime(CLOCK_MONOTONIC, &b);
    const double ms = (b.tv_sec - a.tv_sec) * 1e3 + (b.tv_nsec - a.tv_nsec) * 1e-6;
    if (count >= 0) times[count] = ms, all += ms / 1e3;
  }
  qsort(times, count, sizeof(double), order);
  printf("ms %%f\\n", times[count / 2]);
  return 0;
}
"""

# Each makes run(), one forward pass. shape, threads and stem (of the model's files) are given.
MAKE = {
    "onnxruntime": """
import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
session = onnxruntime.InferenceSession(stem + ".onnx", options, ["CPUExecutionProvider"])
feed = {session.get_inputs()[0].name: x}
run = lambda: session.run(None, feed)
""",
    "litert": """
import numpy
from ai_edge_litert.interpreter import Interpreter
net = Interpreter(stem + ".tflite", num_threads=threads)
net.allocate_tensors()
index = net.get_input_details()[0]["index"]
image = numpy.ascontiguousarray(x.transpose(0, 2, 3, 1))
def run():
    net.set_tensor(index, image)
    net.invoke()
""",
    "openvino": """
import openvino
model = openvino.Core().compile_model(stem + ".onnx", "CPU", {
    "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
    "INFERENCE_PRECISION_HINT": "f32"})
request = model.create_infer_request()
tensor = openvino.Tensor(x, shared_memory=True)
run = lambda: request.infer([tensor])
""",
    "ncnn": """
import ncnn
net = ncnn.Net()
net.opt.num_threads = threads
net.opt.use_bf16_storage = net.opt.use_fp16_arithmetic = net.opt.use_fp16_storage = False
net.load_param(stem + ".ncnn.param")
net.load_model(stem + ".ncnn.bin")
def run():
    extractor = net.create_extractor()
    extractor.input("in0", ncnn.Mat(x[0]))
    extractor.extract("out0")
""",
    "opencv": """
import cv2
cv2.setNumThreads(threads)
net = cv2.dnn.readNet(stem + ".onnx")
def run():
    net.setInput(x)
    net.forward()
""",
    "torch": """
import importlib.util
import torch
torch.set_num_threads(threads)
spec = importlib.util.spec_from_file_location("model", stem + "_pnnx.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
model = torch.compile(module.Model().eval(), options={"freezing": True})
data = torch.from_numpy(x)
def run():
    with torch.inference_mode():
        model(data)
""",
}
TIME = """
import statistics, sys, time
import numpy as np
stem, threads, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
shape = [int(extent) for extent in sys.argv[4].split("x")]
x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
%s
for _ in range(3):
    run()
times, end = [], time.perf_counter() + seconds
while time.perf_counter() < end or len(times) < 3:
    begin = time.perf_counter()
    run()
    times.append(time.perf_counter() - begin)
print("ms", 1000 * statistics.median(times))
"""


def run(command, folder, threads):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), CREMA_FLAGS="", XDG_CONFIG_HOME=os.devnull)
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False, cwd=folder, env=env)
    return done.returncode, done.stdout + done.stderr


def must(command, folder=ROOT, threads=2):
    code, text = run(command, folder, threads)
    if code != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {code}:\n{text[-2000:]}")
    return text


def set_up(parser, args, names, packages):
    """Checks the (given, known) lists of names and the program, and makes the virtual environment. Returns its
    Python, the program, and the folder for models."""
    python, crema = args.venv.absolute() / "bin/python", args.crema.absolute()
    for given, known in names:
        for name in given.split(","):
            if name not in known:
                parser.error(f"there is no {name}: choose from {', '.join(known)}")
    if not crema.is_file():
        parser.error(f"{args.crema} is not there: give the crema program, such as build/tools/crema")
    if not python.exists():
        venv.create(args.venv, with_pip=True)
        must([python, "-m", "pip", "install", "-q", *packages])
    folder = (args.folder or args.venv / "models").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return python, crema, folder


def prepare(python, crema, folder, name, batch, int8):
    """The net for inference and its model: FOLDER/NAME_BATCH[_int8].{prototxt,onnx,...}. Returns the stem
    and the input's shape."""
    stem = folder / f"{name}_{batch}{'_int8' if int8 else ''}"
    if not stem.with_suffix(".onnx").exists():
        weights = folder / f"{name}.caffemodel"
        if not weights.exists():
            solver = folder / f"{name}_solver.prototxt"
            solver.write_text(f'net: "{ROOT / NETS[name]}"\nbase_lr: 0.0001\nlr_policy: "fixed"\n'
                              f'max_iter: 1\nsnapshot_prefix: "{folder / name}"\nrandom_seed: 1\n')
            must([crema, "train", "-solver", solver, "-assume", INPUTS.get(name, ["default"])[0].format(2),
                  "-batch", 2])
            (folder / f"{name}_iter_1.caffemodel").rename(weights)
        must([crema, "deploy", "-model", NETS[name], "-batch", batch,
              "-assume", INPUTS.get(name, ["default"])[-1].format(batch), "-output", stem.with_suffix(".prototxt")])
        if int8:
            made = folder / "quantized"
            must([crema, "quantize", "-model", stem.with_suffix(".prototxt"), "-weights", weights,
                  "-output", made, "-calibrate", "random", "-calibrate_images", batch])
            (made / "net.prototxt").rename(stem.with_suffix(".prototxt"))
            weights = (made / "net.caffemodel").rename(stem.with_suffix(".caffemodel"))
        cut = ["-cut", "before_nms"] if "yolo" in name else []
        exported = [crema, "export", "-model", stem.with_suffix(".prototxt"), "-weights", weights,
                    "-batch", batch, "-verify=false", *cut]
        must([*exported, "-output", stem.with_suffix(".onnx")])
        must([*exported, "-to", "c", "-output", stem.with_suffix(".c"),
              "-output_weights", stem.with_suffix(".bin")])
    text = stem.with_suffix(".prototxt").read_text()
    shape = "x".join(re.findall(r"dim: (\d+)", text[:text.index("name:", text.index("input_param"))])[:4])
    pnnx = pathlib.Path(python).parent / "pnnx"
    if not stem.with_suffix(".ncnn.param").exists() and pnnx.exists():
        run([pnnx, stem.with_suffix(".onnx"), f"inputshape=[{shape.replace('x', ',')}]", "fp16=0"],
            folder, 2)
    return stem, shape


def compiled(compiler, stem, seconds):
    """A program that times the net in C."""
    program = stem.parent / f"{stem.name}_{compiler}"
    if not program.exists():
        header = stem.with_suffix(".h").read_text()
        sizes = re.findall(r'/\* Result .*\n#define \S+ (\d+)', header)
        names = [f"y{i}" for i in range(len(sizes))]
        (stem.parent / "time_c.c").write_text(C_MAIN % {
            "name": stem.name, "upper": stem.name.upper(), "seconds": seconds,
            "declared": ", ".join(f"{name}[{size}]" for name, size in zip(names, sizes)),
            "results": ", ".join(names)})
        must([compiler, "-std=c99", "-ffp-contract=fast", "-O3", "-march=native", "time_c.c",
              stem.with_suffix(".c").name, "-o", program.name, "-lm"], stem.parent)
    return program


def measure(peer, python, crema, stem, shape, args):
    if peer == "crema":
        text = must([crema, "time", "-forward", "-model", stem.with_suffix(".prototxt"),
                     "-iterations", max(3, args.passes)], threads=args.threads)
        return float(re.search(r"([\d.]+) ms/pass", text).group(1))
    if peer == LITERT and not stem.with_suffix(".tflite").exists():
        run([python, ROOT / "tests/bench/to_tflite.py", stem.with_suffix(".onnx"),
             stem.with_suffix(".tflite")], stem.parent, args.threads)
    if peer in COMPILERS:
        command = [compiled(peer, stem, args.seconds)]
    else:
        command = [python, "-c", TIME % MAKE[peer], stem, args.threads, args.seconds, shape]
    code, text = run(command, stem.parent, args.threads)
    found = re.search(r"^ms ([\d.]+)$", text, re.MULTILINE)
    if code != 0 or not found:
        print(f"{peer} cannot run {stem.name}: {text.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return float(found.group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("venv", type=pathlib.Path)
    parser.add_argument("crema", type=pathlib.Path)
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--batches", default="1,16")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement of a peer")
    parser.add_argument("--passes", type=int, default=20, help="of each measurement of Crema")
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--folder", type=pathlib.Path, help="for the models; kept (VENV/models)")
    args = parser.parse_args()
    python, crema, folder = set_up(parser, args, [(args.nets, NETS), (args.peers, [*PEERS, LITERT, *COMPILERS])], PACKAGES)
    peers = args.peers.split(",")
    print("| net, batch | Crema |", " | ".join(peers), "| fastest peer / Crema |")
    print("|---|---|" + "---|" * (len(peers) + 1), flush=True)
    for name in args.nets.split(","):
        for batch in map(int, args.batches.split(",")):
            stem, shape = prepare(python, crema, folder, name, batch, args.int8)
            here = [peer for peer in peers if peer != "ncnn" or batch == 1]
            rows = []
            for _ in range(args.rounds):
                row = {p: measure(p, python, crema, stem, shape, args) for p in ["crema", *here]}
                here = [peer for peer in here if row[peer] is not None]
                rows.append(row)
            ratios = [min(row[peer] for peer in here) / row["crema"] for row in rows]
            middle = {p: statistics.median(row[p] for row in rows) for p in ["crema", *here]}
            cells = [f"{middle[p]:.2f}" if p in middle else "" for p in ["crema", *peers]]
            print(f"| {name} {batch} |", " | ".join(cells),
                  f"| {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |",
                  flush=True)


if __name__ == "__main__":
    main()
