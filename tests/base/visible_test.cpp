#include "base/visible.h"

#include "support.h"

namespace crema::tests {
namespace visible_test {

TEST(Visible, TextsStayOnTheirLine) {
  const struct {
    std::string text, shown;
  } rows[] = {
      {"conv1/3x3 \"a\"\t\\n", "conv1/3x3 \"a\"\t\\n"},
      {"caf\xC3\xA9 \xE5\x8D\xB7 \xF0\x9F\x90\x88", "caf\xC3\xA9 \xE5\x8D\xB7 \xF0\x9F\x90\x88"},
      {"a\nI1123 b\r\n", "a\\nI1123 b\\r\\n"},
      {"\x1B[31m\x07\x7F", "\\033[31m\\007\\177"},
      {std::string("a\0b", 3), "a\\000b"},
      {"\xC2\x9B", "\\302\\233"},                    // a control character of 8 bits
      {"\xE2\x80\xA8", "\\342\\200\\250"},           // another end of a line
      {"\xE2\x80\xAE", "\\342\\200\\256"},           // from here on right to left
      {"\xFF\xC3", "\\377\\303"},                    // no UTF-8
      {"\xC0\xAF", "\\300\\257"},                    // longer than needed
      {"\xE0\x80\xAF", "\\340\\200\\257"},           // the same
      {"\xED\xA0\x80", "\\355\\240\\200"},           // half a character of UTF-16
      {"\xF4\x90\x80\x80", "\\364\\220\\200\\200"},  // beyond the last
  };
  for (const auto& [text, shown] : rows) {
    EXPECT_EQ(visible(text), shown);
    EXPECT_EQ(visible(visible(text)), shown);
  }
}

}  // namespace visible_test
}  // namespace crema::tests
