// The point of a study that --point names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "results_schema/reading/reader.h"
#include "sweep/cli/command.h"
#include "sweep/study/choose_point.h"

namespace shardscape::cli {

/// The plan that the text of an option names, by its axes or by the id of a point of the study, as `top` prints it.
/// BadInput with all that is wrong with it.
sweep::ChosenPlan choose_plan(const sweep::Study& study, const std::string& text,
                              const char* option = "--point");
/// The same with its setting.
sweep::ChosenPoint choose_point(const sweep::Study& study, const std::string& text,
                                const char* option = "--point");

/// A point of a study by its id.
sweep::ChosenPoint point_of_id(const sweep::Study& study, const sweep::DesignSpace& space, std::uint64_t id);
/// The id that a text is; nothing for other texts.
std::optional<std::uint64_t> point_id_of(const std::string& text);

/// The id of the best row of a file of results, by its first objective, that `where` leaves. BadInput where there is
/// none; `name` stands for the file there.
std::uint64_t best_row(const results::ResultReader& reader, const std::string& name,
                       const std::string& where = {});
/// The text that names the point of a command: as it is given, else that of the best row where the study is that of
/// results (with changes, whose ids they move, nothing: the study's first point). BadInput where it is an id of results
/// whose points this program lists differently.
std::string point_or_best(const StudyArguments& study, const std::string& point);

/// The study as it is to be loaded for a point that --point has.
StudyArguments for_point(StudyArguments study, const std::string& point);

/// The point of a command that shows one: the one that its options name, as point_or_best() says; else the study's
/// first, or, where that is not feasible, the first feasible one by its id, in the first setting on each number of GPUs,
/// which is said on stderr. Where none of the first few thousand is, it is the first all the same.
sweep::ChosenPoint opening_point(const StudyArguments& arguments, const sweep::Study& study,
                                 const std::string& point);

/// Says on stderr which of several settings was taken.
void note_other_settings(const sweep::Study& study, const sweep::ChosenPoint& point);

}  // namespace shardscape::cli
