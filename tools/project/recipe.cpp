#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "device/host_limits.h"
#include "net/expand/expand.h"
#include "net/prototxt/settings.h"
#include "solver/check/check.h"
#include "tools/project/first_look.h"
#include "tools/project/net_edits.h"
#include "tools/project/project.h"

namespace crema {

namespace {

// -model: a folder of models/, or the path of a net, whose solver is next to it.
ModelChoice named_model(const std::string& model) {
  ModelChoice choice;
  const std::string folder = models_folder() + "/" + model;
  const bool known = model.find('/') == model.npos && folder_exists(folder);
  choice.net = known ? folder + "/train_val.prototxt" : model;
  if (!known && !file_exists(model)) {
    std::vector<std::string> names;
    for (const std::string& name : list_folder(models_folder())) {
      if (file_exists(cat(models_folder(), "/", name, "/train_val.prototxt")))
        names.push_back(name);
    }
    fail("-model ", model, ": is neither a folder of ", models_folder(), " nor a file",
         did_you_mean(model, names));
  }
  choice.solver = folder_of(choice.net) + "/solver.prototxt";
  if (!file_exists(choice.solver)) choice.solver = models_folder() + "/pictures/solver.prototxt";
  return choice;
}

// An eighth of the samples at most, as a power of two, so that an epoch has several updates.
int64_t batch_for(int64_t samples, int64_t own) {
  int64_t batch = own;
  while (batch > 1 && batch * 8 > samples) batch = batch > 4 ? batch / 2 : batch - 1;
  return batch;
}

// Whether one of the settings begins with "name=".
bool is_set(const std::vector<std::string>& settings, const std::string& begin) {
  return std::any_of(settings.begin(), settings.end(),
                     [&](const std::string& setting) { return starts_with(setting, begin); });
}

// Rates that follow max_iter by themselves.
bool scales_with_length(const std::string& policy) {
  return policy == "onecycle" || policy == "poly" || policy == "cosine" || policy == "linear";
}

// About a fifth, and a divisor, so that the last iteration is tested; the whole length if there is none near.
int64_t interval_of(int64_t iterations) {
  for (int64_t interval = iterations / 5; interval > iterations / 20; --interval) {
    if (iterations % interval == 0) return interval;
  }
  return iterations;
}

void shorten(SolverParameter* solver, int64_t iterations, bool keeps_recipe) {
  solver->set_net("net.prototxt");
  for (const char* name :
       {"train_net", "test_net", "net_param", "train_net_param", "test_net_param", "test_iter",
        "test_state", "train_state", "iter_size", "snapshot", "max_epoch", "warmup_iter",
        "average_loss", "solver_mode", "device_id", "test_initialization"}) {
    const auto* field = solver->GetDescriptor()->FindFieldByName(name);
    if (field) solver->GetReflection()->ClearField(solver, field);
  }
  if (!keeps_recipe && !scales_with_length(solver->lr_policy())) {
    for (const char* name : {"gamma", "power", "stepsize", "stepvalue"})
      solver->GetReflection()->ClearField(solver, solver->GetDescriptor()->FindFieldByName(name));
    solver->set_lr_policy("onecycle");
  }
  // The steps of a recipe stay where they are in relation to its length.
  const double shorter = static_cast<double>(iterations) / std::max(1, solver->max_iter());
  const auto scaled = [&](int step) {
    return std::max(1, static_cast<int>(std::lround(step * shorter)));
  };
  if (keeps_recipe && solver->stepsize() > 0) solver->set_stepsize(scaled(solver->stepsize()));
  for (int i = 0; i < solver->stepvalue_size(); ++i)
    solver->set_stepvalue(i, scaled(solver->stepvalue(i)));
  solver->set_max_iter(static_cast<int>(iterations));
  solver->set_test_epoch(true);
  const auto interval = static_cast<int>(interval_of(iterations));
  solver->set_test_interval(interval);
  solver->set_snapshot(interval);
  solver->set_display(std::clamp(interval / 4, 1, 100));
}

ModelChoice choice_of(const Task& task, const NewOptions& options) {
  const ModelChoice chosen = task.choose();
  if (options.model.empty())
    return options.weights.empty() || !task.takes_any_net()
               ? chosen
               : model_for_weights(split(options.weights, ',')[0]);
  ModelChoice named = named_model(options.model);
  if (task.takes_any_net()) return named;
  // Nets for boxes and masks have their data and classes as variables.
  named.keeps_recipe = chosen.keeps_recipe;
  named.batch = chosen.batch;
  for (const std::string& setting : chosen.settings) {
    for (const char* name : {"data=", "classes=", "crop="}) {
      if (starts_with(setting, name)) named.settings.push_back(setting);
    }
  }
  return named;
}

// Makes the net, and makes the batch smaller if a step does not fit into memory. Returns what that
// step needs, as the end of a line. Error for a batch that the user gave and that does not fit.
std::string fit_into_memory(const Task& task, const NewOptions& options, bool is_given,
                            Recipe* recipe) {
  const std::vector<int64_t> sample = task.sample(recipe->net);
  if (sample.empty()) return "";
  const auto needs = [&] {
    return memory_of_step(recipe->net, recipe->solver, sample, recipe->batch);
  };
  MemoryKinds kinds = needs();
  // The nets of a GPU have its memory, which is known when the training begins.
  if (options.gpu) return "";
  const size_t free = free_host_memory();
  const size_t usable = free / 10 * 9;  // the data and the program need some, too
  if (kinds.total() <= usable) return cat("; a step needs ", size_text(kinds.total()));
  const int64_t wanted = recipe->batch, fits = largest_batch_in(kinds, wanted, usable);
  const std::string why = cat(wanted, " need ", size_text(kinds.total()), " of memory, but ",
                              size_text(free), " are free");
  require(fits > 0, "model ", recipe->model, ": a step with a batch of ", why,
          "; choose a smaller model or smaller pictures");
  require(!is_given, "-batch ", why, "; a batch of ", fits, " would fit");
  while (recipe->batch > 1 && recipe->batch > fits) recipe->batch /= 2;
  recipe->net.set(data_layers(recipe->net, "Data", TRAIN)[0], "data_param.batch_size",
                  cat(recipe->batch));
  return cat(", because ", why);
}

}  // namespace

// Each sample is seen less often, the more there are: 300 samples 53 times, 5000 about 20 times, 50000 about ten.
int64_t Task::length(int64_t batch) const {
  const double seen = 16000 * std::pow(std::max(1.0, static_cast<double>(training()) / 300), 0.68);
  const double iterations = seen / static_cast<double>(batch);
  const double step = iterations > 1000 ? 100 : 10;
  return std::max<int64_t>(100, std::llround(iterations / step) * static_cast<int64_t>(step));
}

Recipe recipe_of(Task& task, const NewOptions& options, int64_t batch, int64_t iterations) {
  ModelChoice choice = choice_of(task, options);
  // What the user sets replaces what was chosen.
  std::vector<std::string> all = options.settings;
  for (const std::string& chosen : choice.settings) {
    const std::string name = chosen.substr(0, chosen.find('=') + 1);
    if (!is_set(options.settings, name)) all.push_back(chosen);
  }
  auto settings = std::make_shared<Settings>(all);
  std::vector<std::string> used;
  Recipe recipe{.model = std::filesystem::path(folder_of(choice.net)).filename(),
                .net = NetText(
                    choice.net,
                    expand(choice.net, read_text(choice.net), settings->variables(), &used).text()),
                .solver = {}};
  settings->note_used(used);
  SolverFile file = read_solver_file(choice.solver, settings);
  recipe.solver = file.solver;
  remove_stages(&recipe.net);
  NetParameter with_settings = recipe.net.net();
  settings->apply(&with_settings);
  settings->require_used();
  recipe.decisions.push_back(cat(
      "model: ", recipe.model, choice.why.empty() ? ", as you asked" : ", because " + choice.why));
  for (const std::string& line : task.fit(recipe.net)) recipe.decisions.push_back(line);

  const std::vector<int> sources = data_layers(recipe.net, "Data", TRAIN);
  const int64_t own = sources.empty()
                          ? std::max<int64_t>(1, choice.batch)
                          : recipe.net.net().layer(sources[0]).data_param().batch_size();
  require(sources.empty() || batch <= task.training(), "-batch ", batch, ": there are only ",
          task.training(), " samples for training; give as many or less");
  recipe.batch = sources.empty() ? own : batch > 0 ? batch : batch_for(task.training(), own);
  const int64_t wanted = recipe.batch;
  task.connect(&recipe.net, recipe.batch);
  set_fields(options.settings, &recipe.net);
  const std::string memory = fit_into_memory(task, options, batch > 0, &recipe);
  if (!sources.empty())
    recipe.decisions.push_back(cat("batch: ", recipe.batch,
                                   batch > 0                ? ", as you asked"
                                   : recipe.batch != wanted ? ""
                                   : recipe.batch == own
                                       ? ", the model's"
                                       : ", so that an epoch has eight updates or more",
                                   memory));
  const bool length_given = iterations > 0 || is_set(options.settings, "max_iter=");
  recipe.iterations = iterations > 0 ? iterations
                      : length_given ? recipe.solver.max_iter()
                                     : task.length(recipe.batch);
  shorten(&recipe.solver, recipe.iterations, choice.keeps_recipe);
  // The user's own fields replace what was decided for the solver, too.
  Settings(options.settings).apply(&recipe.solver);
  check_solver(recipe.solver);
  recipe.iterations = recipe.solver.max_iter();
  recipe.decisions.push_back(
      cat("length: ", recipe.iterations, " iterations, which show each sample ",
          std::llround(static_cast<double>(recipe.iterations * recipe.batch) /
                       static_cast<double>(task.training())),
          recipe.iterations * recipe.batch * 2 < task.training() * 3 ? " time" : " times",
          length_given ? ", as you asked" : "; the more there are, the fewer"));
  const bool rate_given = is_set(options.settings, "base_lr=");
  if (rate_given)
    recipe.decisions.push_back(cat("learning rate: ", recipe.solver.base_lr(), ", as you asked"));
  recipe.keeps_rate = choice.keeps_recipe || rate_given;
  return recipe;
}

}  // namespace crema
