"""The programs of an installed package: each executes crema/bin/crema under its own name. This is a separate module, because
importing crema would load the library twice."""
import os
import sys


def main():
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "crema", "bin", "crema")
    # Python layers run in the Python that the package is installed in.
    os.environ.setdefault("PYTHON", sys.executable)
    try:
        os.execv(program, [os.path.basename(sys.argv[0])] + sys.argv[1:])
    except OSError as error:
        sys.exit("%s: %s: %s; install the package again" % (sys.argv[0], program, error.strerror))
