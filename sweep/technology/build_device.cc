// Builds a GPU of another technology from a known one: scales the area of an SM, counts those that fit the area and
// power budgets, and solves for the clock.
#include "sweep/technology/build_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace shardscape::technology {

namespace {

constexpr double kBitsPerByte = 8;
constexpr double kDirections = 2;
constexpr double kMostSms = 1e6;  // a whole wafer holds some 10^4 SMs of today's size
/// Factor that keeps a quotient which is a whole number but for rounding from being cut to the next smaller one.
constexpr double kWhole = 1 + 1e-12;

std::int64_t whole(double quotient) { return static_cast<std::int64_t>(std::floor(quotient * kWhole)); }

class Builder {
 public:
  Builder(const DeviceSpec& base, const Floorplan& floorplan, const Choice& choice)
      : base_(base),
        plan_(floorplan),
        choice_(choice),
        logic_(choice.logic.value_or(floorplan.logic)),
        memory_(choice.memory.value_or(floorplan.memory)),
        area_(choice.area.value_or(floorplan.area).value()),
        edge_growth_(std::sqrt(area_ / floorplan.area.value())),
        scaling_(logic_.total() / floorplan.logic.total()),
        exponent_(logic_.power_exponent()) {}

  tl::expected<BuiltDevice, Problems> run() {
    check();
    if (problems_.empty()) place_memory();
    if (problems_.empty()) place_sms();
    if (problems_.empty()) set_clock();
    if (!problems_.empty()) return tl::unexpected(std::move(problems_));
    finish();
    return std::move(built_);
  }

 private:
  void check() {
    problems_.require(area_ > 0, "area", "must be greater than 0");
    if (choice_.power) problems_.require(choice_.power->value() > 0, "power", "must be greater than 0");
    problems_.require(logic_.root().name == plan_.logic.root().name, "logic",
                      fmt::format("node {} and {} of {} go back to different nodes, {} and {}", logic_.name,
                                  plan_.logic.name, base_.name, logic_.root().name, plan_.logic.root().name));
  }

  static double memory_power(const MemoryTechnology& memory, std::int64_t stacks) {
    return static_cast<double>(stacks) * memory.bandwidth_per_stack.value() * kBitsPerByte *
           memory.energy.value();
  }

  void place_memory() {
    stacks_ = whole(plan_.memory_edge.value() * edge_growth_ / memory_.edge.value());
    problems_.require(stacks_ >= 1, "area",
                      "is too small: its edge has no room for a stack of " + memory_.name);
    built_.memory_power = Watts(memory_power(memory_, stacks_));
    if (choice_.network) {
      built_.network_power = Watts(kDirections * choice_.network->bandwidth.value() * kBitsPerByte *
                                   choice_.network->energy.value());
    }
  }

  void place_sms() {
    const double sram = logic_.sram_cell.value() / plan_.logic.sram_cell.value();
    const auto shrunk = [&](double sram_share) {
      return (1 - sram_share) / scaling_.density + sram_share * sram;
    };
    const double shrinking =
        plan_.sm_share * shrunk(plan_.sm_sram_share) + plan_.l2_share * shrunk(plan_.l2_sram_share);
    interfaces_ = (1 - plan_.sm_share - plan_.l2_share) * plan_.area.value() * edge_growth_;
    built_.sm_area = SquareMetres(plan_.area.value() / sms(base_) * shrinking);
    const double room = (area_ - interfaces_) / built_.sm_area.value();
    problems_.require(room >= 1, "area", "is too small: its interfaces leave no room for an SM");
    problems_.require(room < kMostSms, "area",
                      "is too large: it holds more than a million SMs; the reticle of a scanner is 858 mm2");
    count_ = whole(std::clamp(room, 0.0, kMostSms));
  }

  static double sms(const DeviceSpec& device) { return static_cast<double>(device.sm.count); }

