"""Native versions of data layers and losses that public nets have in Python, on data made here: RoIDataLayer, FCN's
layers, the notebook with several labels, EuclideanLossLayer."""
import os
import re
import subprocess

import numpy as np
import PIL.Image
import pytest

import crema

scipy_io = pytest.importorskip('scipy.io')

MEAN = (102.9801, 115.9465, 122.7717)


def python_layer(module, name, tops, param_str, extra=''):
    lines = ' '.join(f'top: "{top}"' for top in tops)
    return (f'layer {{ name: "it" type: "Python" {lines} {extra} '
            f'python_param {{ module: "{module}" layer: "{name}" param_str: "{param_str}" }} }}\n')


def make_net(folder, text, phase=crema.TRAIN):
    path = folder / 'net.prototxt'
    path.write_text(text)
    return crema.Net(str(path), phase)


def random_image(random, height, width):
    """Smooth enough for a JPEG, and not the same mirrored."""
    coarse = random.integers(0, 256, (3 + height // 8, 3 + width // 8, 3)).astype(np.uint8)
    return np.asarray(PIL.Image.fromarray(coarse).resize((width, height), PIL.Image.BICUBIC))


# --- RoIDataLayer -----------------------------------------------------------------------------------------------------

SIZES = [(40, 50), (60, 30), (45, 45), (20, 90), (33, 47)]  # height, width
CLASSES = ['dog', 'cat']
SCALE, MAX_SIZE = 32, 100
# (class, x1, y1, x2, y2, difficult), counted from 1 and to the last pixel; the image 0 has none that counts.
OBJECTS = [[(1, 3, 4, 20, 30, 1)],
           [(1, 1, 1, 30, 60, 0)],
           [(2, 5, 6, 7, 8, 0), (1, 40, 41, 45, 45, 0), (2, 9, 9, 33, 12, 1)],
           [(2, 11, 3, 90, 20, 0)],
           [(1, 2, 2, 46, 32, 0), (2, 20, 10, 30, 30, 0)]]


@pytest.fixture(scope='module')
def voc(tmp_path_factory):
    """The folder of a small Pascal VOC: its database is voc_lmdb, pictures are .images."""
    folder = tmp_path_factory.mktemp('voc')
    random = np.random.default_rng(0)
    lines, images = [], []
    for number, ((height, width), objects) in enumerate(zip(SIZES, OBJECTS)):
        images.append(random_image(random, height, width))
        PIL.Image.fromarray(images[-1]).save(folder / f'{number}.png')
        text = ''.join(f'<object><name>{CLASSES[label - 1]}</name><difficult>{difficult}</difficult>'
                       f'<bndbox><xmin>{x1}</xmin><ymin>{y1}</ymin><xmax>{x2}</xmax><ymax>{y2}</ymax></bndbox></object>'
                       for label, x1, y1, x2, y2, difficult in objects)
        (folder / f'{number}.xml').write_text(f'<annotation><size><width>{width}</width><height>{height}</height>'
                                              f'<depth>3</depth></size>{text}</annotation>')
        lines.append(f'{number}.png {number}.xml\n')
    (folder / 'list.txt').write_text(''.join(lines))
    (folder / 'map.prototxt').write_text(''.join(f'item {{ name: "{name}" label: {label} }}\n'
                                                 for label, name in enumerate(['background', *CLASSES])))
    program = os.path.join(os.environ['CREMA_TOOLS'], 'crema')
    subprocess.run([program, 'convert_annoset', '-encoded', '-label_map_file', folder / 'map.prototxt', f'{folder}/',
                    folder / 'list.txt', folder / 'voc_lmdb'], check=True, capture_output=True)
    return folder, images


def resized(image, scale):
    """Bilinear, in real numbers; pixels are squares, and their middles are what is sampled."""
    def between(size):
        at = (np.arange(int(np.round(size * scale))) + 0.5) / scale - 0.5
        at = np.clip(at, 0, size - 1)
        low = np.minimum(np.floor(at).astype(int), size - 1)
        return low, np.minimum(low + 1, size - 1), at - low
    top, bottom, down = between(image.shape[0])
    left, right, across = between(image.shape[1])
    rows = image[top] * (1 - down)[:, None, None] + image[bottom] * down[:, None, None]
    return rows[:, left] * (1 - across)[:, None] + rows[:, right] * across[:, None]


def expected_roi(image, objects, mirrored, scales=SCALE, max_size=MAX_SIZE):
    scale = scales / min(image.shape[:2])
    if np.round(scale * max(image.shape[:2])) > max_size:
        scale = max_size / max(image.shape[:2])
    blue_first = image[:, ::-1, ::-1] if mirrored else image[:, :, ::-1]
    data = resized(blue_first.astype(float) - MEAN, scale).transpose(2, 0, 1)
    counted = [corners for _, *corners, difficult in objects if not difficult]
    boxes = np.array(counted, float) - 1
    if mirrored:
        boxes[:, [0, 2]] = image.shape[1] - 1 - boxes[:, [2, 0]]
    labels = [[label] for label, *_, difficult in objects if not difficult]
    return data, scale, np.hstack([boxes * scale, labels])


def roi_text(folder, **settings):
    settings = {'num_classes': 3, 'source': f'{folder}/voc_lmdb', 'scales': SCALE, 'max_size': MAX_SIZE, **settings}
    return python_layer('roi_data_layer.layer', 'RoIDataLayer', ['data', 'im_info', 'gt_boxes'], settings)


def pass_of(net):
    net.forward()
    return [net.blobs[name].data.copy() for name in ('data', 'im_info', 'gt_boxes')]


def which(found, images, **options):
    """(number of the image, mirrored), after it was compared with what that should give."""
    data, info, boxes = found
    matches = []
    for number in range(1, len(images)):
        for mirrored in (False, True):
            wanted, scale, objects = expected_roi(images[number], OBJECTS[number], mirrored, **options)
            if data.shape != (1, *wanted.shape) or np.abs(data[0] - wanted).max() > 1e-3:
                continue
            matches.append((number, mirrored))
            np.testing.assert_allclose(info, [[*wanted.shape[1:], scale]], rtol=1e-6)
            order = [np.lexsort(rows.T) for rows in (boxes, objects)]
            np.testing.assert_allclose(boxes[order[0]], objects[order[1]], atol=1e-4)
    assert len(matches) == 1
    return matches[0]


def test_rois_are_those_of_the_paper(tmp_path, voc):
    folder, images = voc
    net = make_net(tmp_path, roi_text(folder))
    assert net.blobs['data'].data.shape == (1, 3, SCALE, MAX_SIZE) and net.blobs['im_info'].data.shape == (1, 3)
    epochs = [[which(pass_of(net), images) for _ in range(2 * len(images))] for _ in range(3)]
    for epoch in epochs:
        # The image without objects is passed over: the one after it takes its place.
        assert sorted(epoch) == sorted([(1, False), (1, True)] + [(n, m) for n in range(1, 5) for m in (False, True)])
    assert epochs[0] != epochs[1] != epochs[2]


def test_rois_in_the_order_of_the_database(tmp_path, voc):
    folder, images = voc
    net = make_net(tmp_path, roi_text(folder, flipped=False, shuffle=False))
    assert [which(pass_of(net), images)[0] for _ in range(7)] == [1, 1, 2, 3, 4, 1, 1]
    net = make_net(tmp_path, roi_text(folder), crema.TEST)
    for _ in range(2):
        data, info, boxes = pass_of(net)
        assert data.shape == (1, 3, 32, 40) and boxes.shape == (0, 5)
        assert [which(pass_of(net), images)[0] for _ in range(4)] == [1, 2, 3, 4]


def test_several_scales(tmp_path, voc):
    folder, images = voc
    net = make_net(tmp_path, roi_text(folder, scales=(20, 28, 32), flipped=False, shuffle=False))
    drawn = set()
    for _ in range(40):
        found = pass_of(net)
        # 20 x 90 pixels are reduced to max_size, whatever is drawn.
        scale = min(found[0].shape[2:]) if max(found[0].shape[2:]) < MAX_SIZE else SCALE
        drawn.add(scale)
        which(found, images, scales=scale)
    assert drawn == {20, 28, 32}


@pytest.mark.parametrize('first_pixel, difficult', [(0, True), (1, True), (0, False)])
def test_rois_of_coco_and_difficult_ones(tmp_path, voc, first_pixel, difficult):
    folder, images = voc
    settings = {'first_pixel': first_pixel, 'difficult': difficult, 'shuffle': False, 'flipped': False, 'scales': 45}
    net = make_net(tmp_path, roi_text(folder, **settings))
    boxes = [pass_of(net)[2] for _ in range(3)][2]
    wanted = [[x1 - first_pixel, y1 - first_pixel, x2 - 1, y2 - 1, label]
              for label, x1, y1, x2, y2, hard in OBJECTS[2] if difficult or not hard]
    order = [np.lexsort(rows.T) for rows in (boxes, np.array(wanted))]
    np.testing.assert_allclose(boxes[order[0]], np.array(wanted)[order[1]], atol=1e-4)


def test_order_is_that_of_the_seed(tmp_path, voc):
    folder, images = voc
    orders = []
    for seed in (1, 1, 2):
        crema.set_random_seed(seed)
        net = make_net(tmp_path, roi_text(folder))
        orders.append([which(pass_of(net), images) for _ in range(20)])
    assert orders[0] == orders[1] != orders[2]


LEARNS = '''layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 2 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "mean" type: "Pooling" bottom: "conv" top: "mean" pooling_param { pool: AVE global_pooling: true } }
layer { name: "unread" type: "Silence" bottom: "im_info" bottom: "gt_boxes" }
layer { name: "loss" type: "Reduction" bottom: "mean" top: "loss" reduction_param { operation: SUMSQ } loss_weight: 1 }
'''


def test_training_resumes(tmp_path, voc):
    folder, images = voc
    net = tmp_path / 'net.prototxt'
    net.write_text(roi_text(folder) + LEARNS)
    program = os.path.join(os.environ['CREMA_TOOLS'], 'crema')

    def losses(name, last, **more):
        solver = tmp_path / f'{name}.prototxt'
        solver.write_text(f'net: "{net}" base_lr: 0.00001 lr_policy: "fixed" display: 1 random_seed: 5 '
                          f'max_iter: {last} snapshot: 100 snapshot_prefix: "{tmp_path}/{name}"')
        flags = [f'-{key}={value}' for key, value in more.items()]
        command = [program, 'train', f'-solver={solver}', *flags]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return re.findall(r'Iteration \d+.*, loss = (.*)', done.stderr)

    whole = losses('whole', 24)
    first = losses('part', 11)
    rest = losses('rest', 24, snapshot=f'{tmp_path}/part_iter_11.solverstate')
    assert len(set(whole)) > 10
    assert first[:11] == whole[:11]
    assert rest == whole[-len(rest):] and len(rest) >= 13


def test_hint_for_the_database_works(tmp_path, voc):
    (tmp_path / 'net.prototxt').write_text(roi_text(voc[0], source='') + LEARNS)
    (tmp_path / 'solver.prototxt').write_text('net: "net.prototxt" base_lr: 0.00001 lr_policy: "fixed" max_iter: 1')
    command = [os.path.join(os.environ['CREMA_TOOLS'], 'crema'), 'train', '-solver=solver.prototxt']
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert told.returncode == 1
    setting = re.search('-set "(.*?)"$', told.stderr, re.M).group(1).replace("'voc_lmdb'", f"'{voc[0]}/voc_lmdb'")
    subprocess.run([*command, '-set', setting], cwd=tmp_path, check=True, capture_output=True)


@pytest.mark.parametrize('settings, message', [
    ({'source': ''}, 'convert_annoset'),
    ({'source': 'nowhere'}, 'nowhere'),
    ({'num_classes': 2}, r'record 2.*class 2.*num_classes is 2'),
    ({'scales': 200}, 'at most max_size'),
    ({'scales': 0}, 'must be 1 or more'),
    ({'scales': 1e30}, 'whole number'),
    ({'max_size': -5}, 'at most max_size'),
    ({'num_classes': 1}, '2 or more'),
    ({'mean': (1, 2)}, 'mean has 2 values'),
    ({'batch_size': 2}, 'batch_size'),
    ({'backend': 'sql'}, 'sql')])
def test_mistakes_with_rois(tmp_path, voc, settings, message):
    with pytest.raises(crema.Error, match=message):
        net = make_net(tmp_path, roi_text(voc[0], shuffle=False, **settings))
        for _ in range(5):
            net.forward()


def test_rois_of_fast_rcnn_are_refused(tmp_path, voc):
    tops = ['data', 'rois', 'labels', 'bbox_targets', 'bbox_inside_weights', 'bbox_outside_weights']
    text = python_layer('roi_data_layer.layer', 'RoIDataLayer', tops, "'num_classes': 21")
    with pytest.raises(crema.Error, match='Fast R-CNN'):
        make_net(tmp_path, text)


# --- FCN --------------------------------------------------------------------------------------------------------------

NAMES = ['a_1', 'b_2', 'c_3', 'd_4']
FCN_SIZES = [(11, 14), (9, 8), (16, 7), (11, 14)]


def save_mat(path, variables, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    scipy_io.savemat(str(path), variables, **options)


class Folders:
    """Data sets as FCN's layers expect them. `compressed`: of the .mat files."""

    def __init__(self, root, compressed=False):
        self.root, self.random = root, np.random.default_rng(1)
        self.mat = {'do_compression': compressed}
        self.images, self.labels = {}, {}

    def image(self, path, name, size):
        path.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(random_image(self.random, *size)).save(path)
        self.images[name] = np.asarray(PIL.Image.open(path))

    def list(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('\n'.join(NAMES) + '\n')

    def voc(self):
        for split in ('train', 'seg11valid'):
            self.list(self.root / f'ImageSets/Segmentation/{split}.txt')
        (self.root / 'SegmentationClass').mkdir(parents=True)
        for name, size in zip(NAMES, FCN_SIZES):
            self.image(self.root / f'JPEGImages/{name}.jpg', name, size)
            label = self.random.integers(0, 22, size).astype(np.uint8)
            label[label == 21] = 255
            picture = PIL.Image.fromarray(label, 'P')
            picture.putpalette(self.random.permutation(768).astype(np.uint8).tobytes())
            picture.save(self.root / f'SegmentationClass/{name}.png')
            self.labels[name] = label

    def sbdd(self):
        self.list(self.root / 'train.txt')
        for name, size in zip(NAMES, FCN_SIZES):
            self.image(self.root / f'img/{name}.jpg', name, size)
            label = self.random.integers(0, 21, size).astype(np.uint8)
            boundaries = np.empty((20, 1), object)
            boundaries[:] = [[np.zeros(size, bool)]]
            truth = {'Boundaries': boundaries, 'Segmentation': label, 'CategoriesPresent': np.array([[3.0, 7.0]])}
            save_mat(self.root / f'cls/{name}.mat', {'GTcls': truth}, **self.mat)
            self.labels[name] = label


def fcn_net(folder, module, layer, tops, settings, phase=crema.TEST):
    return make_net(folder, python_layer(module, layer, tops, settings), phase)


def check_image(blob, rgb, mean):
    wanted = rgb[:, :, ::-1].astype(np.float32) - np.array(mean)
    np.testing.assert_allclose(blob.data, wanted.transpose(2, 0, 1)[None], atol=1e-4)


def check_label(blob, label):
    np.testing.assert_array_equal(blob.data, label[None, None])


FCN_MEAN = (104.00699, 116.66877, 122.67892)


def test_voc_segmentation(tmp_path):
    made = Folders(tmp_path / 'VOC')
    made.voc()
    settings = {'voc_dir': str(made.root), 'split': 'seg11valid', 'mean': FCN_MEAN, 'seed': 1337}
    net = fcn_net(tmp_path, 'voc_layers', 'VOCSegDataLayer', ['data', 'label'], settings)
    for name in NAMES + NAMES[:2]:
        net.forward()
        check_image(net.blobs['data'], made.images[name], FCN_MEAN)
        check_label(net.blobs['label'], made.labels[name])


@pytest.mark.parametrize('compressed', [False, True])
def test_sbdd_segmentation(tmp_path, compressed):
    made = Folders(tmp_path / 'sbdd', compressed)
    made.sbdd()
    settings = {'sbdd_dir': str(made.root), 'split': 'train', 'mean': FCN_MEAN, 'randomize': False}
    net = fcn_net(tmp_path, 'voc_layers', 'SBDDSegDataLayer', ['data', 'label'], settings, crema.TRAIN)
    for name in NAMES:
        net.forward()
        check_image(net.blobs['data'], made.images[name], FCN_MEAN)
        check_label(net.blobs['label'], made.labels[name])


def test_order_of_segmentation(tmp_path):
    made = Folders(tmp_path / 'sbdd')
    made.sbdd()

    def order(solver_seed, **more):
        settings = {'sbdd_dir': str(made.root), 'split': 'train', 'mean': FCN_MEAN, **more}
        crema.set_random_seed(solver_seed)
        net = fcn_net(tmp_path, 'voc_layers', 'SBDDSegDataLayer', ['data', 'label'], settings, crema.TRAIN)
        names = []
        for _ in range(12):
            net.forward()
            names += [name for name in NAMES if np.array_equal(net.blobs['label'].data[0, 0], made.labels[name])]
        return names

    drawn = order(1, seed=1337)
    for epoch in (drawn[:4], drawn[4:8], drawn[8:]):
        assert sorted(epoch) == NAMES
    assert drawn == order(2, seed=1337) != order(1, seed=1338)
    assert order(3, seed=None) == order(3) != order(4)


def test_nyud_segmentation(tmp_path):
    root, random = tmp_path / 'nyud', np.random.default_rng(2)
    made = Folders(root)
    for split in ('trainval', 'test'):
        made.list(root / f'{split}.txt')
    depths, hha, labels = {}, {}, {}
    (root / 'data/depth').mkdir(parents=True)
    for name, size in zip(NAMES, FCN_SIZES):
        made.image(root / f'data/images/img_{name}.png', name, size)
        colour = made.images[name]
        made.image(root / f'data/hha/img_{name}.png', name, size)
        hha[name], made.images[name] = made.images[name], colour
        depths[name] = random.integers(500, 9000, size).astype(np.uint16)
        PIL.Image.fromarray(depths[name]).save(root / f'data/depth/img_{name}.png')
        labels[name] = random.integers(0, 41, size).astype(np.uint8)
        save_mat(root / f'segmentation/img_{name}.mat', {'segmentation': labels[name]}, do_compression=True)
    net = fcn_net(tmp_path, 'nyud_layers', 'NYUDSegDataLayer', ['color', 'hha', 'depth', 'label'],
                  {'nyud_dir': str(root), 'split': 'test', 'tops': ['color', 'hha', 'depth', 'label'], 'seed': 1337})
    for name in NAMES:
        net.forward()
        check_image(net.blobs['color'], made.images[name], (116.190, 97.203, 92.318))
        check_image(net.blobs['hha'], hha[name][:, :, ::-1], (132.431, 94.076, 118.477))
        logarithm = np.log(depths[name].astype(np.float32)) - np.float32(7.844)
        np.testing.assert_allclose(net.blobs['depth'].data[0, 0], logarithm, atol=1e-5)
        check_label(net.blobs['label'], labels[name] - np.uint8(1))


def test_siftflow_segmentation(tmp_path):
    root, random = tmp_path / 'sift', np.random.default_rng(3)
    made = Folders(root)
    made.list(root / 'test.txt')
    inner = 'spatial_envelope_256x256_static_8outdoorcategories'
    semantic, geometric = {}, {}
    for name, size in zip(NAMES, FCN_SIZES):
        made.image(root / f'Images/{inner}/{name}.jpg', name, size)
        semantic[name] = random.integers(0, 34, size)
        geometric[name] = random.integers(-1, 4, size).astype(np.int16)
        words = np.array(['sky', 'sea'])
        save_mat(root / f'SemanticLabels/{inner}/{name}.mat', {'S': semantic[name].astype(float), 'names': words})
        save_mat(root / f'GeoLabels/{inner}/{name}.mat', {'names': words, 'S': geometric[name]})
    net = fcn_net(tmp_path, 'siftflow_layers', 'SIFTFlowSegDataLayer', ['data', 'sem', 'geo'],
                  {'siftflow_dir': str(root), 'split': 'test', 'seed': 1337})
    for name in NAMES:
        net.forward()
        check_image(net.blobs['data'], made.images[name], (114.578, 115.294, 108.353))
        check_label(net.blobs['sem'], (semantic[name] - 1) % 256)
        check_label(net.blobs['geo'], (np.maximum(geometric[name], 0) - 1) % 256)


def test_pascal_context_segmentation(tmp_path):
    root, random = tmp_path / 'pascal', np.random.default_rng(4)
    made = Folders(root / 'VOC2010')
    made.list(made.root / 'ImageSets/Main/val.txt')
    context = tmp_path / 'context'
    context.mkdir()
    every = ['sky', 'table', 'wood floor', 'bedclothes', 'sea', 'cloth', 'grass']
    task = ['clothes', 'sea', 'diningtable', 'bedcloth']
    (context / 'labels.txt').write_text(''.join(f'{i + 1}: {name}\n' for i, name in enumerate(every)))
    (context / '59_labels.txt').write_text(''.join(f'{i + 1}: {name}\n' for i, name in enumerate(task)))
    numbers = {}
    for name, size in zip(NAMES, FCN_SIZES):
        made.image(made.root / f'JPEGImages/{name}.jpg', name, size)
        numbers[name] = random.integers(0, 9, size).astype(np.uint16)
        save_mat(context / f'trainval/{name}.mat', {'LabelMap': numbers[name]})
    net = fcn_net(tmp_path, 'pascalcontext_layers', 'PASCALContextSegDataLayer', ['data', 'label'],
                  {'voc_dir': str(root), 'context_dir': str(context), 'split': 'val'})
    class_of = np.array([0, 0, 3, 0, 4, 2, 1, 0, 0])
    for name in NAMES:
        net.forward()
        check_image(net.blobs['data'], made.images[name], (104.007, 116.669, 122.679))
        check_label(net.blobs['label'], class_of[numbers[name]])


def fail_with_sbdd(tmp_path, change, **settings):
    made = Folders(tmp_path / 'sbdd')
    made.sbdd()
    change(made)
    net = fcn_net(tmp_path, 'voc_layers', 'SBDDSegDataLayer', ['data', 'label'],
                  {'sbdd_dir': str(made.root), 'split': 'train', 'mean': FCN_MEAN, 'randomize': False, **settings})
    for _ in NAMES:
        net.forward()


def rewrite(made, name, **variables):
    save_mat(made.root / f'cls/{name}.mat', variables)


@pytest.mark.parametrize('change, message', [
    (lambda made: os.remove(made.root / 'cls/c_3.mat'), r'train.txt:3: c_3.*cls/c_3.mat'),
    (lambda made: os.remove(made.root / 'img/b_2.jpg'), r'train.txt:2: b_2.*img/b_2.jpg'),
    (lambda made: (made.root / 'img/b_2.jpg').write_bytes(b'no image'), r'train.txt:2: b_2.*b_2.jpg'),
    (lambda made: (made.root / 'cls/b_2.mat').write_bytes(b'no MATLAB file'), r'b_2.mat.*no MATLAB file of version 5'),
    (lambda made: (made.root / 'cls/b_2.mat').write_bytes(b'MATLAB 7.3 MAT-file'), r'version 7.3'),
    (lambda made: rewrite(made, 'd_4', GTcls={'Segmentation': np.zeros((11, 13), np.uint8)}),
     r'd_4.jpg is 11x14.*d_4.mat is 11x13'),
    (lambda made: rewrite(made, 'd_4', other=np.zeros((11, 14))), r'no variable "GTcls", but other'),
    (lambda made: rewrite(made, 'd_4', GTcls=np.zeros((11, 14))), r'no struct'),
    (lambda made: rewrite(made, 'd_4', GTcls={'Other': 1}), r'no field "Segmentation", but Other'),
    (lambda made: rewrite(made, 'd_4', GTcls={'Segmentation': 'text'}), r'd_4.mat.*no matrix of numbers'),
    (lambda made: (made.root / 'train.txt').write_text('\n'), r'train.txt: there is no name')])
def test_mistakes_in_folders(tmp_path, change, message):
    with pytest.raises(crema.Error, match=message):
        fail_with_sbdd(tmp_path, change)


@pytest.mark.parametrize('settings, message', [
    ({'sbdd_dir': 'nowhere'}, 'nowhere/train.txt'), ({'split': 'other'}, 'other.txt'), ({'crop': 3}, 'crop'),
    ({'mean': (1, 2)}, 'mean of 2 values')])
def test_mistakes_in_settings(tmp_path, settings, message):
    with pytest.raises(crema.Error, match=message):
        fail_with_sbdd(tmp_path, lambda made: None, **settings)


def test_damaged_label_files(tmp_path):
    """No cut and no flipped bit in a .mat or .png does anything but give an error or other labels."""
    made = Folders(tmp_path / 'sbdd', compressed=True)
    made.sbdd()
    whole = (made.root / 'cls/a_1.mat').read_bytes()
    voc = Folders(tmp_path / 'voc')
    voc.voc()
    picture = (voc.root / 'SegmentationClass/a_1.png').read_bytes()
    random = np.random.default_rng(5)
    errors = 0
    for layer, key, path, content in (('SBDDSegDataLayer', 'sbdd_dir', made.root / 'cls/a_1.mat', whole),
                                      ('VOCSegDataLayer', 'voc_dir', voc.root / 'SegmentationClass/a_1.png', picture)):
        root = made.root if key == 'sbdd_dir' else voc.root
        for trial in range(60):
            damaged = bytearray(content[:random.integers(len(content))] if trial % 2 else content)
            if trial % 2 == 0:
                damaged[random.integers(len(damaged))] ^= 1 << random.integers(8)
            path.write_bytes(bytes(damaged))
            try:
                fcn_net(tmp_path, 'voc_layers', layer, ['data', 'label'],
                        {key: str(root), 'split': 'train', 'mean': FCN_MEAN, 'randomize': False}).forward()
            except crema.Error as error:
                assert 'a_1' in str(error)
                errors += 1
    assert errors > 60


@pytest.mark.parametrize('bits', [1, 2, 4, 8])
def test_indices_of_few_bits(tmp_path, bits):
    made = Folders(tmp_path / 'voc')
    made.voc()
    label = made.random.integers(0, 1 << bits, (9, 8)).astype(np.uint8)
    picture = PIL.Image.fromarray(label, 'P')
    picture.putpalette(bytes(range(256)) * 3)
    picture.save(made.root / 'SegmentationClass/b_2.png', bits=bits)
    net = fcn_net(tmp_path, 'voc_layers', 'VOCSegDataLayer', ['data', 'label'],
                  {'voc_dir': str(made.root), 'split': 'seg11valid', 'mean': FCN_MEAN})
    net.forward()
    net.forward()
    check_label(net.blobs['label'], label)


def test_coloured_label_images_are_refused(tmp_path):
    made = Folders(tmp_path / 'voc')
    made.voc()
    PIL.Image.fromarray(random_image(made.random, 9, 8)).save(made.root / 'SegmentationClass/b_2.png')
    net = fcn_net(tmp_path, 'voc_layers', 'VOCSegDataLayer', ['data', 'label'],
                  {'voc_dir': str(made.root), 'split': 'seg11valid', 'mean': FCN_MEAN})
    with pytest.raises(crema.Error, match='b_2.png.*has colours'):
        net.forward()
        net.forward()


# --- several labels ---------------------------------------------------------------------------------------------------

VOC_CLASSES = ('aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person '
               'pottedplant sheep sofa train tvmonitor').split()


def multilabel_text(settings, layer='Sync'):
    module, name = 'pascal_multilabel_datalayers', f'PascalMultilabelDataLayer{layer}'
    return python_layer(module, name, ['data', 'label'], settings)


@pytest.fixture
def multilabel(tmp_path):
    root, random = tmp_path / 'VOC2012', np.random.default_rng(6)
    made = Folders(root)
    made.list(root / 'ImageSets/Main/train.txt')
    labels = {}
    (root / 'Annotations').mkdir()
    for name, size in zip(NAMES, [(50, 40), (23, 61), (30, 30), (12, 9)]):
        made.image(root / f'JPEGImages/{name}.jpg', name, size)
        classes = random.choice(20, random.integers(1, 5))
        labels[name] = np.isin(np.arange(20), classes).astype(np.float32)
        (root / f'Annotations/{name}.xml').write_text('<annotation>' + ''.join(
            f'<object><name>{VOC_CLASSES[c]}</name></object>' for c in classes) + '</annotation>')
    return root, made.images, labels


@pytest.mark.parametrize('layer, size', [('Sync', (24, 31)), ('Async', (30, 30)), ('Sync', (60, 12))])
def test_several_labels(tmp_path, multilabel, layer, size):
    root, images, labels = multilabel
    settings = {'batch_size': 2, 'im_shape': list(size), 'split': 'train', 'pascal_root': str(root)}
    net = make_net(tmp_path, multilabel_text(settings, layer))
    names, mirrored = [], []
    for _ in range(12):
        net.forward()
        assert net.blobs['data'].data.shape == (2, 3, *size) and net.blobs['label'].data.shape == (2, 20)
        for data, label in zip(net.blobs['data'].data, net.blobs['label'].data):
            for name in NAMES:
                picture = PIL.Image.fromarray(images[name]).resize(size[::-1], PIL.Image.BILINEAR)
                wanted = (np.asarray(picture)[:, :, ::-1].astype(np.float32) - 128).transpose(2, 0, 1)
                for flip in (False, True):
                    if np.array_equal(data, wanted[:, :, ::-1] if flip else wanted):
                        names.append(name)
                        mirrored.append(flip)
                        np.testing.assert_array_equal(label, labels[name])
    assert len(names) == 24 and names[:4] == NAMES
    epochs = [names[i:i + 4] for i in range(4, 24, 4)]
    assert all(sorted(epoch) == NAMES for epoch in epochs) and len({tuple(epoch) for epoch in epochs}) > 1
    assert 4 < sum(mirrored) < 20


@pytest.mark.parametrize('settings, message', [
    ({'batch_size': 0}, 'batch_size of 0'), ({'im_shape': [3]}, '1 numbers as im_shape'),
    ({'im_shape': [0, 1e40]}, 'whole number'), ({'split': 'val'}, 'val.txt'),
    ({'pascal_root': 'nowhere'}, 'nowhere')])
def test_mistakes_with_several_labels(tmp_path, multilabel, settings, message):
    settings = {'batch_size': 2, 'im_shape': [8, 8], 'split': 'train', 'pascal_root': str(multilabel[0]), **settings}
    with pytest.raises(crema.Error, match=message):
        make_net(tmp_path, multilabel_text(settings))


def test_unknown_class(tmp_path, multilabel):
    (multilabel[0] / 'Annotations/b_2.xml').write_text('<annotation><object><name>hors</name></object></annotation>')
    settings = {'batch_size': 4, 'im_shape': [8, 8], 'split': 'train', 'pascal_root': str(multilabel[0])}
    with pytest.raises(crema.Error, match='b_2.*"hors".*horse'):
        make_net(tmp_path, multilabel_text(settings)).forward()


# --- EuclideanLossLayer -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize('weight', [None, 1, 0.5])
def test_euclidean_loss(tmp_path, weight):
    random = np.random.default_rng(7)
    a, b = random.normal(size=(2, 4, 3, 2)).astype(np.float32)
    inputs = ''.join(f'layer {{ name: "{name}" type: "Input" top: "{name}" '
                     f'input_param {{ shape {{ dim: 4 dim: 3 dim: 2 }} }} }}\n' for name in 'ab')
    text = 'force_backward: true\n' + inputs + python_layer(
        'pyloss', 'EuclideanLossLayer', ['loss'], '',
        'bottom: "a" bottom: "b"' + (f' loss_weight: {weight}' if weight else ''))
    net = make_net(tmp_path, text)
    net.blobs['a'].data[...], net.blobs['b'].data[...] = a, b
    net.forward()
    np.testing.assert_allclose(net.blobs['loss'].data, ((a - b) ** 2).sum() / 4 / 2, rtol=1e-6)
    if weight:
        net.backward()
        np.testing.assert_allclose(net.blobs['a'].diff, weight * (a - b) / 4, rtol=1e-5)
        np.testing.assert_allclose(net.blobs['b'].diff, -weight * (a - b) / 4, rtol=1e-5)


# --- nets without their data ------------------------------------------------------------------------------------------

@pytest.mark.parametrize('module, layer, tops, settings, shapes', [
    ('roi_data_layer.layer', 'RoIDataLayer', ['data', 'im_info', 'gt_boxes'], "'num_classes': 21",
     '1x3x600x1000 1x3 8x5'),
    ('lib.roi_data_layer.layer', 'RoIDataLayer', ['data', 'im_info', 'gt_boxes'],
     {'num_classes': 3, 'scales': [200, 300], 'max_size': 400}, '1x3x300x400 1x3 8x5'),
    ('nyud_layers', 'NYUDSegDataLayer', ['a', 'b', 'c'],
     {'nyud_dir': 'nowhere', 'split': 'train', 'tops': ['depth', 'color', 'label']},
     '1x1x425x560 1x3x425x560 1x1x425x560'),
    ('pascal_multilabel_datalayers', 'PascalMultilabelDataLayerAsync', ['data', 'label'],
     {'batch_size': 7, 'im_shape': [22, 33], 'split': 'train', 'pascal_root': 'nowhere'}, '7x3x22x33 7x20')])
def test_shapes_are_known_without_data(tmp_path, module, layer, tops, settings, shapes):
    unread = ' '.join(f'bottom: "{top}"' for top in tops)
    (tmp_path / 'net.prototxt').write_text(python_layer(module, layer, tops, settings) +
                                           f'layer {{ name: "unread" type: "Silence" {unread} }}')
    program = os.path.join(os.environ['CREMA_TOOLS'], 'crema')
    told = subprocess.run([program, 'summary', '-model', tmp_path / 'net.prototxt', '-assume', 'default'], check=True,
                          capture_output=True, text=True)
    assumed = re.search('Assuming (.*) instead of layer it', told.stderr).group(1)
    assert assumed == ', '.join(f'{top} {shape}' for top, shape in zip(tops, shapes.split()))
