#!/usr/bin/env python3
"""From the start of the process to the answer: `crema classify` of one picture.

  start.py PICTURE.jpg CREMA [CREMA ...] [--net models/squeezenet/train_val.prototxt] [--rounds 15] [--threads 2]

CREMA are programs to compare, which run in turn, such as build/tools/crema and that of another build. Prints the medians of the wall time, of
the processor time and of the largest resident set, and how many libraries are opened. The weights come from one iteration on random data.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def must(command):
    done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} {command[1]} failed: {done.stderr.strip().splitlines()[-1:]}")


def prepare(crema, net, folder):
    solver = folder / "solver.prototxt"
    solver.write_text(f'net: "{net}"\nbase_lr: 0.0001\nlr_policy: "fixed"\nmax_iter: 1\n'
                      f'snapshot_prefix: "{folder / "net"}"\nrandom_seed: 1\n')
    must([crema, "train", "-solver", solver, "-assume", "default", "-batch", 2])
    must([crema, "deploy", "-model", net, "-assume", "default", "-output", folder / "deploy.prototxt"])


def run(command, environment):
    """Milliseconds of wall and processor time, and MiB."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    wall = time.perf_counter() - begin
    if status != 0:
        raise SystemExit(f"{command[0]} failed")
    return 1e3 * wall, 1e3 * (used.ru_utime + used.ru_stime), used.ru_maxrss / 1024


def libraries(command, environment, folder):
    subprocess.run(command, env={**environment, "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(folder / "opened")},
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    text = "".join(path.read_text(errors="replace") for path in folder.glob("opened.*"))
    for path in folder.glob("opened.*"):
        path.unlink()
    return len({line.split()[-1] for line in text.splitlines() if "calling init:" in line})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("crema", nargs="+", type=pathlib.Path)
    parser.add_argument("--net", default="models/squeezenet/train_val.prototxt")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    for path in [args.picture, *args.crema]:
        if not path.is_file():
            parser.error(f"{path} is not there")
    environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare(args.crema[0].absolute(), args.net, folder)
        commands = [[str(crema.absolute()), "classify", "-model", str(folder / "deploy.prototxt"), "-weights",
                     str(folder / "net_iter_1.caffemodel"), str(args.picture.absolute())] for crema in args.crema]
        times = [[] for _ in commands]
        for _ in range(args.rounds):
            for command, rows in zip(commands, times):
                rows.append(run(command, environment))
        print("| program | wall ms | processor ms | MiB | libraries |\n|---|---|---|---|---|")
        for crema, command, rows in zip(args.crema, commands, times):
            wall, cpu, memory = (statistics.median(column) for column in zip(*rows))
            print(f"| {crema} | {wall:.0f} | {cpu:.0f} | {memory:.0f} | {libraries(command, environment, folder)} |")


if __name__ == "__main__":
    main()
