// The identifiers of the HDF5 library that are used here. Macros such as H5T_NATIVE_FLOAT call H5open()
// before they read these variables.
#pragma once

#define CREMA_HDF5_IDS                       \
  CREMA_HDF5_ID(H5P_CLS_DATASET_CREATE_ID_g) \
  CREMA_HDF5_ID(H5P_CLS_FILE_ACCESS_ID_g)    \
  CREMA_HDF5_ID(H5P_CLS_FILE_CREATE_ID_g)    \
  CREMA_HDF5_ID(H5P_CLS_GROUP_CREATE_ID_g)   \
  CREMA_HDF5_ID(H5P_CLS_LINK_ACCESS_ID_g)    \
  CREMA_HDF5_ID(H5P_CLS_LINK_CREATE_ID_g)    \
  CREMA_HDF5_ID(H5T_C_S1_g)                  \
  CREMA_HDF5_ID(H5T_NATIVE_DOUBLE_g)         \
  CREMA_HDF5_ID(H5T_NATIVE_FLOAT_g)          \
  CREMA_HDF5_ID(H5T_NATIVE_INT32_g)          \
  CREMA_HDF5_ID(H5T_NATIVE_UINT64_g)
