"""Nets, solvers and layers in Python on a GPU: against the CPU, and against other libraries that share its memory."""
import threading

import numpy as np
import pytest

import crema


def missing_gpu():
    try:
        crema.set_device(0)
    except crema.Error as error:
        return str(error)
    return ""


pytestmark = pytest.mark.skipif(bool(missing_gpu()), reason=missing_gpu())

LAYERS = """
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 8 kernel_size: 5 weight_filler { type: "xavier" } bias_filler { type: "constant" value: 0.1 } } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "relu1" type: "ReLU" bottom: "pool1" top: "pool1" }
layer { name: "ip1" type: "InnerProduct" bottom: "pool1" top: "ip1"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
"""
DEPLOY = """
layer { name: "in" type: "Input" top: "data" input_param { shape { dim: 4 dim: 1 dim: 28 dim: 28 } } }
""" + LAYERS + 'layer { name: "prob" type: "Softmax" bottom: "ip1" top: "prob" }'
TRAIN = """
layer { name: "in" type: "Input" top: "data" top: "label" input_param { shape { dim: 4 dim: 1 dim: 28 dim: 28 } shape { dim: 4 } } }
""" + LAYERS + 'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip1" bottom: "label" top: "loss" }'
SOLVER = """
net_param { %s }
test_iter: 1 test_interval: 1000 test_initialization: false base_lr: 0.02 lr_policy: "fixed" momentum: 0.9
max_iter: 30 random_seed: 3 snapshot_after_train: false
""" % TRAIN
IMAGES = np.random.RandomState(1).randn(4, 1, 28, 28).astype(np.float32)
LABELS = np.array([3, 1, 4, 1], np.float32)


@pytest.fixture(autouse=True)
def gpu():
    crema.set_mode_gpu()
    yield
    crema.set_mode_cpu()


@pytest.fixture
def make(tmp_path):
    """make(text): a net on the GPU; make(text, cpu=True): on the CPU. weights: those of this net."""
    count = iter(range(1000))

    def make(text, phase=crema.TEST, cpu=False, weights=None, **options):
        path = tmp_path / f"net{next(count)}.prototxt"
        path.write_text(text)
        (crema.set_mode_cpu if cpu else crema.set_mode_gpu)()
        net = crema.Net(str(path), phase, **options)
        crema.set_mode_gpu()
        for name, blobs in (weights.params if weights else {}).items():
            for mine, theirs in zip(net.params[name], blobs):
                mine.data[...] = theirs.data
        return net

    return make


def close(a, b, tolerance=2e-4):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def make_solver(extra="", **options):
    solver = crema.get_solver(text=SOLVER + extra, log=False, **options)
    for net in [solver.net, *solver.test_nets]:
        net.blobs["data"].data[...] = IMAGES
        net.blobs["label"].data[...] = LABELS
    return solver


def copies(solver):
    return [blob.data.copy() for blobs in solver.net.params.values() for blob in blobs]


def equal(a, b):
    return all(np.array_equal(*pair) for pair in zip(a, b))


# --- nets ---

def test_every_blob_equals_the_cpu(make):
    net = make(TRAIN, crema.TRAIN)
    reference = make(TRAIN, crema.TRAIN, cpu=True, weights=net)
    for each in (net, reference):
        each.forward(data=IMAGES, label=LABELS)
        each.backward()
    for name in net.blobs:
        close(net.blobs[name].data, reference.blobs[name].data)
        close(net.blobs[name].diff, reference.blobs[name].diff)
    for name, blobs in net.params.items():
        for mine, theirs in zip(blobs, reference.params[name]):
            close(mine.diff, theirs.diff, 1e-3)


def test_what_is_written_counts(make):
    net = make(DEPLOY)
    data = net.blobs["data"].data
    for value in (0, 1):
        data[...] = value  # into an array that is held
        first = net.forward()["prob"].copy()
    net.params["conv1"][0].data[...] = 0
    net.params["conv1"][1].data[...] = 0
    net.params["ip1"][0].data[...] = 0
    net.params["ip1"][1].data[...] = np.arange(10)
    expected = np.exp(np.arange(10)) / np.exp(np.arange(10)).sum()
    close(net.forward()["prob"], np.tile(expected, (4, 1)))
    assert not np.allclose(first, expected)
    # A part of a pass reads values that were put in between.
    net.blobs["ip1"].data[...] = np.arange(10)[::-1]
    close(net.forward(start="prob")["prob"][:, ::-1], np.tile(expected, (4, 1)))


