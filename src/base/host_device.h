// CREMA_HD marks functions that are compiled for the GPU too when nvcc reads them.
#pragma once

#ifdef __CUDACC__
#define CREMA_HD __host__ __device__
#else
#define CREMA_HD
#endif
