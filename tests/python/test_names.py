"""The names that pycaffe's users know, under crema and caffe, and the type stub of the extension module."""
import ast
import importlib
import os
import subprocess
import sys

import pytest

import caffe
import crema

MODULES = [
    'io', 'model_libs', 'net_spec', 'coord_map', 'draw', 'classifier', 'detector', 'proto', 'proto.caffe_pb2', 'pycaffe'
]

# pycaffe's __init__.py, module by module.
NAMES = [
    'Net', 'SGDSolver', 'NesterovSolver', 'AdaGradSolver', 'RMSPropSolver', 'AdaDeltaSolver', 'AdamSolver', 'NCCL',
    'Timer', 'init_log', 'log', 'set_mode_cpu', 'set_mode_gpu', 'set_device', 'Layer', 'get_solver', 'layer_type_list',
    'set_random_seed', 'solver_count', 'set_solver_count', 'solver_rank', 'set_solver_rank', 'set_multiprocess',
    'has_nccl', '__version__', 'TRAIN', 'TEST', 'Classifier', 'Detector', 'io', 'layers', 'params', 'NetSpec',
    'to_proto', 'Error', 'Blob', 'model_libs', 'set_phase_test', 'set_phase_train'
]
# Of the extension module alone, as in pycaffe.
OF_THE_EXTENSION = {'BlobVec', 'RawBlobVec'}


def run_python(code):
    found = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return found.stdout.split()


def test_caffe_is_crema():
    assert caffe is crema


@pytest.mark.parametrize('name', MODULES)
def test_module_is_the_same(name):
    ours = importlib.import_module(f'crema.{name}')
    assert importlib.import_module(f'caffe.{name}') is ours
    assert sys.modules[f'caffe.{name}'] is sys.modules[f'crema.{name}']
    assert ours.__spec__.name == ours.__name__ == f'crema.{name}'
    assert ours.__doc__


@pytest.mark.parametrize('name', NAMES)
def test_name_is_there(name):
    value = getattr(caffe, name)
    assert name in dir(crema)
    if isinstance(value, type) or callable(value):
        assert value.__doc__, f'{name} has no docstring'


def words_of(name):
    with open(os.path.join(os.path.dirname(__file__), name)) as file:
        return ' '.join(line for line in file if not line.startswith('#')).split()


def find(names):
    """What a script finds under caffe.NAMES, messages in caffe.proto.caffe_pb2; None: nothing."""
    found = caffe
    for depth, name in enumerate(names):
        fields = getattr(getattr(found, 'DESCRIPTOR', None), 'fields_by_name', {})
        in_messages = getattr(caffe.proto.caffe_pb2, name, None) if found is caffe else None
        if found is caffe.layers and name[0].islower():
            found = sys.modules.get(f'caffe.layers.{name}')  # not the maker of a layer of such a type
        else:
            found = fields[name] if name in fields else getattr(found, name, in_messages)
    return found


def test_names_of_public_scripts():
    """pycaffe_names.txt: what the scripts of other people use."""
    importlib.import_module('caffe.layers.detectnet.clustering')
    importlib.import_module('caffe.layers.detectnet.mean_ap')
    caffe.SGDSolver.display = 0  # several scripts set it, on the class
    missing, group, found = [], None, set()
    for word in words_of('pycaffe_names.txt'):
        if word.endswith(':'):
            group = [] if word == 'caffe:' else word[:-1].split('.')
            continue
        found.add('.'.join(['caffe', *group, word]))
        if find([*group, word]) is None:
            missing.append('.'.join([*group, word]))
    left = words_of('pycaffe_names_left.txt')
    assert missing == [] and len(found) > 950
    assert [name for name in left if find(name.split('.')[1:]) is not None] == [], 'these are there now'
    assert len(set(left)) == len(left) and not found & set(left) and len(found) + len(left) == 1066


