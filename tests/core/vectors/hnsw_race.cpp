// One writer of a graph beside readers, without Python: tests/sanitize.sh builds it under ThreadSanitizer, which ends it where two threads
// are at the same memory without order. It fails, too, where a reader does not find what is there all the time.
#include <atomic>
#include <cstdio>
#include <random>
#include <thread>

#include "vectors/hnsw_search.hpp"

namespace paperwasp {

// Searches without an end: of clock.cpp, which needs Python, only this.
TimeOfThread& time_of_thread() {
    thread_local TimeOfThread time;
    return time;
}
void Clock::look() { time_.left = LOOK_STEPS; }
int64_t monotonic_ns() { return 0; }

}  // namespace paperwasp

namespace {

using namespace paperwasp;
using namespace paperwasp::hnsw;

constexpr uint32_t STAY = 200, ALL = 2000, STEP = 50;
constexpr size_t DIMENSIONS = 8;

std::atomic<uint32_t> published{0};
std::atomic<bool> is_done{false};
std::atomic<int> failures{0};

Column column_of(const std::vector<float>& cells, uint32_t rows) {
    return {reinterpret_cast<const char*>(cells.data()), rows, DIMENSIONS * sizeof(float)};
}

void read(const Index& index, const std::vector<float>& cells, uint32_t seed) {
    std::mt19937 random(seed);
    const std::vector<uint64_t> accept((ALL + 63) / 64, ~uint64_t{0});
    BudgetClock clock(0);
    while (!is_done.load()) {
        const uint32_t row = random() % STAY, way = random() % 3;
        Search how{way == 1 ? 50u : 20u, {way == 0 ? nullptr : accept.data(), accept.size(), NONE}, way == 2, 0.1f};
        how.share = 100;  // of which each walk finds less, so that it begins to pass over nodes at once
        how.all = way == 0;
        const std::vector<Hit> hits =
            find(index, column_of(cells, published.load()), cells.data() + row * DIMENSIONS, how, 5, 1e30, &clock);
        if (hits.empty() || hits[0].node != row || hits[0].distance != 0) ++failures;
    }
}

void write(Index* index, const std::vector<float>& cells) {
    std::vector<uint32_t> nodes(STEP);
    for (uint32_t start = STAY; start < ALL; start += STEP) {
        for (uint32_t i = 0; i < STEP; ++i) nodes[i] = start + i;
        index->add(column_of(cells, start + STEP), nodes.data(), nodes.data(), STEP, 1 + start / STEP % 3);
        published.store(start + STEP);
        if (start < 10 * STEP) continue;
        for (uint32_t i = 0; i < STEP; ++i) nodes[i] = start - 5 * STEP + i;
        index->remove(column_of(cells, start + STEP), nodes.data(), STEP);
    }
}

// middle: far from zero, codes are too coarse to walk by.
int run(float middle) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(middle);
    std::vector<float> cells(ALL * DIMENSIONS);
    for (float& cell : cells) cell = normal(random);
    Index index({EUCLIDEAN, FLOAT32, DIMENSIONS}, 12, 60);
    std::vector<uint32_t> nodes(STAY);
    for (uint32_t i = 0; i < STAY; ++i) nodes[i] = i;
    index.add(column_of(cells, STAY), nodes.data(), nodes.data(), STAY, 1);
    published.store(STAY);
    is_done.store(false);
    std::vector<std::thread> readers;
    for (uint32_t i = 0; i < 2; ++i) readers.emplace_back([&, i] { read(index, cells, i); });
    write(&index, cells);
    is_done.store(true);
    for (std::thread& reader : readers) reader.join();
    const Saved saved = index.saved();
    const SavedView view{saved.header.data(), saved.header.size(),  saved.levels.data(), saved.owners.data(),
                         saved.levels.size(), saved.counts.data(),  saved.counts.size(), saved.links.data(),
                         saved.links.size(),  saved.parents.data(), saved.parents.size()};
    const auto loaded = Index::load_saved(index.shape(), 12, 60, column_of(cells, ALL), view, 3);
    if (loaded->live() != index.live()) ++failures;
    return failures.exchange(0);
}

}  // namespace

int main() {
    const int failed = run(0) + run(1000);
    std::printf("%d searches beside a writer failed\n", failed);
    return failed == 0 ? 0 : 1;
}
