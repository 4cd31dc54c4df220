"""Logistic regression as a net of one layer, compared with scikit-learn's; then with a hidden layer. One layer has a
straight decision boundary, two layers do not. Picture: logistic_regression.
"""

import numpy as np

import common


def specs(crema):
    """The two nets by name: one layer, and the same after 40 ReLUs."""
    from crema import layers as L

    found = {}
    for name, hidden in (("logistic regression", 0), ("40 hidden units", 40)):
        net = crema.NetSpec()
        net.data = L.Input(shape=dict(dim=[1, 2]))
        net.label = L.Input(shape=dict(dim=[1]))
        bottom = net.data
        if hidden:
            net.ip1 = L.InnerProduct(bottom, num_output=hidden, weight_filler=dict(type="msra"))
            net.relu1 = L.ReLU(net.ip1, in_place=True)
            bottom = net.relu1
        net.scores = L.InnerProduct(bottom, num_output=2, weight_filler=dict(type="xavier"))
        net.acc = L.Accuracy(net.scores, net.label)
        net.loss = L.SoftmaxWithLoss(net.scores, net.label)
        found[name] = net
    return found


def main(arguments=None):
    flags = common.parser(__doc__)
    flags = flags.parse_args(arguments)
    import crema
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split

    common.start(crema, flags)
    x, y = make_classification(
        n_samples=10000 if flags.full else 3000,
        n_features=2,
        n_redundant=0,
        n_informative=2,
        n_clusters_per_class=2,
        hypercube=False,
        random_state=0,
    )
    x, x_test, y, y_test = train_test_split(x.astype(np.float32), y, test_size=0.25, random_state=flags.seed)

    models = {"scikit-learn's": LogisticRegression()}
    for name, spec in specs(crema).items():
        # Your own net with scikit-learn's interface: the Input layers take X and y. The rate falls linearly to 0.
        models["Crema: " + name] = crema.Classifier(
            net=spec.to_proto(),
            type="Nesterov",
            solver=dict(lr_policy="poly", power=1.0),
            base_lr=0.05,
            weight_decay=1e-5,
            epochs=40 if flags.full else 15,
            batch_size=50,
            random_state=flags.seed,
            verbose=0,
        )
    results = {}
    drawn, axes = common.figure(3, 4.0, 3.8)
    grid = (
        np.stack(
            np.meshgrid(
                np.linspace(*np.percentile(x[:, 0], [0.2, 99.8]), 80),
                np.linspace(*np.percentile(x[:, 1], [0.2, 99.8]), 80),
            ),
            -1,
        )
        .reshape(-1, 2)
        .astype(np.float32)
    )
    for ax, (name, model) in zip(axes, models.items()):
        model.fit(x, y)
        results[name] = model.score(x_test, y_test)
        print("%-30s accuracy %.4f" % (name, results[name]))
        likely = model.predict_proba(grid)[:, 1].reshape(80, 80)
        corners = grid[0], grid[-1]
        ax.imshow(
            likely,
            origin="lower",
            aspect="auto",
            cmap="RdBu",
            vmin=0,
            vmax=1,
            alpha=0.6,
            extent=(corners[0][0], corners[1][0], corners[0][1], corners[1][1]),
        )
        ax.contour(grid[:80, 0], grid[::80, 1], likely, levels=[0.5], colors="black", linewidths=1)
        for label, colour in enumerate(["#a01020", "#103080"]):
            points = x_test[y_test == label][:300]
            ax.scatter(points[:, 0], points[:, 1], s=5, color=colour, label="class %d" % label)
        ax.set(
            title="%s\naccuracy %.3f" % (name, results[name]),
            xlabel="first feature",
            xlim=(corners[0][0], corners[1][0]),
            ylim=(corners[0][1], corners[1][1]),
        )
    axes[0].set_ylabel("second feature")
    axes[0].legend(loc="upper left", fontsize=8)
    common.save(drawn, flags, "logistic_regression")
    return results


if __name__ == "__main__":
    main()
