// What a page calls: one text in, one text out.
#include <emscripten.h>

#include <string>

#include "sweep/explorer/wasm/answers.h"

namespace {

shardscape::explorer::Answers& answers() {
  static shardscape::explorer::Answers answers;  // a worker has one study
  return answers;
}

}  // namespace

/// The answer to a request, as JSON; valid until the next call.
extern "C" EMSCRIPTEN_KEEPALIVE const char* shardscape_answer(const char* request) {
  static std::string answer;
  answer = answers().text(request);
  return answer.c_str();
}
