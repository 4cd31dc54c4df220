#include "tools/python_start.h"

#include <dlfcn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "layers/python_hook.h"
#include "tools/flags/shell_words.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

// Run by a Python that may be used; arguments: folders that may have the package. With -c Python would
// import files of the working directory first: a stray random.py must not run. Prints one fact a line:
// version, shared library, what NumPy's import says ("" for good), the folder with a crema
// module for this version, sys.base_prefix, then sys.path.
constexpr const char* kQuestions = R"(
import sys
if sys.path and sys.path[0] == '':
    del sys.path[0]
import importlib.machinery, os, sysconfig
def var(name):
    return str(sysconfig.get_config_var(name) or '')
names = [var('INSTSONAME'), var('LDLIBRARY'), 'libpython%d.%d.so.1.0' % sys.version_info[:2]]
folders = [var('LIBDIR'), os.path.join(sys.base_prefix, 'lib'), os.path.join(sys.base_prefix, 'lib64')]
found = [os.path.join(f, n) for n in names if '.so' in n for f in folders if os.path.isfile(os.path.join(f, n))]
try:
    import numpy
    problem = ''
except BaseException as error:
    problem = '%s: %s' % (type(error).__name__, error)
packages = [f for f in sys.argv[1:] + sys.path if any(os.path.isfile(os.path.join(f, 'crema', '_crema' + s))
            for s in importlib.machinery.EXTENSION_SUFFIXES)]
answers = ['crema asks', '%d.%d' % sys.version_info[:2], (found + [''])[0], problem.split('\n')[0],
           (packages + [''])[0], sys.base_prefix] + [p for p in sys.path if p]
print('\n'.join(answers))
)";

struct Python {
  std::string program, version, library, numpy_problem, package, prefix;
  std::vector<std::string> path;  // sys.path
};

// Where this program's own package may be: next to bin/ (and tools/ of a build), or around it.
std::vector<std::string> own_packages() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return {};
  return {(folder / "../python").lexically_normal(), (folder / "../..").lexically_normal()};
}

// The programs to try, in order. $PYTHON is an order: then no other is tried.
std::vector<std::string> candidates() {
  if (const char* chosen = std::getenv("PYTHON"); chosen && *chosen) return {chosen};
  std::vector<std::string> all;
  const auto add = [&](const fs::path& program) {
    std::error_code ignored;
    const bool known = std::find(all.begin(), all.end(), program.string()) != all.end();
    if (!known && fs::is_regular_file(program, ignored)) all.push_back(program);
  };
  if (const char* folder = std::getenv("VIRTUAL_ENV"); folder && *folder)
    add(fs::path(folder) / "bin/python3");
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path ? path : "", ':')) {
    if (!folder.empty()) add(fs::path(folder) / "python3");
  }
  return all;
}

// The program's answer; none: it is not a working Python.
std::optional<Python> ask(const std::string& program) {
  std::string command = cat(shell_quoted(program), " -c ", shell_quoted(kQuestions));
  for (const std::string& folder : own_packages()) command += " " + shell_quoted(folder);
  FILE* const pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (!pipe) return std::nullopt;
  std::string text;
  char buffer[4096];
  while (const size_t count = std::fread(buffer, 1, sizeof buffer, pipe))
    text.append(buffer, count);
  const int status = pclose(pipe);
  std::vector<std::string> lines = split(text, '\n');
  const auto first = std::find(lines.begin(), lines.end(), "crema asks");
  if (status != 0 || lines.end() - first < 6) return std::nullopt;
  Python python{program, first[1], first[2], first[3], first[4], first[5], {}};
  for (auto line = first + 6; line != lines.end(); ++line) {
    if (!line->empty()) python.path.push_back(*line);
  }
  return python;
}

// "": it can be used.
std::string problem_of(const std::optional<Python>& python, const std::string& program) {
  if (!python) return cat(program, " is not a working Python 3");
  const std::string name = cat("Python ", python->version, " (", program, ")");
  if (!python->numpy_problem.empty())
    return cat(name, " has no working NumPy: ", python->numpy_problem);
  if (python->package.empty())
    return cat(name, " has no crema module built for it: install crema there, or build it with ",
               "-DPython3_EXECUTABLE=", program);
  if (python->library.empty())
    return cat(name, " has no shared library (libpython", python->version,
               ".so), which the programs need: it was built without --enable-shared");
  return "";
}

