#!/usr/bin/env python3
"""Writes MNIST as pictures in folders by class, and lists of them: pictures.py MNIST_FOLDER OUT.

OUT/train/7/00042.png ..., and OUT/train.txt with a line "7/00042.png 7" for each; the same for test.
"""
import os
import sys

import numpy as np
from PIL import Image

source, out = sys.argv[1:]
for name, prefix in (("train", "train"), ("test", "t10k")):
    images = np.fromfile(f"{source}/{prefix}-images-idx3-ubyte", np.uint8)[16:].reshape(-1, 28, 28)
    labels = np.fromfile(f"{source}/{prefix}-labels-idx1-ubyte", np.uint8)[8:]
    for label in range(10):
        os.makedirs(f"{out}/{name}/{label}", exist_ok=True)
    with open(f"{out}/{name}.txt", "w") as text:
        for i, (image, label) in enumerate(zip(images, labels)):
            Image.fromarray(image).save(f"{out}/{name}/{label}/{i:05}.png")
            print(f"{label}/{i:05}.png {label}", file=text)