  /// Power in watts of one SM, with its L2 and its share of everything else on the die, at `clock` in hertz.
  [[nodiscard]] double sm_power(double clock) const {
    return base_die_power() / sms(base_) * scaling_.power_at_equal_clock *
           std::pow(clock / base_.sm.clock.value(), exponent_);
  }

  [[nodiscard]] double base_die_power() const {
    const std::int64_t stacks = whole(plan_.memory_edge.value() / plan_.memory.edge.value());
    return plan_.power.value() - memory_power(plan_.memory, stacks);
  }

  void set_clock() {
    const double die =
        choice_.power ? choice_.power->value() - built_.memory_power.value() - built_.network_power.value()
                      : base_die_power();
    const double least = plan_.least_clock.value() * scaling_.clock_at_equal_power;
    const double most = plan_.most_clock.value() * scaling_.clock_at_equal_power;
    const std::int64_t affordable = die > 0 ? whole(die / sm_power(least)) : 0;
    if (affordable < 1) {
      problems_.add(
          "power",
          fmt::format("is too small: {} W of memory and {} W of network leave too little for an SM",
                      std::lround(built_.memory_power.value()), std::lround(built_.network_power.value())));
      return;
    }
    built_.power_limited = affordable < count_;
    count_ = std::min(count_, affordable);
    const double share = die / (static_cast<double>(count_) * sm_power(base_.sm.clock.value()));
    clock_ = std::clamp(base_.sm.clock.value() * std::pow(share, 1 / exponent_), least, most);
    built_.die_power = Watts(static_cast<double>(count_) * sm_power(clock_));
  }

  void finish() {
    DeviceSpec& device = built_.device = base_;
    const double growth = static_cast<double>(count_) / sms(base_);
    device.sm.count = count_;
    device.sm.clock = Hertz(clock_);
    device.l2.capacity *= growth;
    device.l2.bytes_per_clock *= growth;
    device.hbm.stacks = stacks_;
    if (choice_.memory) {
      device.hbm.capacity_per_stack = memory_.capacity_per_stack;
      device.hbm.bandwidth_per_stack = memory_.bandwidth_per_stack;
    }
    built_.area = SquareMetres(interfaces_ + static_cast<double>(count_) * built_.sm_area.value());
    constexpr double kSquareMillimetres = 1e6;
    device.die.area_mm2 = area_ * kSquareMillimetres;
    if (choice_.logic) device.die.process_nm = 0;
    device.power = built_.power();
    scale_energy(device);
    if (choice_.logic) device.name += '+' + logic_.name;
    if (choice_.memory) device.name += '+' + memory_.name;
    if (choice_.network) device.name += '+' + choice_.network->name;
  }

  /// Scales energies: the energy of a FLOP with the power of the die, the card's own draw and its bursts with the total
  /// power.
  void scale_energy(DeviceSpec& device) const {
    if (!base_.knows_energy()) return;
    const auto per_clock = [](double power, const DeviceSpec& d) {
      return power / (sms(d) * d.sm.clock.value());
    };
    device.energy.flop_pj *= per_clock(built_.die_power.value(), device) / per_clock(base_die_power(), base_);
    const double whole = device.power.value() / base_.power.value();
    device.energy.idle_watts *= whole;
    device.energy.burst_watts = std::max(device.power.value(), device.energy.burst_watts * whole);
  }

  const DeviceSpec& base_;
  const Floorplan& plan_;
  const Choice& choice_;
  LogicNode logic_;
  MemoryTechnology memory_;
  double area_, edge_growth_;
  LogicScaling scaling_;  ///< the new node over the old one; all 1 where the node stays
  double exponent_;
  Problems problems_;
  std::int64_t stacks_ = 0, count_ = 0;
  double interfaces_ = 0, clock_ = 0;
  BuiltDevice built_;
};

}  // namespace

tl::expected<BuiltDevice, Problems> build_device(const DeviceSpec& base, const Floorplan& floorplan,
                                                 const Choice& choice) {
  return Builder(base, floorplan, choice).run();
}

}  // namespace shardscape::technology
