"""crema.Classifier and crema.Regressor in scikit-learn's manner, the display of nets and the live plot."""

import os
import pickle
import re
import sys
import types
import warnings

import numpy as np
import pytest

import crema
from crema import display, learn, learn_nets, plot

crema.set_threads(1)

NET = """
name: "two"
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN }
  transform_param { scale: 0.5 mean_value: 1 } data_param { source: "nowhere" batch_size: 3 } }
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TEST }
  transform_param { scale: 0.5 mean_value: 1 } data_param { source: "nowhere" batch_size: 3 } }
layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
  inner_product_param { num_output: 16 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "%s" bottom: "ip2" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy" include { phase: TEST } }
"""


def blobs_of_points(samples=240, seed=0):
    """Three heaps of points in the plane that can be told apart, with words for labels."""
    generator = np.random.default_rng(seed)
    places = generator.integers(3, size=samples)
    points = np.array([[0, 2], [2, -1], [-2, -1]])[places] + generator.normal(0, 0.4, (samples, 2))
    return points.astype(np.float32), np.array(["north", "east", "west"])[places]


def quick(**more):
    return crema.Classifier(**{**dict(epochs=15, base_lr=0.01, random_state=1, verbose=0), **more})


def test_classes_are_any_labels():
    x, y = blobs_of_points()
    model = quick()
    assert model.fit(x, y) is model
    assert list(model.classes_) == ["east", "north", "west"]
    assert set(model.predict(x)) <= set(y)
    assert model.score(x, y) > 0.95
    probabilities = model.predict_proba(x)
    assert probabilities.shape == (len(x), 3)
    assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert (model.decision_function(x).argmax(axis=1) == probabilities.argmax(axis=1)).all()
    # One sample gets the same answer alone as among others, whatever the batch.
    assert np.allclose(model.predict_proba(x[:1]), probabilities[:1], atol=1e-5)


def test_both_classifiers_have_one_name(tmp_path):
    assert isinstance(crema.Classifier(), learn.Classifier)
    assert isinstance(crema.Classifier(net="x.prototxt"), learn.Classifier)
    with pytest.raises(Exception):
        crema.Classifier(str(tmp_path / "none.prototxt"), str(tmp_path / "none.caffemodel"))


def test_epoch_lines(capfd):
    x, y = blobs_of_points(100)
    model = quick(epochs=3, verbose=1, validation_split=0.2).fit(x, y)
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 3
    form = r"Epoch %d/3: \d+(\.\d\d)?s - loss: \d+\.\d{4} - acc: \d\.\d{4} - val_loss: \d+\.\d{4} - val_acc: \d\.\d{4}"
    for number, line in enumerate(lines, 1):
        assert re.fullmatch(form % number, line), line
    assert [entry["epoch"] for entry in model.history_] == [1, 2, 3]
    assert model.history_[2]["loss"] < model.history_[0]["loss"]
    assert model.history_[2]["val_acc"] == pytest.approx(float(lines[2].split()[-1]), abs=1e-4)


def test_silent(capfd):
    x, y = blobs_of_points(60)
    quick(epochs=1).fit(x, y)
    captured = capfd.readouterr()
    assert captured.out == "" and captured.err == ""


def test_validation_means_are_exact():
    x, y = blobs_of_points(100)
    model = quick(epochs=2).fit(x, y, validation_data=(x[:37], y[:37]))  # 37 is not a number of whole batches
    assert model.history_[-1]["val_acc"] == pytest.approx(model.score(x[:37], y[:37]), abs=1e-6)
    chosen = model.predict_proba(x[:37])[np.arange(37), np.searchsorted(model.classes_, y[:37])]
    assert model.history_[-1]["val_loss"] == pytest.approx(-np.log(chosen).mean(), rel=1e-4)


def test_the_same_seed_learns_the_same():
    x, y = blobs_of_points(100)
    a, b, c = (quick(epochs=2, random_state=seed).fit(x, y).decision_function(x) for seed in (3, 3, 4))
    assert (a == b).all()
    assert not np.allclose(a, c)


@pytest.mark.parametrize("shape", [(8, 8), (1, 8, 8), (3, 9, 8), (9, 8, 3)], ids=str)
def test_images(shape):
    generator = np.random.default_rng(0)
    y = np.arange(60) % 2
    x = generator.normal(0, 0.3, (60,) + shape)
    x[y == 1] += np.linspace(0, 1, shape[0]).reshape((-1,) + (1,) * (len(shape) - 1)) if len(shape) == 2 else 0.7
    model = quick(epochs=8).fit(x, y)
    assert any(layer.type == "Convolution" for layer in model.net_.layers)
    assert model.score(x, y) > 0.9


