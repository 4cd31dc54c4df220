"""Reads a run folder (tools/runs/run_folder.h), also while the run writes it."""
import glob
import json
import os
import re
import socket

from .problems import GiveUp
from .settings import fields_of


class Folder:
    def __init__(self, path):
        self.path = os.path.abspath(path)
        self.name = os.path.basename(self.path)
        if not os.path.isfile(self.file('run.json')):
            raise GiveUp(f'{path}: no run.json; expected the folder of a run, as `crema train -run {path}` makes it')
        self.record()

    def file(self, name):
        return os.path.join(self.path, name)

    def text(self, name):
        with open(self.file(name), encoding='utf-8', errors='replace') as file:
            return file.read()

    def record(self):
        try:
            record = json.loads(self.text('run.json'))
        except ValueError as error:
            raise GiveUp(f'{self.file("run.json")}: {error}') from error
        if not isinstance(record, dict):
            raise GiveUp(f'{self.file("run.json")}: expected a JSON object')
        return record

    def parameters(self):
        """By name, as texts."""
        record = self.record()
        found = {name: str(record[name]) for name in ('net', 'device', 'seed', 'version') if name in record}
        try:
            found.update(fields_of(self.text('solver.prototxt')))
        except (OSError, ValueError):  # not written yet, or edited
            pass
        for name, value in record.get('flags', {}).items():
            if name not in ('solver', 'set', 'run', 'track', 'snapshot'):  # -set is in the solver and the nets
                found['flag.' + name] = ','.join(value) if isinstance(value, list) else str(value)
        for setting in record.get('flags', {}).get('set', []):
            name, _, value = setting.partition('=')
            if name not in found:  # of a net, or a variable
                found['set.' + name] = value
        return found

    def pictures(self):
        """(tag, content) of each kind of pictures."""
        for path in sorted(glob.glob(glob.escape(self.file('pictures')) + '/*.json')):
            try:
                with open(path, encoding='utf-8') as file:
                    yield os.path.basename(path)[:-len('.json')], json.load(file)
            except (OSError, ValueError):  # being replaced
                continue

    def texts(self):
        """Names of the files that say what is trained."""
        return ['run.json'] + sorted(name for name in os.listdir(self.path) if name.endswith('.prototxt'))

    def results(self, every_snapshot):
        """Names of the files that the end leaves: log, table, confusions, the last and the best weights."""
        names = [name for name in ('train.log', 'metrics.csv') if os.path.isfile(self.file(name))]
        if not os.path.isdir(self.file('snapshots')):
            return names
        last, kept = -1, []
        for name in sorted(os.listdir(self.file('snapshots'))):
            numbered = re.search(r'_iter_(\d+)\.caffemodel(\.h5)?$', name)
            if every_snapshot or name.endswith('.csv') or re.search(r'_best\.caffemodel(\.h5)?$', name):
                kept.append(name)
            elif numbered and int(numbered[1]) > last:
                last, newest = int(numbered[1]), name
        if last >= 0:
            kept.append(newest)
        return names + ['snapshots/' + name for name in kept if not name.startswith('.')]

    def alive(self):
        """Whether the process of the last start is running: it holds the log open. None: it is on another machine."""
        record = self.record()
        start = (record.get('resumptions') or [record])[-1]
        if start.get('host') not in (socket.gethostname(), 'localhost'):
            return None
        folder = f'/proc/{start.get("pid")}/fd'
        try:
            log = os.stat(self.file('train.log'))
            for name in os.listdir(folder):
                try:
                    if os.path.samestat(os.stat(os.path.join(folder, name)), log):
                        return True
                except OSError:  # closed meanwhile
                    continue
        except PermissionError:  # another user's
            return True
        except OSError:
            pass
        return False

    def failed(self):
        """Whether the log ends with an error."""
        try:
            lines = self.text('train.log').splitlines()[-20:]
        except OSError:
            return False
        return any(re.match(r'[EF]\d{4} ', line) for line in lines)
