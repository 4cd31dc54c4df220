// Corrects the checksums of damaged content; otherwise readers would not look further.
#pragma once

#include <string>

namespace crema::tests {

// For the blocks of a LevelDB's table, log or manifest, by the file's name.
void mend_leveldb(const std::string& name, std::string& content);
// For the chunks of a PNG.
void mend_png(std::string& content);

}  // namespace crema::tests
