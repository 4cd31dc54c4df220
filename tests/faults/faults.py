#!/usr/bin/env python3
"""Lets one call to the system fail in a run of the tools, or kills the run before it, and looks at what is left.

  faults.py BUILD [--tries N] [--seed S] [--only NAME] [--kinds files,memory,room,ranks]

Each scenario is a command on a prepared folder (scenarios.py). A first run counts its calls by function (faults.c). Then each try
disturbs one of them:
  files    a call about a file in that folder fails with EIO, ENOSPC, EACCES, ESTALE or ENOMEM, or the process is killed there
  memory   an allocation, a mapping without a file, mprotect or the start of a thread fails
  room     the address space is limited to what the command needs or less
  ranks    the same and kills in one of two ranks under mpirun (rank_faults.py)
and checks: the program ends by itself with exit code 0 or 1 and one message; what was there before is still whole; the same command
without a fault then succeeds and gives what an undisturbed run gives; no temporary file is left. A crash in a library that
stacks.py knows counts as known. --tries 0 tries every call about files once with each error. Prints a table, and exits with 1 if
anything is wrong."""
import argparse
import errno
import hashlib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

import rank_faults
import stacks
from scenarios import SCENARIOS, TEXTS

HERE = os.path.dirname(os.path.abspath(__file__))
ERRORS = ["EIO", "ENOSPC", "EACCES", "ESTALE", "ENOMEM", "KILL"]
# Errors that a function never gives would only test the test.
IMPOSSIBLE = {(call, "ENOSPC") for call in ["read", "pread", "stat", "lstat", "fstat", "opendir", "readdir", "statvfs", "unlink"]}
# Counted from the start of main(), whatever they are about.
OF_MEMORY = {"memory": "ENOMEM", "mapping": "ENOMEM", "mprotect": "ENOMEM", "thread": "EAGAIN"}
TEMPORARY = re.compile(r"\.tmp\.|\.replaced$")
SECONDS = 60


class Lab:
    def __init__(self, build, folder):
        self.tools, self.folder = os.path.join(build, "tools"), folder
        self.known = {}  # crashes that count as known: their stacks, and how often
        self.library = os.path.join(folder, "faults.so")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", self.library, os.path.join(HERE, "faults.c"), "-ldl"], check=True)

    def run(self, command, folder, fault=None, room=None):
        if command.startswith("!"):
            return subprocess.run(command[1:], shell=True, cwd=folder, capture_output=True, text=True)
        environment = dict(os.environ, OMP_NUM_THREADS="1", CREMA_FLAGS="", XDG_CONFIG_HOME="/nonexistent", HOME="/nonexistent")
        if fault is not None:
            environment.update(fault, LD_PRELOAD=self.library, CREMA_FAULT_PATH=folder)
        words = command.split()
        limit = None if room is None else lambda: resource.setrlimit(resource.RLIMIT_AS, (room, room))
        try:
            return subprocess.run([os.path.join(self.tools, words[0])] + words[1:], cwd=folder, env=environment, capture_output=True,
                                  text=True, errors="replace", timeout=SECONDS, preexec_fn=limit)
        except subprocess.TimeoutExpired as error:
            return subprocess.CompletedProcess(command, 124, "", f"no end after {SECONDS} s: {error.stderr}")

    def prepare_texts(self, folder):
        os.makedirs(os.path.join(folder, "pictures"))
        for i in range(12):
            with open(f"{folder}/pictures/{i}.ppm", "wb") as file:
                file.write(b"P6\n6 6\n255\n" + bytes((i * 37 + j * 11) % 256 for j in range(108)))
        lines = [f"{i}.ppm {i % 3}\n" for i in range(12)]
        for name, text in [("list.txt", "".join(lines)), ("short.txt", "".join(lines[:5])), *TEXTS.items()]:
            with open(f"{folder}/{name}", "w") as file:
                file.write(text)
        self.must(folder, "convert_imageset pictures/ list.txt train_lmdb")

    def must(self, folder, command):
        done = self.run(command, folder)
        if done.returncode != 0:
            sys.exit(f"{command}: {done.stderr}")

    def prepare(self, scenario, folder):
        self.prepare_texts(folder)
        for command in scenario.prepare:
            self.must(folder, command)

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

    def crash_in(self, path):
        """ "": no crash; else who crashed, "known: ..." if nothing can be done about it here."""
        found = stacks.read(path)
        if not any(heading.startswith("crash") for heading in found):
            return ""
        reason, shown = stacks.blame(found)
        if reason:
            self.known[shown] = self.known.get(shown, 0) + 1
        return f"known: {reason}" if reason else f"crash in {shown}"

    @staticmethod
    def read_counts(path):
        with open(path) as file:
            return {call: int(count) for call, count in (line.split() for line in file)}

    @staticmethod
    def report(line):
        print(line, file=sys.stderr, flush=True)


