// cuBLAS and cuDNN are loaded when the first GPU is opened. If the program linked them, they would
// dominate its start-up time and memory, even if the CPU computes, and it would not start without
// them.
//   #define NAMES(F) F(function) F(another)      every function that is called; the linker names
//   NAMES(CREMA_JUMP)                            any that is missing
//   constexpr GpuFunction kNames[] = {NAMES(CREMA_FUNCTION)};
// defines each name as a jump through a pointer that load_gpu_library() sets, so neither callers
// nor argument types matter. The symbols are hidden, so that no other library in the process binds
// to them.
#pragma once

#include <span>

#if defined(__x86_64__)
#define CREMA_JUMP_TO(name) "  jmp *crema_at_" #name "(%rip)\n"
#elif defined(__aarch64__)
// In the register that calls may change on their way.
#define CREMA_JUMP_TO(name)                \
  "  adrp x16, crema_at_" #name            \
  "\n"                                     \
  "  ldr x16, [x16, :lo12:crema_at_" #name \
  "]\n"                                    \
  "  br x16\n"
#else
#error \
    "the jump to a function of another library is written for x86-64 and arm64: add your processor's, or use -DCREMA_CUDA=OFF"
#endif
#define CREMA_JUMP(name)                                          \
  extern "C" [[gnu::visibility("hidden")]] void* crema_at_##name; \
  void* crema_at_##name = nullptr;                                \
  asm(".pushsection .text\n"                                      \
      ".globl " #name                                             \
      "\n"                                                        \
      ".hidden " #name                                            \
      "\n"                                                        \
      ".type " #name ", @function\n" #name ":\n" CREMA_JUMP_TO(name) ".popsection\n");
#define CREMA_FUNCTION(name) {#name, &crema_at_##name},

namespace crema {

struct GpuFunction {
  const char* name;
  void** at;
};

// "libcudnn.so", 9: the version that this was compiled for. Searched in LD_LIBRARY_PATH's folders
// first. Error with the loader's reason; `who` needs the library.
void load_gpu_library(const char* stem, int version, std::span<const GpuFunction> functions,
                      const char* who = "a GPU");

// Loads cuBLAS on the first call; after that its functions can be called as its headers declare
// them. Error as above. Thread-safe. cuDNN has its own: device/cudnn.h.
void load_cublas();

}  // namespace crema