def test_bytes_become_shares():
    y = np.arange(40) % 2
    x = np.where(y[:, None], 200, 20) * np.ones((1, 4))
    model = quick(epochs=2).fit(x.astype(np.uint8), y)
    model.predict(x.astype(np.uint8)[:3])
    assert np.allclose(model.net_.blobs["data"].data[:3], x[:3] / 255)


@pytest.mark.parametrize("source", ["path", "text", "message", "spec"])
def test_a_net_of_ones_own(source, tmp_path):
    x, y = blobs_of_points()
    text = NET % "SoftmaxWithLoss"
    path = tmp_path / "net.prototxt"
    path.write_text(text)
    if source == "spec":
        from crema import layers as L

        net = crema.NetSpec()
        net.data = L.Input(shape=dict(dim=[1, 2]))
        net.ip = L.InnerProduct(net.data, num_output=3, weight_filler=dict(type="xavier"))
        net.prob = L.Softmax(net.ip)
    else:
        net = {"path": path, "text": text, "message": learn_nets.read_message(text)}[source]
    model = quick(net=net).fit(x, y, validation_data=(x, y))
    assert model.score(x, y) > 0.95
    name = "acc" if source == "spec" else "accuracy"
    assert list(model.history_[0])[2:] == ["loss", name, "val_loss", "val_" + name]
    if source != "spec":
        # Scale and mean_value of the data layers are applied to X.
        model.predict(x[:4])
        assert np.allclose(model.net_.blobs["data"].data[:4], (x[:4] - 1) * 0.5)


def test_a_net_with_includes(tmp_path):
    (tmp_path / "dense.prototxt").write_text(
        'layer { name: $name type: "InnerProduct" bottom: "data" top: $name '
        'inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }'
    )
    (tmp_path / "net.prototxt").write_text(
        'layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 2 } } }\n'
        'include: "dense.prototxt" { name: "scores" }'
    )
    x, y = blobs_of_points()
    assert quick(net=tmp_path / "net.prototxt").fit(x, y).score(x, y) > 0.9


def test_a_net_of_the_models():
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    images = np.random.default_rng(0).integers(0, 256, (20, 28, 28), np.uint8)
    classes = np.arange(20) % 2
    images[classes == 1] //= 4
    # LeNet's data layer divides by 256.
    model = quick(
        net=os.path.join(top, "models", "lenet", "digits_train_val.prototxt"), base_lr=0.001, epochs=12, batch_size=10
    )
    model.fit(images, classes, validation_data=(images, classes))
    assert list(model.history_[0])[2:] == ["loss", "accuracy", "val_loss", "val_accuracy"]
    assert model.history_[-1]["val_accuracy"] == 1
    model.predict(images[:3])
    assert np.allclose(model.net_.blobs["data"].data[:, 0], images[:3] / 256)


def transform(text):
    return (
        learn_nets.read_message('layer { name: "d" type: "Data" transform_param { %s } }' % text)
        .layer[0]
        .transform_param
    )


