"""crema.track: what an MLflow server gets from a run folder, and when it fails. test_track_programs.py has the programs."""
import json
import os
import subprocess
import sys
import threading
import time

import pytest
from mlflow_answers import Server

from crema.track import command, follow, state
from crema.track.settings import fields_of

STARTED = '2026-11-30T22:48:27Z'
STARTED_MS = 1796078907000
PICTURE = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNiAAAABgADNjd8qAAAAABJRU5ErkJggg=='


def line(iteration, kind, seconds, values=None, **more):
    return json.dumps({'iteration': iteration, 'kind': kind, 'run': 'r', **more, 'time': seconds, 'values': values or {}}) + '\n'


def start(iteration=0):
    return line(iteration, 'start', 0.0, started=STARTED)


LINES = [start(), line(0, 'test', 0.5, {'accuracy': 0.1}, net=0), line(0, 'test', 0.5, {'accuracy': 0.2}, net=1),
         line(0, 'train', 1.0, {'loss': 2.5, 'lr': 0.01, 'data_wait': 0.25}),
         line(10, 'train', 2.0, {'loss': None, 'lr': 0.01}), line(10, 'snapshot', 2.5, file='s')]
END = line(20, 'end', 3.0)


class Run:
    def __init__(self, folder, lines=LINES, end=END):
        self.folder = folder / 'run-1'
        (self.folder / 'snapshots').mkdir(parents=True)
        (self.folder / 'pictures').mkdir()
        self.record(host='elsewhere' if end is None else os.uname().nodename, pid=2**22 + 1)
        self.write('solver.prototxt', 'net: "/a/net.prototxt"\nbase_lr: 0.01\nstepvalue: 5\nstepvalue: 7\n'
                   f'keep_best {{ output: "accuracy" }}  # a comment\ntype: "{"long" * 200}"\n')
        self.write('net.prototxt', 'name: "small"\n')
        self.write('train.log', 'I1130 22:48:28.0 1 main.cpp:1] Optimization Done.\n')
        self.write('pictures/filters.json', json.dumps(
            {'iteration': 10, 'title': 'First', 'pictures': [{'src': PICTURE, 'caption': '3 > 5'}]}))
        for name in ('a_iter_9.caffemodel', 'a_iter_10.caffemodel', 'a_iter_10.solverstate', 'a_best.caffemodel'):
            self.write('snapshots/' + name, name)
        self.write('metrics.jsonl', ''.join(lines) + (end or ''))

    def record(self, **changes):
        path = self.folder / 'run.json'
        record = json.loads(path.read_text()) if path.exists() else {
            'command': 'crema train', 'started': STARTED, 'net': 'small', 'device': 'CPU', 'seed': 7,
            'flags': {'gpu_memory': '0.5', 'set': ['base_lr=0.01', 'layer[a].convolution_param.num_output=3']}}
        path.write_text(json.dumps({**record, **changes}))

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def append(self, *lines):
        with open(self.folder / 'metrics.jsonl', 'a') as file:
            file.write(''.join(lines))

    def send(self, *words):
        return command.main([str(self.folder), '-to', 'mlflow', '-patience', '5', *words])


@pytest.fixture(name='run')
def run_fixture(tmp_path):
    return Run(tmp_path)


@pytest.fixture(name='server')
def server_fixture(monkeypatch):
    server = Server()
    monkeypatch.setenv('MLFLOW_TRACKING_URI', server.url)
    for name in ('USERNAME', 'PASSWORD', 'TOKEN'):
        monkeypatch.delenv('MLFLOW_TRACKING_' + name, raising=False)
    monkeypatch.delenv('MLFLOW_EXPERIMENT_NAME', raising=False)
    yield server
    server.stop()


@pytest.fixture(name='slept', autouse=True)
def slept_fixture(monkeypatch):
    """The pauses asked for; they are short here."""
    slept, sleep = [], time.sleep
    monkeypatch.setattr(follow, 'time', type('Time', (), {
        'monotonic': staticmethod(time.monotonic),
        'sleep': staticmethod(lambda seconds: (slept.append(seconds), sleep(0.02)))}))
    return slept


def points(server):
    return sorted((key, step, repr(value)) for key, step, value, _ in server.run['points'])


FIRST = [('test/accuracy', 0, '0.1'), ('test1/accuracy', 0, '0.2'), ('train/data_wait', 0, '0.25'), ('train/loss', 0, '2.5'),
         ('train/loss', 10, 'nan'), ('train/lr', 0, '0.01'), ('train/lr', 10, '0.01')]


