#include "solver/rates/loss_window.h"

namespace crema {

void LossWindow::add(int64_t iteration, double loss) {
  losses_.push_back({iteration, static_cast<float>(loss)});
  while (iteration - losses_.front().iteration >= average_) losses_.pop_front();
}

double LossWindow::mean(int64_t iteration) const {
  double sum = 0;
  int count = 0;
  for (const Loss& loss : losses_) {
    if (iteration - loss.iteration >= average_) continue;
    sum += loss.value;
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

std::vector<float> LossWindow::store(int64_t iteration) const {
  // Only those without a gap to the next iteration: earlier ones no longer count for the next
  // displayed mean.
  std::deque<float> recent;
  int64_t expected = iteration - 1;
  for (auto loss = losses_.rbegin(); loss != losses_.rend() && loss->iteration == expected;
       ++loss, --expected) {
    if (static_cast<int>(recent.size()) + 1 >= average_) break;
    recent.push_front(loss->value);
  }
  return {recent.begin(), recent.end()};
}

void LossWindow::restore(int64_t iteration, const std::vector<float>& losses) {
  losses_.clear();
  int64_t at = iteration - static_cast<int64_t>(losses.size());
  for (float loss : losses) losses_.push_back({at++, loss});
}

}  // namespace crema
