#include "gangway/net/grpc/parcel_frame.h"

#include <cstring>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::net {
namespace {

std::string Bytes(const ParcelFrame& frame, const std::string& data = "") {
  return std::string(reinterpret_cast<const char*>(&frame), sizeof frame) + data;
}

// The same bytes in slices of any sizes.
grpc::ByteBuffer Sliced(const std::string& bytes, std::mt19937& rng, size_t most) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size();) {
    const size_t some = std::min(bytes.size() - at, std::uniform_int_distribution<size_t>(1, most)(rng));
    slices.emplace_back(bytes.data() + at, some);
    at += some;
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

TEST(ParcelFrameTest, FramesComeBackWhereverTheyAreCut) {
  std::mt19937 rng(1);
  for (const size_t most : {1, 3, 57, 10000}) {
    const ParcelFrame parcel{.kind = FrameKind::kParcel, .label = {1, 2, 3, 4}, .size = 5};
    const ParcelFrame offer{.kind = FrameKind::kOffer, .label = {5, 6, 7, 8}, .number = 9, .size = 1 << 30};
    const ParcelFrame piece{.kind = FrameKind::kPiece, .number = 9, .size = 300};
    const std::string pattern(300, 'p');
    ParcelFrames frames(
        Sliced(Bytes(parcel, "hello") + Bytes(offer) + Bytes(piece, pattern) + Bytes(parcel, "again"), rng, most));
    std::string five(5, ' '), many(300, ' ');
    EXPECT_EQ(*frames.Next(), parcel);
    frames.CopyTo(five.data(), 5);
    EXPECT_EQ(five, "hello");
    EXPECT_EQ(*frames.Next(), offer);
    EXPECT_EQ(*frames.Next(), piece);
    frames.CopyTo(many.data(), 300);
    EXPECT_EQ(many, pattern);
    EXPECT_EQ(*frames.Next(), parcel);
    frames.Skip(5);
    EXPECT_TRUE(frames.AtEnd());
  }
}

TEST(ParcelFrameTest, WhatNoFabricWritesIsAnError) {
  std::mt19937 rng(2);
  const auto first = [&](const std::string& bytes) { return ParcelFrames(Sliced(bytes, rng, 20)).Next().status(); };
  const std::string good = Bytes({.kind = FrameKind::kParcel, .size = 5}, "hello");
  EXPECT_EQ(first(good), absl::OkStatus());
  for (size_t size = 1; size < good.size(); ++size) EXPECT_FALSE(first(good.substr(0, size)).ok()) << size;
  EXPECT_FALSE(first(Bytes({.kind = static_cast<FrameKind>(0)})).ok());
  EXPECT_FALSE(first(Bytes({.kind = static_cast<FrameKind>(6)})).ok());
  EXPECT_FALSE(
      first(Bytes({.kind = FrameKind::kParcel, .size = kMostEagerBytes + 1}, std::string(kMostEagerBytes + 1, 'x')))
          .ok());
  EXPECT_FALSE(first(Bytes({.kind = FrameKind::kPiece, .size = ~uint64_t{0}}, "x")).ok());
}

TEST(ParcelFrameTest, GarbageIsReadToItsEndOrRefused) {
  std::mt19937 rng(3);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(rng() % 400, '\0');
    for (char& byte : bytes) byte = static_cast<char>(rng() % 8 == 0 ? rng() : 0);
    for (size_t at = 0; at < bytes.size(); at += sizeof(ParcelFrame)) bytes[at] = static_cast<char>(rng() % 7);
    ParcelFrames frames(Sliced(bytes, rng, 100));
    while (!frames.AtEnd()) {
      const absl::StatusOr<ParcelFrame> frame = frames.Next();
      if (!frame.ok()) break;
      std::string data(frame->has_bytes() ? frame->size : 0, ' ');
      frames.CopyTo(data.data(), data.size());
    }
  }
}

}  // namespace
}  // namespace gangway::net
