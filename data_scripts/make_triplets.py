#!/usr/bin/python3
"""Makes triplets of digits from IDX files (MNIST, or make_digits.py's): an anchor, another image of its class, one of another.

  make_triplets.py DATA_DIR OUT_DIR [--train N] [--test N] [--seed S]

Writes, for the sets train and test, SET/*.png and SET.txt, a list for convert_imageset. A picture has the three grey images of a
triplet as its blue, green and red channel, the order in which a net reads them. The label of all is 0.
create_triplets.sh makes databases of that.

Needs python3-numpy and python3-pil.
"""
import argparse
import os
import sys

try:
    import numpy as np
    from PIL import Image
except ImportError as missing:
    sys.exit(f"make_triplets.py: {missing}: apt-get install python3-numpy python3-pil")


def read_idx(path):
    with open(path, "rb") as f:
        data = f.read()
    axes = data[3]
    shape = np.frombuffer(data, ">u4", axes, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


def triplets(labels, count, rng):
    """Rows of three indices."""
    of_class = [np.where(labels == k)[0] for k in range(10)]
    for _ in range(count):
        same, other = rng.choice(10, 2, replace=False)
        anchor, positive = rng.choice(of_class[same], 2, replace=False)
        yield anchor, positive, rng.choice(of_class[other])


def write_set(data, out, name, part, count, rng):
    images = read_idx(os.path.join(data, part + "-images-idx3-ubyte"))
    labels = read_idx(os.path.join(data, part + "-labels-idx1-ubyte"))
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    lines = []
    for i, (anchor, positive, negative) in enumerate(triplets(labels, count, rng)):
        picture = np.stack([images[negative], images[positive], images[anchor]], 2)  # red, green, blue
        Image.fromarray(picture).save(os.path.join(folder, f"{i:06d}.png"))
        lines.append(f"{name}/{i:06d}.png 0\n")
    with open(os.path.join(out, name + ".txt"), "w") as f:
        f.writelines(lines)


def main():
    parser = argparse.ArgumentParser(description="Makes triplets of digits as colour pictures.")
    parser.add_argument("data_dir", help="folder of the IDX files")
    parser.add_argument("out_dir")
    parser.add_argument("--train", type=int, default=40000, metavar="N", help="training triplets (40000)")
    parser.add_argument("--test", type=int, default=4000, metavar="N", help="test triplets (4000)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="another seed gives another set (1)")
    arguments = parser.parse_args()
    if arguments.train < 1 or arguments.test < 1 or arguments.seed < 0:
        parser.error("--train and --test must be at least 1, --seed at least 0")
    for number, (name, part, count) in enumerate([("train", "train", arguments.train), ("test", "t10k", arguments.test)]):
        write_set(arguments.data_dir, arguments.out_dir, name, part, count, np.random.default_rng([arguments.seed, number]))
    print(f"{arguments.out_dir}: {arguments.train} training and {arguments.test} test triplets")


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"make_triplets.py: {error}")
