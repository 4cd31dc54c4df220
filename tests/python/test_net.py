"""crema.Net: opening, passes, parts of passes, gradients, weights, reshaping, callbacks, threads, mistakes."""
import gc
import os
import pathlib
import threading
import time

import numpy as np
import pytest

import crema

CHAIN = """name: "chain"
layer { name: "in" type: "Input" top: "data" top: "target"
  input_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 } } }
layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1" inner_product_param { num_output: 5
  weight_filler { type: "gaussian" std: 1 } bias_filler { type: "gaussian" std: 1 } } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" relu_param { negative_slope: 0.5 } }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2" inner_product_param { num_output: 2
  weight_filler { type: "gaussian" std: 1 } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "ip2" bottom: "target" top: "loss" }
"""

# Two readers of one blob, so a Split layer; force_backward, and no loss.
FORK = """name: "fork" force_backward: true
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
layer { name: "twice" type: "Power" bottom: "x" top: "a" power_param { scale: 2 } }
layer { name: "thrice" type: "Power" bottom: "a" top: "b" power_param { scale: 3 } }
layer { name: "square" type: "Power" bottom: "a" top: "c" power_param { power: 2 } }
layer { name: "sum" type: "Eltwise" bottom: "b" bottom: "c" top: "y" }
"""

IMAGES = """name: "images"
layer { name: "in" type: "Input" top: "data" input_param { shape { dim: 2 dim: 1 dim: 6 dim: 6 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param { num_output: 3 kernel_size: 3
  weight_filler { type: "gaussian" std: 1 } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "prob" type: "Softmax" bottom: "pool" top: "prob" }
"""


@pytest.fixture
def make(tmp_path):
    """make(text, phase, ...): a net of this text."""
    count = iter(range(1000))

    def make(text, phase=crema.TEST, **options):
        path = tmp_path / f'net{next(count)}.prototxt'
        path.write_text(text)
        return crema.Net(str(path), phase, **options)

    return make


def random(*shape):
    return np.random.default_rng(len(shape) * 7 + sum(shape)).normal(size=shape).astype(np.float32)


def chain_by_hand(net, data):
    """ip1 before and after the ReLU, and ip2, from the net's weights."""
    (w1, b1), (w2, b2) = ([blob.data for blob in net.params[name]] for name in ('ip1', 'ip2'))
    before = data @ w1.T + b1
    after = np.where(before > 0, before, before * 0.5)
    return before, after, after @ w2.T + b2


# --- opening, names ---

def test_lists(make):
    net = make(FORK)
    assert net.name == 'fork'
    assert net.inputs == ['x'] and net.outputs == ['y']
    assert list(net._layer_names) == ['in', 'twice', 'a_twice_0_split', 'thrice', 'square', 'sum']
    assert list(net.blobs) == ['x', 'a', 'a_twice_0_split_0', 'a_twice_0_split_1', 'b', 'c', 'y']
    assert [layer.type for layer in net.layers] == ['Input', 'Power', 'Split', 'Power', 'Power', 'Eltwise']
    assert net.layer_dict['square'].name == 'square'
    assert net.top_names['a_twice_0_split'] == ['a_twice_0_split_0', 'a_twice_0_split_1']
    assert net.bottom_names['sum'] == ['b', 'c']
    assert list(net._inputs) == [0] and list(net._outputs) == [6]
    assert net.params == {} and len(net._blobs) == 7
    assert 'fork' in repr(net) and 'TEST' in repr(net)


def test_loss_weights(make):
    net = make(CHAIN.replace('top: "loss"', 'top: "loss" loss_weight: 1')
               + 'layer { name: "half" type: "Power" bottom: "loss" top: "half" }', crema.TRAIN)
    weights = net.blob_loss_weights
    assert sum(weights.values()) == 1
    assert {name for name, weight in weights.items() if weight} == {'loss_loss_0_split_0'}


def test_params(make):
    net = make(CHAIN)
    assert list(net.params) == ['ip1', 'ip2']
    assert [blob.shape for blob in net.params['ip1']] == [(5, 3), (5,)]
    assert [blob.shape for blob in net.layer_dict['ip2'].blobs] == [(2, 5), (2,)]


@pytest.mark.parametrize('form', ['weights', 'positional', 'planned', 'of 2014', 'list', 'path'])
def test_forms_of_the_constructor(make, tmp_path, form):
    first = make(CHAIN)
    model, weights = str(tmp_path / 'net0.prototxt'), str(tmp_path / 'w.caffemodel')
    first.save(weights)
    net = {
        'weights': lambda: crema.Net(network_file=model, phase=crema.TEST, level=0, stages=['a'], weights=weights),
        'positional': lambda: crema.Net(model, weights, crema.TEST),
        'planned': lambda: crema.Net(model, weights, crema.TEST, planned=True),
        'of 2014': lambda: crema.set_phase_test() or crema.Net(model, weights),
        'list': lambda: crema.Net(model, crema.TEST, weights=[weights]),
        'path': lambda: crema.Net(pathlib.Path(model), crema.TEST, weights=pathlib.Path(weights)),
    }[form]()
    crema.set_phase_train()
    assert net.phase == crema.TEST and net.planned == (form == 'planned')
    for name, blobs in first.params.items():
        for ours, theirs in zip(net.params[name], blobs):
            np.testing.assert_array_equal(ours.data, theirs.data)


