// include, variables, repeat and if in prototxt files: their expansion, and messages about mistakes
// in them.
#include "net/expand/expand.h"

#include <gtest/gtest.h>

#include "net/prototxt/prototxt.h"
#include "support.h"

namespace crema {
namespace expand_test {

// A dot starts each line: their blanks count.
std::string lines(const std::string& text) {
  std::string out;
  for (const std::string& line : split(text, '\n')) {
    const size_t dot = line.find('.');
    if (dot != std::string::npos) out += line.substr(dot + 1) + "\n";
  }
  return out;
}

struct Row {
  const char *text, *expanded;
};

const Row kRows[] = {
    // Untouched.
    {"name: \"$HOME\" # $x = 1\nlayer { include { phase: TEST } }",
     "name: \"$HOME\" # $x = 1\nlayer { include { phase: TEST } }"},
    // Values.
    {"$a = 3 x: $a", "x: 3\n"},
    {"$a = 3 x: -$a y: 2 * $a z: 1", "x: -3 y: 6 z: 1\n"},
    {"$a = 7 x: $a / 2 y: $a // 2 z: 8 / 2 w: $a % 4", "x: 3.5 y: 3 z: 4 w: 3\n"},
    {"$a = -7 x: $a // 2 y: $a % 4 z: -$a ** 2", "x: -4 y: 1 z: -49\n"},
    {"$a = 2 x: 1 + $a * 3 - 2 y: (1 + $a) * 3 z: 2 ** 3 ** $a", "x: 5 y: 9 z: 512\n"},
    {"$a = 0.1 x: $a y: $a * 3 z: 1e-3 * $a w: .5 * $a",
     "x: 0.1 y: 0.30000000000000004 z: 1e-04 w: 0.05\n"},
    {"$a = 1 x: $a == 1 ? MAX : AVE y: $a > 1 || $a != 1 z: !$a w: $a && 2",
     "x: MAX y: false z: false w: true\n"},
    {"$p = MAX x: $p y: $p == MAX z: $p == AVE w: $p == \"MAX\"",
     "x: MAX y: true z: false w: true\n"},
    {"$l = [1, 2.5, \"a\", [X]] x: $l[0] y: $l[1] z: $l[2] w: $l[3][0] v: length($l)",
     "x: 1 y: 2.5 z: \"a\" w: X v: 4\n"},
    {"$a = 2 x: [$a, $a + 1] y: [1, 2]", "x: [2, 3] y: [1, 2]\n"},
    {"$x = max(1, 5, 3) a: $x b: min(2.5, $x) c: floor(2.7) d: ceil(2.1) e: round(2.5) f: abs(-$x) "
     "g: sqrt(16) h: range(1, 4) i: range(3) + [9]",
     "a: 5 b: 2.5 c: 2 d: 3 e: 3 f: 5 g: 4 h: [1, 2, 3] i: [0, 1, 2, 9]\n"},
    {"$l = [1] x: false && $l[7] y: true ? 1 : $nowhere z: true || $l[\"a\"]",
     "x: false y: 1 z: true\n"},
    {"$a = 1 x: 0x1F y: 010 z: 1.50f w: -1", "x: 0x1F y: 010 z: 1.50f w: -1\n"},
    // Texts.
    {"$a = 3 $b = \"q\" x: \"$a-${a + 1}\" y: '$b\"' z: \"$$a\" w: \"$\" v: \"5$\"",
     "x: \"3-4\" y: \"q\\\"\" z: \"$a\" w: \"$\" v: \"5$\"\n"},
    {"$a = 3 x: \"a\" \"b$a\" y: \"n\" + $a z: \"\\\"$a\\\\\"",
     "x: \"ab3\" y: \"n3\" z: \"\\\"3\\\\\"\n"},
    // Defaults.
    {"$a ?= 1 $a ?= 2 x: $a", "x: 1\n"},
    {"$given ?= 1 x: $given", "x: 42\n"},
    {"$given = 1 x: $given", "x: 1\n"},
    // Repeats and conditions.
    {"repeat $i = 1..3 { x: $i }", "x: 1 x: 2 x: 3\n"},
    {"repeat $i = 3..1 { x: $i } y: 1", "y: 1\n"},
    {"repeat $i = [MAX, 2] { x: $i }", "x: MAX x: 2\n"},
    {"repeat $i, $j = [[1, 2], [3, 4]] { x: $i * $j }", "x: 2 x: 12\n"},
    {"repeat 2 { x: 1 } repeat (1 + 1) { y: 1 }", "x: 1 x: 1 y: 1 y: 1\n"},
    {"$s = 0 repeat $i = 1..3 { $s = $s + $i $t = $i } x: $s", "x: 6\n"},
    {"$a = 1 if $a == 1 { x: 1 } else { x: 2 }", "x: 1\n"},
    {"$a = 2 if $a == 1 { x: 1 } else if $a == 2 { x: 2 } else { x: 3 }", "x: 2\n"},
    {"$a = 3 if $a == 1 { x: 1 } else if $nothing == 2 { x: $a.b } else { x: 3 }", nullptr},
    {"$a = 0 if $a { x: $nothing }", ""},
    {"if 1 { $b = 2 } x: $b", "x: 2\n"},
    // Angle brackets end with what is an operator elsewhere.
    {"$a = 1 b < x: $a > c < x: ($a > 0) > d < x: $a >= 1 >",
     "b < x: 1 > c < x: true > d < x: true >\n"},
    {"$a = 1 b: [{ x: $a }, { x: 2 }] [e.f] { y: $a }", "b: [{ x: 1 }, { x: 2 }] [e.f] { y: 1 }\n"},
    // Fields of these names.
    {"$a = 1 repeat: $a if: $a else: $a repeat { } if { } include { phase: TEST } include: { }",
     "repeat: 1 if: 1 else: 1 repeat { } if { } include { phase: TEST } include: { }\n"},
};

TEST(Expand, Rows) {
  for (const Row& row : kRows) {
    if (!row.expanded) {
      EXPECT_THROW(expand("f", row.text), Error) << row.text;
    } else {
      EXPECT_EQ(expand("f", row.text, {{"given", int64_t{42}}}).text(), row.expanded) << row.text;
    }
  }
}

TEST(Expand, KeepsTheFormOfTheFile) {
  const std::string text = lines(R"(
    .# A net.
    .name: "net"  # its name
    .$n = 2  # how many
    .
    .# Layers.
    .repeat $i = 1..$n {
    .  # One of them.
    .  layer {
    .    name: "a$i"
    .    # The rate.
    .    param { lr_mult: $i }
    .  }
    .}
    .
    .layer { name: "last" }  # the last
    .# The end.
  )");
  EXPECT_EQ(expand("f", text).text(), lines(R"(
    .# A net.
    .name: "net"  # its name
    .
    .# Layers.
    .# One of them.
    .layer {
    .  name: "a1"
    .  # The rate.
    .  param { lr_mult: 1 }
    .}
    .layer {
    .  name: "a2"
    .  param { lr_mult: 2 }
    .}
    .
    .layer { name: "last" }  # the last
    .# The end.
  )"));
}

class ExpandFiles : public ::testing::Test {
 protected:
  ExpandFiles() {
    folder_.write("blocks/block.prototxt", lines(R"(
      .# A block.
      .$bias ?= true
      .layer {
      .  name: "${name}_conv"
      .  convolution_param {
      .    num_output: $width
      .    bias_term: $bias
      .    include: "filler.prototxt" { std: 0.01 }
      .  }
      .}
    )"));
    folder_.write("blocks/filler.prototxt", "weight_filler { type: \"gaussian\" std: $std }\n");
  }

  std::string path(const std::string& name) const { return folder_.file(name); }
  std::string expanded(const std::string& text) {
    return expand(path("net.prototxt"), text).text();
  }
  std::string error(const std::string& text) {
    std::string message = tests::error_of([&] { parse_net_text(text, path("net.prototxt")); });
    const std::string folder = folder_.path() + "/";
    for (size_t at; (at = message.find(folder)) != std::string::npos;)
      message.erase(at, folder.size());
    return message;
  }

  tests::Folder folder_;
};

TEST_F(ExpandFiles, IncludesFilesWithArguments) {
  EXPECT_EQ(expanded(lines(R"(
    .$width = 8
    .repeat $i = 1..2 {
    .  include: "blocks/block.prototxt" { name: "b$i" width: $width * $i }
    .}
  )")),
            lines(R"(
    .layer {
    .  name: "b1_conv"
    .  convolution_param {
    .    num_output: 8
    .    bias_term: true
    .    weight_filler { type: "gaussian" std: 0.01 }
    .  }
    .}
    .layer {
    .  name: "b2_conv"
    .  convolution_param {
    .    num_output: 16
    .    bias_term: true
    .    weight_filler { type: "gaussian" std: 0.01 }
    .  }
    .}
  )"));
}

TEST_F(ExpandFiles, AnIncludedFileKeepsItsVariables) {
  folder_.write("sets.prototxt", "$width = 3 $own = 1 x: $width");
  EXPECT_EQ(expanded("$width = 8 include: \"sets.prototxt\" y: $width"), "x: 3 y: 8\n");
  EXPECT_NE(error("include: \"sets.prototxt\" y: $own")
                .find("net.prototxt:1:29: there is no variable $own"),
            std::string::npos);
}

struct Mistake {
  const char *text, *message;
};

TEST_F(ExpandFiles, Mistakes) {
  folder_.write("self.prototxt", "include: \"self.prototxt\"");
  // Each includes the next one twice.
  for (int i = 0; i < 25; ++i)
    folder_.write(cat("tree", i), cat("repeat 2 { include: \"tree", i + 1, "\" }"));
  folder_.write("tree25", "");
  // The same file under another name.
  folder_.write("circle.prototxt", "include: \"link.prototxt\"");
  std::filesystem::create_symlink("circle.prototxt", folder_.file("link.prototxt"));
  folder_.write("typo.prototxt", "layer {\n  nam: \"x\"\n}");
  const Mistake mistakes[] = {
      {"$a = 1\nname: \"$aa\"",
       "net.prototxt:2:8: there is no variable $aa (did you mean \"$a\"?); set it with $aa = "
       "VALUE"},
      {"$a = 1\nlayer { name: $a }",
       "net.prototxt:2:15: \"name\" expects a text in quotes: write name: \"1\""},
      {"$a = [1]\nname: \"${a[1]}\"",
       "net.prototxt:2:11: the index is 1, but the list has 1 values, counted from 0"},
      {"$a = 1 / 0", "net.prototxt:1:8: division by zero"},
      {"$a = 2 ** 64", "net.prototxt:1:8: the result is too large for a whole number"},
      {"$a = 1 + MAX", "\"+\" cannot take the whole number 1 and the word MAX"},
      {"$a = maxx(1)", "there is no function maxx() (did you mean \"max\"?)"},
      {"$a 1", "net.prototxt:1:4: expected = or ?= and a value after $a, found 1"},
      {"$a = ", "net.prototxt:1:6: expected a value, and the file ends here"},
      {"$a = (1 name: 2", "net.prototxt:1:9: expected \")\", found name"},
      {"repeat $i = 1 { }",
       "net.prototxt:1:13: a repeat takes FIRST..LAST or a list, found the whole number 1"},
      {"repeat $i, $j = [[1]] { }", "expected lists of 2 values, found the list [1]"},
      {"repeat $i = 1..2 {\n name: 1", "net.prototxt:1:18: this block is not closed"},
      {"repeat 100000000 { }", "net.prototxt:1:8: expanding this text takes too long"},
      {"repeat 3000 {\n repeat 3000 {\n $a = 1\n}\n}", ":2:9: expanding this text takes too long"},
      {"$l = range(0, 100000)\nrepeat 100000 { $m = $l }",
       ":2:22: expanding this text takes too long"},
      {"$l = range(0, 100000)\nrepeat 100000 { $m = $l[3] }", ":2:22: expanding this text takes"},
      {"include: \"tree0\"", "expanding this text takes too long"},
      {"include: \"circle.prototxt\"", "files that include each other in a circle: "},
      {"$d = 20\nif $d == 20 { error: \"no depth $d\" } else { error: \"x\" }",
       "net.prototxt:2:15: no depth 20"},
      {"if MAX { }", "net.prototxt:1:4: expected true, false or a number, found the word MAX"},
      {"$a = 1 else { }", "net.prototxt:1:8: an else without an if before it"},
      {"include: \"none.prototxt\"",
       "net.prototxt:1:10: there is no file none.prototxt to include"},
      {"include: \"blocks/block.prototxt\" { name: 1 name: 2 }",
       "net.prototxt:1:44: name is given twice"},
      {"\ninclude: \"blocks/block.prototxt\" { name: 1 }",
       "blocks/block.prototxt:6:17 (included at net.prototxt:2:1): there is no variable $width"},
      {"include: \"self.prototxt\"", "files that include each other in a circle: "},
      // Errors in the plain text are reported where it was written.
      {"repeat $i = 5..6 {\n  include: \"typo.prototxt\"\n}",
       "typo.prototxt:2:3 (included at net.prototxt:2:3, $i = 5): LayerParameter has no field "
       "\"nam\""},
      {"repeat $i = 1..2 {\n  repeat $j = [A] {\n    layer { pooling_param { pool: $j } }\n  }\n}",
       "net.prototxt:3:35 ($i = 1, $j = A): \"pool\" has no value A; it takes MAX, AVE or "
       "STOCHASTIC"},
      {"repeat 2 {\n  name: \"x\"\n}",
       "net.prototxt:2:3: \"name\" is given twice; the first one is at net.prototxt:2:3"},
      {"$x = \"a\"\nlayer { name: $x convolution_param { num_output: -$x } }",
       "\"-\" cannot take the text \"a\""},
  };
  for (const Mistake& mistake : mistakes) {
    EXPECT_NE(error(mistake.text).find(mistake.message), std::string::npos) << mistake.text << "\n"
                                                                            << error(mistake.text);
  }
}

TEST_F(ExpandFiles, LayersAreWhereTheyWereWritten) {
  const NetFile net = parse_net_text(
      "\n$n = 2\nrepeat $i = 1..$n {\n  include: \"blocks/block.prototxt\" { name: \"b$i\" width: "
      "$i }\n}",
      path("net.prototxt"));
  ASSERT_EQ(net.net.layer_size(), 2);
  EXPECT_EQ(net.where(1), path("blocks/block.prototxt") + ":3:1 (included at " +
                              path("net.prototxt") + ":4:3, $i = 2)");
  EXPECT_EQ(net.where(0, "convolution_param.num_output"),
            path("blocks/block.prototxt") + ":6:5 (included at " + path("net.prototxt") +
                ":4:3, $i = 1)");
}

// An editor's text takes the place of a file, and it learns the values of expressions.
TEST(Expand, Hooks) {
  std::vector<std::string> computed;
  ExpandHooks hooks;
  hooks.unsaved = [](const std::string& path) -> std::optional<std::string> {
    if (path == "block.prototxt") return "size: $width + 1\n";
    return std::nullopt;
  };
  hooks.computed = [&](const WrittenFile& file, size_t begin, size_t end, const Literal& value) {
    computed.push_back(
        cat(file.where(begin), " ", file.text.substr(begin, end - begin), " = ", written(value)));
  };
  const std::string text = "$two = 2\ninclude: \"block.prototxt\" { width: 3 * $two }\n";
  EXPECT_EQ(expand("net.prototxt", text, {}, nullptr, hooks).text(), "size: 7\n");
  EXPECT_EQ(computed, (std::vector<std::string>{
                          "net.prototxt:1:8 2 = 2",
                          "net.prototxt:2:10 \"block.prototxt\" = \"block.prototxt\"",
                          "net.prototxt:2:36 3 * $two = 6", "block.prototxt:1:7 $width + 1 = 7"}));
}

}  // namespace expand_test
}  // namespace crema
