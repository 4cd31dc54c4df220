// The token of a run whose launcher provides none: rank 0 writes a random one to a file that only
// its user can read, and the other ranks read it. That works on one machine, and on several with a
// shared home folder.
#pragma once

#include <string>

#include "comm/launcher.h"

namespace crema {

// The path of this job's file, in the user's cache folder. Error if there is no such folder.
std::string token_file_of(const Launch& launch);

// Rank 0's side: a new file that replaces one from an earlier run. It is removed at the end.
class TokenFile {
 public:
  // Error if it cannot be written, or if the file system does not keep other users from reading it.
  explicit TokenFile(std::string path);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;
  const std::string& token() const { return token_; }

 private:
  std::string path_, token_;
};

// The other ranks' side. "" if the file cannot be read or is not one that this user alone has
// written and can read: why not is in `problem`.
std::string read_token_file(const std::string& path, std::string* problem);

}  // namespace crema
