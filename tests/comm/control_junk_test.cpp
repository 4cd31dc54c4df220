// Bytes that are no frames, or frames out of place, in each state of a control connection.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "comm/control_frames.h"
#include "comm/control_sockets.h"
#include "control_ranks.h"

namespace crema::tests {
namespace control_junk_test {

void sleep(double count) { std::this_thread::sleep_for(std::chrono::duration<double>(count)); }

// A connection of rank 1, on which rank 0 gets this once it has sent that frame.
std::unique_ptr<Connection> junk_after(FrameType answer, const std::string& address, int ranks,
                                       const std::string& junk) {
  auto connection = greet(address, "x", {ranks, 1, "stranger", ""});
  bool answered = false;
  const Moment until = ControlClock::now() + seconds(5);
  while (!answered && !connection->ended() && ControlClock::now() < until) {
    pollfd waiting{connection->descriptor(), POLLIN, 0};
    poll(&waiting, 1, milliseconds_until(until));
    connection->receive([&](const Frame& frame) { answered |= frame.type == answer; });
  }
  EXPECT_TRUE(answered);
  const ssize_t ignored = send(connection->descriptor(), junk.data(), junk.size(), MSG_NOSIGNAL);
  EXPECT_EQ(ignored, static_cast<ssize_t>(junk.size()));
  EXPECT_TRUE(is_closed_there(connection->descriptor(), ControlClock::now() + seconds(2)));
  return connection;
}

// Junk ends the connection that it came from, and nothing else.
TEST(ControlJunk, FromARankThatWasAccepted) {
  for (const std::string& junk :
       {std::string("GET / HTTP/1.1\r\n\r\n"), raw(FrameWriter(FrameType::failed).finish()),
        recorded_handshake()}) {
    const std::vector<ControlOptions> options = options_of(3, 20);
    RankResult result;
    std::thread rank0(
        [&] { result = result_of(options[0], [](Control& control, int) { control.gather(""); }); });
    const auto stranger = junk_after(FrameType::accepted, options[1].address, 3, junk);
    for (const RankResult& other :
         run_threads({options[1], options[2]}, [](Control&control, int) { control.gather(""); }))
      EXPECT_EQ(other.error, "");
    rank0.join();
    EXPECT_EQ(result.error, "");
  }
}

// --- what is not rank 0, and a rank 0 that sends junk ---

// Listens, has the token, plays rank 0 as far as `script` says and then sends `junk`, to each pending peer
// that comes until its end.
class FalseRank0 {
 public:
  enum class Until { nothing, challenge, accepted, welcome, run };
  FalseRank0(Socket listening, Until until, std::string junk)
      : listening_(std::move(listening)), until_(until), junk_(std::move(junk)) {
    thread_ = std::thread([this] { run(); });
  }
  ~FalseRank0() {
    over_ = true;
    thread_.join();
  }
  FalseRank0(const FalseRank0&) = delete;
  FalseRank0& operator=(const FalseRank0&) = delete;

