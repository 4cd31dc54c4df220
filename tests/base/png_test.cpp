#include "base/png.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "base/error.h"
#include "base/sha256.h"

namespace crema::tests {
namespace png_test {

TEST(Sha256, GivesTheDigestsOfTheStandard) {
  const struct {
    std::string text;
    const char* digest;
  } rows[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1000000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(hexadecimal(sha256(row.text)), row.digest);
    // In parts that fill no block.
    Sha256 parts;
    for (size_t at = 0; at < row.text.size(); at += 37)
      parts.add(std::string_view(row.text).substr(at, 37));
    EXPECT_EQ(hexadecimal(parts.digest()), row.digest);
  }
}

// The number of four bytes, the first of which counts most.
uint32_t number_at(const std::string& bytes, size_t at) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

TEST(Png, HoldsThePixelsInChunksWithTheirChecksums) {
  for (const int channels : {1, 3}) {
    Picture picture{2, 3, channels, {}, ""};
    for (int i = 0; i < 6 * channels; ++i) picture.bytes.push_back(static_cast<uint8_t>(40 * i));
    const std::string png = png_of(picture);
    ASSERT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
    std::string types, rows;
    for (size_t at = 8; at < png.size();) {
      const uint32_t size = number_at(png, at);
      const std::string body = png.substr(at + 4, 4 + size);
      types += body.substr(0, 4);
      EXPECT_EQ(number_at(png, at + 8 + size), crc32(0, reinterpret_cast<const Bytef*>(body.data()),
                                                     static_cast<uInt>(body.size())));
      if (body.substr(0, 4) == "IHDR") {
        EXPECT_EQ(number_at(body, 4), 2u);
        EXPECT_EQ(number_at(body, 8), 3u);
        EXPECT_EQ(body.substr(12), std::string({8, channels == 3 ? '\2' : '\0', 0, 0, 0}));
      } else if (body.substr(0, 4) == "IDAT") {
        rows.resize(100);
        uLongf length = rows.size();
        ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(rows.data()), &length,
                             reinterpret_cast<const Bytef*>(body.data() + 4), size),
                  Z_OK);
        rows.resize(length);
      }
      at += 12 + size;
    }
    EXPECT_EQ(types, "IHDRIDATIEND");
    std::string expected;
    for (size_t i = 0; i < picture.bytes.size(); ++i) {
      if (i % (2 * channels) == 0) expected += '\0';
      expected += static_cast<char>(picture.bytes[i]);
    }
    EXPECT_EQ(rows, expected);
  }
  EXPECT_THROW(png_of({2, 3, 1, std::vector<uint8_t>(5), ""}), Error);
}

}  // namespace png_test
}  // namespace crema::tests
