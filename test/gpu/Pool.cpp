#include "Pool.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;

namespace gemmc::microtests {
namespace {
double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Child {
  pid_t pid = 0;
  int toChild = -1, fromChild = -1;
  std::string buffer;         ///< An incomplete answer.
  std::optional<size_t> task; ///< In work.
  double deadline = 0;
};

bool readNumber(int fd, size_t &number) { return ::read(fd, &number, sizeof number) == sizeof number; }

[[noreturn]] void serve(int in, int out, const std::function<int()> &start,
                        const std::function<json::Object(size_t)> &work, const std::function<bool()> &stale) {
  if (int code = start())
    _exit(code);
  size_t task;
  while (!stale() && readNumber(in, task)) {
    std::string line;
    raw_string_ostream(line) << json::Value(work(task)) << "\n";
    for (size_t at = 0; at < line.size();) {
      ssize_t written = ::write(out, line.data() + at, line.size() - at);
      if (written <= 0)
        _exit(70);
      at += written;
    }
  }
  _exit(0); // without the CUDA library's clean-up, which may wait for a dead context
}

class Pool {
public:
  Pool(const std::vector<Task> &tasks, const std::function<int()> &start,
       const std::function<json::Object(size_t)> &work, const std::function<bool()> &stale,
       const std::function<void(size_t, json::Object)> &done)
      : tasks(tasks), start(start), work(work), stale(stale), done(done) {}

  PoolEnd run(unsigned jobs) {
    children.resize(jobs);
    while (finished < tasks.size() && !end.noDevice) {
      for (Child &child : children)
        feed(child);
      wait();
    }
    for (Child &child : children)
      retire(child, 0);
    return end;
  }

private:
  void spawn(Child &child) {
    int down[2], up[2];
    if (pipe(down) || pipe(up))
      return;
    std::fflush(nullptr);
    outs().flush();
    child.pid = fork();
    if (child.pid == 0) {
      ::close(down[1]), ::close(up[0]);
      for (Child &other : children)
        if (other.toChild >= 0)
          ::close(other.toChild), ::close(other.fromChild);
      serve(down[0], up[1], start, work, stale);
    }
    ::close(down[0]), ::close(up[1]);
    child.toChild = down[1], child.fromChild = up[0];
    child.buffer.clear();
  }
  /// Ends it, with `signal` if there is one; its exit code, or -signal.
  int retire(Child &child, int signal) {
    if (!child.pid)
      return 0;
    if (signal)
      kill(child.pid, signal);
    ::close(child.toChild), ::close(child.fromChild);
    int status = 0;
    waitpid(child.pid, &status, 0);
    child = Child();
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }
  void feed(Child &child) {
    if (child.task || next == tasks.size())
      return;
    if (!child.pid)
      spawn(child);
    child.task = next++;
    child.deadline = now() + tasks[*child.task].seconds;
    size_t number = *child.task;
    (void)!::write(child.toChild, &number, sizeof number); // a dead child shows when its answer is read
  }
  void finish(size_t task, json::Object result) {
    ++finished;
    done(task, std::move(result));
  }
  void lose(Child &child, int signal, const std::string &why) {
    size_t task = *child.task;
    int code = retire(child, signal);
    if (code == noDeviceExit) {
      end.noDevice = true;
      return;
    }
    finish(task, json::Object{{"name", tasks[task].name},
                              {"error", why.empty() ? formatv("the process ended with {0}", code).str() : why}});
  }
  void take(Child &child) {
    char bytes[65536];
    ssize_t count = ::read(child.fromChild, bytes, sizeof bytes);
    if (count <= 0)
      return lose(child, 0, "");
    child.buffer.append(bytes, count);
    if (child.buffer.back() != '\n')
      return;
    size_t task = *child.task;
    auto value = json::parse(child.buffer);
    json::Object result{{"name", tasks[task].name}, {"error", "an answer that is no JSON"}};
    if (value && value->getAsObject())
      result = std::move(*value->getAsObject());
    else if (!value)
      consumeError(value.takeError());
    child.buffer.clear();
    child.task.reset();
    if (tasks[task].ownProcess || result.getBoolean("stale").value_or(false))
      retire(child, 0);
    finish(task, std::move(result));
  }
  void wait() {
    std::vector<pollfd> fds;
    std::vector<Child *> owners;
    for (Child &child : children)
      if (child.task)
        fds.push_back({child.fromChild, POLLIN, 0}), owners.push_back(&child);
    if (fds.empty())
      return;
    poll(fds.data(), fds.size(), 500);
    for (size_t i = 0; i < fds.size(); ++i)
      if (fds[i].revents)
        take(*owners[i]);
      else if (now() > owners[i]->deadline)
        lose(*owners[i], SIGKILL, "killed: it took too long");
  }

  const std::vector<Task> &tasks;
  const std::function<int()> &start;
  const std::function<json::Object(size_t)> &work;
  const std::function<bool()> &stale;
  const std::function<void(size_t, json::Object)> &done;
  std::vector<Child> children;
  size_t next = 0, finished = 0;
  PoolEnd end;
};
} // namespace

PoolEnd runPool(const std::vector<Task> &tasks, unsigned jobs, const std::function<int()> &start,
                const std::function<json::Object(size_t)> &work, const std::function<bool()> &stale,
                const std::function<void(size_t, json::Object)> &done) {
  std::signal(SIGPIPE, SIG_IGN);
  return Pool(tasks, start, work, stale, done).run(std::max<unsigned>(1, std::min<size_t>(jobs, tasks.size())));
}

} // namespace gemmc::microtests