def test_a_finished_run(run, server):
    assert run.send() == 0
    assert points(server) == FIRST and list(server.experiments) == ['small']
    assert {time for key, step, _, time in server.run['points'] if step == 10} == {STARTED_MS + 2000}
    params = server.run['params']
    assert params['base_lr'] == '0.01' and params['stepvalue'] == '5,7' and params['keep_best.output'] == 'accuracy'
    assert params['set.layer_a_.convolution_param.num_output'] == '3' and 'set.base_lr' not in params
    assert params['flag.gpu_memory'] == '0.5' and params['net'] == 'small' and params['seed'] == '7'
    assert params['type'] == ('long' * 200)[:500]
    info = server.run['info']
    assert info['status'] == 'FINISHED' and info['start_time'] == STARTED_MS and info['run_name'] == 'run-1'
    assert set(server.files) == {'run.json', 'solver.prototxt', 'net.prototxt', 'train.log', 'pictures/filters.html',
                                 'snapshots/a_iter_10.caffemodel', 'snapshots/a_best.caffemodel'}
    assert PICTURE in server.files['pictures/filters.html'].decode()
    assert '3 &gt; 5' in server.files['pictures/filters.html'].decode()


def test_once_is_enough(run, server):
    assert run.send() == 0
    asked = len(server.requests)
    assert run.send() == 0 and len(server.requests) == asked
    assert run.send('-snapshots') == 0
    assert {'snapshots/a_iter_9.caffemodel', 'snapshots/a_iter_10.solverstate'} <= set(server.files)
    assert points(server) == FIRST


def test_large_batches(tmp_path, server):
    lines = [line(i, 'train', i, {'loss': i, 'lr': 1, 'a': 2}) for i in range(700)]
    assert Run(tmp_path, [start(), *lines]).send() == 0
    assert len(server.run['points']) == 2100
    assert max(len(message.get('metrics', [])) for _, path, message, _ in server.requests if path.endswith('log-batch')) == 1000


def test_a_server_that_starts_later(run, server, capfd, slept):
    port = server.http.server_port
    server.stop()
    later = []
    timer = threading.Timer(0.3, lambda: later.append(Server(port)))
    timer.start()
    assert run.send('-patience', '600') == 0
    timer.join()
    assert points(later[0]) == FIRST
    later[0].stop()
    errors = capfd.readouterr().err
    assert errors.count('warning: ') == 1 and 'does not answer' in errors and 'trying again' in errors
    assert slept[:4] == [1, 2, 4, 8] and max(slept) <= 60


def test_faults_everywhere(run, server, slept):
    for fault in [(500, {}), (429, {'Retry-After': '20'}), (503, {}), None, (502, {}), None, None, (504, {}), *[None, (500, {})] * 9]:
        server.faults.append(fault)
    assert run.send('-patience', '600') == 0
    assert points(server) == FIRST and 20 in slept
    assert len(server.files) == 7 and server.run['info']['status'] == 'FINISHED'


def test_a_server_that_stays_away(run, server, capfd):
    server.faults = [(503, {})] * 100
    assert run.send('-patience', '0') == 1
    assert f'later do so with: python3 -m crema.track {run.folder} -to mlflow' in capfd.readouterr().err
    server.faults = []
    assert run.send() == 0 and points(server) == FIRST


@pytest.mark.parametrize('number', range(1, 9))
def test_killed_before_it_saves(run, server, monkeypatch, number):
    saved = state.State.save
    count = []

    def save(self, **values):
        count.append(1)
        if len(count) == number:
            raise KeyboardInterrupt
        saved(self, **values)

    monkeypatch.setattr(state.State, 'save', save)
    assert run.send() == 130
    assert run.send() == 0
    assert points(server) == FIRST and len(server.run['points']) == len(FIRST)


def test_a_resumed_run(run, server):
    run.write('metrics.jsonl', ''.join(LINES) + line(12, 'end', 3.0, why='stopped on request'))
    assert run.send() == 0 and server.run['info']['status'] == 'KILLED'
    run.write('solver.prototxt', 'base_lr: 0.5\nstepvalue: 5\nstepvalue: 7\nmax_iter: 30\n')
    run.append(start(10), line(10, 'train', 1, {'loss': None, 'lr': 0.5, 'data_wait': 0.75}), line(20, 'train', 1, {'loss': 1}), END)
    assert run.send() == 0 and server.run['info']['status'] == 'FINISHED'
    # What is there already is not sent again.
    assert points(server) == sorted([*FIRST, ('train/lr', 10, '0.5'), ('train/data_wait', 10, '0.75'), ('train/loss', 20, '1.0')])
    assert server.run['params']['base_lr'] == '0.01' and server.run['tags']['resumed.base_lr'] == '0.5'
    assert server.run['params']['max_iter'] == '30'


