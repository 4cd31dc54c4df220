"""python3 -m crema.track, or python3 FOLDER/crema/track for a Python that cannot import crema: the second form loads this
folder alone, under another name."""
import importlib.util
import os
import sys

if __package__:
    from .command import main
else:
    FOLDER = os.path.dirname(os.path.abspath(__file__))
    # Python puts this folder first on the path, where its modules would hide others.
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != FOLDER]
    SPEC = importlib.util.spec_from_file_location('crema_track', os.path.join(FOLDER, '__init__.py'),
                                                  submodule_search_locations=[FOLDER])
    sys.modules['crema_track'] = importlib.util.module_from_spec(SPEC)
    SPEC.loader.exec_module(sys.modules['crema_track'])
    from crema_track.command import main

if __name__ == '__main__':
    sys.exit(main())
