#include "solver/readers/record_file.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>

#include "base/files.h"
#include "base/strings.h"

namespace crema {
namespace {

std::string records(size_t count) { return cat(count, count == 1 ? " record is" : " records are"); }

}  // namespace

void drop_cut_line(const std::string& path) {
  const std::string content = read_file(path);
  if (content.empty() || content.back() == '\n') return;
  std::filesystem::resize_file(path, content.rfind('\n') + 1);
}

void WriteWarnings::failed(const std::string& problem) {
  const auto now = std::chrono::steady_clock::now();
  if (now < quiet_until_) return;
  quiet_until_ = now + std::chrono::minutes(1);
  warned_ = true;
  log_.warning(cat(problem, ". The training continues and tries again."));
}

void WriteWarnings::works_again(const std::string& path, const std::string& what) {
  if (!warned_ && what.empty()) return;
  warned_ = false;
  if (what.empty()) {
    log_.info(cat(path, " can be written again; nothing is missing."));
  } else {
    log_.warning(cat(path, " can be written again; ", what, "."));
  }
}

RecordFile::~RecordFile() {
  const size_t missing = dropped_ + waiting_.size();
  if (missing == 0) return;
  warnings_.log().warning(
      cat(file_ ? file_->path() : "A file", ": ", records(missing), " missing at its end."));
}

void RecordFile::drop_oldest() {
  while (waiting_bytes_ > kMostWaiting) {
    const auto oldest = std::find_if(waiting_.begin(), waiting_.end(),
                                     [](const Waiting& one) { return one.keep == Keep::if_small; });
    if (oldest == waiting_.end()) return;
    waiting_bytes_ -= oldest->record.size();
    waiting_.erase(oldest);
    ++dropped_;
  }
}

std::string RecordFile::write_first() {
  try {
    if (!file_) file_.emplace(find_path_());
  } catch (const std::exception& error) {
    return error.what();
  }
  const int problem = file_->append(waiting_.front().record);
  return problem == 0 ? "" : cat("Cannot write ", file_->path(), ": ", std::strerror(problem));
}

void RecordFile::add(std::string record, Keep keep) {
  waiting_bytes_ += record.size();
  waiting_.push_back({std::move(record), keep});
  while (!waiting_.empty()) {
    const std::string problem = write_first();
    if (!problem.empty()) {
      broken_ = true;
      warnings_.failed(problem);
      return drop_oldest();
    }
    waiting_bytes_ -= waiting_.front().record.size();
    waiting_.pop_front();
  }
  if (!std::exchange(broken_, false)) return;
  warnings_.works_again(file_->path(),
                        dropped_ > 0 ? cat(records(std::exchange(dropped_, 0)), " missing") : "");
}

}  // namespace crema
