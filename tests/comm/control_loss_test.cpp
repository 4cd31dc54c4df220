// Ranks that end, are suspended, hang or fail: the others find out, and one of them tells the user.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "comm/control_frames.h"
#include "comm/control_sockets.h"
#include "control_ranks.h"

namespace crema::tests {
namespace control_loss_test {

void sleep(double count) { std::this_thread::sleep_for(std::chrono::duration<double>(count)); }

// Trains, so to say, until something is thrown; counts in `ready` once the others know its
// iteration.
RankWork train(const Count& ready) {
  return [&ready](Control& control, int) {
    control.at_iteration(1240);
    for (int i = 0;; ++i) {
      control.gather("");
      sleep(0.01);
      if (i == 1) ready.add();
    }
  };
}

void expect_loss(const RankResult& result, const std::string& message, bool told) {
  EXPECT_TRUE(result.lost);
  EXPECT_EQ(result.error, message);
  EXPECT_EQ(result.told, told);
}

std::string name(int rank) { return cat("rank ", rank, " on ", this_host()); }

TEST(ControlLoss, ARankThatIsKilled) {
  const Count ready;
  RankProcesses ranks(4, 1.2, train(ready));
  ready.wait_for(4);
  ranks.signal(2, SIGKILL);
  for (const int rank : {0, 1, 3})
    expect_loss(ranks.result(rank), name(2) + " has ended (last iteration 1240)", rank != 0);
  EXPECT_FALSE(ranks.result(2).met);
}

RankWork wait_for_loss(const Count& ready) {
  return [&ready](Control& control, int) {
    ready.add();
    while (true) {
      control.check();
      sleep(0.01);
    }
  };
}

TEST(ControlLoss, Rank0IsKilled) {
  const Count ready;
  RankProcesses ranks(4, 20, wait_for_loss(ready));
  ready.wait_for(4);
  ranks.signal(0, SIGKILL);
  for (const int rank : {3, 2, 1}) {
    const RankResult result = ranks.result(rank);
    expect_loss(result, name(0) + " has ended", rank != 1);
    EXPECT_LT(result.seconds, 1.5);
  }
}

// No rank stays silent for ever.
TEST(ControlLoss, Rank0AndItsDeputyAreKilled) {
  const Count ready;
  RankProcesses ranks(3, 20, wait_for_loss(ready));
  ready.wait_for(3);
  ranks.signal(1, SIGSTOP);
  ranks.signal(0, SIGKILL);
  ranks.signal(1, SIGKILL);
  const RankResult result = ranks.result(2);
  expect_loss(result, name(0) + " has ended", false);
  EXPECT_GT(result.seconds, 1.9);  // a launcher would have ended it, had rank 1 told the user
  EXPECT_LT(result.seconds, 4);
}

std::string silence_of(int rank) {
  return name(rank) +
         " has been silent for 0.8 s (last iteration 1240): the process or its machine hangs, or "
         "the network does";
}

TEST(ControlLoss, ARankThatStandsStill) {
  const Count ready;
  RankProcesses ranks(3, 0.8, train(ready));
  ready.wait_for(3);
  ranks.signal(1, SIGSTOP);
  for (const int rank : {0, 2}) {
    const RankResult result = ranks.result(rank);
    expect_loss(result, silence_of(1), rank != 0);
    EXPECT_LT(result.seconds, 4);
  }
  ranks.signal(1, SIGCONT);
  expect_loss(ranks.result(1), silence_of(1), true);
}

TEST(ControlLoss, Rank0StandsStill) {
  const Count ready;
  RankProcesses ranks(3, 0.8, train(ready));
  ready.wait_for(3);
  ranks.signal(0, SIGSTOP);
  expect_loss(ranks.result(1), silence_of(0), false);
  expect_loss(ranks.result(2), silence_of(0), true);
  ranks.signal(0, SIGCONT);
  expect_loss(ranks.result(0), silence_of(0), true);
}

// It computes, or reads from a disk that does not answer; its control connection lives.
void expect_hang(int hanging, int teller) {
  std::atomic<int> lost = 0;
  const auto results = run_threads(3, 0.6, [&](Control& control, int rank) {
    control.at_iteration(7);
    control.gather("");
    sleep(0.1);
    if (rank == hanging) {
      while (!control.lost()) sleep(0.01);
    }
    ++lost;
    control.gather("");
  });
  const std::string message =
      name(hanging) + " hangs (last iteration 7): others have waited for it for 0.6 s";
  for (int rank = 0; rank < 3; ++rank) {
    expect_loss(results[rank], message, rank != teller);
    EXPECT_GT(results[rank].seconds, 0.6);
    EXPECT_LT(results[rank].seconds, 3);
  }
}

TEST(ControlLoss, ARankThatHangs) { expect_hang(2, 0); }
TEST(ControlLoss, Rank0Hangs) { expect_hang(0, 1); }

// Others wait in a sum, of which the control connection sees nothing.
TEST(ControlLoss, ARankHangsOutsideOfGathers) {
  const auto results = run_threads(3, 0.4, [&](Control& control, int rank) {
    control.gather("");
    // One that is slow, but comes on.
    for (int i = 0; i < 12; ++i, sleep(0.05)) {
      if (rank == 1) control.at_iteration(i);
      if (rank == 0) control.begin_wait();
      control.check();
      if (rank == 0) control.end_wait();
      if (rank == 2) control.at_iteration(2 * i);
    }
    if (rank != 2) control.begin_wait();
    while (true) {
      control.check();
      sleep(0.01);
    }
  });
  for (int rank = 0; rank < 3; ++rank) {
    expect_loss(results[rank],
                name(2) + " hangs (last iteration 22): others have waited for it for 0.4 s",
                rank != 0);
    EXPECT_GT(results[rank].seconds, 0.9);
  }
}

TEST(ControlLoss, SeveralRanksHang) {
  const auto results = run_threads(4, 0.5, [&](Control& control, int rank) {
    while (rank >= 2 && !control.lost()) sleep(0.01);
    control.gather("");
  });
  for (int rank = 0; rank < 4; ++rank)
    expect_loss(results[rank],
                name(2) + " and " + name(3) + " hang: others have waited for it for 0.5 s",
                rank != 0);
}

TEST(ControlLoss, ARankThatPausesMayTakeLonger) {
  const auto results = run_threads(3, 0.4, [](Control& control, int rank) {
    for (int slow = 0; slow < 2; ++slow) {
      if (rank == slow) {
        control.begin_pause();
        sleep(0.6);
        control.end_pause();
      }
      control.gather("");
    }
  });
  for (const RankResult& result : results) EXPECT_EQ(result.error, "");
}

TEST(ControlLoss, ARankThatFailsSaysSoItself) {
  for (const int failing : {0, 2}) {
    const auto results = run_threads(3, 60, [&](Control& control, int rank) {
      control.gather("");
      if (rank == failing) fail("no such file");
      while (true) control.gather("");
    });
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == failing) {
        EXPECT_EQ(results[rank].error, "no such file");
      } else {
        expect_loss(results[rank], name(failing) + " has failed", true);
      }
      EXPECT_LT(results[rank].seconds, 2);
    }
  }
}

