#include "control_ranks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <new>
#include <thread>

namespace crema::tests {

RankResult result_of(const ControlOptions& options, const RankWork& work) {
  RankResult result;
  const auto begin = std::chrono::steady_clock::now();
  try {
    Control control(options);
    result.met = true;
    work(control, options.rank);
  } catch (const RankLost& error) {
    result.lost = true;
    result.told = error.told();
    result.error = error.what();
  } catch (const std::exception& error) {
    result.error = error.what();
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

std::vector<ControlOptions> options_of(int ranks, double timeout) {
  const Listening listening = listen_on("127.0.0.1", 0);
  std::vector<ControlOptions> all(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    all[rank] = {
        rank,    ranks, cat("127.0.0.1:", listening.port), rank == 0 ? listening.socket : -1, "x",
        timeout, ""};
  }
  return all;
}

std::string raw(const Bytes& frame) { return frame->text + std::string(kFrameCode, '\0'); }

std::unique_ptr<Connection> greet(const std::string& address, const std::string& token,
                                  const Handshake& handshake) {
  std::string reason;
  const Moment until = ControlClock::now() + seconds(5);
  Socket socket = connect_to(parse_addresses(address)[0], until, &reason);
  EXPECT_TRUE(socket) << reason;
  auto connection = std::make_unique<Connection>(std::move(socket), kMaxFrame);
  bool answered = false;
  while (!answered && !connection->ended() && ControlClock::now() < until) {
    pollfd waiting{connection->descriptor(), POLLIN, 0};
    poll(&waiting, 1, milliseconds_until(until));
    connection->receive([&](const Frame& frame) {
      ConnectionKeys keys;
      const Bytes answer = answer_challenge(frame, token, handshake, &keys);
      connection->set_keys(std::move(keys));
      connection->send(answer);
      answered = true;
    });
  }
  connection->flush();
  return connection;
}

std::string recorded_handshake() {
  const Bytes challenge = challenge_of(std::string(16, 'n'));
  const Frame frame{FrameType::challenge, challenge->text.substr(kFrameHeader), challenge->digest,
                    ""};
  ConnectionKeys keys;
  const Bytes handshake = answer_challenge(frame, "x", kHandshake, &keys);
  return handshake->text + keys.send.code_of(handshake->digest);
}

bool is_closed_there(int socket, Moment until) {
  char bytes[4096];
  while (true) {
    pollfd waiting{socket, POLLIN, 0};
    if (poll(&waiting, 1, milliseconds_until(until)) == 0) return false;
    const ssize_t count = recv(socket, bytes, sizeof bytes, 0);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return true;
  }
}

std::vector<RankResult> run_threads(const std::vector<ControlOptions>& options,
                                    const RankWork& work) {
  std::vector<RankResult> results(options.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < options.size(); ++i)
    threads.emplace_back([&, i] { results[i] = result_of(options[i], work); });
  for (std::thread& thread : threads) thread.join();
  return results;
}

std::vector<RankResult> run_threads(int ranks, double timeout, const RankWork& work) {
  return run_threads(options_of(ranks, timeout), work);
}

Count::Count() {
  void* const page =
      mmap(nullptr, sizeof *count_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(page != MAP_FAILED, "no memory to share");
  count_ = new (page) std::atomic<int>(0);
}

Count::~Count() { munmap(count_, sizeof *count_); }

void Count::wait_for(int count) const {
  for (int i = 0; i < 2000 && *count_ < count; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(*count_, count);
}

RankProcesses::RankProcesses(int ranks, double timeout, const RankWork& work) {
  const std::vector<ControlOptions> options = options_of(ranks, timeout);
  for (int rank = 0; rank < ranks; ++rank) {
    int ends[2];
    require(pipe2(ends, O_CLOEXEC) == 0, "no pipe");
    const pid_t pid = fork();
    if (pid == 0) {
      close(ends[0]);
      if (rank != 0) close(options[0].listening);
      const RankResult result = result_of(options[rank], work);
      const std::string text =
          cat(result.met, result.lost, result.told, " ", result.seconds, " ", result.error);
      const bool whole =
          write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
      _exit(whole ? 0 : 1);
    }
    close(ends[1]);
    pids_.push_back(pid);
    pipes_.push_back(ends[0]);
  }
  close(options[0].listening);
}

RankProcesses::~RankProcesses() {
  for (const pid_t pid : pids_) {
    if (pid <= 0) continue;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  for (const int pipe : pipes_) close(pipe);
}

void RankProcesses::signal(int rank, int number) const { kill(pids_[rank], number); }

RankResult RankProcesses::result(int rank) {
  std::string text(4096, '\0');
  size_t size = 0;
  for (ssize_t count = 0; (count = read(pipes_[rank], text.data() + size, text.size() - size)) > 0;)
    size += static_cast<size_t>(count);
  text.resize(size);
  waitpid(pids_[rank], nullptr, 0);
  pids_[rank] = -1;
  RankResult result;
  if (size < 4) return result;
  result.met = text[0] == '1';
  result.lost = text[1] == '1';
  result.told = text[2] == '1';
  const size_t space = text.find(' ', 4);
  result.seconds = std::stod(text.substr(4, space - 4));
  result.error = text.substr(space + 1);
  return result;
}

std::string this_host() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace crema::tests
