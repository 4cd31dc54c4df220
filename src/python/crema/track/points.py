"""metrics.jsonl as points of curves: (name, value, iteration, milliseconds since 1970)."""
import datetime
import json

# These measure the machine: an iteration repeated after a resume has other values that say nothing new.
_OF_MACHINE = {'iterations_per_second', 'data_wait', 'seconds'}


def milliseconds(utc):
    """Of "2026-11-30T22:42:27Z"; 0 if it is something else."""
    try:
        time = datetime.datetime.strptime(utc, '%Y-%m-%dT%H:%M:%SZ')
    except (TypeError, ValueError):
        return 0
    return int(time.replace(tzinfo=datetime.timezone.utc).timestamp() * 1000)


class Points:
    """Reads the file from its beginning. `offset`: of the first byte not read. The last start, `status` and what has been
    read are known from all lines, so a tracker that starts again skips those that were sent."""

    def __init__(self, path):
        self.path, self.offset = path, 0
        self.started = 0
        self.ended = False  # a line says so, after the last start
        self.asked = False  # to end
        self.early = False  # early_stop
        self._known = {}

    def read(self, most=1000, until=None):
        """Points of the next whole lines; about `most` of them, or those before the offset `until`."""
        found = []
        try:
            with open(self.path, 'rb') as file:
                file.seek(self.offset)
                while len(found) < most and (until is None or self.offset < until):
                    line = file.readline()
                    if not line.endswith(b'\n'):  # still being written
                        break
                    self.offset += len(line)
                    found.extend(self._points(line))
        except FileNotFoundError:
            pass
        return found

    def _points(self, line):
        try:
            entry = json.loads(line)
            kind, step, values = entry['kind'], int(entry['iteration']), entry.get('values', {})
            time = self.started + int(1000 * entry.get('time', 0))
        except (ValueError, KeyError, TypeError, AttributeError):
            return []
        if kind == 'start':
            self.started = milliseconds(entry.get('started')) or self.started
            self.ended = self.asked = self.early = False
            return []
        self.early |= kind == 'early_stop'
        if kind == 'end':
            self.ended, self.asked = True, 'why' in entry
        if kind == 'test':
            kind = 'test' + (str(entry['net']) if entry.get('net') else '')
        elif kind not in ('train', 'epoch', 'skip', 'rollback', 'early_stop'):
            return []
        found = []
        for name, value in values.items():
            value = float('nan') if value is None else float(value)
            key = f'{kind}/{name}'
            known = self._known.get((key, step))
            # nan is not equal to itself, so texts are compared.
            if known is not None and (name in _OF_MACHINE or known == repr(value)):
                continue
            self._known[key, step] = repr(value)
            found.append((key, value, step, time))
        return found
