// The registry of kernels, and the names that -implementation takes.
#include "kernels/core/kernel_registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <string_view>
#include <thread>
#include <vector>

#include "device/cudnn.h"
#include "support.h"

namespace crema::tests {
namespace kernel_registry_test {

bool has_named(const Operation& operation, std::string_view name) {
  return std::any_of(operation.begin(), operation.end(),
                     [&](const Implementation& one) { return one.name == name; });
}

TEST(KernelRegistry, EveryOperationHasAReferenceOrSaysWhyNot) {
  ASSERT_GT(operations().size(), 30U);
  for (const Operation* operation : operations()) {
    SCOPED_TRACE(operation->name());
    const bool plain = has_named(*operation, "plain");
    EXPECT_NE(plain, operation->no_reference() != nullptr);
  }
}

TEST(KernelRegistry, NamesAndPrioritiesAreUniqueOnADevice) {
  for (const Operation* operation : operations()) {
    for (Device device : {Device::cpu, Device::gpu}) {
      for (const Implementation& one : *operation) {
        for (const Implementation* other = &one + 1; other != operation->end(); ++other) {
          if (!one.runs_on(device) || !other->runs_on(device)) continue;
          SCOPED_TRACE(cat(operation->name(), ": ", one.name, ", ", other->name));
          EXPECT_GT(one.priority, other->priority);
          EXPECT_NE(std::string_view(one.name), other->name);
        }
      }
    }
  }
}

// No object file was left out by a linker: files of each family, and of each device.
TEST(KernelRegistry, WhatFilesRegisterIsThere) {
  struct Row {
    const char *operation, *name;
    bool gpu_only;
  };
  const bool gpu_build =
      std::none_of(absent_kernels().begin(), absent_kernels().end(),
                   [](const AbsentKernel& absent) { return absent.name == std::string("cublas"); });
  for (const Row& row :
       {Row{"the convolution", "plain", false}, Row{"the convolution", "depthwise", false},
        Row{"the convolution", "im2col", false}, Row{"the convolution", "autotuned", true},
        Row{"the convolution", "stem_7x7s2", true}, Row{"the matrix product", "plain", false},
        Row{"pooling", "vectorized", false}, Row{"pooling", "whole_images", true},
        Row{"batch normalization", "plain", false},
        Row{"batch normalization", "channels_last", true}, Row{"LRN", "cuda", true},
        Row{"matching priors with objects", "cuda", true}}) {
    SCOPED_TRACE(cat(row.operation, ", ", row.name));
    bool there = false;
    for (const Operation* operation : operations())
      there |=
          operation->name() == std::string_view(row.operation) && has_named(*operation, row.name);
    EXPECT_EQ(there, gpu_build || !row.gpu_only);
  }
}

TEST(Implementation, KnownNamesAndNoneAreGood) {
  EXPECT_NO_THROW(check_implementation(""));
  for (const std::string& name : implementation_names())
    EXPECT_NO_THROW(check_implementation(name));
}

TEST(Implementation, AMisspeltNameGetsTheNearest) {
  const std::string message = error_of([] { check_implementation("plian"); });
  expect_part(message, "did you mean \"plain\"?");
  expect_part(message, cat("there are ", join(implementation_names(), ", ")));
}

// A name that only other builds have: what this one lacks, and how to get it.
TEST(Implementation, ANameOfAnotherBuildSaysWhatItNeeds) {
  struct Row {
    const char *name, *part, *option;
  };
  const std::vector<std::string>& names = implementation_names();
  const bool gpu = std::count(names.begin(), names.end(), "autotuned") > 0;
  for (const Row& row :
       {Row{"onednn", "oneDNN", "-DCREMA_ONEDNN=ON"}, Row{"cudnn", "cuDNN", "-DCREMA_CUDNN=ON"},
        Row{"per_group", "cuDNN", "-DCREMA_CUDNN=ON"},
        Row{"cublas", "GPU support", "-DCREMA_CUDA=ON"},
        Row{"small_gemm", "GPU support", "-DCREMA_CUDA=ON"}}) {
    SCOPED_TRACE(row.name);
    if (std::count(names.begin(), names.end(), row.name) > 0) continue;
    const bool of_gpu = row.name != std::string("onednn") && !gpu;
    const std::string message = error_of([&] { check_implementation(row.name); });
    expect_part(message, cat("-implementation ", row.name, ": this build has no ",
                             of_gpu ? "GPU support" : row.part, "; build with ",
                             of_gpu ? "-DCREMA_CUDA=ON" : row.option, " for it, or take one of ",
                             names[0], ", "));
  }
  // The seam says the same.
  EXPECT_EQ(has_cudnn(), std::count(names.begin(), names.end(), "cudnn") > 0);
  if (!has_cudnn()) {
    EXPECT_EQ(cudnn_version(), 0);
  }
}

Refusal doubles(Context&, int x, int& y) {
  if (x % 2 == 1) return "odd";
  y = 2 * x;
  return nullptr;
}

Refusal negates(Context&, int x, int& y) {
  y = -x;
  return nullptr;
}

Refusal declines(Context&, int, int&) { return "never"; }

// Operations outlive every use of operations().
template <typename Kernels, typename... Names>
Kernels& lasting(const Names&... names) {
  static std::deque<Kernels> all;
  return all.emplace_back(names...);
}

// Keeps what -v 1 shows.
struct Lines : Log {
  void write(Severity, const std::source_location&, std::string_view line) override {
    text += cat(line, "\n");
  }
  std::string text;
};

struct KernelFunctionsTest : testing::Test {
  KernelFunctionsTest() {
    // In any order.
    numbers.add("last", RunsOn::both, -1, declines);
    numbers.add("doubling", RunsOn::cpu, 10, doubles);
    numbers.add("plain", RunsOn::both, 0, negates);
    numbers.add("cuda", RunsOn::gpu, 20, declines);
  }
  int run(const std::string& implementation, int x) {
    Context context(Device::cpu);
    context.implementation = implementation;
    int y = 0;
    numbers.run(context, x, y);
    return y;
  }
  KernelFunctions<int, int&>& numbers = lasting<KernelFunctions<int, int&>>("the function");
};

TEST_F(KernelFunctionsTest, ThePriorityDecidesAmongThoseThatTakeTheCase) {
  EXPECT_EQ(run("", 4), 8);
  EXPECT_EQ(run("", 3), -3);
}

// im2col multiplies one image in each thread of a parallel loop.
TEST_F(KernelFunctionsTest, ThreadsThatRunAKernelTogetherLogItOnce) {
  constexpr int kThreads = 4;
  for (int round = 0; round < 200; ++round) {
    Lines log;
    log.verbosity = 1;
    Context context(Device::cpu);
    context.set_log(log);
    std::atomic<int> waiting = kThreads;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        --waiting;
        while (waiting > 0) std::this_thread::yield();
        int y = 0;
        for (int x = 0; x < 2; ++x) numbers.run(context, x, y);
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(context.ran.size(), 2U);
    ASSERT_EQ(std::count(log.text.begin(), log.text.end(), '\n'), 2) << log.text;
  }
}

TEST_F(KernelFunctionsTest, ANamedFunctionIsTriedFirstAndThoseBeforeItLast) {
  EXPECT_EQ(run("plain", 4), -4);
  EXPECT_EQ(run("im2col", 4), 8);
  EXPECT_EQ(run("last", 4), 8);
  EXPECT_EQ(run("cuda", 4), 8) << "it is not for this device";
}

TEST_F(KernelFunctionsTest, TheFirstRunInAContextIsLoggedWithTheReasonsOfOthers) {
  for (int contexts = 0; contexts < 2; ++contexts) {
    Lines lines;
    lines.verbosity = 1;
    Context context(Device::cpu);
    context.set_log(lines);
    int y = 0;
    for (int x : {3, 5, 7}) numbers.run(context, x, y);
    EXPECT_EQ(lines.text, "the function is implemented by plain; doubling declined: odd\n");
  }
}

TEST_F(KernelFunctionsTest, ACaseThatNoFunctionTakesIsAnError) {
  auto& none = lasting<KernelFunctions<int, int&>>("nothing", "there is none");
  none.add("last", RunsOn::cpu, 0, declines);
  Context context(Device::cpu);
  int y = 0;
  EXPECT_EQ(error_of([&] { none.run(context, 1, y); }),
            "no implementation of nothing takes this case; last declined: never");
}

struct Answer {
  int value;
};

std::unique_ptr<Answer> small(Context& context, const int& c, std::string& reason) {
  context.chosen.push_back("a detail");
  if (c < 10) return std::make_unique<Answer>(Answer{c});
  reason = cat(c, " is too large");
  return nullptr;
}

TEST(KernelMakers, TheNameOfTheChosenComesBeforeItsDetails) {
  auto& answers = lasting<KernelMakers<Answer, int>>("the answer", "there is none");
  answers.add("small", RunsOn::cpu, 10, small);
  Context context(Device::cpu);
  EXPECT_EQ(answers.make(context, 3)->value, 3);
  EXPECT_EQ(context.chosen, (std::vector<std::string>{"small", "a detail"}));
  context.chosen.clear();
  EXPECT_EQ(error_of([&] { answers.make(context, 12); }),
            "no implementation of the answer takes this case; small declined: 12 is too large");
  EXPECT_TRUE(context.chosen.empty());
  std::string reason;
  EXPECT_EQ(answers.make_named("large", context, 3, reason), nullptr);
  EXPECT_EQ(reason, "this build has no large");
  EXPECT_EQ(answers.make_named("small", context, 3, reason)->value, 3);
}

}  // namespace kernel_registry_test
}  // namespace crema::tests
