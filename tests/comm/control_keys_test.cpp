// Frames that somebody on the way to the other rank has made, changed, left out or sent again.
#include "comm/control_keys.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "comm/control_sockets.h"
#include "support.h"

namespace crema::tests {
namespace control_keys_test {

// Both ends after a handshake, with sockets between which the test passes bytes on.
class ControlKeys : public testing::Test {
 protected:
  ControlKeys() {
    ConnectionKeys pending_keys, listener_keys;
    const std::string nonce = random_nonce();
    shake_hands("token", "token", nonce, &pending_keys, &listener_keys);
    pending_peer_ = connection(&pending_wire_, pending_keys);
    listener_ = connection(&listener_wire_, listener_keys);
  }

  static Frame frame_of(const Bytes& bytes, const std::string& code) {
    return {static_cast<FrameType>(bytes->text[0]), bytes->text.substr(kFrameHeader), bytes->digest,
            code};
  }

  static Handshake shake_hands(const std::string& of_pending, const std::string& of_listener,
                               const std::string& nonce, ConnectionKeys* pending_peer,
                               ConnectionKeys* listener) {
    const Bytes handshake = answer_challenge(frame_of(challenge_of(nonce), ""), of_pending,
                                             {4, 3, "node", "a:1"}, pending_peer);
    return read_handshake(frame_of(handshake, pending_peer->send.code_of(handshake->digest)),
                          of_listener, nonce, listener);
  }

  static std::unique_ptr<Connection> connection(Socket* wire, const ConnectionKeys& keys) {
    int ends[2];
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0,
            "no sockets");
    *wire = Socket(ends[1]);
    auto made = std::make_unique<Connection>(Socket(ends[0]), kMaxFrame);
    made->set_keys(keys);
    return made;
  }

  // Returns what a connection receives when this frame is sent.
  static std::string sent(Connection& from, const Socket& wire, const Bytes& frame) {
    from.send(frame);
    from.flush();
    std::string bytes(1000, '\0');
    const ssize_t count = recv(wire.get(), bytes.data(), bytes.size(), 0);
    require(count > 0, "nothing was sent");
    bytes.resize(static_cast<size_t>(count));
    return bytes;
  }

