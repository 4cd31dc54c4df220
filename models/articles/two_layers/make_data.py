#!/usr/bin/env python3
"""Writes the article's random data as HDF5Data reads them: make_data.py [FOLDER, default data/two_layers].

apt packages: python3-h5py
"""
import os
import sys

import h5py
import numpy as np

folder = sys.argv[1] if len(sys.argv) > 1 else "data/two_layers"
os.makedirs(folder, exist_ok=True)
for outputs in (10, 1000):
    random = np.random.default_rng(outputs)
    path = os.path.join(folder, f"train_{outputs}.h5")
    with h5py.File(path, "w") as file:
        file["x"] = random.standard_normal((64, 1000), dtype=np.float32)
        file["y"] = random.standard_normal((64, outputs), dtype=np.float32)
    with open(os.path.join(folder, f"train_{outputs}.txt"), "w") as text:
        print(path, file=text)
