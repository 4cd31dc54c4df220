// Findings of `crema check` for the nets in models/ and in the corpus.
#include <algorithm>
#include <filesystem>
#include <set>

#include "fixtures.h"
#include "solver/check/check.h"

namespace crema::tests {
namespace check_models_test {

const std::string kTop = std::filesystem::path(CREMA_TEST_DATA).parent_path();

// In the folder that paths in models/ start from.
class AtTop {
 public:
  AtTop() { std::filesystem::current_path(kTop); }
  ~AtTop() { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
};

std::vector<std::string> prototxts_in(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".prototxt") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Findings about a file that people use, and why they are right.
struct Accepted {
  const char *file, *said, *why;
  bool needs_data = false;
};

const std::vector<Accepted> kAccepted = {
    {"models/cifar10_full_sigmoid_bn/", "note: layer \"bn", "Caffe's example compares just that"},
    {"models/mnist_autoencoder/", "tests read the training data",
     "as in Caffe: one of its two tests shows the training set"},
    {"models/lenet/solver_consolidated", "tests read the training data",
     "as in Caffe: one of its tests shows the training set"},
    {"models/mnist_autoencoder/", "note: test_iter is 500",
     "as in Caffe: a part of the training set", true},
};

// All findings, without sources and a teacher's weights that are not on this machine.
std::vector<std::string> told(const SolverFile& file) {
  std::vector<std::string> lines;
  for (const Finding& finding : check_training(file, {})) {
    const std::string line = line_of(finding);
    const bool no_data = line.find(": no such database") != std::string::npos ||
                         line.find(": there is no such list of images") != std::string::npos ||
                         line.find("_iter_64000.caffemodel\" does not exist") != std::string::npos;
    if (!no_data) lines.push_back(line);
  }
  return lines;
}

TEST(CheckModels, SayOnlyWhatIsAccepted) {
  const AtTop at_top;
  std::set<const Accepted*> seen;
  int solvers = 0;
  for (const std::string& path : prototxts_in("models")) {
    const std::string name = std::filesystem::path(path).filename();
    if (name.find("solver") == std::string::npos || ends_with(name, "common.prototxt")) continue;
    ++solvers;
    for (const std::string& line : told(read_solver_file(path))) {
      const auto is_it = [&](const Accepted& accepted) {
        return starts_with(path, accepted.file) && line.find(accepted.said) != std::string::npos;
      };
      const auto found = std::find_if(kAccepted.begin(), kAccepted.end(), is_it);
      if (found == kAccepted.end()) {
        ADD_FAILURE() << path << ": " << line;
      } else {
        seen.insert(&*found);
      }
    }
  }
  EXPECT_GT(solvers, 40);
  for (const Accepted& accepted : kAccepted)
    EXPECT_TRUE(accepted.needs_data || seen.count(&accepted)) << accepted.file << accepted.said;
}

TEST(CheckModels, SayNothingOfTheCorpus) {
  const AtTop at_top;
  int nets = 0;
  for (const std::string& path : prototxts_in("tests/corpus")) {
    ++nets;
    const SolverFile file = parse_solver_text(
        cat("net: \"", path, "\" ", "base_lr: 0.01 max_iter: 100 lr_policy: \"fixed\""),
        "solver.prototxt");
    for (const std::string& line : told(file)) ADD_FAILURE() << path << ": " << line;
  }
  EXPECT_GT(nets, 30);
}

}  // namespace check_models_test
}  // namespace crema::tests
