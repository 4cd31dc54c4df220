// The label of a record in a tar file: the text of a `.cls`, or "label" in a `.json`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

// As a Datum has it: `number`, or where `several` is not empty those.
struct TarLabel {
  int32_t number = 0;
  std::vector<float> several;
};

// An integer, or several numbers or a real one, separated by blanks or commas. Error gives only the
// reason.
TarLabel label_of_cls(std::string_view text);

// {"label": 7, ...} or {"label": [0, 1.5], ...}; none if there is no such key.
std::optional<TarLabel> label_of_json(const std::string& text);

}  // namespace crema
