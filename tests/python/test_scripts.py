"""The scripts train and parse_log; classify, detect and draw_net are in the tests of their modules."""
import csv
import os
import subprocess
import sys

import pytest
from small_training import NET, SOLVER

from crema import programs


@pytest.fixture(scope='module')
def training(tmp_path_factory):
    """A folder with a training and its log."""
    folder = tmp_path_factory.mktemp('training')
    (folder / 'net.prototxt').write_text(NET)
    (folder / 'solver.prototxt').write_text(SOLVER)
    found = run_script('train', '--solver', 'solver.prototxt', '--gpus', folder=folder)
    assert found.returncode == 0, found.stderr
    (folder / 'train.log').write_text(found.stderr)
    return folder


def run_script(name, *arguments, folder):
    return subprocess.run([sys.executable, '-m', f'crema.scripts.{name}', *arguments],
                          cwd=folder,
                          capture_output=True,
                          text=True)


def test_train(training):
    assert (training / 'net_iter_20.caffemodel').exists()
    assert 'Iteration 15' in (training / 'train.log').read_text()
    resume = ['--solver', 'solver.prototxt', '--snapshot', 'net_iter_10.solverstate']
    found = run_script('train', *resume, '--gpus', folder=training)
    assert found.returncode == 0 and 'Iteration 5,' not in found.stderr and 'Iteration 15' in found.stderr


def test_train_with_timing(training):
    found = run_script('train', '--solver', 'solver.prototxt', '--gpus', '--timing', folder=training)
    assert found.returncode == 0, found.stderr
    assert 'ip' in found.stdout + found.stderr


def test_train_errors(training):
    found = run_script('train', '--solver', 'none.prototxt', '--gpus', folder=training)
    assert found.returncode != 0 and 'none.prototxt' in found.stderr and 'Traceback' not in found.stderr
    found = run_script('train', '--gpus', folder=training)
    assert found.returncode == 2 and '--solver' in found.stderr


@pytest.mark.parametrize('delimiter', [',', ';'])
def test_parse_log(training, tmp_path, delimiter):
    found = run_script('parse_log', 'train.log', str(tmp_path), '--verbose', '--delimiter', delimiter, folder=training)
    assert found.returncode == 0, found.stderr
    assert f'Wrote {tmp_path}/train.log.train' in found.stdout
    for table, iterations in (('train', [0, 5, 10, 15]), ('test', [0, 10, 20])):
        with open(tmp_path / f'train.log.{table}', newline='') as file:
            rows = list(csv.DictReader(file, delimiter=delimiter))
        assert [float(row['NumIters']) for row in rows] == iterations
        assert {'NumIters', 'Seconds', 'LearningRate', 'loss'} <= set(rows[0])


def test_parse_log_errors(training, tmp_path):
    (tmp_path / 'no.log').write_text('nothing\n')
    found = run_script('parse_log', str(tmp_path / 'no.log'), str(tmp_path), folder=training)
    assert found.returncode == 1 and 'expected a training log' in found.stderr
    assert 'Traceback' not in found.stderr
    assert os.listdir(tmp_path) == ['no.log']


def test_program_is_found(monkeypatch, tmp_path):
    (tmp_path / 'crema').write_text('#!/bin/sh\necho mine "$@"\n')
    (tmp_path / 'crema').chmod(0o755)
    monkeypatch.setenv('CREMA_TOOLS', str(tmp_path))
    assert programs.run_verb('time', 3, capture_output=True, text=True).stdout == 'mine time 3\n'
    monkeypatch.delenv('CREMA_TOOLS')
    monkeypatch.setattr(programs, '__file__', str(tmp_path / 'a' / 'b' / 'crema' / 'programs.py'))
    monkeypatch.setenv('PATH', str(tmp_path))
    assert programs.find_program() == str(tmp_path / 'crema')
    monkeypatch.setenv('PATH', '')
    with pytest.raises(FileNotFoundError, match='CREMA_TOOLS'):
        programs.find_program()
