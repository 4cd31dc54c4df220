#!/usr/bin/env python3
"""Lets calls to CUDA fail while the tools train, as where memory is short or a card is lost, and looks at what is left.

  gpu_faults.py BUILD [--tries N] [--seed S] [--only NAME] [--jobs J] [--cuda FOLDER]

A first run of each scenario counts its calls by function (gpu_faults.c). Then each try lets the Nth call of one function fail: an
allocation finds no memory, any other call fails once, or from that call on every call does (a lost card). It checks: the program
ends by itself, with exit code 0 and the loss of an undisturbed run, or with 1 and one message; every snapshot is whole; the same
command without a fault then succeeds. The last rows fill the card with other memory, except for so many MiB. --tries 0 tries every
first call of each function and 50 more. Prints a table, and exits with 1 if anything is wrong."""
import argparse
import concurrent.futures
import ctypes
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

from faults import TEMPORARY, files_below

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 90
OUT_OF_MEMORY, LOST = 2, 214  # cudaErrorMemoryAllocation, cudaErrorECCUncorrectable
ALLOCATE = {"cudaMalloc", "cudaMallocHost", "cudaHostRegister", "cudaStreamCreateWithPriority", "cudaEventCreate",
            "cudaEventCreateWithFlags", "cudaGraphInstantiate", "cudaStreamEndCapture"}

NET = """name: "small"
layer { name: "data" type: "Data" top: "data" top: "label"
  transform_param { scale: 0.00390625 crop_size: 24 mirror: true } data_param { source: "digits" backend: LMDB batch_size: 16 } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
layer { name: "bn1" type: "BatchNorm" bottom: "conv1" top: "bn1" }
layer { name: "scale1" type: "Scale" bottom: "bn1" top: "bn1" scale_param { bias_term: true } }
layer { name: "relu1" type: "ReLU" bottom: "bn1" top: "bn1" }
layer { name: "pool1" type: "Pooling" bottom: "bn1" top: "pool1" pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
  convolution_param { num_output: 32 kernel_size: 5 weight_filler { type: "msra" } } }
layer { name: "relu2" type: "ReLU" bottom: "conv2" top: "conv2" }
layer { name: "ip" type: "InnerProduct" bottom: "conv2" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" include { phase: TEST } }
"""
SOLVER = """net: "net.prototxt" base_lr: 0.0005 momentum: 0.9 lr_policy: "fixed" max_iter: 60 display: 20 test_iter: 2 test_interval: 30
snapshot: 20 snapshot_prefix: "s" random_seed: 7 solver_mode: GPU
"""
TRAIN = "train -solver solver.prototxt -gpu 0"
SCENARIOS = {  # name: (command, commands before it)
    "train fp32": (f"{TRAIN} -precision fp32", []),
    "train": (TRAIN, []),
    "train bf16 run": (f"{TRAIN} -precision bf16 -run run -snapshot auto", []),
    "train fp16": (f"{TRAIN} -precision fp16 -set clip_gradients=5", []),
    "resume": (f"{TRAIN} -snapshot s_iter_20.solverstate", [f"{TRAIN} -set max_iter=20"]),
    "test": ("test -model net.prototxt -weights s_iter_20.caffemodel -iterations 4 -gpu 0", [f"{TRAIN} -set max_iter=20"]),
    "time": ("time -model net.prototxt -iterations 3 -gpu 0", []),
}
MEBIBYTES = [100, 300, 400, 450, 500, 520, 540, 560, 580, 600, 620, 640, 660, 680, 700, 750, 800, 900, 1000, 1500]