TEST(ControlLoss, ARankMayFailAndGoOn) {
  const auto results = run_threads(2, 60, [](Control& control, int rank) {
    control.gather("");
    if (rank == 1) control.fail();
    while (true) control.gather("");
  });
  expect_loss(results[0], name(1) + " has failed", true);
  expect_loss(results[1], "this rank has failed", true);
}

// An exception thrown and caught around it is not a failure of the rank.
TEST(ControlLoss, AnOldExceptionIsNoFailure) {
  struct AtEnd {
    std::function<void()> work;
    ~AtEnd() { work(); }
  };
  const std::vector<ControlOptions> options = options_of(2, 60);
  RankResult inner;
  std::thread other([&] {
    EXPECT_EQ(result_of(options[0],
                        [](Control& c, int) {
                          c.gather("");
                          sleep(0.1);
                          c.check();
                        })
                  .error,
              "");
  });
  EXPECT_EQ(error_of([&] {
              const AtEnd at_end{
                  [&] { inner = result_of(options[1], [](Control& c, int) { c.gather(""); }); }};
              fail("old");
            }),
            "old");
  other.join();
  EXPECT_EQ(inner.error, "");
}

TEST(ControlLoss, ARankIsDoneBeforeTheOthers) {
  for (const int early : {0, 1}) {
    const auto results = run_threads(3, 60, [&](Control& control, int rank) {
      control.at_iteration(3);
      control.gather("");
      if (rank != early) control.gather("");
    });
    EXPECT_EQ(results[early].error, "");
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == early) continue;
      EXPECT_TRUE(results[rank].lost);
      expect_part(results[rank].error, name(early) + " is done");
      expect_part(results[rank].error, ", but others wait for it");
    }
  }
}

