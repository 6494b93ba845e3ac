// Program that writes the tables of SCHEMA.md, the documentation of the result file, anew: print_schema SCHEMA.md
#include <fstream>
#include <iterator>
#include <string>

#include "results_schema/schema_doc.h"

int main(int count, char** words) {
  if (count != 2) return 2;
  std::ifstream in(words[1]);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  in.close();
  const std::string made = shardscape::results::with_tables(text);  // before the file is emptied
  return std::ofstream(words[1]) << made ? 0 : 1;
}
