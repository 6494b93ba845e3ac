// Do dimensions combine as in physics, and does nothing else compile?
#include "engine/base/quantity.h"

#include <gtest/gtest.h>

#include <concepts>
#include <type_traits>

namespace shardscape {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};

static_assert(std::same_as<decltype(Bytes(1) / BytesPerSecond(1)), Seconds>);
static_assert(std::same_as<decltype(Bytes(1) / Seconds(1)), BytesPerSecond>);
static_assert(std::same_as<decltype(BytesPerSecond(1) * Seconds(1)), Bytes>);
static_assert(std::same_as<decltype(Flops(1) / FlopsPerSecond(1)), Seconds>);
static_assert(std::same_as<decltype(1.0 / Hertz(1)), Seconds>);
static_assert(std::same_as<decltype(1.0 / Seconds(1)), Hertz>);
static_assert(std::same_as<decltype(Seconds(1) * Hertz(1)), double>);
static_assert(std::same_as<decltype(Bytes(1) / Bytes(1)), double>);
static_assert(std::same_as<decltype(Flops(1) / Bytes(1)), Quantity<0, -1, 1>>);
static_assert(Addable<Bytes, Bytes> && !Addable<Bytes, Seconds> && !Addable<Bytes, double>);
static_assert(Comparable<Flops, Flops> && !Comparable<Flops, Bytes> && !Comparable<Flops, double>);
static_assert(!std::convertible_to<double, Bytes> && !std::convertible_to<Bytes, double>);
static_assert(!std::convertible_to<BytesPerSecond, FlopsPerSecond>);
static_assert(sizeof(Seconds) == sizeof(double));

TEST(Quantity, ArithmeticActsOnTheValue) {
  // 80e9 B over 2e9 B/s is 40 s; half of it twice is 40 s again.
  constexpr Seconds kTime = Bytes(80e9) / BytesPerSecond(2e9);
  static_assert(kTime == Seconds(40));
  Seconds sum = kTime / 2;
  sum += 0.5 * kTime;
  EXPECT_EQ(sum, kTime);
  sum -= Seconds(15);
  sum *= 3;
  EXPECT_EQ(sum.value(), 75);
  sum /= 5;
  EXPECT_EQ((-sum).value(), -15);
  EXPECT_LT(-sum, Seconds());
}

}  // namespace
}  // namespace shardscape
