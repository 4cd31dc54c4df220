"""Compiles nets of models/ to C for several processors and compares their results: c_models.py TOOLS [NAME ...]

TOOLS is the folder of the programs. Each net trains two iterations on random data, as in models_onnx.py, or, if its name ends
in _int8, twenty on rendered digits before `crema quantize`. Then `crema export -to c` writes it and verifies it with each
compiler that is here, GCC and Clang for this machine and GCC for 32-bit and 64-bit ARM, whose programs run in qemu. LeNet
trains there, too. The compilers get -Wall -Wextra -pedantic -Werror. Prints a line for each; exit code 1 if one fails.
The packages: clang gcc-arm-linux-gnueabihf gcc-aarch64-linux-gnu qemu-user python3-numpy
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from models_onnx import ROOT, for_each_net

NETS = ["lenet_digits", "cifar10_full", "squeezenet", "mobilenet_v2", "yolo_tiny"]

# Deep nets that have hardly trained amplify rounding.
TOLERANCE = "1e-3"
# A value on the other side of a rounding border differs by a step.
INT8_TOLERANCE = "0.02"

# Blocks of a depthwise and a pointwise convolution, as in MobileNet.
DEPTHWISE = "".join(f"""
layer {{ name: "dw{i}" type: "Convolution" bottom: "{below}" top: "dw{i}" convolution_param {{ num_output: {inputs}
  group: {inputs} kernel_size: 3 pad: 1 stride: {stride} bias_term: false weight_filler {{ type: "msra" }} }} }}
layer {{ name: "dw{i}_bn" type: "BatchNorm" bottom: "dw{i}" top: "dw{i}" }}
layer {{ name: "dw{i}_scale" type: "Scale" bottom: "dw{i}" top: "dw{i}" scale_param {{ bias_term: true }} }}
layer {{ name: "dw{i}_relu" type: "Clip" bottom: "dw{i}" top: "dw{i}" clip_param {{ min: 0 max: 6 }} }}
layer {{ name: "pw{i}" type: "Convolution" bottom: "dw{i}" top: "pw{i}" convolution_param {{ num_output: {outputs}
  kernel_size: 1 weight_filler {{ type: "msra" }} }} }}
layer {{ name: "pw{i}_relu" type: "ReLU" bottom: "pw{i}" top: "pw{i}" }}"""
                    for i, (below, inputs, outputs, stride) in enumerate(
                        [("conv1", 16, 24, 2), ("pw0", 24, 32, 1), ("pw1", 32, 40, 2)]))
DEPTHWISE = """
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }""" + DEPTHWISE + """
layer { name: "pool" type: "Pooling" bottom: "pw2" top: "pool" pooling_param { pool: AVE global_pooling: true } }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


def layers_of(model):
    """The text of a model without its data."""
    return re.sub(r'^layer \{\n  name: "(data|cifar)".*?^\}\n', "", (ROOT / "models" / model).read_text(), flags=re.M | re.S)


# All read digits.
INT8_NETS = {"lenet_int8": lambda: layers_of("lenet/digits_train_val.prototxt"),
             "cifar10_quick_int8": lambda: layers_of("cifar10_quick/train_val.prototxt"),
             "depthwise_int8": lambda: DEPTHWISE}

# A name, the compiler, and what runs its programs.
COMPILERS = [
    ("gcc", "gcc", ""),
    ("gcc -march=native", "gcc -march=native", ""),
    ("clang", "clang", ""),
    ("clang -march=native", "clang -march=native", ""),
    ("gcc -fopenmp", "gcc -fopenmp", ""),
    ("32-bit ARM", "arm-linux-gnueabihf-gcc -static", "qemu-arm"),
    ("64-bit ARM", "aarch64-linux-gnu-gcc -static", "qemu-aarch64"),
]

# Compiles with strict flags; the program becomes a script that runs it in an emulator.
WRAPPER = """#!/bin/sh
[ "$1" = --version ] && exec {compiler} --version
program=
for word; do
  [ "$last" = -o ] && program=$word
  last=$word
done
{compiler} -Wall -Wextra -pedantic -Werror "$@" -O3 || exit 1
[ -z "{runner}" ] && exit 0
mv "$program" "$program.elf"
printf '#!/bin/sh\\nexec {runner} "$0.elf" "$@"\\n' >"$program"
chmod +x "$program"
"""


