#include "tools/runs/status_reader.h"

#include <cmath>
#include <cstdio>

#include "base/strings.h"

namespace crema {

namespace {

constexpr auto min_pause = std::chrono::milliseconds(200);
constexpr auto memory_span = std::chrono::seconds(5);

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string duration(double seconds) {
  const auto all = static_cast<int64_t>(std::ceil(seconds));
  char text[64];
  if (all >= 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", static_cast<long long>(all / 3600),
                  static_cast<long long>(all / 60 % 60), static_cast<long long>(all % 60));
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld", static_cast<long long>(all / 60),
                  static_cast<long long>(all % 60));
  }
  return text;
}

}  // namespace

std::string StatusReader::line(const event::Step& event, double speed, double data_wait) const {
  const int64_t iteration = event.iteration, max_iter = event.max_iter;
  std::vector<std::string> parts;
  if (records_ > 0) {
    const double epochs = static_cast<double>(images_) / static_cast<double>(records_);
    parts.push_back(cat("epoch ", format("%.2f", epochs * static_cast<double>(iteration)), "/",
                        format("%.2f", epochs * static_cast<double>(max_iter))));
  }
  parts.push_back(cat("iteration ", iteration, "/", max_iter));
  // The most important first: a narrow terminal cuts off the end.
  if (speed > 0)
    parts.push_back(duration(static_cast<double>(max_iter - iteration) / speed) + " left");
  if (!loss_.empty()) parts.push_back("loss " + loss_);
  if (data_wait >= 0.005) parts.push_back(format("waits for data %.0f %%", 100 * data_wait));
  if (speed > 0) {
    parts.push_back(format(speed < 100 ? "%.1f it/s" : "%.0f it/s", speed));
    if (images_ > 0) parts.push_back(format("%.0f images/s", speed * static_cast<double>(images_)));
  }
  if (!rate_.empty()) parts.push_back("lr " + rate_);
  if (const size_t bytes = memory_ ? memory_() : 0; bytes > 0)
    parts.push_back("memory " + size_text(bytes));
  return join(parts, "  ");
}

void StatusReader::step(const event::Step& event) {
  const auto now = Clock::now();
  if (now - drawn_ < min_pause) return;
  drawn_ = now;
  recent_.emplace_back(now, event);
  while (recent_.size() > 2 && now - recent_.front().first > memory_span) recent_.pop_front();
  const auto& [begin, first] = recent_.front();
  const double seconds = std::chrono::duration<double>(now - begin).count();
  if (seconds <= 0) return log_.show_status(line(event, 0, 0));
  log_.show_status(line(event, static_cast<double>(event.iteration - first.iteration) / seconds,
                        (event.waited - first.waited) / seconds));
}

void StatusReader::read(const Event& event) {
  if (const auto* display = std::get_if<event::Display>(&event)) {
    loss_ = format("%.4g", display->loss);
  } else if (const auto* rate = std::get_if<event::LearningRate>(&event)) {
    rate_ = format("%.4g", rate->rate);
  } else if (const auto* done = std::get_if<event::Step>(&event)) {
    step(*done);
  } else if (const auto* batch = std::get_if<event::TestBatch>(&event)) {
    if (Clock::now() - drawn_ < min_pause) return;
    drawn_ = Clock::now();
    log_.show_status(
        cat("testing net #", batch->net, ": batch ", batch->done, "/", batch->batches));
  } else if (std::get_if<event::TestResult>(&event)) {
    recent_.clear();  // the time of a test is not training time
  } else if (std::get_if<event::End>(&event)) {
    log_.show_status("");
  }
}

}  // namespace crema