def test_parts_and_shapes(make):
    net = make(DEPLOY)
    net.blobs["data"].reshape(2, 1, 28, 28)
    net.blobs["data"].data[...] = IMAGES[:2]
    whole = net.forward()["prob"].copy()
    reference = make(DEPLOY, cpu=True, weights=net)
    close(whole, reference.forward(data=IMAGES)["prob"][:2])
    net.forward(end="relu1")
    close(net.forward(start="ip1")["prob"], whole)


@pytest.mark.parametrize("precision, tolerance", [("fp32", 1e-4), ("tf32", 5e-3), ("bf16", 3e-2), ("fp16", 5e-3), ("", 5e-3)])
def test_planned(make, precision, tolerance):
    net = make(DEPLOY, planned=True, precision=precision)
    reference = make(DEPLOY, cpu=True, weights=net)
    expected = reference.forward(data=IMAGES)["prob"]
    for _ in range(2):
        close(net.forward(data=IMAGES)["prob"], expected, tolerance)
    net.params["ip1"][0].data[...] = 0
    close(net.forward(data=IMAGES)["prob"], 0.1, 1e-2)


def test_save_and_load(make, tmp_path):
    net = make(DEPLOY)
    net.save(str(tmp_path / "net.caffemodel"))
    other = make(DEPLOY, cpu=True)
    other.copy_from(str(tmp_path / "net.caffemodel"))
    close(other.forward(data=IMAGES)["prob"], net.forward(data=IMAGES)["prob"])


def test_arrays_outlive_the_net(make):
    net = make(DEPLOY)
    prob = net.forward(data=IMAGES)["prob"]
    before = prob.copy()
    del net
    assert np.array_equal(prob, before)


