// A large text of JSON, looked through before anything is built of it: how many values it has, and where it can be cut into pieces that
// are decoded one by one. What the pieces give together is what the whole text gives. The plain twin is in tests/oracles/json_scan.py.
//
// An array or object of more than `piece_bytes` is taken apart. Each step of the result is three numbers, (kind, start, end):
//
//     BEGIN_ARRAY, BEGIN_OBJECT   one that is taken apart begins
//     RUN                         text[start:end] is some of its elements or members, with the commas between them
//     NAME                        text[start:end] is the name of the member that begins next
//     END                         it ends
//     TEXT, TEXT_END              text[start:end] is some of the characters of a string that is an element or a member; TEXT_END: the last
//
// A run is little longer than `piece_bytes`, but for the last element in it; a string of more is taken apart as well, between characters
// and escapes. The scan sees to brackets, commas between runs, and what stands between a run and its neighbours; what is wrong within a
// run, or a name, is found when it is decoded.
#include <cstring>
#include <vector>

#include "core.hpp"
#include "documents/json_text.hpp"

namespace paperwasp {
namespace {

enum Kind : int64_t { BEGIN_ARRAY, BEGIN_OBJECT, RUN, NAME, END, TEXT, TEXT_END };
enum Problem : int64_t { FINE, TOO_MANY_VALUES, TOO_DEEP, BROKEN, CUT_SHORT, MORE_BEHIND };

struct Open {
    const char* start;    // its bracket
    const char* run;      // where what was not given yet begins
    const char* element;  // where the element in which we are begins
    const char* colon;    // of that element; nullptr: none so far
    bool is_object;
    bool is_apart;          // whether BEGIN was given
    bool behind_one_apart;  // whether the element in which we are was taken apart, and has ended
    bool has_comma;
};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// The first byte that is not white space; `to` where there is none.
const char* after_space(const char* from, const char* to) {
    while (from < to && is_space(*from)) ++from;
    return from;
}

bool is_high_surrogate(const char* escape, const char* to) {
    if (to - escape < 4 || (escape[2] != 'd' && escape[2] != 'D')) return false;
    const char second = escape[3];
    return second == '8' || second == '9' || second == 'a' || second == 'b' || second == 'A' || second == 'B';
}

// Behind the escape that begins at a backslash, or behind the pair of surrogates. What is none of these is left to who decodes it.
const char* after_escape(const char* slash, const char* to) {
    ptrdiff_t size = 2;
    if (to - slash >= 2 && slash[1] == 'u') size = is_high_surrogate(slash, to) ? 12 : 6;
    return to - slash < size ? to : slash + size;
}

// Where text from `from` on, which begins a character, can be cut: at `wanted` or little behind it.
const char* cut_of(const char* from, const char* wanted, const char* to) {
    const char* at = from;
    while (at < wanted) {
        const auto* slash = static_cast<const char*>(std::memchr(at, '\\', static_cast<size_t>(wanted - at)));
        at = slash == nullptr ? wanted : after_escape(slash, to);
    }
    while (at < to && (static_cast<unsigned char>(*at) & 0xC0) == 0x80) ++at;
    return at;
}

class Scan {
  public:
    Scan(const char* text, size_t size, int64_t most_values, size_t most_depth, int64_t piece_bytes)
        : text_(text), end_(text + size), most_values_(most_values), most_depth_(most_depth), piece_bytes_(piece_bytes) {}

    void run() {
        const char* at = text_;
        bool in_scalar = false;
        while (at < end_ && problem == FINE) {
            const char c = *at;
            switch (c) {
                case ' ':
                case '\t':
                case '\n':
                case '\r':
                    in_scalar = false;
                    ++at;
                    continue;
                case '"': {
                    in_scalar = false;
                    count(at);
                    const char* behind = after_string(at, end_);
                    if (behind == nullptr) return fail(CUT_SHORT, end_);
                    if (behind - at > piece_bytes_ && is_in_value()) take_apart(at, behind);
                    at = behind;
                    continue;
                }
                case '[':
                case '{':
                    count(at);
                    if (stack_.empty() && is_done_) return fail(MORE_BEHIND, at);
                    if (stack_.size() == most_depth_) return fail(TOO_DEEP, at);
                    stack_.push_back({at, at + 1, at + 1, nullptr, c == '{', false, false, false});
                    break;
                case ']':
                case '}':
                    close(at);
                    break;
                case ',':
                    comma(at);
                    break;
                case ':':
                    if (stack_.empty()) return fail(is_done_ ? MORE_BEHIND : BROKEN, at);
                    if (stack_.back().colon == nullptr) stack_.back().colon = at;
                    break;
                default:
                    if (!in_scalar) count(at);
                    in_scalar = true;
                    ++at;
                    continue;
            }
            in_scalar = false;
            ++at;
        }
        if (problem == FINE && !stack_.empty()) fail(CUT_SHORT, end_);
    }

    std::vector<int64_t> steps;
    int64_t values = 0;
    Problem problem = FINE;
    int64_t problem_at = 0;

