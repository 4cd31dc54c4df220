// The control connection: ranks meet, exchange texts, and part.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "comm/control_frames.h"
#include "comm/control_sockets.h"
#include "comm/control_standby.h"
#include "control_ranks.h"

namespace crema::tests {
namespace control_test {

void sleep(double count) { std::this_thread::sleep_for(std::chrono::duration<double>(count)); }

void expect_no_errors(const std::vector<RankResult>& results) {
  for (size_t rank = 0; rank < results.size(); ++rank)
    EXPECT_EQ(results[rank].error, "") << "rank " << rank;
}

// --- frames ---

TEST(ControlFrames, ComeInPiecesOfAnySize) {
  const Bytes first = FrameWriter(FrameType::text).number(-7).text("abc").text("").finish();
  const Bytes second = FrameWriter(FrameType::goodbye).finish();
  const Bytes large = FrameWriter(FrameType::texts).text(std::string(3000000, 'x')).finish();
  const std::string all = raw(first) + raw(second) + raw(large);
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{10}, size_t{1000}, all.size()}) {
    FrameReader reader(kMaxFrame);
    std::vector<Frame> frames;
    for (size_t at = 0; at < all.size();) {
      size_t size = 0;
      char* const space = reader.space(&size);
      ASSERT_GT(size, 0u);
      size = std::min({size, piece, all.size() - at});
      std::copy_n(all.data() + at, size, space);
      at += size;
      if (reader.added(size)) frames.push_back(reader.take());
    }
    ASSERT_EQ(frames.size(), 3u) << piece;
    EXPECT_FALSE(reader.inside_frame());
    EXPECT_EQ(frames[0].type, FrameType::text);
    FrameFields fields(frames[0].payload);
    EXPECT_EQ(fields.number(), -7);
    EXPECT_EQ(fields.text(), "abc");
    EXPECT_EQ(fields.text(), "");
    EXPECT_EQ(frames[1].type, FrameType::goodbye);
    EXPECT_EQ(frames[2].payload.size(), 3000000u + 8);
    EXPECT_EQ(FrameFields(frames[2].payload).text(), std::string(3000000, 'x'));
  }
}

TEST(ControlFrames, OthersAreRefused) {
  const auto error = [](std::string bytes, size_t max) {
    return error_of([&] {
      FrameReader reader(max);
      size_t size = 0;
      std::copy_n(bytes.data(), kFrameHeader, reader.space(&size));
      reader.added(kFrameHeader);
    });
  };
  const std::string frame = FrameWriter(FrameType::beat).number(1).number(2).finish()->text;
  expect_part(error("GET / HTTP/1.1\r\n", kMaxFrame), "no frame");
  expect_part(error('\0' + frame.substr(1), kMaxFrame), "no frame");
  expect_part(error(frame, 15), "no frame");
  expect_part(error_of([] { FrameFields("1234567").number(); }), "too short");
  const std::string cut =
      FrameWriter(FrameType::beat).text("abc").finish()->text.substr(kFrameHeader, 10);
  expect_part(error_of([&] { FrameFields(cut).text(); }), "cut");
}

// --- addresses ---

TEST(ControlAddresses, AreHostsAndPorts) {
  const auto all = parse_addresses("node01:1,10.0.0.2:65535,[fe80::1]:3,fe80::2:4");
  ASSERT_EQ(all.size(), 4u);
  const std::vector<std::string> hosts = {"node01", "10.0.0.2", "fe80::1", "fe80::2"};
  const std::vector<int> ports = {1, 65535, 3, 4};
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].host, hosts[i]);
    EXPECT_EQ(all[i].port, ports[i]);
  }
  for (const char* wrong :
       {"", "node01", ":1", "node01:", "node01:0", "node01:65536", "a:1x", "a:1,"})
    expect_part(error_of([&] { parse_addresses(wrong); }), "expected a host and a port");
}

TEST(ControlAddresses, OfThisMachineCanBeReached) {
  const Listening listening = listen_anywhere();
  const Socket open(listening.socket);
  EXPECT_GT(listening.port, 0);
  const std::vector<std::string> addresses = own_addresses();
  ASSERT_FALSE(addresses.empty());
  for (const std::string& address : addresses) {
    std::string reason;
    EXPECT_TRUE(connect_to({address, listening.port}, ControlClock::now() + seconds(2), &reason))
        << address << ": " << reason;
  }
}

TEST(ControlAddresses, APortIsTakenOnce) {
  const Listening listening = listen_anywhere();
  const Socket open(listening.socket);
  expect_part(error_of([&] { listen_on("", listening.port); }),
              cat("rank 0 cannot listen on port ", listening.port));
  expect_part(error_of([&] { listen_on("127.0.0.1", listening.port); }), "another training");
}

