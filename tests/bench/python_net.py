"""Seconds of one forward pass of crema.Net on a CPU: planned=True, as it is by default, after one blob inside was read, and
with all blobs kept. The four take turns; fastest passes and their ratios to planned=True are printed.

    PYTHONPATH=build/python python3 tests/bench/python_net.py [--rounds 9] [--threads 2] NET/deploy.prototxt ...
"""
import argparse
import time

import numpy as np

import crema


def opened(path, **options):
    net = crema.Net(path, crema.TEST, **options)
    for name in net.inputs:
        net.blobs[name].data[...] = np.random.default_rng(1).normal(size=net.blobs[name].shape)
    net.forward()
    return net


def seconds(net):
    start = time.perf_counter()
    net.forward()
    return time.perf_counter() - start


def measure(path, rounds):
    nets = {'planned': opened(path, planned=True), 'default': opened(path), 'one': opened(path), 'all': opened(path)}
    inside = [name for name, blob in nets['one'].blobs.items() if name not in nets['one'].inputs + nets['one'].outputs]
    nets['one'].blobs[inside[-1]].data
    for name in inside:
        nets['all'].blobs[name].data
    times = {name: [] for name in nets}
    for turn in range(rounds + 1):
        for name, net in nets.items():
            took = seconds(net)
            if turn:
                times[name].append(took)
    base = min(times['planned'])
    return base, [min(times[name]) / base for name in ('default', 'one', 'all')]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('nets', nargs='+')
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--threads', type=int, default=2)
    flags = parser.parse_args()
    crema.init_log(3)
    crema.set_threads(flags.threads)
    print('| net | planned, ms | default | one blob read | all read |\n|---|---|---|---|---|')
    for path in flags.nets:
        base, ratios = measure(path, flags.rounds)
        print(f'| {path.split("/")[-2]} | {base * 1000:.1f} | ' + ' | '.join(f'{ratio:.2f}' for ratio in ratios) + ' |')


if __name__ == '__main__':
    main()
