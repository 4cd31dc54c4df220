"""crema.coord_map: maps between the coordinates of blobs, against the shapes and pixels that nets make."""
import numpy as np
import pytest

import crema
from crema import layers as L
from crema import params as P
from crema.coord_map import (AxisMismatchException, UndefinedMapException, compose, coord_map, coord_map_from_to, crop,
                             inverse)


def conv(bottom, **fields):
    return L.Convolution(bottom, num_output=2, **fields)


@pytest.fixture
def data():
    return L.Input(shape=dict(dim=[1, 1, 64, 64]))


# A layer's fields -> (scale, shift) of its top against its bottom, by hand.
ROWS = [
    (dict(kernel_size=3), 1, -1),
    (dict(kernel_size=3, pad=1), 1, 0),
    (dict(kernel_size=5, pad=2, stride=4), 1 / 4, 0),
    (dict(kernel_size=3, dilation=2), 1, -2),
    (dict(kernel_size=2, stride=2), 1 / 2, -1 / 4),
    (dict(convolution_param=dict(kernel_size=7, stride=2, pad=3)), 1 / 2, 0),
    (dict(kernel_size=[3, 5], pad=[0, 1], stride=[1, 2]), [1, 1 / 2], [-1, -1 / 2]),
]


@pytest.mark.parametrize('fields, scale, shift', ROWS)
def test_convolution(data, fields, scale, shift):
    axis, found_scale, found_shift = coord_map(conv(data, **fields).fn)
    assert axis == 1
    np.testing.assert_allclose(found_scale, np.ravel(scale))
    np.testing.assert_allclose(found_shift, np.ravel(shift))


@pytest.mark.parametrize('fields, scale, shift', ROWS)
def test_deconvolution_is_the_inverse(data, fields, scale, shift):
    up = coord_map(L.Deconvolution(data, **fields).fn)
    _, found_scale, found_shift = compose(up, coord_map(conv(data, **fields).fn))
    np.testing.assert_allclose(found_scale, 1)
    np.testing.assert_allclose(found_shift, 0, atol=1e-12)


def test_there_and_back(data):
    top = conv(L.ReLU(conv(data, kernel_size=3, stride=2)), kernel_size=5, pad=1, stride=3)
    forth, back = coord_map_from_to(top, data), coord_map_from_to(data, top)
    for found, expected in zip(compose(forth, back)[1:], (1, 0)):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    for found, expected in zip(inverse(forth)[1:], back[1:]):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_branches_meet(data):
    stem = conv(data, kernel_size=3)
    coarse = L.Pooling(stem, kernel_size=2, stride=2)
    up = L.Deconvolution(coarse, convolution_param=dict(kernel_size=4, stride=2))
    axis, scale, shift = coord_map_from_to(up, stem)
    assert (axis, scale, shift) == (1, 1, -1)
    merged = L.Eltwise(crop(up, stem), stem)
    assert coord_map_from_to(merged, stem)[1] == 1


def test_crop_layer(data):
    up = L.Deconvolution(L.Pooling(conv(data, kernel_size=3, pad=20), kernel_size=2, stride=2),
                         convolution_param=dict(kernel_size=4, stride=2))
    layer = crop(up, data).fn
    assert layer.type_name == 'Crop' and layer.inputs == (up, data)
    assert layer.params == {'crop_param': {'axis': 2, 'offset': [20]}}
    message = crop(up, data).to_proto().layer[-1]
    assert list(message.crop_param.offset) == [20] and message.crop_param.axis == 2
    again = crop(L.Crop(up, data, axis=2, offset=7), data).fn
    assert again.params['crop_param']['offset'] == [13]


def test_errors(data):
    flat = L.InnerProduct(data, num_output=2)
    with pytest.raises(RuntimeError, match='spatial'):
        coord_map_from_to(flat, data)
    with pytest.raises(UndefinedMapException, match='InnerProduct'):
        coord_map(flat.fn)
    with pytest.raises(AssertionError, match='kernel_h'):
        coord_map(conv(data, kernel_h=3, kernel_w=3).fn)
    with pytest.raises(AxisMismatchException, match='1 and 2'):
        compose((1, 1, 0), (2, 1, 0))
    half = L.Pooling(data, kernel_size=2, stride=2)
    with pytest.raises(AssertionError, match='scale'):
        crop(half, data)
    with pytest.raises(AssertionError, match='negative'):
        crop(conv(data, kernel_size=3), data)
    with pytest.raises(AssertionError, match='noninteger'):
        crop(conv(data, kernel_size=2, pad=2), data)


def fcn8s(side):
    """The geometry of FCN-8s, with few channels."""
    n = crema.NetSpec()
    n.data = L.Input(shape=dict(dim=[1, 3, side, side]))
    bottom = n.data
    for stage, convolutions in enumerate((2, 2, 3, 3, 3), 1):
        for number in range(convolutions):
            first = stage == 1 and number == 0
            bottom = L.ReLU(L.Convolution(bottom, num_output=2, kernel_size=3, pad=100 if first else 1), in_place=True)
        n[f'pool{stage}'] = bottom = L.Pooling(bottom, pool=P.Pooling.MAX, kernel_size=2, stride=2)
    fc6 = L.ReLU(L.Convolution(bottom, num_output=2, kernel_size=7, pad=0), in_place=True)
    fc7 = L.Dropout(L.Convolution(fc6, num_output=2, kernel_size=1, pad=0), in_place=True)
    n.score_fr = L.Convolution(fc7, num_output=3, kernel_size=1, pad=0)

    def up(top, kernel, stride):
        return L.Deconvolution(top,
                               convolution_param=dict(num_output=3, kernel_size=kernel, stride=stride, bias_term=False))

    n.upscore2 = up(n.score_fr, 4, 2)
    n.score_pool4c = crop(L.Convolution(n.pool4, num_output=3, kernel_size=1, pad=0), n.upscore2)
    n.fuse_pool4 = L.Eltwise(n.upscore2, n.score_pool4c, operation=P.Eltwise.SUM)
    n.upscore_pool4 = up(n.fuse_pool4, 4, 2)
    n.score_pool3c = crop(L.Convolution(n.pool3, num_output=3, kernel_size=1, pad=0), n.upscore_pool4)
    n.fuse_pool3 = L.Eltwise(n.upscore_pool4, n.score_pool3c, operation=P.Eltwise.SUM)
    n.score = crop(up(n.fuse_pool3, 16, 8), n.data)
    return n


def test_offsets_of_fcn8s(tmp_path):
    """The published nets of FCN-8s crop by 5, 9 and 31."""
    message = fcn8s(33).to_proto()
    crops = [layer.crop_param for layer in message.layer if layer.type == 'Crop']
    assert [list(param.offset) for param in crops] == [[5], [9], [31]]
    assert {param.axis for param in crops} == {2}
    (tmp_path / 'fcn.prototxt').write_text(str(message))
    net = crema.Net(str(tmp_path / 'fcn.prototxt'), crema.TEST)
    assert net.forward()['score'].shape == (1, 3, 33, 33)
