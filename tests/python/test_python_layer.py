"""Layers written in Python, in nets of the module and in trainings of the tools."""
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import crema

LAYERS = '''
import numpy as np

import crema


class Times(crema.Layer):
    """y = x * param_str"""

    def setup(self, bottom, top):
        self.factor = float(self.param_str)

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        top[0].data[...] = self.factor * bottom[0].data

    def backward(self, top, propagate_down, bottom):
        if propagate_down[0]:
            bottom[0].diff[...] = self.factor * top[0].diff


class AddOne(crema.Layer):
    """In place."""

    def reshape(self, bottom, top):
        assert top[0] is not None

    def forward(self, bottom, top):
        bottom[0].data[...] += 1

    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[...] *= 3


class Loss(crema.Layer):
    """Half the mean squared distance, as EuclideanLoss."""

    def reshape(self, bottom, top):
        if bottom[0].count != bottom[1].count:
            raise ValueError('%d values, but %d labels' % (bottom[0].count, bottom[1].count))
        self.distance = np.zeros(bottom[0].shape, np.float32)
        top[0].reshape(1)

    def forward(self, bottom, top):
        self.distance[...] = bottom[0].data - bottom[1].data
        top[0].data[0] = np.sum(self.distance ** 2) / bottom[0].num / 2

    def backward(self, top, propagate_down, bottom):
        for i, sign in ((0, 1), (1, -1)):
            if propagate_down[i]:
                bottom[i].diff[...] = sign * top[0].diff[0] * self.distance / bottom[i].num


class Pairs(crema.Layer):
    """A data layer with two labels."""

    def setup(self, bottom, top):
        top[0].reshape(8, 5)
        top[1].reshape(8, 2)
        top[2].reshape(8)

    def reshape(self, bottom, top):
        pass

    def forward(self, bottom, top):
        x = np.random.RandomState(self.pass_number).uniform(-1, 1, (8, 5)).astype(np.float32)
        top[0].data[...] = x
        top[1].data[...] = x[:, :2] * 2 - x[:, 2:3]
        top[2].data[...] = x.sum(axis=1) > 0


class Bias(crema.Layer):
    """Learns what to add."""

    def setup(self, bottom, top):
        self.blobs.add_blob(bottom[0].shape[1])
        self.blobs[0].data[...] = np.arange(bottom[0].shape[1])

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        top[0].data[...] = bottom[0].data + self.blobs[0].data

    def backward(self, top, propagate_down, bottom):
        self.blobs[0].diff[...] += top[0].diff.sum(axis=0)
        if propagate_down[0]:
            bottom[0].diff[...] = top[0].diff


class Positive(crema.Layer):
    """The rows whose first value is positive: how many depends on the data."""

    def reshape(self, bottom, top):
        top[0].reshape(1, bottom[0].shape[1])

    def forward(self, bottom, top):
        self.rows = np.flatnonzero(bottom[0].data[:, 0] > 0)
        top[0].reshape(len(self.rows), bottom[0].shape[1])
        top[0].data[...] = bottom[0].data[self.rows]

    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[self.rows] = top[0].diff


class Growing(crema.Layer):
    """A data layer with one more row in each pass; forward() gives the shape, as in py-faster-rcnn."""

    def setup(self, bottom, top):
        self.passes = 0
        top[0].reshape(1, 2)

    def reshape(self, bottom, top):
        pass

    def forward(self, bottom, top):
        self.passes += 1
        top[0].reshape(self.passes, 2)
        top[0].data[...] = self.passes


class Mean(Loss):
    loss_parts = 'mean'


class Average(Loss):
    def setup(self, bottom, top):
        self.loss_parts = 'average'


class Attributes(crema.Layer):
    def reshape(self, bottom, top):
        top[0].reshape()

    def forward(self, bottom, top):
        assert self.name == 'shown' and self.type == 'Python' and self.param_str == 'a "text"'
        assert (self.pass_number, self.rank, self.ranks) == (0, 0, 1)
        top[0].data[()] = self.phase


class Constant(crema.Layer):
    """Writes its top once."""

    def setup(self, bottom, top):
        top[0].reshape(3)
        top[0].data[...] = 7

    def reshape(self, bottom, top):
        pass

    def forward(self, bottom, top):
        pass


class OldStyle(crema.Layer):
    """Passes on what Caffe makes layers with."""

    def __init__(self, message):
        super().__init__(message)
        self.made = True

    def reshape(self, bottom, top):
        top[0].reshape(1)

    def forward(self, bottom, top):
        top[0].data[0] = self.made


class Broken(crema.Layer):
    def fail_in(self, method):
        if self.param_str == method:
            raise KeyError('broken in ' + method)

    def setup(self, bottom, top):
        self.fail_in('setup')

    def reshape(self, bottom, top):
        self.fail_in('reshape')
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        self.fail_in('forward')
        if self.param_str == 'interrupt':
            raise KeyboardInterrupt
        if self.param_str == 'no text':
            raise ValueError(chr(0xdc80))
        if self.param_str == 'shape':
            top[0].data[...] = np.zeros((9, 9))

    def backward(self, top, propagate_down, bottom):
        self.fail_in('backward')


class NoForward(crema.Layer):
    def reshape(self, bottom, top):
        top[0].reshape(1)


class NoLayer:
    pass
'''


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / 'my_layers.py').write_text(LAYERS)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in ('my_layers', 'bad_import'):
        sys.modules.pop(name, None)
    sys.path[:] = [one for one in sys.path if one != str(tmp_path)]


