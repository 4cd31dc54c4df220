"""A data layer in Python: pictures of shapes, each with several labels. See multilabel.py."""

import json

import numpy as np

import crema

NAMES = ["circle", "square", "triangle", "cross", "ring"]


def draw(generator, size=32):
    """A picture (3, size, size) with one to three kinds of shapes, and 1 for each kind that is in it."""
    image = generator.normal(0, 0.05, (3, size, size)).astype(np.float32)
    labels = np.zeros(len(NAMES), np.float32)
    labels[generator.choice(len(NAMES), generator.integers(1, 4), replace=False)] = 1
    down, right = np.mgrid[:size, :size].astype(np.float32)
    quarters = generator.permutation(4)
    for place, kind in enumerate(np.flatnonzero(labels)):
        radius = generator.uniform(4.5, 7)
        v = down - (size / 4 + size / 2 * (quarters[place] // 2) + generator.uniform(-1, 1))
        u = right - (size / 4 + size / 2 * (quarters[place] % 2) + generator.uniform(-1, 1))
        distance = np.hypot(u, v)
        inside = [
            distance < radius,
            np.maximum(abs(u), abs(v)) < 0.85 * radius,
            (v < 0.8 * radius) & (v > 2 * abs(u) - radius),
            (np.minimum(abs(u), abs(v)) < 0.25 * radius) & (distance < radius),
            abs(distance - 0.8 * radius) < 0.2 * radius,
        ][kind]
        image[:, inside] = generator.uniform(0.4, 1, (3, 1))
    return image, labels


class ShapesLayer(crema.Layer):
    """Pictures and what is in them.

    Tops: data (batch, 3, size, size) and labels (batch, 5). param_str is JSON: {"batch": 32, "size": 32,
    "seed": 1}.
    """

    def setup(self, bottom, top):
        if len(top) != 2 or len(bottom):
            raise ValueError("ShapesLayer has two tops, data and labels, and no bottom")
        given = dict(dict(batch=32, size=32, seed=1), **json.loads(self.param_str or "{}"))
        self.batch, self.size = int(given["batch"]), int(given["size"])
        # Test nets draw other pictures than training nets.
        self.generator = np.random.default_rng([given["seed"], self.phase])

    def reshape(self, bottom, top):
        top[0].reshape(self.batch, 3, self.size, self.size)
        top[1].reshape(self.batch, len(NAMES))

    def forward(self, bottom, top):
        for i in range(self.batch):
            top[0].data[i], top[1].data[i] = draw(self.generator, self.size)

    def backward(self, top, propagate_down, bottom):
        """Data have no gradient."""
