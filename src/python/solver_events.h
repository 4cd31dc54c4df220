// A solver's events as Python values.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "solver/events/events.h"

namespace crema::python {

// An event for readers in Python: a dict with its name as "event" and its fields. Empty for events
// that they do not get (lines for the log, the net's graph, histograms, pictures).
pybind11::dict dict_of(const Event& event);

// By name; a number, or a list if an output has several elements.
pybind11::dict dict_of(const std::vector<OutputValue>& outputs);

}  // namespace crema::python