def files_below(folder):
    return sorted(os.path.relpath(os.path.join(where, name), folder) for where, _, names in os.walk(folder) for name in names)


def content_of(folder):
    """Of all files, to see whether anything has changed."""
    content = {}
    for name in files_below(folder):
        with open(os.path.join(folder, name), "rb") as file:
            content[name] = file.read()
    return content


def messages(stderr):
    """What ends the program: lines of main.cpp; if there are none, what does not have the log's form."""
    lines = [line for line in stderr.splitlines() if line]
    of_log = [line for line in lines if re.match(r"E\d{4} .* main\.cpp:", line)]
    return of_log or [line for line in lines[-1:] if not re.match(r"[IW]\d{4} ", line)]


def check(lab, scenario, base, clean, fault):
    """What is wrong after this fault, as a text, empty: nothing; and how the run ended."""
    call, nth, error = fault
    folder = tempfile.mkdtemp(dir=lab.folder)
    shutil.rmtree(folder)
    shutil.copytree(base, folder, symlinks=True)
    stack = folder + ".stack"
    if call == "room":
        done = lab.run(scenario.command, folder, {"CREMA_FAULT_STACK": stack}, room=nth)
    else:
        number = 0 if error == "KILL" else getattr(errno, error)
        done = lab.run(scenario.command, folder, {"CREMA_FAULT_CALL": call, "CREMA_FAULT_NTH": str(nth), "CREMA_FAULT_STACK": stack,
                                                  "CREMA_FAULT_ERRNO": str(number)})
    wrong = []
    killed = error == "KILL" and done.returncode == -signal.SIGKILL
    crash = lab.crash_in(stack)
    known = crash.startswith("known: ")
    # A program that cannot be loaded: the system writes the message, or a library crashes as it registers its objects.
    unloaded = call == "room" and (done.returncode == 127 or (done.returncode < 0 and "main" not in stacks.read(stack)))
    outcome = "not loaded" if unloaded else "known" if known else "killed" if killed else f"exit code {done.returncode}"
    if done.returncode not in (0, 1) and not killed and not known and not unloaded:
        wrong.append(f"exit code {done.returncode}: {crash or done.stderr[-300:]}")
    if done.returncode == 1 and len(messages(done.stderr)) != 1:
        wrong.append(f"exit code 1 with {len(messages(done.stderr))} messages: {' | '.join(messages(done.stderr))[-400:]}")
    if ("terminate called" in done.stderr or "Assertion" in done.stderr) and not known and not unloaded:
        wrong.append(done.stderr[-300:])
    for name in files_below(base):
        if any(name.startswith(start) for start in scenario.precious) and not name.endswith("lock.mdb"):
            with open(os.path.join(base, name), "rb") as file:
                before = file.read()
            path = os.path.join(folder, name)
            if not os.path.exists(path) or open(path, "rb").read() != before:
                wrong.append(f"{name} is no longer what it was")
    if done.returncode != 0 and content_of(folder) == content_of(base):
        pass  # nothing has happened: an undisturbed run follows from the same state
    else:
        # oneDNN and the plain kernels that replace it do not give the same bits.
        other_kernels = call in ("mapping", "mprotect", "room")
        for name in [name + "?" if other_kernels and "_iter_" in name else name for name in scenario.results]:
            clean.setdefault(name, "there")
            old, now = lab.digest(base, name), lab.digest(folder, name)
            if done.returncode == 0 and now != clean[name]:
                wrong.append(f"exit code 0, but {name} is not that of an undisturbed run")
            if now not in (None, old, clean[name]):
                wrong.append(f"{name} is neither the old nor the new one")
            if now is None and old is not None and not killed:
                wrong.append(f"{name}, which was there before, is gone")
        again = lab.run(scenario.command, folder)
        if again.returncode != 0:
            wrong.append(f"the same command afterwards: exit code {again.returncode}: {' '.join(messages(again.stderr))[-300:]}")
        else:
            wrong += [f"the same command afterwards gives another {name}" for name in scenario.results if not other_kernels
                      and lab.digest(folder, name) != clean[name]]
            wrong += [f"{name} is left" for name in files_below(folder) if TEMPORARY.search(name)]
    shutil.rmtree(folder, ignore_errors=True)
    if os.path.exists(stack):
        os.remove(stack)
    return "; ".join(wrong), outcome


def of_files(chosen, calls, tries):
    faults = [(call, nth + 1, error) for call in sorted(calls) if call not in OF_MEMORY for nth in range(calls[call])
              for error in ERRORS if (call, error) not in IMPOSSIBLE]
    return chosen.sample(faults, min(tries, len(faults))) if tries else faults


