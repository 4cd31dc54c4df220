"""Trains LeNet on digits step by step: look at the net, take single steps, watch filters, curves and predictions.

Pictures: lenet_gradients, lenet_curves, lenet_answers.
"""

import numpy as np

import common


def main(arguments=None):
    flags = common.parser(__doc__)
    common.add_data_flag(flags)
    flags.add_argument("--steps", type=int, help="updates (150; with --full 2000)")
    flags = flags.parse_args(arguments)
    import crema

    common.start(crema, flags)
    steps = flags.steps or (2000 if flags.full else 150)
    x, y, x_test, y_test = common.digits(flags.data, seed=flags.seed)

    # A net is a text. NetSpec writes it: each attribute is a blob, and becomes a layer of that name.
    net_file = common.write_text(common.lenet(batch=64).to_proto(), "lenet.prototxt")
    solver_file = common.write_text(
        """
        net: "%s"
        type: "SGD"
        base_lr: 0.01
        momentum: 0.9
        weight_decay: 0.0005
        # The rate falls as base_lr * (1 + gamma * iteration) ^ -power.
        lr_policy: "inv"
        gamma: 0.0001
        power: 0.75
        max_iter: %d
        random_seed: %d
        """ % (net_file, steps, flags.seed),
        "solver.prototxt",
    )
    solver = crema.get_solver(solver_file)

    # Each blob is (batch, channels, height, width); each layer with weights has them in params.
    for name, blob in solver.net.blobs.items():
        print("%-10s %s" % (name, tuple(blob.shape)))
    for name, blobs in solver.net.params.items():
        print("%-10s weights %s, biases %s" % (name, tuple(blobs[0].shape), tuple(blobs[1].shape)))

    # One step: fill the inputs like any NumPy array, then forward, backward and an update. Before it all ten
    # classes are equally likely for the net, so the loss is about log(10).
    generator = np.random.default_rng(flags.seed)
    places = common.batches(len(x), 64, generator)
    chosen = next(places)
    common.feed(solver.net, data=x[chosen], label=y[chosen])
    solver.step(1)
    first_loss = float(solver.net.blobs["loss"].data)
    print("first loss %.3f, log(10) %.3f" % (first_loss, np.log(10)))

    # The result of the first step: the gradients of the 20 filters of conv1.
    drawn, axes = common.figure(2, 3.2, 3.2)
    common.show(axes[0], common.tile(x[chosen[:20], 0], 5), "the first images of the batch")
    common.show(axes[1], common.tile(solver.net.params["conv1"][0].diff[:, 0], 5), "gradients of conv1's filters")
    common.save(drawn, flags, "lenet_gradients")

    # The loop is ours, so we can look at anything between two steps: the loss of each, and every 25 steps the
    # accuracy on unseen digits and the scores of eight of them.
    test_net = solver.test_nets[0] if len(solver.test_nets) else crema.Net(net_file, crema.TEST)
    losses, accuracies, scores = [first_loss], [], []
    every = max(steps // 8, 1)
    for step in range(1, steps + 1):
        if step % every == 0 or step == 1:
            common.copy_weights(test_net, solver.net)
            accuracies.append((step - 1, common.accuracy(test_net, x_test, y_test)))
            common.feed(test_net, data=x_test[:64])
            test_net.forward()
            scores.append(np.array(test_net.blobs["ip2"].data[:8]))
        if step == steps:
            break
        chosen = next(places)
        common.feed(solver.net, data=x[chosen], label=y[chosen])
        solver.step(1)
        losses.append(float(solver.net.blobs["loss"].data))
    print(
        "after %d steps: loss %.3f, accuracy on the test images %.3f"
        % (solver.iter, np.mean(losses[-20:]), accuracies[-1][1])
    )

    drawn, axes = common.figure(2, 4.5, 3.4)
    axes[0].plot(losses, linewidth=1, color="tab:blue", label="of a batch")
    if len(losses) >= 20:
        axes[0].plot(
            np.arange(19, len(losses)),
            np.convolve(losses, np.ones(20) / 20, "valid"),
            color="tab:orange",
            label="mean of 20",
        )
    axes[0].set(title="Training loss", xlabel="step", ylabel="loss", ylim=(0, None))
    axes[0].legend(frameon=False)
    axes[1].plot(*zip(*accuracies), marker="o", color="tab:green")
    axes[1].set(
        title="Accuracy on %d test images: %.3f" % (len(x_test), accuracies[-1][1]),
        xlabel="step",
        ylabel="accuracy",
        ylim=(0, 1.02),
    )
    for a in axes:
        common.plain(a)
    common.save(drawn, flags, "lenet_curves")

    # How the predictions develop: a column for each time, a row for each class.
    drawn, axes = common.figure(8, 2.0, 1.8, rows=2)
    moments = ["%d" % step for step, _ in accuracies]
    for i in range(8):
        common.show(axes[i], x_test[i, 0], "a %d" % y_test[i])
        answers = np.array([np.exp(s[i] - s[i].max()) / np.exp(s[i] - s[i].max()).sum() for s in scores]).T
        axes[8 + i].imshow(answers, cmap="viridis", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        axes[8 + i].set_xticks([0, len(moments) - 1], [moments[0], moments[-1]], fontsize=8)
        axes[8 + i].set_yticks(range(0, 10, 3) if i == 0 else [])
        axes[8 + i].tick_params(axis="y", labelsize=8)
        axes[8 + i].set_xlabel("step", fontsize=8)
    axes[8].set_ylabel("probability of class", fontsize=8)
    common.save(drawn, flags, "lenet_answers")
    return dict(first_loss=first_loss, loss=float(np.mean(losses[-20:])), accuracy=accuracies[-1][1])


if __name__ == "__main__":
    main()
