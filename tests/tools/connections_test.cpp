// Connections: clients that are slow, greedy or silent, and addresses.
#include "tools/http/connections.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "support.h"
#include "tools/http/loopback.h"

namespace crema::tests {
namespace connections_test {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class Client {
 public:
  explicit Client(int port, int receive_buffer = 0) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0)
      setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~Client() { close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(const std::string& text) const {
    [[maybe_unused]] const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
  }
  // Up to the end of the connection, or what has come until `patience` ran out.
  std::string receive(milliseconds patience = milliseconds(5000)) const {
    std::string text;
    char buffer[4096];
    pollfd event{socket_, POLLIN, 0};
    while (poll(&event, 1, static_cast<int>(patience.count())) > 0) {
      const ssize_t got = recv(socket_, buffer, sizeof buffer, 0);
      if (got <= 0) return text;
      text.append(buffer, static_cast<size_t>(got));
    }
    return text + "(still open)";
  }

 private:
  int socket_;
};

// Answers with the request, or as the test requests.
class Served {
 public:
  explicit Served(
      const ConnectionLimits& limits,
      Connections::Answer answer = [](const std::string& request) { return "<" + request + ">"; })
      : connections_("127.0.0.1", 0, std::move(answer), limits),
        thread_([this] { connections_.serve(); }) {}
  Served(const ConnectionLimits& limits, Connections::Handler handler)
      : connections_("127.0.0.1", 0, std::move(handler), limits),
        thread_([this] { connections_.serve(); }) {}
  ~Served() { connections_.stop(); }
  int port() const { return connections_.port(); }

 private:
  Connections connections_;
  std::jthread thread_;
};

const std::string kRequest = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

TEST(Connections, AnswersWholeRequests) {
  const Served served({});
  for (const auto& [parts, answer] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{kRequest}, "<" + kRequest + ">"},
           {{"GET / HTTP/1.1\r", "\n\r", "\n"}, "<GET / HTTP/1.1\r\n\r\n>"},
           {{"POST / HTTP/1.1\r\ncontent-length:  3 \r\n\r\na", "b", "c"},
            "<POST / HTTP/1.1\r\ncontent-length:  3 \r\n\r\nabc>"},
           {{"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"},
            "<POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n>"},
           {{kRequest + kRequest}, "<" + kRequest + kRequest + ">"}}) {
    const Client client(served.port());
    for (const std::string& part : parts) {
      client.send(part);
      std::this_thread::sleep_for(milliseconds(5));
    }
    EXPECT_EQ(client.receive(), answer);
  }
}

// A request byte by byte, a body that does not come, a connection without data: all of them
// together delay no client, and none stays.
TEST(Connections, SlowClientsDelayNobody) {
  const Served served({.connections = 200, .to_ask = milliseconds(400), .threads = 2});
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 60; ++i) {
    slow.push_back(std::make_unique<Client>(served.port()));
    if (i % 3 == 1) slow.back()->send("GET / HTTP/1.1\r\n");
    if (i % 3 == 2) slow.back()->send("POST / HTTP/1.1\r\nContent-Length: 99\r\n\r\na");
  }
  const Clock::time_point begin = Clock::now();
  EXPECT_EQ((Client(served.port()).send(kRequest), 0), 0);
  const Client client(served.port());
  client.send(kRequest);
  EXPECT_EQ(client.receive(), "<" + kRequest + ">");
  EXPECT_LT(Clock::now() - begin, milliseconds(200));
  // A byte now and then does not prolong it.
  for (int i = 0; i < 12; ++i) {
    for (const auto& one : slow) one->send("x");
    std::this_thread::sleep_for(milliseconds(50));
  }
  for (const auto& one : slow) EXPECT_EQ(one->receive(milliseconds(0)), "");
}

TEST(Connections, ReadersThatDoNotReadAreClosed) {
  const std::string large(8 << 20, 'x');
  const Served served({.answers = size_t{20} << 20, .to_listen = milliseconds(500)},
                      [&](const std::string&) { return large; });
  // Five answers of 8 MiB: at most two may wait, so the older connections are closed.
  std::vector<std::unique_ptr<Client>> lazy;
  for (int i = 0; i < 5; ++i) {
    lazy.push_back(std::make_unique<Client>(served.port(), 4096));
    lazy.back()->send(kRequest);
    std::this_thread::sleep_for(milliseconds(20));
  }
  const Client reader(served.port());
  reader.send(kRequest);
  EXPECT_EQ(reader.receive(), large);
  std::this_thread::sleep_for(milliseconds(600));
  for (const auto& one : lazy) EXPECT_LT(one->receive(milliseconds(100)).size(), large.size());
}

