#!/usr/bin/env python3
"""How fast convert_imageset is: against one thread of OpenCV's and LMDB's own calls, and raw records against writing as many bytes.
Needs Python's opencv-python-headless, lmdb and numpy.

  convert_imageset.py [--images 2000] [--pairs 5] [--folder FOLDER] [--tools build/tools]

Makes pictures of 500 x 375 in FOLDER (a temporary one by default) and prints milliseconds for each image, and the ratio of the pairs:
median, least and most."""
import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time

import cv2
import lmdb
import numpy as np

WIDTH, HEIGHT = 500, 375


def make_pictures(folder, count):
    random = np.random.default_rng(1)
    os.makedirs(f"{folder}/jpg")
    bases = []
    for _ in range(40):
        picture = np.full((HEIGHT, WIDTH, 3), random.integers(0, 256, 3), np.uint8)
        for _ in range(120):
            at, color = random.integers(0, (WIDTH, HEIGHT)), random.integers(0, 256, 3)
            cv2.circle(picture, tuple(int(x) for x in at), int(random.integers(5, 90)), tuple(int(x) for x in color), -1)
        noise = random.normal(0, 6, picture.shape)
        bases.append(np.clip(cv2.GaussianBlur(picture, (0, 0), 1.5) + noise, 0, 255).astype(np.uint8))
    with open(f"{folder}/list.txt", "w") as out:
        for i in range(count):
            cv2.imwrite(f"{folder}/jpg/{i}.jpg", np.roll(bases[i % 40], i, 1), [cv2.IMWRITE_JPEG_QUALITY, 88 + i % 6])
            out.write(f"{i}.jpg {i % 10}\n")


def field(number, value):
    """A field of a Datum as protobuf writes it: a number, or bytes."""
    def varint(rest):
        text = bytearray()
        while rest > 127:
            text.append(rest & 127 | 128)
            rest >>= 7
        return bytes(text) + bytes([rest])
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def peer(folder, database, encoded):
    """What Caffe's converter does."""
    environment = lmdb.open(database, map_size=1 << 40, writemap=False)
    with open(f"{folder}/list.txt") as lines:
        listed = [line.split() for line in lines]
    for first in range(0, len(listed), 1000):
        with environment.begin(write=True) as transaction:
            for i, (name, label) in enumerate(listed[first:first + 1000], first):
                image = cv2.imread(f"{folder}/jpg/{name}", cv2.IMREAD_COLOR)
                if encoded:
                    with open(f"{folder}/jpg/{name}", "rb") as file:
                        record = field(4, file.read()) + field(5, int(label)) + field(7, 1)
                else:
                    record = (field(1, 3) + field(2, image.shape[0]) + field(3, image.shape[1]) +
                              field(4, b"".join(plane.tobytes() for plane in cv2.split(image))) + field(5, int(label)))
                transaction.put(f"{i:08}_{name}".encode(), record)
    environment.close()


def write(path, count):
    block = os.urandom(1 << 20)
    with open(path, "wb") as out:
        for _ in range(0, count, len(block)):
            out.write(block)
        out.flush()
        os.fsync(out.fileno())


def seconds_of(work, made):
    os.sync()
    begin = time.perf_counter()
    work()
    seconds = time.perf_counter() - begin
    shutil.rmtree(made) if os.path.isdir(made) else os.remove(made)
    return seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--folder")
    parser.add_argument("--tools", default="build/tools")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    folder = tempfile.mkdtemp(dir=options.folder)
    try:
        make_pictures(folder, options.images)
        database = f"{folder}/made"

        def crema(flags):
            subprocess.run([f"{options.tools}/convert_imageset", *flags, f"{folder}/jpg/", f"{folder}/list.txt", database],
                           check=True, stderr=subprocess.DEVNULL)
        of_raw = options.images * WIDTH * HEIGHT * 3
        rows = [("raw, against one thread", [], lambda: peer(folder, database, False)),
                ("encoded, against one thread", ["-encoded"], lambda: peer(folder, database, True)),
                ("raw, against write and fsync", [], lambda: write(database, of_raw))]
        for name, flags, other in rows:
            pairs = [(seconds_of(other, database), seconds_of(lambda: crema(flags), database)) for _ in range(options.pairs)]
            ratios = [theirs / ours for theirs, ours in pairs]
            each = [1e3 * statistics.median(side) / options.images for side in zip(*pairs)]
            print(f"{name}: {each[1]:.3f} ms, the other {each[0]:.3f} ms; {statistics.median(ratios):.2f} times as fast "
                  f"({min(ratios):.2f} to {max(ratios):.2f})")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
