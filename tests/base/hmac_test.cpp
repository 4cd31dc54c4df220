#include "base/hmac.h"

#include <gtest/gtest.h>

namespace crema::tests {
namespace hmac_test {

std::string repeated(int count, char byte) { return std::string(static_cast<size_t>(count), byte); }

// RFC 4231, 4.2 to 4.8.
TEST(Hmac, GivesTheDigestsOfTheStandard) {
  std::string counted;
  for (char byte = 1; byte <= 25; ++byte) counted += byte;
  const struct {
    std::string key, message;
    const char* digest;
  } rows[] = {
      {repeated(20, '\x0b'), "Hi There",
       "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", "what do ya want for nothing?",
       "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {repeated(20, '\xaa'), repeated(50, '\xdd'),
       "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {counted, repeated(50, '\xcd'),
       "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
      {repeated(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
      {repeated(131, '\xaa'),
       "This is a test using a larger than block-size key and a larger than block-size data. The "
       "key needs to be hashed before being used by the HMAC algorithm.",
       "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
  };
  for (const auto& row : rows)
    EXPECT_EQ(hexadecimal(hmac_sha256(row.key, row.message)), row.digest) << row.message;
  // 4.6 shows the first 128 bits.
  EXPECT_EQ(hexadecimal(hmac_sha256(repeated(20, '\x0c'), "Test With Truncation")).substr(0, 32),
            "a3b6167473100ee06e0c796c2955552b");
}

TEST(Hmac, ComparesBytes) {
  EXPECT_TRUE(same_bytes("", ""));
  EXPECT_TRUE(same_bytes("abc", "abc"));
  for (const char* other : {"", "ab", "abcd", "xbc", "abx", "ab\xe3"})
    EXPECT_FALSE(same_bytes("abc", other)) << other;
}

TEST(Hmac, TokensDiffer) {
  EXPECT_EQ(random_bytes(0), "");
  EXPECT_EQ(random_bytes(300).size(), 300u);
  EXPECT_NE(random_bytes(16), random_bytes(16));
  const std::string token = random_token();
  EXPECT_EQ(token.size(), 32u);
  EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(token, random_token());
}

}  // namespace hmac_test
}  // namespace crema::tests
