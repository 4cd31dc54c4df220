"""The parameters of a run: the fields of its solver and what run.json knows."""
import re

_TOKEN = re.compile(r'''\s+|\#[^\n]*|(?P<word>[\w.+-]+)|(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<sign>[{}:;,<>\[\]])''')

# Paths, and what run.json also has.
_LEFT_OUT = {'net', 'train_net', 'test_net', 'snapshot_prefix', 'device_id', 'random_seed', 'solver_mode'}


def _tokens(text):
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match:
            raise ValueError(f'unexpected character {text[at]!r}')
        at = match.end()
        if match.lastgroup:
            yield match.lastgroup, match.group()


def fields_of(text):
    """The fields of a prototxt as {"early_stop.output": "accuracy"}; repeated ones are joined by commas. Nets inside a
    solver (net_param and its kind) are left out: they are files of the run."""
    fields, path, name = {}, [], None
    for kind, token in _tokens(text):
        if token in '{<' and kind == 'sign':
            path.append(name)
            name = None
        elif token in '}>' and kind == 'sign':
            path.pop()
        elif kind == 'sign':
            continue
        elif kind == 'word' and name is None:
            name = token
        else:
            key = '.'.join([*path, name])
            value = token[1:-1] if kind == 'text' else token
            fields[key] = fields[key] + ',' + value if key in fields else value
            name = None
    return {key: value for key, value in fields.items()
            if not key.split('.')[0].endswith('net_param') and key not in _LEFT_OUT}
