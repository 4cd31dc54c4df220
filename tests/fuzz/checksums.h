// Checksums that agree with a damaged content: else readers would look no further.
#pragma once

#include <string>

namespace crema::tests {

// Of the blocks of a LevelDB's table, log or manifest, by the file's name.
void mend_leveldb(const std::string& name, std::string& content);
// Of the chunks of a PNG.
void mend_png(std::string& content);

}  // namespace crema::tests
