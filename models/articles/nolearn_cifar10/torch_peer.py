#!/usr/bin/env python3
"""Trains the article's convnet with PyTorch instead of Crema, to tell the recipe's effect from the framework's.

  torch_peer.py [--data data/cifar10] [--seeds 5] [--device cuda]

Reads CIFAR-10's binary files and prints a table: for each variant of the recipe the mean and the standard deviation of the accuracy
on the held-out and on the test images after 5 epochs. Needs PyTorch and NumPy."""
import argparse

import numpy
import torch
from torch import nn

HELD_OUT = 10000
BATCH = 128


def read(folder, name):
    """Grey images as floats from 0 to 255, N x 1 x 32 x 32, and labels."""
    records = numpy.fromfile(f"{folder}/{name}.bin", numpy.uint8).reshape(-1, 3073)
    planes = torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32)).float()
    grey = (planes * torch.tensor([0.299, 0.587, 0.114]).view(3, 1, 1)).sum(1, keepdim=True)
    return grey, torch.from_numpy(records[:, 0].astype(numpy.int64))


def convnet(initial):
    layers = []
    width = 1
    for kernel, outputs in [(3, 16), (2, 32), (2, 64)]:
        layers += [nn.Conv2d(width, outputs, kernel), nn.ReLU(), nn.MaxPool2d(2)]
        width = outputs
    layers += [nn.Flatten(), nn.Linear(3 * 3 * 64, 200), nn.ReLU(), nn.Linear(200, 10)]
    net = nn.Sequential(*layers)
    for layer in net:
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            initial(layer.weight)
            nn.init.zeros_(layer.bias)
    return net


def accuracy(net, images, labels):
    with torch.no_grad():
        right = sum((net(x).argmax(1) == y).sum().item() for x, y in zip(images.split(1000), labels.split(1000)))
    return right / len(labels)


def train(train_set, tests, seed, initial, shuffle, whole_batches, epochs):
    torch.manual_seed(seed)
    images, labels = train_set
    net = convnet(initial).to(images.device)
    # PyTorch's Nesterov momentum is Lasagne's and Caffe's.
    optimizer = torch.optim.SGD(net.parameters(), lr=0.015, momentum=0.9, nesterov=True)
    loss = nn.CrossEntropyLoss()
    for _ in range(epochs):
        order = (torch.randperm if shuffle else torch.arange)(len(labels), device=images.device)
        for batch in order.split(BATCH):
            if whole_batches and len(batch) < BATCH:
                continue
            optimizer.zero_grad()
            loss(net(images[batch]), labels[batch]).backward()
            optimizer.step()
    return [accuracy(net, *test) for test in tests]


def glorot(weight):
    nn.init.xavier_uniform_(weight)


def glorot_for_rectifiers(weight):
    nn.init.xavier_uniform_(weight, gain=2**0.5)


def he(weight):
    nn.init.kaiming_uniform_(weight, nonlinearity="relu")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="data/cifar10")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()

    parts = [read(args.data, f"data_batch_{i}") for i in range(1, 6)]
    images, labels = (torch.cat(x).to(args.device) for x in zip(*parts))
    test_images, test_labels = (x.to(args.device) for x in read(args.data, "test_batch"))
    half = lambda x: (x - 127.5) / 255
    one = lambda x: (x - 127.5) / 127.5
    unit = lambda x: (x - images.mean()) / images.std()
    # Name, inputs, initial values, shuffled, without the last half batch, epochs.
    variants = [("-0.5 to 0.5", half, glorot, True, False, 5), ("the same, never shuffled", half, glorot, False, False, 5),
                ("the same, whole batches only", half, glorot, True, True, 5), ("-1 to 1", one, glorot, True, False, 5),
                ("0 to 1", lambda x: x / 255, glorot, True, False, 5),
                ("mean 0, deviation 1", unit, glorot, True, False, 5), ("-0.5 to 0.5, He", half, he, True, False, 5),
                ("-0.5 to 0.5, Glorot times sqrt(2)", half, glorot_for_rectifiers, True, False, 5),
                ("-0.5 to 0.5, 7 epochs", half, glorot, True, False, 7)]
    print("| PyTorch's convnet | held-out accuracy | test accuracy |\n|---|---|---|")
    for name, scale, initial, shuffle, whole, epochs in variants:
        x = scale(images)
        fit, held = (x[:-HELD_OUT], labels[:-HELD_OUT]), (x[-HELD_OUT:], labels[-HELD_OUT:])
        tests = [held, (scale(test_images), test_labels)]
        results = numpy.array([train(fit, tests, seed, initial, shuffle, whole, epochs) for seed in range(1, args.seeds + 1)])
        cells = [f"{mean:.3f} ± {deviation:.3f}" for mean, deviation in zip(results.mean(0), results.std(0, ddof=1))]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
