// libcrema_hdf5.so, which brings the HDF5 library (base/late_library.h). Functions are looked up in that
// library itself. Its variables may have been moved into a program that uses them, too, which only the
// linker knows: so these functions read them.
#include <hdf5.h>

#include "data/databases/hdf5/hdf5_ids.h"

#define CREMA_HDF5_ID(name) \
  extern "C" hid_t crema_late_##name() { return name; }
CREMA_HDF5_IDS
