// Layers written in Python if no Python can run them. tests/python/test_python_layer.py has the
// rest.
#include <gtest/gtest.h>

#include "tools/program.h"

namespace crema::tests {
namespace python_layer_test {

constexpr const char* kNet =
    "layer { name: \"in\" type: \"Input\" top: \"x\" input_param { shape { dim: 2 dim: 3 } } }\n"
    "layer { name: \"own\" type: \"Python\" bottom: \"x\" top: \"y\" python_param { module: "
    "\"my_layers\" layer: \"Own\" } }\n";

constexpr const char* kTime = "\"$TOOLS/crema\" time -model net.prototxt -iterations 1";

struct Absent {
  const char* name;
  // The program that PYTHON names: a shell script.
  const char* program;
  const char* error;
};

class PythonLayerWithout : public testing::TestWithParam<Absent> {};

const Absent kAbsent[] = {
    {"Python", "exit 1", "is not a working Python 3"},
    {"NumPy", "printf 'crema asks\\n3.9\\n/lib.so\\nImportError: no numpy\\n/p\\n/usr\\n'",
     "has no working NumPy: ImportError: no numpy"},
    {"SharedLibrary", "printf 'crema asks\\n3.9\\n\\n\\n/p\\n/usr\\n'",
     "has no shared library (libpython3.9.so)"},
    {"Module", "printf 'crema asks\\n3.9\\n/lib.so\\n\\n\\n/usr\\n'",
     "has no crema module built for it"},
    {"LibraryThatLoads", "printf 'crema asks\\n3.9\\n/no/lib.so\\n\\n/p\\n/usr\\n'",
     "/no/lib.so: cannot open shared object file"},
};

TEST_P(PythonLayerWithout, IsOneError) {
  const Folder folder;
  folder.write("net.prototxt", kNet);
  folder.write("python", cat("#!/bin/sh\n", GetParam().program, "\n"));
  const std::string set = "chmod +x python; export PYTHON=$PWD/python; ";
  const Outcome refused = run_shell(folder, set + kTime);
  EXPECT_EQ(refused.code, 1) << refused.err;
  expect_part(refused.err, "net.prototxt:2:1: layer \"own\": ");
  expect_part(refused.err, GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(All, PythonLayerWithout, testing::ValuesIn(kAbsent),
                         [](const auto& info) { return info.param.name; });

// NumPy imports modules of these names.
TEST(PythonLayer, FilesOfTheWorkingDirectoryDoNotReplacePythonsOwn) {
  const Folder folder;
  folder.write("net.prototxt", kNet);
  for (const char* module : {"random.py", "numbers.py", "sysconfig.py", "importlib.py"})
    folder.write(module, "open('ran', 'w')\nraise ImportError('this is not the module')\n");
  run_shell(folder, kTime);
  EXPECT_FALSE(folder.has("ran"));
}

TEST(PythonLayer, NeedsNoPythonWhenItsTopsAreAssumed) {
  const Folder folder;
  folder.write("net.prototxt", kNet);
  const Outcome assumed = run_shell(folder, cat("export PYTHON=/none; ", kTime, " -assume y=2x3"));
  EXPECT_EQ(assumed.code, 0) << assumed.err;
}

TEST(PythonLayer, NetsWithoutOneLoadNoPython) {
  const Folder folder;
  folder.write("net.prototxt", std::string(kNet).substr(0, std::string(kNet).find('\n')));
  const Outcome outcome =
      run_shell(folder, cat("export PYTHON=/none; LD_DEBUG=files LD_DEBUG_OUTPUT=loaded ", kTime,
                            " && cat loaded.* | grep -c libcrema && ! grep -l libpython loaded.*"));
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

}  // namespace python_layer_test
}  // namespace crema::tests