// --- texts ---

TEST(Control, ExchangesTexts) {
  const auto results = run_threads(16, 60, [](Control& control, int rank) {
    for (int round = 0; round < 1000; ++round) {
      const std::vector<std::string> all = control.gather(cat(rank, " in ", round));
      require(all.size() == 16, "not all texts");
      for (int other = 0; other < 16; ++other)
        require(all[other] == cat(other, " in ", round), "rank ", rank, " has ", all[other]);
      control.at_iteration(round);
      control.check();
    }
  });
  expect_no_errors(results);
}

TEST(Control, ExchangesLargeTexts) {
  const auto text = [](int rank) {
    return std::string(20000000 + rank, static_cast<char>('a' + rank));
  };
  const auto results = run_threads(3, 60, [&](Control& control, int rank) {
    for (int round = 0; round < 1; ++round) {
      const std::vector<std::string> all = control.gather(text(rank));
      for (int other = 0; other < 3; ++other) require(all[other] == text(other), "other text");
      require(control.gather("")[2].empty(), "a text out of nothing");
    }
  });
  expect_no_errors(results);
}

TEST(Control, RefusesTextsThatNoFrameHolds) {
  const auto results = run_threads(
      2, 60, [](Control& control, int) { control.gather(std::string_view("", size_t{1} << 30)); });
  for (const RankResult& result : results)
    EXPECT_EQ(result.error,
              "a text of 1.0 GiB is too long for 2 ranks to exchange; at most 512.0 MiB");
}

TEST(Control, OfOneRankNeedsNobody) {
  const auto results = run_threads({ControlOptions{}}, [](Control& control, int) {
    EXPECT_EQ(control.gather("a"), std::vector<std::string>{"a"});
    EXPECT_EQ(control.gather("b"), std::vector<std::string>{"b"});
    EXPECT_FALSE(control.lost());
  });
  expect_no_errors(results);
}

// --- meeting ---

TEST(ControlRendezvous, RanksComeAtAnyTime) {
  std::vector<ControlOptions> options = options_of(4, 60);
  // Rank 0 opens the port itself. Until then nothing listens there.
  close(options[0].listening);
  options[0].listening = -1;
  std::vector<std::thread> threads;
  std::vector<RankResult> results(4);
  for (const int rank : {2, 0, 3, 1}) {
    threads.emplace_back([&, rank] {
      results[rank] = result_of(options[rank], [](Control& control, int me) {
        EXPECT_EQ(control.gather(cat(me)), (std::vector<std::string>{"0", "1", "2", "3"}));
      });
    });
    sleep(0.1);
  }
  for (std::thread& thread : threads) thread.join();
  expect_no_errors(results);
}

TEST(ControlRendezvous, AddressesAreTriedInTurn) {
  std::vector<ControlOptions> options = options_of(3, 60);
  // At the first address nothing listens, at the second something that is not a rank, and hangs up.
  const Listening other = listen_on("127.0.0.1", 0);
  const Socket open(other.socket);
  std::atomic<bool> over = false;
  std::thread hangs_up([&] {
    while (!over) {
      accept_next(open);
      sleep(0.01);
    }
  });
  for (int rank = 1; rank < 3; ++rank)
    options[rank].address = cat("127.0.0.1:1,127.0.0.1:", other.port, ",", options[rank].address);
  expect_no_errors(run_threads(options, [](Control& control, int) { control.gather(""); }));
  over = true;
  hangs_up.join();
}

TEST(ControlRendezvous, NamesTheRanksThatDoNotCome) {
  std::vector<ControlOptions> options = options_of(4, 0.4);
  const std::string address = options[0].address;
  options.erase(options.begin() + 2);
  const auto results = run_threads(options, [](Control&, int) {});
  const std::string text =
      cat("of 4 ranks, rank 2 has not come to rank 0 on ", this_host(), " (", address,
          ") within 0.4 s; does each of them run, and can it reach that address?");
  for (const RankResult& result : results) EXPECT_EQ(result.error, text);
  // Rank 0 tells the user.
  EXPECT_FALSE(results[0].lost);
  EXPECT_TRUE(results[1].told);
  EXPECT_TRUE(results[2].told);
}

TEST(ControlRendezvous, NamesTheAddressWhereRank0IsNot) {
  std::vector<ControlOptions> options = options_of(2, 0.5);
  close(options[0].listening);
  const auto results = run_threads({options[1]}, [](Control&, int) {});
  EXPECT_EQ(results[0].error,
            cat("rank 1 on ", this_host(), " has not met rank 0 at ", options[1].address,
                " within 0.5 s (Connection refused); does rank 0 run, and can this machine reach "
                "it?"));
  EXPECT_FALSE(results[0].lost);
}

