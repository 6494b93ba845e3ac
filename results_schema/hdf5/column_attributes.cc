#include "results_schema/hdf5/column_attributes.h"

#include <algorithm>

#include "engine/base/words.h"
#include "results_schema/hdf5/hdf5_io.h"

namespace shardscape::results {

void set_codes(const Dataset& dataset, ColumnType type, std::span<const std::string> meanings) {
  std::vector<std::int32_t> values(meanings.size());
  std::string text;
  for (std::size_t i = 0; i < meanings.size(); ++i) {
    values[i] = static_cast<std::int32_t>(i);
    std::string word = meanings[i];
    std::ranges::replace(word, ' ', '_');
    text += (i == 0 ? "" : " ") + word;
  }
  const hsize_t count = values.size();
  const Hid space(H5Screate_simple(1, &count, nullptr));
  const Hid attribute(H5Acreate2(dataset.id(), "flag_values", memory_type(type).get(), space.get(),
                                 H5P_DEFAULT, H5P_DEFAULT));
  if (attribute.get() < 0 || H5Awrite(attribute.get(), H5T_NATIVE_INT32, values.data()) < 0) {
    dataset.fail("can't write attribute flag_values");
  }
  dataset.set_attribute("flag_meanings", text);
}

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> list;
  for (const std::string_view word : split(text, ' ')) {
    if (!word.empty()) list.emplace_back(word);
  }
  return list;
}

ColumnInfo column_info(const Dataset& dataset, const std::string& name) {
  ColumnInfo info;
  info.name = name;
  info.unit = dataset.text_attribute("units", "1");
  info.long_name = dataset.text_attribute("long_name");
  info.type = dataset.column_type();
  info.group = parse_enum<ColumnGroup>(dataset.text_attribute("group")).value_or(ColumnGroup::output);
  info.better = parse_enum<Better>(dataset.text_attribute("better")).value_or(Better::neither);
  info.meanings = words(dataset.text_attribute("flag_meanings"));
  info.fill = dataset.number_attribute("_FillValue");
  info.ordered = dataset.number_attribute("ordered").value_or(0) != 0;
  info.levels =
      static_cast<int>(std::clamp(dataset.number_attribute("valid_max").value_or(-1), -1.0, 255.0)) + 1;
  return info;
}

}  // namespace shardscape::results