def test_transforms(tmp_path):
    from crema.learn_inputs import Inputs

    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (50, 3, 6, 8)).astype(np.uint8)
    mean = generator.random((3, 6, 8)).astype(np.float32)
    (tmp_path / "mean.binaryproto").write_bytes(crema.io.array_to_blobproto(mean[None]).SerializeToString())
    text = 'mean_file: "%s" scale: 0.5 crop_size: 4' % (tmp_path / "mean.binaryproto")
    inputs = Inputs(images.shape[1:], transform(text + " mirror: true"), transform(text))
    assert inputs.shape == (3, 4, 4)
    whole = (images - mean) * 0.5
    assert np.allclose(inputs.arrays(images), whole[:, :, 1:5, 2:6])
    assert np.allclose(inputs.arrays(images.transpose(0, 2, 3, 1)), whole[:, :, 1:5, 2:6])
    # In training each image is one of the crops, or one mirrored, and all of them come.
    kinds = set()
    for image, found in zip(whole, inputs.arrays(images, generator)):
        crops = {
            (top, left, step): image[:, top : top + 4, left : left + 4][..., ::step]
            for top in range(3)
            for left in range(5)
            for step in (1, -1)
        }
        kinds |= {kind for kind, crop in crops.items() if np.allclose(crop, found)}
    assert {kind[0] for kind in kinds} == {0, 1, 2}
    assert {kind[1] for kind in kinds} == {0, 1, 2, 3, 4}
    assert {kind[2] for kind in kinds} == {1, -1}
    grey = Inputs((3, 6, 8), transform("gray: BGR mean_value: 7"), transform("gray: BGR mean_value: 7"))
    expected = 0.114 * images[:, 0] + 0.587 * images[:, 1] + 0.299 * images[:, 2] - 7
    assert grey.shape == (1, 6, 8)
    assert np.allclose(grey.arrays(images)[:, 0], expected, atol=1e-3)
    for text, message in (
        ("crop_size: 7", "larger than the images"),
        ("mean_value: 1 mean_value: 2", "2 mean_values for 3 channels"),
        ("augment { }", "augment"),
    ):
        with pytest.raises(ValueError, match=message):
            Inputs((3, 6, 8), transform(text), transform(text))
    with pytest.raises(ValueError, match="for training"):
        Inputs((3, 6, 8), transform("crop_size: 4"), None)


def test_an_interrupted_fit_keeps_what_it_learned(monkeypatch):
    x, y = blobs_of_points()
    model = quick(epochs=100)
    steps = []

    def step(self, count, real=crema.Solver.step):
        steps.append(count)
        if len(steps) > 60:
            raise KeyboardInterrupt
        real(self, count)

    monkeypatch.setattr(crema.Solver, "step", step)
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, y)
    assert len(model.history_) == 7  # of 8 batches each
    assert model._learner.solver.iter == 60
    assert model.score(x, y) > 0.9


@pytest.mark.parametrize("loss", ["MAE", "SoftmaxWithLossOHEM", "HingeLoss"])
def test_a_loss_of_any_name_is_the_nets(loss):
    assert loss in crema._crema._loss_types() and "InnerProduct" not in crema._crema._loss_types()
    net = learn_nets.for_arrays(learn_nets.read_message(NET % loss), (2,), 4, (), "SoftmaxWithLoss")
    assert '"SoftmaxWithLoss"' not in net.text


def test_other_losses():
    x, y = blobs_of_points()
    model = quick(net=NET % "HingeLoss").fit(x, y)
    assert model.score(x, y) > 0.9
    with pytest.raises(AttributeError, match="SoftmaxWithLoss"):
        model.predict_proba(x)


@pytest.mark.parametrize(
    "solver",
    [
        None,
        dict(type="SGD", base_lr=0.1, momentum=0.9),
        'type: "Nesterov" base_lr: 0.1 momentum: 0.9 lr_policy: "step" stepsize: 50 gamma: 0.5 test_iter: 1 '
        'test_interval: 10 net: "another.prototxt" max_iter: 5',
    ],
    ids=["none", "dict", "text"],
)
@pytest.mark.parametrize("type", [None, "SGD", "RMSProp"])
def test_solvers(solver, type):
    x, y = blobs_of_points()
    model = quick(
        solver=solver,
        type=type,
        base_lr=0.01 if type == "RMSProp" else 0.05 if type else None,
        epochs=30,
        momentum=0 if type == "RMSProp" else None,
    )
    assert model.fit(x, y).score(x, y) > 0.9
    expected = (
        type or {None: "Adam"}.get(solver) if not isinstance(solver, dict) and not isinstance(solver, str) else type
    )
    if expected:
        assert model._learner.solver_message.type == expected
    assert model._learner.solver.iter == 30 * 8


def test_parameters():
    model = quick(hidden=(5,))
    assert model.get_params()["hidden"] == (5,)
    assert model.set_params(epochs=7, hidden=(6, 7)) is model
    assert (model.epochs, model.hidden) == (7, (6, 7))
    with pytest.raises(ValueError, match="no parameter 'epoch'"):
        model.set_params(epoch=7)
    assert repr(crema.Classifier(epochs=3)) == "Classifier(epochs=3)"


def test_partial_fit():
    x, y = blobs_of_points()
    model = quick()
    for _ in range(10):
        model.partial_fit(x, y, classes=["east", "north", "south", "west"])
    assert len(model.classes_) == 4
    assert model.score(x, y) > 0.95
    assert len(model.history_) == 10


