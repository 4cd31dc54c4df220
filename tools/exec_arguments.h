// Words as execve() takes them.
#pragma once

#include <string>
#include <vector>

namespace crema {

// Pointers to the words, followed by a null; `words` must outlive them.
inline std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace crema
