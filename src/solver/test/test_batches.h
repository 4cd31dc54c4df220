// How ranks share the batches of a test: each runs a contiguous part of them, whole batches that one
// rank would run, too, and then takes in what the others have counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/net.h"

namespace crema {

// This rank's batches [first, end) of a test.
struct TestBatches {
  int64_t first = 0, end = 0;
  bool shared = false;  // false: each rank runs all of them
};

// They are not shared by ranks where a batch follows from those before it (recurrent layers,
// BatchNorm that measures in tests), or where layers collect batches in a file.
TestBatches test_batches(Net& net, int64_t batches);

// What the ranks have counted, by rank. Where each has run all batches, it is that of rank 0 alone:
// on different machines the last digits may differ, but all ranks must judge a test alike.
std::vector<std::string> gather_counts(Communicator& world, const TestBatches& batches,
                                       const std::string& counts);

// Takes in what the other ranks have counted, if there are any.
template <typename Counts>
void merge_ranks(Context& context, const TestBatches& batches, Counts* counts) {
  if (Communicator* const world = context.world())
    counts->merge(gather_counts(*world, batches, counts->pack()));
}

// The mean loss of a test. Each batch counts with its records.
class TestLoss {
 public:
  void add(double of_batch, int64_t records);
  double mean() const;

  std::string pack() const;
  void merge(const std::vector<std::string>& of_ranks);

 private:
  double sum_ = 0;
  int64_t records_ = 0;
};

}  // namespace crema
