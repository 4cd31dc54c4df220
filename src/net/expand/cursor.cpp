#include "net/expand/cursor.h"

#include <algorithm>

#include "base/error.h"

namespace crema {

bool Cursor::consume(std::string_view symbol) {
  if (!token().is(symbol)) return false;
  ++at;
  return true;
}

void Cursor::expect(std::string_view symbol, std::string_view what) {
  if (!consume(symbol)) fail(here(), ": expected ", what, found());
}

std::ostream& operator<<(std::ostream& out, const Place& place) {
  out << place.cursor->file->where(place.offset);
  return place.cursor->context ? out << " (" << *place.cursor->context << ")" : out;
}

std::string Cursor::found() const {
  return token().kind == Token::Kind::end ? ", and the file ends here"
                                          : cat(", found ", token().text);
}

size_t Scopes::files() const {
  return std::count_if(frames_.begin(), frames_.end(), [](const Frame& f) { return f.is_file; });
}

const Literal* Scopes::find(const std::string& name) {
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
    const auto found = frame->variables.find(name);
    if (found != frame->variables.end()) return &found->second;
  }
  const auto found = given_.find(name);
  if (found == given_.end()) return nullptr;
  if (!std::count(used_.begin(), used_.end(), name)) used_.push_back(name);
  return &found->second;
}

void Scopes::set(const std::string& name, Literal value) {
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
    const auto found = frame->variables.find(name);
    if (found != frame->variables.end()) return void(found->second = std::move(value));
    if (frame->is_file) break;
  }
  set_here(name, std::move(value));
}

void Scopes::spend(int64_t work, const Place& at) {
  constexpr int64_t kMost = int64_t{1} << 21;  // ResNet-152 takes 10^4
  spent_ += work;
  if (spent_ > kMost)
    fail(at,
         ": expanding this text takes too long: its repeats, includes and lists make more than ",
         kMost, " steps; a real net takes some thousands");
}

std::vector<std::string> Scopes::names() const {
  std::vector<std::string> names;
  for (const Frame& frame : frames_)
    for (const auto& [name, value] : frame.variables) names.push_back("$" + name);
  for (const auto& [name, value] : given_) names.push_back("$" + name);
  return names;
}

}  // namespace crema
