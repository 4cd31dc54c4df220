#include "tools/command_line.h"

#include <fnmatch.h>
#include <gflags/gflags.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/files.h"
#include "base/strings.h"
#include "tools/verb.h"

namespace crema {

namespace {

struct FlagUse {
  std::string name;
  std::optional<std::string> value;
  std::string where;  // "flags.txt:3: " for a flag of a -flagfile
};

std::optional<gflags::CommandLineFlagInfo> lookup(const std::string& name) {
  gflags::CommandLineFlagInfo info;
  if (!gflags::GetCommandLineFlagInfo(name.c_str(), &info)) return std::nullopt;
  return info;
}

// Flags of glog and gflags are valid for every verb; ours only for those that list them.
bool is_ours(const gflags::CommandLineFlagInfo& info) {
  return ends_with(info.filename, "tools/flags.cpp");
}

bool asks_for_help(const std::string& name) {
  static const std::set<std::string> names = {"help",     "h",           "helpshort",
                                              "helpfull", "helppackage", "helpxml"};
  return names.count(name) > 0;
}

// "--name=value", "-switch", "-noswitch" -> name and value; the value of `-name value` is read
// later.
FlagUse parse_flag(const std::string& word, const std::string& where) {
  const std::string text = word.substr(starts_with(word, "--") ? 2 : 1);
  const size_t equal = text.find('=');
  FlagUse use{text.substr(0, equal), std::nullopt, where};
  if (equal != std::string::npos) use.value = text.substr(equal + 1);
  if (asks_for_help(use.name)) return use;
  auto info = lookup(use.name);
  if (!info && !use.value && starts_with(use.name, "no")) {
    info = lookup(use.name.substr(2));
    if (info && info->type == "bool") {
      use.name = use.name.substr(2);
      use.value = "false";
    }
  } else if (info && !use.value && info->type == "bool") {
    use.value = "true";
  }
  return use;
}

class Reader {
 public:
  std::vector<std::string> words;
  std::vector<FlagUse> flags;

  void read(int argc, const char* const* argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--") {
        words.insert(words.end(), argv + i + 1, argv + argc);
        return;
      }
      if (word.size() < 2 || word[0] != '-') {
        words.push_back(word);
        continue;
      }
      FlagUse use = parse_flag(word, "");
      if (!use.value && lookup(use.name) && !asks_for_help(use.name)) {
        require(i + 1 < argc, "-", use.name, " needs a value");
        use.value = argv[++i];
      }
      add(use, 0);
    }
  }

 private:
  void add(const FlagUse& use, int depth) {
    if (use.name == "flagfile" && use.value) {
      require(depth < 16, use.where, "flag files that name each other in a circle: ", *use.value);
      for (const std::string& path : split(*use.value, ',')) read_file_of_flags(path, depth);
    } else {
      flags.push_back(use);
    }
  }

  // One flag per line; '#' starts a comment; a line of patterns restricts the lines after it to
  // programs whose names match.
  void read_file_of_flags(const std::string& path, int depth) {
    int number = 0;
    bool meant = true;
    for (const std::string& line : split(read_text(path), '\n')) {
      const std::string where = cat(path, ":", ++number, ": ");
      const std::string text(trim(line));
      if (text.empty() || text[0] == '#') continue;
      if (text[0] != '-') {
        const std::vector<std::string> patterns = split(text, ' ');
        meant = std::any_of(patterns.begin(), patterns.end(), [](const std::string& pattern) {
          return fnmatch(pattern.c_str(), gflags::ProgramInvocationShortName(), 0) == 0;
        });
        continue;
      }
      if (!meant) continue;
      // "-name value" is equivalent to "-name=value".
      const size_t cut = text.find_first_of("= \t");
      const FlagUse use =
          cut == std::string::npos || text[cut] == '='
              ? parse_flag(text, where)
              : parse_flag(text.substr(0, cut) + "=" + std::string(trim(text.substr(cut))), where);
      add(use, depth + 1);
    }
  }
};

std::vector<std::string> takers_of(const std::string& flag) {
  std::vector<std::string> verbs;
  for (const std::string& name : VerbRegistry::names()) {
    const auto& flags = VerbRegistry::find(name)->flags;
    if (std::count(flags.begin(), flags.end(), flag)) verbs.push_back(name);
  }
  return verbs;
}

// ` (did you mean "-iterations"?)`: a flag of the verb, or else one of another verb.
std::string nearest_flag(const std::string& name, const Verb& verb) {
  std::vector<std::string> of_verb, of_others;
  std::vector<gflags::CommandLineFlagInfo> all;
  gflags::GetAllFlags(&all);
  for (const auto& flag : all) {
    const bool taken =
        !is_ours(flag) || std::count(verb.flags.begin(), verb.flags.end(), flag.name);
    (taken ? of_verb : of_others).push_back("-" + flag.name);
  }
  const std::string hint = did_you_mean("-" + name, of_verb);
  return hint.empty() ? did_you_mean("-" + name, of_others) : hint;
}

