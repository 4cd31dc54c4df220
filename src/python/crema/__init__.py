"""Crema: trains and runs neural networks described in Caffe's text files.

Everything has pycaffe's names, so `import crema as caffe` (or `import caffe`) runs its scripts:

    net = crema.Net('deploy.prototxt', crema.TEST, weights='net.caffemodel')
    net.blobs['data'].data[...] = image
    scores = net.forward()['prob']

    solver = crema.get_solver('solver.prototxt')
    solver.step(100)

Net and Blob are in crema.pycaffe, the solvers in crema.solvers; io (images and messages), net_spec (nets written in
Python: NetSpec, layers, params), classifier, detector, draw, coord_map and proto.caffe_pb2 (the messages) are loaded
when first used.
"""
import importlib
from typing import TYPE_CHECKING

from .compiled import require_module

require_module(__name__)

from ._crema import (TEST, TRAIN, NCCL, DeviceLost, Diverged, Error, Layer, LayerBlobs, Timer, __version__,
                     get_threads, has_nccl, init_log, layer_type_list, log, net_text, set_device, set_mode_cpu,
                     set_mode_gpu, set_multiprocess, set_random_seed, set_solver_count, set_solver_rank, set_threads,
                     solver_count, solver_rank, solver_type)
from . import _crema as _caffe  # pycaffe's name of the extension module

_caffe._require_main_interpreter()
from .pycaffe import Blob, Net, NetLayer, from_dlpack, set_phase_test, set_phase_train
from .solvers import (AdaDeltaSolver, AdaGradSolver, AdamSolver, AdamWSolver, LAMBSolver, LionSolver, MuonSolver,
                      NesterovSolver, RMSPropSolver, SGDSolver, Solver, get_solver)

# Loaded on first use, so that Python layers import quickly: modules, and names in them.
_SUBMODULES = [
    'classifier', 'coord_map', 'detector', 'display', 'draw', 'io', 'learn', 'model_libs', 'net_spec', 'plot', 'proto'
]
_MODULE_OF = {
    'Classifier': 'classifier',
    'Detector': 'detector',
    'LivePlot': 'plot',
    'NetSpec': 'net_spec',
    'Regressor': 'learn',
    'layers': 'net_spec',
    'params': 'net_spec',
    'create_layer': 'lone_layer',
    'edit': 'editing',
    'to_proto': 'net_spec',
}

if TYPE_CHECKING:
    from typing import Any, overload

    from . import classifier, coord_map, detector, display, draw, io, learn, model_libs, net_spec, plot, proto
    from .detector import Detector
    from .editing import edit
    from .learn import Regressor
    from .lone_layer import create_layer
    from .net_spec import NetSpec, layers, params, to_proto
    from .plot import LivePlot

    # Two classes of one name: the arguments say which.
    @overload
    def Classifier(model_file: Any, pretrained_file: Any, *args: Any, **options: Any) -> classifier.Classifier: ...
    @overload
    def Classifier(net: Any = None, **options: Any) -> learn.Classifier: ...

__all__ = [
    'TEST', 'TRAIN', '__version__', 'Net', 'Blob', 'NetLayer', 'from_dlpack', 'Solver', 'SGDSolver', 'NesterovSolver',
    'AdaGradSolver', 'RMSPropSolver', 'AdaDeltaSolver', 'AdamSolver', 'AdamWSolver', 'LAMBSolver', 'LionSolver',
    'MuonSolver', 'get_solver', 'solver_type', 'Layer', 'LayerBlobs', 'DeviceLost', 'Diverged', 'Error', 'Timer',
    'NCCL', 'set_mode_cpu', 'set_mode_gpu', 'set_device', 'set_random_seed', 'set_threads', 'get_threads', 'init_log',
    'log', 'layer_type_list', 'has_nccl', 'set_phase_test', 'set_phase_train', 'solver_count', 'set_solver_count',
    'solver_rank', 'set_solver_rank', 'set_multiprocess', 'Classifier', 'Detector', 'Regressor', 'LivePlot', 'NetSpec',
    'create_layer', 'edit', 'net_text', 'compile_net', 'get_solver_from_file', 'set_devices', 'select_device', 'layers',
    'params', 'to_proto', 'classifier', 'coord_map', 'detector', 'display', 'draw', 'io', 'learn',
    'model_libs', 'net_spec', 'plot', 'proto'
]

get_solver_from_file = get_solver  # of an early branch


def set_devices(numbers):
    """Names the GPUs for select_device(), as in Caffe's OpenCL branch, and chooses the first."""
    global _devices
    _devices = [int(number) for number in numbers]
    if _devices:
        set_device(_devices[0])


def select_device(number, in_list=False):
    """Chooses a GPU, as set_device(); with in_list by its position in the list of set_devices()."""
    set_device(_devices[number] if in_list else number)


def compile_net(network_file, phase, engine=''):
    """net_text() under its name in Intel's Caffe, where engines also fuse layers; here a Net does."""
    return net_text(network_file, phase)


_devices = [0]

# In pycaffe the extension module has them.
for _solver in (SGDSolver, NesterovSolver, AdaGradSolver, RMSPropSolver, AdaDeltaSolver, AdamSolver, get_solver):
    setattr(_caffe, _solver.__name__, _solver)

Error.__doc__ = """An error in crema: files, shapes, devices. Mistakes in files come with file:line:column."""


def __getattr__(name):
    if name in _SUBMODULES:
        return importlib.import_module(f'.{name}', __name__)
    if name in _MODULE_OF:
        value = getattr(importlib.import_module(f'.{_MODULE_OF[name]}', __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__():
    return sorted({*globals(), *__all__})
