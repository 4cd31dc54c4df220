// Python layers in the programs: the first one starts the interpreter of the user's Python.
#pragma once

#include "base/log.h"

namespace crema {

// From now on a net with a Python layer that has no native version starts Python: $PYTHON, the one
// of $VIRTUAL_ENV, or the first python3 on the path that has NumPy, a shared library, and a crema
// module made for it. Its packages and PYTHONPATH apply as if it ran a script; the program keeps
// handling signals. Programs without such nets load nothing. `log` must live as long as nets are
// made.
void offer_python(Log& log);

}  // namespace crema