def test_pickle():
    x, y = blobs_of_points()
    model = quick(epochs=5).fit(x, y)
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.decision_function(x) == model.decision_function(x)).all()
    assert copy.history_ == model.history_
    before = copy.history_[-1]["loss"]
    copy.partial_fit(x, y)
    assert copy.history_[-1]["loss"] < 1.2 * before
    assert isinstance(pickle.loads(pickle.dumps(quick())), learn.Classifier)


BAD = [
    ("no rows", np.zeros(4), [0, 1, 0, 1], "a row for each sample"),
    ("no samples", np.zeros((0, 2)), [], "no samples"),
    ("other number", np.zeros((4, 2)), [0, 1], "4 samples, y has 2"),
    ("nan", np.full((2, 2), np.nan), [0, 1], "NaN or infinity"),
    ("words", np.array([["a", "b"]] * 2), [0, 1], "could not convert"),
    ("no features", np.zeros((2, 0)), [0, 1], "0 feature"),
    ("complex", np.zeros((2, 2), complex), [0, 1], "Complex data"),
    ("numbers for labels", np.zeros((2, 2)), [0.5, 1], "Regressor learns numbers"),
    ("labels of nan", np.zeros((2, 2)), [np.nan, 1], "NaN or infinity"),
    ("one label", np.zeros((1, 2)), 1, "1 samples, y has 1 labels"),
    ("table of labels", np.zeros((2, 2)), [[0, 1], [1, 0]], "one label for each"),
]


@pytest.mark.parametrize("x, y, message", [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_bad_arrays(x, y, message):
    with pytest.raises(ValueError, match=message):
        quick().fit(x, y)


def test_bad_use():
    x, y = blobs_of_points(40)
    with pytest.raises(AttributeError, match="not fitted"):
        quick().predict(x)
    model = quick(epochs=1).fit(x, y)
    with pytest.raises(ValueError, match="3 values a sample"):
        model.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="'south' is not one"):
        model.partial_fit(x[:1], np.array(["south"]))
    with pytest.raises(ValueError, match="4 classes"):
        quick(net=NET % "SoftmaxWithLoss", epochs=1).fit(np.zeros((4, 2)), [0, 1, 2, 3])
    with pytest.raises(ValueError, match="force_color"):
        quick(net=(NET % "SoftmaxWithLoss").replace("scale: 0.5", "force_color: true")).fit(x, y)
    with pytest.raises(ValueError, match="is for images"):
        quick(net=(NET % "SoftmaxWithLoss").replace("scale: 0.5", "crop_size: 5")).fit(x, y)
    with pytest.raises(ValueError, match="takes"):
        quick(net='layer { name: "d" type: "Input" top: "data" input_param { shape { dim: 1 dim: 5 } } }').fit(x, y)
    with pytest.raises(ValueError, match="no field 'base_rl'"):
        quick(solver=dict(base_rl=1)).fit(x, y)
    with pytest.raises(crema.Error, match='^layer "ip1": .*InnerProdukt'):
        quick(net=(NET % "SoftmaxWithLoss").replace("InnerProduct", "InnerProdukt")).fit(x, y)
    with pytest.raises(crema.Error, match="the net's text:1:9.*nmae"):
        quick(net='layer { nmae: "d" }').fit(x, y)
    with pytest.raises(crema.Error, match="the solver's text:1:1.*base_rl"):
        quick(solver="base_rl: 1 ").fit(x, y)
    with pytest.raises(FileNotFoundError):
        quick(net="nowhere.prototxt").fit(x, y)


def test_scikit_learn():
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = blobs_of_points(120)
    assert clone(quick(hidden=(4,))).hidden == (4,)
    assert (cross_val_score(quick(), x, y, cv=3) > 0.9).all()
    pipeline = make_pipeline(StandardScaler(), quick())
    assert pipeline.fit(1000 * x, y).score(1000 * x, y) > 0.9
    search = GridSearchCV(quick(), dict(base_lr=[1e-6, 0.01]), cv=2).fit(x, y)
    assert search.best_params_ == dict(base_lr=0.01)


@pytest.mark.parametrize("estimator", [crema.learn.Classifier, crema.Regressor])
def test_the_rules_of_scikit_learn(estimator):
    pytest.importorskip("sklearn")
    from sklearn.utils.estimator_checks import check_estimator

    model = estimator(epochs=30, base_lr=0.01, random_state=0, verbose=0)
    try:
        checks = list(check_estimator(model, generate_only=True))
    except TypeError:
        pytest.skip("this version of scikit-learn has other ways to list its checks")
    assert len(checks) > 30
    for copy, check in checks:
        # A column (N, 1) of labels is an error for a Classifier; a Regressor answers in that shape, without a warning.
        if check.func.__name__ != "check_supervised_y_2d":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check(copy)


@pytest.mark.parametrize("outputs", [None, 1, 2])
def test_regressor(outputs):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(200, 3)).astype(np.float32)
    y = np.stack([np.sin(x[:, 0]) + x[:, 1], x[:, 2]], 1)
    y = y[:, 0] if outputs is None else y[:, :outputs]
    model = crema.Regressor(epochs=30, base_lr=0.01, random_state=1, verbose=0).fit(x, y)
    assert model.predict(x).shape == y.shape
    assert model.score(x, y) > 0.9
    residual = ((y - model.predict(x)) ** 2).sum(axis=0) / ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    assert model.score(x, y) == pytest.approx(float(np.mean(1 - residual)), abs=1e-5)
    assert list(model.history_[0]) == ["epoch", "seconds", "loss"]
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.predict(x) == model.predict(x)).all()