def test_threads(make):
    nets = [make(DEPLOY) for _ in range(2)]
    expected = [net.forward(data=IMAGES)["prob"].copy() for net in nets]
    wrong = []

    def work(net, want):
        for _ in range(50):
            if not np.allclose(net.forward(data=IMAGES)["prob"], want, atol=1e-5):
                wrong.append(net)

    threads = [threading.Thread(target=work, args=(nets[i % 2], expected[i % 2])) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_label_out_of_range(make):
    net = make(TRAIN, crema.TRAIN)
    with pytest.raises(crema.Error, match=r'net0.prototxt:\d+:\d+: layer "loss": .*10'):
        net.forward(data=IMAGES, label=LABELS + 9)
    net.forward(data=IMAGES, label=LABELS)


# --- other libraries ---

def use_torch():
    torch = pytest.importorskip("torch")
    return lambda blob: torch.from_dlpack(blob), lambda array: array.cpu().numpy(), torch.Tensor.data_ptr


def use_cupy():
    cupy = pytest.importorskip("cupy")
    return cupy.from_dlpack, cupy.asnumpy, lambda array: array.data.ptr


@pytest.mark.parametrize("library", [use_torch, use_cupy])
def test_memory_is_shared(make, library):
    take, to_numpy, pointer = library()
    net = make(DEPLOY)
    net.forward(data=IMAGES)
    for blob in (net.blobs["prob"], net.blobs["data"], net.params["conv1"][0]):
        assert blob.__dlpack_device__() == (2, 0)
        array = take(blob)
        assert pointer(array) == blob._gpu_data_ptr
        assert np.array_equal(to_numpy(array), blob.data)
    # The next pass reads what the library writes on its own stream.
    data, prob = take(net.blobs["data"]), take(net.blobs["prob"])
    reference = make(DEPLOY, cpu=True, weights=net)
    for scale in (0.5, 2):
        for _ in range(20):
            data *= 1.01
        data[...] = data / data.max() * scale
        net.forward()
        close(to_numpy(prob), reference.forward(data=to_numpy(data))["prob"])
    weights = take(net.params["ip1"][0])
    weights[...] = 0
    net.forward()
    bias = net.params["ip1"][1].data
    close(to_numpy(prob), np.tile(np.exp(bias) / np.exp(bias).sum(), (4, 1)))
    del net
    assert to_numpy(prob).shape == (4, 10)


@pytest.mark.parametrize("library", [use_torch, use_cupy])
def test_an_array_on_the_gpu_becomes_an_input(make, library):
    take, to_numpy, _ = library()
    source = make(DEPLOY)
    source.blobs["data"].data[...] = IMAGES
    array = take(source.blobs["data"])
    net = make(DEPLOY, weights=source)
    view = take(net.blobs["data"])
    view[...] = array
    close(net.forward()["prob"], source.forward()["prob"])
    with pytest.raises((crema.Error, BufferError, TypeError, RuntimeError)):
        crema.from_dlpack(array)  # NumPy arrays are in the host's memory


# --- solvers ---

def test_training_follows_the_cpu():
    solver = make_solver(precision="fp32")
    weights = copies(solver)
    crema.set_mode_cpu()
    reference = make_solver()
    blobs = [blob for each in reference.net.params.values() for blob in each]
    for blob, values in zip(blobs, weights):
        blob.data[...] = values
    for _ in range(3):
        solver.step(2)
        reference.step(2)
        close(solver.loss, reference.loss, 1e-3)
    for mine, theirs in zip(copies(solver), copies(reference)):
        close(mine, theirs, 1e-3)


def test_a_loop_in_python():
    whole, by_hand = make_solver(precision="fp32"), make_solver(precision="fp32")
    whole.step(5)
    for _ in range(5):
        by_hand.net.clear_param_diffs()
        by_hand.net.forward()
        by_hand.net.backward()
        by_hand.apply_update()
    for mine, theirs in zip(copies(whole), copies(by_hand)):
        close(mine, theirs, 1e-3)


def test_base_lr_and_callbacks():
    solver, calls = make_solver(), []
    before = copies(solver)
    solver.param.base_lr = 0
    solver.step(3)
    assert equal(before, copies(solver))
    solver.param.base_lr = 0.02

    def ready():
        calls.append(solver.iter)
        for blobs in solver.net.params.values():
            for blob in blobs:
                assert np.abs(blob.diff).sum() > 0
                blob.diff[...] = 0

    # The momentum is zero, as no update has happened.
    solver.add_callback(lambda: calls.append("start"), ready)
    solver.step(2)
    assert calls == ["start", 3, "start", 4]
    assert equal(before, copies(solver))


def test_snapshot_and_restore(tmp_path):
    prefix = f'snapshot_prefix: "{tmp_path}/s"'
    solver = make_solver(prefix)
    solver.step(4)
    model, state = solver.snapshot()
    saved = copies(solver)
    other = make_solver(prefix)
    other.restore(state)
    assert other.iter == 4 and equal(saved, copies(other))
    solver.step(3)
    other.step(3)
    for mine, theirs in zip(copies(solver), copies(other)):
        close(mine, theirs, 1e-4)
    assert make_solver(prefix, weights=[model]).iter == 0


def test_blobs_of_a_solvers_net(make):
    solver = make_solver()
    solver.step(2)
    blobs = {name: blob.data.copy() for name, blob in solver.net.blobs.items()}
    net = make(TRAIN, crema.TRAIN)
    for name, params in solver.net.params.items():
        for mine, theirs in zip(net.params[name], params):
            mine.data[...] = theirs.data
    net.forward(data=IMAGES, label=LABELS)
    for name in ("conv1", "pool1", "ip1"):
        close(blobs[name], net.blobs[name].data, 5e-3)
    solver.step(2)
    assert not np.array_equal(blobs["ip1"], solver.net.blobs["ip1"].data)


@pytest.mark.parametrize("precision", ["fp32", "tf32"])
def test_share_with_a_solver(make, precision):
    solver = make_solver(precision=precision)
    net = make(DEPLOY)
    net.share_with(solver.net)
    for _ in range(2):
        solver.step(2)
        reference = make(DEPLOY, cpu=True, weights=solver.net)
        close(net.forward(data=IMAGES)["prob"], reference.forward(data=IMAGES)["prob"], 1e-4 if precision == "fp32" else 1e-2)


@pytest.mark.parametrize("precision", ["tf32", "bf16", "fp16"])
def test_solve(precision):
    solver = make_solver(precision=precision)
    first = solver.net.forward()["loss"].item()
    solver.solve()
    assert solver.iter == 30
    assert solver.net.forward()["loss"].item() < 0.5 * first
    assert solver.test()["loss"] < 0.5 * first


def test_fit():
    random = np.random.RandomState(0)
    x = random.rand(400, 1, 12, 12).astype(np.float32)
    y = x[:, 0, :6].sum(axis=(1, 2)) > x[:, 0, 6:].sum(axis=(1, 2))
    model = crema.Classifier(epochs=30, verbose=0, random_state=1).fit(x, y)
    assert model.score(x, y) > 0.9


# --- layers in Python ---

PYTHON = 'layer { name: "%s" type: "Python" bottom: "%s" top: "%s" python_param { module: "test_gpu" layer: "%s" } }'


class Squares(crema.Layer):
    """y = x * x"""

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        top[0].data[...] = bottom[0].data ** 2

    def backward(self, top, propagate_down, bottom):
        if propagate_down[0]:
            bottom[0].diff[...] = 2 * bottom[0].data * top[0].diff


class Plus(crema.Layer):
    """Learns what to add."""

    def setup(self, bottom, top):
        self.blobs.add_blob(bottom[0].shape[1])
        self.blobs[0].data[...] = 0.5

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        top[0].data[...] = bottom[0].data + self.blobs[0].data[:, None, None]

    def backward(self, top, propagate_down, bottom):
        self.blobs[0].diff[...] += top[0].diff.sum(axis=(0, 2, 3))
        if propagate_down[0]:
            bottom[0].diff[...] = top[0].diff


class Brighter(crema.Layer):
    """The images brighter than the mean: how many depends on the data."""

    def reshape(self, bottom, top):
        top[0].reshape(1, *bottom[0].shape[1:])

    def forward(self, bottom, top):
        means = bottom[0].data.mean(axis=(1, 2, 3))
        rows = np.flatnonzero(means > means.mean())
        top[0].reshape(len(rows), *bottom[0].shape[1:])
        top[0].data[...] = bottom[0].data[rows]

    def backward(self, top, propagate_down, bottom):
        pass


class Broken(crema.Layer):
    def reshape(self, bottom, top):
        top[0].reshape(1)

    def forward(self, bottom, top):
        raise ValueError("broken on purpose")


def with_python():
    """data -> Squares -> conv1 -> Plus -> pool1 -> ..."""
    head, tail = TRAIN.split('layer { name: "pool1"')
    head = head.replace('layer { name: "conv1" type: "Convolution" bottom: "data"',
                        PYTHON % ("squares", "data", "squares", "Squares")
                        + 'layer { name: "conv1" type: "Convolution" bottom: "squares"')
    return head + PYTHON % ("plus", "conv1", "plus", "Plus") + 'layer { name: "pool1"' + tail.replace('"conv1"', '"plus"')


def test_python_between_layers_of_the_gpu(make):
    net = make(with_python(), crema.TRAIN)
    reference = make(with_python(), crema.TRAIN, cpu=True, weights=net)
    for each in (net, reference):
        each.forward(data=IMAGES, label=LABELS)
        each.backward()
    for name in net.blobs:
        close(net.blobs[name].data, reference.blobs[name].data)
    for name, blobs in net.params.items():
        for mine, theirs in zip(blobs, reference.params[name]):
            close(mine.diff, theirs.diff, 1e-3)


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_python_layers_train(precision):
    text = SOLVER.replace(TRAIN, with_python())
    solver = crema.get_solver(text=text, log=False, precision=precision)
    crema.set_mode_cpu()
    reference = crema.get_solver(text=text, log=False)
    for each in (solver, reference):
        each.net.blobs["data"].data[...] = IMAGES
        each.net.blobs["label"].data[...] = LABELS
    for name, blobs in reference.net.params.items():
        for mine, theirs in zip(blobs, solver.net.params[name]):
            mine.data[...] = theirs.data
    for each in (solver, reference):
        each.step(10)
    close(solver.loss, reference.loss, 2e-3 if precision == "fp32" else 0.1)
    plus = solver.net.params["plus"][0].data
    assert not np.array_equal(plus, np.full_like(plus, 0.5))


def test_shapes_that_depend_on_data(make):
    text = DEPLOY.replace('bottom: "data" top: "conv1"', 'bottom: "bright" top: "conv1"')
    source, rest = text.split('layer { name: "conv1"')
    text = source + PYTHON % ("bright", "data", "bright", "Brighter") + 'layer { name: "conv1"' + rest
    for planned in (False, True):
        net = make(text, planned=planned)
        reference = make(text, cpu=True, weights=net)
        for shift in range(3):
            images = np.roll(IMAGES, shift, axis=0) + np.arange(4)[:, None, None, None] * (shift - 1)
            close(net.forward(data=images)["prob"], reference.forward(data=images)["prob"], 5e-3)


def test_an_exception_in_a_layer(make):
    net = make(DEPLOY.split('layer { name: "conv1"')[0] + PYTHON % ("broken", "data", "y", "Broken"))
    with pytest.raises(crema.Error, match=r'net0.prototxt:\d+:\d+: layer "broken"(.|\n)*broken on purpose'):
        net.forward(data=IMAGES)
