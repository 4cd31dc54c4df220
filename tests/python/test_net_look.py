"""crema.Net as others' scripts use it: parts of passes after a reshape, and nets that are planned until a program looks
inside. Values are held against a net that keeps its blobs from the start."""
import sys

import numpy as np
import pytest

import crema

# Fully connected at the end, so it takes one size; before that two convolutions like googlenet's.
DREAM = """name: "dream" {0}
layer {{ name: "in" type: "Input" top: "data" input_param {{ shape {{ dim: 1 dim: 3 dim: 12 dim: 12 }} }} }}
layer {{ name: "conv1" type: "Convolution" bottom: "data" top: "conv1" convolution_param {{ num_output: 8 kernel_size: 3
  pad: 1 weight_filler {{ type: "gaussian" std: 0.3 }} bias_filler {{ type: "gaussian" std: 0.3 }} }} }}
layer {{ name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }}
layer {{ name: "left" type: "Convolution" bottom: "conv1" top: "left" convolution_param {{
  num_output: 4 kernel_size: 1 weight_filler {{ type: "gaussian" std: 0.3 }} }} }}
layer {{ name: "relu_left" type: "ReLU" bottom: "left" top: "left" }}
layer {{ name: "right" type: "Pooling" bottom: "conv1" top: "right"
  pooling_param {{ kernel_size: 3 pad: 1 stride: 1 }} }}
layer {{ name: "mixed" type: "Concat" bottom: "left" bottom: "right" top: "mixed" }}
layer {{ name: "pool" type: "Pooling" bottom: "mixed" top: "pool"
  pooling_param {{ kernel_size: 2 stride: 2 pool: AVE }} }}
layer {{ name: "ip" type: "InnerProduct" bottom: "pool" top: "ip" inner_product_param {{ num_output: 5
  weight_filler {{ type: "gaussian" std: 0.3 }} bias_filler {{ type: "gaussian" std: 0.3 }} }} }}
layer {{ name: "prob" type: "Softmax" bottom: "ip" top: "prob" }}
"""
INSIDE = ['conv1', 'left', 'right', 'mixed', 'pool', 'ip']


@pytest.fixture
def make(tmp_path):
    def make(force=False, phase=crema.TEST, text=DREAM, **options):
        path = tmp_path / f'net{force}.prototxt'
        path.write_text(text.format('force_backward: true' if force else ''))
        return crema.Net(str(path), phase, **options)

    return make


