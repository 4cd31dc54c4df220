"""Finds out whether the compiled module _crema can be imported here, and if not, why."""
import glob
import importlib.util
import os
import sys

__all__ = ['require_module']


def require_module(package):
    """Raises ImportError with what to do, unless the module of this package was built for this Python and NumPy is there."""
    folder = os.path.dirname(os.path.abspath(__file__))
    if importlib.util.find_spec(f'{package}._crema') is None:
        version = 'Python %d.%d' % sys.version_info[:2]
        others = [os.path.basename(path) for path in sorted(glob.glob(os.path.join(folder, '_crema*.so')))]
        if others:
            raise ImportError(
                f'{folder} has {", ".join(others)}, but this is {version} ({sys.executable}), for which it was not built: '
                'run the Python that it was built for, or build for this one: cmake -DPython3_EXECUTABLE=' + sys.executable)
        raise ImportError(
            f'{folder} has no compiled module _crema; these are its sources only. Build it, cmake --build build --target '
            'crema_python, and set PYTHONPATH=build/python; or install it: pip install .')
    if importlib.util.find_spec('numpy') is None:
        raise ImportError(f'crema needs NumPy, which {sys.executable} does not have: pip install numpy')
