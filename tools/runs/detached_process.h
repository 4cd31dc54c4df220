// A program that runs on its own: it outlives this process, and no signal of the terminal reaches it.
#pragma once

#include <string>
#include <vector>

namespace crema {

// Starts words[0], a path, with these arguments and a low priority. Its output is appended to the
// file `log`. Returns once it runs; Error if it cannot be started.
void start_detached(std::vector<std::string> words, const std::string& log);

}  // namespace crema
