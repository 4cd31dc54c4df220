// The displayed mean of losses: which losses are read, their mean, and that it continues after a
// resume.
#include "solver/rates/loss_window.h"

#include <gtest/gtest.h>

namespace crema {
namespace loss_window_test {

TEST(LossWindow, MeanOverTheLast) {
  LossWindow window(3);
  window.add(0, 4);
  EXPECT_EQ(window.mean(0), 4);
  window.add(1, 2);
  EXPECT_EQ(window.mean(1), 3);
  for (int i = 2; i < 6; ++i) window.add(i, i);
  EXPECT_EQ(window.mean(5), 4);
}

TEST(LossWindow, GapsDoNotCount) {
  LossWindow window(3);
  window.add(0, 100);
  window.add(8, 1);
  window.add(9, 2);
  window.add(10, 3);
  EXPECT_EQ(window.mean(10), 2);
}

TEST(LossWindow, AResumedWindowGoesOn) {
  LossWindow whole(4), first(4), second(4);
  for (int i = 7; i < 9; ++i) {
    whole.add(i, 0.1f * i);
    first.add(i, 0.1f * i);
  }
  second.restore(9, first.store(9));
  for (int i = 9; i < 11; ++i) {
    whole.add(i, 0.1f * i);
    second.add(i, 0.1f * i);
  }
  EXPECT_EQ(whole.mean(10), second.mean(10));
  EXPECT_TRUE(first.store(20).empty());  // too old
}

}  // namespace loss_window_test
}  // namespace crema
