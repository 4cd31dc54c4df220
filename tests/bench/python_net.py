"""Seconds of one forward pass of crema.Net on a CPU: planned=True, as it is by default, after one blob inside was read, and
with all blobs kept. They take turns; fastest passes and their ratios to planned=True are printed.

    PYTHONPATH=build/python python3 tests/bench/python_net.py [--rounds 9] [--threads 2] [--with force_backward]
        NET/deploy.prototxt ...

--with force_backward: of a net with that field; a backward pass after each forward pass is timed, too, against the net that
keeps all blobs. --with python: of a net with a layer in Python that copies its last blob.
"""
import argparse
import os
import tempfile
import time

import numpy as np

import crema


class Copy(crema.Layer):
    def setup(self, bottom, top):
        pass

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        top[0].data[...] = bottom[0].data

    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[...] = top[0].diff


def opened(path, **options):
    net = crema.Net(path, crema.TEST, **options)
    for name in net.inputs:
        net.blobs[name].data[...] = np.random.default_rng(1).normal(size=net.blobs[name].shape)
    net.forward()
    return net


def changed(path, what, folder):
    """The net in `path` with force_backward or a layer in Python, as a file in `folder`."""
    text = open(path).read()
    if what == 'force_backward':
        text = 'force_backward: true\n' + text
    if what == 'python':
        output = crema.Net(path, crema.TEST, planned=True).outputs[0]
        text += (f'\nlayer {{ name: "copy" type: "Python" bottom: "{output}" top: "copy" '
                 'python_param { module: "python_net" layer: "Copy" } }\n')
    path = os.path.join(folder, 'net.prototxt')
    with open(path, 'w') as file:
        file.write(text)
    return path


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(path, rounds, backward):
    """Seconds of planned=True, ratios of the others; and those of a backward pass: default, and all kept to that."""
    nets = {'planned': opened(path, planned=True), 'default': opened(path), 'one': opened(path), 'all': opened(path)}
    inside = [name for name, blob in nets['one'].blobs.items() if name not in nets['one'].inputs + nets['one'].outputs]
    nets['one'].blobs[inside[-1]].data
    for name in inside:
        nets['all'].blobs[name].data
    times, back = {name: [] for name in nets}, {'default': [], 'all': []}
    for turn in range(rounds + 1):
        for name, net in nets.items():
            took = seconds(net.forward)
            if turn:
                times[name].append(took)
    for turn in range(rounds + 1 if backward else 0):
        for name in back:
            net = nets[name]
            net.forward()
            net.blobs[net.outputs[0]].diff[...] = 1
            took = seconds(net.backward)
            if turn:
                back[name].append(took)
    base = min(times['planned'])
    ratios = [min(times[name]) / base for name in ('default', 'one', 'all')]
    return base, ratios, [min(back[name]) for name in back] if backward else []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('nets', nargs='+')
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--with', dest='what', choices=['force_backward', 'python'])
    flags = parser.parse_args()
    crema.init_log(3)
    crema.set_threads(flags.threads)
    more = ' backward, ms | backward with all kept |' if flags.what == 'force_backward' else ''
    print(f'| net | planned, ms | default | one blob read | all read |{more}\n' + '|---' * (7 if more else 5) + '|')
    for path in flags.nets:
        with tempfile.TemporaryDirectory() as folder:
            file = changed(path, flags.what, folder) if flags.what else path
            base, ratios, back = measure(file, flags.rounds, bool(more))
        cells = [f'{base * 1000:.1f}', *(f'{ratio:.2f}' for ratio in ratios)]
        if back:
            cells += [f'{back[0] * 1000:.1f}', f'{back[1] / back[0]:.2f}']
        print(f'| {path.split("/")[-2]} | ' + ' | '.join(cells) + ' |', flush=True)


if __name__ == '__main__':
    main()
