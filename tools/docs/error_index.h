// The messages that people meet most, from tools/docs/error_index.rows: why they come and what to
// do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace crema {

// The file, embedded at build time.
std::string_view error_index_bytes();

struct IndexedError {
  std::string topic;                 // the heading above it
  std::string message, why, remedy;  // "..." in a message is what varies; a remedy is Markdown
};

std::vector<IndexedError> indexed_errors();

}  // namespace crema
