"""The end of an interpreter, or a fork of it, while threads are in crema: the script's own exit code, no message, no wait."""
import os
import subprocess
import sys
import time

import pytest

PREAMBLE = """
import atexit, os, queue, sys, threading, time, types
import numpy as np
import crema
crema.init_log(3)
atexit.register(lambda: open('ends', 'w').write(str(time.monotonic())))  # before crema waits for threads
LAYERS = '''
  layer { name: "data" type: "DummyData" top: "data" top: "label"
          dummy_data_param { shape { dim: 8 dim: 50 } shape { dim: 8 } data_filler { type: "gaussian" std: 1 }
                             data_filler { type: "constant" } } }
  layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
          inner_product_param { num_output: 50 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
'''
REST = 'base_lr: 0.001 lr_policy: "fixed" max_iter: 1000000000 random_seed: 1 snapshot_prefix: "unused"'
SOLVER = 'net_param { %s } %s' % (LAYERS, REST)
began = threading.Event()


class Feed(crema.Layer):
    batches = queue.Queue(2)

    def setup(self, bottom, top):
        top[0].reshape(8, 50)
        top[1].reshape(8)

    def reshape(self, bottom, top):
        pass

    def forward(self, bottom, top):
        top[0].data[...] = self.batches.get()
        began.set()


def solver(text=SOLVER):
    return crema.get_solver(text=text, log=False)


def net():
    with open('net.prototxt', 'w') as file:
        file.write(LAYERS)
    return crema.Net('net.prototxt', crema.TRAIN)


def in_thread(work, daemon=True):
    def run():
        began.set()
        work()
    thread = threading.Thread(target=run, daemon=daemon)
    thread.start()
    began.wait()
    time.sleep(0.05)
    return thread


def repeat(work):
    def run():
        while True:
            work()
    return run
"""

