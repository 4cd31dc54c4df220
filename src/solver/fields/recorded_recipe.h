// The fields of the solver that decide how weights are updated, as a snapshot records them, so that a
// resumed run can say what its file has changed since.
#pragma once

#include <string>
#include <vector>

namespace crema {

class SolverParameter;

// Those fields as text, for SolverState::recipe.
std::string recorded_recipe(const SolverParameter& solver);

// "stepvalue was 4, 8 and is 9, 11" for each field that differs, in the order of their names. Empty
// when nothing was recorded, as in states of Caffe.
std::vector<std::string> changes_since(const std::string& recipe, const SolverParameter& solver);

// Gives the solver the recorded fields as the recipe has them.
void use_recipe(const std::string& recipe, SolverParameter* solver);

// Error when the state's history was kept by a rule whose history means something else. `path`: of
// the state.
void check_same_history(const std::string& recipe, const SolverParameter& solver,
                        const std::string& path);

// The policy that the recipe has; "": nothing was recorded.
std::string recorded_policy(const std::string& recipe);

}  // namespace crema