  // The texts that a connection takes out of these bytes; "refused" at the end for an Error.
  static std::vector<std::string> taken(Connection& to, const Socket& wire,
                                        const std::string& bytes) {
    EXPECT_EQ(send(wire.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    std::vector<std::string> texts;
    try {
      to.receive([&](const Frame& frame) { texts.push_back(FrameFields(frame.payload).text()); });
    } catch (const Error& error) {
      expect_part(error.what(), "a frame that a stranger has made, changed or sent again");
      texts.emplace_back("refused");
    }
    return texts;
  }

  static Bytes text(const std::string& value) {
    return FrameWriter(FrameType::text).text(value).finish();
  }
  std::string from_pending(const std::string& value) {
    return sent(*pending_peer_, pending_wire_, text(value));
  }
  std::vector<std::string> at_listener(const std::string& bytes) {
    return taken(*listener_, listener_wire_, bytes);
  }

  using Texts = std::vector<std::string>;
  std::unique_ptr<Connection> pending_peer_, listener_;
  Socket pending_wire_, listener_wire_;
};

TEST_F(ControlKeys, PassWhatTheOtherEndHasSent) {
  const std::string a = from_pending("a"), b = from_pending("b"), c = from_pending("");
  EXPECT_EQ(at_listener(a + b + c), (Texts{"a", "b", ""}));
  const std::string back = sent(*listener_, listener_wire_, text("d"));
  EXPECT_EQ(taken(*pending_peer_, pending_wire_, back), Texts{"d"});
}

TEST_F(ControlKeys, RefuseAFrameThatCameBefore) {
  const std::string a = from_pending("a");
  EXPECT_EQ(at_listener(a + a), (Texts{"a", "refused"}));
}

TEST_F(ControlKeys, RefuseFramesInAnotherOrder) {
  const std::string a = from_pending("a"), b = from_pending("b");
  EXPECT_EQ(at_listener(b + a), Texts{"refused"});
}

TEST_F(ControlKeys, RefuseFramesOfTheOtherDirection) {
  EXPECT_EQ(taken(*pending_peer_, pending_wire_, from_pending("a")), Texts{"refused"});
}

TEST_F(ControlKeys, RefuseFramesOfAnotherConnection) {
  ConnectionKeys pending_peer, listener;
  shake_hands("token", "token", random_nonce(), &pending_peer, &listener);
  Socket wire;
  const auto other = connection(&wire, pending_peer);
  EXPECT_EQ(at_listener(sent(*other, wire, text("a"))), Texts{"refused"});
}

TEST_F(ControlKeys, RefuseFramesWithoutACode) {
  EXPECT_EQ(at_listener(text("a")->text + std::string(kFrameCode, '\0')), Texts{"refused"});
}

// The bytes after the length, which another test changes: with it the frame ends elsewhere.
TEST_F(ControlKeys, RefuseFramesWithAnyOtherBit) {
  const std::string right = text("ab")->text;
  for (size_t at = 0; at < right.size() + kFrameCode; ++at) {
    if (at >= 1 && at < kFrameHeader) continue;
    ConnectionKeys pending_peer, listener;
    shake_hands("token", "token", random_nonce(), &pending_peer, &listener);
    Socket from_wire, to_wire;
    const auto from = connection(&from_wire, pending_peer), to = connection(&to_wire, listener);
    std::string bytes = sent(*from, from_wire, text("ab"));
    ASSERT_EQ(bytes.size(), right.size() + kFrameCode);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    EXPECT_EQ(taken(*to, to_wire, bytes), Texts{"refused"}) << at;
  }
}

// Bytes move from the code into the text.
TEST_F(ControlKeys, RefuseAnotherLength) {
  std::string bytes = from_pending("ab");
  bytes[1] = static_cast<char>(bytes[1] + 1);
  EXPECT_EQ(at_listener(bytes + "x"), Texts{"refused"});
}

TEST_F(ControlKeys, NeedTheSameTokenAndChallenge) {
  ConnectionKeys pending_peer, listener;
  const Handshake handshake = shake_hands("t", "t", std::string(16, 'n'), &pending_peer, &listener);
  EXPECT_EQ(handshake.ranks, 4);
  EXPECT_EQ(handshake.rank, 3);
  EXPECT_EQ(handshake.host, "node");
  EXPECT_EQ(handshake.standby, "a:1");
  const char* const stranger = "a frame that a stranger has made";
  for (const char* token : {"", "u", "tt", "T"}) {
    expect_part(
        error_of([&] { shake_hands(token, "t", std::string(16, 'n'), &pending_peer, &listener); }),
        stranger);
  }
  // A handshake that answers another challenge.
  const Bytes answer =
      answer_challenge(frame_of(challenge_of(std::string(16, 'n')), ""), "t", {}, &pending_peer);
  const Frame frame = frame_of(answer, pending_peer.send.code_of(answer->digest));
  expect_part(error_of([&] { read_handshake(frame, "t", std::string(16, 'm'), &listener); }),
              stranger);
  read_handshake(frame, "t", std::string(16, 'n'), &listener);
  // Neither of the two.
  const Frame other = frame_of(FrameWriter(FrameType::beat).finish(), "");
  expect_part(error_of([&] { read_handshake(other, "t", "n", &listener); }), "no handshake");
  expect_part(error_of([&] { answer_challenge(other, "t", {}, &pending_peer); }), "no challenge");
  expect_part(error_of([&] {
                answer_challenge(frame_of(challenge_of("short"), ""), "t", {}, &pending_peer);
              }),
              "without its random number");
}

}  // namespace control_keys_test
}  // namespace crema::tests
