"""Sends a run to one tracker until the run has ended and everything is there."""
import os
import signal
import time

from .points import Points
from .problems import Refused, TryAgain, say, warn

_LOOK = 2.0  # seconds between looks at the folder
_LONGEST = 60.0  # seconds between tries


class Follower:
    """`patience`: seconds to wait for a server that is away once the run has ended."""

    def __init__(self, tracker, folder, state, patience, every_snapshot=False):
        self._tracker, self._folder, self._state = tracker, folder, state
        self._patience, self._every_snapshot = patience, every_snapshot
        self._points = Points(folder.file('metrics.jsonl'))
        self._points.read(most=float('inf'), until=state.get('offset', 0))
        self._open, self._waiting = False, []
        self._deadline = None
        self._told = None

    def run(self):
        """Returns whether everything is there."""
        if self._all_sent():
            say(f'{self._tracker.name}: this run has been sent')
            return True
        signal.signal(signal.SIGTERM, self._on_sigterm)
        pause = 1.0
        while True:
            over = self._over()  # asked first: what is written until then is read afterwards
            if over and self._deadline is None:
                self._deadline = time.monotonic() + self._patience
            elif not over:
                self._deadline = None
            try:
                self._send_news()
                if over and not self._over():  # resumed meanwhile
                    continue
                if over:
                    self._finish()
                    return True
                if self._told:
                    say(f'{self._tracker.name}: sending again')
                pause, self._told = 1.0, None
                time.sleep(_LOOK)
            except TryAgain as problem:
                if self._deadline is not None and time.monotonic() + pause > self._deadline:
                    warn(f'{problem}; not everything has been sent; later do so with: python3 -m crema.track '
                         f'{self._folder.path} -to {self._tracker.name}')
                    return False
                if self._told is None:  # once: it may take days
                    warn(f'{problem}; trying again until it works')
                self._told = str(problem)
                time.sleep(min(max(pause, problem.seconds or 0), _LONGEST))
                pause = min(2 * pause, _LONGEST)

    def _all_sent(self):
        """Whether an earlier process has sent everything, and nothing is new."""
        files = self._folder.texts() + self._folder.results(self._every_snapshot)
        end = os.path.getsize(self._points.path) if os.path.exists(self._points.path) else 0
        return (self._over() and self._state.get('status') == self.status() and self._points.offset == end and
                all(self._version(name) == self._state.get('files', {}).get(name) for name in files))

    def _version(self, name):
        about = os.stat(self._folder.file(name))
        return [about.st_size, about.st_mtime_ns]

    def _on_sigterm(self, number, frame):
        """Schedulers send it to all processes of a job. The run then writes a snapshot and ends, which is still sent; a
        second one ends this process at once."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._patience = min(self._patience, 30)
        if self._deadline is not None:
            self._deadline = min(self._deadline, time.monotonic() + self._patience)

    def _over(self):
        alive = self._folder.alive()
        return self._points.ended if alive is None else not alive

    def _send_news(self):
        if not self._open:
            self._tracker.open()
            self._open = True
            self._send_files(self._folder.texts())
        while True:
            # Those that could not be sent come first.
            self._waiting = self._waiting or self._points.read()
            if self._waiting:
                self._tracker.send(self._waiting)
                self._waiting = []
            if self._points.offset == self._state.get('offset', 0):
                break
            self._state.save(offset=self._points.offset)
        sent = self._state.get('pictures', {})
        for tag, shown in self._folder.pictures():
            if sent.get(tag) != shown.get('iteration'):
                self._tracker.send_pictures(tag, shown)
                sent[tag] = shown.get('iteration')
                self._state.save(pictures=sent)

    def _send_files(self, names):
        sent = self._state.get('files', {})
        for name in names:
            try:
                version = self._version(name)
                if sent.get(name) == version:
                    continue
                self._tracker.send_file(name)
            except FileNotFoundError:  # an older snapshot, removed meanwhile
                continue
            sent[name] = version
            self._state.save(files=sent)

    def _finish(self):
        self._send_files(self._folder.texts() + self._folder.results(self._every_snapshot))
        status = self.status()
        try:
            self._tracker.close(status)
        except Refused as error:
            warn(str(error))
        self._state.save(status=status)
        say(f'{self._tracker.name}: everything has been sent ({status})')

    def status(self):
        if self._points.ended:
            return 'KILLED' if self._points.asked and not self._points.early else 'FINISHED'
        return 'FAILED' if self._folder.failed() else 'KILLED'
