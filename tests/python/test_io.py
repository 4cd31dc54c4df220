"""crema.io: messages, images and what a net's input needs."""
import io
import sys
import warnings

import numpy as np
import pytest
from PIL import Image

import crema
from crema import learn_inputs, preparation
from crema.io import caffe_pb2


def random(*shape, seed=0):
    return np.random.default_rng(seed).random(shape).astype(np.float32)


# Messages.

@pytest.mark.parametrize('shape', [(), (3,), (2, 3), (2, 3, 4, 5), (1, 2, 3, 4, 5)])
def test_blobproto(shape):
    values, gradients = random(*shape), random(*shape, seed=1)
    blob = crema.io.array_to_blobproto(values, gradients)
    assert tuple(blob.shape.dim) == shape
    np.testing.assert_array_equal(crema.io.blobproto_to_array(blob), values)
    np.testing.assert_array_equal(crema.io.blobproto_to_array(blob, return_diff=True), gradients)


def test_blobproto_has_what_its_lists_have():
    values = random(3, 5)
    blob = crema.io.array_to_blobproto(values[:, ::2], values[:, ::-2])
    assert list(blob.data) == values[:, ::2].ravel().tolist() and list(blob.diff) == values[:, ::-2].ravel().tolist()
    blob.num = 300  # other fields around them, as old files have
    blob.channels = blob.height = blob.width = 1
    blob.ClearField('data')
    blob.data.extend(range(300))
    np.testing.assert_array_equal(crema.io.blobproto_to_array(blob).ravel(), np.arange(300))
    blob.double_diff.extend([0.1] * 300)
    blob.ClearField('diff')
    assert (crema.io.blobproto_to_array(blob, return_diff=True) == 0.1).all()
    for lists in (np.arange(3), [1, 2, 3], np.arange(3, dtype=np.uint8)):
        assert len(crema.io.array_to_blobproto(lists).data) == 3


def test_blobproto_of_old_files_and_doubles():
    old = caffe_pb2.BlobProto(num=1, channels=2, height=1, width=3, data=range(6))
    assert crema.io.blobproto_to_array(old).shape == (1, 2, 1, 3)
    double = caffe_pb2.BlobProto(shape=caffe_pb2.BlobShape(dim=[2]), double_data=[1 / 3, 2])
    assert crema.io.blobproto_to_array(double)[0] == 1 / 3


def test_blobproto_errors():
    with pytest.raises(ValueError, match='6 values'):
        crema.io.blobproto_to_array(caffe_pb2.BlobProto(shape=caffe_pb2.BlobShape(dim=[5]), data=range(6)))
    with pytest.raises(ValueError, match='gradients'):
        crema.io.array_to_blobproto(np.zeros(3), np.zeros(4))


def test_blobprotovector():
    arrays = [random(2, 3), random(4)]
    data = crema.io.arraylist_to_blobprotovector_str(arrays)
    assert isinstance(data, bytes)
    for found, expected in zip(crema.io.blobprotovector_str_to_arraylist(data), arrays):
        np.testing.assert_array_equal(found, expected)
    assert crema.io.arraylist_to_blobprotovecor_str is crema.io.arraylist_to_blobprotovector_str


@pytest.mark.parametrize('dtype', [np.uint8, np.float32, np.float64, np.int32, bool])
def test_datum(dtype):
    values = (random(3, 4, 5) * 200).astype(dtype)
    datum = crema.io.array_to_datum(values[:, ::-1], label=7)
    assert datum.label == 7 and bool(datum.data) == (dtype is np.uint8)
    found = crema.io.datum_to_array(datum)
    np.testing.assert_array_equal(found, values[:, ::-1])
    found[0, 0, 0] = 1  # a copy, which may be changed
    assert not crema.io.array_to_datum(values).HasField('label')


def test_encoded_datum():
    pixels = (random(4, 5, 3) * 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, 'PNG')
    datum = caffe_pb2.Datum(encoded=True, data=file.getvalue())
    np.testing.assert_array_equal(crema.io.datum_to_array(datum), pixels[:, :, ::-1].transpose(2, 0, 1))


