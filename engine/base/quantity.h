// Strong physical quantities in base SI units.
//
// A Quantity carries its dimension (time, data, arithmetic work) in its type, so that bytes divided by
// bytes-per-second is a time and nothing else compiles. Values are always in base units: seconds, bytes,
// floating-point operations. Decimal and binary multiples (GB = 1e9, GiB = 2^30) exist only at the YAML
// border.
#pragma once

#include <compare>

namespace shardscape {

/// A value whose dimension is seconds^T * bytes^B * flops^F.
template <int T, int B, int F>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}

  /// The number of base SI units.
  [[nodiscard]] constexpr double value() const { return value_; }

  constexpr Quantity& operator+=(Quantity o) { return value_ += o.value_, *this; }
  constexpr Quantity& operator-=(Quantity o) { return value_ -= o.value_, *this; }
  constexpr Quantity& operator*=(double s) { return value_ *= s, *this; }
  constexpr Quantity& operator/=(double s) { return value_ /= s, *this; }

  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator-(Quantity a) { return Quantity(-a.value_); }
  friend constexpr Quantity operator*(Quantity a, double s) { return Quantity(a.value_ * s); }
  friend constexpr Quantity operator*(double s, Quantity a) { return Quantity(s * a.value_); }
  friend constexpr Quantity operator/(Quantity a, double s) { return Quantity(a.value_ / s); }
  friend constexpr auto operator<=>(Quantity a, Quantity b) = default;

 private:
  double value_ = 0;
};

namespace detail {
template <int T, int B, int F>
constexpr auto make_quantity(double value) {
  if constexpr (T == 0 && B == 0 && F == 0) {
    return value;
  } else {
    return Quantity<T, B, F>(value);
  }
}
}  // namespace detail

template <int T1, int B1, int F1, int T2, int B2, int F2>
constexpr auto operator*(Quantity<T1, B1, F1> a, Quantity<T2, B2, F2> b) {
  return detail::make_quantity<T1 + T2, B1 + B2, F1 + F2>(a.value() * b.value());
}
template <int T1, int B1, int F1, int T2, int B2, int F2>
constexpr auto operator/(Quantity<T1, B1, F1> a, Quantity<T2, B2, F2> b) {
  return detail::make_quantity<T1 - T2, B1 - B2, F1 - F2>(a.value() / b.value());
}
template <int T, int B, int F>
constexpr auto operator/(double a, Quantity<T, B, F> b) {
  return Quantity<-T, -B, -F>(a / b.value());
}

using Seconds = Quantity<1, 0, 0>;
using Hertz = Quantity<-1, 0, 0>;
using Bytes = Quantity<0, 1, 0>;
using Flops = Quantity<0, 0, 1>;
using BytesPerSecond = Quantity<-1, 1, 0>;
using FlopsPerSecond = Quantity<-1, 0, 1>;

/// A physical quantity in base SI units, of a dimension that no formula combines with others.
template <class Tag>
class Amount {
 public:
  constexpr Amount() = default;
  constexpr explicit Amount(double value) : value_(value) {}
  [[nodiscard]] constexpr double value() const { return value_; }
  friend constexpr auto operator<=>(Amount a, Amount b) = default;

 private:
  double value_ = 0;
};
using Watts = Amount<struct PowerTag>;

}  // namespace shardscape