@pytest.mark.parametrize('options, layers', [
    (dict(phase=crema.TRAIN), ['in', 'train']),
    (dict(phase=crema.TEST), ['in']),
    (dict(phase=crema.TEST, stages=['deploy']), ['in', 'deploy']),
    (dict(phase=crema.TEST, stages='deploy'), ['in', 'deploy']),
    (dict(phase=crema.TEST, level=3), ['in', 'level']),
])
def test_phase_level_stage(make, options, layers):
    text = 'layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 1 } } }'
    for name, rule in (('train', 'phase: TRAIN'), ('deploy', 'stage: "deploy"'), ('level', 'min_level: 2')):
        text += f'layer {{ name: "{name}" type: "ReLU" bottom: "x" top: "{name}" include {{ {rule} }} }}'
    assert list(make(text, **options)._layer_names) == layers


# --- passes ---

def test_forward(make):
    net = make(CHAIN)
    data, target = random(4, 3), random(4, 2)
    net.blobs['data'].data[...] = data
    net.blobs['target'].data[...] = target
    out = net.forward()
    _, after, ip2 = chain_by_hand(net, data)
    loss = ((ip2 - target) ** 2).sum() / 8
    assert list(out) == ['loss'] and out['loss'].shape == ()
    np.testing.assert_allclose(out['loss'], loss, rtol=1e-4)
    np.testing.assert_allclose(net.blobs['ip1'].data, after, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(net._forward(0, len(net.layers) - 1), loss, rtol=1e-4)


def test_forward_with_arrays_and_blobs(make):
    net = make(CHAIN)
    data = random(4, 3)
    out = net.forward(blobs=['ip1'], data=data.astype(np.float64), target=np.zeros((4, 2), int))
    assert set(out) == {'ip1', 'loss'}
    np.testing.assert_array_equal(net.blobs['data'].data, data)
    np.testing.assert_allclose(out['ip1'], chain_by_hand(net, data)[1], rtol=1e-4, atol=1e-5)


def test_parts_of_a_forward_pass_see_blobs_as_caffe_does(make):
    net = make(CHAIN)
    data = random(4, 3)
    view = net.blobs['ip1'].data
    net.forward(data=data, target=random(4, 2))
    before, after, ip2 = chain_by_hand(net, data)
    close = dict(rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(view, after, **close)
    out = net.forward(end='ip1')
    assert list(out) == ['ip1']
    np.testing.assert_allclose(view, before, **close)  # not rectified yet
    np.testing.assert_allclose(net.forward(start='relu1', end='relu1')['ip1'], after, **close)
    # An in-place layer reads the current content of the blob.
    view[...] = -2
    net.forward(start='relu1', end='relu1')
    np.testing.assert_array_equal(view, np.full((4, 5), -1))
    view[...] = after
    np.testing.assert_allclose(net.forward(start='ip2', end='ip2')['ip2'], ip2, **close)


def test_data_layers_advance_with_the_passes_that_run_them(make):
    net = make('layer { name: "in" type: "DummyData" top: "x" dummy_data_param { shape { dim: 3 } '
               'data_filler { type: "gaussian" std: 1 } } } layer { name: "y" type: "Power" bottom: "x" top: "y" }')
    first = net.forward()['y'].copy()
    assert net.forward(start='y')['y'].tolist() == first.tolist()
    assert net.forward()['y'].tolist() != first.tolist()


def test_constants_may_be_overwritten(make):
    net = make('layer { name: "in" type: "DummyData" top: "x" '
               'dummy_data_param { shape { dim: 3 } data_filler { value: 7 } } }'
               'layer { name: "y" type: "Power" bottom: "x" top: "y" }')
    assert net.blobs['x'].data.tolist() == [7, 7, 7]  # before the first pass, as in Caffe
    net.blobs['x'].data[...] = [1, 2, 3]
    assert net.forward()['y'].tolist() == [1, 2, 3]
    assert net.forward()['y'].tolist() == [1, 2, 3]


def test_backward(make):
    net = make(CHAIN, crema.TRAIN)
    data, target = random(4, 3), random(4, 2)
    net.forward(data=data, target=target)
    net.backward()
    before, after, ip2 = chain_by_hand(net, data)
    d2 = (ip2 - target) / 4
    d1 = (d2 @ net.params['ip2'][0].data) * np.where(before > 0, 1, 0.5)
    close = dict(rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(net.blobs['ip2'].diff, d2, **close)
    np.testing.assert_allclose(net.blobs['ip1'].diff, d1, **close)  # through the ReLU, which is in place
    np.testing.assert_allclose(net.params['ip2'][0].diff, d2.T @ after, **close)
    np.testing.assert_allclose(net.params['ip1'][0].diff, d1.T @ data, **close)
    assert not net.blobs['data'].diff.any()
    # Gradients of parameters add up until they are cleared.
    once = net.params['ip1'][0].diff.copy()
    net.backward()
    np.testing.assert_allclose(net.params['ip1'][0].diff, 2 * once, **close)
    net.clear_param_diffs()
    assert not any(blob.diff.any() for blobs in net.params.values() for blob in blobs)


def test_parts_of_a_backward_pass(make):
    net = make(CHAIN, crema.TRAIN)
    data, target = random(4, 3), random(4, 2)
    net.forward(data=data, target=target)
    before, after, _ = chain_by_hand(net, data)
    slope = np.where(before > 0, 1, 0.5)
    w2 = net.params['ip2'][0].data
    close = dict(rtol=1e-3, atol=1e-5)
    view = net.blobs['ip1'].diff
    seed = random(4, 2)
    net.blobs['ip2'].diff[...] = seed
    out = net.backward(start='ip2', end='ip2')
    assert list(out) == ['ip1']
    np.testing.assert_allclose(view, seed @ w2, **close)  # not through the ReLU yet
    np.testing.assert_allclose(net.backward(start='relu1', end='relu1')['ip1'], seed @ w2 * slope, **close)
    view[...] = 1
    net.backward(start='relu1', end='relu1')
    np.testing.assert_allclose(view, slope, **close)
    net.clear_param_diffs()
    view[...] = before
    net.backward(start='ip1', end='ip1')
    np.testing.assert_allclose(net.params['ip1'][0].diff, before.T @ data, **close)


def test_backward_from_outputs(make):
    net = make(FORK)
    x = random(2, 3)
    net.forward(x=x)
    seed = random(2, 3)
    want = seed * (6 + 8 * x)  # y = 3 a + a * a with a = 2 x
    for _ in range(2):  # the seed stays
        out = net.backward(y=seed)
        np.testing.assert_allclose(out['x'], want, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(net.blobs['y'].diff, seed)
    out = net.backward(diffs=['a'])
    np.testing.assert_allclose(out['a'], want / 2, rtol=1e-4, atol=1e-5)


def test_a_reader_outside_a_part_gives_what_it_gave_last(make):
    net = make(FORK)
    x, seed = random(2, 3), random(2, 3)
    net.forward(x=x)
    net.blobs['b'].diff[...] = 1
    assert (net.backward(start='thrice')['x'] == 6).all()  # "square" has not run yet
    net.backward(y=seed)
    net.blobs['b'].diff[...] = 1
    close = dict(rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(net.backward(start='thrice')['x'], 6 + seed * 8 * x, **close)
    np.testing.assert_allclose(net.blobs['a_twice_0_split_0'].diff, np.full((2, 3), 3), **close)
    np.testing.assert_allclose(net.blobs['a_twice_0_split_1'].diff, seed * 4 * x, **close)
    np.testing.assert_allclose(net.blobs['a'].diff, 3 + seed * 4 * x, **close)
    net.blobs['a'].diff[...] = 5
    np.testing.assert_allclose(net.backward(start='twice')['x'], np.full((2, 3), 10), **close)


BRANCHES = """name: "branches" force_backward: true
layer { name: "in" type: "Input" top: "data" top: "label"
  input_param { shape { dim: 3 dim: 2 dim: 7 dim: 7 } shape { dim: 3 } } }
layer { name: "c0" type: "Convolution" bottom: "data" top: "c0" convolution_param { num_output: 4 kernel_size: 3 pad: 1
  weight_filler { type: "msra" } } }
layer { name: "n0" type: "BatchNorm" bottom: "c0" top: "c0" batch_norm_param { use_global_stats: false } }
layer { name: "s0" type: "Scale" bottom: "c0" top: "c0" scale_param { bias_term: true } }
layer { name: "r0" type: "ReLU" bottom: "c0" top: "c0" }
layer { name: "c1" type: "Convolution" bottom: "c0" top: "c1" convolution_param { num_output: 4 kernel_size: 3 pad: 1
  weight_filler { type: "msra" } } }
layer { name: "t1" type: "TanH" bottom: "c1" top: "c1" }
layer { name: "sum" type: "Eltwise" bottom: "c0" bottom: "c1" top: "sum" }
layer { name: "r1" type: "ReLU" bottom: "sum" top: "sum" }
layer { name: "p1" type: "Pooling" bottom: "sum" top: "p1" pooling_param { kernel_size: 3 stride: 1 pad: 1 } }
layer { name: "cat" type: "Concat" bottom: "sum" bottom: "p1" bottom: "c1" top: "cat" }
layer { name: "flat" type: "Flatten" bottom: "cat" top: "flat" }
layer { name: "ip" type: "InnerProduct" bottom: "flat" top: "ip" inner_product_param { num_output: 3
  weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


@pytest.mark.parametrize('phase', [crema.TRAIN, crema.TEST])
def test_layer_by_layer_is_the_same_as_at_once(make, tmp_path, phase):
    whole = make(BRANCHES, phase)
    whole.save(str(tmp_path / 'w.caffemodel'))
    parts = make(BRANCHES, phase, weights=str(tmp_path / 'w.caffemodel'))
    arrays = dict(data=random(3, 2, 7, 7), label=np.array([0, 2, 1]))
    whole.forward(**arrays)
    whole.backward()
    for name, array in arrays.items():
        parts.blobs[name].data[...] = array
    layers = range(len(parts.layers))
    loss = sum(parts._forward(layer, layer) for layer in layers)
    np.testing.assert_allclose(loss, whole.blobs['loss'].data, rtol=1e-5)
    for name, blob in whole.blobs.items():
        np.testing.assert_allclose(parts.blobs[name].data, blob.data, rtol=1e-4, atol=1e-5, err_msg=name)
    for layer in reversed(layers):
        parts._backward(layer, layer)
    for name, blob in whole.blobs.items():
        np.testing.assert_allclose(parts.blobs[name].diff, blob.diff, rtol=1e-3, atol=1e-6, err_msg=name)
    for name, blobs in whole.params.items():
        for mine, theirs in zip(parts.params[name], blobs):
            np.testing.assert_allclose(mine.diff, theirs.diff, rtol=1e-3, atol=1e-5, err_msg=name)


def test_phase_test_computes_gradients_when_asked(make):
    trained, net = make(CHAIN, crema.TRAIN), make(CHAIN)
    net.params['ip1'][0].data[...] = trained.params['ip1'][0].data
    for name, blobs in trained.params.items():
        for mine, theirs in zip(net.params[name], blobs):
            mine.data[...] = theirs.data
    arrays = dict(data=random(4, 3), target=random(4, 2))
    for each in (trained, net):
        each.forward(**arrays)
        each.backward()
    for name, blobs in trained.params.items():
        for mine, theirs in zip(net.params[name], blobs):
            assert mine.diff.any()
            np.testing.assert_allclose(mine.diff, theirs.diff, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(net.blobs['data'].data, arrays['data'])


@pytest.mark.parametrize('count', [2, 4, 5, 9])
def test_forward_all(make, count):
    net = make(CHAIN)
    data = random(count, 3)
    out = net.forward_all(blobs=['ip2'], data=data, target=np.zeros((count, 2)))
    np.testing.assert_allclose(out['ip2'], chain_by_hand(net, data)[2], rtol=1e-4, atol=1e-5)


def test_forward_backward_all(make):
    net = make(FORK)
    x, seed = random(5, 3), random(5, 3) + 1
    outs, diffs = net.forward_backward_all(blobs=['a'], x=x, y=seed)
    np.testing.assert_allclose(outs['a'], 2 * x, rtol=1e-5)
    np.testing.assert_allclose(outs['y'], 6 * x + 4 * x * x, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(diffs['x'], seed * (6 + 8 * x), rtol=1e-4, atol=1e-5)


# --- shapes ---

def test_reshape(make):
    net = make(IMAGES)
    net.blobs['data'].data[...] = random(2, 1, 6, 6)
    for shape, pool in (((1, 1, 8, 10), (1, 3, 3, 4)), ((5, 1, 4, 4), (5, 3, 1, 1)), ((2, 1, 6, 6), (2, 3, 2, 2))):
        net.blobs['data'].reshape(*shape)
        assert net.blobs['data'].data.shape == shape
        net.reshape()
        assert net.blobs['pool'].shape == pool
        image = random(*shape)
        net.blobs['data'].data[...] = image
        got = net.forward()['prob'].copy()
        fresh = make(IMAGES.replace('dim: 2 dim: 1 dim: 6 dim: 6', ' '.join(f'dim: {extent}' for extent in shape)))
        fresh.params['conv'][0].data[...] = net.params['conv'][0].data
        np.testing.assert_allclose(got, fresh.forward(data=image)['prob'], rtol=1e-5)


def test_forward_reshapes_and_inputs_keep_their_values(make):
    net = make(CHAIN)
    data, target = random(6, 3), random(6, 2)
    for name, array in (('data', data), ('target', target)):  # one after the other: between, they do not fit
        net.blobs[name].reshape(*array.shape)
        net.blobs[name].data[...] = array
    _, _, ip2 = chain_by_hand(net, data)
    np.testing.assert_allclose(net.forward()['loss'], ((ip2 - target) ** 2).sum() / 12, rtol=1e-4)
    held = net.blobs['data'].data
    net.blobs['data'].reshape(2, 3)
    net.blobs['target'].reshape(2, 2)
    net.reshape()
    np.testing.assert_array_equal(net.blobs['data'].data, data[:2])
    held[0] = 9  # still the same memory
    assert (net.blobs['data'].data[0] == 9).all()


@pytest.mark.parametrize('planned', [False, True])
def test_a_shape_that_does_not_fit_changes_nothing(make, planned):
    net = make(CHAIN, planned=planned)
    arrays = dict(data=random(4, 3), target=random(4, 2))
    want = float(net.forward(**arrays)['loss'])
    net.blobs['data'].reshape(4, 7)
    with pytest.raises(crema.Error, match='ip1'):
        net.reshape()
    assert net.blobs['data'].shape == (4, 3)
    np.testing.assert_allclose(net.forward(**arrays)['loss'], want, rtol=1e-6)


def test_only_inputs_can_be_reshaped(make):
    net = make(IMAGES)
    net.blobs['pool'].reshape(2, 3, 2, 2)  # as it is
    for name, shape in (('pool', (1, 3, 2, 2)), ('data', (0, 1, 6, 6))):
        with pytest.raises(crema.Error, match=name):
            net.blobs[name].reshape(*shape)
    with pytest.raises(crema.Error, match='conv'):
        net.params['conv'][0].reshape(1, 2)


# --- weights ---

@pytest.mark.parametrize('hdf5', [False, True])
def test_save_and_load(make, tmp_path, hdf5):
    first, second = make(CHAIN), make(CHAIN)
    path = str(tmp_path / ('w.caffemodel.h5' if hdf5 else 'w.caffemodel'))
    (first.save_hdf5 if hdf5 else first.save)(path)
    (second.load_hdf5 if hdf5 else second.copy_from)(path)
    for name, blobs in first.params.items():
        for mine, theirs in zip(second.params[name], blobs):
            np.testing.assert_array_equal(mine.data, theirs.data)


def test_changed_weights_count(make):
    for options in ({}, {'planned': True}):
        net = make(IMAGES, **options)
        image = random(2, 1, 6, 6)
        net.forward(data=image)
        net.params['conv'][0].data[...] = 0
        net.params['conv'][1].data[...] = [1, 2, 3]
        want = np.exp([1, 2, 3]) / np.exp([1, 2, 3]).sum()
        for _ in range(2):
            np.testing.assert_allclose(net.forward(data=image)['prob'][1, :, 0, 0], want, rtol=1e-5)


def test_share_with(make):
    first, second = make(CHAIN), make(CHAIN)
    second.share_with(first)
    first.params['ip1'][0].data[...] = 3
    assert (second.params['ip1'][0].data == 3).all()
    arrays = dict(data=random(4, 3), target=random(4, 2))
    np.testing.assert_allclose(second.forward(**arrays)['loss'], first.forward(**arrays)['loss'], rtol=1e-6)
    del first
    gc.collect()
    second.forward(**arrays)
    with pytest.raises(crema.Error, match='ip1'):
        second.share_with(make(CHAIN.replace('num_output: 5', 'num_output: 6')))


def test_threads_join_nets_crosswise(make):
    nets = [make(CHAIN) for _ in range(4)]
    arrays = dict(data=random(4, 3), target=random(4, 2))
    ends = time.monotonic() + 1
    counts = [0] * 4

    def work(number):
        choose = np.random.RandomState(number)
        while time.monotonic() < ends:
            one, other = choose.choice(nets, 2)
            one.share_with(other)
            one.forward(**arrays)
            other.params['ip1'][0].data[...] = number
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert min(counts) > 0


def test_memory_data(make):
    net = make('layer { name: "in" type: "MemoryData" top: "x" top: "label" '
               'memory_data_param { batch_size: 2 channels: 1 height: 2 width: 3 } }'
               'layer { name: "y" type: "Power" bottom: "x" top: "y" }'
               'layer { name: "end" type: "Silence" bottom: "label" }')
    images, labels = random(4, 1, 2, 3), np.arange(4)
    net.set_input_arrays(images, labels)
    for batch in (0, 2, 0):
        np.testing.assert_array_equal(net.forward()['y'], images[batch:batch + 2])
        np.testing.assert_array_equal(net.blobs['label'].data, labels[batch:batch + 2])
    net.set_input_arrays(images[::-1], labels.reshape(4, 1, 1, 1))  # begins at its first one
    np.testing.assert_array_equal(net.forward()['y'], images[[3, 2]])
    for data, label in ((images[:3], labels[:3]), (images, labels[:2]), (images[:, :, :1], labels), (images, 0)):
        with pytest.raises((crema.Error, ValueError)):
            net.set_input_arrays(data, label)
    with pytest.raises(crema.Error, match='MemoryData'):
        net.set_input_arrays(images, labels, 'y')


# --- planned nets ---

def test_planned(make):
    plain = make(IMAGES)
    net = make(IMAGES, planned=True)
    net.params['conv'][0].data[...] = plain.params['conv'][0].data
    image = random(2, 1, 6, 6)
    np.testing.assert_allclose(net.forward(data=image)['prob'], plain.forward(data=image)['prob'], rtol=1e-5)
    for what in (lambda: net.blobs['conv'].data, lambda: net.blobs['prob'].diff, lambda: net.forward(end='pool'),
                 lambda: net.backward(), lambda: net.after_forward(print)):
        with pytest.raises(crema.Error, match='planned'):
            what()
    net.blobs['data'].reshape(1, 1, 8, 8)
    image = random(1, 1, 8, 8)
    assert net.forward(data=image)['prob'].shape == (1, 3, 3, 3)
    plain.blobs['data'].reshape(1, 1, 8, 8)
    np.testing.assert_allclose(net.forward()['prob'], plain.forward(data=image)['prob'], rtol=1e-5)


@pytest.mark.parametrize('planned', [False, True])
def test_an_input_stays_when_images_change_size(make, tmp_path, planned):
    image = pytest.importorskip('PIL.Image')
    for size in (4, 6):
        image.fromarray(np.full((size, size), 10 * size, np.uint8)).save(tmp_path / f'{size}.png')
    (tmp_path / 'list.txt').write_text(''.join(f'{tmp_path}/{size}.png 0\n' for size in (4, 6, 4, 6)))
    net = make('layer { name: "images" type: "ImageData" top: "x" top: "label" '
               f'image_data_param {{ batch_size: 1 is_color: false source: "{tmp_path}/list.txt" }} }}'
               'layer { name: "unused" type: "Silence" bottom: "label" }'
               'layer { name: "in" type: "Input" top: "a" input_param { shape { dim: 1 dim: 3 } } }'
               'layer { name: "mean" type: "Pooling" bottom: "x" top: "mean" '
               'pooling_param { pool: AVE global_pooling: true } }'
               'layer { name: "y" type: "Power" bottom: "a" top: "y" power_param { scale: 2 } }', planned=planned)
    for values in ([1, 2, 3], [4, 5, 6]):
        net.blobs['a'].data[...] = values
        for size in (4, 6):
            result = net.forward()
            assert result['mean'].item() == 10 * size
            assert result['y'].ravel().tolist() == [2 * value for value in values]


@pytest.mark.parametrize('planned', [False, True])
def test_an_input_that_is_rectified_in_place(make, planned):
    net = make('layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 } } }'
               'layer { name: "relu" type: "ReLU" bottom: "x" top: "x" }'
               'layer { name: "y" type: "Power" bottom: "x" top: "y" power_param { scale: 3 } }', planned=planned)
    for values in ([-1, 2], [3, -4]):
        assert net.forward(x=np.array(values))['y'].tolist() == [3 * max(value, 0) for value in values]
    net.blobs['x'].reshape(3)
    net.blobs['x'].data[...] = [-5, 6, 7]
    assert net.forward()['y'].tolist() == [0, 18, 21]


def test_shapes_that_depend_on_the_data(make):
    net = make('layer { name: "in" type: "Input" top: "x" top: "wanted" '
               'input_param { shape { dim: 4 dim: 2 } shape { dim: 4 } } }'
               'layer { name: "filter" type: "Filter" bottom: "x" bottom: "wanted" top: "some" }'
               'layer { name: "y" type: "Power" bottom: "some" top: "y" power_param { scale: 2 } }')
    x = random(4, 2)
    for rows in ([1, 3], [0, 1, 2], [], [2]):
        wanted = np.isin(np.arange(4), rows)
        if rows:
            np.testing.assert_allclose(net.forward(x=x, wanted=wanted)['y'], 2 * x[rows], rtol=1e-6)
            assert net.blobs['some'].shape == (len(rows), 2)
        else:
            net.forward(x=x, wanted=wanted)
            assert not net.blobs['y'].data.any()


@pytest.mark.parametrize('precision', ['bf16', 'fp16', 'double'])
def test_precisions_that_a_cpu_has_not(make, precision):
    with pytest.raises(crema.Error, match=precision):
        make(CHAIN, precision=precision)


# --- nets of solvers ---

TRAINED = """name: "trained"
layer { name: "in" type: "DummyData" top: "data" top: "label" dummy_data_param { shape { dim: 8 dim: 3 dim: 8 dim: 8 }
  shape { dim: 8 } data_filler { type: "gaussian" std: 1 } data_filler { value: 1 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param { num_output: 6 kernel_size: 3
  weight_filler { type: "gaussian" std: 0.3 } } }
layer { name: "norm" type: "BatchNorm" bottom: "conv" top: "conv" }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip" inner_product_param { num_output: 4
  weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


@pytest.fixture
def solve(tmp_path):
    def solve():
        (tmp_path / 'trained.prototxt').write_text(TRAINED)
        (tmp_path / 'solver.prototxt').write_text(
            f'net: "{tmp_path}/trained.prototxt" base_lr: 0.05 lr_policy: "fixed" max_iter: 10 test_iter: 1 '
            f'test_interval: 100 test_initialization: false random_seed: 3 '
            f'snapshot_prefix: "{tmp_path}/s" snapshot_after_train: false')
        return crema.SGDSolver(str(tmp_path / 'solver.prototxt'))
    return solve


def weights_of(solver):
    return [blob.data.copy() for blobs in solver.net.params.values() for blob in blobs]


def test_looking_into_a_net_does_not_change_its_training(solve):
    plain, looked = solve(), solve()
    assert looked.net.blobs['label'].data.tolist() == [1] * 8
    for _ in range(3):
        plain.step(2)
        looked.step(2)
        assert np.isfinite(looked.net.blobs['conv'].data).all() and looked.net.blobs['ip'].diff.any()
        gradients = [blob.diff.copy() for blob in looked.net.params['ip']]
        looked.test_nets[0].forward()
        looked.test_nets[0].backward()  # has gradients of its own
        for before, blob in zip(gradients, looked.net.params['ip']):
            np.testing.assert_array_equal(before, blob.diff)
        assert looked.test_nets[0].params['ip'][0].diff.any()
    for mine, theirs in zip(weights_of(looked), weights_of(plain)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)


def test_the_first_look_shows_the_last_pass(solve):
    solver = solve()
    solver.step(3)
    before, loss = weights_of(solver), solver.net.blobs['loss'].data.copy()
    scores = solver.net.blobs['ip'].data
    assert scores.any() and (solver.net.blobs['conv'].data >= 0).all()
    for mine, theirs in zip(before, weights_of(solver)):  # running means and variances, too
        np.testing.assert_array_equal(mine, theirs)
    assert solver.net.blobs['loss'].data == loss
    # From then on a pass keeps its blobs.
    net = solver.net
    net.forward()
    scores = net.blobs['ip'].data
    log = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(net.blobs['loss'].data, -log[:, 1].mean(), rtol=1e-4)


def test_parts_of_a_solvers_net(solve, tmp_path):
    """Its weights and blobs stay in the order that its kernels like, so values are converted between layers."""
    net = solve().net
    own = crema.Net(str(tmp_path / 'trained.prototxt'), crema.TRAIN)
    for name, blobs in net.params.items():
        for mine, theirs in zip(own.params[name], blobs):
            mine.data[...] = theirs.data
    for each in (net, own):
        each.blobs['data'].data[...] = random(8, 3, 8, 8)
        each.forward(start='conv', end='relu')
        each.forward(start='pool')
        each.backward(end='ip')
        each.backward(start='pool')
    for name in ('conv', 'pool', 'ip', 'loss'):
        np.testing.assert_allclose(net.blobs[name].data, own.blobs[name].data, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(net.blobs[name].diff, own.blobs[name].diff, rtol=1e-4, atol=1e-5)
    for name in ('conv', 'ip'):
        np.testing.assert_allclose(net.params[name][0].diff, own.params[name][0].diff, rtol=1e-3, atol=1e-5)


# --- callbacks, threads, forks, lifetimes ---

def test_callbacks(make):
    net = make(CHAIN, crema.TRAIN)
    seen = []
    net.before_forward(lambda layer: seen.append(('>', layer)))
    net.after_forward(lambda layer: seen.append(('<', layer)))
    net.before_backward(lambda layer: seen.append(('b>', layer)))
    net.after_backward(lambda layer: seen.append(('b<', layer)))
    at_ip1 = []
    net.after_forward(lambda layer: at_ip1.append(net.blobs['ip1'].data.copy()))
    data = random(4, 3)
    net.forward(data=data, target=random(4, 2))
    assert seen == [(mark, layer) for layer in range(5) for mark in '><']
    before, after, _ = chain_by_hand(net, data)
    np.testing.assert_allclose(at_ip1[1], before, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(at_ip1[2], after, rtol=1e-4, atol=1e-5)
    seen.clear()
    net.backward()
    assert seen == [(mark, layer) for layer in reversed(range(5)) for mark in ('b>', 'b<')]
    other = make(CHAIN, crema.TRAIN)
    for name, blobs in net.params.items():
        for mine, theirs in zip(other.params[name], blobs):
            mine.data[...] = theirs.data
    other.forward(data=data, target=net.blobs['target'].data)
    other.backward()
    np.testing.assert_allclose(net.params['ip1'][0].diff, other.params['ip1'][0].diff, rtol=1e-4, atol=1e-6)


def test_exceptions_inside_callbacks(make):
    net = make(CHAIN)

    def broken(layer):
        raise KeyError(f'layer {layer}')

    net.before_forward(broken)
    for _ in range(2):  # the net can still be used
        with pytest.raises(KeyError, match='layer 0'):
            net.forward()


def test_a_callback_cannot_run_its_net(make):
    net = make(CHAIN)
    net.before_forward(lambda layer: net.forward())
    with pytest.raises(crema.Error, match='running'):
        net.forward()


def test_threads_take_turns(make):
    net = make(CHAIN)
    data = random(4, 3)
    net.forward(data=data, target=random(4, 2))
    want = net.blobs['loss'].data.item()
    results, errors = [], []

    def work():
        try:
            for _ in range(50):
                results.append(net._forward(0, 4))
                net.blobs['ip1'].data.sum()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(results) == 200
    np.testing.assert_allclose(results, want, rtol=1e-5)


def in_fork(work):
    """What work() returns in a forked process: at most 9 characters."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = work()
        except BaseException as error:
            text = type(error).__name__
        os.write(write, text[:9].encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, 'rb') as pipe:
        text = pipe.read().decode()
    assert os.waitpid(child, 0)[1] == 0
    return text


def test_forked_processes(make):
    text = IMAGES.replace('dim: 6 dim: 6', 'dim: 64 dim: 64')
    net = make(text)
    net.forward()
    view = net.params['conv'][0].data
    assert in_fork(lambda: str(net.forward())) == 'Error'
    assert in_fork(lambda: str(net.blobs['data'].data)) == 'Error'
    assert in_fork(lambda: str(view.shape)) == '(3, 1, 3,'
    assert in_fork(lambda: str(make(text).forward()['prob'].shape)) == '(2, 3, 31'
    net.forward()


def test_arrays_and_blobs_outlive_their_net(make):
    net = make(CHAIN, crema.TRAIN)
    data = random(4, 3)
    net.forward(data=data, target=random(4, 2))
    net.backward()
    blobs, params = dict(net.blobs), sum(net.params.values(), [])
    views = [net.blobs['ip1'].data, net.params['ip1'][0].diff, net.blobs['data'].data]
    want = [view.copy() for view in views]
    layers = net.layers
    del net
    gc.collect()
    for view, copy in zip(views, want):
        np.testing.assert_array_equal(view, copy)
    del views
    assert all(np.isfinite(blob.data).all() and np.isfinite(blob.diff).all() for blob in [*blobs.values(), *params])
    assert layers[1].type == 'InnerProduct'


# --- mistakes ---

@pytest.mark.parametrize('text, message', [
    (CHAIN.replace('bottom: "ip1" top: "ip2"', 'bottom: "ipp" top: "ip2"'), r'net0\.prototxt:7:.*"ipp".*ip1'),
    (CHAIN.replace('"ReLU"', '"RuLU"'), r'net0\.prototxt:6:.*RuLU.*ReLU'),
    (CHAIN.replace('num_output: 5', 'num_outpt: 5'), r'net0\.prototxt:4:\d+: .*num_outpt'),
    (CHAIN.replace('num_output: 5', 'num_output: -5'), r'net0\.prototxt:4'),
    ('layer {', r'net0\.prototxt:1:'),
    ('', r'net0\.prototxt: is empty'),
    ('name: "none"', 'no layer'),
])
def test_mistakes_in_the_file(make, text, message):
    with pytest.raises(crema.Error, match=message):
        make(text)


@pytest.mark.parametrize('arguments, error', [
    (('missing.prototxt', crema.TEST), crema.Error),
    (('missing.prototxt', 'weights', crema.TEST), crema.Error),
    (('missing.prototxt', 5), crema.Error),
    (('missing.prototxt',), TypeError),
    ((3, crema.TEST), TypeError),
    ((None, crema.TEST), TypeError),
])
def test_mistaken_arguments(arguments, error):
    with pytest.raises(error):
        crema.Net(*arguments)


def test_an_input_that_does_not_fit_changes_none(make):
    net = make(CHAIN)
    net.forward(data=random(4, 3), target=random(4, 2))
    with pytest.raises(ValueError, match=r'target: an array of shape \(4, 3\) was given, but the blob has the shape \(4, 2\)'):
        net.forward(data=np.zeros((4, 3)), target=np.zeros((4, 3)))
    assert np.array_equal(net.blobs['data'].data, random(4, 3))
    net.forward(data=np.ones((4, 1)), target=random(4, 2))  # as NumPy spreads it
    assert (net.blobs['data'].data == 1).all()


@pytest.mark.parametrize('mistake, error', [
    (lambda net: net.forward(data=random(4, 3)), ValueError),
    (lambda net: net.forward(data=random(4, 3), target=random(4, 2), more=random(4, 2)), ValueError),
    (lambda net: net.forward(data=random(3, 3), target=random(4, 2)), ValueError),
    (lambda net: net.forward(data=random(4, 2), target=random(4, 2)), ValueError),
    (lambda net: net.forward(data=1.5, target=random(4, 2)), ValueError),
    (lambda net: net.forward(data=[['a', 'b', 'c']] * 4, target=random(4, 2)), ValueError),
    (lambda net: net.forward(start='ip3'), ValueError),
    (lambda net: net.forward(end=7), ValueError),
    (lambda net: net.forward(blobs=['ip3']), KeyError),
    (lambda net: net.backward(diffs=['ip3']), KeyError),
    (lambda net: net.backward(loss=random(2)), ValueError),
    (lambda net: net._forward(0, 99), crema.Error),
    (lambda net: net._forward(-1, 2), crema.Error),
    (lambda net: net._backward(99, 0), crema.Error),
    (lambda net: net._top_ids(9), crema.Error),
    (lambda net: net._bottom_ids(-1), crema.Error),
    (lambda net: net.copy_from('missing.caffemodel'), crema.Error),
    (lambda net: net.save('/missing/folder/w.caffemodel'), crema.Error),
    (lambda net: net.save_hdf5('/missing/folder/w.h5'), crema.Error),
    (lambda net: net.save(5), TypeError),
    (lambda net: net.share_with(None), (TypeError, crema.Error)),
    (lambda net: net.forward_all(), ValueError),
    (lambda net: net.forward_all(data=random(4, 3), target=random(5, 2)), ValueError),
    (lambda net: net.after_forward(5), TypeError),
])
def test_mistakes(make, mistake, error):
    net = make(CHAIN)
    with pytest.raises(error):
        mistake(net)
    net.forward(data=random(4, 3), target=random(4, 2))  # it can still be used


@pytest.mark.parametrize('label', [-1, 3, 1e9, np.nan, np.inf, -np.inf])
def test_labels_that_are_no_class(make, label):
    net = make('layer { name: "in" type: "Input" top: "x" top: "label" '
               'input_param { shape { dim: 2 dim: 3 } shape { dim: 2 } } }'
               'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "x" bottom: "label" top: "loss" }')
    with pytest.raises(crema.Error, match='loss'):
        net.forward(x=random(2, 3), label=np.array([0, label]))
    assert np.isfinite(net.forward(x=random(2, 3), label=np.array([0, 2]))['loss'])


def test_notebooks_show_a_table(make):
    html = make(CHAIN)._repr_html_()
    assert 'InnerProduct' in html and 'ip2' in html
