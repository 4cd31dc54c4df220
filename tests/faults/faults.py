#!/usr/bin/env python3
"""Lets one call to the system fail in a run of the tools, or kills the run before it, and looks at what is left.

  faults.py BUILD [--tries N] [--seed S] [--only NAME] [--keep]

Each scenario is a command on a prepared folder. A first run counts its calls about files in that folder, by function (faults.c). Then
each try lets the Nth call of one function fail with EIO, ENOSPC, EACCES, ESTALE or ENOMEM, or kills the process there, and checks:
the program ends by itself with exit code 0 or 1 and one message; what was there before is still whole; the same command without a
fault then succeeds and gives what an undisturbed run gives; no temporary file is left. --tries 0 tries every call once with each
error. Prints a table, and exits with 1 if anything is wrong."""
import argparse
import errno
import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ERRORS = ["EIO", "ENOSPC", "EACCES", "ESTALE", "ENOMEM", "KILL"]
# Errors that a function never gives would only test the test.
IMPOSSIBLE = {(call, "ENOSPC") for call in ["read", "pread", "stat", "lstat", "fstat", "opendir", "readdir", "statvfs", "unlink"]}
TEMPORARY = re.compile(r"\.tmp\.|\.replaced$")
SECONDS = 60

NET = """name: "small"
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN }
  transform_param { scale: 0.00390625 } data_param { source: "train_lmdb" backend: LMDB batch_size: 4 } }
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TEST }
  transform_param { scale: 0.00390625 } data_param { source: "train_lmdb" backend: LMDB batch_size: 4 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" include { phase: TEST } }
"""
SOLVER = """net: "net.prototxt" base_lr: 0.1 momentum: 0.9 lr_policy: "fixed" max_iter: 12 display: 4 test_iter: 2 test_interval: 6
snapshot: 4 snapshot_prefix: "s" random_seed: 7 solver_mode: CPU
"""


class Scenario:
    def __init__(self, name, command, results, prepare=(), precious=()):
        """`results`: files, or databases, that an undisturbed run leaves and every recovery must give. `prepare`: commands that
        make what is there before. `precious`: patterns of files of that which nothing may change."""
        self.name, self.command, self.results, self.prepare, self.precious = name, command, results, prepare, precious


TRAIN = "train -solver solver.prototxt"
FINAL = ["s_iter_12.caffemodel", "s_iter_12.solverstate"]
FOUR = f"{TRAIN} -set max_iter=4"
SCENARIOS = [
    Scenario("train", TRAIN, FINAL),
    Scenario("train hdf5", f"{TRAIN} -set snapshot_format=HDF5", ["s_iter_12.caffemodel.h5"]),
    Scenario("train run", f"{TRAIN} -run run -snapshot auto", ["run/snapshots/s_iter_12.caffemodel"]),
    Scenario("train auto", f"{TRAIN} -snapshot auto -set keep_last=1", FINAL, [FOUR]),
    Scenario("resume", f"{TRAIN} -snapshot s_iter_4.solverstate", FINAL, [FOUR], ["s_iter_4."]),
    Scenario("resume run", f"{TRAIN} -run run -snapshot auto", ["run/snapshots/s_iter_12.caffemodel"],
             [f"{TRAIN} -run run -set max_iter=4"], ["run/snapshots/s_iter_4."]),
    Scenario("weights", f"{TRAIN} -weights w.caffemodel", FINAL,
             [f"{TRAIN} -set max_iter=1 -set snapshot_prefix=w", "!mv w_iter_1.caffemodel w.caffemodel; rm w_iter_1.solverstate"],
             ["w.caffemodel"]),
    Scenario("lmdb", "convert_imageset -overwrite pictures/ list.txt made", ["made/"]),
    Scenario("lmdb again", "convert_imageset -overwrite pictures/ list.txt made", ["made/"],
             ["convert_imageset pictures/ short.txt made"]),
    Scenario("leveldb", "convert_imageset -overwrite -backend leveldb pictures/ list.txt made", ["made/"],
             ["convert_imageset -backend leveldb pictures/ short.txt made"]),
    Scenario("hdf5", "convert_imageset -overwrite -backend hdf5 pictures/ list.txt made", ["made.txt"],
             ["convert_imageset -backend hdf5 pictures/ short.txt made"]),
    Scenario("db copy", "crema db copy -overwrite train_lmdb made", ["made/"], ["crema db copy train_lmdb made"]),
    Scenario("mean", "compute_image_mean train_lmdb mean.binaryproto", ["mean.binaryproto"]),
    Scenario("deploy", "deploy -model net.prototxt -output deploy.prototxt", ["deploy.prototxt"]),
    Scenario("surgery", "crema surgery -model net.prototxt -weights s_iter_4.caffemodel -output f.prototxt -output_weights f.caffemodel",
             ["f.prototxt", "f.caffemodel"], [FOUR], ["s_iter_4.caffemodel"]),
    Scenario("report", "crema report metrics.jsonl -output report.html", ["report.html?"], [FOUR], ["metrics.jsonl"]),
]


