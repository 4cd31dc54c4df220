// How long a network takes to sum values over ranks: a model, in which each step of an algorithm
// costs a latency and each byte the time that the slowest link needs for it.
#pragma once

namespace crema {

struct Network {
  int per_host = 8;  // ranks on each host
  // Bytes per second in each direction: of a rank to another on its host, and of a host, all its
  // network cards together, to others.
  double inside = 0, between = 0;
  // Seconds for each step, and to start.
  double inside_latency = 0, between_latency = 0, start = 0;
  bool two_levels = false;  // whether sums may be made in two levels
};

// NCCL's values for NVLink, for InfiniBand and for a start, for its protocol of large messages
// (src/graph/tuning.cc).
constexpr double kInsideLatency = 4e-6, kBetweenLatency = 14e-6, kStart = 8.4e-6;

struct Transfer {
  double seconds = 0;
  const char* algorithm = "none";
};

// The sum of `bytes` on each rank, by the fastest way. With n ranks on H hosts of h ranks:
// - ring: each rank sends 2 (n - 1) / n of the bytes in 2 (n - 1) steps, the fewest bytes that are
//   possible (Patarasuk and Yuan 2009);
// - tree: two binary trees of the hosts, a chain in each host; twice all bytes in 2 (h - 1) steps
//   inside and 2 log2(H) between (Sanders, Speck and Traeff 2009);
// - two levels, if the network has them: a ring in each host, then each of its ranks sums a part
//   with those of the other hosts (Thakur, Rabenseifner and Gropp 2005 sum and gather like that).
// The steps of the first two are as NCCL counts them (ncclTopoTuneModel). `ranks` are at most
// network.per_host, or a multiple of it.
Transfer sum_over(const Network& network, int ranks, double bytes);
// Half of a ring: each rank gets its part of the sum, or gives its part to all.
Transfer part_over(const Network& network, int ranks, double bytes);

}  // namespace crema