TEST(Connections, RequestsAndConnectionsAreBounded) {
  size_t longest = 0;
  const Served served({.connections = 4, .request = 1000}, [&](const std::string& request) {
    longest = std::max(longest, request.size());
    return std::string("answer");
  });
  const Client endless(served.port());
  endless.send("GET / HTTP/1.1\r\n");
  for (int i = 0; i < 100; ++i) endless.send("Header: " + std::string(5000, 'x') + "\r\n");
  EXPECT_EQ(endless.receive().substr(0, 6), "answer");
  EXPECT_LE(longest, 1000u + (1 << 14));
  // The one that has been silent for longest makes room.
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 6; ++i) {
    silent.push_back(std::make_unique<Client>(served.port()));
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(silent[0]->receive(milliseconds(1000)), "");
  const Client client(served.port());
  client.send(kRequest);
  EXPECT_EQ(client.receive(), "answer");
}

TEST(Connections, EndPromptly) {
  Connections connections("127.0.0.1", 0, [](const std::string&) { return ""; });
  const Client silent(connections.port());
  Clock::time_point asked;
  {
    const std::jthread serving([&] { connections.serve(); });
    std::this_thread::sleep_for(milliseconds(50));
    asked = Clock::now();
    connections.stop();
  }
  EXPECT_LT(Clock::now() - asked, milliseconds(200));
  EXPECT_EQ(silent.receive(), "");
  connections.serve();  // stopped before it began
}

TEST(Connections, StayOpenForFurtherRequests) {
  const Served served(
      {.to_ask_again = milliseconds(300)},
      Connections::Handler([](const std::string& request, Connections::Reply reply) {
        reply("<" + request + ">", request.find("last") == std::string::npos);
      }));
  const std::string second = "POST /b HTTP/1.1\r\nContent-Length: 2\r\n\r\nxy";
  const std::string last = "GET /last HTTP/1.1\r\n\r\n";
  const Client client(served.port());
  client.send(kRequest + second + last.substr(0, 5));
  EXPECT_EQ(client.receive(milliseconds(100)), "<" + kRequest + "><" + second + ">(still open)");
  client.send(last.substr(5));
  EXPECT_EQ(client.receive(), "<" + last + ">");
  // Without another request it is closed.
  const Client silent(served.port());
  silent.send(kRequest);
  EXPECT_EQ(silent.receive(milliseconds(1000)), "<" + kRequest + ">");
}

// Connections that ask nothing, however many, do not close that of a client at work.
TEST(Connections, OutlastAFloodOfOthers) {
  const Served served(
      {.connections = 8, .to_ask_again = milliseconds(5000)},
      Connections::Handler([](const std::string& request, Connections::Reply reply) {
        reply("<" + request + ">", true);
      }));
  const Client client(served.port());
  std::vector<std::unique_ptr<Client>> silent;
  for (int round = 0; round < 4; ++round) {
    client.send(kRequest);
    EXPECT_EQ(client.receive(milliseconds(50)), "<" + kRequest + ">(still open)");
    for (int i = 0; i < 20; ++i) {
      silent.push_back(std::make_unique<Client>(served.port()));
      silent.back()->send("GET ");
    }
  }
  EXPECT_EQ(silent[0]->receive(milliseconds(1000)), "");
}

// Answers may come later and from other threads; a request that nobody answers ends its connection.
TEST(Connections, AnswerLater) {
  std::mutex mutex;
  std::vector<std::pair<std::string, Connections::Reply>> waiting;
  const Served served({.threads = 1},
                      Connections::Handler([&](std::string request, Connections::Reply reply) {
                        const std::lock_guard<std::mutex> lock(mutex);
                        waiting.emplace_back(std::move(request), std::move(reply));
                      }));
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(std::make_unique<Client>(served.port()));
    clients.back()->send(cat("GET /", i, " HTTP/1.1\r\n\r\n"));
  }
  const auto count = [&] {
    const std::lock_guard<std::mutex> lock(mutex);
    return waiting.size();
  };
  for (int i = 0; i < 500 && count() < 6; ++i) std::this_thread::sleep_for(milliseconds(2));
  ASSERT_EQ(count(), 6u);
  for (auto& [request, reply] : waiting) {
    if (request.find("/5 ") == std::string::npos) reply("<" + request + ">");
  }
  waiting.clear();
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(clients[i]->receive(), cat("<GET /", i, " HTTP/1.1\r\n\r\n>"));
  EXPECT_EQ(clients[5]->receive(), "");
}

