// Reads a study with its presets and predicts one plan of it: read_study STUDY.yaml [POINT]
#include <cstdio>
#include <filesystem>

#include "engine/simulate.h"
#include "sweep/space/point_text.h"
#include "sweep/study/load_study.h"

int main(int count, char** arguments) {
  using namespace shardscape;
  if (count < 2) {
    std::fprintf(stderr, "read_study STUDY.yaml [tp=4,pp=4,...]\n");
    return 2;
  }
  const yaml::Catalog presets({std::filesystem::path(SHARDSCAPE_DATA)});
  const auto study = sweep::load_study(arguments[1], presets);
  if (!study) {
    std::fprintf(stderr, "%s", study.error().to_string().c_str());
    return 2;
  }
  const auto point = sweep::parse_point(count > 2 ? arguments[2] : "", study->space,
                                        study->gpu_counts.front(), study->phase());
  if (!point) {
    for (const Problem& problem : point.error().list())
      std::fprintf(stderr, "%s: %s\n", problem.field.c_str(), problem.message.c_str());
    return 2;
  }
  const Setting setting = study->setting(0);
  Simulator simulator(setting);
  const Prediction prediction = simulator.run(point->plan);
  const Seconds whole = prediction.whole(study->phase());
  std::printf("%s: %.17g s\n", sweep::to_point_text(point->plan, study->phase()).c_str(), whole.value());
}
