// Program that prints SCHEMA.md, the documentation of the result file.
#include <cstdio>

#include "results_schema/schema_doc.h"

int main() {
  const std::string text = shardscape::results::schema_markdown();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
