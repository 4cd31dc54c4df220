// Whether this process may generate code and run it, as oneDNN does. Hardened systems deny it
// (systemd's MemoryDenyWriteExecute, SELinux).
#pragma once

#include <cstddef>

namespace crema {

// Tried once, on the first call.
bool may_generate_code();

// Memory that oneDNN maps for the code of a convolution in all directions (its buffers have 256
// KiB), and of all matrix products together; several times the measured amount.
constexpr size_t kCodeOfConvolution = size_t{4} << 20, kCodeOfProducts = size_t{16} << 20;
// Whether this much can be mapped now. oneDNN 2.6 does not check whether it got its memory: close
// to a limit (`ulimit -v`) it would end in SIGSEGV.
bool has_room_for_code(size_t bytes);

}  // namespace crema
