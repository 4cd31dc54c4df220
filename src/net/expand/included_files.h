// The files that a text includes, each read once.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "net/expand/cursor.h"
#include "net/expand/expand.h"

namespace crema {

class IncludedFiles {
 public:
  explicit IncludedFiles(const ExpandHooks& hooks) : hooks_(hooks) {}

  // Looks for a file next to the one that includes it, then in the working directory. Error at `at`.
  std::shared_ptr<const WrittenFile> find(const std::string& name, const WrittenFile& includer,
                                          const Place& at);

 private:
  const ExpandHooks& hooks_;
  std::map<std::string, std::shared_ptr<const WrittenFile>> files_;
};

}  // namespace crema