void check_verb(const std::string& verb, const std::vector<FlagUse>& flags) {
  if (VerbRegistry::has(verb)) return;
  // The value of a misspelt flag may be where the verb should: it was not known to take one.
  for (const FlagUse& use : flags) {
    if (lookup(use.name) || asks_for_help(use.name)) continue;
    fail(use.where, "no verb takes a flag -", use.name, nearest_flag(use.name, {}));
  }
  fail("no verb \"", verb, "\"", did_you_mean(verb, VerbRegistry::names()), "; the verbs are ",
       join(VerbRegistry::names(), ", "));
}

void set_flag(const FlagUse& use, const std::string& verb) {
  const Verb& taker = *VerbRegistry::find(verb);
  const auto info = lookup(use.name);
  if (!info) {
    fail(use.where, "`crema ", verb, "` knows no flag -", use.name, nearest_flag(use.name, taker),
         "; `crema ", verb, " -help` lists its flags");
  }
  if (is_ours(*info) && !std::count(taker.flags.begin(), taker.flags.end(), use.name)) {
    fail(use.where, "`crema ", verb, "` takes no flag -", use.name, ": it belongs to ",
         join(takers_of(use.name), ", "));
  }
  require(use.value.has_value(), use.where, "-", use.name, " needs a value");
  if (gflags::SetCommandLineOption(use.name.c_str(), use.value->c_str()).empty()) {
    fail(use.where, "-", use.name, "=", *use.value, ": the value must be of type ", info->type);
  }
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  gflags::SetArgv(argc, const_cast<const char**>(argv));
  Reader reader;
  reader.read(argc, argv);

  CommandLine line;
  line.arguments = reader.words;
  // Caffe's makefile gave its programs this suffix, and scripts use it.
  std::string program = std::string(argv[0]).substr(std::string(argv[0]).rfind('/') + 1);
  if (ends_with(program, ".bin")) program.resize(program.size() - 4);
  if (VerbRegistry::has(program)) {
    line.verb = program;
  } else if (!line.arguments.empty()) {
    line.verb = line.arguments[0];
    line.arguments.erase(line.arguments.begin());
    if (line.verb == "help") {
      line.help = true;
      line.verb = line.arguments.empty() ? "" : line.arguments[0];
      if (line.verb.empty()) return line;
    }
    check_verb(line.verb, reader.flags);
  }
  for (const FlagUse& use : reader.flags) {
    line.help |= asks_for_help(use.name);
    line.version |= use.name == "version";
  }
  if (line.help || line.version) return line;
  if (line.verb.empty()) {
    if (reader.flags.empty()) return line;
    fail("a flag without a verb; the verbs are ", join(VerbRegistry::names(), ", "));
  }
  for (const FlagUse& use : reader.flags) set_flag(use, line.verb);

  const Verb& verb = *VerbRegistry::find(line.verb);
  const size_t count = line.arguments.size();
  if (count < verb.min_arguments || count > verb.max_arguments) {
    fail(count < verb.min_arguments
             ? cat("too few arguments (", count, ")")
             : cat("an argument too many: \"", line.arguments[verb.max_arguments], "\""),
         "; usage: crema ", line.verb, " ", verb.usage);
  }
  return line;
}

std::string list_of_verbs() {
  std::string text =
      "Crema trains neural networks that are described in text files.\n\nusage: crema VERB [flags] "
      "[arguments]\n\n";
  for (const std::string& name : VerbRegistry::names()) {
    text += "  " + name + std::string(name.size() < 26 ? 28 - name.size() : 2, ' ') +
            VerbRegistry::find(name)->summary + "\n";
  }
  return text +
         "\n`crema help VERB` prints a verb's own flags; -flagfile FILE reads flags from a "
         "file.\n";
}

std::string help_of(const std::string& name) {
  const Verb& verb = *VerbRegistry::find(name);
  std::string text =
      cat("crema ", name, ": ", verb.summary, "\n\nusage: crema ", name, " ", verb.usage, "\n");
  if (!verb.flags.empty()) text += "\nflags:\n";
  for (const std::string& flag : verb.flags) {
    const auto info = lookup(flag);
    text += cat("  -", flag, " (", info->type, ", default ",
                info->type == "string" ? cat('"', info->default_value, '"') : info->default_value,
                ")\n");
    // Descriptions are wrapped at 100 columns.
    std::string row;
    for (const std::string& word : split(info->description, ' ')) {
      if (row.size() + word.size() > 92) {
        text += "     " + row + "\n";
        row.clear();
      }
      row += " " + word;
    }
    text += "     " + row + "\n";
  }
  return text +
         "\nEvery verb also takes glog's flags (-logtostderr, -minloglevel, -v, -log_dir ...) and "
         "-flagfile FILE.\n";
}

}  // namespace crema
