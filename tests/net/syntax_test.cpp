// The statements of files as they are being typed, and files in one form.
#include "net/syntax/syntax.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "base/random.h"
#include "net/prototxt/prototxt_parse.h"
#include "net/syntax/format.h"
#include "support.h"

namespace crema::tests {
namespace syntax_test {

// "layer{name=,conv{}}": names of fields, "=" for a value, "?" for what is no statement.
std::string outline(const SyntaxTree& tree, const Block& block) {
  std::string text;
  for (const Statement& s : block.statements) {
    using Kind = Statement::Kind;
    if (!text.empty()) text += " ";
    for (int at = s.name.begin; at < s.name.end; ++at) text += tree.token(at).text;
    text += s.kind == Kind::include     ? "include"
            : s.kind == Kind::repeat    ? "repeat"
            : s.kind == Kind::condition ? "if"
            : s.kind == Kind::error     ? "error"
            : s.kind == Kind::junk      ? "?"
                                        : "";
    if (!s.value.empty()) text += "=";
    for (const Block& inside : s.blocks)
      text += "{" + outline(tree, inside) + (inside.close < 0 ? "" : "}");
  }
  return text;
}

struct Reading {
  const char *text, *outline, *mistakes;
};

// Whatever is missing or too much, the statements around it stay.
const Reading kReadings[] = {
    {"", "", ""},
    {"name: \"a\" layer { top: 'x' top: \"y\" \"z\" }", "name= layer{top= top=}", ""},
    {"a: 1, b: -2; c < d: [1, 2] > e: { }", "a= b= c{d=} e{}", ""},
    {"l: [{ a: 1 }, { b: 2 }] [ext.name]: 3", "l={a=}{b=} [ext.name]=", ""},
    {"$n ?= 3\n$w = $n > 2 ? [1, $n] : []\nx: $w[0] * (2 + $n)", "$n= $w= x=", ""},
    {"repeat $i, $j = [[1, 2]] { a: $i } repeat 3 { b: 1 }", "repeat={a=} repeat={b=}", ""},
    {"if $a == 1 { x: 1 } else if $b { y: 2 } else { z: 3 }", "if={x=}{y=}{z=}", ""},
    {"include: \"f.prototxt\" { n: 1 } include { phase: TRAIN } error: \"no\"",
     "include={n=} include{phase=} error=", ""},
    // A value is missing.
    {"layer {\n  name:\n  type: \"ReLU\"\n}\nx: 1",
     "layer{name type=} x=", "2:7 expected a value after \":\""},
    {"a:", "a", "1:2 expected a value after \":\""},
    {"a: }\nb: 1", "a ? b=", "1:2 expected a value after \":\"; 1:4 \"}\" closes no block"},
    // A field's name is all that is there so far.
    {"layer {\n  na\n  type: \"ReLU\"\n}", "layer{na type=}",
     "2:3 expected \":\" and a value, or a block in braces, after \"na\""},
    {"layer { na }", "layer{na}",
     "1:9 expected \":\" and a value, or a block in braces, after \"na\""},
    // A brace is missing: the next layer begins where this one did.
    {"layer {\n  name: \"a\"\nlayer {\n  name: \"b\"\n}\nx: 1",
     "layer{name= layer{name=} x=", "1:7 this block is not closed: its \"}\" is missing"},
    {"layer {\n  p {\n    a: 1\n  b: 2\n}\nx: 1",
     "layer{p{a= b=} x=", "2:5 this block is not closed: its \"}\" is missing"},
    {"layer {\n  p {\n    a: 1\n}\nx: 1",
     "layer{p{a=} x=", "2:5 this block is not closed: its \"}\" is missing"},
    {"layer { name: \"a\"", "layer{name=", "1:7 this block is not closed: its \"}\" is missing"},
    {"repeat $s = [[1],\n            [2]] {\n  layer { a: 1 }\n}\nx: 1",
     "repeat={layer{a=}} x=", ""},
    // Too much.
    {"layer { a: 1 } }\nb: 2", "layer{a=} ? b=", "1:16 \"}\" closes no block"},
    {"% ^\na: 1", "? a=", "1:1 expected the name of a field, found \"%\""},
    {"\x01: 1", "?", "1:1 expected the name of a field, found \"\\001\""},
    {"a = 1\nb: 2", "a= b=", "1:3 expected \":\" before a value, found \"=\""},
    // A path without quotes; the others are none.
    {"net: a.prototxt\nb: 2", "net= b=", "1:6 a text needs quotes: \"a.prototxt\""},
    {"p { s: ../a-b/c.txt }", "p{s=}", "1:8 a text needs quotes: \"../a-b/c.txt\""},
    {"s: /a/b", "s=", "1:4 a text needs quotes: \"/a/b\""},
    {"a: min(1.5, 2) b: -.5 c: 2*.5", "a= b= c=", ""},
    {"a: 1 2 b: 3", "a= ? b=", "1:6 expected the name of a field, found \"2\""},
    // Texts and lists that do not end.
    {"a: \"x\nb: 1", "a= b=", "1:4 this text has no closing \""},
    {"a: [1, 2\nb: 1", "a= b=", "1:4 expected \"]\" for this \"[\""},
    {"a: (1 + 2\n}\nb: 1",
     "a= ? b=", "1:4 expected \")\" for this \"(\"; 2:1 \"}\" closes no block"},
    {"l: [{ a: 1 }\nb: 2", "l={a=} b=", "2:1 expected \"]\" at the end of the list, found \"b\""},
    // Statements of the expansion.
    {"$a\nb: 1", "$a b=", "2:1 expected = or ?= and a value after $a, found \"b\""},
    {"repeat $i = 1..3\nb: 1", "repeat= b=", "2:1 expected \"{\" and what to repeat, found \"b\""},
    {"if $a == 1\nb: 1",
     "if= b=", "2:1 expected \"{\" and what the condition decides about, found \"b\""},
};

TEST(Syntax, KeepsWhatItCanRead) {
  for (const Reading& row : kReadings) {
    const SyntaxTree tree(row.text);
    EXPECT_EQ(outline(tree, tree.file), row.outline) << row.text;
    std::string mistakes;
    for (const SyntaxMistake& mistake : tree.mistakes)
      mistakes += cat(mistakes.empty() ? "" : "; ", tree.place(mistake.begin), " ", mistake.text);
    EXPECT_EQ(mistakes, row.mistakes) << row.text;
  }
}

struct Form {
  const char *text, *formatted;
};

const Form kForms[] = {
    {"", ""},
    {"\n\n# c\n\n\n\nname:'a'\n\n", "# c\n\nname: 'a'\n"},
    {"layer{name:\"a\"\ntop:\"b\",\n\n\n  p :{ x:1;y :2 }\n\n}",
     "layer {\n  name: \"a\"\n  top: \"b\"\n\n  p { x: 1 y: 2 }\n}\n"},
    {"layer < name: 'a' >\nl: [ {a:1},{b:2} ]", "layer { name: 'a' }\nl: [{ a: 1 }, { b: 2 }]\n"},
    // Lines of a person stay.
    {"layer {\n      bottom: 'a'   bottom: 'b'\n  top: 'c' }",
     "layer {\n  bottom: 'a' bottom: 'b'\n  top: 'c'\n}\n"},
    {"$k = $d == 1 ? [2]\n   : $d == 2 ? [3]\n   : []",
     "$k = $d == 1 ? [2]\n    : $d == 2 ? [3]\n    : []\n"},
    {"repeat $a,$b = [\n[1,2],\n      [3,4]\n] {\nx:$a\n}",
     "repeat $a, $b = [\n  [1, 2],\n      [3, 4]\n] {\n  x: $a\n}\n"},
    {"x: \"a\"\n   \"b\"", "x: \"a\"\n    \"b\"\n"},
    {"x:\n  3\ny: $a+1 z:2 - 1", "x: 3\ny: $a+1 z: 2 - 1\n"},
    {"if $a{ x: 1 }\nelse{\n y: 2 }", "if $a { x: 1 } else {\n  y: 2\n}\n"},
    {"include \"f\"{n:1}\ninclude: 'g'\ne{}\nf {\n}",
     "include: \"f\" { n: 1 }\ninclude: 'g'\ne { }\nf { }\n"},
    // Comments.
    {"a: 1 # one\nbcd: 2     # two\n# three\nlayer { # four\n # five\n}\n# six",
     "a: 1    # one\nbcd: 2  # two\n# three\nlayer {  # four\n  # five\n}\n# six\n"},
    {"a: 1, # x\nb: [1, # y\n2]", "a: 1    # x\nb: [1,  # y\n  2]\n"},
    {"a # x\n: # y\n3", "a      # x\n    :  # y\n    3\n"},
    {"a: 1\r\nb {\r\nc: 2 # x\r\n}\r\n", "a: 1\r\nb {\r\n  c: 2  # x\r\n}\r\n"},
    // What has no room on one line.
    {"include: \"file_with_a_long_name.prototxt\" { first: 1000000 second: 2000000 third: 3000000 "
     "fourth: 4000000 "
     "fifth: 5000000 sixth: 6 }",
     "include: \"file_with_a_long_name.prototxt\" {\n  first: 1000000 second: 2000000 third: "
     "3000000 fourth: 4000000 "
     "fifth: 5000000 sixth: 6\n}\n"},
};

TEST(FormattedText, HasOneForm) {
  for (const Form& row : kForms) {
    const SyntaxTree tree(row.text);
    ASSERT_TRUE(tree.mistakes.empty()) << row.text << ": " << tree.mistakes[0].text;
    EXPECT_EQ(formatted(tree), row.formatted) << row.text;
    EXPECT_EQ(formatted(SyntaxTree(row.formatted)), row.formatted);
  }
  EXPECT_THROW(formatted(SyntaxTree("a: ")), Error);
}

// All files in the folders of models and tests.
std::vector<std::string> files() {
  std::vector<std::string> found;
  for (const char* folder : {"/../models", ""}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::string(CREMA_TEST_DATA) + folder)) {
      if (entry.path().extension() == ".prototxt") found.push_back(entry.path().string());
    }
  }
  return found;
}

