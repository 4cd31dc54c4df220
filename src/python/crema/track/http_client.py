"""Requests to a server, whose failures become TryAgain, Refused or GiveUp."""
import base64
import http.client
import json
import os
import ssl
import urllib.error
import urllib.parse
import urllib.request

from .problems import GiveUp, Refused, TryAgain

_SECONDS = 30  # that a server may take to answer


class Client:
    """`name`: what it is, for messages. Names and passwords in the address are never shown or stored."""

    def __init__(self, address, name, environment=os.environ):
        parts = urllib.parse.urlsplit(address)
        if parts.scheme not in ('http', 'https') or not parts.hostname:
            shown = address if '@' not in address else 'the address'
            raise GiveUp(f'{shown}: expected the address of a server, such as http://localhost:5000')
        self.address = urllib.parse.urlunsplit(
            (parts.scheme, parts.netloc.rpartition('@')[2], parts.path.rstrip('/'), '', ''))
        self.name = f'{name} at {self.address}'
        user, password = (urllib.parse.unquote(text or '') for text in (parts.username, parts.password))
        user = environment.get('MLFLOW_TRACKING_USERNAME') or user
        password = environment.get('MLFLOW_TRACKING_PASSWORD') or password
        token = environment.get('MLFLOW_TRACKING_TOKEN')
        self._authorization = None
        if user:
            self._authorization = 'Basic ' + base64.b64encode(f'{user}:{password}'.encode()).decode()
        elif token:
            self._authorization = 'Bearer ' + token
        if environment.get('MLFLOW_TRACKING_INSECURE_TLS') == 'true':
            context = ssl._create_unverified_context()
        else:
            context = ssl.create_default_context(cafile=environment.get('MLFLOW_TRACKING_SERVER_CERT_PATH'))
        self._opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))

    def json(self, method, path, message=None, query=()):
        """The server's answer to a JSON message."""
        data = None if message is None else json.dumps(message).encode()
        url = self.address + path + ('?' + urllib.parse.urlencode(query) if query else '')
        answer = self._send(method, url, data, {'Content-Type': 'application/json'} if data else {})
        try:
            return json.loads(answer or '{}')
        except ValueError as error:
            raise Refused(f'{self.name}: the answer to {path} is not JSON; is this the right address?') from error

    def put(self, path, content, size, kind):
        """`content`: bytes, or a file of this size."""
        headers = {'Content-Type': kind, 'Content-Length': str(size)}
        self._send('PUT', self.address + urllib.parse.quote(path), content, headers)

    def _send(self, method, url, data, headers):
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        if self._authorization:
            request.add_unredirected_header('Authorization', self._authorization)
        try:
            with self._opener.open(request, timeout=_SECONDS) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            raise self._problem(error) from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, 'reason', error)
            raise TryAgain(f'{self.name} does not answer: {reason}') from error

    def _problem(self, error):
        try:
            text = error.read(10000).decode(errors='replace')
        except (OSError, http.client.HTTPException):
            text = ''
        code = ''
        try:
            answer = json.loads(text)
            code, text = answer.get('error_code', ''), answer.get('message', '')
        except (ValueError, AttributeError):
            pass
        message = f'{self.name}: {error.code} {code or error.reason}' + (f': {text[:300]}' if text else '')
        if error.code == 429 or error.code >= 500:
            seconds = error.headers.get('Retry-After', '')
            return TryAgain(message, int(seconds) if seconds.isdigit() else None)
        if error.code in (401, 403):
            return GiveUp(message + '; set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN')
        refused = Refused(message)
        refused.code = code
        return refused
