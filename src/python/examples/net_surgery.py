"""Net surgery: filters written by hand, and a classifier made fully convolutional, for pictures of any size.

LeNet's first fully connected layer sees maps of 4 x 4, so it is a convolution with kernels of 4 x 4 and the same
weights; the last one is a convolution of 1 x 1. On a picture of 28 x 28 both nets give the same result; on a larger
one the second gives a map of predictions. Pictures: surgery_filters, surgery_map.
"""

import os
import tempfile

import numpy as np

import common


def gaussian(size, sigma):
    line = np.exp(-0.5 * ((np.arange(size) - (size - 1) / 2) / sigma) ** 2)
    kernel = np.outer(line, line)
    return (kernel / kernel.sum()).astype(np.float32)


def edit_filters(crema, flags, image):
    """A net of one convolution with handwritten kernels: blur and edges. Returns its maps."""
    from crema import layers as L

    net = crema.NetSpec()
    net.data = L.Input(shape=dict(dim=[1, 1] + list(image.shape)))
    net.conv = L.Convolution(net.data, kernel_size=5, num_output=3)
    net = crema.Net(common.write_text(net.to_proto(), "filters.prototxt"), crema.TEST)
    edges = np.array([-1, -2, 0, 2, 1], np.float32)
    smooth = np.array([1, 4, 6, 4, 1], np.float32) / 16
    # params are views of the net's own memory: the net computes with what you write to them.
    net.params["conv"][0].data[:, 0] = gaussian(5, 1.5), np.outer(edges, smooth), np.outer(smooth, edges)
    net.params["conv"][1].data[...] = 0
    net.blobs["data"].data[0, 0] = image
    maps = net.forward()["conv"][0].copy()
    drawn, axes = common.figure(4, 3, 3)
    for ax, picture, title in zip(
        axes, [image, *maps], ["a picture", "blurred", "edges above and below", "edges left and right"]
    ):
        common.show(ax, picture, title)
    common.save(drawn, flags, "surgery_filters")
    # The blur removes details and keeps the brightness.
    net.params["conv"][1].data[0] = 1
    raised = net.forward()["conv"][0, 0]
    return maps, float(np.abs(raised - maps[0] - 1).max())


def fully_convolutional(spec, height, width):
    """The deploy text of LeNet, with its fully connected layers written as convolutions."""
    message = spec.to_proto()
    kept = [layer for layer in message.layer if layer.name not in ("label", "accuracy", "loss")]
    del message.layer[:]
    message.layer.extend(kept)
    message.layer[0].input_param.shape[0].dim[:] = [1, 1, height, width]
    names = {"ip1": ("ip1_conv", 4), "ip2": ("ip2_conv", 1)}
    for layer in message.layer:
        if layer.name in names:
            layer.name, kernel = names[layer.name]
            layer.type = "Convolution"
            layer.convolution_param.num_output = layer.inner_product_param.num_output
            layer.convolution_param.kernel_size.append(kernel)
            layer.ClearField("inner_product_param")
    message.layer.add(name="prob", type="Softmax", bottom=["ip2"], top=["prob"])
    return str(message)


def moved(image, down, right):
    """An image (1, H, W) moved by so many pixels, with black where it was."""
    height, width = image.shape[1:]
    result = np.zeros_like(image)
    result[:, max(down, 0) : height + min(down, 0), max(right, 0) : width + min(right, 0)] = image[
        :, max(-down, 0) : height + min(-down, 0), max(-right, 0) : width + min(-right, 0)
    ]
    return result


