"""Calls everything public in crema and _crema with random arguments; nothing may crash, hang or show uninitialized memory.

PYTHONPATH=build/python nice python3 tests/python/random_calls.py --calls 100000 --jobs 2
PYTHONPATH=build/python python3 tests/python/random_calls.py --seed 17      # that process again, with its calls

Each seed is a process of its own, in a folder that vanishes. Every exception is allowed but SystemError and those that show the
inside of a library. A call that takes longer than a second is interrupted; one that then goes on is a hang.
"""
import argparse
import concurrent.futures
import copy
import faulthandler
import gc
import importlib
import inspect
import os
import pickle
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import types

MODULES = ['crema', 'crema._crema', 'crema.io', 'crema.net_spec', 'crema.coord_map', 'crema.draw', 'crema.classifier',
           'crema.detector', 'crema.learn', 'crema.learn_nets', 'crema.learn_inputs', 'crema.lone_layer', 'crema.plot',
           'crema.display', 'crema.pycaffe', 'crema.solvers', 'crema.preparation', 'crema.model_libs', 'crema.learner']
# Names that are not called, and why.
EXCLUDED = {
    '_forget_other_threads': 'is true in a forked process only',
    'pybind11_object': 'is pybind11\'s, and aborts when it is called',
    'importlib': 'is Python\'s', 'run_verb': 'runs a program', 'find_program': 'only looks at the environment',
}
# Nor these modules: crema.scripts (command lines, see test_scripts.py), crema.programs (runs programs), crema.proto (protobuf's
# own classes), crema.layers (classes for nets of NVIDIA's DetectNet).
DUNDERS = ['__class__', '__getitem__', '__array__', '__dlpack__', '__dlpack_device__', '__init__', '__call__', '__reduce__', '__iter__',
           '__len__', '__contains__', '__setitem__', '__get__', '__setattr__', '__getattr__']
OPERATORS = [repr, str, len, iter, bool, hash, list, copy.copy, copy.deepcopy, vars, dir, lambda x: x == x,
             lambda x: x + 1, lambda x: x[0], lambda x: x['data'], lambda x: x(), memoryview, lambda x: [*x],
             *(lambda x, p=p: pickle.dumps(x, p) for p in range(6))]
INSIDE = re.compile(r'std::(?!bad_alloc)|basic_string|vector::|_M_|bad_weak|bad_function|bad_optional|bad_variant|\bstoi\b|'
                    r'Unable to c|map::at|Unregistered type')
SECONDS, HANGS = 1, 30
NUMBER_OF_CALLS = 250


class Interrupted(Exception):
    """The call took too long."""


