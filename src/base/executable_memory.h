// Whether this process may generate code and run it, as oneDNN does. Hardened systems deny it
// (systemd's MemoryDenyWriteExecute, SELinux).
#pragma once

namespace crema {

// Tried once, on the first call.
bool may_generate_code();

}  // namespace crema
