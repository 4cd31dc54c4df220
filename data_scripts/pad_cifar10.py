#!/usr/bin/python3
"""Writes CIFAR-10's training images as pictures with more pixels around them, so that a crop at a random place moves them.

  pad_cifar10.py DATA_DIR OUT_DIR [--pad N]

DATA_DIR: the files data_batch_1.bin to data_batch_5.bin. Writes OUT_DIR/*.png, with N pixels (4) of the mean colour on each side,
and OUT_DIR/list.txt for convert_imageset. Red and blue change places: a database of convert_imageset begins with blue, one of
convert_cifar_data with red, and so they agree. create_cifar10_padded.sh makes a database of that.

Needs python3-numpy and python3-pil.
"""
import argparse
import os
import sys

try:
    import numpy as np
    from PIL import Image
except ImportError as missing:
    sys.exit(f"pad_cifar10.py: {missing}: apt-get install python3-numpy python3-pil")

MEAN = (125, 123, 114)  # of red, green and blue in the training set


def main():
    parser = argparse.ArgumentParser(description="Writes CIFAR-10's training images with more pixels around them.")
    parser.add_argument("data_dir")
    parser.add_argument("out_dir")
    parser.add_argument("--pad", type=int, default=4, metavar="N", help="pixels on each side (4)")
    arguments = parser.parse_args()
    if arguments.pad < 0:
        parser.error("--pad must be at least 0")
    os.makedirs(arguments.out_dir, exist_ok=True)
    side, lines = 32 + 2 * arguments.pad, []
    frame = np.empty((side, side, 3), np.uint8)
    for batch in range(1, 6):
        path = os.path.join(arguments.data_dir, f"data_batch_{batch}.bin")
        records = np.fromfile(path, np.uint8)
        if records.size % 3073:
            sys.exit(f"pad_cifar10.py: {path} has {records.size} bytes, which are no whole records of 3073")
        for record in records.reshape(-1, 3073):
            frame[:] = MEAN
            frame[arguments.pad:arguments.pad + 32, arguments.pad:arguments.pad + 32] = \
                record[1:].reshape(3, 32, 32).transpose(1, 2, 0)
            name = f"{len(lines):05d}.png"
            Image.fromarray(frame[:, :, ::-1].copy()).save(os.path.join(arguments.out_dir, name), compress_level=1)
            lines.append(f"{name} {record[0]}\n")
    with open(os.path.join(arguments.out_dir, "list.txt"), "w") as f:
        f.writelines(lines)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"pad_cifar10.py: {error}")