def main(arguments=None):
    flags = common.parser(__doc__)
    common.add_data_flag(flags)
    flags = flags.parse_args(arguments)
    import crema

    common.start(crema, flags)
    x, y, x_test, y_test = common.digits(flags.data, seed=flags.seed)
    # A wide picture with eight digits, not in one line.
    generator = np.random.default_rng(flags.seed)
    canvas, truth = np.zeros((80, 320), np.float32), []
    for i in range(8):
        row, column = generator.integers(10, 53), 12 + 38 * i
        canvas[row : row + 28, column : column + 28] = np.maximum(
            canvas[row : row + 28, column : column + 28], x_test[i, 0]
        )
        truth.append((row, column, int(y_test[i])))
    maps, shift = edit_filters(crema, flags, canvas[:, :120])

    # Train LeNet on digits in the middle, give or take 2 pixels, and on one more class: gaps and parts of digits.
    spec = common.lenet(64, outputs=11)
    folder = tempfile.mkdtemp(prefix="crema-example-")
    net_file = common.write_text(spec.to_proto(), "lenet.prototxt", folder)
    solver = common.solver(crema, net_file, flags.seed, common.ADAM)
    places = common.batches(len(x), 48, generator)
    for _ in range(2000 if flags.full else 200):
        chosen = next(places)
        images = [moved(image, *generator.integers(-2, 3, 2)) for image in x[chosen]]
        for image in x[next(places)[:16]]:
            away = generator.integers(7, 28) * generator.choice([-1, 1]), generator.integers(-10, 11)
            images.append(moved(image, *generator.permutation(away)))
        labels = list(y[chosen]) + [10] * 16
        common.feed(solver.net, data=np.array(images), label=np.array(labels))
        solver.step(1)
    weights = os.path.join(folder, "lenet.caffemodel")
    solver.net.save(weights)

    net = crema.Net(common.write_text(common.deploy(spec, "ip2", 1), "deploy.prototxt", folder), weights, crema.TEST)
    convolutional_file = common.write_text(fully_convolutional(spec, 28, 28), "convolutional.prototxt", folder)
    convolutional = crema.Net(convolutional_file, weights, crema.TEST)
    # The transplant: the same numbers in another shape, (500, 800) and (500, 50, 4, 4).
    for old, new in (("ip1", "ip1_conv"), ("ip2", "ip2_conv")):
        for source, target in zip(net.params[old], convolutional.params[new]):
            print("%s %s -> %s %s" % (old, tuple(source.shape), new, tuple(target.shape)))
            target.data.flat = source.data.flat
    common.feed(net, data=x_test[:1])
    common.feed(convolutional, data=x_test[:1])
    difference = float(np.abs(net.forward()["prob"].ravel() - convolutional.forward()["prob"].ravel()).max())
    print("largest difference of the two nets' answers on one digit: %.1e" % difference)

    convolutional.blobs["data"].reshape(1, 1, *canvas.shape)
    convolutional.reshape()
    convolutional.save(os.path.join(folder, "convolutional.caffemodel"))
    common.feed(convolutional, data=canvas)
    probabilities = convolutional.forward()["prob"][0]
    answers = probabilities.argmax(axis=0)
    # Answer (i, j) is about the 28 x 28 pixels from (4 i, 4 j) on: the two poolings divide both extents by 4.
    found = [int(probabilities[:10, round(row / 4), round(column / 4)].argmax()) for row, column, _ in truth]
    right = sum(f == t for f, (_, _, t) in zip(found, truth))
    print("a map of %d x %d answers; of the eight digits %d are right" % (answers.shape + (right,)))

    drawn, axes = common.figure(1, 9, 2.4, rows=3)
    common.show(axes[0], canvas, "a picture of %d x %d pixels, and the answers of the map" % canvas.shape)
    for (row, column, digit), answer in zip(truth, found):
        colour = "lime" if answer == digit else "red"
        axes[0].text(column + 14, row - 1, str(answer), color=colour, ha="center", fontsize=10, weight="bold")
    # An answer is drawn in the middle of the pixels that it is about.
    places = dict(extent=(12, 12 + 4 * answers.shape[1], 12 + 4 * answers.shape[0], 12))
    likely = 1 - probabilities[10]
    title = "how likely there is a digit: %d x %d answers" % answers.shape
    common.show(axes[1], likely, title, cmap="viridis", vmin=0, vmax=1, **places)
    which = np.where(likely > 0.5, probabilities[:10].argmax(axis=0), np.nan)
    common.show(axes[2], which, "and which", cmap="tab10", vmin=-0.5, vmax=9.5, **places)
    for ax in axes[1:]:
        ax.set_axis_on()
        ax.set(xlim=(0, canvas.shape[1]), ylim=(canvas.shape[0], 0), xticks=[], yticks=[])
    drawn.colorbar(axes[2].images[0], ax=axes, ticks=range(10), shrink=0.6, label="digit")
    common.save(drawn, flags, "surgery_map")
    return dict(difference=difference, right=right, map=answers.shape, shift=shift)


if __name__ == "__main__":
    main()
