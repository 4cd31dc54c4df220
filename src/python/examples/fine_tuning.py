"""Fine-tuning: weights that LeNet learned from many digits help with a few of another kind.

It trains on drawn digits (or MNIST), then on 100 small scans of handwriting (scikit-learn's digits, enlarged) in three
ways: from scratch, starting from all weights, and training only the last layer. Picture:
fine_tuning.
"""

import os
import tempfile

import numpy as np

import common


def scans(samples, seed):
    """scikit-learn's digits as images (N, 1, 28, 28): x, y with `samples` of them for training, and the rest."""
    from sklearn.datasets import load_digits

    found = load_digits()
    # 8 x 8 become 24 x 24 by straight lines between their points, with a rim of 2.
    places = (np.arange(24) + 0.5) / 3 - 0.5
    low = np.clip(np.floor(places).astype(int), 0, 6)
    share = np.clip(places - low, 0, 1)
    matrix = np.zeros((24, 8))
    matrix[np.arange(24), low] = 1 - share
    matrix[np.arange(24), low + 1] += share
    images = np.zeros((len(found.images), 1, 28, 28), np.float32)
    images[:, 0, 2:26, 2:26] = matrix @ (found.images / 16) @ matrix.T
    order = np.random.default_rng(seed).permutation(len(images))
    x, y = images[order], found.target[order]
    return x[:samples], y[:samples], x[samples:], y[samples:]


def learn(crema, spec, last, x, y, x_test, y_test, steps, seed, weights=None):
    """Trains a LeNet. Returns the solver, the losses, and (step, accuracy on the test images) of some steps."""
    folder = tempfile.mkdtemp(prefix="crema-example-")
    net_file = common.write_text(spec.to_proto(), "net.prototxt", folder)
    solver = common.solver(crema, net_file, seed, 'type: "SGD" base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005')
    if weights:
        # Weights go to the layers of the same name; a layer with a new name starts afresh.
        solver.net.copy_from(weights)
    test_net = crema.Net(net_file, crema.TEST)
    places = common.batches(len(x), solver.net.blobs["data"].shape[0], np.random.default_rng(seed))
    losses, accuracies = [], []
    for step in range(steps + 1):
        if step % max(steps // 6, 1) == 0 or step == steps:
            common.copy_weights(test_net, solver.net)
            accuracies.append((step, common.accuracy(test_net, x_test, y_test, last)))
        if step < steps:
            chosen = next(places)
            common.feed(solver.net, data=x[chosen], label=y[chosen])
            solver.step(1)
            losses.append(float(solver.net.blobs["loss"].data))
    return solver, losses, accuracies


def main(arguments=None):
    flags = common.parser(__doc__)
    common.add_data_flag(flags)
    flags.add_argument("--samples", type=int, default=100, help="scans to learn from (100)")
    flags = flags.parse_args(arguments)
    import crema

    common.start(crema, flags)
    before, after = (2000, 400) if flags.full else (150, 60)
    x, y, x_test, y_test = common.digits(flags.data, seed=flags.seed)
    drawn_digits = x[:18, 0]
    solver, _, accuracies = learn(crema, common.lenet(64), "ip2", x, y, x_test[:200], y_test[:200], before, flags.seed)
    weights = os.path.join(tempfile.mkdtemp(prefix="crema-example-"), "lenet.caffemodel")
    solver.net.save(weights)
    print("many digits: accuracy %.3f after %d steps" % (accuracies[-1][1], before))

    x, y, x_test, y_test = scans(flags.samples, flags.seed)
    if not flags.full:
        x_test, y_test = x_test[:600], y_test[:600]
    ways = [
        ("from scratch", dict(), None),
        ("fine-tuned", dict(), weights),
        ("fine-tuned, last layer alone", dict(frozen=True), weights),
    ]
    results = {}
    drawn, axes = common.figure(3, 4.2, 3.4)
    common.show(axes[0], common.tile(np.concatenate([drawn_digits, x[:18, 0]]), 6), "drawn digits above, scans below")
    for name, how, start in ways:
        # The last layer has a new name, so that its weights are not copied.
        spec = common.lenet(32, last="ip2_scans", **how)
        _, losses, accuracies = learn(crema, spec, "ip2_scans", x, y, x_test, y_test, after, flags.seed, weights=start)
        results[name] = accuracies[-1][1]
        print("%-30s accuracy %.3f, loss of the last 10 steps %.3f" % (name, accuracies[-1][1], np.mean(losses[-10:])))
        axes[1].plot(losses, label=name, linewidth=1)
        axes[2].plot(*zip(*accuracies), label=name, marker="o", markersize=3)
    axes[1].set(title="Training loss, %d scans" % flags.samples, xlabel="step", ylabel="loss", ylim=(0, None))
    axes[2].set(title="Accuracy on %d other scans" % len(x_test), xlabel="step", ylabel="accuracy", ylim=(0, 1.02))
    axes[2].legend(frameon=False)
    common.plain(axes[1])
    common.plain(axes[2])
    common.save(drawn, flags, "fine_tuning")
    return results


if __name__ == "__main__":
    main()
