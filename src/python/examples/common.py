"""Common code of the examples: their flags, the digits, LeNet, and writing pictures."""

import argparse
import functools
import gzip
import importlib.util
import os
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
MAKE_DIGITS = os.path.join(HERE, "..", "..", "..", "data_scripts", "make_digits.py")


def parser(doc, **defaults):
    """A parser with the flags of all examples; its description is the first paragraph of the example's docstring."""
    flags = argparse.ArgumentParser(description=doc.split("\n\n")[0])
    flags.add_argument("--output", default="pictures", metavar="DIR", help="folder for the pictures (pictures)")
    flags.add_argument("--full", action="store_true", help="as long as the real thing takes; without it seconds")
    flags.add_argument("--seed", type=int, default=1, help="of weights and data (1)")
    flags.add_argument("--gpu", type=int, metavar="N", help="compute on this GPU")
    flags.set_defaults(**defaults)
    return flags


def start(crema, flags):
    """Setup for every example: device, seed, folder for pictures, and no log of nets."""
    crema.init_log(1)
    if flags.gpu is not None:
        crema.set_device(flags.gpu)
        crema.set_mode_gpu()
    crema.set_random_seed(flags.seed)
    os.makedirs(flags.output, exist_ok=True)


def add_data_flag(flags):
    flags.add_argument(
        "--data",
        metavar="DIR",
        help="MNIST's four files, as data_scripts/get_mnist.sh fetches them; "
        "without it digits are drawn, as by data_scripts/make_digits.py",
    )


