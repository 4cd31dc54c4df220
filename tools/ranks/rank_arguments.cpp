#include "tools/ranks/rank_arguments.h"

#include "base/strings.h"

namespace crema {

std::vector<std::string> arguments_for_gpu(
    int gpu, const std::vector<std::string>& words,
    const std::function<bool(const std::string& flag)>& takes_value) {
  std::vector<std::string> result;
  size_t at = 0;
  if (!words.empty()) result.push_back(words[at++]);
  for (; at < words.size() && words[at] != "--"; ++at) {
    const std::string& word = words[at];
    const bool is_flag = word.size() > 1 && word[0] == '-';
    const std::string text = is_flag ? word.substr(starts_with(word, "--") ? 2 : 1) : "";
    const std::string name = text.substr(0, text.find('='));
    const bool has_more = is_flag && name == text && takes_value(name) && at + 1 < words.size();
    if (is_flag && name == "gpu") {
      at += has_more;
      continue;
    }
    result.push_back(word);
    if (has_more) result.push_back(words[++at]);
  }
  result.push_back(cat("-gpu=", gpu));
  result.insert(result.end(), words.begin() + static_cast<int64_t>(at), words.end());
  return result;
}

}  // namespace crema
