// Temporary files and folders beside the goals that they will become.
#pragma once

#include <string>
#include <vector>

namespace crema {

// A new file or folder beside its goal. Nobody can foresee its name, and what lies at a name
// already, a link too, is never opened. As long as the descriptor is open the entry is locked: by
// that others see that nobody has left it over.
struct TemporaryEntry {
  enum class Kind { file, folder };
  std::string path;
  int descriptor = -1;  // of a file: open for writing
};

// Error names the goal and the system's reason. Permissions are what the umask leaves.
TemporaryEntry make_temporary(const std::string& goal, TemporaryEntry::Kind kind);

// Removes entries that killed processes have left in `folder`, those for the goal `name` in it or,
// without a name, all of them, and gives their paths. What a living process holds stays. Locks need
// not reach from one machine to another: what another one has made, or what cannot be locked there,
// goes only when nobody has written to it for an hour.
std::vector<std::string> remove_leftovers(const std::string& folder, TemporaryEntry::Kind kind,
                                          const std::string& name = "");

}  // namespace crema