def of_memory(chosen, calls, tries):
    """The first allocations are made once, the others again and again: half of the numbers are drawn by their logarithm."""
    faults = []
    for _ in range(tries):
        call = chosen.choices(list(OF_MEMORY), [6, 1, 1, 1])[0]
        count = calls.get(call, 0)
        if count == 0:
            call, count = "memory", calls["memory"]
        nth = chosen.randint(1, count) if chosen.random() < 0.5 else int(count ** chosen.random())
        faults.append((call, nth, OF_MEMORY[call]))
    return faults


def of_ranks(chosen, calls, tries):
    faults = of_files(chosen, calls, tries // 4) + of_memory(chosen, calls, tries // 4)
    return faults + [("memory", chosen.randint(1, calls["memory"]), "KILL") for _ in range(tries - len(faults))]


def of_room(lab, scenario, base, chosen, tries):
    """Sizes of the address space from that with which the program cannot be loaded to that with which all goes well."""
    folder = os.path.join(lab.folder, "room")

    def ends_well(room, codes):
        shutil.copytree(base, folder, symlinks=True)
        code = lab.run(scenario.command, folder, room=room).returncode
        shutil.rmtree(folder)
        return code in codes

    bounds = []
    for codes in ([*range(0, 127), *range(-32, 0)], [0]):
        low, high = 1 << 24, 1 << 31
        while high - low > 1 << 20:
            middle = (low + high) // 2
            low, high = (low, middle) if ends_well(middle, codes) else (middle, high)
        bounds.append(high)
    low, high = bounds[0] - (1 << 21), bounds[1] + (1 << 21)
    return [("room", chosen.randint(low, high) // 4096 * 4096, "") for _ in range(tries)]


def run_scenario(lab, scenario, kinds, chosen, tries):
    base, clean_folder, count = (os.path.join(lab.folder, name) for name in ("base", "clean", "count"))
    lab.prepare(scenario, base)
    shutil.copytree(base, clean_folder, symlinks=True)
    done = lab.run(scenario.command, clean_folder, {"CREMA_FAULT_COUNT": count, "CREMA_FAULT_NTH": "0"})
    if done.returncode != 0:
        sys.exit(f"{scenario.name}: {scenario.command}: {done.stderr}")
    calls = lab.read_counts(count)
    clean = {name: lab.digest(clean_folder, name) for name in scenario.results}
    if None in clean.values():
        sys.exit(f"{scenario.name}: {clean}: a result is missing: {files_below(clean_folder)}")
    faults = {"files": lambda: of_files(chosen, calls, tries), "memory": lambda: of_memory(chosen, calls, tries or 100),
              "room": lambda: of_room(lab, scenario, base, chosen, tries or 100)}
    rows = []
    for kind in [kind for kind in faults if kind in kinds]:
        wrong, outcomes, all_of_kind = 0, {}, faults[kind]()
        for fault in all_of_kind:
            problem, outcome = check(lab, scenario, base, clean, fault)
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
            if problem:
                wrong += 1
                lab.report(f"{scenario.name}: {fault[0]} #{fault[1]} {fault[2]}: {problem}")
        number = sum(count for call, count in calls.items() if (call in OF_MEMORY) == (kind != "files"))
        rows.append((f"{scenario.name}, {kind}", number, len(all_of_kind), wrong, outcomes))
    for path in (base, clean_folder):
        shutil.rmtree(path)
    os.remove(count)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--tries", type=int, default=4, help="of each scenario and kind; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="names of scenarios, by commas")
    parser.add_argument("--kinds", default="files,memory,room,ranks")
    args = parser.parse_args()
    chosen, kinds = random.Random(args.seed), args.kinds.split(",")
    only = [name for name in args.only.split(",") if name]
    bad = tried = 0
    with tempfile.TemporaryDirectory(prefix="crema_faults_") as folder:
        lab = Lab(os.path.abspath(args.build), os.path.realpath(folder))
        print("| scenario | calls | tries | wrong | ends |\n|---|---|---|---|---|", flush=True)
        runs = [lambda scenario=scenario: run_scenario(lab, scenario, kinds, chosen, args.tries) for scenario in SCENARIOS
                if (not only or scenario.name in only) and set(kinds) & {"files", "memory", "room"}]
        if "ranks" in kinds and (not only or "ranks" in only) and shutil.which("mpirun"):
            runs.append(lambda: rank_faults.scenario(lab, chosen, args.tries or 200, of_ranks))
        for run in runs:
            for name, calls, tries, wrong, outcomes in run():
                ends = ", ".join(f"{outcome}: {count}" for outcome, count in sorted(outcomes.items()))
                print(f"| {name} | {calls} | {tries} | {wrong} | {ends} |", flush=True)
                tried, bad = tried + tries, bad + wrong
    for shown, times in lab.known.items():
        print(f"known, {times} times: {shown}")
    print(f"{tried} faults, {bad} wrong")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