def solver_of(folder, more=""):
    (folder / "net.prototxt").write_text("""
        name: "tiny <net>"
        layer { name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {
          shape { dim: 4 dim: 3 } shape { dim: 4 }
          data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 } } }
        layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 2 } }
        layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
        layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
          include { phase: TEST } }""")
    (folder / "solver.prototxt").write_text(
        'net: "%s" base_lr: 0.1 lr_policy: "fixed" max_iter: 20 test_iter: 1 test_interval: 10 '
        "snapshot_after_train: false %s" % (folder / "net.prototxt", more)
    )
    return crema.get_solver(str(folder / "solver.prototxt"))


@pytest.mark.parametrize("planned", [False, True])
def test_net_html(tmp_path, planned):
    solver_of(tmp_path)
    net = crema.Net(str(tmp_path / "net.prototxt"), crema.TRAIN, planned=planned)
    page = display.net_html(net)
    assert "InnerProduct" in page and "8 parameters" in page
    assert "4 × 2" in page
    assert page.count("<tr>") == page.count("</tr>") == len(net._layer_names) + 2
    assert "<net>" not in page


def test_solver_html(tmp_path):
    solver = solver_of(tmp_path)
    solver.step(3)
    page = display.solver_html(solver)
    assert "3 of 20" in page and "0.1" in page and "InnerProduct" in page


@pytest.mark.parametrize("shown", [0, 5])
def test_live_plot(tmp_path, shown):
    pytest.importorskip("matplotlib")
    solver = solver_of(tmp_path, "display: %d" % shown)
    path = tmp_path / "curves.png"
    with plot.LivePlot(solver, path, every=0) as curves:
        solver.solve()
    assert path.read_bytes()[:4] == b"\x89PNG"
    iterations = [iteration for iteration, _ in curves.losses]
    assert iterations == (list(range(0, 21, 5)) if shown else list(range(1, 21)))
    assert curves.losses[-1][1] < curves.losses[0][1]
    assert curves.rates[0][1] == pytest.approx(0.1)
    assert [iteration for iteration, _ in curves.tests["accuracy"]] == [0, 10, 20]
    figure = curves.figure()
    assert [axes.get_title() for axes in figure.axes[:2]] == ["Loss", "Tests and learning rate"]
    plot.pyplot().close(figure)
    count = len(curves.losses)
    solver.step(2)
    assert len(curves.losses) == count  # it follows the solver no more


def test_live_plot_in_a_notebook(tmp_path, monkeypatch):
    """With a stand-in for IPython: one picture that is drawn over and over."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.close(pyplot.figure())  # the first one would ask the fake IPython for events
    shown, updated = [], []

    class Handle:
        def update(self, figure):
            updated.append(figure)

    def show(figure, display_id):
        assert display_id
        shown.append(figure)
        return Handle()

    notebook = types.ModuleType("IPython")
    notebook.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    notebook.display = types.SimpleNamespace(display=show)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    solver = solver_of(tmp_path, "display: 5")
    with plot.LivePlot(solver, every=0):
        solver.solve()
    assert len(shown) == 1
    assert len(updated) >= 5
    assert list(tmp_path.glob("*.png")) == []
    assert len(updated[-1].axes[0].lines) == 2  # the losses of training and tests
