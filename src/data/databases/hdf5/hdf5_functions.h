// The functions of the HDF5 library that are used here. It brings 28 other libraries along, so it is
// loaded with the first use (base/late_library.h). In namespace crema these names hide the library's
// own; one that is missing here is an undefined symbol when libcrema is linked.
#pragma once

#include <hdf5.h>

#include "base/late_library.h"
#include "data/databases/hdf5/hdf5_ids.h"

namespace crema {

inline constinit LateLibrary hdf5_library("libcrema_hdf5.so");

// Expands names that HDF5 defines as macros for one of several versions.
#define CREMA_HDF5(name) CREMA_HDF5_FUNCTION(name)
#define CREMA_HDF5_FUNCTION(name) \
  inline constinit LateFunction<decltype(::name)> name(hdf5_library, #name);

// clang-format off
CREMA_HDF5(H5Aclose) CREMA_HDF5(H5Aexists) CREMA_HDF5(H5Aget_space) CREMA_HDF5(H5Aget_type)
CREMA_HDF5(H5Aopen) CREMA_HDF5(H5Aread) CREMA_HDF5(H5Dclose) CREMA_HDF5(H5Dcreate2)
CREMA_HDF5(H5Dget_create_plist) CREMA_HDF5(H5Dget_space) CREMA_HDF5(H5Dget_storage_size)
CREMA_HDF5(H5Dget_type) CREMA_HDF5(H5Dread) CREMA_HDF5(H5Dwrite) CREMA_HDF5(H5Eget_auto2)
CREMA_HDF5(H5Eset_auto2) CREMA_HDF5(H5Fclose) CREMA_HDF5(H5Fcreate) CREMA_HDF5(H5Fflush)
CREMA_HDF5(H5Fget_file_image) CREMA_HDF5(H5Fopen) CREMA_HDF5(H5Gclose) CREMA_HDF5(H5Gcreate2)
CREMA_HDF5(H5Gopen2) CREMA_HDF5(H5Iget_type) CREMA_HDF5(H5Lexists) CREMA_HDF5(H5Literate)
CREMA_HDF5(H5Oclose) CREMA_HDF5(H5Oopen) CREMA_HDF5(H5Pclose) CREMA_HDF5(H5Pcreate)
CREMA_HDF5(H5Pget_chunk) CREMA_HDF5(H5Pget_external_count) CREMA_HDF5(H5Pget_layout)
CREMA_HDF5(H5Pget_nfilters) CREMA_HDF5(H5Pset_chunk) CREMA_HDF5(H5Pset_create_intermediate_group)
CREMA_HDF5(H5Pset_deflate) CREMA_HDF5(H5Pset_elink_cb) CREMA_HDF5(H5Pset_fapl_core)
CREMA_HDF5(H5Pset_file_image_callbacks) CREMA_HDF5(H5Pset_obj_track_times)
CREMA_HDF5(H5Pset_shuffle) CREMA_HDF5(H5Sclose) CREMA_HDF5(H5Screate) CREMA_HDF5(H5Screate_simple)
CREMA_HDF5(H5Sget_simple_extent_dims) CREMA_HDF5(H5Sget_simple_extent_ndims)
CREMA_HDF5(H5Sget_simple_extent_type) CREMA_HDF5(H5Sselect_hyperslab) CREMA_HDF5(H5Tclose)
CREMA_HDF5(H5Tcopy) CREMA_HDF5(H5Tget_class) CREMA_HDF5(H5Tget_precision) CREMA_HDF5(H5Tget_size)
CREMA_HDF5(H5Tis_variable_str) CREMA_HDF5(H5Tset_size) CREMA_HDF5(H5Zfilter_avail)
CREMA_HDF5(H5check_version) CREMA_HDF5(H5open)
#if H5_VERSION_GE(1, 12, 0)
CREMA_HDF5(H5Oget_info3)
#else
CREMA_HDF5(H5Oget_info)
#endif
#if H5_VERSION_GE(1, 10, 7)
CREMA_HDF5(H5Pset_file_locking)
#endif
// clang-format on

#undef CREMA_HDF5
#undef CREMA_HDF5_FUNCTION

#define CREMA_HDF5_ID(name) \
  inline constinit LateValue<hid_t> name(hdf5_library, "crema_late_" #name);
                                                                CREMA_HDF5_IDS
#undef CREMA_HDF5_ID

}  // namespace crema
