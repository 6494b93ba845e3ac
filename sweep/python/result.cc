// The result of one simulated point, as a row of the result table.

#include "results_schema/rows/records.h"
#include "sweep/python/native.h"
#include "sweep/study/evidence_of.h"

namespace shardscape::python {

Result::Result(std::shared_ptr<const Inputs> inputs, std::string text, sweep::ChosenPlan point,
               Prediction prediction)
    : inputs_(std::move(inputs)),
      text_(std::move(text)),
      point_(std::move(point)),
      prediction_(std::move(prediction)) {}

/// Makes the row that a sweep would store of the point, and reads its columns.
const std::vector<double>& Result::values() const {
  if (!values_.empty()) return values_;
  const sweep::SweepJob& job = inputs_->job();
  const sweep::Study& study = inputs_->study();
  Prediction judged = prediction_;
  results::PointRecord record(0, point_.plan, point_.workload, job.hardware(point_.at), judged);
  if (judged.status == Status::ok) {
    if (study.reliability && !study.faults)
      record.goodput = sweep::goodput_share(*study.reliability, point_.plan.gpus(), 0);
    record.assessment = evidence::assess_plan(sweep::assess_setting(study, point_.at), point_.plan);
    job.limits().judge(record, judged);
  }
  std::vector<double> values;
  for (std::size_t column = 0; column < job.columns().columns().size(); ++column)
    values.push_back(job.columns().number(column, record));
  values_ = std::move(values);
  return values_;
}

py::object Result::value(std::size_t column) const {
  const results::ColumnInfo& info = inputs_->job().columns().columns()[column];
  const double number = values()[column];
  if (!info.meanings.empty()) {
    const auto code = static_cast<std::size_t>(number);
    return code < info.meanings.size() ? py::object(py::str(info.meanings[code])) : py::none();
  }
  if (info.fill == number) return py::none();
  if (info.type == results::ColumnType::boolean) return py::bool_(number != 0);
  if (info.type == results::ColumnType::f4 || info.type == results::ColumnType::f8) return py::float_(number);
  return py::int_(static_cast<std::int64_t>(number));
}

py::object Result::get(const std::string& name) const {
  const results::ColumnTable& table = inputs_->job().columns();
  const results::ColumnInfo* const info = table.find(name);
  if (info == nullptr || name == "point_id") {
    const std::vector<std::string> known = names();
    throw py::attribute_error("a result has no '" + name + "'" + did_you_mean(name, known) +
                              "; columns: " + join_names(known));
  }
  return value(static_cast<std::size_t>(info - table.columns().data()));
}

std::vector<std::string> Result::names() const {
  std::vector<std::string> names;
  for (const results::ColumnInfo& column : inputs_->job().columns().columns())
    if (column.name != "point_id") names.push_back(column.name);
  return names;
}

py::dict Result::units() const {
  py::dict units;
  for (const results::ColumnInfo& column : inputs_->job().columns().columns())
    if (column.name != "point_id") units[py::str(column.name)] = column.unit;
  return units;
}

py::dict Result::row() const {
  py::dict row;
  for (const std::string& name : names()) row[py::str(name)] = get(name);
  return row;
}

std::string Result::plan() const { return sweep::to_point_text(point_.plan, inputs_->study().phase()); }

void add_result(py::module_& module) {
  py::class_<Result> result_class(module, "Result", "One simulated point.");
  never_empty(result_class);
  result_class.def("get", &Result::get, py::arg("name"), "The value of a column.")
      .def("names", &Result::names, "The names of the columns.")
      .def("units", &Result::units, "The unit of each column.")
      .def("row", &Result::row, "All columns.")
      .def_property_readonly("plan", &Result::plan, "The plan, as text.")
      .def_property_readonly("text", &Result::text, "The plan as it was asked for.")
      .def_property_readonly(
          "study", [](const Result& result) { return std::const_pointer_cast<Inputs>(result.inputs()); });
}

}  // namespace shardscape::python
