// CompiledC: a written C file with a main() that tries it, compiled in a temporary folder.
#pragma once

#include <string>

namespace crema {

class CompiledC {
 public:
  CompiledC();
  ~CompiledC();
  CompiledC(const CompiledC&) = delete;
  CompiledC& operator=(const CompiledC&) = delete;

  // Finds the compiler, $CC or cc. Empty: it is there; otherwise what is missing.
  std::string problem();
  const std::string& compiler() const { return compiler_; }
  const std::string& version() const { return version_; }

  // Compiles `source`, whose header is in the same folder, with this main(). Error with what the compiler
  // says.
  void compile(const std::string& source, const std::string& main_text);
  // Runs the program, which reads `input` and returns what it wrote. Its arguments are the paths of both
  // files, and of the weights unless that is empty. Error if it fails.
  std::string run(const std::string& input, const std::string& weights);

 private:
  std::string file(const char* name) const { return folder_ + "/" + name; }
  std::string quoted(const char* name) const;

  const std::string folder_;
  std::string compiler_, version_, source_;
};

// Declarations and statements of a main() that fill an array `w` with the weights of the third argument.
std::string c_weights_array(size_t bytes);
extern const char* const kReadCWeights;

}  // namespace crema
