#include "tools/flags/output_files.h"

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "base/visible.h"

namespace crema {

namespace {

bool are_one_file(const std::string& a, const std::string& b) {
  if (a == b) return true;
  std::error_code problem;
  if (std::filesystem::equivalent(a, b, problem)) return true;
  const auto whole = [](const std::string& path) {
    std::error_code unknown;
    const auto found = std::filesystem::weakly_canonical(std::filesystem::absolute(path), unknown);
    return unknown ? std::filesystem::path(path) : found;
  };
  return whole(a) == whole(b);
}

void require_two(const FileOfFlag& a, const FileOfFlag& b, const char* why) {
  if (a.path.empty() || b.path.empty()) return;
  require(a.path != b.path, a.flag, " and ", b.flag, " are both ", visible(a.path), why);
  require(!are_one_file(a.path, b.path), a.flag, " ", visible(a.path), " and ", b.flag, " ",
          visible(b.path), " are one file", why);
}

}  // namespace

std::vector<FileOfFlag> files_read(const std::string& model, const std::string& weights) {
  std::vector<FileOfFlag> files = {{"-model", model}};
  for (const std::string& path : split(weights, ',')) files.push_back({"-weights", path});
  return files;
}

void require_apart(const std::vector<FileOfFlag>& written, const std::vector<FileOfFlag>& read) {
  for (size_t i = 0; i < written.size(); ++i) {
    for (size_t k = 0; k < i; ++k) require_two(written[k], written[i], "; expected two files");
    for (const FileOfFlag& file : read)
      require_two(written[i], file, ", which would be overwritten; expected another file");
  }
}

void write_with_weights(const std::string& path, const std::string& text,
                        const std::function<void()>& write_weights) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  write_weights();
  file.commit();
}

}  // namespace crema