class Lab:
    def __init__(self, build, folder):
        self.tools, self.folder = os.path.join(build, "tools"), folder
        self.library = os.path.join(folder, "faults.so")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", self.library, os.path.join(HERE, "faults.c"), "-ldl"], check=True)

    def run(self, command, folder, fault=None):
        if command.startswith("!"):
            return subprocess.run(command[1:], shell=True, cwd=folder, capture_output=True, text=True)
        environment = dict(os.environ, OMP_NUM_THREADS="1", CREMA_FLAGS="", XDG_CONFIG_HOME="/nonexistent", HOME="/nonexistent")
        if fault is not None:
            environment.update(fault, LD_PRELOAD=self.library, CREMA_FAULT_PATH=folder)
        words = command.split()
        try:
            return subprocess.run([os.path.join(self.tools, words[0])] + words[1:], cwd=folder, env=environment, capture_output=True,
                                  text=True, errors="replace", timeout=SECONDS)
        except subprocess.TimeoutExpired as error:
            return subprocess.CompletedProcess(command, 124, "", f"no end after {SECONDS} s: {error.stderr}")

    def prepare(self, scenario, folder):
        os.makedirs(os.path.join(folder, "pictures"))
        for i in range(12):
            with open(f"{folder}/pictures/{i}.ppm", "wb") as file:
                file.write(b"P6\n6 6\n255\n" + bytes((i * 37 + j * 11) % 256 for j in range(108)))
        lines = [f"{i}.ppm {i % 3}\n" for i in range(12)]
        for name, text in [("list.txt", "".join(lines)), ("short.txt", "".join(lines[:5])), ("net.prototxt", NET),
                           ("solver.prototxt", SOLVER)]:
            with open(f"{folder}/{name}", "w") as file:
                file.write(text)
        for command in ["convert_imageset pictures/ list.txt train_lmdb", *scenario.prepare]:
            done = self.run(command, folder)
            if done.returncode != 0:
                sys.exit(f"{scenario.name}: {command}: {done.stderr}")

    def digest(self, folder, name):
        """What must be equal in two runs: bytes of a file, records of a database; of a name that ends in "?" only that it is there."""
        path = os.path.join(folder, name.rstrip("/?"))
        if not os.path.exists(path):
            return None
        if name.endswith("?"):
            return "there"
        if name.endswith("/") or name.endswith(".txt"):
            done = self.run(f"crema db verify {name.rstrip('/')}", folder)
            return done.stdout if done.returncode == 0 else "damaged"
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()


def files_below(folder):
    return sorted(os.path.relpath(os.path.join(where, name), folder) for where, _, names in os.walk(folder) for name in names)


def messages(stderr):
    """Lines of errors: the log's, which begin with E and a date, or a line without the log's form."""
    return [line for line in stderr.splitlines() if line and not re.match(r"[IW]\d{4} ", line)]


