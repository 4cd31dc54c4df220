"""Boxes from the grid of cells of a DetectNet: for each cell a coverage and the corners of a box, relative to the cell.

Both layers have two bottoms, coverage (images, classes, rows, columns) and corners (images, 4, rows, columns), and a
top for each class, (images, boxes, 5): left, top, right, bottom and confidence, filled up with zeros. param_str has
their settings, separated by commas.
"""
import numpy as np

from ..._crema import Layer

__all__ = ['ClusterDetections', 'ClusterGroundtruth', 'group_rectangles']


def group_rectangles(rectangles, group_threshold, eps):
    """Groups similar rectangles (left, top, width, height), as OpenCV's groupRectangles: returns the mean of each group
    with more than group_threshold rectangles, and their number. Leaves out a small group inside a large one.

    Rectangles are similar if none of their sides are further apart than eps times the mean of the smaller width and the
    smaller height.
    """
    boxes = np.asarray(rectangles, dtype=int).reshape(-1, 4)
    if group_threshold <= 0 or len(boxes) == 0:
        return boxes, np.ones(len(boxes), dtype=int)
    groups = _groups(boxes, eps)
    kept = []
    for group in range(groups.max() + 1):
        members = boxes[groups == group]
        if len(members) > group_threshold:
            mean = members.sum(axis=0).astype(np.float32) * (np.float32(1) / np.float32(len(members)))
            kept.append((np.rint(mean).astype(int), len(members)))
    result = [(box, count) for i, (box, count) in enumerate(kept)
              if not any(i != j and _inside(box, count, *other, eps) for j, other in enumerate(kept))]
    return np.array([box for box, _ in result], dtype=int).reshape(-1, 4), np.array([count for _, count in result], int)


def _groups(boxes, eps):
    """The number of each box's group; similar boxes are linked into groups."""
    sides = np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)
    delta = eps * 0.5 * np.minimum(boxes[:, None, 2:], boxes[None, :, 2:]).sum(axis=2)
    similar = (np.abs(sides[:, None] - sides[None]) <= delta[..., None]).all(axis=2)
    groups = np.full(len(boxes), -1)
    for first in range(len(boxes)):
        if groups[first] >= 0:
            continue
        number, found = groups.max() + 1, [first]
        groups[first] = number
        while found:
            linked = np.flatnonzero(similar[found.pop()] & (groups < 0))
            groups[linked] = number
            found.extend(linked)
    return groups


def _inside(box, count, other, others, eps):
    """Whether a group is inside another one with more members."""
    if others <= max(3, count) and count >= 3:
        return False
    margin = np.rint(other[2:] * eps).astype(int)
    return bool((box[:2] >= other[:2] - margin).all() and
                (box[:2] + box[2:] <= other[:2] + other[2:] + margin).all())


def _settings(layer, kinds):
    words = layer.param_str.split(',')
    least = len([kind for kind in kinds if kind[2] is None])
    try:
        values = [kind(word) for (_, kind, _), word in zip(kinds, words)]
    except ValueError as error:
        raise ValueError(f'param_str {layer.param_str!r}: {error}') from error
    if not least <= len(words) <= len(kinds):
        raise ValueError(f'param_str {layer.param_str!r} has {len(words)} values; it takes '
                         f'{", ".join(name for name, _, _ in kinds)}, of which the first {least} are needed')
    for (name, _, default), value in zip(kinds, values + [default for _, _, default in kinds[len(words):]]):
        setattr(layer, name, value)


class _Cluster(Layer):
    def reshape(self, bottom, top):
        images, classes = bottom[0].shape[:2]
        if classes != self.num_classes or len(top) != classes:
            raise ValueError(f'param_str says {self.num_classes} classes, the coverage {bottom[0].shape} has '
                             f'{classes}, and there are {len(top)} tops: these must be equal')
        for blob in top:
            blob.reshape(images, self.max_boxes, 5)

    def forward(self, bottom, top):
        coverage, corners = bottom[0].data, bottom[1].data
        for number, blob in enumerate(top):
            blob.data[...] = 0
            for image in range(len(coverage)):
                found = self.boxes(self.candidates(coverage[image, number], corners[image]))[:self.max_boxes]
                if len(found):
                    # The originals round boxes to half precision.
                    blob.data[image, :len(found)] = np.asarray(found, dtype=np.float16)

    def backward(self, top, propagate_down, bottom):
        pass

    def candidates(self, coverage, corners):
        """The boxes, in image pixels, of cells with enough coverage."""
        rows, columns = self.image_size_y // self.stride, self.image_size_x // self.stride
        y, x = np.nonzero(self.covered(coverage[:rows, :columns]))
        # The size of a cell in whole pixels, as Python 2 divided.
        offset = np.stack([x * (self.image_size_x // columns), y * (self.image_size_y // rows)] * 2)
        return (corners[:, y, x] + offset).T


class ClusterGroundtruth(_Cluster):
    """The boxes of the labels, each once. param_str: image width and height, stride, [classes = 1, boxes = 50]."""

    def setup(self, bottom, top):
        _settings(self, [('image_size_x', int, None), ('image_size_y', int, None), ('stride', int, None),
                         ('num_classes', int, 1), ('max_boxes', int, 50)])

    def covered(self, coverage):
        return coverage > 0

    def boxes(self, candidates):
        return [[*box, 0] for box in dict.fromkeys(map(tuple, candidates))]


class ClusterDetections(_Cluster):
    """The boxes that groups of cells agree on; the confidence is the logarithm of their number. param_str: image width
    and height, stride, least coverage, group_threshold and eps of group_rectangles(), least height of a box, [classes =
    1, boxes = 50].
    """

    def setup(self, bottom, top):
        _settings(self, [('image_size_x', int, None), ('image_size_y', int, None), ('stride', int, None),
                         ('gridbox_cvg_threshold', float, None), ('gridbox_rect_thresh', int, None),
                         ('gridbox_rect_eps', float, None), ('min_height', int, None), ('num_classes', int, 1),
                         ('max_boxes', int, 50)])

    def covered(self, coverage):
        return coverage >= self.gridbox_cvg_threshold

    def boxes(self, candidates):
        if not candidates.any():
            return []
        # The originals give OpenCV the right and the bottom side as width and height, in whole pixels.
        boxes, counts = group_rectangles(candidates, self.gridbox_rect_thresh, self.gridbox_rect_eps)
        return [[*box, np.log(count)] for box, count in zip(boxes, counts) if box[3] - box[1] >= self.min_height]