  private:
    void fail(Problem found, const char* at) {
        if (problem != FINE) return;
        problem = found;
        problem_at = at - text_;
    }

    void count(const char* at) {
        if (++values > most_values_) fail(TOO_MANY_VALUES, at);
        if (stack_.empty() && is_done_) fail(MORE_BEHIND, at);
    }

    void give(Kind kind, const char* start, const char* end) { steps.insert(steps.end(), {kind, start - text_, end - text_}); }

    void comma(const char* at) {
        if (stack_.empty()) return fail(BROKEN, at);
        Open& open = stack_.back();
        if (!open.is_apart && at - open.start > piece_bytes_) begin_apart();
        if (problem != FINE) return;
        if (open.is_apart && (open.behind_one_apart || at - open.run > piece_bytes_)) {
            give_run(open, at, true);
            open.run = at + 1;
        }
        open.element = at + 1;
        open.colon = nullptr;
        open.has_comma = true;
    }

    void close(const char* at) {
        if (stack_.empty() || stack_.back().is_object != (*at == '}')) return fail(stack_.empty() && is_done_ ? MORE_BEHIND : BROKEN, at);
        Open& open = stack_.back();
        if (!open.is_apart && at - open.start > piece_bytes_) begin_apart();
        if (problem != FINE) return;
        const bool is_apart = open.is_apart;
        if (is_apart) {
            give_run(open, at, open.has_comma);
            give(END, at, at + 1);
        }
        stack_.pop_back();
        is_done_ = stack_.empty();
        if (is_apart && !stack_.empty()) {
            stack_.back().run = at + 1;
            stack_.back().behind_one_apart = true;
        }
    }

    // What was not given yet, up to a comma or the end.
    void give_run(Open& open, const char* to, bool is_wanted) {
        const char* first = after_space(open.run, to);
        if (open.behind_one_apart) {
            if (first < to) fail(BROKEN, first);
        } else if (first < to) {
            give(RUN, open.run, to);
        } else if (is_wanted) {
            fail(BROKEN, to);
        }
        open.behind_one_apart = false;
    }

    bool is_in_value() const { return !stack_.empty() && (!stack_.back().is_object || stack_.back().colon != nullptr); }

    // A string, from its quote to behind the other.
    void take_apart(const char* quote, const char* behind) {
        begin_apart();
        if (problem != FINE) return;
        Open& open = stack_.back();
        lead_to(open, quote);
        const char* from = quote + 1;
        const char* to = behind - 1;
        while (to - from > piece_bytes_) {
            const char* cut = cut_of(from, from + piece_bytes_, to);
            give(TEXT, from, cut);
            from = cut;
        }
        give(TEXT_END, from, to);
        open.run = behind;
        open.behind_one_apart = true;
    }

    // Begins all that we are in and that has not begun: what is outside is no smaller.
    void begin_apart() {
        for (size_t i = 0; i < stack_.size() && problem == FINE; ++i) {
            Open& open = stack_[i];
            if (open.is_apart) continue;
            if (i > 0) {
                lead_to(stack_[i - 1], open.start);
            } else if (const char* first = after_space(text_, open.start); first < open.start) {
                return fail(BROKEN, first);
            }
            give(open.is_object ? BEGIN_OBJECT : BEGIN_ARRAY, open.start, open.start + 1);
            open.is_apart = true;
        }
    }

    // Gives what stands before an element that is taken apart.
    void lead_to(Open& outer, const char* bracket) {
        if (outer.behind_one_apart) return fail(BROKEN, bracket);
        if (outer.element > outer.run) give_run(outer, outer.element - 1, true);
        const char* rest = outer.element;
        if (outer.is_object) {
            if (outer.colon == nullptr) return fail(BROKEN, bracket);
            give(NAME, outer.element, outer.colon);
            rest = outer.colon + 1;
        }
        rest = after_space(rest, bracket);
        if (rest < bracket) fail(BROKEN, rest);
    }

    const char* text_;
    const char* end_;
    const int64_t most_values_;
    const size_t most_depth_;
    const int64_t piece_bytes_;
    std::vector<Open> stack_;
    bool is_done_ = false;
};

nb::tuple scan_json(nb::bytes text, int64_t most_values, uint64_t most_depth, int64_t piece_bytes) {
    Scan scan(text.c_str(), text.size(), most_values, most_depth, piece_bytes);
    {
        const GilRelease release(is_much(text.size()));
        scan.run();
    }
    nb::list steps;
    for (const int64_t number : scan.steps) steps.append(number);
    return nb::make_tuple(static_cast<int64_t>(scan.problem), scan.problem_at, scan.values, steps);
}

}  // namespace

void bind_json_scan(nb::module_& m) {
    m.def("scan_json", &scan_json, nb::arg("text"), nb::arg("most_values"), nb::arg("most_depth"), nb::arg("piece_bytes"),
          "(what is wrong, where, how many values, steps) of a text of JSON: see json_scan.cpp.");
}

}  // namespace paperwasp
