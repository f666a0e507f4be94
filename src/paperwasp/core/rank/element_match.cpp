// How well the terms of a query match each element of a field, for a block of hits. Its twin and specification is
// tests/oracles/element_match.py.
//
// Each term has lists (offsets[hits + 1], elements, positions, lengths, weights): in each hit elements rise, and positions in an element;
// length and weight are those of the element. The answer is a row for each element of a hit in which a term stands: (offsets[hits + 1] of
// the rows, their elements, their values: COLUMNS for each, row after row). Time grows with the positions, times the logarithm of the
// terms; for the column `flow`, if it is wanted, with the terms of an element times their positions.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "arrays.hpp"
#include "clock.hpp"

namespace paperwasp {
namespace {

constexpr size_t COLUMNS = 9;
constexpr double NEAR = 8.0;  // words: further apart terms are not near
constexpr uint32_t NOBODY = 0xFFFFFFFFu;
constexpr uint64_t STEPS_OF_HIT = 2000;  // about

// One term's places in all hits.
struct Places {
    In<uint32_t> offsets, elements, positions, lengths;
    In<int32_t> weights;

    Places(const nb::handle& given, size_t hits)
        : offsets(as_given<uint32_t>(given[0])),
          elements(as_given<uint32_t>(given[1])),
          positions(as_given<uint32_t>(given[2])),
          lengths(as_given<uint32_t>(given[3])),
          weights(as_given<int32_t>(given[4])) {
        if (offsets.size() != hits + 1) throw nb::value_error("offsets do not fit the number of hits");
        for (size_t i = 0; i < hits; ++i)
            if (offsets.data()[i] > offsets.data()[i + 1]) throw nb::value_error("offsets must rise");
        const size_t count = elements.size();
        if (offsets.data()[hits] > count || positions.size() != count || lengths.size() != count || weights.size() != count)
            throw nb::value_error("places of different numbers");
    }
};

// Where one term stands in the element that is looked at, and where it goes on.
struct Cursor {
    uint32_t at, end_of_element, end;
};

// A place of a term. The greatest of a heap is the first in the field; of those at one position, that of the first term.
struct At {
    uint32_t position, term, at;
    bool operator<(const At& other) const { return position != other.position ? position > other.position : term > other.term; }
};

// The largest number of terms that can each have a place of their own.
class Flow {
  public:
    explicit Flow(Clock& clock) : clock_(clock) {}

    // places[i]: of term i.
    uint32_t of(const std::vector<std::pair<const uint32_t*, const uint32_t*>>& places) {
        owner_.clear();
        size_t all = 0;
        for (const auto& [from, to] : places) {
            owner_.insert(owner_.end(), from, to);
            all += static_cast<size_t>(to - from);
        }
        std::sort(owner_.begin(), owner_.end());
        owner_.erase(std::unique(owner_.begin(), owner_.end()), owner_.end());
        terms_of_.assign(owner_.size(), NOBODY);
        uint32_t flow = 0;
        for (uint32_t term = 0; term < places.size(); ++term) {
            clock_.spend(static_cast<int64_t>(all));
            flow += placed(places, term);
        }
        return flow;
    }

  private:
    size_t index_of(uint32_t place) const {
        return static_cast<size_t>(std::lower_bound(owner_.begin(), owner_.end(), place) - owner_.begin());
    }

    // Finds a place for a term by moving others, breadth first. Each place is looked at once.
    bool placed(const std::vector<std::pair<const uint32_t*, const uint32_t*>>& places, uint32_t first) {
        came_from_.assign(owner_.size(), NOBODY);
        queue_.assign(1, first);
        for (size_t head = 0; head < queue_.size(); ++head) {
            const uint32_t term = queue_[head];
            for (const uint32_t* p = places[term].first; p != places[term].second; ++p) {
                const size_t i = index_of(*p);
                if (came_from_[i] != NOBODY) continue;
                came_from_[i] = term;
                if (terms_of_[i] == NOBODY) {
                    move(i, first);
                    return true;
                }
                queue_.push_back(terms_of_[i]);
            }
        }
        return false;
    }

    // Gives place i to the term that came there, the place of that one to the term that came there, and so on back to `first`.
    void move(size_t i, uint32_t first) {
        for (;;) {
            const uint32_t term = came_from_[i];
            const auto before = std::find(terms_of_.begin(), terms_of_.end(), term);
            terms_of_[i] = term;
            if (term == first) return;
            i = static_cast<size_t>(before - terms_of_.begin());
        }
    }

    Clock& clock_;
    std::vector<uint32_t> owner_, terms_of_, came_from_, queue_;  // places, rising; the term at each; the term that looked at each
};

class Matcher {
  public:
    Matcher(const std::vector<Places>& terms, const double* weights, bool flow, Clock& clock)
        : terms_(terms), weights_(weights), with_flow_(flow), flow_(clock), clock_(clock), cursors_(terms.size()) {}

