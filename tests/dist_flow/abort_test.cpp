// tests/dist_flow/abort_test.cpp: how the reason for which a job ends reaches all ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ranks.hpp"
#include "tandem/dist/agreement.hpp"
#include "tandem/dist/flow.hpp"

namespace tandem::dist_test::abort_test {
namespace {

/// A rank that ends the job makes no connection to each other rank.
TEST(JobAbort, GoesAlongATree) {
  constexpr std::uint32_t kRanks = 16;
  std::vector<std::uint64_t> peers(kRanks), most(kRanks);
  std::vector<std::string> reasons(kRanks);
  run_job({.ranks = kRanks}, [&](Runtime& rt) {
    const std::uint32_t rank = rt.rank();
    // The neighbours, and those of a neighbour that has closed its links already.
    most[rank] = 1;
    for (const std::uint32_t next : dist::Agreement::neighbours_of(rank, kRanks))
      most[rank] += 1 + dist::Agreement::neighbours_of(next, kRanks).size();
    if (rank == 5) rt.flow()->abort("rank 5 has had enough");
    try {
      rt.wait();
    } catch (const JobError& error) {
      reasons[rank] = error.what();
    }
    peers[rank] = rt.flow()->endpoint().statistics().peers;
  });
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_THAT(reasons[rank], testing::HasSubstr("has had enough")) << rank;
    EXPECT_LE(peers[rank], std::min<std::uint64_t>(most[rank], kRanks)) << rank;
  }
  EXPECT_LE(peers[5], dist::Agreement::neighbours_of(5, kRanks).size() + 2) << "it has told its neighbours, no others";
}

/// Every rank's neighbours of neighbours are connected without it, so that a dead one cuts nobody off.
TEST(JobAbort, TheTreeConnectsAllRanksWithoutAnyOneOfThem) {
  for (std::uint32_t size = 2; size < 40; ++size) {
    for (std::uint32_t dead = 0; dead < size; ++dead) {
      std::vector<bool> told(size);
      std::vector<std::uint32_t> to_tell{dead == 0 ? 1u : 0u};
      while (!to_tell.empty()) {
        const std::uint32_t rank = to_tell.back();
        to_tell.pop_back();
        if (told[rank]) continue;
        told[rank] = true;
        for (const std::uint32_t next : dist::Agreement::neighbours_of(rank, size)) {
          to_tell.push_back(next);
          if (next != dead) continue;
          to_tell.pop_back();
          for (const std::uint32_t beyond : dist::Agreement::neighbours_of(dead, size)) to_tell.push_back(beyond);
        }
      }
      told[dead] = true;
      EXPECT_EQ(std::count(told.begin(), told.end(), false), 0) << size << " ranks, without " << dead;
    }
  }
}

}  // namespace
}  // namespace tandem::dist_test::abort_test
