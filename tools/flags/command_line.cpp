#include "tools/flags/command_line.h"

#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "tools/console/terminal.h"
#include "tools/docs/verb_flags.h"
#include "tools/flags/flag_reader.h"
#include "tools/flags/old_programs.h"
#include "tools/flags/shell_words.h"
#include "tools/verb.h"

namespace crema {

namespace {

std::vector<std::string> takers_of(const std::string& flag) {
  std::vector<std::string> verbs;
  for (const std::string& name : VerbRegistry::names()) {
    const auto& flags = VerbRegistry::find(name)->run.flags();
    if (std::count(flags.begin(), flags.end(), flag)) verbs.push_back(name);
  }
  return verbs;
}

// Flags that no verb lists are those of glog and gflags, -quiet and -layers: every verb takes them.
bool takes(const Verb& verb, const gflags::CommandLineFlagInfo& flag) {
  return std::count(verb.run.flags().begin(), verb.run.flags().end(), flag.name) ||
         takers_of(flag.name).empty();
}

// ` (did you mean "-iterations"?)`: a flag of the verb, or else one of another verb.
std::string nearest_flag(const std::string& name, const Verb& verb) {
  std::vector<std::string> of_verb, of_others;
  std::vector<gflags::CommandLineFlagInfo> all;
  gflags::GetAllFlags(&all);
  for (const auto& flag : all) {
    (takes(verb, flag) ? of_verb : of_others).push_back("-" + flag.name);
  }
  const std::string hint = did_you_mean("-" + name, of_verb);
  return hint.empty() ? did_you_mean("-" + name, of_others) : hint;
}

// `; write -solver net.prototxt`: the flag of the verb that takes a file of this kind.
std::string flag_for(const std::string& argument, const Verb& verb) {
  const auto has = [&](const char* flag) {
    const auto& flags = verb.run.flags();
    return std::find(flags.begin(), flags.end(), flag) != flags.end();
  };
  const auto ends = [&](const char* ending) { return ends_with(argument, ending); };
  const bool is_solver = lower_case(argument).find("solver") != std::string::npos;
  const char* flag = "";
  if (ends(".solverstate")) flag = "snapshot";
  if (ends(".caffemodel") || ends(".caffemodel.h5")) flag = "weights";
  if (ends(".prototxt")) flag = (is_solver && has("solver")) || !has("model") ? "solver" : "model";
  return *flag && has(flag) ? cat("; write -", flag, " ", argument) : "";
}

void check_verb(const std::string& verb, const std::vector<FlagUse>& flags) {
  if (VerbRegistry::has(verb)) return;
  // The value of a misspelt flag may be in the verb's position, because the flag was not known to
  // take one.
  for (const FlagUse& use : flags) {
    if (lookup_flag(use.name) || asks_for_help(use.name)) continue;
    fail(use.where, "no verb has a flag -", use.name, nearest_flag(use.name, {}));
  }
  if (const char* instead = instead_of_verb(verb)) fail("no verb \"", verb, "\": ", instead);
  fail("no verb \"", verb, "\"", did_you_mean(verb, VerbRegistry::names()), "; the verbs are ",
       join(VerbRegistry::names(), ", "));
}

void set_value(const FlagUse& use, const gflags::CommandLineFlagInfo& info, const Verb& verb,
               FlagValues* flags) {
  require(use.value.has_value(), use.where, "-", use.name, " needs a value");
  const std::string& value = *use.value;
  if (use.name == "set" || use.name == "sweep") {
    require(!trim(value).empty(), use.where, "-", use.name,
            " is empty; expected PATH=VALUE, such as base_lr=0.02");
    require(value.find('\n') == std::string::npos, use.where, "-", use.name, " '", value,
            "' has several lines; give one -", use.name, " for each setting");
    (*flags)[use.name].push_back(value);
    return;
  }
  if (verb.lists.count(use.name) && value.find(',') != std::string::npos) {
    std::vector<std::string> numbers;
    for (const std::string& part : split(value, ',')) {
      require(!gflags::SetCommandLineOption(use.name.c_str(), part.c_str()).empty(), use.where, "-",
              use.name, "=", value, ": \"", part, "\" is not of type ", info.type,
              "; expected numbers with commas, such as 1,4,16");
      numbers.push_back(lookup_flag(use.name)->current_value);
    }
    (*flags)[use.name] = numbers;
    return;
  }
  if (gflags::SetCommandLineOption(use.name.c_str(), value.c_str()).empty()) {
    fail(use.where, "-", use.name, "=", value, ": the value must be of type ", info.type);
  }
  const std::string taken = lookup_flag(use.name)->current_value;
  require(info.type != "double" || lower_case(taken).find("nan") == std::string::npos, use.where,
          "-", use.name, "=", value, ": expected a number");
  (*flags)[use.name] = {taken};
}

void set_flag(const FlagUse& use, const std::string& verb, FlagValues* flags) {
  const Verb& taker = *VerbRegistry::find(verb);
  const auto info = lookup_flag(use.name);
  if (!info) {
    if (const char* instead = instead_of_flag(use.name))
      fail(use.where, "`crema ", verb, "` has no flag -", use.name, ": ", instead);
    fail(use.where, "`crema ", verb, "` has no flag -", use.name, nearest_flag(use.name, taker),
         "; `crema ", verb, " -help` lists its flags");
  }
  if (!takes(taker, *info)) {
    fail(use.where, "`crema ", verb, "` has no flag -", use.name, ": it belongs to ",
         join(takers_of(use.name), ", "));
  }
  set_value(use, *info, taker, flags);
}

constexpr const char* kPlaces =
    "Flags also come from the file ~/.config/crema/flags (one per line) and from the environment, "
    "CREMA_FLAGS=\"-gpu 0 -gpu_memory 0.8\"; flags that a verb does not take are skipped there. "
    "-flagfile FILE reads flags from a file at its position. The later one wins: config file, "
    "environment, command line.";

constexpr const char* kEveryVerb =
    "Every verb also takes glog's flags (-logtostderr, -minloglevel, -v, -log_dir ...) and "
    "-flagfile "
    "FILE.";

constexpr size_t kIndent = 6;

// Longer lines are hard to read.
size_t help_width() { return std::min<size_t>(columns_of(STDOUT_FILENO), 100); }

// Keeps [-snapshot FILE|auto | -weights FILES] on one line, until unglued().
constexpr char kGlue = '\1';
std::string glued(std::string text) {
  int depth = 0;
  for (char& c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ' ' && depth > 0) c = kGlue;
  }
  return text;
}
std::string unglued(std::string text) {
  std::replace(text.begin(), text.end(), kGlue, ' ');
  return text;
}

// The examples of a verb; a command that is too long continues after a backslash.
std::string commands_of(const Verb& verb, size_t width) {
  std::string text;
  for (const std::string& command : split(verb.example, '\n')) {
    std::string lines = wrapped(command, width - 2, "  ", std::string(kIndent, ' '));
    lines.pop_back();
    for (const char c : lines) text += c == '\n' ? " \\\n" : std::string(1, c);
    text += "\n";
  }
  return text;
}

// Sets the flags of a place that all verbs share, without those for other verbs, and adds them to
// the line: the log names flags that are set out of sight.
void set_shared_flags(const std::vector<FlagUse>& flags, const std::string& place,
                      CommandLine* line) {
  const Verb& verb = *VerbRegistry::find(line->verb);
  std::string set;
  for (const FlagUse& use : flags) {
    require(!asks_for_help(use.name) && use.name != "version", use.where, "-", use.name,
            " is for the command line only; remove it");
    const auto info = lookup_flag(use.name);
    if (!info) fail(use.where, "no verb has a flag -", use.name, nearest_flag(use.name, verb));
    if (!takes(verb, *info)) continue;
    set_value(use, *info, verb, &line->flags);
    set += cat(" -", use.name, "=", shell_quoted(*use.value));
  }
  if (!set.empty()) line->notes.push_back(cat("Flags from ", place, ":", set));
}

void set_shared_flags(CommandLine* line) {
  set_shared_flags(flags_of_config_file(), config_file(), line);
  const FlagWords words = flags_of_environment();
  set_shared_flags(words.flags, "CREMA_FLAGS", line);
  if (!words.arguments.empty()) {
    fail("CREMA_FLAGS: \"", words.arguments[0],
         "\" is not a flag; expected flags and their values, such as -gpu 0");
  }
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  gflags::SetArgv(argc, const_cast<const char**>(argv));
  FlagWords words = flags_of_command_line(argc, argv);

  CommandLine line;
  line.arguments = words.arguments;
  // Caffe's makefile gave its programs this suffix, and scripts use it.
  std::string program = std::string(argv[0]).substr(std::string(argv[0]).rfind('/') + 1);
  if (ends_with(program, ".bin")) program.resize(program.size() - 4);
  const std::string old = verb_of_old_program(program, line.arguments, words.flags);
  if (VerbRegistry::has(program)) {
    line.verb = program;
  } else if (!old.empty()) {
    line.verb = old;
  } else if (!line.arguments.empty()) {
    line.verb = verb_of_other_caffe(line.arguments[0], words.flags);
    line.arguments.erase(line.arguments.begin());
    if (line.verb == "version" && line.arguments.empty()) {
      line.version = true;
      return line;
    }
    if (line.verb == "help") {
      line.help = true;
      line.verb = line.arguments.empty() ? "" : line.arguments[0];
      if (line.verb.empty()) return line;
    }
    check_verb(line.verb, words.flags);
  }
  for (const FlagUse& use : words.flags) {
    line.help |= asks_for_help(use.name);
    line.version |= use.name == "version";
  }
  if (line.help || line.version) return line;
  if (line.verb.empty()) {
    if (words.flags.empty()) return line;
    fail("a flag without a verb; the verbs are ", join(VerbRegistry::names(), ", "));
  }
  set_shared_flags(&line);
  for (const FlagUse& use : words.flags) {
    set_flag(use, line.verb, &line.flags);
    line.given.insert(use.name);
    if (const char* why = flag_without_effect(use.name))
      line.warnings.push_back(cat("-", use.name, " has no effect here: ", why));
  }

  const Verb& verb = *VerbRegistry::find(line.verb);
  const size_t count = line.arguments.size();
  if (count < verb.min_arguments || count > verb.max_arguments) {
    fail(count < verb.min_arguments
             ? cat("too few arguments (", count, ")")
             : cat("unexpected argument: \"", line.arguments[verb.max_arguments], "\"",
                   flag_for(line.arguments[verb.max_arguments], verb)),
         "; usage: crema ", line.verb, " ", verb.usage);
  }
  return line;
}

void add_flags(const std::string& text, const std::string& place, const std::string& verb,
               FlagValues* flags) {
  const FlagWords words = flags_of_text(text, place + ": ");
  for (const FlagUse& use : words.flags) set_flag(use, verb, flags);
  if (!words.arguments.empty()) {
    fail(place, ": \"", words.arguments[0],
         "\" is not a flag; expected flags and their values, such as -precision fp16");
  }
}

std::string list_of_verbs() {
  constexpr size_t kColumn = 28;
  const size_t width = help_width();
  std::string text =
      wrapped("Crema trains neural networks that are described in text files.", width, "", "") +
      "\nusage: crema VERB [flags] [arguments]\n\n";
  for (const std::string& name : VerbRegistry::names()) {
    std::string first = "  " + name;
    first.resize(std::max(first.size() + 2, kColumn), ' ');
    text += wrapped(VerbRegistry::find(name)->summary, width, first, std::string(kColumn, ' '));
  }
  return text + "\n" +
         wrapped(
             "`crema help VERB` explains a verb and its flags, `crema version` says what is "
             "installed.",
             width, "", "") +
         "\n" + wrapped(kPlaces, width, "", "");
}

std::string help_of(const std::string& name) {
  const Verb& verb = *VerbRegistry::find(name);
  const size_t width = help_width();
  std::string text = wrapped(cat("crema ", name, ": ", verb.summary), width, "", "  ") + "\n" +
                     unglued(wrapped(glued(verb.usage), width, cat("usage: crema ", name, " "),
                                     std::string(kIndent, ' ')));
  text += cat("\nexample:\n", commands_of(verb, width));
  text += "\nflags:\n";
  for (const VerbFlag& flag : flags_of(verb)) {
    text += cat("  -", flag.name, " (", flag.type, ", default ",
                flag.type == "string" ? cat('"', flag.initial, '"') : flag.initial, ")\n");
    const std::string indent(kIndent, ' ');
    text += wrapped(flag.meaning, width, indent, indent);
  }
  return text + "\n" + wrapped(kEveryVerb, width, "", "") + wrapped(kPlaces, width, "", "");
}

std::string about_all_flags() { return cat(kEveryVerb, " ", kPlaces); }

}  // namespace crema
