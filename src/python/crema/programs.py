"""Finds and runs crema's program, for functions that a verb performs."""
import os
import shutil
import subprocess

__all__ = ['find_program', 'run_verb']


def find_program():
    """Returns the path of the program `crema`: of the environment variable CREMA_TOOLS (a folder), of the installed
    package, of the build or the installation that this package is in, or of the PATH. Raises FileNotFoundError if
    there is none."""
    package = os.path.dirname(os.path.abspath(__file__))
    beside = os.path.dirname(os.path.dirname(package))
    places = [
        os.environ.get('CREMA_TOOLS'),
        os.path.join(package, 'bin'),
        os.path.join(beside, 'tools'),
        os.path.join(beside, 'bin')
    ]
    for folder in places:
        if folder and os.access(os.path.join(folder, 'crema'), os.X_OK):
            return os.path.join(folder, 'crema')
    found = shutil.which('crema')
    if found is None:
        raise FileNotFoundError(
            'The program "crema" is not there: not next to the package, not on the PATH; CREMA_TOOLS may name '
            'its folder')
    return found


def run_verb(*arguments, **options):
    """Runs `crema VERB ...` and returns what subprocess.run does; options are those of subprocess.run."""
    return subprocess.run([find_program(), *map(str, arguments)], **options)
