"""Native versions of py-faster-rcnn's and R-FCN's Python layers against NumPy, written from the papers: Ren et al., "Faster R-CNN",
2015; Girshick, "Fast R-CNN", 2015; Dai et al., "R-FCN", 2016. What is random is held to its properties."""
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import crema

TOP = pathlib.Path(__file__).resolve().parents[2]
TOOLS = os.environ.get("CREMA_TOOLS", str(TOP / "build/tools"))

HEIGHT, WIDTH, STRIDE = 12, 15, 8
IMAGE = (HEIGHT * STRIDE, WIDTH * STRIDE)
SCALES, RATIOS = (1, 2, 4), (0.5, 1, 2)
ANCHORS = len(SCALES) * len(RATIOS)


# --- the papers in NumPy ---------------------------------------------------------------------------------------------

def overlaps(a, b):
    """Intersection over union of each box of a with each of b; last pixels belong to boxes."""
    low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
    common = np.clip(high - low + 1, 0, None).prod(2)
    area = [np.prod(x[:, 2:] - x[:, :2] + 1, axis=1) for x in (a, b)]
    return common / (area[0][:, None] + area[1][None] - common)


def encoded(regions, objects):
    """Equation (2) of Faster R-CNN: t_x, t_y, t_w, t_h."""
    size, wanted = [x[:, 2:] - x[:, :2] + 1 for x in (regions, objects)]
    centre, target = regions[:, :2] + size / 2, objects[:, :2] + wanted / 2
    return np.hstack([(target - centre) / size, np.log(wanted / size)])


def decoded(regions, shifts):
    size = regions[:, 2:] - regions[:, :2] + 1
    centre = regions[:, :2] + size / 2 + shifts[:, :2] * size
    half = np.exp(shifts[:, 2:]) * size / 2
    return np.hstack([centre - half, centre + half])


def anchors(ratios=RATIOS, scales=SCALES, base=16):
    """Areas of (base * scale)^2, in whole pixels before they are scaled."""
    boxes = []
    for ratio in ratios:
        width = np.round(np.sqrt(base * base / ratio))
        size = np.array([width, np.round(width * ratio)])
        for scale in scales:
            half = (size * scale - 1) / 2
            boxes.append(np.concatenate([(base - 1) / 2 - half, (base - 1) / 2 + half]))
    return np.array(boxes)


def all_anchors(height=HEIGHT, width=WIDTH, stride=STRIDE):
    """(H * W * A, 4): anchors of a position follow each other."""
    x, y = np.meshgrid(np.arange(width) * stride, np.arange(height) * stride)
    shifts = np.stack([x, y, x, y], axis=-1).reshape(-1, 1, 4)
    return (shifts + anchors()[None]).reshape(-1, 4)


def as_rows(blob, values):
    """(1, A * values, H, W) as (H * W * A, values)."""
    return blob.reshape(-1, values, HEIGHT, WIDTH).transpose(2, 3, 0, 1).reshape(-1, values)


def suppressed(boxes, scores, threshold):
    kept, left = [], list(np.argsort(-scores, kind="stable"))
    while left:
        best = left.pop(0)
        kept.append(best)
        if left:
            close = overlaps(boxes[[best]], boxes[left])[0] > threshold
            left = [i for i, gone in zip(left, close) if not gone]
    return kept


# --- nets --------------------------------------------------------------------------------------------------------------

def python_layer(module, name, bottoms, tops, param_str):
    lines = [f'bottom: "{bottom}"' for bottom in bottoms] + [f'top: "{top}"' for top in tops]
    return (f'layer {{ name: "it" type: "Python" {" ".join(lines)} '
            f'python_param {{ module: "{module}" layer: "{name}" param_str: "{param_str}" }} }}')


def make_net(tmp_path, inputs, layer, phase=crema.TRAIN):
    text = "".join(f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ '
                   f'{" ".join(f"dim: {size}" for size in array.shape)} }} }} }}\n' for name, array in inputs.items())
    path = tmp_path / "net.prototxt"
    path.write_text(text + layer)
    return crema.Net(str(path), phase)


def run(net, inputs):
    for name, array in inputs.items():
        net.blobs[name].reshape(*array.shape)
        net.blobs[name].data[...] = array
    net.forward()


def random_objects(random, count, classes=3):
    low = random.uniform(0, [IMAGE[1] - 30, IMAGE[0] - 30], (count, 2))
    high = np.minimum(low + random.uniform(8, 60, (count, 2)), [IMAGE[1] - 1, IMAGE[0] - 1])
    labels = random.integers(1, classes + 1, (count, 1))
    return np.hstack([low, high, labels]).astype(np.float32)