def layer(name, class_name, fields='', param_str='', module='my_layers'):
    text = f' param_str: {param_str!r}' if param_str else ''
    return (f"layer {{ name: '{name}' type: 'Python' {fields} "
            f"python_param {{ module: '{module}' layer: '{class_name}'{text} }} }}\n")


def net_of(text, phase=crema.TEST, inputs=((4, 3),), force=True, **options):
    head = 'force_backward: true\n' if force else ''
    for i, shape in enumerate(inputs):
        dims = ' '.join(f'dim: {extent}' for extent in shape)
        head += (f"layer {{ name: 'in{i}' type: 'Input' top: 'x{i}' "
                 f"input_param {{ shape {{ {dims} }} }} }}\n")
    with open('net.prototxt', 'w') as file:
        file.write(head + text)
    return crema.Net('net.prototxt', phase, **options)


def test_forward_and_backward():
    net = net_of(layer('a', 'Times', "bottom: 'x0' top: 'a'", '2') + layer('b', 'Times', "bottom: 'a' top: 'b'", '5'))
    x = np.random.RandomState(1).randn(4, 3).astype(np.float32)
    net.blobs['x0'].data[...] = x
    assert np.array_equal(net.forward()['b'], 10 * x)
    net.blobs['b'].diff[...] = x
    net.backward()
    assert np.array_equal(net.blobs['x0'].diff, 10 * x)
    net.blobs['x0'].reshape(2, 7)
    net.blobs['x0'].data[...] = 3
    assert np.array_equal(net.forward()['b'], np.full((2, 7), 30))


def test_between_native_layers():
    """The gradient by central differences."""
    net = net_of("layer { name: 'p' type: 'Power' bottom: 'x0' top: 'p' power_param { power: 2 } }\n"
                 + layer('a', 'Times', "bottom: 'p' top: 'a'", '3')
                 + "layer { name: 's' type: 'Reduction' bottom: 'a' top: 's' loss_weight: 1 }\n")
    x = np.random.RandomState(2).uniform(1, 2, (4, 3)).astype(np.float32)
    net.blobs['x0'].data[...] = x
    net.forward()
    net.backward()
    assert np.allclose(net.blobs['x0'].diff, 6 * x, rtol=1e-5)


def test_in_place():
    net = net_of("layer { name: 'p' type: 'Power' bottom: 'x0' top: 'y' power_param { scale: 2 } }\n"
                 + layer('a', 'AddOne', "bottom: 'y' top: 'y'"))
    net.blobs['x0'].data[...] = 4
    assert np.all(net.forward()['y'] == 9)
    net.blobs['y'].diff[...] = 1
    net.backward()
    assert np.all(net.blobs['x0'].diff == 6)


