// Task: what a kind of data needs to become a project of `crema new`: pictures in a folder for each class, a
// table, pictures with boxes or with masks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "tools/project/net_text.h"

namespace crema {

struct NewOptions {
  std::string data;
  std::string task;  // classes, boxes or masks; "": what the folder looks like
  std::string
      label;  // the label column of a table; "": it is found by its name, or is the last one
  double split = 0.8;
  uint64_t seed = 1;
  bool gpu = false;
  std::string model;                  // a name in models/ or the path of a net; "": it is chosen
  std::string weights;                // to begin with; "": none
  std::vector<std::string> settings;  // variables and fields of the net and solver
};

// A net and a solver to begin with.
struct ModelChoice {
  std::string net, solver;              // paths
  std::string why;                      // a reason for people; "": the user named it
  std::vector<std::string> settings{};  // variables of both
  // Whether the solver's own rate and batch are kept, because its other values go with them.
  bool keeps_recipe = false;
  int64_t batch = 0;  // of a net without Data layers, which connect() cannot change
};

class Task {
 public:
  virtual ~Task() = default;

  // What the data are, in lines for people, warnings included.
  virtual std::vector<std::string> survey() const = 0;
  // The model for these data unless options.model names one.
  virtual ModelChoice choose() const = 0;
  // Whether every net with Data layers will do, because connect() gives them their data.
  virtual bool takes_any_net() const { return true; }
  // Decides what depends on the model, such as the pictures' size, and says so in lines.
  virtual std::vector<std::string> fit(const NetText& net) = 0;
  // Points the net at the data that convert() writes, and gives it the number of classes.
  virtual void connect(NetText* net, int64_t batch) const = 0;
  // The shape of a sample as the net gets it; empty if only the data that convert() writes tell.
  virtual std::vector<int64_t> sample(const NetText&) const { return {}; }
  // Writes the data below `folder`, as data/..., labels.txt.
  virtual void convert(const std::string& folder, Log& log) const = 0;

  // Samples for training and for testing.
  virtual int64_t training() const = 0;
  virtual int64_t testing() const = 0;
  // Iterations that are long enough with this batch.
  virtual int64_t length(int64_t batch) const;
  // Lines of a shell that use the trained net, where $weights are its weights.
  virtual std::string use() const = 0;
};

// The task that fits a file or folder. It has been read and surveyed. Error tells which forms there are.
std::unique_ptr<Task> task_of(const NewOptions& options, Log& log);

// How many of `count` samples are for training: a share of them below 1, or a number. Error if one part has none.
int64_t training_part(const NewOptions& options, int64_t count);

// The folder with models/: of the installed program, or of the source tree that it was built in.
std::string models_folder();

}  // namespace crema
