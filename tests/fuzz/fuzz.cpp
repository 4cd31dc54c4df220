#include "fuzz/fuzz.h"

#include <malloc.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <typeinfo>

#include "support.h"

namespace crema::tests {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kFewest = 32;  // inputs
constexpr int kMaxFailures = 20, kCpuSeconds = 10, kSeconds = 120;
constexpr size_t kMaxBytes = size_t{32} << 20;     // of an input
constexpr size_t kMaxMemory = size_t{1536} << 20;  // memory limit for a reader of a small file
enum Code { kDone = 0, kFailed = 3 };

// A worker's messages, and its current input, which the test can find after the worker has died.
struct Shared {
  uint64_t number, accepted, refused;
  char said[8192];
  size_t size;
  char bytes[kMaxBytes];
};

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* const value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

double seconds_of_each() {
  const auto* test = testing::UnitTest::GetInstance();
  const char* const total = std::getenv("CREMA_FUZZ_SECONDS");
  return (total ? std::strtod(total, nullptr) : 16) / std::max(1, test->test_to_run_count());
}

void put(Shared& shared, uint64_t number, const Files& files) {
  shared.number = number;
  shared.size = 0;
  const auto add = [&](const std::string& text) {
    const uint64_t size = text.size();
    require(shared.size + sizeof size + size <= kMaxBytes, "the input is too large");
    std::memcpy(shared.bytes + shared.size, &size, sizeof size);
    std::memcpy(shared.bytes + shared.size + sizeof size, text.data(), size);
    shared.size += sizeof size + size;
  };
  for (const auto& [name, content] : files) {
    add(name);
    add(content);
  }
}

Files taken(const Shared& shared) {
  size_t at = 0;
  const auto next = [&] {
    uint64_t size;
    std::memcpy(&size, shared.bytes + at, sizeof size);
    at += sizeof size + size;
    return std::string(shared.bytes + at - size, size);
  };
  Files files;
  while (at < shared.size) {
    const std::string name = next();
    files[name] = next();
  }
  return files;
}

void write_files(const std::string& folder, const Files& files) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!files.count(entry.path().filename())) std::filesystem::remove_all(entry.path(), ignored);
  }
  for (const auto& [name, content] : files)
    std::ofstream(folder + "/" + name, std::ios::binary) << content;
}