def check(lab, scenario, base, clean, call, nth, error):
    """What is wrong after this fault, as a text; empty: nothing."""
    folder = tempfile.mkdtemp(dir=lab.folder)
    shutil.rmtree(folder)
    shutil.copytree(base, folder, symlinks=True)
    number = 0 if error == "KILL" else getattr(errno, error)
    done = lab.run(scenario.command, folder, {"CREMA_FAULT_CALL": call, "CREMA_FAULT_NTH": str(nth), "CREMA_FAULT_ERRNO": str(number)})
    wrong = []
    killed = error == "KILL" and done.returncode == -signal.SIGKILL
    if done.returncode not in (0, 1) and not killed:
        wrong.append(f"exit code {done.returncode}: {done.stderr[-300:]}")
    if done.returncode == 1 and not messages(done.stderr):
        wrong.append("exit code 1 without a message")
    if "terminate called" in done.stderr or "Assertion" in done.stderr:
        wrong.append(done.stderr[-300:])
    for name in files_below(base):
        if any(name.startswith(start) for start in scenario.precious):
            with open(os.path.join(base, name), "rb") as file:
                before = file.read()
            path = os.path.join(folder, name)
            if not os.path.exists(path) or open(path, "rb").read() != before:
                wrong.append(f"{name} is no longer what it was")
    for name in scenario.results:
        if done.returncode == 0 and lab.digest(folder, name) != clean[name]:
            wrong.append(f"exit code 0, but {name} is not that of an undisturbed run")
        old, now = lab.digest(base, name), lab.digest(folder, name)
        if now not in (None, old, clean[name]):
            wrong.append(f"{name} is neither the old nor the new one")
        if now is None and old is not None and not killed:
            wrong.append(f"{name}, which was there before, is gone")
    again = lab.run(scenario.command, folder)
    if again.returncode != 0:
        wrong.append(f"the same command afterwards: exit code {again.returncode}: {' '.join(messages(again.stderr))[-300:]}")
    else:
        wrong += [f"the same command afterwards gives another {name}" for name in scenario.results
                  if lab.digest(folder, name) != clean[name]]
        wrong += [f"{name} is left" for name in files_below(folder) if TEMPORARY.search(name)]
    shutil.rmtree(folder, ignore_errors=True)
    return "; ".join(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--tries", type=int, default=4, help="of each scenario; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    chosen = random.Random(args.seed)
    bad = tried = 0
    with tempfile.TemporaryDirectory(prefix="crema_faults_") as folder:
        folder = os.path.realpath(folder)
        lab = Lab(os.path.abspath(args.build), folder)
        print("| scenario | calls | tries | wrong |\n|---|---|---|---|")
        for scenario in SCENARIOS:
            if args.only and args.only != scenario.name:
                continue
            base, clean_folder = os.path.join(folder, "base"), os.path.join(folder, "clean")
            lab.prepare(scenario, base)
            shutil.copytree(base, clean_folder, symlinks=True)
            count = os.path.join(folder, "count")
            done = lab.run(scenario.command, clean_folder, {"CREMA_FAULT_COUNT": count, "CREMA_FAULT_NTH": "0"})
            if done.returncode != 0:
                sys.exit(f"{scenario.name}: {scenario.command}: {done.stderr}")
            with open(count) as file:
                calls = file.read().split()
            clean = {name: lab.digest(clean_folder, name) for name in scenario.results}
            if None in clean.values():
                sys.exit(f"{scenario.name}: {clean}: a result is missing: {files_below(clean_folder)}")
            faults = [(call, nth + 1, error) for call in sorted(set(calls)) for nth in range(calls.count(call)) for error in ERRORS
                      if (call, error) not in IMPOSSIBLE]
            if args.tries:
                faults = chosen.sample(faults, min(args.tries, len(faults)))
            wrong = 0
            for call, nth, error in faults:
                problem = check(lab, scenario, base, clean, call, nth, error)
                if problem:
                    wrong += 1
                    print(f"{scenario.name}: {call} #{nth} {error}: {problem}", file=sys.stderr, flush=True)
            print(f"| {scenario.name} | {len(calls)} | {len(faults)} | {wrong} |", flush=True)
            tried, bad = tried + len(faults), bad + wrong
            for path in (base, clean_folder):
                shutil.rmtree(path)
            os.remove(count)
    print(f"{tried} faults, {bad} wrong")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