class Caller:
    """The calls of one seed."""

    def __init__(self, seed, calls, verbose):
        # Freed and new memory have a pattern that no computation makes (MALLOC_PERTURB_=165).
        import numpy as np
        import random_values
        self.np, self.patterns = np, [0x5a5a5a5a, 0xa5a5a5a5]
        self.random, self.calls, self.verbose = random.Random(seed), calls, verbose
        self.subjects, self.findings, self.active = [], 0, False
        self.values = random_values.Values(self.random, self.subjects)
        random_values.make_files()
        sys.path.insert(0, '.')
        importlib.import_module('odd_layers').hook = self.in_a_layer
        self.modules = [importlib.import_module(name) for name in MODULES]
        self.functions, self.classes = [], []
        for module in self.modules:
            for name, value in sorted(vars(module).items()):
                if name.startswith('__' if module.__name__ == 'crema._crema' else '_') or name in EXCLUDED or isinstance(value, types.ModuleType):
                    continue
                if not str(getattr(value, '__module__', '')).startswith('crema'):
                    continue
                into = self.classes if isinstance(value, type) else self.functions if callable(value) else []
                if value not in into:
                    into.append(value)
        signal.signal(signal.SIGALRM, self.interrupt)

    def interrupt(self, *_):
        if self.active:
            raise Interrupted()

    def log(self, text):
        os.write(self.calls_file, (text.encode('utf-8', 'backslashreplace').replace(b'\0', b'\\0')[:600] + b'\n'))

    def run(self):
        self.calls_file = os.open('calls.txt', os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        for number in range(self.calls):
            self.one(number)
        self.check_lock()
        if self.random.random() < 0.3:  # the interpreter ends while a thread trains
            self.log('the end')
            import crema
            import random_values
            solver = crema.Solver(text=random_values.SOLVER % (random_values.DUMMY + random_values.LOSS), log=False)
            threading.Thread(target=lambda: solver.step(10**9), daemon=True).start()

    def open_another(self):
        """What most calls are about: nets and solvers, of files that calls may have changed."""
        import crema
        file, phase, options = self.random.choice([
            ('net.prototxt', 0, {}), ('net.prototxt', 1, {}), ('deploy.prototxt', 1, {}), ('memory.prototxt', 0, {}),
            ('images.prototxt', 0, {}),
            ('python.prototxt', 0, {}), ('python.prototxt', 1, {}), ('deploy.prototxt', 1, {'planned': True})])
        if self.random.random() < 0.7:
            return crema.Net(file, phase, **options)
        return crema.get_solver(self.random.choice(['solver.prototxt', 'images_solver.prototxt']))

    def in_a_layer(self, layer, blobs):
        """What a layer written in Python may do while its net runs, and later: its blobs are subjects, too."""
        if self.random.random() < 0.7:
            return
        for subject in self.random.sample([layer, layer.blobs, *blobs], 2):
            text, call = self.on_subject(subject)
            self.log(f'    in the layer: {text}')
            if call and self.random.random() < 0.8:
                self.attempt(call, 'layer')
            elif call:
                call()
        self.subjects.append(self.random.choice(blobs))

    def one(self, number):
        if self.random.random() < (0.03 if len(self.subjects) > 3 else 0.5):
            return self.guarded(f'{number}: another', self.open_another)
        draw, text, call = self.random.random(), '', None
        if draw < 0.62 and self.subjects:
            text, call = self.on_subject()
        elif draw < 0.75:
            function = self.random.choice(self.functions)
            text, call = self.with_arguments(function, f'{function.__module__}.{getattr(function, "__name__", "?")}')
        elif draw < 0.87:
            kind = self.random.choice(self.classes)
            text, call = self.with_arguments(kind, f'{kind.__module__}.{kind.__name__}')
            if self.random.random() < 0.15:
                text, call = f'{kind.__name__}.__new__()', lambda: kind.__new__(kind)
        elif draw < 0.93 and self.subjects:
            subject, operator = self.values.subject(), self.random.choice(OPERATORS)
            text, call = f'{self.shown(subject)} by operator {OPERATORS.index(operator)}', lambda: operator(subject)
        elif self.subjects:
            at = self.random.randrange(len(self.subjects))  # the others may hold parts of it
            text, call = f'del {self.shown(self.subjects[at])}', lambda: (self.subjects.pop(at), gc.collect()) and None
        if call:
            self.guarded(f'{number}: {text}', call)

    def shown(self, thing):
        kind = type(thing)
        at = next((i for i, one in enumerate(self.subjects) if one is thing), None)
        if at is not None or kind.__module__.startswith('crema'):
            return f'{kind.__name__}#{at}'
        if isinstance(thing, self.np.ndarray):
            return f'array({thing.shape}, {thing.dtype})'
        if isinstance(thing, (list, tuple)):
            return kind.__name__ + '(%s)' % ', '.join(type(one).__name__ for one in thing[:5])
        if isinstance(thing, (int, float, str, bytes)):
            return repr(thing)[:60]
        return f'<{kind.__name__}>'

    def on_subject(self, subject=None):
        subject = self.values.subject() if subject is None else subject
        if isinstance(subject, self.np.ndarray):  # a view of a net's memory; its methods are NumPy's
            value = self.values.any()
            return f'{self.shown(subject)}[...] = {self.shown(value)}', lambda: subject.__setitem__(..., value)
        names = [name for name in dir(type(subject))
                 if (name in DUNDERS or not name.startswith('__')) and name not in EXCLUDED]
        names += [name for name in getattr(subject, '__dict__', {}) if name not in EXCLUDED and isinstance(name, str)]
        if not names:
            return 'nothing', None
        name = self.random.choice(names)
        text = f'{self.shown(subject)}.{name}'
        if self.random.random() < 0.08:
            value = self.values.any()
            return f'{text} = {self.shown(value)}', lambda: setattr(subject, name, value)
        if not callable(getattr(type(subject), name, None)):
            return text, lambda: getattr(subject, name)
        try:
            return self.with_arguments(getattr(subject, name), text)
        except Exception:  # the attribute's own
            return text, lambda: getattr(subject, name)

    def with_arguments(self, function, text):
        parameters = self.parameters(function)
        count = len(parameters) if self.random.random() < 0.8 else self.random.randint(0, 5)
        names = (parameters + ['?'] * 5)[:count]
        keywords = {}
        while names and self.random.random() < 0.2:
            name = names.pop()
            keywords[name] = self.values.named(name)
        arguments = [self.values.named(name) for name in names]
        if self.random.random() < 0.05:
            keywords[self.values.name()] = self.values.array()
        shown = [self.shown(one) for one in arguments] + [f'{key}={self.shown(one)}' for key, one in keywords.items()]
        return f'{text}({", ".join(shown)})', lambda: function(*arguments, **keywords)

    def parameters(self, function):
        try:
            found = [p for p in inspect.signature(function).parameters.values() if p.name not in ('self', 'kwargs')]
            return [p.name for p in found if p.default is p.empty or self.random.random() < 0.4]
        except (TypeError, ValueError):
            lines = [line for line in (function.__doc__ or '').split('\n') if '(' in line and ' -> ' in line] or ['']
            names = re.findall(r'(\w+): ', self.random.choice(lines).split(' -> ')[0])
            return [name for name in names if name not in ('self', 'arg0')]
        except Exception:  # of an awkward object
            return []

    def guarded(self, text, call):
        self.log(text)
        if self.random.random() < 0.02 and self.subjects:  # meanwhile another thread does so, too
            other_text, other = self.on_subject()
            self.log(f'    beside it: {other_text}')
            thread = threading.Thread(target=self.attempt, args=(other or call, 'thread'), daemon=True)
            thread.start()
            self.timed(call)
            faulthandler.dump_traceback_later(HANGS, exit=True)
            thread.join(5)  # or it runs in parallel with the next calls
            faulthandler.cancel_dump_traceback_later()
        else:
            self.timed(call)

    def timed(self, call):
        faulthandler.dump_traceback_later(HANGS, exit=True)
        self.active = True
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            self.keep(self.attempt(call, 'call'))
        except Interrupted:
            self.log('    interrupted')
        finally:
            self.active = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.cancel_dump_traceback_later()

    def attempt(self, call, kind):
        try:
            result = call()
            if isinstance(result, types.GeneratorType):
                next(result, None)  # and it stays there
            self.check(result)
            return result
        except Interrupted:
            raise
        except SystemExit:
            self.find('SystemExit')
        except SystemError as error:
            self.find(f'SystemError: {error}')
        except BaseException as error:
            try:
                text = str(error)
            except Exception:  # an awkward object's
                text = ''
            self.log(f'    {type(error).__name__}: {text[:300]!r}')
            if INSIDE.search(text):
                self.find(f'{type(error).__name__}: {text[:300]}')
            if self.verbose and kind == 'call' and os.environ.get('TRACE'):
                traceback.print_exc()

    def find(self, text):
        self.findings += 1
        self.log(f'FOUND {text}')

    def check(self, result):
        things = list(result.values())[:9] if isinstance(result, dict) else [result]
        for thing in things:
            if isinstance(thing, self.np.ndarray) and thing.dtype == 'f4' and 0 < thing.size < 10**6:
                words = thing.astype('f4', copy=True).reshape(-1).view('u4')
                for pattern in self.patterns:
                    if (words == pattern).any():
                        self.find(f'uninitialized memory: {(words == pattern).sum()} of {words.size} values')

    def keep(self, result):
        things = list(result.values())[:4] if isinstance(result, dict) else result[:4] if type(result) is list else [result]
        for thing in things:
            module = str(getattr(type(thing), '__module__', ''))
            if module.startswith('crema') or isinstance(thing, (self.np.ndarray, types.GeneratorType)):
                self.subjects.append(thing)
        while len(self.subjects) > 40:
            del self.subjects[self.random.randrange(len(self.subjects))]

    def check_lock(self):
        faulthandler.dump_traceback_later(HANGS, exit=True)
        thread = threading.Thread(target=gc.collect)
        thread.start()
        thread.join()
        faulthandler.cancel_dump_traceback_later()


def child(seed, calls, verbose):
    """The calls of a seed, in the working directory."""
    here = os.path.realpath('.')
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 20, 256 << 20))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    faulthandler.enable()

    def stay_here(event, arguments):
        path = arguments[0] if arguments else None
        if event == 'open' and isinstance(path, (str, bytes)) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            real = os.path.realpath(os.fsdecode(path))
            if not real.startswith((here, '/dev/null')):
                os.write(2, f'FOUND a file outside is opened: {real}\n'.encode())
                os._exit(9)

    sys.addaudithook(stay_here)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    caller = Caller(seed, calls, verbose)
    caller.run()
    os.write(1, b'complete\n')


