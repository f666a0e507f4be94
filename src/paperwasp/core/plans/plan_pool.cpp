// Threads that run plans: see plan_pool.hpp.
#include "plans/plan_pool.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "native_threads.hpp"
#include "unlocked.hpp"

namespace paperwasp {
namespace {

// Runs that wait for each thread when whoever asked for them helps: fewer are taken by the threads while it reads more requests. Measured
// with eight connections on two cores: two answer 1.5 times what one does where it always helps, 1.85 times where it waits for six.
constexpr size_t WORTH_HELP = 3;

// A run whose answer Python takes.
class RunWork : public PoolWork {
  public:
    explicit RunWork(nb::object run) : run_(nb::cast<PlanRun*>(run)), owner_(std::move(run)) {}
    uint64_t expected_ns() const override { return run_->expected_ns(); }
    void run() noexcept override { run_->run(); }

  private:
    PlanRun* const run_;
    const nb::object owner_;
};

}  // namespace

PlanPool::PlanPool(size_t threads, uint64_t long_ns, size_t most_of_run, uint64_t thread_ns)
    : ThreadLender(thread_ns), long_ns_(long_ns), most_helpers_(most_of_run > 0 ? most_of_run - 1 : threads) {
    if (pipe(ends_) != 0) throw std::system_error(errno, std::generic_category(), "no pipe for the threads of queries");
    for (const int end : ends_) {
        fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK);
        fcntl(end, F_SETFD, FD_CLOEXEC);
    }
    {
        const SignalsBlocked blocked;
        const std::lock_guard lock(mutex_);  // threads ask how many they are
        try {
            for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
        } catch (const std::system_error&) {  // the machine has no more threads: fewer do
        }
    }
    if (threads_.empty()) {
        end();
        throw std::system_error(EAGAIN, std::generic_category(), "no thread for queries");
    }
}

PlanPool::~PlanPool() {
    end();
    for (const auto* jobs : {&short_, &long_})
        for (Job* job : *jobs) delete job;
    for (Job* job : finished_) delete job;
}

// Lets what runs run to its end.
void PlanPool::end() {
    {
        const Unlocked unlocked;
        {
            const std::lock_guard lock(mutex_);
            ends_soon_ = true;
        }
        came_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }
    for (const int end : ends_) close(end);
}

void PlanPool::submit(nb::object run, nb::object token) {
    auto owned = std::make_unique<RunWork>(std::move(run));
    PoolWork* const work = owned.get();
    put(std::make_unique<Job>(Job{work, std::move(token), std::move(owned), true}));
}

bool PlanPool::add(PoolWork& work, nb::object object, bool is_prepared) {
    return put(std::make_unique<Job>(Job{&work, std::move(object), nullptr, is_prepared}));
}

bool PlanPool::put(std::unique_ptr<Job> job) {
    bool is_worth = false;
    {
        const std::lock_guard lock(mutex_);
        queue_of(*job).push_back(job.get());
        job.release();
        is_worth = is_worth_help();
    }
    came_.notify_one();
    return is_worth;
}

// Whether the threads will not come soon to what waits and takes little time.
bool PlanPool::is_worth_help() const {
    return !short_.empty() && (short_.size() >= WORTH_HELP * threads_.size() || running_long_ >= threads_.size());
}

bool PlanPool::help() {
    std::unique_lock lock(mutex_);
    if (!is_worth_help()) return false;
    Job* const job = short_.front();
    short_.pop_front();
    ++helped_;
    if (prepare(job, lock)) {
        lock.unlock();
        {
            const GilRelease unlocked(is_much(job->work->expected_ns()));
            job->work->run();
        }
        lock.lock();
        finished_.push_back(job);
    }
    --helped_;
    return true;
}

// False: it takes long, and waits again, for its turn among such.
bool PlanPool::prepare(Job* job, std::unique_lock<std::mutex>& lock) {
    if (job->is_prepared) return true;
    lock.unlock();
    job->work->prepare();
    lock.lock();
    job->is_prepared = true;
    if (&queue_of(*job) == &short_) return true;
    long_.push_back(job);
    came_.notify_one();
    return false;
}

nb::list PlanPool::take() {
    std::vector<Job*> finished;
    bool was_told = false;
    {
        const std::lock_guard lock(mutex_);
        finished.swap(finished_);
        std::swap(was_told, is_told_);
    }
    if (was_told) {  // by one byte, whatever comes meanwhile
        char byte = 0;
        [[maybe_unused]] const ssize_t taken = read(ends_[0], &byte, 1);
    }
    nb::list tokens;
    for (Job* job : finished) {
        tokens.append(std::move(job->object));
        delete job;
    }
    return tokens;
}