TEST(ControlLoss, ExchangesOfOtherNumbers) {
  const std::vector<ControlOptions> options = options_of(2, 60);
  RankResult result;
  std::thread rank0([&] { result = result_of(options[0], [](Control& c, int) { c.gather(""); }); });
  const auto made = greet(options[1].address, "x", {2, 1, "h", ""});
  Connection& connection = *made;
  std::vector<FrameType> types;
  for (const Moment until = ControlClock::now() + seconds(5);
       !connection.ended() && ControlClock::now() < until; sleep(0.01)) {
    connection.flush();
    connection.receive([&](Frame&& frame) {
      types.push_back(frame.type);
      if (frame.type == FrameType::welcome)
        connection.send(FrameWriter(FrameType::text).number(5).number(-1).text("").finish());
    });
    if (!types.empty() && types.back() == FrameType::lost) connection.finish();
  }
  rank0.join();
  expect_loss(
      result,
      "rank 1 on h is in its exchange 5, but the others are in 1: the ranks have not done the "
      "same",
      false);
  ASSERT_FALSE(types.empty());
  EXPECT_EQ(types.back(), FrameType::lost);
}

TEST(ControlLoss, IsCalledBack) {
  std::atomic<int> calls = 0;
  const auto results = run_threads(2, 60, [&](Control& control, int rank) {
    const std::thread::id caller = std::this_thread::get_id();
    const auto work = [&calls, caller] {
      if (std::this_thread::get_id() != caller) ++calls;
      throw 1;
    };
    if (rank == 0) control.when_lost(work);
    control.gather("");
    if (rank == 1) fail("over");
    while (calls < 1) sleep(0.01);
    EXPECT_TRUE(control.lost());
    control.when_lost(work);
    while (calls < 2) sleep(0.01);
    control.check();
  });
  EXPECT_EQ(calls, 2);
  expect_loss(results[0], name(1) + " has failed", true);
}

// The destructor does not wait for a rank that does not answer.
TEST(ControlLoss, EndsInBoundedTime) {
  const auto stop = [](int stopped) {
    return [stopped](Control& control, int rank) {
      control.gather("");
      sleep(0.1);  // until the other has its answer
      if (rank == stopped) std::raise(SIGSTOP);
    };
  };
  RankProcesses first(2, 60, stop(1)), second(2, 60, stop(0));
  for (const RankResult& result : {first.result(0), second.result(1)}) {
    EXPECT_TRUE(result.met);
    EXPECT_EQ(result.error, "");
    EXPECT_LT(result.seconds, 0.1 + 2 + 0.5);
  }
}

}  // namespace control_loss_test
}  // namespace crema::tests
