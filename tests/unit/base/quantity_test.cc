#include "engine/base/quantity.h"

#include <gtest/gtest.h>

#include <concepts>
#include <type_traits>

namespace shardscape {
namespace {

// Dimensions are types: every product and quotient below is the only one that compiles.
static_assert(std::is_same_v<decltype(Bytes(1) / BytesPerSecond(1)), Seconds>);
static_assert(std::is_same_v<decltype(Bytes(1) / Seconds(1)), BytesPerSecond>);
static_assert(std::is_same_v<decltype(BytesPerSecond(1) * Seconds(1)), Bytes>);
static_assert(std::is_same_v<decltype(Flops(1) / FlopsPerSecond(1)), Seconds>);
static_assert(std::is_same_v<decltype(Flops(1) / Seconds(1)), FlopsPerSecond>);
static_assert(std::is_same_v<decltype(1.0 / Seconds(1)), Hertz>);
static_assert(std::is_same_v<decltype(Seconds(1) * Hertz(1)), double>);
static_assert(std::is_same_v<decltype(Bytes(1) / Bytes(1)), double>);
static_assert(std::is_same_v<decltype(2.0 * Bytes(1)), Bytes>);

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
static_assert(Addable<Seconds, Seconds>);
static_assert(!Addable<Seconds, Bytes>);
static_assert(!Addable<Seconds, double>);
static_assert(!std::convertible_to<double, Seconds>);
static_assert(!std::convertible_to<Seconds, double>);

TEST(Quantity, ArithmeticIsThatOfTheValues) {
  // 80 GB over 2 TB/s take 40 ms.
  EXPECT_DOUBLE_EQ((Bytes(80e9) / BytesPerSecond(2e12)).value(), 0.04);
  Seconds t(3);
  t += Seconds(1);
  t -= Seconds(0.5);
  t *= 4;
  t /= 7;
  EXPECT_DOUBLE_EQ(t.value(), 2);
  EXPECT_DOUBLE_EQ((-t).value(), -2);
  EXPECT_LT(Seconds(1), Seconds(2));
  EXPECT_EQ(Seconds(1) + Seconds(1), Seconds(2));
  EXPECT_EQ(Seconds(), Seconds(0));
}

}  // namespace
}  // namespace shardscape