# Name, exit code, script. What a script prints must be "done".
ENDS = [
    ('solve', 7, 'in_thread(solver().solve); print("done"); sys.exit(7)'),
    ('step by step', 0, 's = solver(); in_thread(repeat(lambda: s.step(1))); print("done")'),
    ('two threads, one solver', 0, 's = solver(); in_thread(repeat(lambda: s.step(3)))\n'
     'in_thread(repeat(lambda: s.step(3))); print("done")'),
    ('forward', 3, 'n = net(); in_thread(repeat(n.forward)); print("done"); sys.exit(3)'),
    ('forward and backward', 0, 'n = net(); in_thread(repeat(lambda: (n.forward(), n.backward()))); print("done")'),
    ('a net for each pass', 0, 'net(); in_thread(repeat(lambda: net().forward())); print("done")'),
    ('a reader', 0, 's = solver(); s.add_reader(lambda event: event["loss"] + 1, "step"); in_thread(s.solve)\n'
     'print("done")'),
    ('a reader that sleeps', 0, 's = solver(); s.add_reader(lambda event: time.sleep(0.3), "step")\n'
     'in_thread(s.solve); print("done")'),
    ('a reader that waits for good', 0, 's = solver(); s.add_reader(lambda event: queue.Queue().get(), "step")\n'
     'in_thread(s.solve); print("done")'),
    ('callbacks of a solver', 0, 's = solver(); s.add_callback(lambda: [0] * 100, lambda: time.sleep(0.001))\n'
     'in_thread(s.solve); print("done")'),
    ('callbacks of a net', 0, 'n = net(); n.before_forward(lambda i: [0] * 100); n.after_forward(lambda i: None)\n'
     'n.after_backward(lambda i: time.sleep(0.001))\n'
     'in_thread(repeat(lambda: (n.forward(), n.backward()))); print("done")'),
    ('a callback that spins', 0, 'n = net(); n.before_forward(lambda i: [0 for _ in iter(int, 1)])\n'
     'in_thread(n.forward); print("done")'),
    ('a layer in Python, and a thread that feeds it', 0, """
sys.modules['feed'] = sys.modules['__main__']
layer = 'layer { name: "data" type: "Python" top: "data" top: "label" ' \\
        'python_param { module: "feed" layer: "Feed" } }' + LAYERS[LAYERS.index('layer { name: "ip"'):]
threading.Thread(target=repeat(lambda: Feed.batches.put(np.zeros((8, 50)))), daemon=True).start()
threading.Thread(target=solver('net_param { %s } %s' % (layer, REST)).solve, daemon=True).start()
began.wait()
print("done")
"""),
    ('a layer in Python that waits for good', 0, """
sys.modules['feed'] = sys.modules['__main__']
layer = 'layer { name: "data" type: "Python" top: "data" top: "label" ' \\
        'python_param { module: "feed" layer: "Feed" } }' + LAYERS[LAYERS.index('layer { name: "ip"'):]
in_thread(solver('net_param { %s } %s' % (layer, REST)).solve)
print("done")
"""),
    ('an exception', 1, 'in_thread(solver().solve); print("done"); sys.stderr = open(os.devnull, "w")\nraise ValueError()'),
    ('os._exit', 5, 'in_thread(solver().solve); print("done", flush=True); os._exit(5)'),
    ('an interrupt of the wait for a thread', 0, 'in_thread(solver().solve, daemon=False); print("done", flush=True)\n'
     'sys.stderr.close(); threading.Timer(0.2, lambda: os.kill(os.getpid(), 2)).start()'),
    ('an interrupt', -2, 'in_thread(solver().solve); print("done", flush=True)\n'
     'sys.stderr = open(os.devnull, "w"); os.kill(os.getpid(), 2); time.sleep(9)'),
    ('a thread pool that finishes', 0, 'from concurrent.futures import ThreadPoolExecutor\n'
     's = solver(SOLVER.replace("1000000000", "300")); pool = ThreadPoolExecutor()\n'
     'pool.submit(s.solve).add_done_callback(lambda _: print("done"))'),
    ('work at exit', 0, 's, n = solver(), net(); in_thread(s.solve)\n'
     'atexit.register(lambda: (n.forward(), print("done")))'),
    ('work after the end', 0, """
n, s = net(), solver()
class Late:
    def __del__(self, forward=n._forward, step=s.step, kind=crema.Error, write=os.write):
        forward(0, 2)
        try:
            step(1)
        except kind as error:
            write(1, b'done' if 'end of the interpreter' in str(error) else str(error).encode())
late = types.ModuleType('late')
sys.modules['late'], late.object = late, Late()
del late
in_thread(s.solve)
"""),
    ('a suspended generator', 0, 'n = net(); batches = n._batch({"data": np.zeros((16, 50))}); next(batches)\n'
     'in_thread(solver().solve); print("done")'),
    ('del solver', 0, 's = solver(); in_thread(s.solve); del s; import gc; gc.collect(); print("done")'),
    ('fit', 4, 'in_thread(lambda: crema.Classifier(epochs=10**6, verbose=0).fit(np.zeros((64, 8), "f"), np.arange(64) % 3))\n'
     'time.sleep(0.3); print("done"); sys.exit(4)'),
    ('a fork', 0, """
s, n = solver(), net()
in_thread(s.solve)
for _ in range(3):
    child = os.fork()
    if not child:
        net().forward()
        try:
            s.step(1)
        except crema.Error:
            sys.exit(6)
        os._exit(9)
    assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 6
print("done")
"""),
    ('the end of a fork with threads that load data', 0, """
with open('1.ppm', 'wb') as file:
    file.write(b'P6 10 5 255\\n' + bytes(150))
with open('list.txt', 'w') as file:
    file.write('1.ppm 0\\n' * 100)
layer = 'layer { name: "data" type: "ImageData" top: "data" top: "label" ' \\
        'image_data_param { source: "list.txt" batch_size: 8 } }' + LAYERS[LAYERS.index('layer { name: "ip"'):]
s = solver('net_param { %s } %s' % (layer, REST))
in_thread(s.solve)
child = os.fork()
if not child:
    sys.exit(6)
assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 6
print("done")
"""),
    ('a sub-interpreter', 0, """
import _xxsubinterpreters as interpreters
try:
    interpreters.run_string(interpreters.create(isolated=False), 'import crema')
except interpreters.RunFailedError as error:
    print('done' if 'main interpreter only' in str(error) else error)
"""),
]


@pytest.mark.parametrize('name, code, script', ENDS, ids=[row[0].replace(' ', '-') for row in ENDS])
def test_end(name, code, script, tmp_path):
    found = subprocess.run([sys.executable, '-c', PREAMBLE + script], cwd=tmp_path, capture_output=True, text=True,
                           timeout=60, env={**os.environ, 'OMP_NUM_THREADS': '1',
                                             'PYTHONPATH': os.path.abspath(os.environ['PYTHONPATH'])})
    assert (found.returncode, found.stdout.strip(), found.stderr) == (code, 'done', '')
    if (tmp_path / 'ends').exists():
        assert time.monotonic() - float((tmp_path / 'ends').read_text()) < 8, 'it waited as long as it may'