# --- ProposalLayer -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("phase,limits,seed", [
    (crema.TRAIN, {}, 1), (crema.TEST, {}, 2), (crema.TEST, {"rpn_pre_nms_top_n": 40, "rpn_post_nms_top_n": 7}, 3),
    (crema.TRAIN, {"rpn_nms_thresh": 0.3, "rpn_min_size": 20}, 4), (crema.TEST, {"rpn_pre_nms_top_n": 0}, 5)])
def test_proposals(tmp_path, phase, limits, seed):
    random = np.random.default_rng(seed)
    factor = 1.5
    inputs = {
        "scores": random.permutation(2 * ANCHORS * HEIGHT * WIDTH).reshape(1, 2 * ANCHORS, HEIGHT, WIDTH) / 1e4,
        "shifts": random.normal(0, 0.4, (1, 4 * ANCHORS, HEIGHT, WIDTH)).astype(np.float32),
        "im_info": np.array([[*IMAGE, factor]])}
    settings = {"feat_stride": STRIDE, "scales": SCALES, **limits}
    net = make_net(tmp_path, inputs, python_layer("rpn.proposal_layer", "ProposalLayer", inputs, ["rois", "rpn_scores"], settings),
                   phase)
    run(net, inputs)

    boxes = decoded(all_anchors(), as_rows(inputs["shifts"], 4).astype(np.float64))
    edge = np.array([IMAGE[1] - 1, IMAGE[0] - 1] * 2)
    boxes = np.clip(boxes, 0, edge)
    scores = as_rows(inputs["scores"][:, ANCHORS:].astype(np.float32), 1)[:, 0]
    large = ((boxes[:, 2:] - boxes[:, :2] + 1) >= limits.get("rpn_min_size", 16) * factor).all(1)
    boxes, scores = boxes[large], scores[large]
    before = limits.get("rpn_pre_nms_top_n", 12000 if phase == crema.TRAIN else 6000) or len(boxes)
    after = limits.get("rpn_post_nms_top_n", 2000 if phase == crema.TRAIN else 300)
    best = np.argsort(-scores)[:before]
    kept = best[suppressed(boxes[best], scores[best], limits.get("rpn_nms_thresh", 0.7))][:after]
    rois = net.blobs["rois"].data
    assert len(kept) > 5
    assert rois.shape == (len(kept), 5)
    np.testing.assert_allclose(rois[:, 0], 0)
    np.testing.assert_allclose(rois[:, 1:], boxes[kept], atol=2e-4)
    np.testing.assert_allclose(net.blobs["rpn_scores"].data.ravel(), scores[kept], rtol=1e-6)


# --- AnchorTargetLayer ---------------------------------------------------------------------------------------------------

TOPS = ["rpn_labels", "rpn_bbox_targets", "rpn_bbox_inside_weights", "rpn_bbox_outside_weights"]


def anchor_inputs(random, count):
    return {"rpn_cls_score": np.zeros((1, 2 * ANCHORS, HEIGHT, WIDTH)), "gt_boxes": random_objects(random, count),
            "im_info": np.array([[*IMAGE, 1.0]]), "data": np.zeros((1, 3, *IMAGE))}


def anchor_net(tmp_path, inputs, **settings):
    settings = {"feat_stride": STRIDE, "scales": SCALES, **settings}
    return make_net(tmp_path, inputs,
                    python_layer("rpn.anchor_target_layer", "AnchorTargetLayer", inputs, TOPS, settings))


def expected_anchors(objects, border=0, positive=0.7, negative=0.3, clobber=False):
    """Labels before sampling, and targets; all rows (H * W * A, ...)."""
    boxes, objects = all_anchors(), objects.astype(np.float64)
    inside = ((boxes[:, :2] >= -border).all(1) & (boxes[:, 2] < IMAGE[1] + border) & (boxes[:, 3] < IMAGE[0] + border))
    common = overlaps(boxes[inside], objects[:, :4])
    best = common.max(1)
    labels = np.full(len(best), -1)
    one = (best >= positive) | (common == common.max(0)).any(1)
    zero = best < negative
    for value, chosen in [(1, one), (0, zero)] if clobber else [(0, zero), (1, one)]:
        labels[chosen] = value
    every, targets = np.full(len(boxes), -1), np.zeros((len(boxes), 4))
    every[inside] = labels
    targets[inside] = encoded(boxes[inside], objects[common.argmax(1), :4])
    return every, targets


