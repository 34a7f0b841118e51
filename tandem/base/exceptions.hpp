// tandem/base/exceptions.hpp: the exceptions that the public functions throw.
#pragma once

#include <stdexcept>

namespace tandem {

/// The program uses Tandem in a way that cannot work. The message names the task, the data, the source line, and the
/// remedy.
class UsageError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// The runtime cannot start: an option has a wrong name or value, or the job of this rank cannot be joined. A program
/// that does not catch it prints the message and ends with exit status 2.
class StartError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// No task can ever run: found by the event loop when all workers sleep, or by `wait` after the watchdog's time if the
/// program requested that.
class StuckError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The program asks for something that does not exist because its flow was cancelled: a task that did not run, or data
/// that such a task should have written.
class FlowCancelled : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What `wait()` throws on a rank for a kernel that threw on another one: which rank, which task, and its message.
class RemoteFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The job cannot go on: a rank died or left, or ranks have gone through different flows.
class JobError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An object could not be written to a message, or read from one. The exception of the user's function is nested in it.
class SerializationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tandem
