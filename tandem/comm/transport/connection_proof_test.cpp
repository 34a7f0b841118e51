// tandem/comm/transport/connection_proof_test.cpp: both ends of a proof, without a network between them.
#include "tandem/comm/transport/connection_proof.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::comm::connection_proof_test {
namespace {

using State = ConnectionProof::State;

ProofParty party(unsigned rank) {
  ProofParty result{
      .rank = base::Rank(rank), .size = 8, .wire_version = 3, .version = "0.9", .job_id = "job", .secret = {}};
  result.secret.fill(std::byte{42});
  return result;
}

void move(ConnectionProof& from, ConnectionProof& to, std::size_t piece) {
  while (!from.output().empty() && !to.input().empty()) {
    const std::size_t size = std::min({piece, from.output().size(), to.input().size()});
    std::copy_n(from.output().begin(), size, to.input().begin());
    from.sent(size);
    to.received(size);
  }
}

/// Moves bytes both ways, in pieces, until neither end has more to send.
void run(ConnectionProof& opener, ConnectionProof& accepter, std::size_t piece = 1000) {
  for (int round = 0; round < 4; ++round) {
    move(opener, accepter, piece);
    move(accepter, opener, piece);
  }
}

TEST(Proof, HoldsBetweenRanksOfOneJobInPiecesOfAnySize) {
  const ProofParty two = party(2), five = party(5);
  for (const std::size_t piece : {1, 3, 88, 1000}) {
    auto opener = ConnectionProof::opener(two, five.rank, 7);
    auto accepter = ConnectionProof::accepter(five);
    run(opener, accepter, piece);
    EXPECT_EQ(opener.state(), State::proved) << opener.reason();
    EXPECT_EQ(accepter.state(), State::proved) << accepter.reason();
    EXPECT_EQ(accepter.peer(), two.rank);
    EXPECT_EQ(accepter.rail(), 7U);
    EXPECT_TRUE(opener.input().empty() && accepter.input().empty());
  }
}

TEST(Proof, FailsOnAnotherSecretOrJob) {
  const ProofParty two = party(2);
  ProofParty other_secret = party(5), other_job = party(5);
  other_secret.secret[31] ^= std::byte{1};
  other_job.job_id = "joc";
  for (const ProofParty& five : {other_secret, other_job}) {
    auto opener = ConnectionProof::opener(two, five.rank, 0);
    auto accepter = ConnectionProof::accepter(five);
    run(opener, accepter);
    EXPECT_EQ(opener.state(), State::refused);
    EXPECT_FALSE(opener.authentic());
    EXPECT_EQ(accepter.state(), State::working);  // the opener says nothing more to a stranger
    EXPECT_NE(opener.reason().find("secret"), std::string::npos);
  }
}

TEST(Proof, TheSecretAndItsProofsAreNeverTheSameBytesTwice) {
  const ProofParty two = party(2), five = party(5);
  const auto first = ConnectionProof::opener(two, five.rank, 0);
  const auto second = ConnectionProof::opener(two, five.rank, 0);
  EXPECT_FALSE(std::equal(first.output().begin(), first.output().end(), second.output().begin()));
  const auto found =
      std::search(first.output().begin(), first.output().end(), two.secret.begin(), two.secret.begin() + 8);
  EXPECT_EQ(found, first.output().end());
}

TEST(Proof, WhatWasRecordedCannotBeUsedAgain) {
  const ProofParty two = party(2), five = party(5);
  auto opener = ConnectionProof::opener(two, five.rank, 0);
  auto accepter = ConnectionProof::accepter(five);
  const std::vector<std::byte> hello(opener.output().begin(), opener.output().end());
  move(opener, accepter, 1000);
  move(accepter, opener, 1000);
  const std::vector<std::byte> proof(opener.output().begin(), opener.output().end());
  auto again = ConnectionProof::accepter(five);
  std::copy(hello.begin(), hello.end(), again.input().begin());
  again.received(hello.size());
  again.sent(again.output().size());
  std::copy(proof.begin(), proof.end(), again.input().begin());
  EXPECT_EQ(again.received(proof.size()), State::refused);
}

TEST(Proof, AnAnswerSentBackIsNoProof) {
  const ProofParty two = party(2), five = party(5);
  auto opener = ConnectionProof::opener(two, five.rank, 0);
  auto accepter = ConnectionProof::accepter(five);
  move(opener, accepter, 1000);
  const auto answer = accepter.output();
  std::copy(answer.end() - ConnectionProof::proof_bytes, answer.end(), accepter.input().begin());
  EXPECT_EQ(accepter.received(ConnectionProof::proof_bytes), State::refused);
  EXPECT_FALSE(accepter.authentic());
}

TEST(Proof, OfAnotherProtocolEndsAtItsFirstWrongByte) {
  const ProofParty five = party(5);
  auto accepter = ConnectionProof::accepter(five);
  accepter.input()[0] = static_cast<std::byte>('G');
  EXPECT_EQ(accepter.received(1), State::refused);
  EXPECT_TRUE(accepter.output().empty());
}

TEST(Proof, DifferentWireFormatsAreRefusedByBothAfterBothAreAuthentic) {
  const ProofParty two = party(2);
  ProofParty five = party(5);
  five.wire_version = 4;
  five.version = "0.10";
  auto opener = ConnectionProof::opener(two, five.rank, 0);
  auto accepter = ConnectionProof::accepter(five);
  run(opener, accepter);
  for (const ConnectionProof* proof : {&opener, &accepter}) {
    EXPECT_EQ(proof->state(), State::refused);
    EXPECT_TRUE(proof->authentic());
    for (const char* part : {"Tandem 0.9 with wire format 3", "Tandem 0.10 with wire format 4"}) {
      EXPECT_NE(proof->reason().find(part), std::string::npos) << proof->reason();
    }
  }
}

TEST(Proof, IsForOneRankOfTheJobAndFromAnotherOne) {
  const ProofParty two = party(2), five = party(5);
  const ProofParty beyond = party(8);
  auto astray = ConnectionProof::opener(two, base::Rank(6), 0);
  auto accepter = ConnectionProof::accepter(five);
  run(astray, accepter);
  EXPECT_NE(accepter.reason().find("was looking for rank 6"), std::string::npos) << accepter.reason();
  for (const ProofParty* from : {&beyond, &five}) {
    auto opener = ConnectionProof::opener(*from, five.rank, 0);
    auto other = ConnectionProof::accepter(five);
    run(opener, other);
    EXPECT_EQ(other.state(), State::refused);
    EXPECT_NE(opener.state(), State::proved);
  }
}

}  // namespace
}  // namespace tandem::comm::connection_proof_test
