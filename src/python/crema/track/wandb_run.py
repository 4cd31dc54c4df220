"""A run of Weights & Biases, by its package. Offline without a key: `wandb sync` sends it later."""
import importlib.util
import io
import netrc
import os
import sys
import uuid

from .page import images_of, page_of
from .problems import GiveUp, TryAgain, say


def _has_key():
    if os.environ.get('WANDB_API_KEY'):
        return True
    host = os.environ.get('WANDB_BASE_URL', 'https://api.wandb.ai').split('://')[-1].split('/')[0].split(':')[0]
    try:
        return netrc.netrc().authenticators(host) is not None
    except (OSError, netrc.NetrcParseError):
        return False


class WandbRun:
    name = 'wandb'

    def __init__(self, options, folder, state):
        if importlib.util.find_spec('wandb') is None:
            raise GiveUp(f'{sys.executable} has no package wandb: pip install wandb there, or name another Python in the '
                         f'variable PYTHON; then send the run with: python3 -m crema.track {folder.path} -to wandb')
        self._folder, self._state = folder, state
        self._project = options.experiment or os.environ.get('WANDB_PROJECT')
        self._every_snapshot = options.snapshots
        self._run = None

    def open(self):
        import wandb
        if not self._state.get('run'):
            self._state.save(run=uuid.uuid4().hex[:8])
        mode = os.environ.get('WANDB_MODE') or ('online' if _has_key() else 'offline')
        project = self._project or self._folder.record().get('net') or 'crema'
        for sign in '/\\#?%:':
            project = project.replace(sign, '_')
        place = self._folder.file('track')
        try:
            self._run = wandb.init(project=project, id=self._state.get('run'), name=self._folder.name, dir=place, mode=mode,
                                   resume='allow', config=self._folder.parameters(),
                                   settings=wandb.Settings(console='off', save_code=False, disable_git=True))
        except Exception as error:  # its own classes differ between versions
            raise TryAgain(f'wandb: {error}') from error
        if mode == 'offline':
            say(f'wandb: offline; `wandb sync {place}/wandb/offline-run-*` sends the run later')
        self._run.define_metric('iteration')
        self._run.define_metric('*', step_metric='iteration')

    def send(self, points):
        """One row for the points of each event."""
        rows = {}
        for key, value, step, time in points:
            rows.setdefault((step, time), {})[key] = value
        for (step, time), row in rows.items():
            self._run.log({**row, 'iteration': step, '_timestamp': time / 1000})

    def send_pictures(self, tag, shown):
        """As images if Pillow is there, which wandb needs for that, otherwise as a page."""
        import wandb
        if importlib.util.find_spec('PIL') is None:
            shown_as = wandb.Html(page_of(shown), inject=False)
        else:
            from PIL import Image
            shown_as = [wandb.Image(Image.open(io.BytesIO(data)), caption=caption) for data, caption in images_of(shown)]
        self._run.log({'pictures/' + tag: shown_as, 'iteration': shown.get('iteration', 0)})

    def send_file(self, name):
        """All files go into one artifact, at the end."""

    def close(self, status):
        import wandb
        files = self._folder.texts() + self._folder.results(self._every_snapshot)
        artifact = wandb.Artifact('run-' + self._state.get('run'), type='run')
        for name in files:
            if os.path.isfile(self._folder.file(name)):
                artifact.add_file(self._folder.file(name), name=name)
        self._run.log_artifact(artifact)
        self._run.summary['status'] = status
        try:
            self._run.finish(exit_code=0 if status == 'FINISHED' else 1)
        except Exception as error:
            raise TryAgain(f'wandb: {error}') from error
