"""Objects that were never initialized, copies and pickles: each class of crema says TypeError, or does it well."""
import copy
import inspect
import os
import pickle
import threading
import types

import numpy as np
import pytest

import crema
from crema import _crema

NET = 'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }' \
      'layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip" inner_product_param { num_output: 2 } }'
SOLVER = 'net_param { %s } base_lr: 0.1 lr_policy: "fixed"' % NET


class OwnLayer(crema.Layer):
    def forward(self, bottom, top):
        return self.param_str


class OwnNet(crema.Net):
    pass


class OtherNet(crema.Net):
    pass


class OwnBlob(crema.Blob):
    def __init__(self, shape):
        shape[0] = self.count  # before super().__init__()
        super().__init__(shape)


class Restored(crema.Blob):
    """A class that says how it is copied."""

    def __getstate__(self):
        return self.data.copy()

    def __setstate__(self, values):
        self.__init__(values.shape)
        self.data[...] = values


class Reduced(crema.Blob):
    def __reduce__(self):
        return Reduced, (self.shape,)


CLASSES = [kind for kind in vars(_crema).values()
           if isinstance(kind, type) and any(base.__name__ == 'pybind11_object' for base in kind.__mro__)]
KINDS = CLASSES + [crema.Solver, crema.AdamSolver, OwnLayer, OwnNet]
OBJECT = set(dir(object))


def arguments(function):
    """As many as the function takes; of the extension module's, which the docstring tells."""
    try:
        parameters = inspect.signature(function).parameters.values()
        return [0] * sum(p.default is p.empty and p.kind == p.POSITIONAL_OR_KEYWORD for p in parameters)
    except (TypeError, ValueError):
        signature = (function.__doc__ or '').split(' -> ')[0]
        return [] if '*args' in signature else [None] * signature.count(': ')


def test_all_classes_are_here():
    assert {'Net', 'Blob', 'NetLayer', 'Layer', 'LayerBlobs', 'Solver', 'Timer', 'NCCL'} <= {k.__name__ for k in CLASSES}


@pytest.mark.parametrize('kind', KINDS, ids=lambda kind: kind.__module__ + '.' + kind.__name__)
def test_never_initialized(kind):
    made = kind.__new__(kind)
    called = 0
    for name in set(dir(kind)) - OBJECT:
        value = inspect.getattr_static(kind, name)
        if not (callable(value) or isinstance(value, property) or hasattr(type(value), '__get__')):
            continue
        if inspect.isfunction(value) or isinstance(getattr(kind, name), types.BuiltinFunctionType):
            continue  # of Python, which reach the others; or static
        called += 1
        with pytest.raises(TypeError):
            found = getattr(made, name)
            found(*arguments(found)[1:])
            found(*arguments(found))
    assert called or kind is OwnLayer
    special = {'__repr__': repr, '__len__': len, '__getitem__': lambda x: x[0], '__call__': lambda x: x()}
    for name, call in special.items():
        if name in vars(kind):
            with pytest.raises(TypeError, match='never initialized'):
                call(made)
    for call in (np.asarray, np.from_dlpack) if kind is crema.Blob else ():
        with pytest.raises(TypeError, match='never initialized'):
            call(made)


def test_never_initialized_as_an_argument(tmp_path):
    path = tmp_path / 'net.prototxt'
    path.write_text(NET)
    net, solver = crema.Net(path, crema.TEST), crema.get_solver(text=SOLVER, log=False)
    with pytest.raises(TypeError, match='never initialized'):
        net.share_with(crema.Net.__new__(crema.Net))
    with pytest.raises(TypeError, match='never initialized'):
        solver.share_weights(OwnNet.__new__(OwnNet))
    failed = crema.Net.__new__(crema.Net)
    with pytest.raises(crema.Error):
        failed.__init__('missing.prototxt', crema.TEST)
    with pytest.raises(TypeError, match='never initialized'):
        failed.forward()
    failed.__init__(str(path), crema.TEST)
    assert failed.forward()['ip'].shape == (2, 2)


def test_another_class(tmp_path):
    (tmp_path / 'net.prototxt').write_text(NET)
    net, blob = OtherNet(tmp_path / 'net.prototxt', crema.TEST), crema.Blob((2, 3))
    for other in (crema.Net, OwnNet, crema.Timer, object, 5):
        with pytest.raises(TypeError):
            blob.__class__ = other
    net.__class__ = OwnNet
    assert type(net) is net.__class__ is OwnNet and isinstance(net, crema.Net) and not isinstance(net, crema.Blob)
    assert net.forward()['ip'].shape == (2, 2) and blob.data.shape == (2, 3)


