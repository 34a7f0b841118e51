// tools/launcher/signals.cpp: signalfd.
#include "tools/launcher/signals.hpp"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace tandem::tools {

namespace {

bool is_ignored(int number) {
  struct sigaction action{};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

SignalQueue::SignalQueue() {
  sigset_t awaited;
  sigemptyset(&awaited);
  for (const int number : {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT})
    if (!is_ignored(number)) sigaddset(&awaited, number);
  sigprocmask(SIG_BLOCK, &awaited, nullptr);
  queue_ = base::FileDescriptor(signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK));
}

int SignalQueue::next() {
  signalfd_siginfo info;
  return read(queue_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace tandem::tools
