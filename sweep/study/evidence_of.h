// The measurements that are evidence for the settings of a study.
#pragma once

#include <cstddef>

#include "sweep/evidence/assess.h"
#include "sweep/study/study.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/diagnostics.h"

namespace shardscape::sweep {

/// Reads the evidence and the relevant presets of the preset folders into study.measured, device_presets and
/// stack_presets. Problems of the evidence file go to `diagnostics`; without such a file there is no evidence.
void attach_evidence(const yaml::Catalog& catalog, Study& study, yaml::Diagnostics& diagnostics);

/// The regime of a setting. Device and stack have their names only if they equal the presets of these names, or if no
/// preset has the name: what a what-if has changed was not measured.
evidence::Regime regime_of(const Study& study, std::size_t setting);

/// True only where regime_of() is certain to be the same for both, as for loads of one system, whose numbers of
/// requests or samples do not matter to it.
bool same_regime(const Study& study, std::size_t a, std::size_t b);

evidence::Finding assess_setting(const Study& study, std::size_t setting);

}  // namespace shardscape::sweep
