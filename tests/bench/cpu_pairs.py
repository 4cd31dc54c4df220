#!/usr/bin/env python3
"""Training-step speed on the CPU: Crema against a peer, run in turn, median of the ratios.

  cpu_pairs.py PEER [--pairs 7] [--threads 2] [--rows lenet,resnet50] [--crema build/tools/crema] [--seconds 2]

PEER is a command that prints `... X ms/step ... Y MiB` for a net in PyTorch, called as
  PEER NET.prototxt --batch N --chw C H W --classes K --mode MODE --threads T --seconds S
Both modes of it (cpu and cpu-compile) are run in every pair, and the faster one counts.
"""
import argparse
import os
import re
import shlex
import statistics
import subprocess

ROWS = [("lenet", 64, (1, 28, 28), 10), ("seed_cifar_cnn", 32, (3, 32, 32), 10), ("cifar10_full", 100, (3, 32, 32), 10),
        ("alexnet", 16, (3, 227, 227), 1000), ("googlenet", 8, (3, 224, 224), 1000), ("resnet50", 4, (3, 224, 224), 1000)]
HERE = os.path.dirname(os.path.abspath(__file__))


def run(command, pattern_ms, pattern_mib, threads):
    # Without the user's own flags.
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), CREMA_FLAGS="", XDG_CONFIG_HOME=os.devnull)
    text = subprocess.run(command, capture_output=True, text=True, env=env)
    output = text.stdout + text.stderr
    ms, mib = re.search(pattern_ms, output), re.search(pattern_mib, output)
    if not ms:
        raise SystemExit(f"no time in the output of {shlex.join(command)}:\n{output[-2000:]}")
    return float(ms.group(1)), float(mib.group(1)) if mib else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", default=",".join(row[0] for row in ROWS))
    parser.add_argument("--modes", default="cpu,cpu-compile")
    parser.add_argument("--seconds", default="2")
    parser.add_argument("--crema", default=os.path.join(HERE, "../../build/tools/crema"))
    args = parser.parse_args()
    print("| net, batch | Crema ms | peer ms | peer / Crema | Crema MiB | peer MiB |\n|---|---|---|---|---|---|", flush=True)
    for name, batch, (c, h, w), classes in ROWS:
        if name not in args.rows.split(","):
            continue
        net = os.path.join(HERE, "nets", name + ".prototxt")
        ours_command = [args.crema, "time", "-train_step", "-model", net, "-batch", str(batch)]
        peer_commands = [shlex.split(args.peer) + [net, "--batch", str(batch), "--chw", str(c), str(h), str(w), "--classes",
                         str(classes), "--mode", mode, "--threads", str(args.threads), "--seconds", args.seconds]
                         for mode in args.modes.split(",")]
        ours, theirs, ratios = [], [], []
        for _ in range(args.pairs):
            ours.append(run(ours_command, r"([\d.]+) ms/step", r"([\d.]+) MiB", args.threads))
            theirs.append(min(run(command, r"([\d.]+) ms/step", r"([\d.]+) MiB", args.threads) for command in peer_commands))
            ratios.append(theirs[-1][0] / ours[-1][0])
        middle = lambda rows, k: statistics.median(row[k] for row in rows)
        print(f"| {name} {batch} | {middle(ours, 0):.2f} | {middle(theirs, 0):.2f} | {statistics.median(ratios):.2f} "
              f"({min(ratios):.2f} to {max(ratios):.2f}) | {middle(ours, 1):.0f} | {middle(theirs, 1):.0f} |", flush=True)


if __name__ == "__main__":
    main()