@pytest.mark.parametrize('log, status', [('I1130 22:00:00.0 1 a.cpp:1] Iteration 3\n', 'KILLED'),
                                         ('E1130 22:00:00.0 1 a.cpp:1] the loss is nan\n', 'FAILED')])
def test_a_run_without_an_end(tmp_path, server, log, status):
    run = Run(tmp_path, end='{"iteration":2')  # a cut line
    run.write('train.log', log)
    assert run.send() == 0
    assert server.run['info']['status'] == status and points(server) == FIRST


def test_a_run_that_goes_on(tmp_path, server):
    run = Run(tmp_path, [start()], '')
    # As `crema train` holds its log.
    train = subprocess.Popen([sys.executable, '-c', 'import sys; log = open(sys.argv[1], "a"); sys.stdin.read()',
                              str(run.folder / 'train.log')], stdin=subprocess.PIPE)
    run.record(pid=train.pid)
    answer = []

    def go_on():
        wait_for(lambda: server.runs and server.run['info']['status'] == 'RUNNING')
        run.append(*LINES[1:3])
        wait_for(lambda: len(server.run['points']) == 2)
        run.append(*LINES[3:], END)
        wait_for(lambda: len(server.run['points']) == len(FIRST))
        answer.append(server.run['info']['status'])
        train.communicate()

    thread = threading.Thread(target=go_on)
    time.sleep(0.3)  # until Python has opened the log
    thread.start()
    assert run.send() == 0
    thread.join()
    assert answer == ['RUNNING'] and server.run['info']['status'] == 'FINISHED' and points(server) == FIRST


def wait_for(condition, seconds=20):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize('variables, expected', [({'USERNAME': 'ann', 'PASSWORD': 'secret-1'}, 'Basic YW5uOnNlY3JldC0x'),
                                                 ({'TOKEN': 'secret-2'}, 'Bearer secret-2'), ({}, 'Basic YW5uOnNlY3JldC0z')])
def test_secrets_stay_here(run, server, monkeypatch, capfd, variables, expected):
    for name, value in variables.items():
        monkeypatch.setenv('MLFLOW_TRACKING_' + name, value)
    if not variables:
        monkeypatch.setenv('MLFLOW_TRACKING_URI', server.url.replace('://', '://ann:secret-3@'))
    server.faults = [(500, {}), (403, {})]
    assert run.send() == 1 and run.send() == 0
    assert {headers.get('Authorization') for *_, headers in server.requests} == {expected}
    errors = capfd.readouterr().err
    assert 'MLFLOW_TRACKING_TOKEN' in errors and 'secret' not in errors
    for folder, _, names in os.walk(run.folder):
        assert all(b'secret' not in open(os.path.join(folder, name), 'rb').read() for name in names)


def test_what_cannot_be_sent(run, server, capfd, monkeypatch, tmp_path):
    run.send()
    server.runs.clear()
    run.append(start(20), END)
    assert run.send() == 1 and f'remove {run.folder}/track/mlflow.json to send it again' in capfd.readouterr().err
    os.remove(run.folder / 'track/mlflow.json')
    assert run.send() == 0 and points(server) == FIRST
    assert command.main([str(tmp_path), '-to', 'mlflow']) == 1 and 'no run.json' in capfd.readouterr().err
    monkeypatch.delenv('MLFLOW_TRACKING_URI')
    run.append(start(20), END)
    assert run.send() == 1 and 'set MLFLOW_TRACKING_URI' in capfd.readouterr().err
    with pytest.raises(SystemExit):
        command.main([str(run.folder), '-to', 'neptune'])


def test_files_that_the_server_keeps_elsewhere(run, server, capfd):
    create = server.runs_create

    def elsewhere(asked):
        answer = create(asked)
        answer['run']['info']['artifact_uri'] = 's3://bucket/1'
        return answer

    server.runs_create = elsewhere
    assert run.send() == 0 and not server.files and points(server) == FIRST
    assert 's3://bucket/1; `mlflow server --serve-artifacts`' in capfd.readouterr().err


def test_fields_of_a_solver():
    text = "a: 1 b { c: 'x{' d <e: -1e-3> } b: { c: \"y\" } net_param { name: \"n\" } snapshot_prefix: 'p'"
    assert fields_of(text) == {'a': '1', 'b.c': 'x{,y', 'b.d.e': '-1e-3'}
