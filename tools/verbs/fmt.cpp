// `crema fmt FILE|FOLDER ... [-check]`: writes prototxt files in one form (net/syntax/format.h).
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "base/files.h"
#include "net/syntax/format.h"
#include "tools/verb.h"

namespace crema {

namespace {

using FmtFlags = FlagsOf<"check">;

bool is_prototxt(const std::filesystem::path& path) {
  return path.extension() == ".prototxt" || path.extension() == ".pbtxt";
}

// The files that an argument names, in a fixed order: of a folder all below it, but nothing hidden and no linked folder.
std::vector<std::string> files_of(const std::string& argument) {
  if (!folder_exists(argument)) return {argument};
  std::vector<std::string> found;
  for (const std::string& name : list_folder(argument)) {
    const std::string path = without_slash(argument) + "/" + name;
    const bool is_folder = folder_exists(path);
    if (name[0] == '.' || (is_folder ? std::filesystem::is_symlink(path) : !is_prototxt(path)))
      continue;
    const std::vector<std::string> inside = files_of(path);
    found.insert(found.end(), inside.begin(), inside.end());
  }
  return found;
}

std::string formatted_text(const std::string& text, const std::string& name) {
  const SyntaxTree tree(text);
  if (!tree.mistakes.empty())
    fail(name, ":", tree.place(tree.mistakes[0].begin), ": ", tree.mistakes[0].text);
  return formatted(tree);
}

// Writes a file that exists, and leaves its permissions as they are.
void replace(const std::filesystem::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  std::filesystem::permissions(file.temporary_path(), std::filesystem::status(path).permissions());
  file.commit();
}

// Formats what is read from the standard input.
int format_input(const FmtFlags& flags) {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const std::string result = formatted_text(text, "standard input");
  if (flags.check) return result == text ? 0 : 1;
  std::cout << result << std::flush;
  return 0;
}

int run_fmt(const VerbCall& call, const FmtFlags& flags) {
  if (call.arguments == std::vector<std::string>{"-"}) return format_input(flags);
  std::vector<std::string> files;
  for (const std::string& argument : call.arguments) {
    const std::vector<std::string> found = files_of(argument);
    require(!found.empty(), argument, ": no .prototxt or .pbtxt is in this folder or below it");
    files.insert(files.end(), found.begin(), found.end());
  }
  int mistakes = 0, different = 0;
  for (const std::string& file : files) {
    try {
      const std::string text = read_text(file), result = formatted_text(text, file);
      if (result == text) continue;
      ++different;
      if (flags.check) {
        std::cout << file << "\n";
      } else {
        replace(std::filesystem::canonical(file), result);  // a link stays one
        call.log.info("Formatted " + file);
      }
    } catch (const Error& error) {  // the others are formatted all the same
      ++mistakes;
      call.log.error(error.what());
    }
  }
  return mistakes > 0 || (flags.check && different > 0) ? 1 : 0;
}

REGISTER_VERB(fmt, {.summary = "formats nets and solvers",
                    .usage = "FILE|FOLDER ... [-check]",
                    .example = "crema fmt models/lenet\n"
                               "crema fmt -check models",
                    .min_arguments = 1,
                    .max_arguments = 100000,
                    .run = run_fmt});

}  // namespace

}  // namespace crema