def test_init_in_several_threads(tmp_path):
    path = tmp_path / 'net.prototxt'
    path.write_text(NET)
    said = []

    def init():
        try:
            net.__init__(str(path), crema.TEST)
        except TypeError as error:
            said.append(str(error))

    for _ in range(10):
        net = crema.Net.__new__(crema.Net)
        threads = [threading.Thread(target=init) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert net.forward()['ip'].shape == (2, 2)
    assert all('another thread' in text for text in said)


@pytest.mark.parametrize('path', ['a\0b', b'a\0b', '\ud800'])
def test_odd_paths(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'net.prototxt').write_text(NET)
    net, solver = crema.Net('net.prototxt', crema.TEST), crema.get_solver(text=SOLVER, log=False)
    text = path if isinstance(path, str) else '\0'
    for call in (lambda: net.save(path), lambda: net.save_hdf5(path), lambda: net.copy_from(path), lambda: crema.Net(path, 1),
                 lambda: net.load_hdf5(path), lambda: crema.Net('net.prototxt', 1, weights=[path]),
                 lambda: crema.net_text(path, 1), lambda: crema.get_solver(text), lambda: solver.restore(text),
                 lambda: solver.solve(text), lambda: crema.get_solver(text=SOLVER, weights=text),
                 lambda: crema.solver_type(text)):
        with pytest.raises((ValueError, TypeError)):
            call()
    assert os.listdir(tmp_path) == ['net.prototxt']


@pytest.mark.parametrize('shape', [(2**63,), (-2**63 - 1,), (10**30,)])
def test_huge_extents(shape):
    with pytest.raises(crema.Error, match='not in 64 bits'):
        crema.Blob(shape)


@pytest.mark.parametrize('name, call', [
    ('blobs', lambda net: net.blobs), ('forward', lambda net: net.forward()), ('repr', repr),
    ('save', lambda net: net.save('x')), ('reshape', lambda net: net.reshape()),
    ('callback', lambda net: net.before_forward(print))])
def test_net_before_init(name, call):
    with pytest.raises(TypeError, match='never initialized'):
        call(OwnNet.__new__(OwnNet))


def test_own_class_before_init():
    with pytest.raises(TypeError, match='never initialized'):
        OwnBlob([1])
    solver = crema.Solver.__new__(crema.Solver)
    for call in (lambda: solver.add_reader(print), lambda: solver.add_callback(print), lambda: solver.param.max_iter,
                 lambda: solver.step(1), lambda: solver.solve(), lambda: repr(solver), lambda: solver.net):
        with pytest.raises(TypeError, match='never initialized'):
            call()
    with pytest.raises(AttributeError):
        type(crema.get_solver(text=SOLVER, log=False).param).__new__(type(solver.param)).max_iter


def objects(tmp_path):
    (tmp_path / 'net.prototxt').write_text(NET)
    net, solver = crema.Net(tmp_path / 'net.prototxt', crema.TEST), crema.get_solver(text=SOLVER, log=False)
    layer = OwnLayer()
    return [net, net.layers[1], net.blobs['x'], net.params['ip'][0], crema.Blob((1, 2)), solver, solver.net, layer,
            layer.blobs, crema.Timer(), crema.NCCL(None, b''), vars(crema.Layer)['param_str'],
            *(kind.__new__(kind) for kind in KINDS)]


def copies(thing):
    yield lambda: copy.copy(thing)
    yield lambda: copy.deepcopy(thing)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        yield lambda p=protocol: pickle.dumps(thing, p)
        yield lambda p=protocol: thing.__reduce_ex__(p)
    yield thing.__reduce__


def test_what_cannot_be_copied(tmp_path):
    for thing in objects(tmp_path):
        for call in copies(thing):
            with pytest.raises(TypeError, match='cannot be copied or pickled'):
                call()
    with pytest.raises(TypeError, match='net.save'):
        pickle.dumps(objects(tmp_path)[0], 0)


def test_what_can_be_copied():
    blob = Restored((2, 3))
    blob.data[...] = [[1, 2, 3], [4, 5, 6]]
    for call in copies(blob):
        made = call()
        made = pickle.loads(made) if isinstance(made, bytes) else made
        if isinstance(made, tuple):
            continue
        assert (made.data == blob.data).all() and not np.shares_memory(made.data, blob.data)
    assert pickle.loads(pickle.dumps(Reduced((4, 2)), 0)).shape == (4, 2)
    assert crema.NetSpec is copy.copy(crema.NetSpec)
    assert pickle.loads(pickle.dumps(crema.Error('text'))).args == ('text',)