def test_datum_errors():
    with pytest.raises(ValueError, match='Incorrect array shape'):
        crema.io.array_to_datum(np.zeros((2, 2)))
    with pytest.raises(ValueError, match='3 values'):
        crema.io.datum_to_array(caffe_pb2.Datum(channels=1, height=2, width=2, data=b'abc'))


def test_load_mean(tmp_path):
    mean = random(3, 4, 5)
    np.save(tmp_path / 'mean.npy', mean)
    (tmp_path / 'mean.binaryproto').write_bytes(crema.io.array_to_blobproto(mean[np.newaxis]).SerializeToString())
    for name in ('mean.npy', 'mean.binaryproto'):
        np.testing.assert_array_equal(crema.io.load_mean(tmp_path / name), mean)


# Images.

# Mode of the file -> (shape as colour, shape as grey).
@pytest.mark.parametrize('mode', ['RGB', 'RGBA', 'L', 'LA', 'P', '1', 'CMYK', 'I;16'])
def test_load_image(tmp_path, mode):
    pixels = (random(6, 8, 3) * 255).astype(np.uint8)
    if mode == 'I;16':
        image = Image.fromarray((random(6, 8) * 65535).astype(np.uint16))
    else:
        image = Image.fromarray(pixels).convert(mode)
    path = tmp_path / ('image.tif' if mode == 'CMYK' else 'image.png')
    image.save(path)
    colour, grey = crema.io.load_image(path), crema.io.load_image(str(path), color=False)
    assert colour.shape == (6, 8, 3) and grey.shape == (6, 8, 1)
    assert colour.dtype == grey.dtype == np.float32
    assert 0 <= colour.min() and 0.5 < colour.max() <= 1
    if mode in ('RGB', 'RGBA'):
        np.testing.assert_allclose(colour, pixels / 255, atol=1e-7)
        np.testing.assert_allclose(grey[:, :, 0], colour @ [0.2125, 0.7154, 0.0721], atol=1e-6)
    elif mode == 'I;16':
        np.testing.assert_allclose(grey, random(6, 8)[:, :, np.newaxis], atol=2e-5)
    elif mode in ('L', 'LA', '1'):
        np.testing.assert_array_equal(colour[:, :, 0], grey[:, :, 0])
        np.testing.assert_allclose(grey[:, :, 0], np.array(image.convert('L')) / 255, atol=1e-7)


def test_load_image_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        crema.io.load_image(tmp_path / 'none.png')
    (tmp_path / 'broken.png').write_bytes(b'not an image')
    with pytest.raises(OSError, match='broken.png'):
        crema.io.load_image(tmp_path / 'broken.png')


def test_load_image_without_pillow(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, 'PIL', None)
    with pytest.raises(ImportError, match='Pillow'):
        crema.io.load_image(tmp_path / 'image.png')


def pixel_by_pixel(image, size):
    """Linear interpolation between the centres of pixels, with the least value around the image, written as the
    formula says."""
    least = image.min()
    around = np.pad(image.astype(float), ((1, 1), (1, 1), (0, 0)), constant_values=least)
    result = np.empty((*size, image.shape[2]))
    for y in range(size[0]):
        for x in range(size[1]):
            v = (y + 0.5) * image.shape[0] / size[0] + 0.5
            u = (x + 0.5) * image.shape[1] / size[1] + 0.5
            i, j = int(v), int(u)
            a, b = v - i, u - j
            upper = (1 - b) * around[i, j] + b * around[i, j + 1]
            lower = (1 - b) * around[i + 1, j] + b * around[i + 1, j + 1]
            result[y, x] = (1 - a) * upper + a * lower
    return result


@pytest.mark.parametrize('channels', [1, 3])
@pytest.mark.parametrize('old, new', [((5, 7), (11, 3)), ((6, 4), (6, 9)), ((1, 5), (4, 4)), ((9, 9), (1, 1)),
                                      ((4, 4), (4, 4))])
def test_resize_image(old, new, channels):
    image = random(*old, channels) * 200 - 50
    found = crema.io.resize_image(image, new)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, pixel_by_pixel(image, new), rtol=1e-5, atol=1e-4)


def test_resize_many_channels_from_corner_to_corner():
    image = random(4, 6, 5)
    found = crema.io.resize_image(image, (7, 11))
    assert found.shape == (7, 11, 5)
    np.testing.assert_allclose(found[::2, ::2], image, atol=1e-6)
    np.testing.assert_allclose(found[1, ::2], (image[0] + image[1]) / 2, atol=1e-6)
    assert crema.io.resize_image(image, (1, 1), 0).shape == (1, 1, 5)


