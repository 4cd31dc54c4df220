#include "layers/python/param_str.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "layers/python/native.h"
#include "support.h"

namespace crema::tests {
namespace param_str_test {

// A value as Python prints it, with numbers as they were written.
std::string shown(const ParamValue& value) {
  using Kind = ParamValue::Kind;
  std::string all;
  switch (value.kind) {
    case Kind::none:
      return "None";
    case Kind::boolean:
      return value.boolean ? "True" : "False";
    case Kind::integer:
      return std::to_string(value.integer);
    case Kind::real:
      return cat(value.real, "r");
    case Kind::text:
      return "'" + value.text + "'";
    case Kind::list:
      for (const ParamValue& item : value.items) all += (all.empty() ? "" : ", ") + shown(item);
      return "[" + all + "]";
    case Kind::dict:
      for (const auto& [key, item] : value.fields)
        all += (all.empty() ? "" : ", ") + key + ": " + shown(item);
      return "{" + all + "}";
  }
  return "";
}

struct TextRow {
  const char *text, *value;
};

TEST(ParamStrTest, ReadsWhatIsWritten) {
  const TextRow rows[] = {
      {"", "None"},
      {"  \n", "None"},
      // YAML, as in py-faster-rcnn
      {"'num_classes': 21", "{num_classes: 21}"},
      {"num_classes: 21", "{num_classes: 21}"},
      {"'feat_stride': 16 \n'scales': !!python/tuple [4, 8]", "{feat_stride: 16, scales: [4, 8]}"},
      {"'feat_stride': 16\n 'other': 3", "{feat_stride: 16, other: 3}"},
      {"---\na: 1.5 # more\n\n# none\nb: yes\nc: ~\n", "{a: 1.5r, b: 'yes', c: None}"},
      {"a:\n  b: 1\n  c:\n  - 2\n  - x y\nd: [1,\n  2]", "{a: {b: 1, c: [2, 'x y']}, d: [1, 2]}"},
      {"scales:\n- 4\n- 8\nratios: (0.5,)", "{scales: [4, 8], ratios: [0.5r]}"},
      {"- 1\n- a: 2\n  b: 3\n- -4", "[1, {a: 2, b: 3}, -4]"},
      {"path: C:\\data\\new, old", "{path: 'C:\\data\\new, old'}"},
      {"url: http://host:80/x#y", "{url: 'http://host:80/x#y'}"},
      {"'a': 1, 'b': (2, 3), 'c': 4", "{a: 1, b: [2, 3], c: 4}"},
      {"a: ''\nb: 'it''s'", "{a: '', b: 'it's'}"},
      // Python
      {"{'op': 'add', 'value': 2}", "{op: 'add', value: 2}"},
      {"{ 'a': True, \"b\": None, 'c': (1), 'd': (1,), 'e': () }",
       "{a: True, b: None, c: 1, d: [1], e: []}"},
      {"{'mean': (104.00699, 116.66877), 'seed': 1337,}",
       "{mean: [104.007r, 116.669r], seed: 1337}"},
      {"{u'name': u'a\\'b\\n', 'path': 'C:\\data'}", "{name: 'a'b\n', path: 'C:\\data'}"},
      {"{\n 'a': [ # first\n 1e-3, -inf,\n .5 ],\n}", "{a: [0.001r, -infr, 0.5r]}"},
      {"{'a': 1, 'a': 2}", "{a: 2}"},
      {"{1: 'x', y: z w}", "{1: 'x', y: 'z w'}"},
      {"[1, [2, {'a': []}]]", "[1, [2, {a: []}]]"},
      // JSON
      {"{\"lr\": 0.25, \"on\": false, \"path\": \"a\\/b\", \"none\": null}",
       "{lr: 0.25r, on: False, path: 'a/b', none: None}"},
      // other text
      {"90,1", "'90,1'"},
      {"1_2_3", "'1_2_3'"},
      {"data/train.txt", "'data/train.txt'"},
      {"C:\\x", "'C:\\x'"},
      {"0.25", "0.25r"},
      {"-7", "-7"},
      {"12345678901234567890123", "1.23457e+22r"},
      {"'quoted: text'", "'quoted: text'"},
      // an expression stays a text
      {"{'a': __import__('os')}", "param_str, line 1, column 22: expected a comma or }"},
      {"{'a': 2*3}", "{a: '2*3'}"},
  };
  for (const auto& [text, value] : rows) {
    std::string found;
    try {
      found = shown(read_param_str(text));
    } catch (const Error& error) {
      found = std::string(error.what()).substr(0, std::string(value).size());
    }
    EXPECT_EQ(found, value) << text;
  }
}

TEST(ParamStrTest, ErrorsNameThePlace) {
  const TextRow rows[] = {
      {"{'a': 1", "line 1, column 8: expected a comma or }, found the end of the text"},
      {"{'a' 1}", "line 1, column 6: expected a colon after the key a, found \"1}\""},
      {"{'a': 'b}", "line 1, column 7: expected a closing quote for this text"},
      {"{\n'a': [1,\n 2)}", "line 3, column 3: expected a comma or ], found \")}\""},
      {"[1] 2", "line 1, column 5: expected the end of the text, found \"2\""},
      {"{,}", "line 1, column 2: expected a key"},
      {"{'a':,}", "line 1, column 6: expected a value"},
      {"a: 1\nrest", "line 2, column 5: expected a colon after the key rest"},
      {"- 1\nb: 2", "line 2, column 1: expected an item that starts with -"},
      {"a: [1, 2", "line 1, column 9: expected a comma or ]"},
  };
  for (const auto& [text, message] : rows)
    expect_part(error_of([&] { read_param_str(text); }), cat("param_str, ", message));
  const std::string deep(100000, '[');
  expect_part(error_of([&] { read_param_str(deep); }), "fewer lists within lists");
}

// No text crashes it: each is cut short, and has each of its bytes replaced.
TEST(ParamStrTest, DamagedTextsAreReadOrRefused) {
  const std::string whole =
      "{'a': [1, (2.5,), \"x\\n\"], b: None}\n'c':\n  - d: !!t {e: 1}\n  - ~ # f";
  int read = 0, refused = 0;
  const auto count = [&](const std::string& text) {
    try {
      read_param_str(text);
      ++read;
    } catch (const Error&) {
      ++refused;
    }
  };
  for (size_t i = 0; i < whole.size(); ++i) {
    count(whole.substr(0, i));
    count(whole.substr(i));
    for (const char c : {'\n', '\0', ':', '}', '[', '\'', '\\', ' ', '-', '#', '!'}) {
      std::string changed = whole.substr(25);
      changed[i % changed.size()] = c;
      count(changed);
      changed = whole.substr(0, 34);
      changed[i % changed.size()] = c;
      count(changed);
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 100);
}

TEST(ParamStrTest, Settings) {
  const ParamStr given(
      "{'n': 3, 'x': 0.5, 'on': True, 'zero': 0, 'name': 'a b', 'four': [1, 2.5], 'split': train}");
  EXPECT_EQ(given.integer("n", 1), 3);
  EXPECT_EQ(given.integer("absent", 1), 1);
  EXPECT_EQ(given.number("n", 1), 3);
  EXPECT_EQ(given.number("x", 1), 0.5);
  EXPECT_TRUE(given.flag("on", false));
  EXPECT_FALSE(given.flag("zero", true));
  EXPECT_EQ(given.word("name", ""), "a b");
  EXPECT_EQ(given.numbers("four", {}), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(given.numbers("n", {}), (std::vector<double>{3}));
  expect_part(error_of([&] { given.integer("x", 1); }),
              "param_str, line 1, column 15: x is the number 0.5, but must be a whole number");
  expect_part(error_of([&] { given.flag("n", true); }),
              "n is the number 3, but must be True or False");
  expect_part(error_of([&] { given.numbers("name", {}); }),
              "name is the text \"a b\", but must be numbers");
  expect_part(error_of([&] { given.needed_integer("feat_stride"); }),
              "param_str must give feat_stride, such as \"'feat_stride': ...\", but is \"{'n': 3");
  expect_part(error_of([&] { given.refuse_others(); }), "this layer knows no split");
  EXPECT_EQ(given.word("split", ""), "train");
  given.refuse_others();
  expect_part(error_of([] { ParamStr("16").refuse_others(); }), "but must give keys and values");
}

// Each native version is in the table of src/layers/python/README.md: its class in a line of its module.
TEST(ParamStrTest, NativeVersionsAreListed) {
  std::ifstream page(CREMA_TEST_DATA "/../src/layers/python/README.md");
  std::vector<std::string> lines;
  for (std::string line; std::getline(page, line);) lines.push_back(line);
  ASSERT_FALSE(NativeRegistry::names().empty());
  for (const std::string& name : NativeRegistry::names()) {
    const size_t dot = name.rfind('.');
    const std::string module = cat("| `", name.substr(0, dot), "` |"),
                      its_class = cat("`", name.substr(dot + 1), "`");
    const bool listed = std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return starts_with(line, module) && line.find(its_class) != line.npos;
    });
    EXPECT_TRUE(listed) << name;
  }
}

}  // namespace param_str_test
}  // namespace crema::tests
