// Predicates of documents, evaluated for the features of a query. Its twin and specification is tests/oracles/predicate.py.
//
// programs: uint32. The two upper bits of a step say what it does, the lower 30 with which condition:
//     PUSH   masks[condition] is put on the stack        AND_MASK   the top of the stack is and-ed with masks[condition]
//     CALL   NOT, AND or OR (the lower bits) of the stack OR_MASK   … or-ed
// rows[i] says where program i stands: offset << 24 | length. masks[c]: 64 bits, one for each subquery: whether condition c holds in it.
// results[i]: the subqueries in which predicate i holds; 0 for a program without steps. A program that leaves its arrays, or whose
// operands are not there, is an error. One pass over the programs; nothing is allocated.
#include <stdexcept>

#include "clock.hpp"
#include "core.hpp"

namespace paperwasp {
namespace {

enum Step : uint32_t { PUSH, AND_MASK, OR_MASK, CALL };
enum Call : uint32_t { NOT, AND, OR };
constexpr uint32_t CONDITION = (1u << 30) - 1;
constexpr size_t STACK = 256;

// The result of one program; false if it is damaged. The top of the stack is `top`; below it are depth - 1 operands.
bool run(const uint32_t* program, const uint32_t* end, const uint64_t* masks, size_t conditions, uint64_t& result) {
    uint64_t stack[STACK], top = 0;
    size_t depth = 0;
    if (program != end && *program < conditions) {  // as nearly all begin: PUSH is 0
        top = masks[*program++];
        depth = 1;
        stack[0] = 0;
    }
    for (; program != end; ++program) {
        const uint32_t step = *program >> 30, argument = *program & CONDITION;
        if (step != CALL && argument >= conditions) return false;
        if (step == PUSH) {
            if (depth == STACK) return false;
            stack[depth++] = top;
            top = masks[argument];
            continue;
        }
        if (depth < 1) return false;
        if (step != CALL) {
            // Both without a branch: which of them comes next cannot be guessed.
            const uint64_t mask = masks[argument], both = top & mask;
            top = step == AND_MASK ? both : top | mask;
        } else if (argument == NOT) {
            top = ~top;
        } else {
            if (depth < 2) return false;
            --depth;
            top = argument == AND ? top & stack[depth] : top | stack[depth];
        }
    }
    result = top;
    return depth <= 1;
}

void evaluate_predicates(In<uint32_t> programs, In<uint64_t> rows, In<uint64_t> masks, Out<uint64_t> results) {
    const size_t count = rows.shape(0), size = programs.shape(0), conditions = masks.shape(0);
    if (results.shape(0) != count) throw std::invalid_argument("the results do not fit the rows");
    const uint32_t* const code = programs.data();
    bool sound = true;
    Clock clock;
    {
        const GilRelease release(is_much(16 * count));
        for (size_t i = 0; i < count && sound; ++i) {
            const uint64_t start = rows.data()[i] >> 24, length = rows.data()[i] & 0xFFFFFF;
            clock.spend(static_cast<int64_t>(length));
            sound = start + length <= size && run(code + start, code + start + length, masks.data(), conditions, results.data()[i]);
        }
    }
    if (!sound) throw std::invalid_argument("a damaged program");
}

}  // namespace

void bind_predicate(nb::module_& m) {
    m.def("evaluate_predicates", &evaluate_predicates, nb::arg("programs").noconvert(), nb::arg("rows").noconvert(),
          nb::arg("masks").noconvert(), nb::arg("results").noconvert(),
          "The subqueries in which each predicate holds. Twin: tests.oracles.predicate.evaluate_predicates");
}

}  // namespace paperwasp