def run(*command):
    done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command[0]}: {done.stderr[-2000:]}")


def quantized(tools, name, folder):
    """Trains a net on digits and quantizes it: what `crema export` needs of it as flags."""
    run("data_scripts/make_digits.py", folder / "digits", "--train", 600, "--test", 200)
    text = ""
    for phase, part, database in ("TRAIN", "train", "train"), ("TEST", "t10k", "test"):
        run(tools / "convert_mnist_data", "-backend=lmdb", folder / f"digits/{part}-images-idx3-ubyte",
            folder / f"digits/{part}-labels-idx1-ubyte", folder / f"{database}_lmdb")
        text += f"""layer {{ name: "data" type: "Data" top: "data" top: "label" include {{ phase: {phase} }}
  transform_param {{ scale: 0.00390625 }} data_param {{ source: "{folder}/{database}_lmdb" batch_size: 20 backend: LMDB }} }}
"""
    (folder / "net.prototxt").write_text(text + INT8_NETS[name]())
    (folder / "solver.prototxt").write_text(f"""net: "{folder}/net.prototxt" base_lr: 0.01 momentum: 0.9 lr_policy: "fixed"
max_iter: 20 snapshot_prefix: "{folder}/net" random_seed: 1""")
    run(tools / "train", "-solver", folder / "solver.prototxt", "-tune", "off")
    run(tools / "crema", "quantize", "-model", folder / "net.prototxt", "-weights", folder / "net_iter_20.caffemodel",
        "-output", folder / "int8", "-each_layer=false")
    return ["-model", folder / "int8/net.prototxt", "-weights", folder / "int8/net.caffemodel"]


def exported(tools, flags, path, tolerance=TOLERANCE):
    results = []
    folder = pathlib.Path(path).parent
    failed = ""
    more = ["-cut", "before_nms"] if path.endswith("yolo_tiny") else []
    if path.endswith("lenet_digits"):
        more = ["-train", "-solver", "models/lenet/digits_solver.prototxt", "-train_batch", "4"]
    for name, compiler, runner in COMPILERS:
        if not shutil.which(compiler.split()[0]) or (runner and not shutil.which(runner)):
            results.append(f"{name}: not here")
            continue
        wrapper = folder / "cc"
        wrapper.write_text(WRAPPER.format(compiler=compiler, runner=runner))
        wrapper.chmod(0o755)
        done = subprocess.run([f"{tools}/crema", "export", "-to", "c", *flags, *more, "-output", f"{path}.c",
                               "-output_weights", f"{path}.bin", "-tolerance", tolerance],
                              cwd=ROOT, capture_output=True, text=True, env={**os.environ, "CC": str(wrapper)})
        found = [line.split("largest difference is ")[1].split()[0] for line in done.stdout.splitlines() if " random inputs; " in line]
        if done.returncode or not found:
            failed = f" exit code {done.returncode}"
            results.append(f"{name}: {done.stderr.splitlines()[-1] if done.stderr else 'not verified'}")
        else:
            results.append(f"{name} {found[0]}")
    return "; ".join(results) + failed


def main():
    tools, *names = sys.argv[1:]
    tools = pathlib.Path(tools).resolve()
    failed = 0
    for name in [one for one in INT8_NETS if not names or one in names]:
        with tempfile.TemporaryDirectory() as folder:
            flags = quantized(tools, name, pathlib.Path(folder))
            result = exported(tools, flags, f"{folder}/{name}", INT8_TOLERANCE)
        print(f"{name}: {result}", flush=True)
        failed |= "exit code" in result
    floats = [name for name in names or NETS if name not in INT8_NETS]
    return failed | (for_each_net(tools, floats, lambda flags, path: exported(tools, flags, path), {}) if floats else 0)


if __name__ == "__main__":
    sys.exit(main())
