"""The arguments of random_calls.py: plausible ones by a parameter's name, and absurd ones of every kind."""
import io
import os
import pathlib
import threading

import numpy as np

import crema

NET = """
name: "small"
layer { name: "data" type: "Input" top: "data" top: "label"
        input_param { shape { dim: 4 dim: 3 dim: 6 dim: 6 } shape { dim: 4 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
"""
LOSS = 'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }'
PROB = 'layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }'
MEMORY = NET.replace('type: "Input"', 'type: "MemoryData"').replace(
    'input_param { shape { dim: 4 dim: 3 dim: 6 dim: 6 } shape { dim: 4 } }',
    'memory_data_param { batch_size: 4 channels: 3 height: 6 width: 6 }')
DUMMY = NET.replace('"Input"', '"DummyData"').replace('input_param {', 'dummy_data_param { data_filler { type: "gaussian" '
                                                      'std: 1 } data_filler { type: "constant" }')
PYTHON = NET + """
layer { name: "odd" type: "Python" bottom: "ip" top: "odd"
        python_param { module: "odd_layers" layer: "Odd" param_str: "3" } }
layer { name: "loss" type: "EuclideanLoss" bottom: "odd" bottom: "ip" top: "loss" }
"""
IMAGES = NET.replace('type: "Input"', 'type: "ImageData"').replace(
    'input_param { shape { dim: 4 dim: 3 dim: 6 dim: 6 } shape { dim: 4 } }',
    'image_data_param { source: "list.txt" batch_size: 4 shuffle: true }')
SOLVER = 'net_param { %s } base_lr: 0.01 lr_policy: "fixed" max_iter: 40 display: 5 snapshot_prefix: "state" ' \
         'random_seed: 1 test_iter: 2 test_interval: 10'
LAYERS_FILE = """
import crema

def hook(layer, blobs): pass

class Odd(crema.Layer):
    def setup(self, bottom, top):
        self.blobs.add_blob(2, 3)
        hook(self, [*bottom, *top])
    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)
        hook(self, [*bottom, *top])
    def forward(self, bottom, top):
        top[0].data[...] = bottom[0].data * 2 + self.blobs[0].data.sum()
        hook(self, [*bottom, *top])
    def backward(self, top, propagate, bottom):
        bottom[0].diff[...] = 2 * top[0].diff
        hook(self, [*bottom, *top])
"""

BORDERS = [0, 1, -1, 2, 3, 5, 127, 255, 256, 2**31 - 1, 2**31, -2**31, -2**31 - 1, 2**32, 2**48, 2**63 - 1, 2**63, -2**63,
           2**64, 10**30, -10**30]
FLOATS = [0.0, -0.0, 0.5, 1e-300, 1e300, -1.5, float('nan'), float('inf'), -float('inf')]
TEXTS = ['', 'data', 'label', 'conv', 'ip', 'loss', 'prob', 'odd', 'relu', 'x' * 5000, 'a\0b', '\udcff\ud800', 'ä漢🙂',
         '%s%n{0}', 'layer {', NET + LOSS, SOLVER % (DUMMY + LOSS), 'fp32', 'bf16', 'TRAIN', 'SGD', 'cpu', '../', '.']
FILES = ['net.prototxt', 'deploy.prototxt', 'memory.prototxt', 'dummy.prototxt', 'python.prototxt', 'solver.prototxt',
         'broken.prototxt', 'empty', 'folder', 'missing', 'missing/x', 'net.caffemodel', 'net.h5', 'noise', 'image.ppm', 'images.prototxt', 'list.txt',
         'state_iter_5.solverstate', 'state_iter_5.caffemodel', 'out.png', 'nul\0', 'x' * 300]
