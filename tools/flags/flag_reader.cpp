#include "tools/flags/flag_reader.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/system.h"
#include "tools/flags/shell_words.h"

namespace crema {

namespace {

// "--name=value", "-switch", "-noswitch" -> name and value; the value of `-name value` is read
// later.
FlagUse parse_flag(const std::string& word, const std::string& where) {
  const std::string text = word.substr(starts_with(word, "--") ? 2 : 1);
  const size_t equal = text.find('=');
  FlagUse use{text.substr(0, equal), std::nullopt, where};
  if (equal != std::string::npos) use.value = text.substr(equal + 1);
  if (asks_for_help(use.name)) return use;
  auto info = lookup_flag(use.name);
  if (!info && !use.value && starts_with(use.name, "no")) {
    info = lookup_flag(use.name.substr(2));
    if (info && info->type == "bool") {
      use.name = use.name.substr(2);
      use.value = "false";
    }
  } else if (info && !use.value && info->type == "bool") {
    use.value = "true";
  }
  return use;
}

enum class FileKind { flagfile, config };

class Reader {
 public:
  FlagWords out;

  void read_words(const std::vector<std::string>& words, const std::string& where) {
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      if (word == "--") {
        out.arguments.insert(out.arguments.end(), words.begin() + static_cast<int64_t>(i) + 1,
                             words.end());
        return;
      }
      if (word.size() < 2 || word[0] != '-') {
        out.arguments.push_back(word);
        continue;
      }
      FlagUse use = parse_flag(word, where);
      if (!use.value && lookup_flag(use.name) && !asks_for_help(use.name)) {
        require(i + 1 < words.size(), where, "-", use.name, " needs a value");
        use.value = words[++i];
      }
      add(use, 0);
    }
  }

  // One flag per line; '#' starts a comment; a line of patterns restricts the lines after it to
  // programs whose names match.
  void read_file(const std::string& path, int depth, FileKind kind) {
    int number = 0;
    bool meant = true;
    for (const std::string& line : split(read_text(path), '\n')) {
      const std::string where = cat(path, ":", ++number, ": ");
      const std::string text(trim(line));
      if (text.empty() || text[0] == '#') continue;
      const size_t cut = text.find_first_of("= \t");
      if (text[0] != '-') {
        // The command does not name this file: a missing dash would silence the flags after it.
        require(kind == FileKind::flagfile || !lookup_flag(text.substr(0, cut)), where, "\"", text,
                "\" is not a flag; write -", text);
        const std::vector<std::string> patterns = split(text, ' ');
        meant = std::any_of(patterns.begin(), patterns.end(), [](const std::string& pattern) {
          return fnmatch(pattern.c_str(), gflags::ProgramInvocationShortName(), 0) == 0;
        });
        continue;
      }
      if (!meant) continue;
      // "-name value" is equivalent to "-name=value".
      const FlagUse use =
          cut == std::string::npos || text[cut] == '='
              ? parse_flag(text, where)
              : parse_flag(text.substr(0, cut) + "=" + std::string(trim(text.substr(cut))), where);
      add(use, depth + 1);
    }
  }

 private:
  void add(const FlagUse& use, int depth) {
    if (use.name == "flagfile" && use.value) {
      require(depth < 16, use.where, "flag files include each other in a circle: ", *use.value);
      for (const std::string& path : split(*use.value, ','))
        read_file(path, depth, FileKind::flagfile);
    } else {
      out.flags.push_back(use);
    }
  }
};

}  // namespace

std::optional<gflags::CommandLineFlagInfo> lookup_flag(const std::string& name) {
  gflags::CommandLineFlagInfo info;
  if (!gflags::GetCommandLineFlagInfo(name.c_str(), &info)) return std::nullopt;
  return info;
}

bool asks_for_help(const std::string& name) {
  static const std::set<std::string> names = {"help",     "h",           "helpshort",
                                              "helpfull", "helppackage", "helpxml"};
  return names.count(name) > 0;
}

FlagWords flags_of_command_line(int argc, const char* const* argv) {
  Reader reader;
  reader.read_words({argv + 1, argv + argc}, "");
  return reader.out;
}

FlagWords flags_of_text(const std::string& text, const std::string& where) {
  Reader reader;
  try {
    reader.read_words(shell_words(text), where);
  } catch (const Error& error) {
    if (starts_with(error.what(), where)) throw;
    fail(where, error.what());
  }
  return reader.out;
}

FlagWords flags_of_environment() {
  return flags_of_text(environment("CREMA_FLAGS"), "CREMA_FLAGS: ");
}

std::string config_file() {
  std::string folder = environment("XDG_CONFIG_HOME");
  if (folder.empty() || folder[0] != '/') {  // the XDG specification ignores relative paths
    const std::string home = environment("HOME");
    if (home.empty()) return "";
    folder = home + "/.config";
  }
  return folder + "/crema/flags";
}

std::vector<FlagUse> flags_of_config_file() {
  const std::string path = config_file();
  try {
    if (path.empty() || !file_exists(path)) return {};
  } catch (const FileError&) {  // HOME is another user's
    return {};
  }
  Reader reader;
  reader.read_file(path, 0, FileKind::config);
  return reader.out.flags;
}

}  // namespace crema
