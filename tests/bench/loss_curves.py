#!/usr/bin/env python3
"""Trains each net of nets/ on one batch that it draws itself, in every precision and without each
pass of the planner, and holds the loss curves against float32 without any pass.

    python3 tests/bench/loss_curves.py build/tools/crema OUT          # on GPU 0
    python3 tests/bench/loss_curves.py build/tools/crema OUT --cpu    # float32 alone
    --nets mlp,lenet chooses nets

Writes OUT/curves.csv (net, run, iteration, loss) and OUT/NET.svg, prints a line a run, and ends with
1 when a curve leaves its tolerance: the means over 20 iterations must lie within 2 % (float32 and
tf32) or 5 % (16 bits) of the first loss from the reference's.
"""
import argparse
import concurrent.futures
import csv
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ITERATIONS, WINDOW = 200, 20
PASSES = ["fuse", "format", "recompute", "memory", "overlap", "capture"]
# net: batch, learning rate
NETS = {
    "mlp": (128, 0.01), "lenet": (64, 0.001), "seed_cifar_cnn": (32, 0.01),
    "cifar10_full": (100, 0.001), "alexnet": (16, 0.001), "vgg16": (8, 0.0005),
    "googlenet": (16, 0.01), "resnet50": (16, 0.01),
}


def runs(cpu):
    fast = "fp32" if cpu else "fp16"
    whole = ["fp32"] if cpu else ["fp32", "tf32", "bf16", "fp16"]
    return ([("plain fp32", "fp32", ["-off", ",".join(PASSES)])] + [(p, p, []) for p in whole] +
            [(f"{t} without {p}", t, ["-off", p]) for p in PASSES
             # 16 bits need the format pass
             for t in ["fp32" if p == "format" else fast]])


def train(crema, net, run, cpu):
    name, precision, flags = run
    batch, rate = NETS[net]
    path = pathlib.Path(__file__).parent / "nets" / f"{net}.prototxt"
    with tempfile.TemporaryDirectory() as folder:
        solver = pathlib.Path(folder) / "solver.prototxt"
        solver.write_text(f'net: "{path.resolve()}"\nbase_lr: {rate}\nlr_policy: "fixed"\n'
                          f"momentum: 0.9\nweight_decay: 0.0005\nmax_iter: {ITERATIONS}\n"
                          f"display: 1\nsnapshot_after_train: false\nrandom_seed: 1\n")
        command = [crema, "train", "-solver", str(solver), "-batch", str(batch), "-assume",
                   "default",  # random images and labels in the Input layers
                   "-precision", precision, "-tune", "off", *([] if cpu else ["-gpu", "0"]), *flags]
        env = dict(os.environ, CREMA_FLAGS="", XDG_CONFIG_HOME=os.devnull)  # only the flags above
        log = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    losses = re.findall(r"Iteration \d+ .*loss = (\S+)", log.stdout + log.stderr)
    if log.returncode != 0 or len(losses) < ITERATIONS:
        sys.exit(f"{' '.join(command)} ended with {log.returncode}:\n{log.stderr[-2000:]}")
    return [float(loss) for loss in losses[:ITERATIONS]]


def means(curve):
    return [sum(curve[i:i + WINDOW]) / WINDOW for i in range(0, ITERATIONS, WINDOW)]


def draw(path, net, curves):
    top = max(max(curve) for curve in curves.values()) or 1
    colours = ["#000", "#888", "#27c", "#c30", "#e90", "#194", "#939", "#0aa", "#a60", "#66c", "#c69"]
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 400" font-family="sans-serif"'
             f' font-size="11"><text x="40" y="14">{net}: loss of {ITERATIONS} iterations, 0 to '
             f'{top:.2f}</text>']
    for i, (name, curve) in enumerate(curves.items()):
        points = " ".join(f"{40 + 440 * k / ITERATIONS:.1f},{380 - 350 * loss / top:.1f}"
                          for k, loss in enumerate(curve))
        lines.append(f'<polyline fill="none" stroke="{colours[i]}" points="{points}"/>'
                     f'<text x="490" y="{40 + 16 * i}" fill="{colours[i]}">{name}</text>')
    path.write_text("\n".join(lines) + "\n</svg>\n")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("crema")
    arguments.add_argument("out", type=pathlib.Path)
    arguments.add_argument("--cpu", action="store_true")
    arguments.add_argument("--nets", default=",".join(NETS))
    given = arguments.parse_args()
    out, nets, all_runs = given.out, given.nets.split(","), runs(given.cpu)
    out.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(1 if given.cpu else 4) as pool:
        jobs = {(net, run[0]): pool.submit(train, given.crema, net, run, given.cpu)
                for net in nets for run in all_runs}
        curves = {key: job.result() for key, job in jobs.items()}
    with open(out / "curves.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["net", "run", "iteration", "loss"])
        writer.writerows((*key, i, loss) for key, curve in curves.items()
                         for i, loss in enumerate(curve))
    bad = 0
    for net in nets:
        of_net = {run[0]: curves[net, run[0]] for run in all_runs}
        draw(out / f"{net}.svg", net, of_net)
        reference = of_net["plain fp32"]
        for name, precision, _ in all_runs[1:]:
            apart = max(abs(a - b) for a, b in zip(means(of_net[name]), means(reference)))
            share, limit = apart / reference[0], 0.02 if precision in ("fp32", "tf32") else 0.05
            bad += not share <= limit
            print(f"{net:15} {name:24} from {reference[0]:.3f} to {of_net[name][-1]:.3f} "
                  f"(plain fp32 {reference[-1]:.3f}), apart {100 * share:.2f} % of {100 * limit:.0f} %"
                  f"{'' if share <= limit else '  TOO FAR'}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
