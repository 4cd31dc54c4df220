// cuBLAS and cuDNN are loaded with the first GPU. Linked to the program they would be most of its
// start and of its memory, also where the CPU computes, and it would not start without them.
#pragma once

namespace crema {

// Loads them, the first time; afterwards every function that gpu_libraries.cpp lists can be called
// as the libraries' headers declare it. Error with the loader's reason. From any thread.
void load_gpu_libraries();

// Of the cuDNN that is loaded, or is by this: 91400 is 9.14.0. Error as above.
int cudnn_version();

}  // namespace crema
