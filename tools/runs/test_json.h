// The result of `crema test` as one JSON object, for scripts: -json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "solver/events/events.h"

namespace crema {

struct TestAnswer {
  int64_t iterations = 0;
  double seconds = 0;
  double loss = 0;
  std::vector<OutputValue> outputs, metrics;
  std::optional<event::Confusion> confusion;
  std::vector<std::string> class_names{};  // none: the classes have numbers
};

// On one line. An output of several elements is a list; values that are not finite are null:
//   {"iterations": 20, "seconds": 1.5, "loss": 0.03, "outputs": {"accuracy": 0.99, ...},
//    "metrics": {"top5": 1.0, ...}, "classes": [{"class": 0, "name": "cat", "records": 200, "precision": 0.98,
//    "recall": 0.99, "f1": 0.985}, ...], "confusion": [[198, 2, ...], ...]}
// metrics, classes and confusion are there if they were measured.
std::string json_of(const TestAnswer& answer);

}  // namespace crema
