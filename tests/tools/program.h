// Runs the program's verbs as a user does, each test in a folder of its own.
#pragma once

#include <string>
#include <vector>

namespace crema::test {

// A folder that vanishes with its object.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const;
  std::string read(const std::string& name) const;
  bool has(const std::string& name) const;
  // Copies a file or folder of tests/goldens into this one.
  void copy_golden(const std::string& from, const std::string& to) const;

 private:
  std::string path_;
};

struct Outcome {
  int code = -1;    // exit code; 128 + number for a signal
  std::string out;  // stdout
  std::string err;  // stderr: the log
  std::vector<std::string> messages()
      const;  // of the log, without prefixes; a message may have several lines
  // The messages whose level is E.
  std::vector<std::string> errors() const;
};

// `command` is a shell line such as "crema train -solver solver.prototxt", run in `folder` or a
// folder within; its first word is one of the programs that the build made.
Outcome run(const Folder& folder, const std::string& command, const std::string& within = ".");

// Any shell text; $TOOLS is the folder of the programs. The log of a program in it is in .stderr
// while it runs.
Outcome run_shell(const Folder& folder, const std::string& script, const std::string& within = ".");

}  // namespace crema::test
