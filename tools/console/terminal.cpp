#include "tools/console/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/system.h"

namespace crema {

namespace {

const char* code_of(Colour colour) {
  switch (colour) {
    case Colour::red:
      return "\033[1;31m";
    case Colour::yellow:
      return "\033[1;33m";
    case Colour::cyan:
      return "\033[36m";
  }
  return "";
}

}  // namespace

bool is_terminal(int descriptor) { return isatty(descriptor) != 0; }

bool has_colour(int descriptor) {
  if (!environment("NO_COLOR").empty()) return false;
  const std::string force = environment("CLICOLOR_FORCE");
  if (!force.empty() && force != "0") return true;
  return can_redraw(descriptor) && environment("CLICOLOR") != "0";
}

bool can_redraw(int descriptor) {
  const std::string kind = environment("TERM");
  return is_terminal(descriptor) && !kind.empty() && kind != "dumb";
}

size_t columns_of(int descriptor) {
  constexpr size_t kUsual = 80, kNarrowest = 20;
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col < kNarrowest) return kUsual;
  return size.ws_col;
}

std::string painted(std::string_view text, Colour colour, bool has_colour) {
  return has_colour ? cat(code_of(colour), text, "\033[0m") : std::string(text);
}

std::string wrapped(std::string_view text, size_t width, const std::string& first,
                    const std::string& indent) {
  std::string lines, line = first;
  bool empty = true;
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    if (!empty && line.size() + 1 + word.size() > width) {
      lines += line + "\n";
      line = indent;
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
  }
  return lines + line + "\n";
}

}  // namespace crema
