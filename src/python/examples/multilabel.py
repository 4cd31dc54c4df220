"""Several labels for each picture, from a data layer written in Python (shapes_layer.py).

Each picture has one to three kinds of shapes; the net predicts for each kind whether it is there. A sigmoid for each
kind replaces the softmax over all. Picture: multilabel.
"""

import json
import sys

import numpy as np

import common


def net(batch, seed):
    """The net as a NetSpec.

    data and labels come from the Python layer; scores (batch, 5) are positive for kinds that are there.
    """
    from crema import NetSpec, layers as L, params as P

    spec = NetSpec()
    spec.data, spec.labels = L.Python(
        module="shapes_layer", layer="ShapesLayer", ntop=2, param_str=json.dumps(dict(batch=batch, seed=seed))
    )
    bottom = spec.data
    for i, width in enumerate([16, 32, 32], 1):
        spec["conv%d" % i] = L.Convolution(
            bottom, kernel_size=3, pad=1, num_output=width, weight_filler=dict(type="msra")
        )
        spec["relu%d" % i] = L.ReLU(spec["conv%d" % i], in_place=True)
        bottom = spec["pool%d" % i] = L.Pooling(spec["relu%d" % i], kernel_size=2, stride=2, pool=P.Pooling.MAX)
    spec.scores = L.InnerProduct(bottom, num_output=5, weight_filler=dict(type="xavier"))
    spec.loss = L.SigmoidCrossEntropyLoss(spec.scores, spec.labels)
    return spec


def main(arguments=None):
    flags = common.parser(__doc__)
    flags = flags.parse_args(arguments)
    import crema

    common.start(crema, flags)
    # Where to find the layer's module; in the shell: PYTHONPATH=src/python/examples train -solver ...
    if common.HERE not in sys.path:
        sys.path.insert(0, common.HERE)
    import shapes_layer

    net_file = common.write_text(net(32, flags.seed).to_proto(), "multilabel.prototxt")
    solver = common.solver(crema, net_file, flags.seed, common.ADAM)
    losses = []
    for _ in range(2000 if flags.full else 300):
        solver.step(1)
        losses.append(float(solver.net.blobs["loss"].data.reshape(-1)[0]))

    test_net = crema.Net(net_file, crema.TEST)
    common.copy_weights(test_net, solver.net)
    found, labels, images = [], [], []
    for _ in range(8):
        test_net.forward()
        found.append(test_net.blobs["scores"].data > 0)
        labels.append(test_net.blobs["labels"].data > 0)
        images.append(test_net.blobs["data"].data.copy())
    found, labels, images = (np.concatenate(a) for a in (found, labels, images))
    right, base = float((found == labels).mean()), float(1 - labels.mean())
    whole = float((found == labels).all(axis=1).mean())
    print(
        "of all labels %.3f are right (%.3f by saying that nothing is there), of all pictures %.3f in every label"
        % (right, base, whole)
    )

    drawn, axes = common.figure(6, 2.1, 2.35, rows=2)
    for ax, image, said, truth in zip(axes[:10], images, found, labels):
        words = ", ".join(n for n, s in zip(shapes_layer.NAMES, said) if s) or "nothing"
        common.show(
            ax, np.clip(image.transpose(1, 2, 0), 0, 1), words.replace(", ", ",\n", 1) if len(words) > 22 else words
        )
        ax.title.set_color("darkgreen" if (said == truth).all() else "crimson")
        ax.title.set_fontsize(8)
    axes[10].plot(losses, linewidth=0.8)
    axes[10].set(xlabel="step", ylim=(0, None))
    axes[10].set_title("loss", fontsize=9)
    common.plain(axes[10])
    shares = (found == labels).mean(axis=0)
    axes[11].barh(range(5), shares, color="tab:green")
    axes[11].set_yticks(range(5), shapes_layer.NAMES, fontsize=8)
    axes[11].set(xlim=(0.5, 1))
    axes[11].set_title("labels that are right", fontsize=9)
    common.plain(axes[11])
    drawn.suptitle("What the net sees in test pictures; red: not all labels are right", fontsize=10)
    common.save(drawn, flags, "multilabel")
    return dict(
        right=right, base=base, whole=whole, first_loss=float(np.mean(losses[:5])), loss=float(np.mean(losses[-20:]))
    )


if __name__ == "__main__":
    main()
