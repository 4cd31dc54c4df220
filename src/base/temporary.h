// Temporary files and folders next to the targets that they will replace.
#pragma once

#include <string>
#include <vector>

namespace crema {

// A new file or folder next to its target. Its name is unpredictable, and an existing entry of that
// name, even a link, is never opened. The entry is locked while the descriptor is open, which shows
// other processes that it is in use.
struct TemporaryEntry {
  enum class Kind { file, folder };
  std::string path;
  int descriptor = -1;  // of a file: open for writing
};

// The Error names the target and the system's reason. Permissions follow the umask.
TemporaryEntry make_temporary(const std::string& goal, TemporaryEntry::Kind kind);

// Removes the entries that killed processes have left in `folder`, for the target `name` or,
// without a name, all of them, and returns their paths. Entries held by a living process stay.
// Locks may not work across machines: an entry that another machine made, or that cannot be locked,
// is removed only after an hour without writes.
std::vector<std::string> remove_leftovers(const std::string& folder, TemporaryEntry::Kind kind,
                                          const std::string& name = "");

}  // namespace crema
