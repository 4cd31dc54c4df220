#!/usr/bin/env python3
"""Trains a solver with several seeds in each precision, and compares the accuracies of its last test.

    python3 tests/bench/precision_seeds.py build/tools/crema models/lenet/solver.prototxt --seeds 20
    --set max_iter=7000 changes a field of the solver, as `train -set` does
    --gpus 0,1 --jobs 4 trains on two GPUs, four runs on each at a time

Prints a line for each precision: mean, standard deviation, smallest and largest accuracy in percent,
and the difference of the mean from that of the first precision with its standard error.
"""
import argparse
import concurrent.futures
import os
import queue
import re
import statistics
import subprocess
import sys
import time


def accuracy(crema, solver, precision, seed, gpu, settings, flags):
    fixed = [f"random_seed={seed}", "snapshot=0", "snapshot_after_train=false", "display=0"]
    command = [crema, "train", "-solver", solver, "-gpu", gpu, "-precision", precision, *flags]
    for setting in [*fixed, *settings]:
        command += ["-set", setting]
    log = subprocess.run(command, capture_output=True, text=True, check=False,
                         env=dict(os.environ, CREMA_FLAGS="", XDG_CONFIG_HOME=os.devnull))
    text = log.stdout + log.stderr
    tested = re.findall(r"Iteration (\d+), Testing net", text)
    found = re.findall(r"Test net output #\d+: (\S*acc\S*) = (\S+)", text)
    if log.returncode != 0 or not found:
        raise SystemExit(f"{' '.join(command)} ended with {log.returncode}:\n{text[-2000:]}")
    if int(tested[-1]) == 0:
        raise SystemExit(f"{solver}: no test at the end; test_interval must divide max_iter")
    return 100 * float(found[-1][1])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crema")
    parser.add_argument("solver")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--precisions", default="fp32,tf32,bf16,fp16")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE")
    parser.add_argument("--flags", default="", help="more flags of train")
    parser.add_argument("--gpus", default="0")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time on each GPU")
    args = parser.parse_args()
    for path in (args.crema, args.solver):
        if not os.path.isfile(path):
            parser.error(f"{path} is not there")
    precisions = args.precisions.split(",")
    gpus = queue.Queue()
    for gpu in args.gpus.split(",") * args.jobs:
        gpus.put(gpu)

    def run(precision, seed):
        gpu = gpus.get()
        try:
            return accuracy(args.crema, args.solver, precision, seed, gpu, args.set,
                            args.flags.split())
        finally:
            gpus.put(gpu)

    begin = time.time()
    with concurrent.futures.ThreadPoolExecutor(gpus.qsize()) as pool:
        futures = {p: [pool.submit(run, p, seed) for seed in range(1, args.seeds + 1)]
                   for p in precisions}
        values = {p: [future.result() for future in futures[p]] for p in precisions}
    spreads = {p: statistics.stdev(some) if len(some) > 1 else 0 for p, some in values.items()}
    first = values[precisions[0]]
    for precision, some in values.items():
        spread = spreads[precision]
        error = ((spread**2 + spreads[precisions[0]]**2) / len(some))**0.5
        print(f"{precision} {statistics.mean(some):.3f} +- {spread:.3f} "
              f"({min(some):.2f} to {max(some):.2f}), difference "
              f"{statistics.mean(some) - statistics.mean(first):+.3f} +- {error:.3f}", flush=True)
    print(f"{args.solver}: {args.seeds} seeds, {time.time() - begin:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
