"""A server that answers as MLflow's REST API does, for test_track.py: what it answers was compared with `mlflow server` 3.17."""
import http.server
import json
import re
import threading
import urllib.parse


class Server:
    """`faults`: answers to the next requests before real ones: (code, headers), or None to answer. `requests`: (method, path,
    message, headers) of all."""

    def __init__(self, port=0):
        self.experiments, self.runs, self.files = {}, {}, {}
        self.faults, self.requests = [], []
        self.lock = threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def handle_any(self):
                body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
                with outer.lock:
                    code, answer, headers = outer.answer(self.command, self.path, body, dict(self.headers))
                data = json.dumps(answer).encode()
                self.send_response(code)
                for name, value in {**headers, 'Content-Length': str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = handle_any

            def log_message(self, *arguments):
                pass

        self.http = http.server.ThreadingHTTPServer(('127.0.0.1', port), Handler)
        self.url = f'http://127.0.0.1:{self.http.server_port}'
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02, ), daemon=True)
        self.thread.start()

    def stop(self):
        self.http.shutdown()
        self.http.server_close()

    @property
    def run(self):
        assert len(self.runs) == 1, list(self.runs)
        return next(iter(self.runs.values()))

    def answer(self, method, path, body, headers):
        parts = urllib.parse.urlsplit(path)
        query = dict(urllib.parse.parse_qsl(parts.query))
        is_file = parts.path.startswith('/api/2.0/mlflow-artifacts/artifacts/')
        message = body if is_file else json.loads(body or '{}')
        self.requests.append((method, parts.path, message, headers))
        fault = self.faults.pop(0) if self.faults else None
        if fault:
            return fault[0], {'error_code': 'TEMPORARILY_UNAVAILABLE', 'message': 'a fault of the test'}, fault[1]
        if is_file:
            self.files[urllib.parse.unquote(parts.path.split('/artifacts/', 2)[2])] = body
            return 200, {}, {}
        call = getattr(self, parts.path[len('/api/2.0/mlflow/'):].replace('/', '_').replace('-', '_'))
        try:
            return 200, call({**query, **message}), {}
        except Problem as problem:
            return problem.code, {'error_code': problem.name, 'message': str(problem)}, {}

    def experiments_get_by_name(self, asked):
        if asked['experiment_name'] not in self.experiments:
            raise Problem(404, 'RESOURCE_DOES_NOT_EXIST', 'no such experiment')
        return {'experiment': {'experiment_id': self.experiments[asked['experiment_name']]}}

    def experiments_create(self, asked):
        return {'experiment_id': self.experiments.setdefault(asked['name'], str(len(self.experiments) + 1))}

    def runs_search(self, asked):
        mark = re.fullmatch(r"tags\.`crema\.run` = '([^']*)'", asked['filter'])[1]
        return {'runs': [{'info': run['info']} for run in self.runs.values() if run['tags']['crema.run'] == mark]}

    def runs_create(self, asked):
        name = f'run{len(self.runs)}'
        info = {'run_id': name, 'artifact_uri': f'mlflow-artifacts:/{asked["experiment_id"]}/{name}/artifacts',
                'start_time': asked['start_time'], 'status': 'RUNNING', 'run_name': asked['run_name']}
        self.runs[name] = {'info': info, 'tags': {tag['key']: tag['value'] for tag in asked['tags']}, 'params': {}, 'points': []}
        return {'run': {'info': info}}

    def _run(self, asked):
        if asked['run_id'] not in self.runs:
            raise Problem(404, 'RESOURCE_DOES_NOT_EXIST', 'no such run')
        return self.runs[asked['run_id']]

    def runs_update(self, asked):
        self._run(asked)['info'].update(asked)
        return {}

    def runs_log_batch(self, asked):
        run = self._run(asked)
        metrics, params, tags = (asked.get(name, []) for name in ('metrics', 'params', 'tags'))
        if len(metrics) > 1000 or len(params) > 100 or len(tags) > 100:
            raise Problem(400, 'INVALID_PARAMETER_VALUE', 'too many in a batch')
        for item in metrics + params + tags:
            if not re.fullmatch(r'[\w. /-]{1,250}', item['key'], re.ASCII):
                raise Problem(400, 'INVALID_PARAMETER_VALUE', f'invalid name {item["key"]}')
        for param in params:
            if len(param['value']) > 500 or run['params'].get(param['key'], param['value']) != param['value']:
                raise Problem(400, 'INVALID_PARAMETER_VALUE', f'invalid or changed {param["key"]}')
        run['params'].update((param['key'], param['value']) for param in params)
        run['tags'].update((tag['key'], tag['value']) for tag in tags)
        known = set(map(repr, run['points']))
        for metric in metrics:
            point = (metric['key'], metric['step'], float(metric['value']), metric['timestamp'])
            if repr(point) not in known:  # MLflow's tables have each once
                run['points'].append(point)
        return {}


class Problem(Exception):
    def __init__(self, code, name, text):
        super().__init__(text)
        self.code, self.name = code, name