@pytest.mark.parametrize('channels', [3, 5])
def test_resize_to_nearest(channels):
    image = random(3, 2, channels)
    assert np.isin(crema.io.resize_image(image, (8, 9), 0), image).all()
    np.testing.assert_array_equal(crema.io.resize_image(image, (3, 2), 0), image)


def test_resize_with_splines():
    pytest.importorskip('scipy')
    for channels in (3, 2):
        ramp = np.tile(np.arange(9.0)[:, np.newaxis, np.newaxis], (1, 5, channels))
        found = crema.io.resize_image(ramp, (17, 5), interp_order=3)
        assert found.shape == (17, 5, channels) and found.dtype == np.float32
        assert (np.diff(found[3:-3, 2, 0]) > 0).all() and 3.5 < found[8, 2, 0] < 4.5


def test_resize_constant_and_errors():
    np.testing.assert_array_equal(crema.io.resize_image(np.full((2, 3, 3), 7.0), (5, 4)),
                                  np.full((5, 4, 3), 7, np.float32))
    for image, size in ((np.zeros((4, 4)), (2, 2)), (np.zeros((0, 4, 3)), (2, 2)), (np.zeros((4, 4, 3)), (0, 2))):
        with pytest.raises(ValueError, match='resize_image'):
            crema.io.resize_image(image, size)


def test_oversample():
    images = [random(7, 9, 3), random(7, 9, 3, seed=1)]
    crops = crema.io.oversample(images, (4, 5))
    assert crops.shape == (20, 4, 5, 3) and crops.dtype == np.float32
    for number, image in enumerate(images):
        ten = crops[10 * number:10 * number + 10]
        corners = [image[:4, :5], image[:4, 4:], image[3:, :5], image[3:, 4:], image[1:5, 2:7]]
        for found, mirrored, expected in zip(ten[:5], ten[5:], corners):
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(mirrored, expected[:, ::-1])
    with pytest.raises(ValueError, match='8 x 5'):
        crema.io.oversample(images, np.array([8, 5]))


# Transformer.

@pytest.fixture
def transformer():
    result = crema.io.Transformer({'data': (10, 3, 6, 8)})
    result.set_transpose('data', (2, 0, 1))
    result.set_channel_swap('data', (2, 1, 0))
    result.set_raw_scale('data', 255)
    result.set_mean('data', np.array([104.0, 117.0, 123.0]))
    result.set_input_scale('data', 0.5)
    return result


def test_preprocess(transformer):
    image = random(6, 8, 3)
    before = image.copy()
    found = transformer.preprocess('data', image)
    assert found.shape == (3, 6, 8) and found.dtype == np.float32
    for channel, mean in enumerate((104, 117, 123)):
        np.testing.assert_allclose(found[channel], (image[:, :, 2 - channel] * 255 - mean) / 2, atol=1e-4)
    np.testing.assert_array_equal(image, before)
    np.testing.assert_allclose(transformer.deprocess('data', found), image, atol=1e-6)
    np.testing.assert_allclose(transformer.deprocess('data', found[np.newaxis]), image, atol=1e-6)


def test_preprocess_resizes_and_takes_any_array(transformer):
    image = random(12, 5, 3)
    expected = transformer.preprocess('data', crema.io.resize_image(image, (6, 8)))
    np.testing.assert_allclose(transformer.preprocess('data', image.astype(float)), expected, atol=1e-3)
    np.testing.assert_allclose(transformer.preprocess('data', image.tolist()), expected, atol=1e-3)


def test_preprocess_without_settings():
    plain = crema.io.Transformer({'data': (1, 8, 6, 3)})
    image = np.arange(8 * 6 * 3, dtype=np.uint8).reshape(8, 6, 3)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        found = crema.io.Transformer({'data': [1, 3, 8, 6]}).preprocess('data', image)
    np.testing.assert_array_equal(found, image)
    assert plain.preprocess('data', image).shape == (6, 3, 3)


