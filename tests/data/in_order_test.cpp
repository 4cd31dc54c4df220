// Common code of converters: items made on threads and taken in order, and lines about their
// progress.
#include "data/convert/in_order.h"

#include <atomic>
#include <chrono>

#include "data/convert/progress.h"
#include "support.h"

namespace crema::tests {
namespace in_order_test {

struct Numbered {
  size_t bytes = 0;
  int64_t number = -1;
};

// Later items are ready sooner.
void make(int64_t number, Numbered& item) {
  std::this_thread::sleep_for(std::chrono::microseconds(200 * (7 - number % 8)));
  item.number = number;
  item.bytes = 10;
}

TEST(InOrder, HandsItemsOutInOrder) {
  for (const int threads : {1, 2, 7}) {
    for (const size_t most : {size_t{0}, size_t{35}, size_t{1} << 30}) {
      InOrder<Numbered> items(100, threads, most, make);
      for (int64_t i = 0; i < 100; ++i) ASSERT_EQ(items.next().number, i);
    }
  }
  // Not all are taken, or there are none.
  InOrder<Numbered> some(100, 3, 1000, make);
  EXPECT_EQ(some.next().number, 0);
  const InOrder<Numbered> none(0, 3, 1000, make);
}

// The most items that wait; and items larger than the limit wait alone, except for those already
// begun.
TEST(InOrder, MakesOnlySoManyAhead) {
  for (const bool large : {false, true}) {
    std::atomic<int64_t> made = 0;
    InOrder<Numbered> items(1000, 2, 100, [&](int64_t, Numbered& item) {
      item.bytes = large ? 1000 : 0;
      ++made;
    });
    for (int64_t i = 0; i < 20; ++i) {
      items.next();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_LE(made, i + (large ? 4 : static_cast<int64_t>(items.kAhead) + 1)) << i;
    }
  }
}

TEST(InOrder, ThrowsInTurn) {
  InOrder<Numbered> items(10, 4, 1000, [&](int64_t number, Numbered& item) {
    make(number, item);
    if (number >= 5) fail("item ", number);
  });
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(items.next().number, i);
  EXPECT_EQ(error_of([&] { items.next(); }), "item 5");
}

TEST(Progress, SaysTheRateAndTheRemainingTimeEveryFewSeconds) {
  Progress progress(10000);
  struct Row {
    double seconds;
    int64_t done, written;
    const char* line;
  };
  const Row rows[] = {
      {0.5, 100, 100, ""},
      {4.9, 900, 890, ""},
      {5, 1000, 990, "Processed 990 files. 200 a second, 0:45 left."},
      {6, 1200, 1190, ""},
      {10, 1500, 1490, "Processed 1490 files. 150 a second, 0:57 left."},
      {200, 1600, 1590, "Processed 1590 files. 8 a second, 17:30 left."},
      {3000, 4000, 3990, "Processed 3990 files. 1.3 a second, 1:15:00 left."},
      {9000, 10000, 9990, ""},  // the last line says it
  };
  for (const Row& row : rows)
    EXPECT_EQ(progress.line(row.seconds, row.done, row.written), row.line) << row.seconds;
  EXPECT_EQ(Progress::last(9990), "Processed 9990 files.");
}

}  // namespace in_order_test
}  // namespace crema::tests
