// What the operating system says of this machine, its user and this process.
#pragma once

#include <cstddef>
#include <string>

namespace crema {

// The name of this machine; "localhost" where it has none.
std::string host_name();

// The value of an environment variable; "" where there is none.
std::string environment(const char* name);

// $XDG_CACHE_HOME/crema, else ~/.cache/crema; "" where the environment names no home folder. It need
// not exist.
std::string user_cache_folder();

// Bytes of the processor's cache of the last level, of which all cores that share it have a part; 16
// MiB where the system does not say.
size_t last_cache_bytes();

// Whether this process may generate code and run it, as oneDNN does. Hardened systems deny it
// (systemd's MemoryDenyWriteExecute, SELinux). Tried once, on the first call.
bool may_generate_code();

// Memory that oneDNN maps for the code of a convolution in all directions (its buffers have 256
// KiB), and of all matrix products together; several times the measured amount.
constexpr size_t kCodeOfConvolution = size_t{4} << 20, kCodeOfProducts = size_t{16} << 20;
// Whether this much can be mapped now. oneDNN 2.6 does not check whether it got its memory: close
// to a limit (`ulimit -v`) it would end in SIGSEGV.
bool has_room_for_code(size_t bytes);

}  // namespace crema