def test_sizes_that_depend_on_data():
    net = net_of(layer('some', 'Positive', "bottom: 'x0' top: 'some'")
                 + "layer { name: 'p' type: 'Power' bottom: 'some' top: 'p' power_param { scale: -1 } }\n",
                 inputs=[(6, 2)])
    for signs in ([1, 1, 0, 1, 1, 1], [0, 1, 0, 0, 0, 0], [1, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]):
        x = np.arange(12, dtype=np.float32).reshape(6, 2) + 1
        x[np.array(signs) == 0] *= -1
        net.blobs['x0'].data[...] = x
        kept = x[x[:, 0] > 0]
        assert np.array_equal(net.forward()['p'], -kept)
        net.blobs['p'].diff[...] = 2
        net.backward()
        wanted = np.zeros((6, 2))
        wanted[x[:, 0] > 0] = -2
        assert np.array_equal(net.blobs['x0'].diff, wanted)


def test_sizes_that_depend_on_data_in_a_planned_net():
    """Several such layers, whose tops grow beyond what was planned, and layers behind them that reuse memory."""
    power = "layer {{ name: 'p{1}' type: 'Power' bottom: 'p{0}' top: 'p{1}' power_param {{ scale: -1 }} }}\n"
    powers = ''.join(power.format(i, i + 1) for i in range(5))
    text = (layer('some', 'Positive', "bottom: 'x0' top: 'some'")
            + layer('p0', 'Times', "bottom: 'some' top: 'p0'", '3') + powers
            + layer('again', 'Positive', "bottom: 'p2' top: 'again'"))
    net = net_of(text, inputs=[(50, 4)], force=False, planned=True)
    generator = np.random.RandomState(4)
    for _ in range(10):
        x = generator.randn(50, 4).astype(np.float32) + generator.uniform(-1, 1)
        net.blobs['x0'].data[...] = x
        outputs = net.forward()
        kept = x[x[:, 0] > 0] * np.float32(3)
        assert np.array_equal(outputs['p5'], -kept) and np.array_equal(outputs['again'], kept)


def test_source_that_grows():
    net = net_of(layer('data', 'Growing', "top: 'data'")
                 + "layer { name: 'p' type: 'Power' bottom: 'data' top: 'p' power_param { scale: 2 } }\n",
                 inputs=[], force=False)
    for number in range(1, 6):
        assert np.array_equal(net.forward()['p'], np.full((number, 2), 2 * number))


def test_constant_top():
    net = net_of(layer('c', 'Constant', "top: 'c'"), inputs=[], force=False)
    for _ in range(2):
        assert np.array_equal(net.forward()['c'], [7, 7, 7])
    net = net_of(layer('c', 'Constant', "bottom: 'x0' top: 'c'"), force=False)
    for _ in range(2):
        assert np.array_equal(net.forward()['c'], [7, 7, 7])


@pytest.mark.parametrize('phase', [crema.TRAIN, crema.TEST])
@pytest.mark.parametrize('field', ['param_str', 'param_str_'])
def test_attributes(phase, field):
    text = layer('shown', 'Attributes', "top: 'phase'", 'a "text"').replace('param_str', field)
    assert net_of(text, phase, inputs=[], force=False).forward()['phase'] == phase


# A class may use all names for its own purposes: as attributes of the object, of the class, or as properties.
OWN_NAMES = """
import crema

NAMES = ['param_str', 'param_str_', 'phase', 'name', 'type', 'rank', 'ranks', 'pass_number', 'blobs', 'layer', 'net']


class Objects(crema.Layer):
    def setup(self, bottom, top):
        self.blobs.add_blob(2)
        assert self.param_str == self.param_str_ == 'text' and self.type == 'Python' and self.ranks == 1
        for name in NAMES:
            setattr(self, name, 'own ' + name)

    def reshape(self, bottom, top):
        top[0].reshape(1)

    def forward(self, bottom, top):
        assert all(getattr(self, name) == 'own ' + name for name in NAMES)
        del self.phase
        assert self.phase == crema.TEST
        self.phase = 'own phase'
        top[0].data[0] = 4

    def backward(self, top, propagate_down, bottom):
        pass


class Classes(Objects):
    rank = ranks = pass_number = blobs = 'own'

    @property
    def phase(self):
        return 'own'

    def setup(self, bottom, top):
        pass

    def forward(self, bottom, top):
        assert self.rank == self.ranks == self.pass_number == self.blobs == self.phase == 'own'
        top[0].data[0] = 4
"""


