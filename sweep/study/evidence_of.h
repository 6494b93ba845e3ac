// What measurements say of the settings of a study.
#pragma once

#include <cstddef>

#include "sweep/evidence/assess.h"
#include "sweep/study/study.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/diagnostics.h"

namespace shardscape::sweep {

/// Reads the evidence of the preset folders and the presets that the settings go by, into study.measured,
/// device_presets and stack_presets. Problems of the evidence file go to `diagnostics`; without one there is none.
void attach_evidence(const yaml::Catalog& catalog, Study& study, yaml::Diagnostics& diagnostics);

/// Device and stack are named where they are as their presets have them, or where no preset has their name:
/// one that a what-if has changed is none that was measured.
evidence::Regime regime_of(const Study& study, std::size_t setting);

/// Whether regime_of() both is the same for sure, as for loads of one system: it does not ask how many requests or samples.
bool same_regime(const Study& study, std::size_t a, std::size_t b);

evidence::Finding assess_setting(const Study& study, std::size_t setting);

}  // namespace shardscape::sweep
