// The settings in which runs differ: fields of their solvers and nets, by the path that -set takes.
#pragma once

#include <string>
#include <vector>

#include "tools/pages/runs/run_texts.h"

namespace crema {

struct SettingColumn {
  std::string name;                 // "base_lr", "conv1 num_output"
  std::vector<std::string> values;  // of each run; "": neither given nor with a default
};

// For runs in their order; a run without texts has no values. File names differ in any two runs and
// are left out, and so are random seeds. If nets differ in many fields, one column has their names.
std::vector<SettingColumn> differing_settings(const std::vector<RunTexts>& runs);

// "layer[conv1].convolution_param.num_output" as a title: "conv1 num_output".
std::string setting_title(const std::string& path);

}  // namespace crema