void PlanPool::give_up(int64_t last_ns) {
    const std::lock_guard lock(mutex_);
    for (auto* const jobs : {&short_, &long_}) {
        const auto ended =
            std::stable_partition(jobs->begin(), jobs->end(), [&](const Job* job) { return job->work->last_ns() >= last_ns; });
        finished_.insert(finished_.end(), ended, jobs->end());
        jobs->erase(ended, jobs->end());
    }
}

size_t PlanPool::busy() const {
    const std::lock_guard lock(mutex_);
    return short_.size() + long_.size() + running_ + helped_ + finished_.size();
}

// Whether something waits that a thread may run now.
bool PlanPool::may_run() const {
    const size_t threads = threads_.size();
    return !short_.empty() || (!long_.empty() && running_long_ < (threads > 2 ? threads - 1 : threads));
}

PlanPool::Job* PlanPool::next() {
    if (!may_run()) return nullptr;
    std::deque<Job*>& jobs = short_.empty() ? long_ : short_;
    Job* const job = jobs.front();
    jobs.pop_front();
    return job;
}

size_t PlanPool::lend(const std::shared_ptr<SharedParts>& work, size_t most) {
    size_t count = 0;
    {
        const std::lock_guard lock(mutex_);
        const size_t busy = running_ + helping_ + lent_.size() + short_.size() + long_.size();
        count = std::min({most, most_helpers_, threads_.size() - std::min(threads_.size(), busy)});
        lent_.insert(lent_.end(), count, work);
        lent_count_ += count;
    }
    for (size_t i = 0; i < count; ++i) came_.notify_one();
    return count;
}

size_t PlanPool::lent() const {
    const std::lock_guard lock(mutex_);
    return lent_count_;
}

void PlanPool::work() {
    pthread_setname_np(pthread_self(), QUERY_THREAD_NAME);
    lend_to_this_thread(this);
    std::unique_lock lock(mutex_);
    for (;;) {
        const UnlockedTime counted;
        Job* job = nullptr;
        came_.wait(lock, [&] { return ends_soon_ || (job = next()) != nullptr || !lent_.empty(); });
        if (ends_soon_ && job == nullptr) return;
        if (job == nullptr) {
            const std::shared_ptr<SharedParts> parts = std::move(lent_.front());
            lent_.pop_front();
            ++helping_;
            lock.unlock();
            parts->help([this] {
                const std::lock_guard asked(mutex_);
                return may_run();
            });
            lock.lock();
            --helping_;
            continue;
        }
        ++running_;
        if (prepare(job, lock)) {
            const size_t is_long = &queue_of(*job) == &long_ ? 1 : 0;
            running_long_ += is_long;
            lock.unlock();
            job->work->run();
            lock.lock();
            running_long_ -= is_long;
            finish(job);
        }
        --running_;
    }
}

void PlanPool::finish(Job* job) {
    finished_.push_back(job);
    if (is_told_) return;
    is_told_ = true;
    const char byte = 0;
    [[maybe_unused]] const ssize_t written = write(ends_[1], &byte, 1);
}

void bind_plan_pool(nb::module_& m) {
    nb::class_<PlanPool>(m, "PlanPool")
        .def(nb::init<size_t, uint64_t, size_t, uint64_t>(), nb::arg("threads"), nb::arg("long_ns"), nb::arg("most_of_run") = 0,
             nb::arg("thread_ns") = 200'000)
        .def("fileno", &PlanPool::fd, "A file descriptor that can be read when runs have finished.")
        .def("submit", &PlanPool::submit, nb::arg("run"), nb::arg("token"), "Has a PlanRun run on a thread of the core.")
        .def("help", &PlanPool::help,
             "Runs one that waits and takes little time, here, if the threads will not come to it soon. False: they will.")
        .def("take", &PlanPool::take, "The tokens of the runs that have finished; of other work the object that it is.")
        .def("give_up", &PlanPool::give_up, nb::arg("last_ns"), "Gives up what still waits and was to be done before this moment.")
        .def_prop_ro("busy", &PlanPool::busy, "Runs that were not taken yet.")
        .def_prop_ro("lent", &PlanPool::lent, "How many threads were asked to help with what others run.");
}

}  // namespace paperwasp