 private:
  void run() {
    while (!over_) {
      Socket socket = accept_next(listening_);
      try {
        if (socket) serve(std::move(socket));
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
      sleep(0.01);
    }
  }
  void serve(Socket socket) {
    const int descriptor = socket.get();
    Connection connection(std::move(socket), kMaxHandshake);
    const std::string nonce = random_nonce();
    bool shook_hands = until_ == Until::nothing;
    if (until_ != Until::nothing) connection.send(challenge_of(nonce));
    const Moment last = ControlClock::now() + seconds(2);
    while (!shook_hands && !over_ && !connection.ended() && ControlClock::now() < last) {
      connection.flush();
      connection.receive([&](const Frame& frame) {
        ConnectionKeys keys;
        read_handshake(frame, "x", nonce, &keys);
        connection.set_keys(std::move(keys));
        shook_hands = true;
      });
      sleep(0.005);
    }
    if (until_ >= Until::accepted) connection.send(FrameWriter(FrameType::accepted).finish());
    if (until_ >= Until::welcome)
      connection.send(FrameWriter(FrameType::welcome).text("a").text("b").text("").finish());
    // A frame with the right key and no content, where this rank has one.
    if (junk_.empty()) connection.send(FrameWriter(FrameType::welcome).text("a").finish());
    connection.flush();
    if (until_ == Until::run) sleep(0.2);
    [[maybe_unused]] const ssize_t ignored =
        send(descriptor, junk_.data(), junk_.size(), MSG_NOSIGNAL);
    is_closed_there(descriptor, ControlClock::now() + seconds(1));
  }

  const Socket listening_;
  const Until until_;
  const std::string junk_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

// In each state a rank takes junk for a stranger, or for the end of rank 0, and says so once.
TEST(ControlJunk, FromWhatListensAsRank0) {
  using Until = FalseRank0::Until;
  const std::string http = "HTTP/1.1 400 Bad Request\r\n\r\n", noise(3000, '\xff');
  const std::string not_rank0 = "does not answer as rank 0 does";
  const std::string unreadable = "rank 0 on a sends what cannot be read";
  const auto frame = raw(FrameWriter(FrameType::lost).text("x").finish());
  struct Row {
    Until until;
    std::string junk, expected;
  };
  const std::vector<Row> rows = {
      {Until::nothing, http, not_rank0},
      {Until::nothing, raw(challenge_of("short")), not_rank0},
      {Until::nothing, frame, not_rank0},
      {Until::challenge, noise, not_rank0},
      {Until::challenge, frame, not_rank0},
      {Until::challenge, "", not_rank0},  // a welcome that is cut off
      {Until::accepted, http, not_rank0},
      {Until::accepted, frame, not_rank0},
      {Until::accepted, "", not_rank0},
      // Together with the welcome, which then is none, or just after it.
      {Until::welcome, http, ""},
      {Until::welcome, frame, ""},
      {Until::run, http, unreadable},
      {Until::run, noise, unreadable},
      {Until::run, frame, unreadable},
  };
  const auto check = [&](const Row& row) {
    const std::string name = cat(static_cast<int>(row.until), " ", row.junk.substr(0, 10));
    const Listening listening = listen_on("127.0.0.1", 0);
    const FalseRank0 rank0(Socket(listening.socket), row.until, row.junk);
    const RankResult result = result_of({1, 2, cat("127.0.0.1:", listening.port), -1, "x", 0.5, ""},
                                        [](Control& control, int) { control.gather(""); });
    const std::string& expected = row.until != Until::welcome ? row.expected
                                  : result.met                ? unreadable
                                                              : not_rank0;
    EXPECT_NE(result.error.find(expected), std::string::npos) << name << ": " << result.error;
    EXPECT_EQ(result.met, expected == unreadable) << name;
    EXPECT_LT(result.seconds, 4) << name;
  };
  std::vector<std::thread> threads;
  for (const Row& row : rows) threads.emplace_back([&] { check(row); });
  for (std::thread& thread : threads) thread.join();
}

// After the ranks have met, a rank that sends junk is lost, and rank 0 says so once.
TEST(ControlJunk, FromARankDuringTheRun) {
  for (const std::string& junk : {std::string("GET / HTTP/1.1\r\n\r\n"), recorded_handshake(),
                                  raw(FrameWriter(FrameType::text).finish())}) {
    const std::vector<ControlOptions> options = options_of(2, 20);
    RankResult result;
    std::thread rank0(
        [&] { result = result_of(options[0], [](Control& control, int) { control.gather(""); }); });
    const auto stranger = junk_after(FrameType::welcome, options[1].address, 2, junk);
    rank0.join();
    EXPECT_TRUE(result.met);
    EXPECT_FALSE(result.told);
    expect_part(result.error, "rank 1 on stranger sends what cannot be read");
  }
}

}  // namespace control_junk_test
}  // namespace crema::tests