def found_anchors(net):
    labels, *rest = [net.blobs[top].data for top in TOPS]
    assert labels.shape == (1, 1, ANCHORS * HEIGHT, WIDTH)
    return [as_rows(labels.reshape(1, ANCHORS, HEIGHT, WIDTH), 1)[:, 0]] + [as_rows(blob, 4) for blob in rest]


@pytest.mark.parametrize("count,seed,settings", [
    (1, 1, {}), (4, 2, {}), (9, 3, {"rpn_positive_overlap": 0.5, "rpn_negative_overlap": 0.4}), (4, 4, {"allowed_border": 20}),
    (4, 5, {"rpn_clobber_positives": True}), (3, 6, {"rpn_bbox_inside_weights": (1, 2, 0.5, 1)})])
def test_anchor_targets(tmp_path, count, seed, settings):
    inputs = anchor_inputs(np.random.default_rng(seed), count)
    # So many that none are drawn at random.
    net = anchor_net(tmp_path, inputs, rpn_batchsize=100000, **settings)
    run(net, inputs)
    labels, targets, inside, outside = found_anchors(net)
    wanted, wanted_targets = expected_anchors(inputs["gt_boxes"], settings.get("allowed_border", 0),
                                              settings.get("rpn_positive_overlap", 0.7),
                                              settings.get("rpn_negative_overlap", 0.3),
                                              settings.get("rpn_clobber_positives", False))
    np.testing.assert_array_equal(labels, wanted)
    assert settings or (wanted == 1).any() and (wanted == 0).any()
    np.testing.assert_allclose(targets, wanted_targets, rtol=1e-5, atol=1e-6)
    weights = np.array(settings.get("rpn_bbox_inside_weights", [1] * 4))
    np.testing.assert_allclose(inside, (wanted == 1)[:, None] * weights)
    np.testing.assert_allclose(outside, np.repeat((wanted >= 0)[:, None] / (wanted >= 0).sum(), 4, 1), rtol=1e-6)


@pytest.mark.parametrize("batch,fraction,weight", [(32, 0.5, -1), (32, 0.1, -1), (6, 0.5, 0.25), (64, 0, -1)])
def test_anchor_sampling(tmp_path, batch, fraction, weight):
    inputs = anchor_inputs(np.random.default_rng(7), 6)
    crema.set_random_seed(5)
    net = anchor_net(tmp_path, inputs, rpn_batchsize=batch, rpn_fg_fraction=fraction, rpn_positive_weight=weight)
    candidates, _ = expected_anchors(inputs["gt_boxes"])
    for _ in range(3):
        run(net, inputs)
        labels, _, _, outside = found_anchors(net)
        ones, zeros = (labels == 1).sum(), (labels == 0).sum()
        assert (candidates[labels >= 0] == labels[labels >= 0]).all()
        assert ones == min((candidates == 1).sum(), int(fraction * batch))
        assert zeros == min((candidates == 0).sum(), batch - ones)
        for label, count, share in [(1, ones, weight), (0, zeros, 1 - weight)]:
            each = 1 / (ones + zeros) if weight < 0 else share / max(count, 1)
            np.testing.assert_allclose(outside[labels == label], each, rtol=1e-6)
        assert (outside[labels < 0] == 0).all()


def test_anchor_sampling_is_seeded_and_even(tmp_path):
    inputs = anchor_inputs(np.random.default_rng(8), 4)

    def passes(seed, count):
        crema.set_random_seed(seed)
        net = anchor_net(tmp_path, inputs, rpn_batchsize=40)
        drawn = []
        for _ in range(count):
            run(net, inputs)
            drawn.append(found_anchors(net)[0].copy())
        return np.array(drawn)

    first, again, other = passes(1, 200), passes(1, 2), passes(2, 1)
    np.testing.assert_array_equal(first[:2], again)
    assert (first[0] != first[1]).any() and (first[0] != other[0]).any()
    # Each zero is drawn as often as any other.
    candidates, _ = expected_anchors(inputs["gt_boxes"])
    drawn = (first == 0).sum(0)[candidates == 0]
    mean = drawn.mean()
    assert abs(drawn - mean).max() < 6 * np.sqrt(mean) + 2


# --- ProposalTargetLayer -------------------------------------------------------------------------------------------------

TARGETS = ["rois", "labels", "bbox_targets", "bbox_inside_weights", "bbox_outside_weights"]


