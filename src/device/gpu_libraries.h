// cuBLAS and cuDNN, loaded when the first GPU is opened. If the program linked them, they would
// dominate its start-up time and memory, even where the CPU computes, and it would not start
// without them.
#pragma once

namespace crema {

// Loads them on the first call; after that, every function that gpu_libraries.cpp lists can be
// called as the libraries' headers declare it. Error with the loader's reason. Thread-safe.
void load_gpu_libraries();

// The version of cuDNN, which this loads if necessary: 91400 is 9.14.0. Error as above.
int cudnn_version();

}  // namespace crema
