"""The scripts of src/python/examples: each runs, small, and its numbers are what its story says."""

import importlib
import os
import sys

import pytest

import crema

pytest.importorskip("matplotlib")
crema.set_threads(1)  # another test has the other core

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "python", "examples")
sys.path.insert(0, EXAMPLES)


@pytest.fixture
def run(tmp_path):
    """Runs an example, and sees that it wrote these pictures and no others."""

    def run_example(name, pictures, *flags):
        results = importlib.import_module(name).main(["--output", str(tmp_path), *flags])
        assert sorted(os.listdir(tmp_path)) == sorted(picture + ".png" for picture in pictures)
        for picture in os.listdir(tmp_path):
            assert os.path.getsize(tmp_path / picture) > 5000
        return results

    return run_example


def test_every_example_is_listed():
    with open(os.path.join(EXAMPLES, "README.md"), encoding="utf-8") as file:
        page = file.read()
    for name in os.listdir(EXAMPLES):
        if name.endswith(".py"):
            assert "(%s)" % name in page


def test_learning_lenet(run):
    found = run("learning_lenet", ["lenet_gradients", "lenet_curves", "lenet_answers"])
    assert 2.0 < found["first_loss"] < 2.7  # about log(10)
    assert found["loss"] < 0.6
    assert found["accuracy"] > 0.8


def test_classification(run):
    found = run("classification", ["classification_filters", "classification_answers"])
    assert found["top"] == found["truth"]
    assert found["probability"] > 0.5
    assert found["total"] == pytest.approx(1, abs=1e-5)


def test_fine_tuning(run):
    pytest.importorskip("sklearn")
    found = run("fine_tuning", ["fine_tuning"])
    assert found["fine-tuned"] > found["from scratch"]
    assert found["fine-tuned"] > 0.8
    assert found["fine-tuned, last layer alone"] > 0.6


def test_logistic_regression(run):
    pytest.importorskip("sklearn")
    found = run("logistic_regression", ["logistic_regression"])
    line, ours, hidden = found.values()
    assert abs(line - ours) <= 0.01
    assert hidden > line + 0.01


def test_net_surgery(run):
    found = run("net_surgery", ["surgery_filters", "surgery_map"])
    assert found["shift"] < 1e-5
    assert found["difference"] < 1e-4
    assert found["map"] == (14, 74)  # (80 - 28) / 4 + 1, (320 - 28) / 4 + 1
    assert found["right"] >= 5


def test_siamese(run):
    found = run("siamese", ["siamese"])
    assert found["loss"] < 0.5 * found["first_loss"]
    assert found["share"] > 0.5


def test_multilabel(run):
    found = run("multilabel", ["multilabel"])
    assert found["loss"] < found["first_loss"]
    assert found["right"] > found["base"] + 0.1


def test_two_layer_regression(run):
    found = run("two_layer_regression", ["two_layer_regression"])
    assert found["loss_error"] < 1e-5
    assert found["hidden"] < 1e-4
    assert found["scores"] < 1e-4
    assert found["numeric_error"] < 1e-2
    assert found["apart"] < 1e-3
    assert found["losses"][1] < 0.05 * found["losses"][0]
