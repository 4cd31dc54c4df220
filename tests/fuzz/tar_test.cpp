// Tar files.
#include <gtest/gtest.h>

#include <cstdio>

#include "data/databases/source.h"
#include "data/tar_files.h"
#include "fuzz/fuzz.h"

namespace crema::tests {
namespace tar_test {

// The sums of all headers, so that damage to them is looked at.
void mend_tar(std::string& content) {
  for (size_t at = 0; at + 512 <= content.size(); at += 512) {
    if (content.compare(at + 257, 5, "ustar") != 0) continue;
    content.replace(at + 148, 8, 8, ' ');
    unsigned sum = 0;
    for (size_t i = at; i < at + 512; ++i) sum += static_cast<unsigned char>(content[i]);
    char octal[8];
    std::snprintf(octal, sizeof(octal), "%06o", sum);
    content.replace(at + 148, 7, octal, 7);
  }
}

TEST(Fuzz, Tar) {
  fuzz({"tar",
        [] {
          const std::string image(700, 'i'), long_name(150, 'n');
          return std::vector<Files>{
              {{"x.tar",
                tar_record("a/1", image, "3") + tar_record("2", image, "1 2.5") + tar_end()}},
              {{"x.tar", tar_member("x", "18 path=one/1.jpg\n12 size=700\n", 'x') +
                             tar_member("cut", image) + tar_member("one/1.cls", "7") + tar_end()}},
              {{"x.tar", tar_member("././@LongLink", long_name + ".json", 'L') +
                             tar_member("cut", "{\"label\": [1, 2]}") +
                             tar_member("././@LongLink", long_name + ".png", 'L') +
                             tar_member("cut", image) + tar_end()}}};
        },
        [](Dice& dice, Files& files, const Files& other) {
          std::string& content = files.at("x.tar");
          damage_bytes(dice, content, other.at("x.tar"));
          if (!dice.one_in(4)) mend_tar(content);
        },
        [](const std::string& folder, const Files&) {
          const std::unique_ptr<Source> source = open_tar(folder + "/x.tar");
          Datum datum;
          for (int64_t i = 0; i < source->size(); ++i) {
            source->key(i);
            source->read(i, datum);
          }
        }});
}

}  // namespace tar_test
}  // namespace crema::tests
