"""What has been sent, in RUN/track/NAME.json, so that a new start continues there. One process per run and tracker."""
import fcntl
import json
import os

from .problems import GiveUp, say


class State:
    """A dict that save() writes. Waits for another process that sends the same run to the same tracker."""

    def __init__(self, folder, name):
        self.path = os.path.join(folder, 'track', name + '.json')
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            self._lock = open(self.path[:-len('json')] + 'lock', 'w', encoding='utf-8')
        except OSError as error:
            raise GiveUp(f'{error.filename}: {error.strerror}; the tracker keeps there what has been sent') from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f'waiting for the process that already sends this run to {name}')
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        except OSError:
            pass  # some file systems have no locks
        self.values = {}
        if os.path.exists(self.path):
            try:
                with open(self.path, encoding='utf-8') as file:
                    self.values = json.load(file)
            except ValueError as error:
                raise GiveUp(f'{self.path}: {error}; remove it to send the run again') from error

    def save(self, **values):
        self.values.update(values)
        with open(self.path + '.new', 'w', encoding='utf-8') as file:
            json.dump(self.values, file, indent=1)
        os.replace(self.path + '.new', self.path)

    def get(self, name, default=None):
        return self.values.get(name, default)

    def close(self):
        """Lets other processes continue."""
        self._lock.close()
