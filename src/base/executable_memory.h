// Whether this process may generate code and run it, as oneDNN does. Hardened systems deny it
// (systemd's MemoryDenyWriteExecute, SELinux).
#pragma once

#include <cstddef>

namespace crema {

// Tried once, on the first call.
bool may_generate_code();

// What oneDNN maps for the code of a convolution in all directions (its buffers have 256 KiB), and of
// all matrix products together; several times as much as was measured.
constexpr size_t kCodeOfConvolution = size_t{4} << 20, kCodeOfProducts = size_t{16} << 20;
// Whether so much can be mapped now. oneDNN 2.6 does not look whether it got its memory: where a limit
// (`ulimit -v`) is near, it would end in SIGSEGV.
bool has_room_for_code(size_t bytes);

}  // namespace crema