def one_seed(seed, calls, seconds=600):
    """(problem or '', number of calls) of a process."""
    environment = {'OMP_NUM_THREADS': '2', 'OPENBLAS_NUM_THREADS': '1', 'MPLBACKEND': 'Agg', 'MALLOC_PERTURB_': '165',
                   'GLOG_minloglevel': '3', 'PYTHONHASHSEED': '0', **os.environ}
    environment['PYTHONPATH'] = os.path.abspath(environment.get('PYTHONPATH', ''))
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, '-B', os.path.abspath(__file__), '--child', '--seed', str(seed), '--calls', str(calls)]
        try:
            done = subprocess.run(command, cwd=folder, env={**environment, 'HOME': folder, 'TMPDIR': folder},
                                  capture_output=True, timeout=seconds)
            code, error = done.returncode, done.stderr.decode(errors='replace')
            complete = b'complete' in done.stdout
        except subprocess.TimeoutExpired:
            code, error, complete = 'none, it hangs', '', False
        path = os.path.join(folder, 'calls.txt')
        lines = open(path, errors='replace').read().split('\n')[:-1] if os.path.exists(path) else []
    made = sum(bool(re.match(r'\d+: ', line)) for line in lines)
    found = [f'{lines[i - 1]} {line}' for i, line in enumerate(lines) if line.startswith('FOUND')]
    if code != 0 or not complete:
        found.append(f'exit code {code} after\n      ' + '\n      '.join(lines[-4:]) + '\n' + error[-3000:])
    return '\n   '.join(found), made, lines


def main():
    """Runs seeds until the calls are made; exit code 1 when one has a problem."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seed', type=int)
    parser.add_argument('--first', type=int, default=1)
    parser.add_argument('--calls', type=int, default=None)
    parser.add_argument('--jobs', type=int, default=1)
    parser.add_argument('--child', action='store_true')
    args = parser.parse_args()
    if args.child:
        return child(args.seed, args.calls, True)
    if args.seed is not None:
        problem, made, lines = one_seed(args.seed, args.calls or NUMBER_OF_CALLS)
        print('\n'.join(lines), f'seed {args.seed}: {made} calls: {problem or "nothing found"}', sep='\n')
        return sys.exit(bool(problem))
    seeds = range(args.first, args.first + max(1, (args.calls or 10000) // NUMBER_OF_CALLS))
    total = problems = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for seed, (problem, made, _) in zip(seeds, pool.map(lambda seed: one_seed(seed, NUMBER_OF_CALLS), seeds)):
            total += made
            if problem:
                problems += 1
                print(f'seed {seed}: {problem}', flush=True)
    print(f'{total} calls, seeds {seeds[0]} to {seeds[-1]}, {problems} with a problem', flush=True)
    sys.exit(bool(problems))


if __name__ == '__main__':
    main()
