// CREMA_HD marks functions that nvcc also compiles for the GPU.
#pragma once

#ifdef __CUDACC__
#define CREMA_HD __host__ __device__
#else
#define CREMA_HD
#endif