def region_inputs(random, regions, objects, classes=3):
    """Half of the regions lie near an object."""
    boxes = random_objects(random, objects, classes)
    near = boxes[random.integers(0, objects, regions // 2), :4] + random.normal(0, 4, (regions // 2, 4))
    far = random_objects(random, regions - regions // 2)[:, :4]
    rows = np.vstack([near, far])
    return {"rpn_rois": np.hstack([np.zeros((regions, 1)), rows]).astype(np.float32), "gt_boxes": boxes}


def target_net(tmp_path, inputs, **settings):
    return make_net(tmp_path, inputs,
                    python_layer("rpn.proposal_target_layer", "ProposalTargetLayer", inputs, TARGETS, settings))


def expected_targets(rois, objects, classes, agnostic=False, means=(0,) * 4, stds=(0.1, 0.1, 0.2, 0.2), thresh=0.5,
                     weights=(1,) * 4):
    """Labels, targets and weights of each of these regions, were it drawn as an object if it can be."""
    rois, objects = rois.astype(np.float64), objects.astype(np.float64)
    common = overlaps(rois[:, 1:], objects[:, :4])
    which = common.argmax(1)
    labels = np.where(common.max(1) >= thresh, objects[which, 4], 0)
    shifts = (encoded(rois[:, 1:], objects[which, :4]) - means) / stds
    targets, inside = np.zeros((len(rois), classes, 4)), np.zeros((len(rois), classes, 4))
    rows = np.flatnonzero(labels > 0)
    columns = np.ones(len(rows), int) if agnostic else labels[rows].astype(int)
    targets[rows, columns], inside[rows, columns] = shifts[rows], weights
    return labels, targets.reshape(len(rois), -1), inside.reshape(len(rois), -1), common.max(1)


def check_rows(net, inputs, classes, **how):
    """Each row of the tops is one of the candidates, with its targets; returns labels and overlaps."""
    rois, labels, targets, inside, outside = [net.blobs[top].data for top in TARGETS]
    wanted, wanted_targets, wanted_inside, common = expected_targets(rois.reshape(-1, 5), inputs["gt_boxes"], classes, **how)
    np.testing.assert_array_equal(labels.ravel(), wanted)
    np.testing.assert_allclose(targets.reshape(wanted_targets.shape), wanted_targets, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(inside.reshape(wanted_inside.shape), wanted_inside)
    np.testing.assert_array_equal(outside, inside > 0)
    candidates = np.vstack([inputs["rpn_rois"], np.pad(inputs["gt_boxes"][:, :4], ((0, 0), (1, 0)))])
    known = {row.tobytes() for row in candidates}
    assert {row.tobytes() for row in rois.reshape(-1, 5)} <= known
    return labels.ravel(), common, candidates


@pytest.mark.parametrize("classes,settings,how", [
    (4, {}, {}), (2, {}, {"agnostic": True}), (4, {"agnostic": True}, {"agnostic": True}),
    (4, {"bbox_normalize_means": [0.1, 0, 0.2, 0], "bbox_normalize_stds": [1, 2, 3, 4]},
     {"means": (0.1, 0, 0.2, 0), "stds": (1, 2, 3, 4)}),
    (4, {"bbox_normalize_targets_precomputed": False}, {"stds": (1,) * 4}),
    (4, {"bbox_inside_weights": (1, 2, 0, 3)}, {"weights": (1, 2, 0, 3)}), (4, {"bg_thresh_lo": 0.1}, {})])
def test_all_regions_get_targets(tmp_path, classes, settings, how):
    """Batch size -1, as R-FCN's online hard example mining has it: all of them, objects first, in order."""
    inputs = region_inputs(np.random.default_rng(11), 60, 5)
    net = target_net(tmp_path, inputs, num_classes=classes, batch_size=-1, **settings)
    run(net, inputs)
    labels, common, candidates = check_rows(net, inputs, classes, **how)
    _, _, _, every = expected_targets(candidates, inputs["gt_boxes"], classes, True)
    low = settings.get("bg_thresh_lo", 0)
    order = np.concatenate([np.flatnonzero(every >= 0.5), np.flatnonzero((every < 0.5) & (every >= low))])
    np.testing.assert_array_equal(net.blobs["rois"].data.reshape(-1, 5), candidates[order])
    assert low == 0 or len(order) < len(candidates)
    assert (labels > 0).any() and (labels == 0).any()


@pytest.mark.parametrize("regions,batch,fraction", [(300, 128, 0.25), (300, 30, 0.5), (40, 128, 0.25), (300, 10, 0.05)])
def test_region_sampling(tmp_path, regions, batch, fraction):
    inputs = region_inputs(np.random.default_rng(12), regions, 5)
    settings = {} if (batch, fraction) == (128, 0.25) else {"batch_size": batch, "fg_fraction": fraction}
    crema.set_random_seed(3)
    net = target_net(tmp_path, inputs, num_classes=4, **settings)
    drawn = []
    for _ in range(3):
        run(net, inputs)
        labels, common, candidates = check_rows(net, inputs, 4)
        rois = net.blobs["rois"].data.reshape(-1, 5).copy()
        _, _, _, every = expected_targets(candidates, inputs["gt_boxes"], 4)
        objects = min((every >= 0.5).sum(), int(np.round(fraction * batch)))
        assert (common >= 0.5).sum() == objects
        assert (labels[:objects] > 0).all() and (labels[objects:] == 0).all()
        assert len(rois) == objects + min((every < 0.5).sum(), batch - objects)
        assert len(np.unique(rois, axis=0)) == len(rois)
        drawn.append(rois)
    if regions > batch:
        assert any(not np.array_equal(drawn[0], other) for other in drawn[1:])
    crema.set_random_seed(3)
    again = target_net(tmp_path, inputs, num_classes=4, **settings)
    run(again, inputs)
    np.testing.assert_array_equal(again.blobs["rois"].data.reshape(-1, 5), drawn[0])


def test_objects_may_be_more_or_fewer(tmp_path):
    """As from image to image."""
    random = np.random.default_rng(13)
    net = None
    for regions, objects in [(20, 3), (33, 7), (5, 1)]:
        inputs = region_inputs(random, regions, objects)
        net = net or target_net(tmp_path, inputs, num_classes=4, batch_size=-1)
        run(net, inputs)
        check_rows(net, inputs, 4)
        assert len(net.blobs["rois"].data) == regions + objects


# --- what is refused -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("settings,message", [
    ({"num_class": 4}, "param_str must give num_classes"), ({"num_classes": 4, "batchsize": 3}, "did you mean \"batch_size\""),
    ({"num_classes": 1}, "num_classes is 1"), ({"num_classes": "x"}, "must be a whole number"),
    ({"num_classes": 4, "fg_fraction": 2}, "fg_fraction is 2")])
def test_wrong_settings(tmp_path, settings, message):
    inputs = region_inputs(np.random.default_rng(1), 4, 2)
    with pytest.raises(crema.Error, match=message):
        target_net(tmp_path, inputs, **settings)


# --- nets from the shell -------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    """Eight images, which are learned by heart and found again."""
    folder = tmp_path_factory.mktemp("shapes")
    subprocess.run([sys.executable, str(TOP / "data_scripts/make_shapes.py"), str(folder), "--train", "8", "--test", "1", "--size", "96"],
                   check=True, stdout=subprocess.DEVNULL)
    for part in ["train", "test"]:
        subprocess.run([f"{TOOLS}/convert_annoset", "-encoded", f"-label_map_file={folder}/labelmap.prototxt", f"{folder}/",
                        str(folder / "train.txt"), str(folder / f"shapes_{part}_lmdb")], check=True, stderr=subprocess.DEVNULL)
    return folder


@pytest.mark.parametrize("model", ["faster_rcnn", "rfcn"])
def test_trains_from_the_shell(shapes, tmp_path, model):
    settings = {"data": f'"{shapes}/shapes"', "size": 96, "max_iter": 400, "test_interval": 400, "test_iter": 8, "display": 1,
                "average_loss": 20, "lr_policy": "fixed", "base_lr": 0.001, "random_seed": 1, "snapshot": 0,
                "snapshot_prefix": f'"{tmp_path}/net"', "snapshot_after_train": "false"}
    command = [f"{TOOLS}/train", "-solver", f"models/{model}/solver.prototxt"]
    for name, value in settings.items():
        command += ["-set", f"{name}={value}"]
    done = subprocess.run(command, cwd=TOP, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert " nan of " not in done.stderr  # no error about memory that the data do not reach
    losses = [float(loss) for loss in re.findall(r"Iteration \d+ .*, loss = (\S+)", done.stderr)]
    assert len(losses) == 400
    assert losses[-1] < 0.4 * losses[20]
    precision = re.findall(r"detection_eval = (\S+)", done.stderr)
    assert float(precision[-1]) > 0.4
