"""DetectNet's layers in Python, caffe.layers.detectnet; groups of rectangles as OpenCV 4.10 makes them."""
import numpy as np
import pytest

import crema
from crema.layers.detectnet.clustering import group_rectangles

LAYER = """layer {{ name: "{0}" type: "Python" {1}
  python_param {{ module: "caffe.layers.detectnet.{2}" layer: "{3}" param_str: "{4}" }} }}
"""


def net_of(tmp_path, inputs, module, kind, param_str, tops):
    text = ''
    for name, array in inputs.items():
        extents = ' '.join(f'dim: {extent}' for extent in array.shape)
        text += f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ {extents} }} }} }}\n'
    blobs = ' '.join([*(f'bottom: "{name}"' for name in inputs), *(f'top: "{name}"' for name in tops)])
    (tmp_path / 'net.prototxt').write_text(text + LAYER.format('layer', blobs, module, kind, param_str))
    net = crema.Net(str(tmp_path / 'net.prototxt'), crema.TEST)
    for name, array in inputs.items():
        net.blobs[name].data[...] = array
    return net


# A cell of 16 pixels in an image of 64 x 48; corners are relative to the cell.
def grid(boxes, classes=1):
    """{(class, row, column): (coverage, left, top, right, bottom)}, the corners in pixels of the image."""
    coverage, corners = np.zeros((1, classes, 3, 4)), np.zeros((1, 4, 3, 4))
    for (number, y, x), (value, *box) in boxes.items():
        coverage[0, number, y, x] = value
        corners[0, :, y, x] = np.subtract(box, [16 * x, 16 * y] * 2)
    return {'coverage': coverage, 'bbox': corners}


@pytest.mark.parametrize('kind, param_str, boxes, classes, expected', [
    ('ClusterGroundtruth', '64,48,16,2,4', {(0, 1, 1): (1, 3, 4, 30, 40), (0, 1, 2): (1, 3, 4, 30, 40),
                                            (1, 0, 0): (1, 1, 2, 9, 9)}, 2,
     [[[3, 4, 30, 40, 0]], [[1, 2, 9, 9, 0]]]),
    ('ClusterDetections', '64,48,16,0.5,1,0.2,10', {(0, 1, 1): (0.9, 3, 4, 30, 40), (0, 1, 2): (0.6, 5, 4, 30, 40),
                                                    (0, 2, 2): (0.4, 5, 4, 30, 40)}, 1,
     [[[4, 4, 30, 40, np.log(2)]]]),
    ('ClusterDetections', '64,48,16,0.5,1,0.2,37', {(0, 1, 1): (0.9, 3, 4, 30, 40), (0, 1, 2): (0.6, 5, 4, 30, 40)}, 1,
     [[]]),
    ('ClusterDetections', '64,48,16,0.5,2,0.2,1', {(0, 1, 1): (0.9, 3, 4, 30, 40), (0, 1, 2): (0.6, 5, 4, 30, 40)}, 1,
     [[]]),
])
def test_boxes_of_a_grid(tmp_path, kind, param_str, boxes, classes, expected):
    tops = [f'boxes{i}' for i in range(classes)]
    found = net_of(tmp_path, grid(boxes, classes), 'clustering', kind, param_str, tops).forward()
    for top, rows in zip(tops, expected):
        most = int(param_str.split(',')[4]) if kind == 'ClusterGroundtruth' else 50
        wanted = np.zeros((1, most, 5))
        wanted[0, :len(rows)] = np.reshape(rows, (-1, 5))
        np.testing.assert_allclose(found[top], wanted, rtol=1e-3)


@pytest.mark.parametrize('param_str, message', [('64,48,16,3', 'param_str says 3 classes'),
                                                ('64,48', 'the first 3 are needed'),
                                                ('64,48,wide', 'invalid literal')])
def test_settings_that_do_not_fit(tmp_path, param_str, message):
    with pytest.raises(crema.Error, match=message):
        net_of(tmp_path, grid({}), 'clustering', 'ClusterGroundtruth', param_str, ['boxes'])


@pytest.mark.parametrize('rectangles, threshold, eps, boxes, counts', [
    ([[10, 10, 20, 20], [11, 10, 20, 21], [50, 50, 5, 5], [10, 9, 20, 20]], 1, 0.2, [[10, 10, 20, 20]], [3]),
    ([[10, 10, 20, 20], [50, 50, 5, 5]], 1, 0.2, [], []),
    ([[10, 10, 20, 20], [50, 50, 5, 5]], 0, 0.2, [[10, 10, 20, 20], [50, 50, 5, 5]], [1, 1]),
    # Two in a group of four that encloses them.
    ([[10, 10, 40, 40]] * 4 + [[20, 20, 5, 5]] * 2, 1, 0.2, [[10, 10, 40, 40]], [4]),
    ([[10, 10, 40, 40]] * 3 + [[20, 20, 5, 5]] * 3, 1, 0.2, [[10, 10, 40, 40], [20, 20, 5, 5]], [3, 3]),
    ([], 1, 0.2, [], []),
])
def test_groups(rectangles, threshold, eps, boxes, counts):
    found, members = group_rectangles(rectangles, threshold, eps)
    assert found.tolist() == boxes and members.tolist() == counts


def test_scores(tmp_path):
    def boxes(*rows):
        array = np.zeros((1, 50, 5))
        array[0, :len(rows), :4] = rows
        return array

    given = {'truth': boxes([0, 0, 10, 10], [20, 20, 30, 30], [40, 40, 50, 50]),
             'found': boxes([0, 0, 10, 9], [0, 0, 10, 10], [41, 40, 51, 50])}
    scored = net_of(tmp_path, given, 'mean_ap', 'ScoreDetections', '0.8', ['scored']).forward()['scored']
    np.testing.assert_array_equal(scored[0, :5], [[0, 0, 10, 9, 1], [41, 40, 51, 50, 1], [0, 0, 10, 10, 2],
                                                  [20, 20, 30, 30, 3], [0, 0, 0, 0, 0]])
    found = net_of(tmp_path, {'scored': scored}, 'mean_ap', 'mAP', '', ['mAP', 'precision', 'recall']).forward()
    np.testing.assert_allclose([float(found[name].item()) for name in ('mAP', 'precision', 'recall')],
                               [400 / 9, 200 / 3, 200 / 3], rtol=1e-6)


def test_nothing_found(tmp_path):
    found = net_of(tmp_path, {'scored': np.zeros((1, 50, 5))}, 'mean_ap', 'mAP', '', ['m', 'p', 'r']).forward()
    assert [float(value.item()) for value in found.values()] == [0, 0, 0]
