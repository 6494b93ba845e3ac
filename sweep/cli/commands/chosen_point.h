// The point of a study that --point names.
#pragma once

#include <string>

#include "sweep/study/choose_point.h"

namespace shardscape::cli {

/// The point that the text of an option names; BadInput with all that is wrong with it.
sweep::ChosenPoint choose_point(const sweep::Study& study, const std::string& text,
                                const char* option = "--point");

/// Says on stderr which of several settings was taken.
void note_other_settings(const sweep::Study& study, const sweep::ChosenPoint& point);

}  // namespace shardscape::cli
