"""A run on an MLflow server, by its REST API, so that MLflow need not be installed here."""
import math
import mimetypes
import os
import re
import time
import urllib.parse

from .http_client import Client
from .page import page_of
from .points import milliseconds
from .problems import GiveUp, Refused, warn

_API = '/api/2.0/mlflow/'
_IN_BATCH = 100  # parameters or tags
_VALUE, _TAG, _KEY = 500, 5000, 250  # characters that every version takes


def _key(name):
    return re.sub(r'[^\w. /-]', '_', name, flags=re.ASCII)[:_KEY]


class MlflowRun:
    name = 'mlflow'

    def __init__(self, options, folder, state):
        address = options.uri or os.environ.get('MLFLOW_TRACKING_URI')
        if not address:
            raise GiveUp('no server: set MLFLOW_TRACKING_URI, such as http://localhost:5000, or add -uri')
        self._client = Client(address, 'MLflow')
        self._folder, self._state = folder, state
        self._experiment = options.experiment or os.environ.get('MLFLOW_EXPERIMENT_NAME')
        self._id, self._artifacts = None, None
        if state.get('server', self._client.address) != self._client.address:
            raise GiveUp(f'{state.path}: this run was sent to {state.get("server")}; remove the file to send it to '
                         f'{self._client.address}')

    def _call(self, path, message=None, query=()):
        return self._client.json('GET' if query else 'POST', _API + path, message, query)

    def _experiment_id(self, name):
        for _ in range(2):
            try:
                return self._call('experiments/get-by-name', query={'experiment_name': name})['experiment']['experiment_id']
            except Refused as error:
                if getattr(error, 'code', '') != 'RESOURCE_DOES_NOT_EXIST':
                    raise GiveUp(str(error)) from error
            try:
                return self._call('experiments/create', {'name': name})['experiment_id']
            except Refused as error:  # another run has just created it, or the name is of a deleted one
                problem = error
        raise GiveUp(str(problem))

    def _create(self, record):
        """The run of this folder, which may be there already: a process that ended before it saved this created it."""
        experiment = self._experiment_id(self._experiment or record.get('net') or 'crema')
        mark = f'{record.get("host", "")}:{self._folder.path}:{record.get("started", "")}:{record.get("pid", "")}'
        mark = mark.replace("'", '_')
        found = self._call('runs/search', {'experiment_ids': [experiment], 'filter': f"tags.`crema.run` = '{mark}'",
                                           'max_results': 1}).get('runs')
        if not found:
            tags = {'crema.run': mark, 'mlflow.runName': self._folder.name, 'mlflow.source.name': 'crema train',
                    'mlflow.source.type': 'LOCAL', 'crema.command': record.get('command', '')[:_TAG],
                    'crema.folder': self._folder.path, 'crema.host': record.get('host', '')}
            message = {'experiment_id': experiment, 'run_name': self._folder.name,
                       'start_time': milliseconds(record.get('started')) or int(1000 * time.time()),
                       'tags': [{'key': key, 'value': value} for key, value in tags.items()]}
            found = [self._call('runs/create', message)['run']]
        self._state.save(server=self._client.address, run=found[0]['info']['run_id'],
                         artifact_uri=found[0]['info']['artifact_uri'])

    def open(self):
        try:
            if not self._state.get('run'):
                self._create(self._folder.record())
            self._id = self._state.get('run')
            self._call('runs/update', {'run_id': self._id, 'status': 'RUNNING'})
        except Refused as error:
            raise GiveUp(f'{error}; if the run was deleted there, remove {self._state.path} to send it again') from error
        uri = urllib.parse.urlsplit(self._state.get('artifact_uri', ''))
        if uri.scheme == 'mlflow-artifacts':
            self._artifacts = '/api/2.0/mlflow-artifacts/artifacts/' + uri.path.lstrip('/')
        elif not self._state.get('told_of_artifacts'):
            warn(f'{self._client.name} takes no files, because it keeps them in {self._state.get("artifact_uri")}; '
                 f'`mlflow server --serve-artifacts` does')
            self._state.save(told_of_artifacts=True)
        self._send_parameters()

    def _send_parameters(self):
        """Once each: MLflow refuses other values. What a resumed run has changed becomes a tag."""
        sent = self._state.get('parameters', {})
        now = self._folder.parameters()
        new = [(name, value) for name, value in now.items() if name not in sent]
        for at in range(0, len(new), _IN_BATCH):
            part = new[at:at + _IN_BATCH]
            self._batch(params=[{'key': _key(name), 'value': value[:_VALUE]} for name, value in part])
            sent.update(part)
            self._state.save(parameters=sent)
        changed = [(name, value) for name, value in now.items() if sent[name] != value]
        if changed:
            self._batch(tags=[{'key': _key('resumed.' + name), 'value': value[:_TAG]} for name, value in changed[:_IN_BATCH]])

    def _batch(self, **items):
        try:
            self._call('runs/log-batch', {'run_id': self._id, **items})
        except Refused as error:
            if getattr(error, 'code', '') == 'RESOURCE_DOES_NOT_EXIST':
                raise GiveUp(str(error)) from error
            warn(f'{error}; these {" and ".join(items)} are left out')

    def send(self, points):
        """A server keeps a point that is sent twice once: its time is that of the event."""
        for at in range(0, len(points), 1000):
            self._batch(metrics=[{'key': _key(key), 'value': value if math.isfinite(value) else 'NaN', 'timestamp': time,
                                  'step': step} for key, value, step, time in points[at:at + 1000]])

    def send_pictures(self, tag, shown):
        page = page_of(shown).encode()
        self._put(f'pictures/{tag}.html', page, len(page), 'text/html')

    def send_file(self, name):
        path = self._folder.file(name)
        kind = 'text/plain' if name.endswith(('.prototxt', '.log')) else mimetypes.guess_type(name)[0]
        with open(path, 'rb') as file:
            # A log may grow meanwhile; what was promised is sent.
            self._put(name, file, os.fstat(file.fileno()).st_size, kind or 'application/octet-stream')

    def _put(self, name, content, size, kind):
        if not self._artifacts:
            return
        try:
            self._client.put(f'{self._artifacts}/{name}', content, size, kind)
        except Refused as error:
            warn(f'{error}; {name} is left out')

    def close(self, status):
        self._call('runs/update', {'run_id': self._id, 'status': status, 'end_time': int(1000 * time.time())})
