"""Writes crema/_crema.pyi, the type stub of the extension module, from the signatures in its docstrings.

PYTHONPATH=build/python python3 src/python/stubs.py [OUT]; tests/python/test_names.py says when it has to run again.
"""
import ast
import inspect
import os
import re
import sys

HEAD = '''"""The extension module; crema presents it. Written by src/python/stubs.py."""
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple, Union

import numpy
'''

# Return types of what crema/pycaffe.py adds to Net, whose signatures have no types.
KINDS = {
    'blobs': 'Dict[str, Blob]', 'params': 'Dict[str, List[Blob]]', 'layers': 'List[NetLayer]',
    'layer_dict': 'Dict[str, NetLayer]', 'inputs': 'List[str]', 'outputs': 'List[str]',
    'top_names': 'Dict[str, List[str]]', 'bottom_names': 'Dict[str, List[str]]',
    'blob_loss_weights': 'Dict[str, float]', 'forward': 'Dict[str, numpy.ndarray]',
    'backward': 'Dict[str, numpy.ndarray]', 'forward_all': 'Dict[str, numpy.ndarray]'
}


def is_private(name):
    return name.startswith('_') and not name.startswith('__')


def parseable(text):
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def clean(signature):
    """Converts a signature from pybind11 to Python's type hints."""
    text = re.sub(r'\b_?crema\._crema\.', '', signature)
    text = re.sub(r'numpy\.ndarray\[[^\]]*\]', 'numpy.ndarray', text)
    text = re.sub(r'\b(handle|capsule)\b', 'object', text)
    text = re.sub(r'= (<[^>]*>|\w+\(.*?\))', '= ...', text)
    text = re.sub(r'\*args(?!:)', '*args: Any', text)
    text = re.sub(r'\*\*kwargs(?!:)', '**kwargs: Any', text)
    text = re.sub(r'\bfunction\b', 'Callable[..., Any]', text)
    text = re.sub(r'\biterable\b', 'Iterable[Any]', text)
    return re.sub(r'(\(|, )(self): [\w.]+', r'\1\2', text)


def signatures(name, doc):
    """The signatures of a function, one for each overload, and the rest of its docstring."""
    lines = inspect.cleandoc(doc or '').split('\n')
    numbered = [re.match(r'\d+\. (.*)', line) for line in lines]
    found = [match.group(1) for match in numbered if match] or lines[:1]
    words = '\n'.join(lines[1:]).strip() if lines and lines[0].startswith(f'{name}(') and not any(numbered) else ''
    kept = [text for text in map(clean, found) if parseable(f'def {text}: ...')]
    return kept or [f'{name}(*args: Any, **kwargs: Any) -> Any'], words


def indented(words, indent):
    """Words as a docstring."""
    lines = inspect.cleandoc(words).replace('\\', '\\\\').replace('"""', "'''").split('\n')
    quote = ' """' if lines[-1].endswith('"') else '"""'
    return f'{indent}"""' + f'\n{indent}'.join(lines).replace(f'\n{indent}\n', '\n\n') + quote + '\n'


def docstring(words, indent):
    return f'\n{indented(words, indent + "    ")}{indent}    ...\n' if words else ' ...\n'


def of_python(name, value, indent):
    """A function that is written in Python."""
    words = value.__doc__ or ''
    signature = re.sub(r' -> .*$', '', str(inspect.signature(value)))
    signature = re.sub(r'\*args\b', '*args: Any', re.sub(r'\*\*(\w+)', r'**\1: Any', signature))
    return f'{indent}def {name}{signature} -> {KINDS.get(name, "Any")}:' + docstring(words, indent)


def function(name, value, indent=''):
    if inspect.isfunction(value):
        return of_python(name, value, indent)
    kept, words = signatures(name, value.__doc__)
    if name == '__init__':
        kept = [re.sub(r'-> Any$', '-> None', signature) for signature in kept]
    method = bool(indent)
    overloads = len(kept) > 1
    text = ''
    for number, signature in enumerate(kept):
        if method and not re.match(r'\w+\(self\b', signature):
            if type(value).__name__ == 'builtin_function_or_method':
                text += f'{indent}@staticmethod\n'
            else:
                signature = re.sub(r'\((?:arg0: [\w.]+(?:, )?)?', '(self, ', signature, count=1)
                signature = signature.replace('(self, )', '(self)')
        if overloads:
            text += f'{indent}@overload\n'
        text += f'{indent}def {signature}:' + docstring(words if number == 0 else '', indent)
    return text


def property_text(name, value, indent):
    match = re.search(r'-> (.+)', clean((value.fget.__doc__ if value.fget else '') or ''))
    kind = match.group(1).strip() if match and parseable(f'x: {match.group(1)}') else KINDS.get(name, 'Any')
    words = (value.__doc__ or '').strip()
    text = f'{indent}@property\n{indent}def {name}(self) -> {kind}:' + docstring(words, indent)
    if value.fset:
        text += f'{indent}@{name}.setter\n{indent}def {name}(self, value: {kind}) -> None: ...\n'
    return text


def class_text(name, cls):
    bases = [base.__name__ for base in cls.__bases__ if base.__name__ not in ('object', 'pybind11_object')]
    text = f'\nclass {name}' + (f'({", ".join(bases)})' if bases else '') + ':\n'
    if cls.__doc__:
        text += indented(cls.__doc__, '    ')
    hidden = ('__doc__', '__module__', '__new__', '__class__', '__reduce__', '__dict__', '__weakref__', '__slots__')
    for member, value in sorted(vars(cls).items()):
        if member in hidden or is_private(member) or member.startswith('__pybind11'):
            continue
        if isinstance(value, property):
            text += property_text(member, value, '    ')
        elif callable(value) or isinstance(value, (staticmethod, classmethod)):
            text += function(member, getattr(cls, member), '    ')
        else:
            text += f'    {member}: {type(value).__name__ if type(value).__module__ == "builtins" else "Any"}\n'
    return text + '    ...\n'


def stub(module):
    constants, functions, classes = '', '', ''
    for name, value in sorted(vars(module).items()):
        if is_private(name) or name.startswith('__') and name != '__version__':
            continue
        if getattr(value, '__module__', module.__name__) != module.__name__:  # of crema/solvers.py
            continue
        if isinstance(value, type):
            classes += class_text(name, value)
        elif callable(value):
            functions += '\n' + function(name, value)
        else:
            constants += f'{name}: {type(value).__name__ if type(value).__module__ == "builtins" else "Any"}\n'
    body = constants + functions + classes
    head = HEAD.replace('Union\n', 'Union, overload\n', 1) if '@overload' in body else HEAD
    return head + '\n' + body


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path = [folder for folder in sys.path if os.path.abspath(folder) != here]  # the sources, which are not built
    from crema import _crema
    text = stub(_crema)
    ast.parse(text)
    with open(sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, 'crema', '_crema.pyi'), 'w') as file:
        file.write(text)


if __name__ == '__main__':
    main()