@pytest.mark.parametrize('kind', ['Objects', 'Classes'])
def test_attributes_are_the_authors(folder, kind):
    (folder / 'own_names.py').write_text(OWN_NAMES)
    net = net_of(layer('it', kind, "bottom: 'x0' top: 'y'", 'text', 'own_names'))
    for _ in range(2):
        assert net.forward()['y'] == 4
    net.backward()
    assert len(net.params.get('it', [])) == (kind == 'Objects')


def test_bottoms_and_tops_are_of_pycaffes_type():
    import caffe
    from caffe._caffe import BlobVec, RawBlobVec
    net = net_of(layer('b', 'Bias', "bottom: 'x0' top: 'b'"), crema.TRAIN)
    assert type(net.params['b']) is caffe._caffe.BlobVec is BlobVec and len(net.params['b']) == 1
    assert issubclass(RawBlobVec, list)


# --- classes that crema knows itself ---

OWN_LOSS = """
import crema


class EuclideanLossLayer(crema.Layer):
    def setup(self, bottom, top):
        {setup}

    def reshape(self, bottom, top):
        top[0].reshape(1)

    def forward(self, bottom, top):
        top[0].data[0] = 42
"""


@pytest.mark.parametrize('setup, param_str, loss, said', [
    (None, '', 6, ''),  # no module: the native version
    ('pass', '', 42, 'class EuclideanLossLayer of {}/pyloss.py runs'),
    ('pass', "{'native': True}", 6, ''),
    ('pass', "{'native': False}", 42, ''),
    ('raise ValueError(self.name)', '', 6, "crema's own version of class EuclideanLossLayer runs, because that of "
     "{}/pyloss.py failed"),
    ('raise ValueError(self.name)', "{'native': False}", None, ''),
])
def test_the_authors_module_runs(folder, capfd, setup, param_str, loss, said):
    sys.modules.pop('pyloss', None)
    if setup:
        (folder / 'pyloss.py').write_text(OWN_LOSS.format(setup=setup))
    crema.init_log(0)
    text = layer('loss', 'EuclideanLossLayer', "bottom: 'x0' bottom: 'x1' top: 'loss'", param_str, 'pyloss')
    text = text.replace("param_str: ''", '')
    try:
        if loss is None:
            with pytest.raises(crema.Error, match='ValueError: loss'):
                net_of(text, inputs=[(4, 3), (4, 3)])
            return
        net = net_of(text, inputs=[(4, 3), (4, 3)])
    finally:
        crema.init_log(2)
    net.blobs['x0'].data[...] = 2
    assert net.forward()['loss'] == loss
    told = capfd.readouterr().err
    assert said.format(folder) in told if said else 'class EuclideanLossLayer' not in told
    if setup and 'native' not in param_str:
        # The programs find it without Python, and run it with Python.
        with open('model.prototxt', 'w') as file:
            file.write(open('net.prototxt').read())
        ended = tool('time', '-model', 'model.prototxt', '-iterations', '1')
        assert ended.returncode == 0 and said.split('{}')[0] in ended.stderr, ended.stderr


def test_constructor_with_an_argument():
    assert net_of(layer('old', 'OldStyle', "top: 'y'"), inputs=[], force=False).forward()['y'] == 1


def test_parameters():
    net = net_of(layer('b', 'Bias', "bottom: 'x0' top: 'b'"), crema.TRAIN)
    assert np.array_equal(net.params['b'][0].data, [0, 1, 2])
    net.blobs['x0'].data[...] = 1
    assert np.array_equal(net.forward()['b'][0], [1, 2, 3])
    net.clear_param_diffs()
    net.blobs['b'].diff[...] = 1
    net.backward()
    assert np.array_equal(net.params['b'][0].diff, [4, 4, 4])
    net.params['b'][0].data[...] = [5, 6, 7]
    net.save('net.caffemodel')
    other = crema.Net('net.prototxt', crema.TEST, weights='net.caffemodel')
    other.blobs['x0'].data[...] = 0
    assert np.array_equal(other.forward()['b'][0], [5, 6, 7])


