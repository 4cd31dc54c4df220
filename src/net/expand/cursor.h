// The current position of the expansion in a file, and the variables visible there.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "net/expand/literal.h"
#include "net/expand/tokens.h"

namespace crema {

struct Cursor;

// A position in a file, written out only if an error names it.
struct Place {
  const Cursor* cursor = nullptr;
  size_t offset = 0;
};
std::ostream& operator<<(std::ostream& out, const Place& place);

struct Cursor {
  std::shared_ptr<const WrittenFile> file;
  std::vector<Token> tokens;
  size_t at = 0;
  size_t base = 0;  // offset in the file of the text that the tokens count from
  std::shared_ptr<const std::string> context;  // see SourceText::append

  const Token& token() const { return tokens[at]; }
  // Moves on when the token is this symbol.
  bool consume(std::string_view symbol);
  // Error: `what` is expected here.
  void expect(std::string_view symbol, std::string_view what);
  // "block.prototxt:7:5 (included at resnet.prototxt:9:5)" of a token.
  Place where(const Token& token) const { return {this, base + token.begin}; }
  Place here() const { return where(token()); }
  // ", found \"}\"", for the current token.
  std::string found() const;
};

// The variables of files and repeats, the innermost last. A name is looked up in all of them, but
// set only in those of the innermost file.
class Scopes {
 public:
  // `given` are the variables from outside, -set; the names of those that are read are added to
  // `used`.
  explicit Scopes(const Variables& given) : given_(given) {}

  void enter_file(Variables arguments) { frames_.push_back({std::move(arguments), true}); }
  void enter_repeat() { frames_.push_back({{}, false}); }
  void leave() { frames_.pop_back(); }
  size_t files() const;

  const Literal* find(const std::string& name);
  // In the innermost file that already has it; otherwise in the innermost repeat or file.
  void set(const std::string& name, Literal value);
  // In the innermost repeat or file.
  void set_here(const std::string& name, Literal value) {
    frames_.back().variables[name] = std::move(value);
  }
  std::vector<std::string> names() const;
  const std::vector<std::string>& used() const { return used_; }

  // Counts work, in units of the simplest statement. Error at `at` when all of it together is more than
  // any real net takes: some seconds.
  void spend(int64_t work, const Place& at);

 private:
  struct Frame {
    Variables variables;
    bool is_file;
  };

  const Variables& given_;
  std::vector<Frame> frames_;
  std::vector<std::string> used_;
  int64_t spent_ = 0;
};

}  // namespace crema