def images(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


# --- parts of passes after a reshape ---

@pytest.mark.parametrize('size', [7, 12, 20])
def test_a_part_reaches_only_its_layers(make, size):
    """Deep dreams: the classifier behind `end` does not take the image."""
    net = make(True)
    first = images(0, 1, 3, 12, 12)
    prob = net.forward(data=first)['prob'].copy()
    x = images(1, 1, 3, size, size)
    net.blobs['data'].reshape(1, 3, size, size)
    net.blobs['data'].data[...] = x
    assert net.forward(end='mixed')['mixed'].shape == (1, 12, size, size)
    np.testing.assert_array_equal(net.blobs['prob'].data, prob)
    objective = images(2, 1, 12, size, size)
    net.blobs['mixed'].diff[...] = objective
    gradient = net.backward(start='mixed')['data'].copy()
    # By differences, and as in a net without the classifier.
    small = make(True, text=DREAM[:DREAM.index('layer {{ name: "pool"')].replace('12', str(size), 2))
    for name, blobs in small.params.items():
        for mine, theirs in zip(blobs, net.params[name]):
            mine.data[...] = theirs.data
    close(net.blobs['mixed'].data, small.forward(data=x)['mixed'])
    small.blobs['mixed'].diff[...] = objective
    close(gradient, small.backward()['data'])
    # Back to the first size: all layers run again.
    net.blobs['data'].reshape(1, 3, 12, 12)
    close(net.forward(data=first)['prob'], prob)


def test_a_part_that_ends_before_an_in_place_layer(make):
    net = make(True)
    net.forward(data=images(0, 1, 3, 12, 12))
    for size in (5, 30):
        net.blobs['data'].reshape(1, 3, size, size)
        x = net.blobs['data'].data[...] = images(size, 1, 3, size, size)
        conv = net.forward(end='conv1')['conv1']
        assert conv.shape == net.blobs['conv1'].diff.shape == (1, 8, size, size) and conv.min() < 0
        before = conv.copy()
        close(net.forward(start='relu1', end='relu1')['conv1'], np.maximum(before, 0))
        net.blobs['conv1'].diff[...] = 1
        assert np.abs(net.backward(start='conv1')['data']).sum() > 0 and (net.blobs['data'].data == x).all()


def test_layers_that_were_not_reached_cannot_run_backward(make):
    net = make(True)
    net.forward(data=images(0, 1, 3, 12, 12))
    net.blobs['data'].reshape(1, 3, 9, 9)
    net.forward(end='mixed')
    with pytest.raises(crema.Error, match='backward: layer "pool" has not run forward'):
        net.backward()
    # Nor forward, unless they take the new shape; then nothing changes.
    with pytest.raises(crema.Error, match='"ip"'):
        net.forward(start='pool')
    assert net.blobs['mixed'].data.shape == (1, 12, 9, 9) and net.blobs['pool'].data.shape == (1, 12, 6, 6)
    assert net.forward(start='pool', end='pool')['pool'].shape == (1, 12, 5, 5)
    with pytest.raises(crema.Error, match='"ip"'):
        net.reshape()
    assert net.blobs['pool'].data.shape == (1, 12, 5, 5)


def test_a_part_from_the_middle_takes_the_shapes_that_are_there(make):
    net = make(True)
    net.forward(data=images(0, 1, 3, 12, 12))
    before = net.blobs['mixed'].data.copy()
    net.blobs['data'].reshape(2, 3, 12, 12)
    net.forward(start='pool')  # nothing before it has run at the new shape
    assert net.blobs['prob'].data.shape == (1, 5)
    close(net.blobs['mixed'].data, before)
    net.forward()
    assert net.blobs['prob'].data.shape == (2, 5)


def test_parts_of_a_training_net(make):
    loss = 'layer {{ name: "loss" type: "Reduction" bottom: "prob" top: "loss" loss_weight: 1 }}\n'
    net = make(phase=crema.TRAIN, text=DREAM + loss)
    net.blobs['data'].reshape(1, 3, 8, 8)
    net.blobs['data'].data[...] = images(3, 1, 3, 8, 8)
    net.forward(end='mixed')
    net.blobs['mixed'].diff[...] = 1
    net.backward(start='mixed', end='conv1')
    assert np.abs(net.params['conv1'][0].diff).sum() > 0


def test_deep_visualization(make):
    """backward_from_layer and deconv_from_layer, by hand."""
    net = make(True)
    net.forward(data=images(0, 1, 3, 12, 12))
    diff = images(4, 1, 12, 12, 12)
    plain = net.backward_from_layer('mixed', diff)['data'].copy()
    net.blobs['mixed'].diff[...] = diff
    close(plain, net.backward(start='mixed')['data'])
    found = {}
    for kind in ('Zeiler & Fergus', 'Guided Backprop'):
        net.blobs['ip'].diff[...] = 1
        found[kind] = net.deconv_from_layer('mixed', diff, diffs=['conv1'], zero_higher=True, deconv_type=kind)
        assert not net.blobs['ip'].diff.any()
        # The gradient below a ReLU is rectified; in guided backpropagation only where the ReLU was active.
        below = found[kind]['conv1']
        assert below.min() >= 0 and below.max() > 0
        active = net.blobs['conv1'].data > 0
        assert (below[~active] > 0).any() == (kind == 'Zeiler & Fergus')
        found[kind] = found[kind]['data'].copy()
    assert not np.allclose(found['Zeiler & Fergus'], found['Guided Backprop'])
    with pytest.raises(ValueError, match='Guided Backprop'):
        net.deconv_from_layer('mixed', diff, deconv_type='other')
    with pytest.raises(ValueError, match='start_diff has the shape'):
        net.backward_from_layer('mixed', diff[:, :3])


# --- looking into a planned net ---

@pytest.fixture
def pair(make):
    """A planned net, and one of the same weights that keeps its blobs."""
    return twins(make)


def twins(make, **options):
    net, kept = make(**options), make(**{**options, 'force': True})
    kept.blobs['conv1'].diff  # from now on it keeps all of them
    assert kept._keeps_blobs and not net._keeps_blobs
    for name, blobs in net.params.items():
        for mine, theirs in zip(kept.params[name], blobs):
            mine.data[...] = theirs.data
    return net, kept


def both(pair, act):
    return [act(net) for net in pair]


@pytest.mark.parametrize('order', [INSIDE, INSIDE[::-1], ['ip'], ['left', 'left', 'pool']])
def test_a_look_shows_the_last_pass(pair, order):
    x, other = images(0, 1, 3, 12, 12), images(1, 1, 3, 12, 12)
    net, kept = pair
    close(*both(pair, lambda net: net.forward(data=x)['prob'].copy()))
    # Inputs and weights written later do not count before the next pass.
    for each in pair:
        each.blobs['data'].data[...] = other
        each.params['conv1'][0].data[...] *= 2
        each.params['ip'][1].data[0] = 3
    prob = net.blobs['prob'].data.copy()
    for name in order:
        close(net.blobs[name].data, kept.blobs[name].data)
    np.testing.assert_array_equal(net.blobs['prob'].data, prob)
    both(pair, lambda net: net.forward())
    for name in [*order, 'prob', 'data']:
        close(net.blobs[name].data, kept.blobs[name].data)


def test_arrays_show_later_passes(pair):
    """Whenever they were taken, as views of a net that keeps its blobs."""
    net, kept = pair
    held = {each: {name: each.blobs[name].data for name in ['data', 'prob']} for each in pair}
    for each in pair:
        held[each]['weights'] = each.params['conv1'][0].data
    for step, name in enumerate(['conv1', None, 'pool', 'left', 'ip', 'right', None]):
        for each in pair:
            held[each]['data'][...] = images(step, 1, 3, 12, 12)
            held[each]['weights'][step] += 1
            each.params['ip'][0].data[0] += 0.25
            each.forward()
            if name:
                held[each][name] = each.blobs[name].data
        for key in held[net]:
            close(held[net][key], held[kept][key])
            assert held[net][key].shape == held[kept][key].shape
        close(net.params['conv1'][0].data, kept.params['conv1'][0].data)


@pytest.mark.parametrize('looks', [0, 1, 4])
def test_what_is_written_inside_counts_for_parts(pair, looks):
    x = images(0, 1, 3, 12, 12)
    results = []
    for each in pair:
        each.forward(data=x)
        for name in INSIDE[:looks]:
            each.blobs[name].data
        each.blobs['mixed'].data[...] = images(5, 1, 12, 12, 12)
        each.blobs['conv1'].data
        results.append([each.forward(start='pool')['prob'].copy(), each.blobs['mixed'].data.copy(),
                        each.blobs['conv1'].data.copy()])
    for ours, theirs in zip(*results):
        close(ours, theirs)


def test_weights_from_a_file_count_from_the_next_pass_on(pair, tmp_path):
    x = images(0, 1, 3, 12, 12)
    net, kept = pair
    both(pair, lambda net: net.forward(data=x))
    net.params['conv1'][0].data[...] = 1
    net.save(str(tmp_path / 'one.caffemodel'))
    net.params['conv1'][0].data[...] = 2
    net.copy_from(str(tmp_path / 'one.caffemodel'))
    assert (net.params['conv1'][0].data == 1).all()
    close(net.blobs['conv1'].data, kept.blobs['conv1'].data)
    kept.copy_from(str(tmp_path / 'one.caffemodel'))
    close(*both(pair, lambda net: net.forward()['prob']))
    close(net.blobs['conv1'].data, kept.blobs['conv1'].data)


def test_reshape_and_gradients_after_looks(pair):
    net, kept = pair
    for each in pair:
        each.forward(data=images(0, 1, 3, 12, 12))
        each.blobs['left'].data
        each.blobs['data'].reshape(3, 3, 12, 12)
        each.forward(data=images(1, 3, 3, 12, 12))
    close(net.blobs['left'].data, kept.blobs['left'].data)
    close(net.forward(end='ip')['ip'], kept.forward(end='ip')['ip'])
    assert net.blobs['data'].diff.shape == (3, 3, 12, 12)
    net.backward()  # of a net without loss and force_backward: nothing flows
    assert not net.params['conv1'][0].diff.any()


def test_sources_inside_planned_nets(make):
    """The top of a DummyData layer is what a program writes there, from the first pass on."""
    text = DREAM.replace('type: "Input" top: "data" input_param', 'type: "DummyData" top: "data" dummy_data_param')
    net, given = make(text=text), make()
    for name, blobs in given.params.items():
        for mine, theirs in zip(net.params[name], blobs):
            mine.data[...] = theirs.data
    net.forward()
    x = images(0, 1, 3, 12, 12)
    net.blobs['data'].data[...] = x
    close(net.forward()['prob'], given.forward(data=x)['prob'])


def test_statistics_count_a_pass_once(make):
    norm = ('layer {{ name: "bn" type: "BatchNorm" bottom: "data" top: "bn" '
            'batch_norm_param {{ use_global_stats: false }} }}\nlayer {{ name: "conv1"')
    text = DREAM.replace('layer {{ name: "conv1"', norm)
    text = text.replace('bottom: "data" top: "conv1"', 'bottom: "bn" top: "conv1"')
    net, kept = make(text=text), make(True, text=text)
    held = net.params['bn'][0].data
    for step in range(3):
        for each in (net, kept):
            each.forward(data=images(step, 1, 3, 12, 12) + 2)
            each.blobs['bn'].data
        close(held, kept.params['bn'][0].data)
        close(net.params['bn'][2].data, kept.params['bn'][2].data)


# --- gradients of a net with force_backward, which stays planned ---

def gradients(net):
    found = {'data': net.blobs['data'].diff.copy(), 'prob': net.blobs['prob'].diff.copy()}
    found.update({f'{name}{i}': blob.diff.copy() for name, blobs in net.params.items() for i, blob in enumerate(blobs)})
    return found


def same_gradients(net, kept):
    ours, theirs = gradients(net), gradients(kept)
    for name in theirs:
        close(ours[name], theirs[name])
    assert np.abs(theirs['data']).sum() > 0 and np.abs(theirs['conv10']).sum() > 0


def forced(make, **options):
    pair = twins(make, force=True, **options)
    for net in pair:
        net.params['ip'][0].data[...] *= 0.05  # else the softmax is saturated
    return pair


def test_whole_backward_passes_stay_planned(make):
    net, kept = forced(make)
    for step in range(3):
        for each in (net, kept):
            each.forward(data=images(step, 1, 3, 12, 12))
            each.blobs['prob'].diff[...] = images(step + 10, 1, 5)
            each.backward()
        same_gradients(net, kept)  # those of parameters are added up
        if step == 1:
            for each in (net, kept):
                each.clear_param_diffs()
                assert not each.params['conv1'][0].diff.any()
    # By keyword, and a forward pass leaves gradients as they are.
    for each in (net, kept):
        each.forward(data=images(6, 1, 3, 12, 12))
    held = net.blobs['data'].diff
    close(net.backward(prob=images(5, 1, 5))['data'], kept.backward(prob=images(5, 1, 5))['data'])
    before = held.copy()
    for each in (net, kept):
        each.forward(data=images(7, 1, 3, 12, 12))
    np.testing.assert_array_equal(held, before)
    close(net.blobs['data'].diff, kept.blobs['data'].diff)
    assert not net._keeps_blobs
    # Another size.
    for each in (net, kept):
        each.blobs['data'].reshape(2, 3, 12, 12)
        each.forward(data=images(8, 2, 3, 12, 12))
        each.blobs['prob'].diff[...] = images(9, 2, 5)
        each.backward()
    same_gradients(net, kept)
    assert not net._keeps_blobs
    # A second backward pass of the same forward pass reads its blobs as the first one left them.
    for each in (net, kept):
        each.blobs['prob'].diff[...] = images(10, 2, 5)
        each.backward()
    same_gradients(net, kept)
    assert net._keeps_blobs


@pytest.mark.parametrize('looks', [['data'], ['conv1'], ['ip', 'left'], INSIDE])
def test_gradients_inside_are_those_of_the_last_backward_pass(make, looks):
    net, kept = forced(make)
    for each in (net, kept):
        each.forward(data=images(0, 1, 3, 12, 12))
        each.blobs['prob'].diff[...] = images(1, 1, 5)
        each.backward()
        # None of this counts before the next pass. Larger scores would enlarge the rounding errors of a planned net.
        each.params['ip'][0].data[...] *= 1.5
        each.blobs['prob'].diff[...] = np.arange(5)
        each.blobs['data'].data[...] = 4
    for name in looks:
        close(net.blobs[name].diff, kept.blobs[name].diff)
        close(net.blobs[name].data, kept.blobs[name].data)
    same_gradients(net, kept)
    assert net._keeps_blobs == (looks != ['data'])
    for each in (net, kept):
        each.forward(data=images(2, 1, 3, 12, 12))
        each.backward()
    same_gradients(net, kept)


@pytest.mark.parametrize('change', [
    lambda net: net.blobs['data'].data.fill(0.5),
    lambda net: net.params['conv1'][0].data.__imul__(2),
    lambda net: net.blobs['mixed'].data.fill(0.25),
])
def test_what_is_written_before_backward_counts(make, change):
    net, kept = forced(make)
    for each in (net, kept):
        each.forward(data=images(0, 1, 3, 12, 12))
        each.blobs['prob'].diff[...] = images(1, 1, 5)
        change(each)
        each.backward()
    same_gradients(net, kept)


def test_parts_after_a_planned_backward_pass(make):
    net, kept = forced(make)
    for each in (net, kept):
        each.forward(data=images(0, 1, 3, 12, 12))
        each.blobs['prob'].diff[...] = images(1, 1, 5)
        each.backward()
        each.blobs['mixed'].diff[...] = images(2, 1, 12, 12, 12)
        each.backward(start='mixed')
    same_gradients(net, kept)
    close(*(each.deconv_from_layer('mixed', images(3, 1, 12, 12, 12))['data'] for each in (net, kept)))


# --- layers written in Python, which are not called for a look ---

COUNTING = """import crema


class Twice(crema.Layer):
    def setup(self, bottom, top):
        self.calls, self.seen = 0, None

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        self.calls += 1
        self.seen = bottom[0].data
        top[0].data[...] = self.calls * bottom[0].data

    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[...] = self.calls * top[0].diff


class Positive(Twice):
    def reshape(self, bottom, top):
        if not self.calls:
            top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        self.calls += 1
        kept = 1 + self.calls % bottom[0].shape[0]
        top[0].reshape(kept, *bottom[0].shape[1:])
        top[0].data[...] = self.calls * bottom[0].data[:kept]
"""


@pytest.fixture
def counting(tmp_path, monkeypatch):
    (tmp_path / 'counting_layers.py').write_text(COUNTING)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop('counting_layers', None)


def with_python(kind, top):
    layer = ('layer {{ name: "twice" type: "Python" bottom: "mixed" top: "%s" '
             'python_param {{ module: "counting_layers" layer: "%s" }} }}\nlayer {{ name: "pool"' % (top, kind))
    text = DREAM.replace('layer {{ name: "pool"', layer)
    return text.replace('bottom: "mixed" top: "pool"', f'bottom: "{top}" top: "pool"')


@pytest.mark.parametrize('kind, top', [('Twice', 'twice'), ('Twice', 'mixed'), ('Positive', 'twice')])
@pytest.mark.parametrize('looks', [['conv1'], ['mixed'], ['ip', 'pool', 'left', 'conv1'], ['mixed', 'conv1']])
def test_python_layers_are_called_once_a_pass(make, counting, kind, top, looks):
    net, kept = twins(make, text=with_python(kind, top))
    for step in range(3):
        for each in (net, kept):
            each.forward(data=images(step, 3, 3, 12, 12)) if step else each.blobs['data'].reshape(3, 3, 12, 12)
        if step != 1:
            continue
        seen = net.layer_dict['twice'].seen.copy() if kind == 'Twice' else None
        for name in looks:
            close(net.blobs[name].data, kept.blobs[name].data)
        assert net.layer_dict['twice'].calls == kept.layer_dict['twice'].calls == 1
        if seen is not None:
            np.testing.assert_array_equal(net.layer_dict['twice'].seen, seen)
    assert net._keeps_blobs == (len(looks) > 3)
    close(net.blobs['prob'].data, kept.blobs['prob'].data)
    assert net.layer_dict['twice'].calls == 2


def test_what_a_python_layer_saw_stays(make, counting):
    net = make(text=with_python('Twice', 'twice'))
    mixed = make()
    for name, blobs in net.params.items():
        for mine, theirs in zip(mixed.params[name], blobs):
            mine.data[...] = theirs.data
    net.forward(data=images(0, 1, 3, 12, 12))
    mixed.forward(data=images(0, 1, 3, 12, 12))
    close(net.layer_dict['twice'].seen, mixed.blobs['mixed'].data)
    assert not net._keeps_blobs


def test_gradients_through_a_python_layer(make, counting):
    net, kept = forced(make, text=with_python('Twice', 'twice'))
    for each in (net, kept):
        each.forward(data=images(0, 1, 3, 12, 12))
        each.blobs['prob'].diff[...] = images(1, 1, 5)
        each.backward()
        assert each.layer_dict['twice'].calls == 1
    same_gradients(net, kept)


# --- BatchNorm and Scale that a planned net folds into the weights before them ---

FOLDED = """name: "folded" {0}
layer {{ name: "in" type: "Input" top: "data" input_param {{ shape {{ dim: 2 dim: 3 dim: 8 dim: 8 }} }} }}
layer {{ name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param {{ num_output: 8 kernel_size: 3
  bias_term: false weight_filler {{ type: "msra" }} }} }}
layer {{ name: "bn" type: "BatchNorm" bottom: "conv" top: "conv" }}
layer {{ name: "scale" type: "Scale" bottom: "conv" top: "conv" scale_param {{ bias_term: true }} }}
layer {{ name: "conv2" type: "Convolution" bottom: "conv" top: "conv2" convolution_param {{ num_output: 4 kernel_size: 3
  weight_filler {{ type: "msra" }} }} }}
layer {{ name: "bn2" type: "BatchNorm" bottom: "conv2" top: "out" }}
"""


def randomize(net, seed):
    """As after training: a number, sums of it, positive variances."""
    random = np.random.default_rng(seed)
    for name, blobs in net.params.items():
        for index, blob in enumerate(blobs):
            values = 0.3 * random.normal(size=blob.data.shape)
            blob.data[...] = [values, abs(values) + 0.5, 2.][index] if name.startswith('bn') else values


@pytest.fixture
def pair_of_folded(make):
    """One net that folds, and one that keeps its blobs, alike."""
    x = images(3, 2, 3, 8, 8)
    planned, kept = make(text=FOLDED, planned=True), make(text=FOLDED)
    kept.blobs['conv'].data  # looks inside
    for net in planned, kept:
        randomize(net, 1)
        net.blobs['data'].data[...] = x
    close(planned.forward()['out'], kept.forward()['out'])
    return planned, kept


def test_weights_written_after_a_pass_count_in_the_next(pair_of_folded):
    arrays = [[blob.data for blobs in net.params.values() for blob in blobs] for net in pair_of_folded]
    for ours, theirs in zip(*arrays):
        for array in ours, theirs:
            array[...] = 0.7 * array + 0.2
        planned, kept = (net.forward()['out'].copy() for net in pair_of_folded)
        close(planned, kept)


def test_weights_shared_after_a_pass_count_in_the_next(pair_of_folded, make):
    planned, kept = pair_of_folded
    other = make(text=FOLDED, planned=True)
    randomize(other, 2)
    before = planned.forward()['out'].copy()
    for net in planned, kept:
        net.share_with(other)
    close(planned.forward()['out'], kept.forward()['out'])
    assert abs(planned.forward()['out'] - before).max() > 0.1
    for blobs in other.params.values():
        blobs[0].data[...] *= 0.5
    close(planned.forward()['out'], kept.forward()['out'])


def test_statistics_of_a_net_in_training_reach_one_that_shares_them(pair_of_folded, make):
    planned, kept = pair_of_folded
    training = make(text=FOLDED, phase=crema.TRAIN)
    randomize(training, 2)
    for net in planned, kept:
        net.share_with(training)
    for seed in range(3):
        training.forward(data=images(seed, 2, 3, 8, 8))
        close(planned.forward()['out'], kept.forward()['out'])


def test_loading_and_then_looking_inside_keeps_the_loaded_weights(make, tmp_path):
    path = str(tmp_path / 'other.caffemodel')
    other, net = make(text=FOLDED), make(text=FOLDED)
    randomize(other, 9)
    other.save(path)
    randomize(net, 1)
    x = images(3, 2, 3, 8, 8)
    expected = other.forward(data=x)['out'].copy()
    net.forward(data=x)
    net.copy_from(path)
    net.blobs['conv2'].data  # of the last pass
    close(net.forward()['out'], expected)
