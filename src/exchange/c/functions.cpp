#include "exchange/c/functions.h"

#include <cctype>

#include "base/strings.h"

namespace crema {

namespace {

// The files that the text's first comment lists.
std::vector<std::string> needed_files(const std::string& text) {
  const size_t begin = text.find("needs:"), end = text.find("*/");
  if (begin == std::string::npos || begin > end) return {};
  std::vector<std::string> names;
  for (const std::string& name : split(trim(text.substr(begin + 6, end - begin - 6)), ' '))
    if (!name.empty()) names.push_back(name);
  return names;
}

std::string without_needs(std::string text) {
  const size_t begin = text.find("needs:"), end = text.find("*/");
  if (begin == std::string::npos || begin > end) return text;
  const size_t before = text.find_last_not_of(" \n", begin - 1) + 1;
  return text.replace(before, end - before, " ");
}

void add_file(const std::string& name, std::set<std::string>* added, std::string* to) {
  const auto found = c_function_texts().find(name);
  if (found == c_function_texts().end() || !added->insert(name).second) return;
  for (const std::string& other : needed_files(found->second)) add_file(other, added, to);
  *to += "\n" + without_needs(found->second);
}

}  // namespace

const std::set<std::string>& c_function_names() {
  static const std::set<std::string> names = [] {
    std::set<std::string> words;
    for (const auto& [file, text] : c_function_texts()) {
      words.insert(file);
      std::string word;
      for (const char c : text) {
        if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
          word += c;
          continue;
        }
        // A word before "(" may be a function.
        if (c == '(' && !word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) == 0)
          words.insert(word);
        word.clear();
      }
    }
    return words;
  }();
  return names;
}

std::string c_functions(const std::vector<const CProgram*>& programs) {
  std::set<std::string> wanted, added;
  std::map<std::string, std::string> instances;
  for (const CProgram* program : programs) {
    std::vector<const CRoutine*> routines = {&program->inference};
    if (program->training) routines.push_back(&program->training->routine);
    for (const CRoutine* const routine : routines) {
      for (const CCall& call : routine->calls) {
        wanted.insert(call.file);
        if (!call.macro.empty()) instances[call.function] = call.macro;
      }
    }
  }
  std::string text;
  for (const std::string& name : wanted) add_file(name, &added, &text);
  if (!instances.empty()) text += "\n";
  for (const auto& [name, macro] : instances) text += macro + "\n";
  return text;
}

}  // namespace crema
