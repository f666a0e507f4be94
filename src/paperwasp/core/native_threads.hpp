// What all threads that the core begins have in common.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace paperwasp {

// What tools such as `top -H` show of threads that answer queries; bench/warm_query.py tells by it which never take the interpreter's lock.
constexpr char QUERY_THREAD_NAME[] = "core-queries";

// Threads that begin meanwhile get no signals: these are for Python's main thread.
class SignalsBlocked {
  public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  private:
    sigset_t before_;
};

}  // namespace paperwasp