// Connects, sends these bytes and waits for the end of the connection.
void send_there(const std::string& address, const std::string& bytes) {
  std::string reason;
  const Socket socket =
      connect_to(parse_addresses(address)[0], ControlClock::now() + seconds(5), &reason);
  ASSERT_TRUE(socket) << reason;
  EXPECT_EQ(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

TEST(ControlRendezvous, TurnsOthersAway) {
  std::vector<ControlOptions> options = options_of(3, 60);
  // A rank of another run, a second rank 1, one of more ranks: they try until their own timeout.
  std::vector<ControlOptions> wrong(3, options[1]);
  wrong[0].token = "y";
  wrong[2].ranks = 4;
  for (ControlOptions& one : wrong) one.timeout = 0.25;
  std::vector<RankResult> others;
  const ControlOptions late = options[2];
  options.pop_back();
  std::vector<RankResult> results;
  std::thread first(
      [&] { results = run_threads(options, [](Control& control, int) { control.gather(""); }); });
  sleep(0.1);
  send_there(options[0].address, "GET / HTTP/1.1\r\nHost: node01\r\n\r\n");
  send_there(options[0].address, "");
  const RankResult left = result_of(wrong[0], [](Control&, int) {});
  others = run_threads(wrong, [](Control&, int) {});
  const RankResult last = result_of(late, [](Control& control, int) { control.gather(""); });
  first.join();
  expect_no_errors(results);
  EXPECT_EQ(last.error, "");
  const std::string begin = cat("rank 1 on ", this_host(), " has been turned away at ",
                                options[0].address, ", where rank 0 should be: ");
  for (const RankResult& other : {left, others[0]})
    EXPECT_EQ(other.error,
              cat("rank 1 on ", this_host(), " has not met rank 0 at ", options[0].address,
                  " within 0.25 s (what listens there turns this rank away: another run, or one "
                  "with another token); does rank 0 run, and can this machine reach it?"));
  EXPECT_EQ(others[1].error, begin + "a rank 1 is there already, on " + this_host());
  EXPECT_EQ(others[2].error, begin + "rank 1 of 4 does not belong to a run of 3 ranks");
}

// Clients that are not ranks of the run get no answer.
TEST(ControlRendezvous, TheStandbyAnswersRanks) {
  ControlOptions options;
  options.ranks = 4;
  options.token = "x";
  Standby standby(options, true);
  std::atomic<int> teller = -1;
  std::atomic<bool> over = false;
  std::thread serves([&] {
    while (!over) {
      standby.serve(teller < 0 ? std::nullopt : std::optional<int>(teller));
      sleep(0.005);
    }
  });
  const auto ask = [&](const char* token, const std::string& addresses) {
    return ask_standby(addresses, token, {4, 2, "node01", ""}, ControlClock::now() + seconds(0.2));
  };
  send_there(standby.address(), "GET / HTTP/1.1\r\nHost: node01\r\n\r\n");
  EXPECT_FALSE(ask("x", standby.address()));  // it does not know yet
  teller = 1;
  EXPECT_FALSE(ask("y", standby.address()));
  EXPECT_FALSE(ask("x", ""));
  EXPECT_EQ(ask("x", "127.0.0.1:1," + standby.address()), 1);
  over = true;
  serves.join();
  EXPECT_EQ(standby.answers(), 1);
}

// A launcher that starts a rank again.
TEST(ControlRendezvous, ARankMayLeaveAndComeAgain) {
  const std::vector<ControlOptions> options = options_of(3, 60);
  std::vector<RankResult> results(3);
  std::thread first(
      [&] { results[0] = result_of(options[0], [](Control& c, int) { c.gather(""); }); });
  greet(options[0].address, "x", {3, 1, "here", ""});
  std::vector<ControlOptions> others = {options[1], options[2]};
  expect_no_errors(run_threads(others, [](Control& control, int) { control.gather(""); }));
  first.join();
  EXPECT_EQ(results[0].error, "");
}

TEST(ControlRendezvous, NeedsASocketThatListens) {
  ControlOptions options = options_of(2, 1)[0];
  const Socket open(options.listening);
  options.listening = 0;
  expect_part(error_of([&] { Control control(options); }), "file descriptor 0 is no socket");
}

// --- parting ---

TEST(Control, RanksPartInAnyOrder) {
  for (const int first : {0, 1, 2}) {
    const auto results = run_threads(3, 60, [&](Control& control, int rank) {
      control.gather("");
      if (rank != first) sleep(0.1);
      control.check();
      if (rank == 3 - first) sleep(0.1);
      control.check();
    });
    expect_no_errors(results);
    for (const RankResult& result : results) EXPECT_LT(result.seconds, 1.5);
  }
}

}  // namespace control_test
}  // namespace crema::tests
