"""crema.Blob: alone, and as what a net shows of its memory."""
import gc

import numpy as np
import pytest

import crema

NET = """name: "small"
layer { name: "in" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 4 dim: 5 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 6
  weight_filler { type: "gaussian" std: 1 } } }
"""


@pytest.fixture
def net(tmp_path):
    path = tmp_path / 'net.prototxt'
    path.write_text(NET)
    return crema.Net(str(path), crema.TEST)


@pytest.mark.parametrize('shape', [[], [3], (1, 2, 3), range(2, 6), np.array([4, 5]), (n for n in (2, 2)), (0, 3)])
def test_alone(shape):
    shape = list(shape)
    blob = crema.Blob(iter(shape))
    assert blob.shape == tuple(shape) and blob.count == np.prod(shape)
    for array in (blob.data, blob.diff):
        assert array.shape == tuple(shape) and array.dtype == np.float32 and not array.any()
    values = np.random.default_rng(0).normal(size=shape)
    blob.data[...] = values
    np.testing.assert_array_equal(blob.data, values.astype(np.float32))
    assert not blob.diff.any()


@pytest.mark.parametrize('shape, error', [([2, -1], crema.Error), ('ab', TypeError), ([1.5], TypeError),
                                          (5, TypeError), ([1] * 40, crema.Error), ([1 << 40, 1 << 40], crema.Error),
                                          (None, TypeError)])
def test_shapes_that_are_none(shape, error):
    with pytest.raises(error):
        crema.Blob(shape)
    blob = crema.Blob([2, 2])
    with pytest.raises(error):
        blob.reshape(shape) if isinstance(shape, (str, list)) else blob.reshape(1.5 if shape == 5 else shape)
    assert blob.shape == (2, 2)


def test_reshape_alone():
    blob = crema.Blob([2, 3])
    blob.data[...] = np.arange(6).reshape(2, 3)
    view = blob.data
    blob.reshape(3, 2)
    np.testing.assert_array_equal(blob.data, np.arange(6).reshape(3, 2))
    blob.reshape([10, 10])
    assert blob.data.shape == (10, 10)
    del blob
    gc.collect()
    np.testing.assert_array_equal(view, np.arange(6).reshape(2, 3))


@pytest.mark.parametrize('shape, four', [((), (1, 1, 1, 1)), ((7,), (7, 1, 1, 1)), ((2, 3), (2, 3, 1, 1)),
                                         ((2, 3, 4, 5), (2, 3, 4, 5))])
def test_four_axes(shape, four):
    blob = crema.Blob(shape)
    assert (blob.num, blob.channels, blob.height, blob.width) == four


def test_more_than_four_axes():
    with pytest.raises(crema.Error, match='1x2x3x4x5'):
        crema.Blob([1, 2, 3, 4, 5]).num


def test_views_share_memory_with_the_net(net):
    blob = net.blobs['data']
    first, second = blob.data, blob.data
    assert np.shares_memory(first, second) and first.flags.c_contiguous and first.flags.writeable
    first[1, 2] = 5
    assert (second[1, 2] == 5).all() and not second[0].any()
    weights = net.params['ip'][0]
    assert np.shares_memory(weights.data, net.params['ip'][0].data)
    assert not np.shares_memory(weights.data, weights.diff)


@pytest.mark.parametrize('make', [
    lambda shape: np.ones(shape, np.float64), lambda shape: np.ones(shape, np.int8), lambda shape: np.ones(shape, bool),
    lambda shape: np.ones(shape, '>f4'), lambda shape: np.asfortranarray(np.ones(shape, np.float32)),
    lambda shape: np.ones(shape[::-1], np.float16).T, lambda shape: np.ones((*shape[:-1], 2 * shape[-1]))[..., ::2],
    lambda shape: np.ones(shape)[::-1], lambda shape: np.ones(shape).tolist(), lambda shape: 1,
    lambda shape: np.broadcast_to(np.float32(1), shape)])
def test_whatever_numpy_can_assign(net, make):
    blob = net.blobs['data']
    blob.data[...] = make(blob.shape)
    assert (blob.data == 1).all()
    blob.data = 2 * np.asarray(make(blob.shape))
    assert (blob.data == 2).all()
    blob.data *= 3
    assert (blob.data == 6).all()


