// The statements of a prototxt file as a person wrote them, with `include`, variables, `repeat` and `if`
// (proto/README.md) not expanded, for programs that format or edit files. It can be made of any text: what it
// cannot read becomes a mistake, and the statements around it stay. What the fields mean is decided elsewhere
// (net/expand, net/prototxt).
#pragma once

#include <string>
#include <vector>

#include "net/expand/tokens.h"

namespace crema {

struct Statement;

// { ... }, < ... > or a whole file. Numbers are indices into SyntaxTree::tokens; -1: missing.
struct Block {
  int open = -1, close = -1;  // a file has neither
  std::vector<Statement> statements;
};

struct Statement {
  enum class Kind {
    field,       // name: value, name { }, name: [ { }, { } ]
    assignment,  // $name = value, $name ?= value
    include,     // include: "file" { arguments }
    repeat,      // repeat $i = values { }
    condition,   // if value { } else if value { } else { }
    error,       // error: "text"
    junk,        // tokens that begin no statement
  };
  struct Tokens {
    int begin = 0, end = 0;
    bool empty() const { return begin == end; }
  };

  Kind kind = Kind::junk;
  Tokens all;  // with blocks, and a comma or semicolon behind it
  // A field has a name, which is several tokens if it is an extension, and so does an assignment.
  Tokens name;
  // Fields, assignments, includes and errors have a value, and a repeat has one behind its "repeat". The value of a list
  // of blocks is the list with its brackets.
  Tokens value;
  std::vector<Block> blocks;  // in their order: of a condition, its branches
};

struct SyntaxMistake {
  enum class Kind {
    other,
    open_text,    // a text without its closing quote
    stray_brace,  // a brace that closes no block
    equals_sign,  // = instead of a colon
    unquoted_text,
  };
  size_t begin = 0, end = 0;  // offsets in the text
  std::string text;           // what was found, what was expected
  Kind kind = Kind::other;
};

struct SyntaxTree {
  std::string text;
  std::vector<Token> tokens;  // they point into the text; the last is its end
  std::vector<size_t> lines;  // their first offsets
  Block file;
  std::vector<SyntaxMistake> mistakes;  // in the order of the text

  explicit SyntaxTree(std::string text);
  SyntaxTree(const SyntaxTree&) = delete;
  SyntaxTree& operator=(const SyntaxTree&) = delete;

  const Token& token(int index) const { return tokens[static_cast<size_t>(index)]; }
  bool is_first_on_line(int token) const;
  size_t line_of(size_t offset) const;  // from 0
  // "3:14": line and column of an offset, from 1.
  std::string place(size_t offset) const;
};

}  // namespace crema
