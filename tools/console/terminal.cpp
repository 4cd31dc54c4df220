#include "tools/console/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>

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

bool has_links(int descriptor) {
  if (!can_redraw(descriptor)) return false;
  const std::string force = environment("FORCE_HYPERLINK");
  if (!force.empty()) return force != "0";
  // Screen, and older versions of tmux, remove links or show parts of them.
  const std::string kind = environment("TERM");
  if (starts_with(kind, "screen") || starts_with(kind, "tmux")) return false;
  constexpr int kFirstVte = 5000;  // 0.50
  if (std::atoi(environment("VTE_VERSION").c_str()) >= kFirstVte) return true;
  for (const char* name : {"KONSOLE_VERSION", "WT_SESSION", "KITTY_WINDOW_ID", "DOMTERM"}) {
    if (!environment(name).empty()) return true;
  }
  const auto is_among = [](const std::string& word, std::initializer_list<const char*> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  return is_among(environment("TERM_PROGRAM"),
                  {"iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "mintty"}) ||
         is_among(kind, {"xterm-kitty", "xterm-ghostty", "alacritty", "foot", "wezterm"});
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

std::string linked(std::string_view text, std::string_view address) {
  return cat("\033]8;;", address, "\033\\", text, "\033]8;;\033\\");
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