def test_permutation_that_is_not_its_own_inverse():
    transformer = crema.io.Transformer({'data': (1, 4, 5, 6)})
    transformer.set_transpose('data', (2, 0, 1))
    transformer.set_channel_swap('data', (1, 2, 3, 0))
    image = random(5, 6, 4)
    np.testing.assert_array_equal(transformer.deprocess('data', transformer.preprocess('data', image)), image)


def test_mean_image_is_resized(transformer):
    mean = np.tile(np.arange(3.0)[:, np.newaxis, np.newaxis], (1, 20, 30)) + 1
    transformer.set_mean('data', mean)
    assert transformer.mean['data'].shape == (3, 6, 8)
    transformer.set_mean('data', np.ones((6, 8)))
    assert transformer.mean['data'].shape == (1, 6, 8) or transformer.mean['data'].shape == (3, 6, 8)


@pytest.mark.parametrize('call, reason', [
    (lambda t: t.preprocess('other', np.zeros((6, 8, 3))), 'other is not one of the net inputs'),
    (lambda t: t.set_transpose('data', (1, 0)), 'same number of dimensions'),
    (lambda t: t.set_channel_swap('data', (1, 0)), 'same number of dimensions'),
    (lambda t: t.set_mean('data', np.zeros(2)), 'Mean channels incompatible'),
    (lambda t: t.set_mean('data', np.zeros((1, 3, 6, 8))), 'Mean shape invalid'),
    (lambda t: t.set_mean('data', np.zeros((2, 6, 8))), 'Mean shape incompatible'),
])
def test_transformer_errors(transformer, call, reason):
    with pytest.raises(ValueError, match=reason):
        call(transformer)


# Of scikit-image's resize, version 0.12, which Caffe's io imported: the centres of pixels, 0 beyond the border.
@pytest.mark.parametrize('image, shape, options, expected', [
    ([[0., 4.]], (1, 4), {}, [[0, 1, 3, 3]]),
    ([[0., 4.]], (1, 4), {'mode': 'edge'}, [[0, 1, 3, 4]]),
    ([[0., 4.]], (1, 4), {'order': 0}, [[0, 0, 4, 4]]),
    ([[2., 4.]], (1, 4), {'clip': False}, [[1.5, 2.5, 3.5, 3]]),
    ([[1., 3., 5., 7.]], (1, 2), {}, [[2, 6]]),
    (np.array([[0, 255]], np.uint8), (1, 2), {}, [[0, 1]]),
    (np.array([[0, 255]], np.uint8), (1, 2), {'preserve_range': True}, [[0, 255]]),
    (np.ones((2, 3, 3)), (4, 6), {'mode': 'edge'}, np.ones((4, 6, 3))),
    (np.ones((2, 3, 3)), (4, 6, 1), {'mode': 'edge'}, np.ones((4, 6, 1))),
])
def test_resize(image, shape, options, expected):
    found = crema.io.resize(image, shape, **options)
    np.testing.assert_allclose(found, expected)
    assert found.dtype == np.float64


@pytest.mark.parametrize('shape, options', [((2, 2, 2, 2), {}), ((0, 2), {}), ((2, 2), {'order': 3})])
def test_resize_refuses(shape, options):
    with pytest.raises(ValueError, match='resize: '):
        crema.io.resize(np.ones((4, 4)), shape, **options)


@pytest.mark.parametrize('arguments, expected', [
    ((), [[[3, 4, 5], [0, 1, 2]]]),
    ((1, True), [[[-2, 4, 5], [1, 1, 2]]]),
    ((0,), [[[0, 1, 2], [3, 4, 5]]]),
])
def test_flip_image(arguments, expected):
    image = np.arange(6.).reshape(1, 2, 3)
    assert crema.io.flip_image(image, *arguments).tolist() == expected
    assert image[0, 0, 0] == 0


@pytest.mark.parametrize('read', [
    crema.io.load_mean, lambda number: learn_inputs.read_mean(number, (1,)),
    lambda number: preparation.read_preparation(number),
    lambda number: crema.draw.draw_net_to_file(crema.proto.caffe_pb2.NetParameter(), number)])
def test_a_number_is_no_path(read, tmp_path):
    """Python's open() would take it for an open file's, and close that."""
    with open(tmp_path / 'mine', 'w') as file:
        with pytest.raises(TypeError):
            read(file.fileno())
        file.write('open')