@pytest.mark.parametrize('method', ['setup', 'reshape', 'forward', 'backward'])
def test_exceptions(method):
    with pytest.raises(crema.Error) as caught:
        net = net_of(layer('bad', 'Broken', "bottom: 'x0' top: 'y'", method))
        assert method in ('forward', 'backward')
        net.forward()
        assert method == 'backward'
        net.blobs['y'].diff[...] = 1
        net.backward()
    text = str(caught.value)
    assert f'layer "bad": Broken.{method}(): KeyError: \'broken in {method}\'' in text
    assert 'my_layers.py:' in text and 'in fail_in: raise KeyError' in text
    assert isinstance(caught.value.__cause__, KeyError)
    if method in ('setup', 'reshape'):
        assert 'net.prototxt:3:1' in text


def test_wrong_shape_and_interrupt():
    net = net_of(layer('bad', 'Broken', "bottom: 'x0' top: 'y'", 'shape'))
    with pytest.raises(crema.Error, match='could not broadcast') as caught:
        net.forward()
    assert isinstance(caught.value.__cause__, ValueError)
    net = net_of(layer('bad', 'Broken', "bottom: 'x0' top: 'y'", 'interrupt'))
    with pytest.raises(KeyboardInterrupt):
        net.forward()
    net = net_of(layer('bad', 'Broken', "bottom: 'x0' top: 'y'", 'no text'))
    with pytest.raises(crema.Error, match='an exception that cannot be shown'):
        net.forward()
    net = net_of(layer('good', 'Broken', "bottom: 'x0' top: 'y'"))
    net.forward()  # and the module goes on


@pytest.mark.parametrize('text,message', [
    (layer('l', 'Times', "bottom: 'x0' top: 'y'", module='no_module'), 'there is no Python module no_module: it is'),
    (layer('l', 'Tims', "bottom: 'x0' top: 'y'"), r'no class Tims \(did you mean "Times"\?\); its layers are Times,'),
    (layer('l', 'NoLayer', "bottom: 'x0' top: 'y'"), 'is not a class that derives from crema.Layer'),
    (layer('l', 'NoForward', "bottom: 'x0' top: 'y'"), r'class NoForward has no forward\(\)'),
    (layer('l', '', "bottom: 'x0' top: 'y'"), 'python_param needs a module and a layer'),
    (layer('l', 'Times', "bottom: 'x0' top: 'y'", 'two'), 'could not convert string to float'),
    (layer('l', 'X', "bottom: 'x0' top: 'y'", module='bad_syntax'), 'of the Python module bad_syntax: SyntaxError'),
    (layer('l', 'X', "bottom: 'x0' top: 'y'", module='bad_import'), 'bad_import: ModuleNotFoundError: .*nothing_here'),
])
def test_wrong_files(folder, text, message):
    (folder / 'bad_syntax.py').write_text('def broken(:\n')
    (folder / 'bad_import.py').write_text('import nothing_here\n')
    with pytest.raises(crema.Error, match=message):
        net_of(text, force=False).forward()