@pytest.mark.parametrize('value', [np.ones((2, 3, 4, 6)), np.ones(7), 'text', object(), [[1, 2], [3]]])
def test_what_does_not_fit(net, value):
    blob = net.blobs['data']
    blob.data[...] = 4
    with pytest.raises((ValueError, TypeError)):
        blob.data[...] = value
    with pytest.raises((ValueError, TypeError)):
        blob.data = value
    assert (blob.data == 4).all()


def test_numpy_functions_take_blobs(net):
    net.blobs['ip'].data[...] = 3
    blob = net.blobs['ip']
    assert np.asarray(blob).shape == (2, 6) and np.sum(blob) == 36
    assert np.shares_memory(np.asarray(blob), blob.data)
    assert np.array(blob, dtype=np.float64).dtype == np.float64


def test_dlpack(net):
    blob = net.blobs['data']
    assert blob.__dlpack_device__() == (1, 0)
    shared = np.from_dlpack(blob)
    blob.data[...] = 8
    assert shared.shape == blob.shape and (shared == 8).all()
    assert np.shares_memory(crema.from_dlpack(blob.data), blob.data)
    assert np.shares_memory(crema.from_dlpack(blob), blob.data)
    del blob, net
    gc.collect()
    assert (shared == 8).all()


def test_pytorch(net):
    torch = pytest.importorskip('torch')
    blob = net.blobs['data']
    shared = torch.from_dlpack(blob)
    shared.fill_(3)
    assert (blob.data == 3).all()
    blob.data[...] = 4
    assert (shared == 4).all()
    tensor = torch.arange(6.)
    array = crema.from_dlpack(tensor)
    tensor[0] = 9  # not through the array: NumPy 1.24 makes it read-only
    assert array[0] == 9
    net.params['ip'][1].data[...] = tensor
    assert net.params['ip'][1].data.tolist() == [9, 1, 2, 3, 4, 5]


def test_jax(net):
    jax = pytest.importorskip('jax')
    blob = net.blobs['data']
    blob.data[...] = np.arange(120).reshape(2, 3, 4, 5)
    with jax.default_device(jax.devices('cpu')[0]):
        taken = jax.dlpack.from_dlpack(blob)
        assert np.array_equal(taken, np.arange(120).reshape(2, 3, 4, 5))
        blob.data[...] = crema.from_dlpack(jax.numpy.full((2, 3, 4, 5), 7.0))
    assert (blob.data == 7).all()


def test_text(net):
    assert repr(net.blobs['data']) == '<Blob "data" (2, 3, 4, 5)>'
    assert repr(net.params['ip'][1]) == '<Blob "ip[1]" (6,)>'
    assert repr(crema.Blob([4])) == '<Blob (4,)>'


def test_a_blob_of_a_cpu_has_no_gpu_pointer(net):
    for blob in (net.blobs['data'], net.params['ip'][0], crema.Blob([2])):
        with pytest.raises(crema.Error, match='not on a GPU'):
            blob._gpu_data_ptr


@pytest.mark.parametrize('phase', ['', 'TRAIN', 'TEST'])
def test_layers_without_a_net(phase):
    """caffe.create_layer of branches with an extended Python interface."""
    from crema.proto import caffe_pb2
    message = caffe_pb2.LayerParameter(type='InnerProduct', name='ip')
    message.inner_product_param.num_output = 2
    message.inner_product_param.weight_filler.type = 'xavier'
    if phase:
        message.phase = caffe_pb2.Phase.Value(phase)
    layer = crema.create_layer(message)
    with pytest.raises(RuntimeError, match='SetUp'):
        layer.Reshape([], [])
    bottom, top = [crema.Blob((4, 3))], [crema.Blob([])]
    layer.SetUp(bottom, top)
    assert layer.type == 'InnerProduct' and top[0].shape == (4, 2) and len(layer.blobs) == 2
    for count in (4, 6):
        bottom[0].reshape(count, 3)
        bottom[0].data[...] = np.arange(count * 3).reshape(count, 3)
        layer.blobs[1].data[...] = [1, 2]
        layer.Forward(bottom, top)
        weights = layer.blobs[0].data
        np.testing.assert_allclose(top[0].data, bottom[0].data @ weights.T + [1, 2], rtol=1e-4, atol=1e-4)
        top[0].diff[...] = np.arange(count * 2).reshape(count, 2)
        layer.Backward(top, [True], bottom)
        np.testing.assert_allclose(bottom[0].diff, top[0].diff @ weights, rtol=1e-4, atol=1e-4)
    with pytest.raises(TypeError, match='LayerParameter'):
        crema.create_layer('ip')
