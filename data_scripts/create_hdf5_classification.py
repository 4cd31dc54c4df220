#!/usr/bin/python3
"""Makes two classes of points in HDF5 files, for logistic regression and the small net of models/hdf5_classification.

  create_hdf5_classification.py [OUT_DIR] [--samples N] [--seed S] [--force]

Writes train.h5 and test.h5 (three quarters and one quarter of the samples; 10000 unless given), each with the datasets `data`
(samples x 4) and `label` (samples; 0 or 1), and train.txt and test.txt, the lists that HDF5Data layers read. OUT_DIR:
data/hdf5_classification in this repository. --force: replace files that exist.

Two of the four features tell the classes apart, two are noise. Each class has two clusters, so that no straight line separates
them; one label in a hundred is drawn at random. The same samples come from the same seed.
"""
# apt packages: python3-numpy python3-h5py
import argparse
import os
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError as error:
    sys.exit(f"create_hdf5_classification.py: {error}: apt-get install python3-numpy python3-h5py")

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FEATURES, INFORMATIVE = 4, 2
# The clusters: class, centre, and the matrix that bends a round cloud to its shape.
CLUSTERS = [
    (0, (-0.1, 1.0), ((0.9, 0.3), (0.0, 0.7))),
    (0, (0.5, 0.2), ((0.6, -0.3), (0.2, 0.6))),
    (1, (1.2, -1.0), ((0.8, 0.0), (0.4, 0.7))),
    (1, (-1.3, -0.3), ((0.7, 0.2), (-0.3, 0.6))),
]


def make_samples(samples, seed):
    """Returns data (samples x FEATURES) and labels (samples), float32 as the nets read them."""
    random = np.random.default_rng(seed)
    data = random.standard_normal((samples, FEATURES))
    cluster = random.integers(len(CLUSTERS), size=samples)
    labels = np.array([label for label, _, _ in CLUSTERS])[cluster]
    centres = np.array([centre for _, centre, _ in CLUSTERS])[cluster]
    shapes = np.array([shape for _, _, shape in CLUSTERS])[cluster]
    data[:, :INFORMATIVE] = np.einsum("nij,nj->ni", shapes, data[:, :INFORMATIVE]) + centres
    wrong = random.random(samples) < 0.01
    labels[wrong] = random.integers(2, size=wrong.sum())
    return data.astype(np.float32), labels.astype(np.float32)


def write(folder, name, data, labels):
    with h5py.File(os.path.join(folder, name + ".h5"), "w") as file:
        # Compressed chunks: HDF5Data reads them, too.
        file.create_dataset("data", data=data, compression="gzip")
        file.create_dataset("label", data=labels, compression="gzip")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out_dir", nargs="?", default=os.path.join(ROOT, "data", "hdf5_classification"))
    parser.add_argument("--samples", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--force", action="store_true")
    args = parser.parse_args()
    if args.samples < 4:
        parser.error(f"--samples {args.samples}: expected at least 4, of which 3 are for training and 1 for testing")
    if args.seed < 0:
        parser.error(f"--seed {args.seed}: expected 0 or more")

    names = ["train.h5", "test.h5", "train.txt", "test.txt"]
    there = [name for name in names if os.path.exists(os.path.join(args.out_dir, name))]
    if there and not args.force:
        sys.exit(f"create_hdf5_classification.py: {args.out_dir} has {', '.join(there)} already; --force replaces it")
    data, labels = make_samples(args.samples, args.seed)
    train = args.samples * 3 // 4
    os.makedirs(args.out_dir, exist_ok=True)
    # In a separate folder until everything is written, so that nothing is left half-made.
    with tempfile.TemporaryDirectory(dir=args.out_dir) as work:
        for name, part in (("train", slice(train)), ("test", slice(train, None))):
            write(work, name, data[part], labels[part])
            with open(os.path.join(work, name + ".txt"), "w") as file:
                file.write(os.path.join(args.out_dir, name + ".h5") + "\n")
        for name in names:
            os.replace(os.path.join(work, name), os.path.join(args.out_dir, name))
    print(f"{args.out_dir}: {train} samples for training, {args.samples - train} for testing")


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"create_hdf5_classification.py: {error}")
