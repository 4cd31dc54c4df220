// The nets of models/: their sizes against the published ones, what `crema deploy` makes of them,
// and whether they train. models.rows has a line for each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <regex>
#include <set>

#include "base/files.h"
#include "device/context.h"
#include "net/prototxt/prototxt.h"
#include "tools/program.h"

namespace crema::tests {
namespace models_test {

const std::string kTop = std::filesystem::path(CREMA_TEST_DATA).parent_path();
struct Model {
  std::string name, solver, settings, shapes;
  std::string learned, multiply_adds, outputs;
  std::string batch, rate;
  size_t iterations = 20;
  std::string smaller{};  // settings for training only
};

void PrintTo(const Model& model, std::ostream* out) { *out << model.name; }

// As a number of the file, without its separators.
std::string plain(std::string number) {
  number.erase(std::remove(number.begin(), number.end(), ','), number.end());
  return number;
}

std::vector<Model> models() {
  std::vector<Model> models;
  for (const std::string& line : split(read_file(CREMA_TEST_DATA "/models/models.rows"), '\n')) {
    if (trim(line).empty() || line[0] == '#') continue;
    std::vector<std::string> cells;
    for (const std::string& cell : split(line, '|')) cells.emplace_back(trim(cell));
    require(cells.size() == 9, "models.rows: expected 9 cells: ", line);
    const std::vector<std::string> pace = split(cells[8], ' ');  // base_lr, iterations
    Model model;
    model.name = cells[0];
    model.solver = cells[1];
    model.shapes = cells[3];
    model.learned = cells[4];
    model.multiply_adds = cells[5];
    model.outputs = cells[6];
    model.batch = cells[7];
    model.rate = pace[0];
    if (pace.size() > 1) model.iterations = std::stoul(pace[1]);
    for (size_t i = 2; i < pace.size(); ++i) model.smaller += " -set '" + pace[i] + "'";
    for (const std::string& word : split(cells[2], ' '))
      model.settings += starts_with(word, "-") ? " " + word + " " : " -set '" + word + "'";
    models.push_back(model);
  }
  return models;
}

// "TRAIN's ; TEST's" where the phases have other sources.
std::string shapes_in(const Model& model, const std::string& phase) {
  const std::vector<std::string> of_phases = split(model.shapes, ';');
  return std::string(trim(phase == "TRAIN" ? of_phases.front() : of_phases.back()));
}

std::string name_of_net(const Model& model) {
  SolverFile solver = read_solver_file(cat(kTop, "/models/", model.solver));
  const SolverParameter& s = solver.solver;
  return s.has_net() ? s.net() : s.train_net();
}

class ModelTest : public testing::TestWithParam<Model> {
 protected:
  Outcome at_top(const std::string& command) {
    return run_shell(folder_, cat("cd '", kTop, "' && \"$TOOLS\"/", command));
  }
  Folder folder_;
};

// The parameters of the training net; the multiply-adds of the one that is used, without auxiliary
// losses.
TEST_P(ModelTest, HasThePublishedSize) {
  const Model& model = GetParam();
  const auto in_phase = [&](const std::string& phase) {
    const Outcome summary = at_top(cat("summary -model ", name_of_net(model), model.settings,
                                       " -assume '", shapes_in(model, phase), "' -phase ", phase));
    EXPECT_EQ(summary.code, 0) << summary.err;
    const std::regex line("([\\d,]+) of them learned; ([\\d,]+) multiply-adds");
    std::smatch match;
    EXPECT_TRUE(std::regex_search(summary.out, match, line)) << summary.out;
    return std::pair(plain(match[1]), plain(match[2]));
  };
  EXPECT_EQ(in_phase("TRAIN").first, plain(model.learned));
  EXPECT_EQ(in_phase("TEST").second, plain(model.multiply_adds));
}

TEST_P(ModelTest, DeploysToANetWithItsOutputs) {
  const Model& model = GetParam();
  const std::string deployed = folder_.file("deploy.prototxt");
  const Outcome deploy =
      at_top(cat("deploy -model ", name_of_net(model), model.settings, " -assume '",
                 shapes_in(model, "TEST"), "' -output ", deployed));
  ASSERT_EQ(deploy.code, 0) << deploy.err;
  const Outcome summary = at_top(cat("summary -phase TEST -model ", deployed));
  ASSERT_EQ(summary.code, 0) << summary.err;
  for (const std::string& output : split(model.outputs, ','))
    EXPECT_NE(summary.out.find(trim(output)), std::string::npos) << output << "\n" << summary.out;
}

std::vector<double> losses_of(const Outcome& outcome) {
  const std::regex line("Iteration \\d+ .*, loss = (\\S+)");
  std::vector<double> losses;
  for (const std::string& message : outcome.messages()) {
    std::smatch match;
    if (std::regex_search(message, match, line)) losses.push_back(std::stod(match[1]));
  }
  return losses;
}

// On one batch of random data: the loss of the last quarter is below that of the first.
void expect_learns(const Outcome& outcome, size_t iterations) {
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<double> losses = losses_of(outcome);
  ASSERT_EQ(losses.size(), iterations) << outcome.err;
  const ptrdiff_t quarter = static_cast<ptrdiff_t>(iterations) / 4;
  EXPECT_LT(std::accumulate(losses.end() - quarter, losses.end(), 0.0),
            std::accumulate(losses.begin(), losses.begin() + quarter, 0.0));
}

TEST_P(ModelTest, Learns) {
  const Model& model = GetParam();
  std::string command = cat("train -solver models/", model.solver, model.settings, " -assume ",
                            model.batch, " -tune off", model.smaller);
  for (const std::string& setting :
       {cat("max_iter=", model.iterations), std::string("display=1"), std::string("average_loss=1"),
        std::string("test_interval=1000000"), std::string("test_initialization=false"),
        std::string("snapshot=0"), std::string("snapshot_after_train=false"),
        cat("snapshot_prefix=", folder_.file("net")), std::string("random_seed=1"),
        std::string("lr_policy=fixed"), std::string("warmup_iter=0"), std::string("iter_size=1"),
        std::string("epoch_log=false"), "base_lr=" + model.rate})
    command += " -set " + setting;
  // A batch that is assumed has no epochs.
  if (read_solver_file(kTop + "/models/" + model.solver).solver.test_epoch())
    command += " -set test_epoch=false -set test_iter=1";
  {
    SCOPED_TRACE("CPU");
    expect_learns(at_top(command), model.iterations);
  }
  if (gpu_count() == 0) return;
  for (const char* precision : {"tf32", "fp16"}) {
    SCOPED_TRACE(precision);
    expect_learns(at_top(cat(command, " -gpu 0 -precision ", precision)), model.iterations);
  }
}

std::string test_name(const testing::TestParamInfo<Model>& info) {
  std::string name = info.param.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, ModelTest, testing::ValuesIn(models()), test_name);

// Every net that a solver of models/ names is there and can be read, every folder has its page, and
// every net that can be trained has a line in models.rows.
TEST(Models, EachIsTested) {
  std::set<std::string> tested;
  for (const Model& model : models()) tested.insert(name_of_net(model));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kTop + "/models")) {
    const std::string path = std::filesystem::relative(entry.path(), kTop),
                      file = entry.path().filename();
    if (entry.path().extension() != ".prototxt") continue;
    EXPECT_NE(file, "deploy.prototxt") << path << ": crema deploy writes it";
    if (ends_with(file, "train_val.prototxt")) {
      EXPECT_TRUE(tested.count(path)) << path;
    }
    if (file.find("solver") == std::string::npos || ends_with(file, "common.prototxt")) continue;
    const SolverFile solver = read_solver_file(entry.path());
    EXPECT_TRUE(solver.solver.has_max_iter() || solver.solver.has_max_epoch()) << path;
    const std::string folder = std::filesystem::path(path).parent_path();
    EXPECT_TRUE(file_exists(cat(kTop, "/", folder, "/README.md"))) << folder;
    EXPECT_EQ(solver.solver.snapshot_prefix().find(folder + "/"), 0u) << path;
  }
}

}  // namespace models_test
}  // namespace crema::tests