TEST(Connections, FinishAfterAllAnswers) {
  std::atomic<int> begun = 0;
  Connections connections(
      "127.0.0.1", 0,
      Connections::Handler([&](const std::string& request, Connections::Reply reply) {
        ++begun;
        if (!reply.is_late()) std::this_thread::sleep_for(milliseconds(200));
        reply((reply.is_late() ? "late " : "<") + request);
      }),
      {.connections = 8, .threads = 1});
  const int port = connections.port();
  std::jthread serving([&] { connections.serve(); });
  const Client one(port), two(port), partial(port), silent(port);
  one.send(kRequest);
  two.send(kRequest);  // waits for the thread
  partial.send(kRequest.substr(0, 9));
  while (begun == 0) std::this_thread::sleep_for(milliseconds(1));
  std::this_thread::sleep_for(milliseconds(20));
  const Clock::time_point asked = Clock::now();
  connections.finish();
  std::this_thread::sleep_for(milliseconds(20));
  partial.send(kRequest.substr(9));
  EXPECT_EQ(one.receive(), "<" + kRequest);
  EXPECT_EQ(two.receive(), "<" + kRequest);
  EXPECT_EQ(partial.receive(), "late " + kRequest);
  EXPECT_EQ(silent.receive(), "");
  serving.join();
  EXPECT_LT(Clock::now() - asked, milliseconds(3000));
}

// Requests that are incomplete may not take all memory together: the oldest makes room.
TEST(Connections, IncompleteRequestsAreBoundedTogether) {
  const Served served({.request = 1 << 20, .requests = 300000});
  const std::string half =
      "POST / HTTP/1.1\r\nContent-Length: 200000\r\n\r\n" + std::string(100000, 'x');
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<Client>(served.port()));
    clients.back()->send(half);
    std::this_thread::sleep_for(milliseconds(30));
  }
  EXPECT_EQ(clients[0]->receive(milliseconds(500)), "");
  clients[3]->send(std::string(100000, 'x'));
  EXPECT_EQ(clients[3]->receive().size(), half.size() + 100000 + 2);
}

TEST(Connections, SayWhyTheyCannotListen) {
  const Connections first("127.0.0.1", 0, Connections::Answer());
  const std::string port = std::to_string(first.port());
  expect_part(error_of([&] { Connections("127.0.0.1", first.port(), Connections::Answer()); }),
              "port " + port + ": Address already in use; another port: -port N");
  expect_part(
      error_of([] { Connections("203.0.113.1", 0, Connections::Answer()); }),
      "cannot serve pages at 203.0.113.1, port 0: Cannot assign requested address; -host is");
}

TEST(Loopback, IsJudgedByTheAddress) {
  for (const auto& [host, local] :
       std::vector<std::pair<std::string, bool>>{{"127.0.0.1", true},
                                                 {"127.0.0.2", true},
                                                 {"127.9.8.7", true},
                                                 {"localhost", true},
                                                 {"::1", true},
                                                 {"::ffff:127.0.0.3", true},
                                                 {"0.0.0.0", false},
                                                 {"::", false}}) {
    try {
      EXPECT_EQ(Connections(host, 0, Connections::Answer()).is_local(), local) << host;
    } catch (const Error& error) {  // a machine without IPv6
      EXPECT_NE(host.find(':'), std::string::npos) << error.what();
    }
  }
  for (const auto& [host, local] :
       std::vector<std::pair<std::string, bool>>{{"localhost", true},
                                                 {"LocalHost:80", true},
                                                 {"127.0.0.1", true},
                                                 {"127.0.0.1:8080", true},
                                                 {"127.255.0.9:1", true},
                                                 {"[::1]", true},
                                                 {"[::1]:8080", true},
                                                 {"[::ffff:127.0.0.1]:9", true},
                                                 {"", false},
                                                 {":80", false},
                                                 {"::1", false},
                                                 {"[::1", false},
                                                 {"[::1]x", false},
                                                 {"[::2]:80", false},
                                                 {"[::ffff:10.0.0.1]", false},
                                                 {"128.0.0.1", false},
                                                 {"10.0.0.1:80", false},
                                                 {"127.1", false},
                                                 {"127.0.0.1:80:80", false},
                                                 {"127.0.0.1.evil.example", false},
                                                 {"localhost.evil.example", false},
                                                 {"evil.example:80", false},
                                                 {"localhost:evil", false},
                                                 {"localhost ", false}})
    EXPECT_EQ(host_is_loopback(host), local) << host;
}

TEST(Connections, FindHeaders) {
  const std::string request =
      "GET /?a=Host: b HTTP/1.1\r\nhost: a \r\nX-Host: c\r\nHost: d\r\n\r\nLast: e\r\n";
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"Host", "a"}, {"HOST", "a"}, {"X-Host", "c"}, {"Last", ""}, {"Ho", ""}, {"None", ""}})
    EXPECT_EQ(header_in(request, name), value) << name;
  EXPECT_EQ(header_in("", "Host"), "");
  EXPECT_EQ(header_in("\r\n", "Host"), "");
}

}  // namespace connections_test
}  // namespace crema::tests