HINTS = {
    'shape': 'shape', 'extents': 'shape', 'phase': 'phase', 'start': 'name', 'end': 'name', 'layer': 'name',
    'start_name': 'name', 'name': 'name', 'names': 'names', 'blobs': 'names', 'diffs': 'names', 'callback': 'function',
    'reader': 'function', 'on_start': 'function', 'on_gradients_ready': 'function', 'work': 'function', 'fn': 'function',
    'iterations': 'small', 'first': 'small', 'last': 'small', 'index': 'small', 'count': 'small', 'number': 'small',
    'value': 'any', 'other': 'subject', 'net': 'subject', 'solver': 'subject', 'caffe_net': 'subject', 'top': 'subject',
    'bottom': 'subject', 'blob': 'subject', 'arr': 'array', 'im': 'array', 'image': 'array', 'images': 'array',
    'data': 'array', 'labels': 'array', 'X': 'array', 'y': 'array', 'inputs': 'array', 'label': 'array', 'in_': 'name',
    'planned': 'flag', 'log': 'flag', 'is_text': 'flag', 'text': 'text', 'events': 'names', 'stages': 'names'
}


def make_files():
    """What FILES names, in the working directory."""
    texts = {
        'net.prototxt': NET + LOSS, 'images.prototxt': IMAGES + LOSS, 'list.txt': 'image.ppm 0\nimage.ppm 2\n' * 9, 'deploy.prototxt': NET + PROB, 'memory.prototxt': MEMORY + LOSS,
        'dummy.prototxt': DUMMY + LOSS, 'python.prototxt': PYTHON, 'odd_layers.py': LAYERS_FILE,
        'solver.prototxt': SOLVER % (DUMMY + LOSS), 'images_solver.prototxt': SOLVER % (IMAGES + LOSS), 'broken.prototxt': NET[:300] + '}}', 'empty': ''
    }
    for name, text in texts.items():
        pathlib.Path(name).write_text(text)
    pathlib.Path('noise').write_bytes(bytes(np.random.RandomState(1).randint(0, 256, 3000, dtype='uint8')))
    pathlib.Path('image.ppm').write_bytes(b'P6 6 6 255\n' + bytes(range(108)))
    os.mkdir('folder')
    net = crema.Net('net.prototxt', crema.TEST)
    net.save('net.caffemodel')
    net.save_hdf5('net.h5')


class Awkward:
    """Raises, or does something unexpected, wherever Python asks it anything."""

    def __init__(self, do):
        self._do = do

    def __index__(self):
        return self._do() or 1

    def __fspath__(self):
        return self._do() or 'net.prototxt'

    def __array__(self, *args, **kwargs):
        return self._do() or np.ones(3)

    def __iter__(self):
        self._do()
        return iter([1, 2])

    def __call__(self, *args, **kwargs):
        return self._do()

    __int__ = __len__ = __bool__ = __index__

    def __float__(self):
        return float(self._do() or 0.5)


