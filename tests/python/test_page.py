"""The code of src/python/README.md runs as it stands there, from the first block to the last."""
import importlib.util
import os
import re
from pathlib import Path

import numpy as np
import pytest

import crema

PAGE = Path(__file__).parents[2] / "src/python/README.md"
TEXT = PAGE.read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.M | re.S)

INNER = """
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
        convolution_param { num_output: 6 kernel_size: 5 weight_filler { type: "xavier" } } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "pool2" type: "Pooling" bottom: "pool1" top: "pool2" pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "pool2" top: "ip"
        inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
"""
DATA = 'layer { name: "data" type: "Input" top: "data" input_param { shape { dim: %d dim: 1 dim: 28 dim: 28 } } }\n'
DEPLOY = DATA % 1 + INNER + 'layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }\n'
TRAIN = (DATA % 64 + 'layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 64 } } }\n' + INNER +
         'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }\n')


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The names that the page's blocks leave behind; it shows neither how the files nor how the arrays were made."""
    folder = tmp_path_factory.mktemp("page")
    before = os.getcwd()
    os.chdir(folder)
    try:
        Path("deploy.prototxt").write_text(DEPLOY)
        Path("train.prototxt").write_text(TRAIN)
        Path("solver.prototxt").write_text('net: "train.prototxt" base_lr: 0.05 momentum: 0.9 lr_policy: "fixed" random_seed: 1\n'
                                           'snapshot_prefix: "page" max_iter: 100')
        crema.Net("deploy.prototxt", crema.TEST).save("lenet.caffemodel")
        # Bars at ten heights: a class each.
        labels = np.arange(64) % 10
        images = np.random.RandomState(0).uniform(0, 0.2, (64, 1, 28, 28)).astype(np.float32)
        for image, label in zip(images, labels):
            image[0, 2 * label + 4:2 * label + 7] += 0.8
        names = {"images": images, "labels": labels, "__name__": "page"}
        for kind, text in BLOCKS:
            file = re.match(r"# (\w+\.py):", text)
            if file:  # it says that it is one
                Path(file[1]).write_text(text)
            elif kind == "prototxt":
                names["layer"] = text
            else:
                line = TEXT[:TEXT.index(text)].count("\n")
                exec(compile("\n" * line + text, str(PAGE), "exec"), names)
        names["files"] = set(os.listdir("."))
        Path("layer.prototxt").write_text("".join(
            'layer { name: "%s" type: "Input" top: "%s" input_param { shape { dim: 4 dim: 3 } } }\n' % (name, name)
            for name in ("ip", "target")) + "force_backward: true\n" + names["layer"])
        names["distance"] = crema.Net("layer.prototxt", crema.TRAIN)
        yield names
    finally:
        os.chdir(before)
        crema.init_log(0)


def test_every_block_is_of_a_kind_that_is_tried():
    assert {kind for kind, _ in BLOCKS} <= {"python", "prototxt"}
    assert sum(kind == "python" for kind, _ in BLOCKS) >= 7


def test_what_the_blocks_leave(ran):
    assert ran["classes"].shape == (64,)
    assert not ran["filters"].data[0].any() and ran["filters"].data[1].any()
    assert ran["after_pool"].shape == (64, 6, 6, 6)
    assert ran["losses"][-1] < 0.5 * ran["losses"][0]
    assert {"changed.caffemodel", "small.prototxt", ran["weights"], ran["state"]} <= ran["files"]
    assert ran["model"].score(ran["images"], ran["labels"]) > 0.8
    assert ran["message"].name == "read"


def test_the_layer_computes_what_it_says(ran):
    net = ran["distance"]
    ip, target = np.random.RandomState(1).randn(2, 4, 3).astype(np.float32)
    net.blobs["ip"].data[...] = ip
    net.blobs["target"].data[...] = target
    loss = net.forward()["loss"]
    net.backward()
    np.testing.assert_allclose(loss.item(), 0.5 * ((ip - target) ** 2).sum() / 4 / 2, rtol=1e-5)
    np.testing.assert_allclose(net.blobs["ip"].diff, 0.5 * (ip - target) / 4, rtol=1e-5, atol=1e-7)


def test_names_that_the_text_mentions_exist():
    for name in set(re.findall(r"\bcrema\.([A-Za-z_]\w*)", TEXT)):
        assert hasattr(crema, name) or importlib.util.find_spec('crema.' + name), name


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)", TEXT):
        assert (PAGE.parent / target).exists(), target
