"""python3 -m crema.track."""
import argparse
import os
import subprocess
import sys

from .folder import Folder
from .follow import Follower
from .mlflow_run import MlflowRun
from .problems import GiveUp, warn
from .state import State
from .wandb_run import WandbRun

_TRACKERS = {'mlflow': MlflowRun, 'wandb': WandbRun}


def _options(words):
    parser = argparse.ArgumentParser(
        prog='python3 -m crema.track', allow_abbrev=False,
        description='Sends the folder of a run to MLflow or Weights & Biases: until the run ends, or at once if it has ended.')
    parser.add_argument('run', metavar='RUN', help='the folder: of crema train -run')
    parser.add_argument('-to', required=True, metavar='NAMES', help='mlflow, wandb or mlflow,wandb')
    parser.add_argument('-uri', help="MLflow's server; without it MLFLOW_TRACKING_URI")
    parser.add_argument('-experiment', help="MLflow's experiment or W&B's project; without it MLFLOW_EXPERIMENT_NAME or "
                        "WANDB_PROJECT, else the name of the net")
    parser.add_argument('-snapshots', action='store_true', help='send all weights and states, not the last and the best weights only')
    parser.add_argument('-patience', type=float, default=600, metavar='SECONDS',
                        help='how long to wait for a server that is away when the run has ended (default: %(default)s)')
    options = parser.parse_args(words)
    options.to = list(dict.fromkeys(options.to.split(',')))
    unknown = [name for name in options.to if name not in _TRACKERS]
    if unknown:
        parser.error(f'-to has {unknown[0]!r}; expected {" or ".join(_TRACKERS)}, or both separated by a comma')
    return options


def _each(options, words):
    """One process per tracker, so that none waits for the other."""
    at = words.index('-to') + 1 if '-to' in words else next(i for i, word in enumerate(words) if word.startswith('-to='))
    program = [sys.executable, os.path.dirname(os.path.abspath(__file__))]
    running = []
    for name in options.to:
        own = words[:at] + [name if words[at - 1] == '-to' else '-to=' + name] + words[at + 1:]
        running.append(subprocess.Popen(program + own))
    return max(process.wait() for process in running)


def main(words=None):
    words = sys.argv[1:] if words is None else words
    options = _options(words)
    if len(options.to) > 1:
        return _each(options, words)
    name, state = options.to[0], None
    try:
        folder = Folder(options.run)
        state = State(folder.path, name)
        tracker = _TRACKERS[name](options, folder, state)
        return 0 if Follower(tracker, folder, state, options.patience, options.snapshots).run() else 1
    except GiveUp as problem:
        warn(f'{name}: {problem}')
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if state:
            state.close()
