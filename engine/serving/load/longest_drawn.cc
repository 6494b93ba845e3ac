#include "engine/serving/load/longest_drawn.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/serving/load/drawn_requests.h"
#include "engine/spec/ranges.h"

namespace shardscape::serving {

LengthLaws::LengthLaws(const LoadSpec& load)
    : prompt(load.prompt), output(load.output), context(load.sessions ? load.sessions->context : 0) {}

void LengthLaws::give_to(LoadSpec& load) const {
  load.prompt = prompt;
  load.output = output;
  if (load.sessions) load.sessions->context = context;
}

void keep_to_drawn(LoadSpec& load, std::int64_t clients) {
  constexpr std::int64_t kMostLooked = 1 << 18;
  std::optional<Sessions>& sessions = load.sessions;
  const auto spread = [](const Lengths& lengths) { return lengths.law == LengthLaw::lognormal; };
  const bool grow = sessions && (spread(load.output) || spread(sessions->first_prompt) ||
                                 spread(sessions->new_tokens) || spread(sessions->turns));
  const std::int64_t most = load.prompt.longest + load.output.longest;
  // What may grow beyond all bounds is refused (LoadSpec::check()).
  const bool ended =
      sessions && (most >= sessions->context || static_cast<double>(most) > ranges::kTokens.high);
  if (sessions ? !grow || ended : !spread(load.prompt) && !spread(load.output)) return;
  std::int64_t sent = load.requests.of(clients);
  if (load.statistic == ClientStatistic::steady) sent += load.warm_up.of(clients) + clients;
  const DrawnRequests draws(load, 1);
  auto prompt = static_cast<std::int64_t>(std::ceil(load.prompt.mean)),
       output = static_cast<std::int64_t>(std::ceil(load.output.mean));
  std::int64_t looked = 0;
  for (std::int64_t i = 0; i < sent && looked < kMostLooked; ++i) {
    for (std::optional<DrawnRequest> one = draws.request(i); one;
         one = sessions ? draws.turn_after(*one) : std::nullopt) {
      ++looked;
      prompt = std::max<std::int64_t>(prompt, one->prompt);
      output = std::max<std::int64_t>(output, one->output);
    }
  }
  if (grow || spread(load.prompt)) load.prompt.longest = prompt;
  if (spread(load.output)) load.output.longest = output;
  if (sessions) sessions->context = load.prompt.longest + load.output.longest;
}

}  // namespace shardscape::serving
