#!/usr/bin/python3
"""Makes data for a character-level net: HDF5 files with the character at each step and the next one.

  make_text.py OUT_DIR [FILE ...] [--streams N] [--steps T] [--test-share S]

FILE: texts, one after another. Without any, the licences that Debian and Ubuntu keep in /usr/share/common-licenses.
Writes train.h5 and test.h5, and their lists train.txt and test.txt. The text is cut into N streams (32) that run in parallel:
`input` and `target` are steps x N, `cont` is 0 at the first step and 1 after it. The number of steps is a multiple of T
(50), the batch_size of the net. Characters are their ASCII codes, all others are "?". The last fraction S (0.06) of the text is
the test set.

Needs python3-h5py and python3-numpy.
"""
import argparse
import glob
import os
import sys

try:
    import h5py
    import numpy as np
except ImportError as missing:
    sys.exit(f"make_text.py: {missing}: apt-get install python3-h5py python3-numpy")

# apt packages: python3-h5py
LICENCES = "/usr/share/common-licenses"


def read(files):
    """The text of all files as ASCII codes, with one empty line at most between two others."""
    text = ""
    for name in files:
        with open(name, encoding="utf-8", errors="replace") as f:
            text += f.read().strip() + "\n\n"
    codes = np.frombuffer(text.encode("ascii", errors="replace"), np.uint8)
    return codes[(codes >= 32) & (codes < 127) | (codes == 10) | (codes == 9)]


def write(folder, name, codes, streams, steps):
    """Streams side by side; returns the number of steps."""
    length = (len(codes) - 1) // streams // steps * steps
    if length == 0:
        sys.exit(f"make_text.py: the {name} set has {len(codes)} characters, but {streams} streams of {steps} steps need "
                 f"{streams * steps + 1}: give more text, fewer --streams or fewer --steps")
    starts = np.arange(streams) * length
    at = starts[None, :] + np.arange(length)[:, None]
    cont = np.ones((length, streams), np.float32)
    cont[0] = 0
    path = os.path.join(folder, name + ".h5")
    with h5py.File(path + ".part", "w") as f:
        f["input"] = codes[at].astype(np.float32)
        f["target"] = codes[at + 1].astype(np.float32)
        f["cont"] = cont
    os.replace(path + ".part", path)
    with open(os.path.join(folder, name + ".txt"), "w") as f:
        f.write(name + ".h5\n")
    return length


def main():
    parser = argparse.ArgumentParser(description="Makes HDF5 files of the characters of a text.")
    parser.add_argument("out_dir")
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"texts (the files in {LICENCES})")
    parser.add_argument("--streams", type=int, default=32, metavar="N", help="parts of the text side by side (32)")
    parser.add_argument("--steps", type=int, default=50, metavar="T", help="steps in a batch (50)")
    parser.add_argument("--test-share", type=float, default=0.06, metavar="S", help="share of the text for tests (0.06)")
    arguments = parser.parse_args()
    if arguments.streams < 1 or arguments.steps < 1 or not 0 < arguments.test_share < 1:
        parser.error("--streams and --steps must be at least 1, --test-share between 0 and 1")
    # Links are second names of the same files.
    files = arguments.files or [f for f in sorted(glob.glob(LICENCES + "/*")) if not os.path.islink(f)]
    if not files:
        parser.error(f"{LICENCES} holds no text: name a FILE")
    codes = read(files)
    cut = int(len(codes) * (1 - arguments.test_share))
    os.makedirs(arguments.out_dir, exist_ok=True)
    lengths = [write(arguments.out_dir, name, part, arguments.streams, arguments.steps)
               for name, part in [("train", codes[:cut]), ("test", codes[cut:])]]
    print(f"{arguments.out_dir}: {len(codes)} characters of {len(files)} files; {lengths[0]} training and {lengths[1]} test steps "
          f"of {arguments.streams} streams")


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"make_text.py: {error}")