def test_packages_of_layers():
    """As of NVIDIA's Caffe; `layers` is what makes layers, before and after."""
    code = ('import caffe; makers = caffe.layers; import caffe.layers.detectnet.mean_ap as m; '
            'from caffe import layers as L; from caffe.layers import Convolution; '
            'import crema.layers.detectnet.mean_ap as ours; '
            'print(L is makers is caffe.layers and m is ours and L.Data.__class__ is Convolution.__class__)')
    assert run_python(code) == ['True']


@pytest.mark.parametrize('by_list', [False, True])
def test_devices_of_the_opencl_branch(monkeypatch, by_list):
    chosen = []
    monkeypatch.setattr(crema, 'set_device', chosen.append)
    crema.set_devices((5, 7))
    crema.select_device(1 if by_list else 7, by_list)
    assert chosen == [5, 7]


def test_all_names_are_there():
    assert [name for name in crema.__all__ if not hasattr(crema, name)] == []
    assert [name for name in dir(crema._crema) if not name.startswith('_')
            and name not in crema.__all__] == sorted(OF_THE_EXTENSION)


def test_unknown_names():
    with pytest.raises(AttributeError, match='nothing'):
        crema.nothing
    with pytest.raises(ModuleNotFoundError, match='caffe.nothing'):
        importlib.import_module('caffe.nothing')


# Each in a separate interpreter: the order of imports must not matter.
@pytest.mark.parametrize('code', [
    'import caffe.io; import crema; print(caffe.io is crema.io)',
    'import crema as caffe; print(caffe.io.caffe_pb2 is caffe.proto.caffe_pb2)',
    'from caffe.proto import caffe_pb2; import crema.proto.caffe_pb2 as ours; print(caffe_pb2 is ours)',
    'from caffe import layers as L, params as P; print(P.Pooling.MAX == 0)',
    'import caffe.draw, crema; print(caffe.draw is crema.draw)',
    'from caffe.net_spec import Top; import crema.net_spec; print(Top is crema.net_spec.Top)',
    'from caffe.pycaffe import Net; import caffe; print(Net is caffe.Net)',
    'from caffe._caffe import Layer; import caffe; print(Layer is caffe.Layer)',
    'from caffe._caffe import SGDSolver; from caffe.pycaffe import SGDSolver as S; import caffe; '
    'print(S is SGDSolver is caffe.SGDSolver)',
    'import crema, sys; print("google.protobuf" not in sys.modules)',
    'import caffe; from caffe.proto import caffe_pb2; import google.protobuf as p; print(p.text_format is not None)',
    'from crema import *; print(layers.ReLU is not None and TEST == 1)',
])
def test_imports(code):
    assert run_python(code) == ['True']


def names_of_stub():
    """{name: names in it, or None}, of _crema.pyi."""
    path = os.path.join(os.path.dirname(crema.__file__), '_crema.pyi')
    with open(path) as file:
        tree = ast.parse(file.read())

    def defined(body):
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                yield node.name, node
            elif isinstance(node, ast.AnnAssign):
                yield node.target.id, node
            elif isinstance(node, ast.Assign):
                yield node.targets[0].id, node

    return {name: {inner for inner, _ in defined(node.body)} if isinstance(node, ast.ClassDef) else None
            for name, node in defined(tree.body)}


def test_stub_has_the_public_names():
    module = crema._crema
    stub = names_of_stub()
    hint = 'run `PYTHONPATH=build/python python3 src/python/stubs.py` and build again'
    own = {name for name, value in vars(module).items()
           if getattr(value, '__module__', module.__name__) == module.__name__}
    assert {name for name in own if not name.startswith('_')} | {'__version__'} == set(stub), hint
    for name, inner in stub.items():
        cls = getattr(module, name)
        if isinstance(cls, type) and not issubclass(cls, Exception):
            public = {member for member in vars(cls) if not member.startswith('_')}
            assert public == {member for member in inner if not member.startswith('_')}, f'{name}: {hint}'
    assert os.path.exists(os.path.join(os.path.dirname(crema.__file__), 'py.typed'))
