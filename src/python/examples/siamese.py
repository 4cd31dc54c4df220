"""A siamese net maps digits to the plane: equal ones close together, different ones apart.

Two nets with the same weights look at a pair of images; the contrastive loss pulls the two points of equal digits
together and pushes those of different digits apart (Hadsell, Chopra and LeCun, 2006). Picture: siamese.
"""

import numpy as np

import common


def siamese(batch):
    """The net as a NetSpec.

    Inputs: data, data_p (batch, 1, 28, 28) and sim (batch,), 1 for equal digits; feat is the
    point of data.
    """
    from crema import NetSpec, layers as L, params as P

    net = NetSpec()
    net.data = L.Input(shape=dict(dim=[batch, 1, 28, 28]))
    net.data_p = L.Input(shape=dict(dim=[batch, 1, 28, 28]))
    net.sim = L.Input(shape=dict(dim=[batch]))

    def shared(name):
        # Layers with the same parameter names share their parameters.
        return dict(
            param=[dict(name=name + "_w", lr_mult=1), dict(name=name + "_b", lr_mult=2)],
            weight_filler=dict(type="xavier"),
        )

    for side in ("", "_p"):
        net["conv1" + side] = L.Convolution(net["data" + side], kernel_size=5, num_output=20, **shared("conv1"))
        net["pool1" + side] = L.Pooling(net["conv1" + side], kernel_size=2, stride=2, pool=P.Pooling.MAX)
        net["conv2" + side] = L.Convolution(net["pool1" + side], kernel_size=5, num_output=50, **shared("conv2"))
        net["pool2" + side] = L.Pooling(net["conv2" + side], kernel_size=2, stride=2, pool=P.Pooling.MAX)
        net["ip1" + side] = L.InnerProduct(net["pool2" + side], num_output=200, **shared("ip1"))
        net["relu1" + side] = L.ReLU(net["ip1" + side], in_place=True)
        net["ip2" + side] = L.InnerProduct(net["relu1" + side], num_output=10, **shared("ip2"))
        net["feat" + side] = L.InnerProduct(net["ip2" + side], num_output=2, **shared("feat"))
    net.loss = L.ContrastiveLoss(net.feat, net.feat_p, net.sim, margin=1)
    return net


def pairs(y, batch, generator):
    """Indices of pairs of images, half of them of equal digits: a, b, and 1 if they are equal."""
    a = generator.integers(len(y), size=batch)
    b = generator.integers(len(y), size=batch)
    for i in range(0, batch, 2):
        b[i] = generator.choice(np.flatnonzero(y == y[a[i]]))
    return a, b, (y[a] == y[b]).astype(np.float32)


def main(arguments=None):
    flags = common.parser(__doc__)
    common.add_data_flag(flags)
    flags = flags.parse_args(arguments)
    import crema

    common.start(crema, flags)
    x, y, x_test, y_test = common.digits(flags.data, seed=flags.seed)
    net_file = common.write_text(siamese(64).to_proto(), "siamese.prototxt")
    solver = common.solver(crema, net_file, flags.seed, common.ADAM)
    generator = np.random.default_rng(flags.seed)
    losses = []
    for _ in range(10000 if flags.full else 250):
        a, b, equal = pairs(y, 64, generator)
        common.feed(solver.net, data=x[a], data_p=x[b], sim=equal)
        solver.step(1)
        losses.append(float(solver.net.blobs["loss"].data))

    # One side of the net is enough to find the point of an image.
    net = crema.Net(net_file, crema.TEST)
    common.copy_weights(net, solver.net)
    points = []
    for begin in range(0, len(x_test), 64):
        chosen = np.arange(begin, begin + 64) % len(x_test)
        common.feed(net, data=x_test[chosen])
        net.forward(end="feat")
        points.append(net.blobs["feat"].data.copy())
    points = np.concatenate(points)[: len(x_test)]
    middles = np.array([points[y_test == digit].mean(axis=0) for digit in range(10)])
    nearest = ((points[:, None] - middles) ** 2).sum(axis=2).argmin(axis=1)
    share = float((nearest == y_test).mean())
    print(
        "loss %.4f at first, %.4f at last; %.3f of the test images are nearest to the middle of their own digit"
        % (np.mean(losses[:10]), np.mean(losses[-20:]), share)
    )

    from matplotlib import colormaps

    drawn, axes = common.figure(2, 5.2, 4.8)
    colours = colormaps["tab10"].colors
    for digit in range(10):
        axes[0].scatter(*points[y_test == digit].T, s=8, color=colours[digit], label=str(digit))
        axes[0].text(
            *middles[digit],
            str(digit),
            fontsize=13,
            weight="bold",
            ha="center",
            va="center",
            bbox=dict(boxstyle="circle,pad=0.15", color="white", alpha=0.75),
        )
    axes[0].set(
        title="%d test images, %.1f %% nearest to their own digit" % (len(points), 100 * share),
        xlabel="feat 0",
        ylabel="feat 1",
    )
    axes[0].set_aspect("equal", "datalim")
    axes[0].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    axes[1].plot(losses, linewidth=0.7, color="tab:blue", label="of a batch")
    axes[1].plot(
        np.arange(19, len(losses)),
        np.convolve(losses, np.ones(20) / 20, "valid"),
        color="tab:orange",
        label="mean of 20",
    )
    axes[1].set(title="Contrastive loss", xlabel="step", ylabel="loss", ylim=(0, None))
    axes[1].legend(frameon=False)
    for a in axes:
        common.plain(a)
    common.save(drawn, flags, "siamese")
    return dict(first_loss=float(np.mean(losses[:10])), loss=float(np.mean(losses[-20:])), share=share)


if __name__ == "__main__":
    main()