class Values:
    """Draws arguments. random: a random.Random; subjects: the objects that calls are made on."""

    def __init__(self, random, subjects):
        self.random, self.subjects = random, subjects
        self.kinds = [self.integer, self.integer, self.number, self.text, self.file, self.array, self.array, self.shape,
                      self.function, self.subject, self.subject, self.odd, self.nested]

    def any(self):
        return self.random.choice(self.kinds)()

    def named(self, name):
        """For a parameter of this name."""
        kind = HINTS.get(name)
        if kind is None and any(word in name for word in ('file', 'path', 'weights', 'mean')):
            kind = 'file'
        if kind is None or self.random.random() < 0.25:
            return self.any()
        return getattr(self, kind)()

    def integer(self):
        return self.random.choice(BORDERS) if self.random.random() < 0.6 else self.random.randint(-3, 10)

    def small(self):
        return self.random.randint(-1, 7)

    def phase(self):
        return self.random.randint(0, 1)

    def flag(self):
        return self.random.random() < 0.5

    def number(self):
        kind = self.random.choice([float, np.float32, np.float64, complex])
        return kind(self.random.choice(FLOATS))

    def text(self):
        text = self.random.choice(TEXTS)
        return text.encode('utf-8', 'replace') if self.random.random() < 0.15 else text

    def name(self):
        return self.random.choice(TEXTS[:9])

    def names(self):
        return [self.name() for _ in range(self.random.randint(0, 3))]

    def file(self):
        path = self.random.choice(FILES)
        kind = self.random.random()
        return os.fsencode(path) if kind < 0.1 else pathlib.Path(path) if kind < 0.2 else path

    def shape(self):
        extents = [self.random.choice([0, 1, 2, 3, 4, 6, -1, 2**20, 2**33, 2**62]) if self.random.random() < 0.3 else
                   self.random.randint(1, 5) for _ in range(self.random.choice([0, 1, 2, 3, 4, 4, 4, 33]))]
        return self.random.choice([tuple, list, np.array])(extents)

    def array(self):
        shape = self.random.choice([(4, 3, 6, 6), (4, 3), (4,), (), (0,), (0, 3), (8, 3, 6, 6), (2, 2), (6, 6, 3), (1,) * 32])
        made = np.random.RandomState(self.random.randint(0, 99)).uniform(-3, 9, shape)
        kind = self.random.randint(0, 12)
        if kind < 4:
            return made.astype('float32')
        if kind == 4:
            made = made.astype(self.random.choice(['f8', 'f2', 'i8', 'u1', 'i2', '?', '>f4', 'c8', 'S3', 'O', 'M8[s]', 'V4']))
        elif kind == 5 and made.ndim:
            made = made.repeat(2, 0)[::-2]
        elif kind == 6:
            made = made.T
        elif kind == 7:
            made.flags.writeable = False
        elif kind == 8:
            made = np.full(shape, self.random.choice(FLOATS), 'f4')
        elif kind == 9:
            made = np.broadcast_to(np.float32(1), shape)
        elif kind == 10:
            return made.tolist()
        elif kind == 11:
            return [made, made]
        return made

    def function(self):
        return self.random.choice([len, print_nothing, fail, self.recurse, threading.Event().set, Awkward(fail)])

    def recurse(self, *args):
        """A callback that uses what runs."""
        for subject in self.random.sample(self.subjects, min(2, len(self.subjects))):
            for name in ('forward', 'backward', 'reshape', 'step', 'data', 'shape', 'snapshot', 'net', 'stop', 'blobs'):
                if self.random.random() < 0.3:
                    found = getattr(subject, name, None)
                    if callable(found):
                        found(*[1] * (name == 'step'))

    def subject(self):
        if not self.subjects:
            return None
        if self.random.random() < 0.6:  # what computes
            kind = self.random.choice([crema.Net, crema.Net, crema.Solver, crema.Blob, crema.Layer])
            some = [one for one in self.subjects if isinstance(one, kind)]
            return self.random.choice(some or self.subjects)
        return self.random.choice(self.subjects)

    def odd(self):
        return self.random.choice([
            None, True, b'', bytearray(b'\0\xff'), memoryview(b'123'), object(), type, Ellipsis, slice(None), range(5),
            iter([1]), (x for x in 'ab'), {1, 2}, NotImplemented, io.BytesIO(b'x'), Awkward(fail), Awkward(print_nothing),
            Awkward(lambda: 'text'), Awkward(lambda: -1), crema, crema.Net, crema.Layer, crema.Blob,
            crema.Net.__new__(crema.Net), crema.Blob.__new__(crema.Blob), crema.Solver.__new__(crema.Solver),
            crema.Layer.__new__(crema.Layer), np.int64(3), np.array(3), np.datetime64('2020'), self.dictionary()
        ])

    def dictionary(self):
        return {self.name(): self.array() for _ in range(2)}

    def nested(self):
        kind = self.random.randint(0, 3)
        if kind == 0:
            inner = []
            inner.append(inner)
            return inner
        if kind == 1:
            deep = []
            for _ in range(3000):
                deep = [deep]
            return deep
        return [self.any() for _ in range(self.random.randint(0, 3))]


def print_nothing(*args, **kwargs):
    return None


def fail(*args, **kwargs):
    raise ValueError('this object only fails')
