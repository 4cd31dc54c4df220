"""Classifies a picture with a trained net, and shows what its layers see: filters, maps, activations and probabilities.

Without your own net it first trains LeNet on digits for a few seconds. CaffeNet and a photograph:

  classification.py --model deploy.prototxt --weights caffenet.caffemodel --image cat.jpg --labels synset_words.txt

Pictures: classification_filters, classification_answers.
"""

import os
import tempfile

import numpy as np

import common


def train_lenet(crema, flags):
    """Trains LeNet on digits.

    Returns the files of the deploy net and of its weights, and a test image (28, 28, 1) with its class.
    """
    x, y, x_test, y_test = common.digits(flags.data, seed=flags.seed)
    folder = tempfile.mkdtemp(prefix="crema-example-")
    spec = common.lenet(batch=64)
    net_file = common.write_text(spec.to_proto(), "lenet.prototxt", folder)
    solver = common.solver(crema, net_file, flags.seed, common.ADAM)
    places = common.batches(len(x), 64, np.random.default_rng(flags.seed))
    for _ in range(1000 if flags.full else 120):
        chosen = next(places)
        common.feed(solver.net, data=x[chosen], label=y[chosen])
        solver.step(1)
    weights = os.path.join(folder, "lenet.caffemodel")
    solver.net.save(weights)
    return (
        common.write_text(common.deploy(spec, "ip2", 1), "deploy.prototxt", folder),
        weights,
        x_test[1, 0, :, :, None],
        y_test[1],
    )


def main(arguments=None):
    flags = common.parser(__doc__)
    common.add_data_flag(flags)
    flags.add_argument("--model", metavar="FILE", help="a net for use, with Caffe's names: data, conv1, prob")
    flags.add_argument("--weights", metavar="FILE", help="its weights")
    flags.add_argument("--image", metavar="FILE", help="a picture")
    flags.add_argument("--labels", metavar="FILE", help="names of the classes, a line each")
    flags.add_argument("--mean", default="104,117,123", help="of blue, green and red (104,117,123)")
    flags = flags.parse_args(arguments)
    import crema

    common.start(crema, flags)
    truth = None
    if flags.model:
        model, weights = flags.model, flags.weights
        image = crema.io.load_image(flags.image)
    else:
        model, weights, image, truth = train_lenet(crema, flags)
    net = crema.Net(model, weights, crema.TEST)
    names = [str(i) for i in range(net.blobs[net.outputs[0]].shape[1])]
    if flags.labels:
        with open(flags.labels, encoding="utf-8") as file:
            names = [line.strip().split(" ", 1)[-1] for line in file]

    # Converts a picture, (height, width, channels) from 0 to 1 with red first, to the net's input.
    data = net.blobs["data"]
    transformer = crema.io.Transformer({"data": data.data.shape})
    transformer.set_transpose("data", (2, 0, 1))
    if image.shape[2] == 3:
        transformer.set_channel_swap("data", (2, 1, 0))
        transformer.set_raw_scale("data", 255)
        transformer.set_mean("data", np.array([float(m) for m in flags.mean.split(",")]))
    data.reshape(1, *list(data.shape)[1:])
    data.data[...] = transformer.preprocess("data", image)
    probabilities = net.forward()[net.outputs[0]][0].reshape(-1)
    order = probabilities.argsort()[::-1][:5]
    for place in order:
        print("%.4f  %s" % (probabilities[place], names[place]))

    # The first filters are small pictures themselves; for deeper ones you can only look at their output for this
    # image.
    convolutions = [name for name in net._layer_names if net.layer_dict[name].type == "Convolution"]
    first, last = convolutions[0], convolutions[-1]
    filters = net.params[first][0].data
    filters = filters.transpose(0, 2, 3, 1)[..., ::-1] if filters.shape[1] == 3 else filters[:, 0]
    drawn, axes = common.figure(4, 3.2, 3.4)
    common.show(axes[0], image.squeeze(), "the picture")
    common.show(axes[1], common.tile(filters), "%s: %d filters, %d x %d" % ((first, len(filters)) + filters.shape[1:3]))
    maps = net.blobs[net.top_names[first][0]].data[0]
    common.show(axes[2], common.tile(maps[:36]), "%s: its maps of the picture" % first, cmap="viridis")
    deep = net.blobs[net.top_names[last][0]].data[0]
    common.show(
        axes[3], common.tile(deep[:64]), "%s: %d of %d maps" % (last, min(64, len(deep)), len(deep)), cmap="viridis"
    )
    common.save(drawn, flags, "classification_filters")

    # A fully connected layer has no picture: its values and their histogram. Then the answer.
    dense = [name for name in net._layer_names if net.layer_dict[name].type == "InnerProduct"]
    values = net.blobs[net.top_names[dense[-2] if len(dense) > 1 else dense[-1]][0]].data[0].reshape(-1)
    drawn, axes = common.figure(3, 4.0, 3.2)
    axes[0].plot(values, linewidth=0.8)
    axes[0].set(
        title="%s: %d units" % (dense[-2] if len(dense) > 1 else dense[-1], len(values)),
        xlabel="unit",
        ylabel="activation",
    )
    positive = values[values > 0]
    axes[1].hist(positive, bins=40)
    axes[1].set(title="the %d units above 0" % len(positive), xlabel="activation", ylabel="units")
    right = truth is None or order[0] == truth
    colours = ["tab:green" if right else "tab:red"] + ["tab:gray"] * 4
    axes[2].barh(range(len(order)), probabilities[order], color=colours)
    axes[2].set_yticks(range(len(order)), [names[place][:24] for place in order])
    axes[2].invert_yaxis()
    axes[2].set(title="answer" if truth is None else "answer (it is a %d)" % truth, xlabel="probability", xlim=(0, 1))
    for a in axes:
        common.plain(a)
    common.save(drawn, flags, "classification_answers")
    return dict(
        top=int(order[0]), truth=truth, probability=float(probabilities[order[0]]), total=float(probabilities.sum())
    )


if __name__ == "__main__":
    main()