def test_threads():
    """Nets with Python layers in several threads at once."""
    texts = layer('a', 'Times', "bottom: 'x0' top: 'a'", '2')
    nets = [net_of(texts) for _ in range(3)]
    wrong = []

    def run(net, value):
        for _ in range(30):
            net.blobs['x0'].data[...] = value
            if not np.all(net.forward()['a'] == 2 * value):
                wrong.append(value)

    threads = [threading.Thread(target=run, args=(net, i)) for i, net in enumerate(nets)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_end_of_the_interpreter(folder):
    """Nets and arrays that are alive when Python ends."""
    net_of(layer('a', 'Times', "bottom: 'x0' top: 'a'", '2'))
    code = ("import crema\nnet = crema.Net('net.prototxt', crema.TEST)\nnet.forward()\n"
            "array = net.blobs['a'].data\nimport builtins\nbuiltins.net = net\nprint('done')")
    ended = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0 and 'done' in ended.stdout, ended.stderr


def test_arrays_outlive_the_net():
    net = net_of(layer('a', 'Times', "bottom: 'x0' top: 'a'", '2'))
    net.blobs['x0'].data[...] = 3
    array = net.forward()['a']
    del net
    assert np.all(array == 6)


@pytest.mark.parametrize('which, shape', [('bottom', (400, 300)), ('bottom', (1, 1)), ('top', (400, 300)), ('top', (1, 1))])
@pytest.mark.parametrize('when', ['forward', 'after forward', 'backward'])
def test_blobs_that_are_reshaped_where_they_must_not_be(folder, which, shape, when):
    """Their arrays never reach beyond the net's memory: an error, or memory of their own."""
    (folder / 'my_layers.py').write_text(LAYERS + f"""

class Meddler(Times):
    def forward(self, bottom, top):
        super().forward(bottom, top)
        self.kept = {which}
        if {when!r} == 'forward':
            {which}[0].reshape{shape}

    def backward(self, top, propagate_down, bottom):
        if {when!r} == 'backward':
            {which}[0].reshape{shape}
        for blob in (*top, *bottom):
            blob.diff[...] = blob.data + 1
""")
    net = net_of(layer('a', 'Meddler', "bottom: 'x0' top: 'a'", '2'), crema.TRAIN, inputs=((40, 30),))
    for _ in range(3):
        for run in (net.forward, net.backward):
            try:
                run()
            except crema.Error as error:
                assert 'reshaped' in str(error) or 'shape' in str(error)
            if when == 'after forward':
                net.layers[1].kept[0].reshape(*shape)
                net.layers[1].kept[0].data[...] = net.layers[1].kept[0].diff + 1


def test_parameters_keep_their_shape():
    net = net_of(layer('b', 'Bias', "bottom: 'x0' top: 'b'"), crema.TRAIN)
    with pytest.raises(crema.Error, match='shape 3 that setup'):
        net.layers[1].blobs[0].reshape(1000)
    net.layers[1].blobs[0].reshape(3)
    net.forward()


def test_objects_of_another_class(folder):
    (folder / 'my_layers.py').write_text(LAYERS + 'class Odd(Times):\n    def __new__(cls):\n        return 5\n')
    with pytest.raises(crema.Error, match='makes objects that are no crema.Layer'):
        net_of(layer('a', 'Odd', "bottom: 'x0' top: 'a'", '2'))


def test_blobs_are_read_while_the_net_runs():
    net = net_of(layer('b', 'Bias', "bottom: 'x0' top: 'b'"), crema.TRAIN)
    blob, runs = net.layers[1].blobs[0], [True]

    def read():
        while runs:
            assert blob.data.shape == blob.diff.shape == (3,)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        net.forward()
        net.backward()
    runs.clear()
    for thread in threads:
        thread.join()


def test_objects_are_the_layers_of_a_net():
    """As py-faster-rcnn hands its data to the layer."""
    net = net_of(layer('data', 'Growing', "top: 'data'") + layer('b', 'Bias', "bottom: 'data' top: 'b'"), inputs=[])
    source, bias = net.layers[0], net.layer_dict['b']
    assert type(source).__name__ == 'Growing' and source.passes == 0
    source.passes = 3
    bias.blobs[0].data[...] = 1
    assert np.array_equal(net.forward()['b'], np.full((4, 2), 5))
    assert len(bias.blobs) == 1 and bias.blobs[-1].shape == bias.blobs[0].shape
    with pytest.raises(IndexError, match='blob 1 of a layer that has 1'):
        bias.blobs[1]


# --- the tools ---

SOLVER = '''
net: "train.prototxt" base_lr: 0.1 momentum: 0.9 lr_policy: "fixed" max_iter: {steps} display: 5 random_seed: 2
snapshot_prefix: "{prefix}" snapshot: 10 solver_mode: CPU
'''


def train_net(loss, extra=''):
    return (layer('data', 'Pairs', "top: 'data' top: 'target' top: 'sign'")
            + "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { num_output: 2 "
              "weight_filler { type: 'xavier' } } }\n" + extra + loss
            + "layer { name: 'ip2' type: 'InnerProduct' bottom: 'data' top: 'ip2' inner_product_param { num_output: 2 "
              "weight_filler { type: 'xavier' } } }\n"
              "layer { name: 'loss2' type: 'SoftmaxWithLoss' bottom: 'ip2' bottom: 'sign' top: 'loss2' }\n")


PYTHON_LOSS = layer('loss', 'Loss', "bottom: 'ip' bottom: 'target' top: 'loss' loss_weight: 1")
NATIVE_LOSS = "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'target' top: 'loss' }\n"


def tool(*arguments, **variables):
    environment = {**os.environ, 'PYTHON': sys.executable, **variables}
    environment.pop('PYTHONPATH', None)  # the program knows its package
    program = os.path.join(os.environ['CREMA_TOOLS'], 'crema')
    return subprocess.run([program, *arguments], capture_output=True, text=True, env=environment, timeout=120)


def train(net, prefix, steps=20, *arguments):
    with open('train.prototxt', 'w') as file:
        file.write(net)
    with open('solver.prototxt', 'w') as file:
        file.write(SOLVER.format(prefix=prefix, steps=steps))
    ended = tool('train', '-solver', 'solver.prototxt', *arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stderr


def weights(prefix, step=20):
    net = crema.Net('train.prototxt', crema.TRAIN, weights=f'{prefix}_iter_{step}.caffemodel')
    return {name: [blob.data.copy() for blob in blobs] for name, blobs in net.params.items()}


def test_train_with_data_and_loss_in_python():
    log = train(train_net(PYTHON_LOSS), 'python')
    assert 'Python layers run in Python 3.' in log
    ours = weights('python')
    train(train_net(NATIVE_LOSS), 'native')
    native = weights('native')
    assert ours.keys() == native.keys() and len(ours) == 2
    for name, blobs in ours.items():
        for mine, other in zip(blobs, native[name]):
            assert np.allclose(mine, other, rtol=1e-5, atol=1e-6)
    assert not np.allclose(ours['ip'][0], weights('native', 10)['ip'][0], atol=1e-3)


def test_solver_of_the_module():
    """Steps give the same bits as the program; a test net has layers of its own."""
    bias = layer('bias', 'Bias', "bottom: 'ip' top: 'biased'")
    net = train_net(PYTHON_LOSS.replace("'ip'", "'biased'"), bias)
    train(net, 'tool')
    by_tool = weights('tool')
    with open('solver.prototxt', 'a') as file:
        file.write('test_iter: 2 test_interval: 5')
    solver = crema.SGDSolver('solver.prototxt')
    assert solver.net.layers[0] is not solver.test_nets[0].layers[0]
    assert (solver.net.layers[0].phase, solver.test_nets[0].layers[0].phase) == (crema.TRAIN, crema.TEST)
    solver.step(20)
    for name, blobs in solver.net.params.items():
        for mine, other in zip(blobs, by_tool[name]):
            assert np.array_equal(mine.data, other)
    solver.net.layer_dict['bias'].backward = None
    with pytest.raises(crema.Error, match=r'layer "bias": Bias.backward\(\): TypeError') as caught:
        solver.step(1)
    assert isinstance(caught.value.__cause__, TypeError)


def test_parameters_learn_and_resume():
    bias = layer('bias', 'Bias', "bottom: 'ip' top: 'biased'")
    net = train_net(PYTHON_LOSS.replace("'ip'", "'biased'"), bias)
    train(net, 'whole', 20)
    whole = weights('whole')['bias'][0]
    assert not np.allclose(whole, [0, 1], atol=1e-3)
    train(net, 'parts', 10)
    first = weights('parts', 10)['bias'][0]
    assert np.array_equal(first, weights('whole', 10)['bias'][0])
    train(net, 'parts', 20, '-snapshot', 'parts_iter_10.solverstate')
    assert np.array_equal(whole, weights('parts')['bias'][0])


def test_other_verbs():
    with open('train.prototxt', 'w') as file:
        file.write(train_net(PYTHON_LOSS))
    timed = tool('time', '-model', 'train.prototxt', '-iterations', '2')
    assert timed.returncode == 0 and 'data' in timed.stderr + timed.stdout, timed.stderr
    crema.Net('train.prototxt', crema.TEST).save('w.caffemodel')
    tested = tool('test', '-model', 'train.prototxt', '-weights', 'w.caffemodel', '-iterations', '3')
    assert tested.returncode == 0 and 'loss2 = ' in tested.stderr, tested.stderr


def test_errors_of_a_tool():
    net_of(train_net(NATIVE_LOSS), inputs=[]).save('w.caffemodel')

    def message(net):
        with open('train.prototxt', 'w') as file:
            file.write(net)
        ended = tool('test', '-model', 'train.prototxt', '-weights', 'w.caffemodel', '-iterations', '1')
        assert ended.returncode == 1
        return ended.stderr

    broken = layer('bad', 'Broken', "bottom: 'data' top: 'y'", 'forward')
    assert 'layer "bad": Broken.forward(): KeyError:' in message(train_net(NATIVE_LOSS, broken))
    missing = layer('bad', 'Nothing', "bottom: 'data' top: 'y'")
    assert 'train.prototxt:3:1: layer "bad": the Python module my_layers' in message(train_net(NATIVE_LOSS, missing))


def test_first_python_that_serves(folder):
    with open('train.prototxt', 'w') as file:
        file.write(train_net(NATIVE_LOSS))
    crema.Net('train.prototxt', crema.TEST).save('w.caffemodel')
    fake = folder / 'python3'
    fake.write_text('#!/bin/sh\nprintf "crema asks\\n3.1\\n/lib.so\\nImportError: none\\n/p\\n/usr\\n"\n')
    fake.chmod(0o755)
    path = f'{folder}:{os.path.dirname(sys.executable)}:{os.environ["PATH"]}'
    ended = tool('test', '-model', 'train.prototxt', '-weights', 'w.caffemodel', '-iterations', '1', PYTHON='',
                 PATH=path)
    assert ended.returncode == 0 and f', {sys.executable}' in ended.stderr, ended.stderr


def test_output_of_layers_is_not_lost(folder):
    (folder / 'saying.py').write_text(
        "import atexit\nimport crema\natexit.register(lambda: print('at the end', end=''))\n"
        "class Says(crema.Layer):\n"
        "    def reshape(self, bottom, top):\n        top[0].reshape(1)\n"
        "    def forward(self, bottom, top):\n        print('forward', end=' ')\n        top[0].data[0] = 1\n")
    with open('train.prototxt', 'w') as file:
        file.write(layer('say', 'Says', "top: 'y'", module='saying'))
    net_of('').save('w.caffemodel')
    ended = tool('test', '-model', 'train.prototxt', '-weights', 'w.caffemodel', '-iterations', '2')
    assert 'forward' in ended.stdout and 'at the end' in ended.stdout, (ended.stdout, ended.stderr)


def sections_on_layers():
    """The example of the pages, which is tested as it stands there."""
    folder = os.path.join(os.path.dirname(__file__), '../../src/python')
    for name in sorted(os.listdir(folder)):
        if name.endswith('.md'):
            with open(os.path.join(folder, name)) as file:
                text = file.read()
            if '## A layer in Python' in text:
                yield text.split('## A layer in Python')[1]


def test_example_of_the_page(folder):
    sections = list(sections_on_layers())
    assert sections, 'no page of src/python has the section "A layer in Python"'
    code, prototxt = [part.split('```')[0] for part in sections[0].split('```')[1::2]][:2]
    (folder / 'my_layers.py').write_text(code.split('\n', 1)[1])
    prototxt = prototxt.split('\n', 1)[1]
    ip_and_target = np.random.RandomState(5).randn(2, 4, 3).astype(np.float32)
    results = []
    for loss in (prototxt, prototxt.replace('"Python"', '"EuclideanLoss"').split('python_param')[0] + '}'):
        net = net_of(loss.replace('"ip"', '"x0"').replace('"target"', '"x1"'), crema.TRAIN, inputs=[(4, 3), (4, 3)])
        net.blobs['x0'].data[...], net.blobs['x1'].data[...] = ip_and_target
        results.append((net.forward()['loss'].item(), net.backward(diffs=['x0'])['x0'].copy()))
    (half, half_diff), (native, native_diff) = results
    assert abs(half - native / 2) < 1e-5 and np.allclose(half_diff, native_diff / 2, atol=1e-6)


# How the losses of ranks that share a batch combine: tests/solver/rank_losses_test.cpp tests the results.
def test_loss_parts():
    text = "bottom: 'x0' bottom: 'x1' top: 'loss' loss_weight: 1"
    assert net_of(layer('it', 'Mean', text), crema.TRAIN, ((4, 3), (4, 3))).forward()['loss'] == 0
    with pytest.raises(crema.Error, match='layer "it": loss_parts of class Average is "average"; expected "mean" or "sum"'):
        net_of(layer('it', 'Average', text), crema.TRAIN, ((4, 3), (4, 3)))
