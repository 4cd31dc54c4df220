"""`crema train -track` and `python3 crema/track` as processes, and the real MLflow and wandb where they are installed."""
import glob
import json
import os
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import pytest
from mlflow_answers import Server
from small_training import NET, SOLVER

import crema
from crema import programs

PACKAGE = os.path.join(os.path.dirname(crema.__file__), 'track')
# Writes what it is asked into the file of WANDB_STANDS_IN.
STANDS_IN = '''
import json, os
def note(*what):
    with open(os.environ['WANDB_STANDS_IN'], 'a') as file:
        file.write(json.dumps(what, default=str) + '\\n')
class Run:
    summary = {}
    def define_metric(self, name, step_metric=None): pass
    def log(self, row): note('log', row)
    def log_artifact(self, artifact): note('files', artifact.names)
    def finish(self, exit_code=0): note('finish', exit_code)
class Artifact:
    def __init__(self, name, type): self.names = []
    def add_file(self, path, name): self.names.append(name)
def init(**options):
    note('init', options)
    return Run()
Settings = dict
'''


def train(folder, *words, **variables):
    (folder / 'net.prototxt').write_text(NET)
    (folder / 'solver.prototxt').write_text(SOLVER)
    environment = {**os.environ, 'PYTHON': sys.executable, **variables}
    return subprocess.run([programs.find_program(), 'train', '-solver', 'solver.prototxt', *words], cwd=folder, env=environment,
                          capture_output=True, text=True)


def wait_for(condition, seconds=30):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_train_sends_to_both(tmp_path):
    (tmp_path / 'wandb.py').write_text(STANDS_IN)
    asked = tmp_path / 'asked'
    server = Server()
    done = train(tmp_path, '-run', 'run', '-track', 'mlflow,wandb', MLFLOW_TRACKING_URI=server.url, WANDB_MODE='offline',
                 PYTHONPATH=str(tmp_path), WANDB_STANDS_IN=str(asked))
    assert done.returncode == 0, done.stderr
    wait_for(lambda: server.runs and server.run['info']['status'] == 'FINISHED')
    wait_for(lambda: asked.exists() and 'finish' in asked.read_text())
    server.stop()
    assert {step for key, step, *_ in server.run['points'] if key == 'train/loss'} == {0, 5, 10, 15, 20}
    assert {'train.log', 'solver.prototxt', 'snapshots/net_iter_20.caffemodel'} <= set(server.files)
    notes = [json.loads(line) for line in asked.read_text().splitlines()]
    assert notes[0][1]['config']['base_lr'] == '0.1' and notes[0][1]['mode'] == 'offline'
    assert [row['iteration'] for what, row, in notes[1:-2] if 'train/lr' in row] == [0, 5, 10, 15]
    assert 'snapshots/net_iter_20.caffemodel' in notes[-2][1] and notes[-1] == ['finish', 0]


def test_train_without_a_tracker(tmp_path):
    done = train(tmp_path, '-run', 'run', '-track', 'mlflow', PYTHON='/none/python3')
    assert done.returncode == 0 and '/none/python3 cannot be started: No such file' in done.stderr
    assert 'python3 -m crema.track run -to mlflow' in done.stderr
    done = train(tmp_path, '-track', 'mlflow')
    assert done.returncode == 1 and 'add -run auto' in done.stderr
    done = train(tmp_path, '-run', 'other', '-track', 'neptune')
    assert done.returncode == 1 and 'expected mlflow, wandb or mlflow,wandb' in done.stderr


@pytest.fixture(name='real')
def real_fixture():
    real = os.environ.get('CREMA_TRACKERS')
    if not real:
        pytest.skip('CREMA_TRACKERS names no Python with the packages mlflow and wandb')
    return real


def test_real_ones(tmp_path, real):
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    url = f'http://127.0.0.1:{port}'
    server = subprocess.Popen([os.path.join(os.path.dirname(real), 'mlflow'), 'server', '--port', str(port), '--workers', '1'],
                              cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert train(tmp_path, '-run', 'run').returncode == 0
        done = subprocess.run([real, PACKAGE, 'run', '-to', 'mlflow,wandb', '-uri', url], cwd=tmp_path, capture_output=True, text=True,
                              env={**os.environ, 'WANDB_MODE': 'offline'}, timeout=120)
        assert done.returncode == 0, done.stderr
        run = json.loads((tmp_path / 'run/track/mlflow.json').read_text())['run']

        def get(path, **query):
            with urllib.request.urlopen(f'{url}/api/2.0/mlflow/{path}?' + urllib.parse.urlencode(query)) as answer:
                return json.load(answer)

        found = get('runs/get', run_id=run)['run']
        assert found['info']['status'] == 'FINISHED'
        assert {'key': 'base_lr', 'value': '0.1'} in found['data']['params']
        history = get('metrics/get-history', run_id=run, metric_key='train/loss')['metrics']
        assert [point['step'] for point in history] == [0, 5, 10, 15, 20]
        assert {'train.log', 'snapshots'} <= {file['path'] for file in get('artifacts/list', run_id=run)['files']}
        assert glob.glob(f'{tmp_path}/run/track/wandb/offline-run-*/run-*.wandb')
    finally:
        server.terminate()
        server.wait()
