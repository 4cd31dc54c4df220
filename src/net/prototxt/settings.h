// Settings: fields of a solver and its nets, and variables of their files, that are given from
// outside, as by `-set base_lr=0.02`.
#pragma once

#include <string>
#include <vector>

#include "net/expand/expand.h"
#include "net/prototxt/upgrade.h"

namespace crema {

// A setting is "PATH=VALUE". The path is that of a field in the current form of the messages, with
// a layer by its name: base_lr, stepvalue[1], layer[conv1].convolution_param.num_output; a list is
// set as a whole, [1, 2], a message as {type: "xavier"}; texts need no quotes. A field of both
// solver and net belongs to the solver; "net.debug_info" is the net's. A name that is not a field
// is a variable, which the files set with ?=.
class Settings {
 public:
  Settings() = default;
  // Error for a text that is no setting.
  explicit Settings(const std::vector<std::string>& texts);

  bool empty() const { return settings_.empty(); }
  // For expand(), which gives the names of those that it used to note_used().
  const Variables& variables() const { return variables_; }
  void note_used(const std::vector<std::string>& variables);

  // For an editor, whose files may be changed and not yet saved.
  void set_hooks(ExpandHooks hooks) { hooks_ = std::move(hooks); }
  const ExpandHooks& hooks() const { return hooks_; }

  // Set the fields of an upgraded message. Return log lines: "Set base_lr: 0.02 (was 0.01)". Error,
  // "-set base_lr=fast: ...", for a field that does not exist or a value of another type. A layer
  // or list element that this net does not have is an error of require_used() only, because another
  // net may have it.
  std::vector<Note> apply(SolverParameter* solver);
  std::vector<Note> apply(NetParameter* net);

  // Error for the first setting that nothing has taken so far.
  void require_used() const;

 private:
  enum class Target { solver, net, variable };
  struct Setting {
    std::string text, path, value;
    Target target = Target::variable;
    bool used = false, told = false;
    std::string problem;  // why it was not used
  };
  std::vector<Note> apply(Target target, google::protobuf::Message* message);

  std::vector<Setting> settings_;
  Variables variables_;
  ExpandHooks hooks_;
};

}  // namespace crema