def read_idx(path):
    """An array from a file in MNIST's format, with or without gzip."""
    if not os.path.exists(path):
        path += ".gz"
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        content = file.read()
    dimensions = content[3]
    shape = np.frombuffer(content, ">u4", dimensions, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


@functools.lru_cache(maxsize=2)
def digits(folder=None, train=2000, test=500, seed=1):
    """Images (N, 1, 28, 28) from 0 to 1 and labels (N,), for training and for tests: x, y, x_test, y_test.

    Reads all of MNIST's files in `folder`; without it draws this many digits.
    """
    found = []
    if folder is None:
        spec = importlib.util.spec_from_file_location("make_digits", MAKE_DIGITS)
        make_digits = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(make_digits)
        make_digits.load_glyphs()
        for part, count in enumerate([train, test]):
            images, labels = make_digits.render_range((seed, part, 0, count))
            found += [images.reshape(-1, 28, 28), labels]
    else:
        for part in ("train", "t10k"):
            found += [
                read_idx(os.path.join(folder, part + "-images-idx3-ubyte")),
                read_idx(os.path.join(folder, part + "-labels-idx1-ubyte")),
            ]
    return tuple(a[:, None].astype(np.float32) / 255 if a.ndim == 3 else a.astype(np.int64) for a in found)


def lenet(batch, last="ip2", outputs=10, frozen=False):
    """LeNet as a NetSpec: inputs data (batch, 1, 28, 28) and label (batch,); frozen: trains only the last layer."""
    from crema import NetSpec, layers as L, params as P

    def learned(**fields):
        rates = (0, 0) if frozen and fields.get("name") != last else (1, 2)
        return dict(param=[dict(lr_mult=rate) for rate in rates], weight_filler=dict(type="xavier"))

    net = NetSpec()
    net.data = L.Input(shape=dict(dim=[batch, 1, 28, 28]))
    net.label = L.Input(shape=dict(dim=[batch]))
    net.conv1 = L.Convolution(net.data, kernel_size=5, num_output=20, **learned())
    net.pool1 = L.Pooling(net.conv1, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    net.conv2 = L.Convolution(net.pool1, kernel_size=5, num_output=50, **learned())
    net.pool2 = L.Pooling(net.conv2, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    net.ip1 = L.InnerProduct(net.pool2, num_output=500, **learned())
    net.relu1 = L.ReLU(net.ip1, in_place=True)
    fresh = dict(param=[dict(lr_mult=1), dict(lr_mult=2)], weight_filler=dict(type="xavier"))
    net[last] = L.InnerProduct(net.relu1, num_output=outputs, **fresh)
    net.accuracy = L.Accuracy(net[last], net.label)
    net.loss = L.SoftmaxWithLoss(net[last], net.label)
    return net


def deploy(spec, scores, batch):
    """The deploy text of a NetSpec's net: a softmax of the scores replaces its labels, accuracy and loss."""
    message = spec.to_proto()
    kept = [layer for layer in message.layer if layer.name not in ("label", "accuracy", "loss")]
    del message.layer[:]
    message.layer.extend(kept)
    message.layer[0].input_param.shape[0].dim[0] = batch
    message.layer.add(name="prob", type="Softmax", bottom=[scores], top=["prob"])
    return str(message)


def write_text(text, name, folder=None):
    """Writes a net or a solver into a folder, a temporary one if none is given. Returns its path."""
    path = os.path.join(folder or tempfile.mkdtemp(prefix="crema-example-"), name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(str(text))
    return path


ADAM = 'type: "Adam" base_lr: 0.001 momentum: 0.9 momentum2: 0.999'


def solver(crema, net_file, seed, fields):
    """A solver with a fixed rate for a net that the caller steps."""
    text = 'net: "%s" %s lr_policy: "fixed" max_iter: 100000 random_seed: %d' % (net_file, fields, seed)
    return crema.get_solver(write_text(text, "solver.prototxt"))


def batches(count, batch, generator):
    """Yields indices of samples, a batch at a time, forever: each epoch in a new order."""
    order = np.empty(0, np.int64)
    while True:
        while len(order) < batch:
            order = np.concatenate([order, generator.permutation(count)])
        yield order[:batch]
        order = order[batch:]


def feed(net, **arrays):
    """Puts arrays into the inputs of a net."""
    for name, array in arrays.items():
        net.blobs[name].data[...] = array.reshape(net.blobs[name].data.shape)


def copy_weights(net, source):
    """Gives a net the weights of another one, layer by layer."""
    for name, blobs in net.params.items():
        for blob, other in zip(blobs, source.params[name]):
            blob.data[...] = other.data


def accuracy(net, x, y, scores="ip2"):
    """The accuracy on images of a net with the inputs data and label."""
    batch = net.blobs["data"].shape[0]
    right = 0
    for begin in range(0, len(x), batch):
        chosen = np.arange(begin, begin + batch) % len(x)
        feed(net, data=x[chosen])
        if "label" in net.blobs:
            feed(net, label=y[chosen])
        net.forward()
        count = min(batch, len(x) - begin)
        right += (net.blobs[scores].data.argmax(axis=1)[:count] == y[chosen[:count]]).sum()
    return right / len(x)


def tile(images, columns=None, gap=1):
    """One picture from many of equal size: (N, H, W) or (N, H, W, 3), each stretched to 0 to 1, on white."""
    images = np.asarray(images, np.float32)
    low = images.reshape(len(images), -1).min(1).reshape((-1,) + (1,) * (images.ndim - 1))
    high = images.reshape(len(images), -1).max(1).reshape(low.shape)
    images = (images - low) / np.maximum(high - low, 1e-9)
    columns = columns or int(np.ceil(np.sqrt(len(images))))
    rows = -(-len(images) // columns)
    height, width = images.shape[1:3]
    # Nothing is drawn at nan, whatever the colours.
    sheet = np.full(
        (rows * (height + gap) - gap, columns * (width + gap) - gap) + images.shape[3:],
        np.nan if images.ndim == 3 else 1,
        np.float32,
    )
    for i, image in enumerate(images):
        top, left = i // columns * (height + gap), i % columns * (width + gap)
        sheet[top : top + height, left : left + width] = image
    return sheet


def figure(columns=1, width=4.0, height=3.6, rows=1):
    """A matplotlib figure and its axes in a flat list."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    drawn, axes = plt.subplots(
        rows, columns, figsize=(columns * width, rows * height), constrained_layout=True, squeeze=False
    )
    return drawn, list(axes.ravel())


def show(axes, image, title, **style):
    """A picture without ticks."""
    axes.imshow(image, **{"cmap": "gray", "interpolation": "nearest", **style})
    axes.set_title(title, fontsize=10)
    axes.set_axis_off()


def plain(axes):
    """Curves without a box around them."""
    axes.grid(alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def save(drawn, flags, name):
    """Writes the picture into the folder of --output and says so."""
    from matplotlib import pyplot as plt

    path = os.path.join(flags.output, name + ".png")
    drawn.savefig(path, dpi=110)
    plt.close(drawn)
    print("wrote", path)
    return path
