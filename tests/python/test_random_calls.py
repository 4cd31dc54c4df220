"""A sample of random_calls.py, which says how to run more of it."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
import random_calls


def test_random_calls():
    problem, made, _ = random_calls.one_seed(1, 200)
    assert not problem, f'python3 tests/python/random_calls.py --seed 1 --calls 200\n   {problem}'
    assert made > 180


@pytest.mark.parametrize('found, code', [
    ('exit code -11', 'import ctypes; ctypes.string_at(0)'),
    ('exit code none, it hangs', 'import time; time.sleep(60)'),
    ('a file outside is opened', 'open("../outside", "w")'),
])
def test_what_is_found(found, code, tmp_path, monkeypatch):
    script = tmp_path / 'child.py'
    with open(random_calls.__file__) as file:
        script.write_text(file.read().replace('    caller = Caller(', f'    {code}\n    caller = Caller('))
    monkeypatch.setattr(random_calls, '__file__', str(script))
    problem, *_ = random_calls.one_seed(1, 1, 1 if 'hangs' in found else 30)
    assert found in problem