Python choose_python() {
  std::string problems;
  for (const std::string& program : candidates()) {
    const std::optional<Python> python = ask(program);
    const std::string problem = problem_of(python, program);
    if (problem.empty()) return *python;
    problems += cat(problems.empty() ? "" : "; ", problem);
  }
  fail("it is written in Python, and no Python can be started: ",
       problems.empty() ? "there is no python3 on the path" : problems,
       "; the variable PYTHON names another one, and -assume TOP=SHAPE for each top of the layer "
       "does "
       "without");
}

// A text as Python code writes it.
std::string literal(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\\' || c == '\'') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

// The functions that the program needs from libpython, which is loaded on demand.
class Interpreter {
 public:
  explicit Interpreter(const Python& python)
      // Global, because extension modules expect to find its functions in the process.
      : library_(dlopen(python.library.c_str(), RTLD_NOW | RTLD_GLOBAL)) {
    if (!library_) fail("Python cannot be loaded: ", dlerror());
    find("Py_InitializeEx", initialize_);
    find("Py_DecodeLocale", decode_);
    find("PyRun_SimpleStringFlags", run_);
    find("PyImport_AddModule", module_);
    find("PyObject_GetAttrString", attribute_);
    find("PyUnicode_AsUTF8", text_);
    find("PyEval_SaveThread", release_);
    find("PyGILState_Ensure", ensure_);
  }

  // As if the program were the one of this name: a virtual environment's is that environment's.
  void start(const Python& python) {
    using SetName = void (*)(const wchar_t*);
    const auto set_name = reinterpret_cast<SetName>(dlsym(library_, "Py_SetProgramName"));
    if (set_name) {
      set_name(decode_(python.program.c_str(), nullptr));  // Python keeps it
    } else {
      setenv("PYTHONHOME", python.prefix.c_str(), 1);
    }
    initialize_(0);
  }
  void run(const std::string& code) { run_(code.c_str(), nullptr); }
  std::string text(const char* variable) {
    void* const value = attribute_(module_("__main__"), variable);
    const char* const text = value ? text_(value) : nullptr;
    return text ? text : "an unknown error";
  }
  // Afterwards any thread takes the lock when it needs it.
  void release_lock() { release_(); }
  // Takes it for ever: threads that Python code has started stop when they need it.
  void take_lock() { ensure_(); }

 private:
  template <typename Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    require(function != nullptr, "Python's library lacks the function ", name);
  }

  void* library_;
  void (*initialize_)(int) = nullptr;
  wchar_t* (*decode_)(const char*, size_t*) = nullptr;
  int (*run_)(const char*, void*) = nullptr;
  void* (*module_)(const char*) = nullptr;
  void* (*attribute_)(void*, const char*) = nullptr;
  const char* (*text_)(void*) = nullptr;
  void* (*release_)() = nullptr;
  int (*ensure_)() = nullptr;
};

struct Start {
  Log* log = nullptr;
  std::optional<Interpreter> interpreter;
  std::string problem;  // of an interpreter that runs
};

Start& state() {
  static auto* const start = new Start;  // used at exit
  return *start;
}

// The steps of Python's shutdown, without ending it: nets may still have its objects.
void end_python() {
  state().interpreter->take_lock();
  state().interpreter->run(
      "import atexit, sys\natexit._run_exitfuncs()\nsys.stdout.flush()\nsys.stderr.flush()\n");
}

void start_python() {
  Start& start = state();
  if (!start.interpreter) {
    const Python python = choose_python();
    start.interpreter.emplace(python);
    start.interpreter->start(python);
    std::string code =
        cat("import sys\nsys.path.insert(0, ", literal(python.package), ")\nfor folder in [");
    for (const std::string& folder : python.path) code += literal(folder) + ",";
    code +=
        "]:\n    if folder not in sys.path: sys.path.append(folder)\n"
        "if sys.stdout: sys.stdout.reconfigure(line_buffering=True)\n"
        "crema_problem = ''\n"
        "try:\n    import crema\n"
        "except BaseException as error:\n"
        "    crema_problem = '%s: %s' % (type(error).__name__, error)\n";
    start.interpreter->run(code);
    const std::string problem = start.interpreter->text("crema_problem");
    if (!problem.empty())
      start.problem = cat("Python ", python.version, " (", python.program,
                          ") cannot import crema of ", python.package, ": ", problem);
    else if (!has_python_maker())
      start.problem =
          cat("the module crema in ", python.package,
              " has its own libcrema: it belongs to a different installation than this program");
    start.interpreter->release_lock();
    std::atexit(end_python);
    start.log->info(cat("Python layers run in Python ", python.version, ", ", python.program));
  }
  if (!start.problem.empty()) fail(start.problem);
}

}  // namespace

void offer_python(Log& log) {
  state().log = &log;
  set_python_starter(start_python);
}

}  // namespace crema