    void hit(size_t i, std::vector<uint32_t>& elements, std::vector<double>& rows) {
        for (size_t t = 0; t < terms_.size(); ++t) {
            const uint32_t* offsets = terms_[t].offsets.data() + i;
            cursors_[t] = {offsets[0], offsets[0], offsets[1]};
            clock_.spend(static_cast<int64_t>(1 + 10 * (offsets[1] - offsets[0])));
        }
        uint32_t element = NOBODY;
        while (next_element(element)) {
            elements.push_back(element);
            const std::array<double, COLUMNS> row = values();
            rows.insert(rows.end(), row.begin(), row.end());
            for (const uint32_t t : here_) cursors_[t].at = cursors_[t].end_of_element;
        }
    }

  private:
    // The least element that a term has still to stand in, with all terms that do.
    bool next_element(uint32_t& element) {
        here_.clear();
        for (uint32_t t = 0; t < terms_.size(); ++t) {
            const Cursor& c = cursors_[t];
            if (c.at == c.end) continue;
            const uint32_t its = terms_[t].elements.data()[c.at];
            if (here_.empty() || its < element) here_.clear(), element = its;
            if (its == element) here_.push_back(t);
        }
        for (const uint32_t t : here_) {
            Cursor& c = cursors_[t];
            for (c.end_of_element = c.at; c.end_of_element != c.end && terms_[t].elements.data()[c.end_of_element] == element;)
                ++c.end_of_element;
        }
        return !here_.empty();
    }

    uint32_t position(uint32_t term, uint32_t at) const { return terms_[term].positions.data()[at]; }

    static double nearness(double distance) {
        const double far = (distance - 1) / NEAR;
        return distance > NEAR ? 0 : 1 - far * far;
    }

    // Terms are taken in the order of their places, each once, and only at places beyond the last one that was taken.
    std::array<double, COLUMNS> values() {
        std::vector<At>& heap = heap_;
        heap.clear();
        double all_weights = 0;
        for (const uint32_t t : here_) {
            heap.push_back({position(t, cursors_[t].at), t, cursors_[t].at});
            all_weights += weights_[t];
        }
        std::make_heap(heap.begin(), heap.end());
        const At first = heap.front();
        uint32_t last = first.position, last_term = first.term, taken = 1, in_order = 0;
        double near = 0, weights = weights_[first.term];
        std::pop_heap(heap.begin(), heap.end());
        heap.pop_back();
        while (!heap.empty()) {
            std::pop_heap(heap.begin(), heap.end());
            At& next = heap.back();
            if (next.position > last) {
                near += nearness(static_cast<double>(next.position - last));
                in_order += next.term > last_term;
                last = next.position;
                last_term = next.term;
                weights += weights_[next.term];
                ++taken;
                heap.pop_back();
            } else if (++next.at == cursors_[next.term].end_of_element) {
                heap.pop_back();
            } else {
                next.position = position(next.term, next.at);
                std::push_heap(heap.begin(), heap.end());
            }
        }
        const double length = terms_[first.term].lengths.data()[first.at], pairs = taken - 1;
        return {taken > 1 ? near / pairs : nearness(std::max(length, 1.0)),
                taken > 1 ? in_order / pairs : 1,
                static_cast<double>(taken),
                weights,
                length,
                static_cast<double>(terms_[first.term].weights.data()[first.at]),
                static_cast<double>(here_.size()),
                all_weights,
                with_flow_ ? flow() : 0.0};
    }

    double flow() {
        places_.clear();
        for (const uint32_t t : here_) {
            const uint32_t* positions = terms_[t].positions.data();
            places_.emplace_back(positions + cursors_[t].at, positions + cursors_[t].end_of_element);
        }
        return flow_.of(places_);
    }

    const std::vector<Places>& terms_;
    const double* weights_;
    bool with_flow_;
    Flow flow_;
    Clock& clock_;
    std::vector<Cursor> cursors_;
    std::vector<At> heap_;
    std::vector<uint32_t> here_;  // the terms in the element that is looked at
    std::vector<std::pair<const uint32_t*, const uint32_t*>> places_;
};

nb::tuple element_match(const nb::list& places, In<double> weights, size_t hits, bool flow) {
    if (places.size() != weights.size()) throw nb::value_error("terms need places and weights each");
    std::vector<Places> terms;
    for (const nb::handle each : places) {
        if (nb::len(each) != 5) throw nb::value_error("places are offsets, elements, positions, lengths and weights");
        terms.emplace_back(each, hits);
    }
    auto offsets = std::make_unique<std::vector<uint32_t>>(hits + 1, 0);
    auto elements = std::make_unique<std::vector<uint32_t>>();
    auto rows = std::make_unique<std::vector<double>>();
    Clock clock;
    {
        const GilRelease unlocked(is_much(STEPS_OF_HIT * hits));
        Matcher matcher(terms, weights.data(), flow, clock);
        for (size_t i = 0; i < hits; ++i) {
            matcher.hit(i, *elements, *rows);
            (*offsets)[i + 1] = static_cast<uint32_t>(elements->size());
        }
    }
    return nb::make_tuple(own(std::move(offsets)), own(std::move(elements)), own(std::move(rows)));
}

}  // namespace

void bind_element_match(nb::module_& m) {
    m.def("element_match", &element_match, nb::arg("places"), nb::arg("weights").noconvert(), nb::arg("hits"), nb::arg("flow"),
          "How well terms match each element of each hit. Twin: tests.oracles.element_match.element_match");
}

}  // namespace paperwasp
