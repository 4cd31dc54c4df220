"""The name that old scripts and Python layers import; an alias of crema.

`import caffe`, `import caffe.io` and `from caffe.proto import caffe_pb2` return crema's modules themselves, not
copies, so that a class is the same under both names.
"""
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys

import crema

_RENAMED = {'_caffe': '_crema'}


class _CremaFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds caffe.NAME: it is crema.NAME."""

    @staticmethod
    def crema_name(name):
        first, *rest = name.split('.')[1:]
        return '.'.join(['crema', _RENAMED.get(first, first), *rest])

    def find_spec(self, name, path=None, target=None):
        if not name.startswith('caffe.'):
            return None
        if importlib.util.find_spec(self.crema_name(name)) is None:
            return None
        return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        sys.modules[module.__name__] = importlib.import_module(self.crema_name(module.__name__))

    def get_code(self, name):
        """For `python -m caffe.NAME`."""
        spec = importlib.util.find_spec(self.crema_name(name))
        return spec.loader.get_code(spec.name)


if not any(type(finder).__name__ == '_CremaFinder' for finder in sys.meta_path):
    sys.meta_path.insert(0, _CremaFinder())
sys.modules[__name__] = crema
