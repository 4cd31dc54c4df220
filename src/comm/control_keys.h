// How the two ends of a control connection prove that they have the token of the run, and that each
// frame comes from the other end, once and in order. The token itself is never sent.
//
// The listener sends a challenge with a random number; the rank that has connected answers with a
// handshake that has another one. Both derive two keys from the token and the two numbers, one for each
// direction. The code of a frame is an HMAC of its number in its direction and its digest.
#pragma once

#include <cstdint>
#include <string>

#include "comm/control_frames.h"

namespace crema {

// A rank's first words, to rank 0 and to its standby.
struct Handshake {
  int64_t ranks = 1, rank = 0;
  std::string host;
  std::string standby;  // for rank 1: where it listens
};

// State for the codes of one direction. Without a key they are zeros.
struct CodeKey {
  std::string key;
  uint64_t next = 0;  // the number of the next frame

  // Number of the next frame.
  std::string code_of(const Sha256::Digest& digest);
  // Error if the frame is not the next one from who has the key.
  void check(const Frame& frame);
};
struct ConnectionKeys {
  CodeKey send, receive;
};

// The side that listens: a challenge with this number, and its keys if the first frame is a handshake
// by a rank that has the token; otherwise an Error.
std::string random_nonce();
Bytes challenge_of(const std::string& nonce);
Handshake read_handshake(const Frame& frame, const std::string& token, const std::string& nonce,
                         ConnectionKeys* keys);

// The other side: its handshake, which is the first frame that its keys are for. Error if the frame is
// no challenge.
Bytes answer_challenge(const Frame& frame, const std::string& token, const Handshake& handshake,
                       ConnectionKeys* keys);

}  // namespace crema