class Lab:
    def __init__(self, build, folder, cuda):
        self.tools, self.folder = os.path.join(build, "tools"), folder
        self.library = os.path.join(folder, "gpu_faults.so")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", f"-I{cuda}/include", "-o", self.library, os.path.join(HERE, "gpu_faults.c"),
                        "-ldl"], check=True)

    def run(self, command, folder, fault=None):
        environment = dict(os.environ, OMP_NUM_THREADS="1", CREMA_FLAGS="", XDG_CONFIG_HOME="/nonexistent", HOME="/nonexistent",
                           XDG_CACHE_HOME=os.path.join(folder, "cache"))
        if fault is not None:
            environment.update(fault, LD_PRELOAD=" ".join(filter(None, [self.library, os.environ.get("LD_PRELOAD", "")])))
        words = command.split()
        try:
            return subprocess.run([os.path.join(self.tools, words[0])] + words[1:], cwd=folder, env=environment, capture_output=True,
                                  text=True, errors="replace", timeout=SECONDS)
        except subprocess.TimeoutExpired as error:
            return subprocess.CompletedProcess(command, 124, "", f"no end after {SECONDS} s: {error.stderr}")

    def prepare(self, before, folder):
        os.makedirs(folder)
        chosen, count = random.Random(3), 64
        with open(f"{folder}/images", "wb") as file:
            file.write((2051).to_bytes(4, "big") + count.to_bytes(4, "big") + (28).to_bytes(4, "big") * 2 + chosen.randbytes(count * 784))
        with open(f"{folder}/labels", "wb") as file:
            file.write((2049).to_bytes(4, "big") + count.to_bytes(4, "big") + bytes(i % 10 for i in range(count)))
        for name, text in [("net.prototxt", NET), ("solver.prototxt", SOLVER)]:
            with open(f"{folder}/{name}", "w") as file:
                file.write(text)
        for command in ["convert_mnist_data images labels digits", *before]:
            done = self.run(command, folder)
            if done.returncode != 0:
                sys.exit(f"{command}: {done.stderr}")


def errors(done):
    return re.findall(r"^E\d{4} .*", done.stderr, re.M)


def last_loss(done):
    losses = re.findall(r"\bloss = (\S+)", done.stdout + done.stderr)
    return float(losses[-1]) if losses else None


def wrong_end(done, loss):
    """What is wrong with how a run ended, in a list."""
    wrong = []
    if done.returncode not in (0, 1):
        wrong.append(f"exit code {done.returncode}: {done.stderr[-400:]}")
    said = errors(done)
    if done.returncode == 1 and len(said) != 1:
        wrong.append(f"exit code 1 with {len(said)} messages: {' / '.join(said)[-400:] or done.stderr[-400:]}")
    if "terminate called" in done.stderr or "Assertion" in done.stderr:
        wrong.append(done.stderr[-400:])
    if done.returncode == 0 and loss is not None:
        found = last_loss(done)
        if found is None or abs(found - loss) > 0.05 * abs(loss):
            wrong.append(f"exit code 0, but the loss is {found}, that of an undisturbed run {loss}")
    return wrong


def check(lab, name, base, loss, call, nth, error, lost):
    """What is wrong after this fault, as a text, empty if nothing is; and the exit code."""
    command = SCENARIOS[name][0]
    folder = tempfile.mkdtemp(dir=lab.folder)
    shutil.rmtree(folder)
    shutil.copytree(base, folder)
    done = lab.run(command, folder, {"CREMA_FAULT_CALL": call, "CREMA_FAULT_NTH": str(nth), "CREMA_FAULT_ERROR": str(error),
                                     "CREMA_FAULT_LOST": str(int(lost))})
    wrong = wrong_end(done, loss)
    written = [file for file in files_below(folder) if file.endswith(".solverstate") and file not in files_below(base)]
    if lost and done.returncode == 1 and written and not re.search(r"s_iter_\d+\.solverstate", errors(done)[-1]):
        wrong.append(f"the message does not say which snapshot to resume from: {errors(done)}")
    wrong += [f"{file} is left" for file in files_below(folder) if TEMPORARY.search(file)]
    again = lab.run(command, folder)
    wrong += [f"the same command afterwards: {text}" for text in wrong_end(again, loss)]
    if again.returncode == 1:
        wrong.append(f"the same command afterwards fails: {errors(again)}")
    shutil.rmtree(folder, ignore_errors=True)
    return "; ".join(wrong), done.returncode