// Ends the process of a reader that allocates more.
void limit_memory() {
  mallopt(M_ARENA_MAX, 2);
#ifdef _OPENMP
  omp_set_num_threads(2);
#endif
#ifndef __SANITIZE_ADDRESS__  // which needs the whole address space itself
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t maximum = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + kMaxMemory;
  const rlimit limit{maximum, maximum};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

// SIGPROF or SIGALRM ends the process when the time is over.
void start_timers(int cpu_seconds, int seconds) {
  const itimerval cpu{{0, 0}, {cpu_seconds, 0}}, all{{0, 0}, {seconds, 0}};
  setitimer(ITIMER_PROF, &cpu, nullptr);
  setitimer(ITIMER_REAL, &all, nullptr);
}

std::string problem_of(const std::function<void()>& read, Shared& shared) {
  try {
    read();
    ++shared.accepted;
  } catch (const Error& error) {
    ++shared.refused;
    if (*error.what() == '\0') return "an Error without words";
  } catch (const std::exception& other) {
    return cat(typeid(other).name(), ": ", other.what());
  } catch (...) {
    return "an exception of no known type";
  }
  return "";
}

class Run {
 public:
  Run(const Target& target, Shared& shared)
      : target_(target),
        shared_(shared),
        seed_(setting("CREMA_FUZZ_SEED", 1)),
        end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(seconds_of_each()))) {
    std::filesystem::create_directory(folder_.file("in"));
    const char* const failures = std::getenv("CREMA_FUZZ_FAILURES");
    failures_ = std::filesystem::absolute(failures ? failures : "fuzz_failures");
  }

  void run() {
    uint64_t next = setting("CREMA_FUZZ_FIRST", 0);
    int failed = 0;
    for (; failed < kMaxFailures; ++failed, next = shared_.number + 1) {
      std::cout << std::flush;
      shared_.said[0] = '\0';
      shared_.size = 0;
      const pid_t worker = fork();
      ASSERT_GE(worker, 0);
      if (worker == 0) _exit(work(next));
      int status = 0;
      ASSERT_EQ(waitpid(worker, &status, 0), worker);
      if (WIFEXITED(status) && WEXITSTATUS(status) == kDone) break;
      report(status);
      if (Clock::now() >= end_) break;
    }
    std::cout << target_.name << ": seed " << seed_ << ", inputs up to " << shared_.number << ", "
              << shared_.accepted << " accepted, " << shared_.refused << " refused\n";
    if (failed == 0) {
      EXPECT_GT(shared_.accepted, 0U) << "nothing was read to its end";
    }
  }

 private:
  Files input(const std::vector<Files>& corpus, uint64_t number) const {
    constexpr uint64_t kWhole =
        16;  // one in this many is intact: all damaged ones might be refused
    if (number % kWhole == 0) return corpus[number / kWhole % corpus.size()];
    uint64_t who = 0;
    for (const char* c = target_.name; *c; ++c) who = mix(who, static_cast<uint64_t>(*c));
    Dice dice({seed_, mix(who, number)});
    Files files = dice.pick(corpus);
    target_.damage(dice, files, dice.pick(corpus));
    return files;
  }

  // In the worker.
  int work(uint64_t first) {
    const std::string in = folder_.file("in");
    if (std::freopen(folder_.file("stderr").c_str(), "w", stderr) == nullptr) return kFailed;
    try {
      std::filesystem::current_path(in);
      limit_memory();
      start_timers(600, 600);
      shared_.number = first;
      const std::vector<Files> corpus = target_.corpus();
      // At least some, as making the corpus may have taken all of the time on a busy machine.
      for (uint64_t number = first; number < first + kFewest || Clock::now() < end_; ++number) {
        const Files files = input(corpus, number);
        put(shared_, number, files);
        write_files(in, files);
        start_timers(kCpuSeconds, kSeconds);
        const std::string problem = problem_of([&] { target_.read(in, files); }, shared_);
        start_timers(600, 600);
        if (problem.empty()) continue;
        problem.copy(shared_.said, sizeof(shared_.said) - 1);
        shared_.said[std::min(problem.size(), sizeof(shared_.said) - 1)] = '\0';
        return kFailed;
      }
    } catch (const std::exception& error) {
      std::string("outside of the reader: ")
          .append(error.what())
          .copy(shared_.said, sizeof(shared_.said) - 1);
      return kFailed;
    }
    return kDone;
  }

  void report(int status) {
    const std::string position = cat(failures_, "/", target_.name, "-", seed_, "-", shared_.number);
    std::filesystem::create_directories(position);
    write_files(position, taken(shared_));
    std::string what = shared_.said;
    if (WIFSIGNALED(status)) {
      const int signal = WTERMSIG(status);
      what = signal == SIGPROF   ? cat("takes more than ", kCpuSeconds, " s of a CPU")
             : signal == SIGALRM ? cat("takes more than ", kSeconds, " s")
                                 : cat("signal ", signal, " (", strsignal(signal), ")");
    } else if (what.empty()) {
      what = cat("exit code ", WEXITSTATUS(status));
    }
    std::string output = read_file(folder_.file("stderr"));
    if (output.size() > 6000) output = output.substr(0, 6000) + "\n...";
    ADD_FAILURE() << target_.name << ", seed " << seed_ << ", input " << shared_.number << ": "
                  << what << "\nIt lies in " << position << "; CREMA_FUZZ_REPLAY=" << position
                  << " reads it again.\n"
                  << output;
  }

  const Target& target_;
  Shared& shared_;
  Folder folder_;
  std::string failures_;
  uint64_t seed_;
  Clock::time_point end_;
};

void replay(const Target& target, const std::string& position) {
  const Folder folder;
  Files files;
  for (const auto& entry : std::filesystem::directory_iterator(position))
    files[entry.path().filename()] = read_file(entry.path());
  write_files(folder.path(), files);
  std::filesystem::current_path(folder.path());
  try {
    target.read(folder.path(), files);
    std::cout << "accepted\n";
  } catch (const Error& error) {
    std::cout << "refused: " << error.what() << "\n";
  }
}

}  // namespace

void fuzz(const Target& target) {
  if (const char* const position = std::getenv("CREMA_FUZZ_REPLAY"))
    return replay(target, std::filesystem::absolute(position));
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Run(target, *static_cast<Shared*>(memory)).run();
  munmap(memory, sizeof(Shared));
}

std::string golden(const std::string& name) {
  return read_file(cat(CREMA_TEST_DATA, "/goldens/", name));
}

std::vector<std::string> contents(const std::string& folder, const std::string& extension) {
  std::vector<std::string> paths, all;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(cat(CREMA_TEST_DATA, "/../", folder)))
    if (ends_with(entry.path().string(), extension)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) all.push_back(read_file(path));
  return all;
}

}  // namespace crema::tests

// Every sanitizer's report ends the worker; leaks are another test's matter.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0:hard_rss_limit_mb=6000:allocator_may_return_null=1:handle_abort=1";
}
extern "C" const char* __ubsan_default_options();
extern "C" const char* __ubsan_default_options() { return "halt_on_error=1:print_stacktrace=1"; }
