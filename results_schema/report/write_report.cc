#include "results_schema/report/write_report.h"

#include "results_schema/report/page.h"

namespace shardscape::report {

std::uint64_t write_report(const results::ResultReader& reader, const ReportInput& input,
                           const results::OutputPath& output) {
  const std::string title = reader.attribute("title");
  const std::string page = html_page(title.empty() ? "Shardscape" : title, report_json(reader, input));
  results::write_output(output, page);
  return page.size();
}

}  // namespace shardscape::report
