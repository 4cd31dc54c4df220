// Files that a verb writes: none may be another one of its files, and a net comes with its weights.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace crema {

struct FileOfFlag {
  std::string flag, path;  // "-output"; "": not given
};

// The files of -weights, which separates them with commas.
std::vector<FileOfFlag> files_read(const std::string& model, const std::string& weights);

// Error if a file to write is also another one to write, or one to read, under whatever path.
void require_apart(const std::vector<FileOfFlag>& written, const std::vector<FileOfFlag>& read);

// Writes the text to the path and calls write_weights(). If either fails, the path has what it had.
void write_with_weights(const std::string& path, const std::string& text,
                        const std::function<void()>& write_weights);

}  // namespace crema
