// A headless Chromium that stays open, driven through its debugging pipe: pages may take their time and use workers.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace shardscape::test {

/// The first browser of the Chromium family on the path; nothing where there is none.
inline std::string browser_on_path() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    const std::string find = "command -v " + std::string(name) + " > /dev/null 2>&1";
    if (std::system(find.c_str()) == 0) return name;
  }
  return "";
}

/// Whether tests that need a browser or the engine for browsers fail without them (scripts/test --explorer).
inline bool explorer_due() { return std::getenv("SHARDSCAPE_EXPLORER_DUE") != nullptr; }

/// The rules of axe-core, which are npm's and not Debian's, as a script; fetched into `folder`. Nothing where npm does
/// not give them: `folder`/npm.log says why.
inline std::string accessibility_rules(const std::string& folder) {
  const std::string fetch =
      "cd '" + folder + "' && timeout 60 npm install --ignore-scripts axe-core@4.14.1 > npm.log 2>&1";
  if (std::system(fetch.c_str()) != 0) return "";
  std::ifstream file(folder + "/node_modules/axe-core/axe.min.js");
  return {std::istreambuf_iterator<char>(file), {}};
}

class LiveBrowser {
 public:
  using Json = nlohmann::json;

  /// A window of so many pixels; `folder` takes the browser's own files.
  LiveBrowser(const std::string& folder, int width, bool dark = false) {
    int requests[2], answers[2];
    if (pipe2(requests, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0)
      throw std::runtime_error("no pipe");
    const std::string program = browser_on_path(), profile = "--user-data-dir=" + folder;
    pid_ = fork();
    if (pid_ == 0) {
      setpgid(0, 0);
      const int in = fcntl(requests[0], F_DUPFD, 64), out = fcntl(answers[1], F_DUPFD, 64);
      const int log = open((folder + ".log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(in, 3);
      dup2(out, 4);
      dup2(log, 1);
      dup2(log, 2);
      execlp(program.c_str(), program.c_str(), "--headless", "--no-sandbox", "--disable-dev-shm-usage",
             "--disable-gpu", "--remote-debugging-pipe", profile.c_str(), nullptr);
      _exit(126);
    }
    close(requests[0]);
    close(answers[1]);
    to_ = requests[1];
    from_ = answers[0];
    const Json target = call("Target.createTarget", {{"url", "about:blank"}});
    session_ = call("Target.attachToTarget", {{"targetId", target.at("targetId")}, {"flatten", true}})
                   .at("sessionId");
    call("Page.enable");
    call("Runtime.enable");
    set_width(width);
    if (dark)
      call("Emulation.setEmulatedMedia",
           {{"features", {{{"name", "prefers-color-scheme"}, {"value", "dark"}}}}});
  }
  LiveBrowser(const LiveBrowser&) = delete;
  LiveBrowser& operator=(const LiveBrowser&) = delete;
  ~LiveBrowser() {
    close(to_);  // ends the browser
    close(from_);
    for (int tries = 0; tries < 50 && waitpid(pid_, nullptr, WNOHANG) == 0; ++tries) {
      if (tries == 40) kill(-pid_, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  void set_width(int width) {
    call("Emulation.setDeviceMetricsOverride",
         {{"width", width}, {"height", 1000}, {"deviceScaleFactor", 1}, {"mobile", false}});
  }
  void open_page(const std::string& url) { call("Page.navigate", {{"url", url}}); }
  /// What `script`, the body of an async function, returns inside of the page.
  Json in_page(const std::string& script) {
    const Json answer = call("Runtime.evaluate", {{"expression", "(async () => {" + script + "\n})()"},
                                                  {"awaitPromise", true},
                                                  {"returnByValue", true}});
    EXPECT_FALSE(answer.contains("exceptionDetails")) << answer.dump().substr(0, 3000) << "\nof " << script;
    return answer.value("result", Json::object()).value("value", Json());
  }
  /// What breaks one of accessibility_rules() in the page, by rule.
  Json violations(const std::string& rules) {
    return in_page(rules +
                   ";\nconst found = await axe.run(); return found.violations.map((one) => "
                   "`${one.id}: ${one.nodes.map(({target}) => target).slice(0, 3)}`);");
  }
  /// Waits until an expression of the page holds; false after a minute.
  bool holds(const std::string& expression) {
    for (int tries = 0; tries < 1200; ++tries) {
      if (in_page("return Boolean(" + expression + ")") == true) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  /// Errors and messages of the console so far.
  [[nodiscard]] const std::vector<std::string>& console() const { return console_; }

 private:
  Json call(const std::string& method, const Json& parameters = Json::object()) {
    Json request = {{"id", ++calls_}, {"method", method}, {"params", parameters}};
    if (!session_.empty()) request["sessionId"] = session_;
    const std::string text = request.dump() + '\0';
    for (std::size_t sent = 0; sent < text.size();) {
      const ssize_t count = ::write(to_, text.data() + sent, text.size() - sent);
      if (count <= 0) throw std::runtime_error("the browser has gone");
      sent += static_cast<std::size_t>(count);
    }
    while (true) {
      Json message = next_message();
      if (message.value("id", 0) == calls_) {
        EXPECT_FALSE(message.contains("error")) << method << ": " << message.dump();
        return message.value("result", Json::object());
      }
      const std::string event = message.value("method", "");
      if (event == "Runtime.exceptionThrown" || event == "Runtime.consoleAPICalled")
        console_.push_back(message.dump());
    }
  }
  Json next_message() {
    std::size_t end = 0;
    while ((end = read_.find('\0')) == std::string::npos) {
      pollfd ready{from_, POLLIN, 0};
      char part[1 << 16];
      if (poll(&ready, 1, 300'000) <= 0) throw std::runtime_error("the browser does not answer");
      const ssize_t count = ::read(from_, part, sizeof part);
      if (count <= 0) throw std::runtime_error("the browser has gone");
      read_.append(part, static_cast<std::size_t>(count));
    }
    Json message = Json::parse(read_.substr(0, end));
    read_.erase(0, end + 1);
    return message;
  }

  pid_t pid_ = -1;
  int to_ = -1, from_ = -1, calls_ = 0;
  std::string session_, read_;
  std::vector<std::string> console_;
};

}  // namespace shardscape::test
