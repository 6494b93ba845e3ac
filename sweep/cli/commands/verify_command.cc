// shardscape verify: checks whether a result file is whole and agrees with itself.
#include <iostream>

#include "engine/base/safe_text.h"
#include "results_schema/reading/isolated.h"
#include "results_schema/segments/segments.h"
#include "sweep/cli/command.h"
#include "sweep/cli/reports/selection_text.h"
#include "sweep/cli/terminal/format.h"

namespace shardscape::cli {

namespace {

constexpr const char* kVerifyFooter =
    R"(Examples:
  shardscape verify out.h5
  shardscape verify out.h5.parts          of a sweep that is running or was interrupted

Reads every value. Exit code 0: all is well; 1: something is damaged or does not fit, and stdout says what.)";

int run_verify(const std::filesystem::path& file, const CommonOptions& /*common*/) {
  prepare_results(file);
  const results::Verification verification = results::verify_isolated(file);
  // A damaged file is not opened here, as only the child process that verifies may hang on it.
  const std::string selection =
      verification.problems.empty() ? in_brackets(of_the_study(results::ResultReader(file))) : "";
  std::cout << file.string() << ": " << counted(verification.rows, "point") << selection << ", "
            << counted(verification.samples, "row") << " of fault samples: "
            << (verification.problems.empty() ? "all is well"
                                              : counted(verification.problems.size(), "problem"))
            << "\n";
  for (const std::string& problem : verification.problems) std::cout << "  " << message_line(problem) << "\n";
  return verification.problems.empty() ? kDone : kEnvironment;
}

}  // namespace

void add_verify_command(const Program& program) {
  const auto [command, file] = program.add(
      "verify", "Check that a result file is whole and agrees with itself", kVerifyFooter, run_verify);
  add_results(*command, *file);
}

}  // namespace shardscape::cli
