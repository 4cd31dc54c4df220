#include "net/plan/arena.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace crema {
namespace arena_test {

std::vector<Lifetime> random_pieces(uint64_t seed, int count) {
  const Random random{seed, 0};
  std::vector<Lifetime> pieces;
  for (int i = 0; i < count; ++i) {
    const int first = static_cast<int>(random.word(3 * i) % 50);
    pieces.push_back({random.word(3 * i + 1) % 5000, first,
                      first + static_cast<int>(random.word(3 * i + 2) % 10), 0});
  }
  return pieces;
}

TEST(Arena, PiecesAliveTogetherDoNotOverlap) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<Lifetime> pieces = random_pieces(seed, 100);
    const size_t total = assign_offsets(pieces);
    for (size_t a = 0; a < pieces.size(); ++a) {
      EXPECT_EQ(pieces[a].offset % 256, 0u);
      EXPECT_LE(pieces[a].offset + pieces[a].bytes, total);
      for (size_t b = 0; b < a; ++b) {
        const bool together =
            pieces[a].first <= pieces[b].last && pieces[b].first <= pieces[a].last;
        const bool overlap = pieces[a].offset < pieces[b].offset + pieces[b].bytes &&
                             pieces[b].offset < pieces[a].offset + pieces[a].bytes;
        EXPECT_FALSE(together && overlap && pieces[a].bytes > 0 && pieces[b].bytes > 0)
            << a << " and " << b;
      }
    }
  }
}

TEST(Arena, ReusesMemoryOfThePast) {
  std::vector<Lifetime> pieces = {{1024, 0, 1, 0}, {1024, 2, 3, 0}, {512, 4, 5, 0}};
  EXPECT_EQ(assign_offsets(pieces), 1024u);
}

TEST(Arena, GrowsForTheLargestPlan) {
  Context context(Device::cpu);
  ArenaPool pool;
  pool.reserve(100);
  const Buffer* first = pool.buffer(context).get();
  pool.reserve(50);
  EXPECT_EQ(pool.buffer(context).get(), first);
  pool.reserve(1000);
  EXPECT_EQ(pool.buffer(context)->bytes(), 1000u);
}

}  // namespace arena_test
}  // namespace crema