// The message of a file, whatever its type is; "" if it is none.
std::string message_of(const std::string& text, const std::string& path) {
  const auto parsed = [&]<typename Message>(Message message) {
    try {
      parse_text(text, path, &message);
    } catch (const Error&) {
      return std::string();
    }
    return message.SerializeAsString();
  };
  const std::string net = parsed(NetParameter());
  return net.empty() ? parsed(SolverParameter()) : net;
}

TEST(FormattedText, KeepsTheMessages) {
  const std::vector<std::string> all = files();
  int messages = 0;
  for (const std::string& path : all) {
    const std::string text = read_text(path);
    const SyntaxTree tree(text);
    if (!tree.mistakes.empty()) continue;
    const std::string result = formatted(tree);
    EXPECT_EQ(formatted(SyntaxTree(result)), result) << path;
    const std::string before = message_of(text, path);
    EXPECT_EQ(message_of(result, path), before) << path;
    messages += before.empty() ? 0 : 1;
    if (path.find("/../models/") != std::string::npos) {
      EXPECT_EQ(result, text) << path << ": crema fmt models";
    }
  }
  EXPECT_GT(all.size(), 300u);
  EXPECT_GT(messages, 200);
}

// Texts that are cut off, and whose letters are replaced, take neither long nor too much, and every token is in
// one statement.
TEST(Syntax, TakesAnyText) {
  const std::string text =
      "$n ?= [1, 2] name: \"a\" # b\nlayer { p { x: 1 } include { phase: TEST } }\nif $n { y: 2 } "
      "else { }\nrepeat $i = 1..3 { include: \"f\" { z: $i } }\nl: [{ a: 1 }]\n";
  const std::string letters = "{}[]<>:;,\"'$#()=?ab1. \n-";
  const Random random{3, 1};
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    std::string broken = text.substr(0, random.word(3 * seed) % (text.size() + 1));
    for (uint64_t k = 0; k < seed % 4 && !broken.empty(); ++k) {
      const uint64_t at = 100000 + 10 * seed + 2 * k;
      broken[random.word(at) % broken.size()] = letters[random.word(at + 1) % letters.size()];
    }
    const SyntaxTree tree(broken);
    int next = 0;
    for (const Statement& s : tree.file.statements) {
      ASSERT_EQ(s.all.begin, next) << broken;
      ASSERT_GT(s.all.end, s.all.begin) << broken;
      next = s.all.end;
    }
    ASSERT_EQ(next + 1, std::ssize(tree.tokens)) << broken;
    if (tree.mistakes.empty()) {
      const std::string result = formatted(tree);
      ASSERT_EQ(formatted(SyntaxTree(result)), result) << broken;
    }
  }
}

}  // namespace syntax_test
}  // namespace crema::tests
