"""A regression of two layers with NumPy arrays: gradients compared with a net written in NumPy, and both trained.

64 samples of 1000 random numbers, 100 ReLUs, 10 numbers out: the first example in introductions to PyTorch. The sum
of the squared errors falls, because the data stay the same. Picture: two_layer_regression.
"""

import numpy as np

import common


def numpy_gradients(x, y, w1, w2):
    """The loss, the half mean of the samples' squared errors as EuclideanLoss has it, and its gradients."""
    hidden = x @ w1.T
    rectified = np.maximum(hidden, 0)
    error = rectified @ w2.T - y
    of_scores = error / len(x)
    of_hidden = (of_scores @ w2) * (hidden > 0)
    return (error**2).sum() / (2 * len(x)), of_hidden.T @ x, of_scores.T @ rectified


def main(arguments=None):
    flags = common.parser(__doc__)
    flags = flags.parse_args(arguments)
    import crema
    from crema import layers as L

    common.start(crema, flags)
    steps = 2000 if flags.full else 150
    generator = np.random.default_rng(flags.seed)
    x, y = (generator.normal(size=(64, n)).astype(np.float32) for n in (1000, 10))
    w1 = generator.normal(0, 1000**-0.5, (100, 1000)).astype(np.float32)
    w2 = generator.normal(0, 100**-0.5, (10, 100)).astype(np.float32)

    spec = crema.NetSpec()
    spec.x = L.Input(shape=dict(dim=list(x.shape)))
    spec.y = L.Input(shape=dict(dim=list(y.shape)))
    spec.hidden = L.InnerProduct(spec.x, num_output=100, bias_term=False)
    spec.relu = L.ReLU(spec.hidden, in_place=True)
    spec.scores = L.InnerProduct(spec.relu, num_output=10, bias_term=False)
    spec.loss = L.EuclideanLoss(spec.scores, spec.y)
    net_file = common.write_text(spec.to_proto(), "two_layers.prototxt")

    # Arrays go in as data and as weights; gradients come out as arrays.
    net = crema.Net(net_file, crema.TRAIN)
    common.feed(net, x=x, y=y)
    net.params["hidden"][0].data[...] = w1
    net.params["scores"][0].data[...] = w2
    net.clear_param_diffs()
    loss = float(net.forward()["loss"])
    net.backward()
    expected = numpy_gradients(*(a.astype(np.float64) for a in (x, y, w1, w2)))
    print("loss %.6f, by NumPy %.6f" % (loss, expected[0]))
    differences = {}
    for name, gradient in zip(("hidden", "scores"), expected[1:]):
        found = net.params[name][0].diff
        differences[name] = float(np.abs(found - gradient).max() / np.abs(gradient).max())
        print("gradient of %s %s: differs by %.1e of its largest value" % (name, found.shape, differences[name]))

    # A few numerical gradients: the change of the loss for w + h and w - h.
    numeric = []
    for place in zip(generator.integers(10, size=5), generator.integers(100, size=5)):
        sides = []
        for h in (1e-2, -1e-2):
            net.params["scores"][0].data[place] = w2[place] + h
            sides.append(float(net.forward()["loss"]))
        net.params["scores"][0].data[place] = w2[place]
        numeric.append(((sides[0] - sides[1]) / 2e-2, float(expected[2][place])))
    numeric_error = max(abs(a - b) for a, b in numeric) / np.abs(expected[2]).max()
    print("by central differences, five weights: differ by %.1e" % numeric_error)

    # Both train by gradient descent, and stay equal.
    rate = 0.05
    solver = common.solver(crema, net_file, flags.seed, 'type: "SGD" base_lr: %g' % rate)
    common.feed(solver.net, x=x, y=y)
    solver.net.params["hidden"][0].data[...] = w1
    solver.net.params["scores"][0].data[...] = w2
    curves = {"NumPy": [], "Crema": []}
    for _ in range(steps):
        solver.step(1)
        curves["Crema"].append(float(solver.net.blobs["loss"].data))
        value, of_w1, of_w2 = numpy_gradients(x, y, w1, w2)
        curves["NumPy"].append(float(value))
        w1, w2 = w1 - np.float32(rate) * of_w1, w2 - np.float32(rate) * of_w2
    apart = float(np.abs(solver.net.params["hidden"][0].data - w1).max())
    print(
        "after %d steps: loss %.2e, by NumPy %.2e; weights differ by %.1e"
        % (steps, curves["Crema"][-1], curves["NumPy"][-1], apart)
    )

    drawn, axes = common.figure(2, 4.4, 3.4)
    axes[0].plot(curves["NumPy"], linewidth=4, color="tab:orange", alpha=0.6, label="NumPy")
    axes[0].plot(curves["Crema"], linewidth=1.2, color="tab:blue", label="Crema")
    axes[0].set(title="Loss", xlabel="step", ylabel="loss", yscale="log")
    axes[0].legend(frameon=False)
    axes[1].scatter(expected[2].ravel(), net.params["scores"][0].diff.ravel(), s=6)
    ends = [float(expected[2].min()), float(expected[2].max())]
    axes[1].plot(ends, ends, color="tab:gray", linewidth=0.8)
    axes[1].set(title="1000 gradients of the last layer", xlabel="by NumPy", ylabel="by Crema")
    for a in axes:
        common.plain(a)
    common.save(drawn, flags, "two_layer_regression")
    return dict(
        loss_error=abs(loss - expected[0]) / expected[0],
        numeric_error=float(numeric_error),
        apart=apart,
        losses=(curves["Crema"][0], curves["Crema"][-1]),
        **differences,
    )


if __name__ == "__main__":
    main()
