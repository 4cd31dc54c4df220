"""Scores the boxes of a DetectNet: which were found, and precision and recall in percent."""
import numpy as np

from ..._crema import Layer

__all__ = ['ScoreDetections', 'mAP']

_MAX_BOXES = 50
_FOUND, _WRONG, _MISSED = 1, 2, 3


def _overlap(a, b):
    """The intersection over union of two boxes."""
    width, height = np.minimum(a[2:4], b[2:4]) - np.maximum(a[:2], b[:2])
    if width <= 0 or height <= 0:
        return 0
    area = width * height
    return area / (np.prod(a[2:4] - a[:2]) + np.prod(b[2:4] - b[:2]) - area)


class ScoreDetections(Layer):
    """Bottoms: the true boxes, and those that were found, each (images, boxes, 5). Top: (images, 50, 5), corners and 1
    for a correct detection, 2 for a false one, 3 for a missed true box. param_str: the least overlap,
    0.7 if it is empty.
    """

    def setup(self, bottom, top):
        self.iou_threshold = float(self.param_str or 0.7)

    def reshape(self, bottom, top):
        if bottom[0].shape[0] != bottom[1].shape[0]:
            raise ValueError(f'the bottoms have {bottom[0].shape[0]} and {bottom[1].shape[0]} images')
        top[0].reshape(bottom[0].shape[0], _MAX_BOXES, 5)

    def forward(self, bottom, top):
        top[0].data[...] = 0
        for image, (truth, found) in enumerate(zip(bottom[0].data, bottom[1].data)):
            rows = self.scored(truth[truth[:, :4].any(axis=1), :4], found[found[:, :4].any(axis=1), :4])[:_MAX_BOXES]
            top[0].data[image, :len(rows)] = rows

    def backward(self, top, propagate_down, bottom):
        pass

    def scored(self, truth, found):
        taken, missed = set(), []
        for box in truth:
            match = next((j for j, other in enumerate(found)
                          if j not in taken and _overlap(other, box) >= self.iou_threshold), None)
            missed.append(box) if match is None else taken.add(match)
        right = [[*box, _FOUND] for j, box in enumerate(found) if j in taken]
        wrong = [[*box, _WRONG] for j, box in enumerate(found) if j not in taken]
        return np.array(right + wrong + [[*box, _MISSED] for box in missed]).reshape(-1, 5)


class mAP(Layer):
    """Bottom: that of ScoreDetections. Tops: precision times recall, precision, recall; all in percent."""

    def setup(self, bottom, top):
        pass

    def reshape(self, bottom, top):
        for blob in top:
            blob.reshape(1)

    def forward(self, bottom, top):
        found, wrong, missed = (int((bottom[0].data[:, :, 4] == kind).sum()) for kind in (_FOUND, _WRONG, _MISSED))
        precision = 100 * found / (found + wrong) if found else 0
        recall = 100 * found / (found + missed) if found else 0
        for blob, value in zip(top, (precision * recall / 100, precision, recall)):
            blob.data[...] = value

    def backward(self, top, propagate_down, bottom):
        pass