def faults_of(counts, tries, chosen):
    """Triples (call, nth, error, lost): the first call of each function, then random ones."""
    every = []
    for call, calls in sorted(counts.items()):
        error = OUT_OF_MEMORY if call in ALLOCATE else 1  # 1: cudaErrorInvalidValue, a passing one
        every += [(call, nth + 1, error, False) for nth in range(calls)]
        every += [(call, nth + 1, LOST, True) for nth in range(calls)]
    first = [fault for fault in every if fault[1] == 1]
    rest = [fault for fault in every if fault[1] > 1]
    if tries:
        return chosen.sample(first + rest, min(tries, len(every)))
    return first + chosen.sample(rest, min(50, len(rest)))


def crowd(lab, base, loss, mebibytes, command):
    """As check(), where other programs leave so much memory."""
    cuda = ctypes.CDLL(next(name for name in ["libcudart.so.13", "libcudart.so.12", "libcudart.so"] if loads(name)))
    available, total, data = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_void_p()
    cuda.cudaMemGetInfo(ctypes.byref(available), ctypes.byref(total))
    left = available.value - (mebibytes << 20)
    if left <= 0 or cuda.cudaMalloc(ctypes.byref(data), ctypes.c_size_t(left)) != 0:
        return "could not fill the card", 0
    folder = tempfile.mkdtemp(dir=lab.folder)
    shutil.rmtree(folder)
    shutil.copytree(base, folder)
    done = lab.run(command, folder)
    cuda.cudaFree(data)
    shutil.rmtree(folder, ignore_errors=True)
    return "; ".join(wrong_end(done, loss)), done.returncode


def loads(name):
    try:
        ctypes.CDLL(name)
        return True
    except OSError:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--tries", type=int, default=20, help="of each scenario")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--cuda", default="/usr/local/cuda")
    args = parser.parse_args()
    chosen = random.Random(args.seed)
    bad = tried = 0
    with tempfile.TemporaryDirectory(prefix="crema_gpu_faults_") as folder:
        folder = os.path.realpath(folder)
        lab = Lab(os.path.abspath(args.build), folder, args.cuda)
        print("| scenario | calls | tries | ended with a message | wrong |\n|---|---|---|---|---|")
        for name, (command, before) in SCENARIOS.items():
            if args.only and args.only != name:
                continue
            base, clean, count = (os.path.join(folder, kind) for kind in ("base", "clean", "count"))
            lab.prepare(before, base)
            shutil.copytree(base, clean)
            done = lab.run(command, clean, {"CREMA_FAULT_COUNT": count, "CREMA_FAULT_NTH": "0"})
            if done.returncode != 0:
                sys.exit(f"{name}: {command}: {done.stderr}")
            loss = last_loss(done)
            with open(count) as file:
                counts = {line.split()[0]: int(line.split()[1]) for line in file}
            faults = faults_of(counts, args.tries, chosen)
            with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
                ends = list(pool.map(lambda fault: check(lab, name, base, loss, *fault), faults))
            rows = [(name, [f"{call} #{nth} {'lost' if lost else error}" for call, nth, error, lost in faults], ends)]
            if name in ("train", "train fp16"):
                ends = [crowd(lab, base, loss, mebibytes, command) for mebibytes in MEBIBYTES]
                rows.append((f"{name}, a full card", [f"{mebibytes} MiB free" for mebibytes in MEBIBYTES], ends))
            for title, labels, ends in rows:
                for label, (problem, _) in zip(labels, ends):
                    if problem:
                        print(f"{title}: {label}: {problem}", file=sys.stderr, flush=True)
                wrong, refused = sum(1 for problem, _ in ends if problem), sum(1 for _, code in ends if code == 1)
                print(f"| {title} | {sum(counts.values())} | {len(ends)} | {refused} | {wrong} |", flush=True)
                tried, bad = tried + len(ends), bad + wrong
            for path in (base, clean):
                shutil.rmtree(path)
    print(f"{tried} faults, {bad} wrong")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
