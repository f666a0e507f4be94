// Rank programs: the block interpreter of scalar ranking expressions. Its twin and specification is tests/oracles/rank_program.py.
//
// code: operations of five int32 each: opcode, target, three operands. Operands are numbered columns first, then constants, then
// temporaries; a target is a temporary. columns: one array per feature, of n values or of one value for all rows. Rows are worked in
// blocks of BLOCK, so that the register file stays in the first-level cache; every operation is a loop over one block.
// Everything is checked before the first row: a wrong opcode, operand or length is a ValueError.
// Arithmetic is IEEE double and the C library, operation by operation: nothing is contracted or reordered. Only the logarithm is our own,
// within an ulp of the exact one: most programs that take time take it for logarithms, and the C library has none for vectors.
#include "rank/rank_program.hpp"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "clock.hpp"
#include "clones.hpp"
#include "core.hpp"

namespace paperwasp {
namespace {

constexpr size_t BLOCK = 256;
constexpr size_t WIDTH = 5;
constexpr size_t NONE = static_cast<size_t>(-1);

// As x86 converts: the lowest value where the integer part does not fit.
PAPERWASP_INLINE int32_t truncated32(double value) {
    if (!(value > -2147483649.0 && value < 2147483648.0)) return std::numeric_limits<int32_t>::min();
    return static_cast<int32_t>(value);
}

PAPERWASP_INLINE int64_t truncated64(double value) {
    if (!(value >= -9223372036854775808.0 && value < 9223372036854775808.0)) return std::numeric_limits<int64_t>::min();
    return static_cast<int64_t>(value);
}

PAPERWASP_INLINE double as_float(double value) { return static_cast<double>(static_cast<float>(value)); }

PAPERWASP_INLINE bool approximately_equal(double a, double b) {
    if (a == b) return true;
    if (a > 1.0 || a < -1.0) return std::nextafterf(static_cast<float>(b / a), 1.0f) == 1.0f;
    return as_float(a) == static_cast<double>(std::nextafterf(static_cast<float>(b), static_cast<float>(a)));
}

PAPERWASP_INLINE double bit(double a, double b) {
    const uint32_t place = static_cast<uint32_t>(truncated64(b));
    return place < 8 && ((truncated32(a) >> place) & 1) ? 1.0 : 0.0;
}

PAPERWASP_INLINE double hamming(double a, double b) {
    uint32_t different = static_cast<uint32_t>(truncated32(a) ^ truncated32(b)) & 0xFFu;
    double count = 0;
    for (; different != 0; different &= different - 1) count += 1;
    return count;
}

PAPERWASP_INLINE double round_half_up(double a) {
    const double whole = std::floor(a);
    return a - whole >= 0.5 ? whole + 1.0 : whole;
}

PAPERWASP_INLINE double truth(bool value) { return value ? 1.0 : 0.0; }

PAPERWASP_INLINE uint64_t bits_of(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

PAPERWASP_INLINE double of_bits(uint64_t bits) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// x = 2^k * (1 + f), 1 + f between the roots of 1/2 and of 2. With s = f / (2 + f) the logarithm of 1 + f is 2 atanh(s), a series in s²
// that is summed from its small end; it is added to f - f²/2, of which it is the small rest. Without branches, so that loops vectorize.
PAPERWASP_INLINE double logarithm(double x) {
    constexpr uint64_t FRACTION = (uint64_t{1} << 52) - 1, ONE = uint64_t{1023} << 52, TWO_TO_52 = uint64_t{1075} << 52;
    constexpr double LN2 = 0x1.62e42feep-1, LN2_REST = 0x1.a39ef35793c76p-33;  // of the first all products with k are exact
    const bool is_subnormal = x < 0x1p-1022;
    const uint64_t bits = bits_of(is_subnormal ? x * 0x1p54 : x);
    const double unit = of_bits((bits & FRACTION) | ONE);
    const bool is_upper = unit > 0x1.6a09e667f3bcdp0;
    const double k = of_bits((bits >> 52) | TWO_TO_52) - (0x1p52 + 1023) + (is_upper ? 1.0 : 0.0) - (is_subnormal ? 54.0 : 0.0);
    const double f = (is_upper ? unit * 0.5 : unit) - 1.0;
    const double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
    double rest = 2.0 / 21;
    rest = rest * z + 2.0 / 19;
    rest = rest * z + 2.0 / 17;
    rest = rest * z + 2.0 / 15;
    rest = rest * z + 2.0 / 13;
    rest = rest * z + 2.0 / 11;
    rest = rest * z + 2.0 / 9;
    rest = rest * z + 2.0 / 7;
    rest = rest * z + 2.0 / 5;
    rest = rest * z + 2.0 / 3;
    rest = rest * z;
    const double found = k * LN2 - ((half - (s * (half + rest) + k * LN2_REST)) - f);
    const double below = x == 0.0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    const double positive = x == std::numeric_limits<double>::infinity() ? x : found;
    return x > 0.0 ? positive : below;
}

// name, number of operands, value of a, b and c: in the order of OPERATIONS in tests/oracles/rank_program.py.
// clang-format off
#define PAPERWASP_RANK_OPERATIONS(_)                                     \
    _(negate, 1, -a)                                                     \
    _(not, 1, truth(!(a != 0.0)))                                        \
    _(acos, 1, std::acos(a))                                             \
    _(asin, 1, std::asin(a))                                             \
    _(atan, 1, std::atan(a))                                             \
    _(ceil, 1, std::ceil(a))                                             \
    _(cos, 1, std::cos(a))                                               \
    _(cosh, 1, std::cosh(a))                                             \
    _(elu, 1, (a < 0) ? std::exp(a) - 1.0 : a)                           \
    _(erf, 1, std::erf(a))                                               \
    _(exp, 1, std::exp(a))                                               \
    _(fabs, 1, std::fabs(a))                                             \
    _(floor, 1, std::floor(a))                                           \
    _(isNan, 1, truth(std::isnan(a)))                                    \
    _(log, 1, logarithm(a))                                              \
    _(log10, 1, std::log10(a))                                           \
    _(relu, 1, (a < 0.0) ? 0.0 : a)                                      \
    _(round, 1, round_half_up(a))                                        \
    _(sigmoid, 1, 1.0 / (1.0 + std::exp(-1.0 * a)))                      \
    _(sign, 1, (a > 0) ? 1.0 : (a < 0) ? -1.0 : a)                       \
    _(sin, 1, std::sin(a))                                               \
    _(sinh, 1, std::sinh(a))                                             \
    _(sqrt, 1, std::sqrt(a))                                             \
    _(square, 1, a * a)                                                  \
    _(tan, 1, std::tan(a))                                               \
    _(tanh, 1, std::tanh(a))                                             \
    _(add, 2, a + b)                                                     \
    _(subtract, 2, a - b)                                                \
    _(multiply, 2, a * b)                                                \
    _(divide, 2, a / b)                                                  \
    _(modulo, 2, std::fmod(a, b))                                        \
    _(power, 2, std::pow(a, b))                                          \
    _(equal, 2, truth(a == b))                                           \
    _(notEqual, 2, truth(a != b))                                        \
    _(approximatelyEqual, 2, truth(approximately_equal(a, b)))           \
    _(less, 2, truth(a < b))                                             \
    _(lessEqual, 2, truth(a <= b))                                       \
    _(greater, 2, truth(a > b))                                          \
    _(greaterEqual, 2, truth(a >= b))                                    \
    _(and, 2, truth(a != 0.0 && b != 0.0))                               \
    _(or, 2, truth(a != 0.0 || b != 0.0))                                \
    _(atan2, 2, std::atan2(a, b))                                        \
    _(bit, 2, bit(a, b))                                                 \
    _(hamming, 2, hamming(a, b))                                         \
    _(ldexp, 2, std::ldexp(a, truncated32(b)))                           \
    _(max, 2, (a < b) ? b : a)                                           \
    _(min, 2, (b < a) ? b : a)                                           \
    _(select, 3, (a != 0.0) ? b : c)
// clang-format on

// A runner works one block; operands it does not use point at any readable block.
using Runner = void (*)(double* target, const double* as, const double* bs, const double* cs, size_t rows);

// The arguments alias only at the same index.
#define PAPERWASP_RUNNER(name, arity, value)                                                                              \
    PAPERWASP_CLONES void run_##name(double* target, const double* as, const double* bs, const double* cs, size_t rows) { \
        _Pragma("GCC ivdep") for (size_t i = 0; i < rows; ++i) {                                                          \
            [[maybe_unused]] const double a = as[i];                                                                      \
            [[maybe_unused]] const double b = arity > 1 ? bs[i] : 0.0;                                                    \
            [[maybe_unused]] const double c = arity > 2 ? cs[i] : 0.0;                                                    \
            target[i] = value;                                                                                            \
        }                                                                                                                 \
    }
#define PAPERWASP_RUNNER_NAME(name, arity, value) run_##name,
#define PAPERWASP_ARITY(name, arity, value) arity,
#define PAPERWASP_NAME(name, arity, value) #name,

PAPERWASP_RANK_OPERATIONS(PAPERWASP_RUNNER)
const Runner RUNNERS[] = {PAPERWASP_RANK_OPERATIONS(PAPERWASP_RUNNER_NAME)};
constexpr int ARITIES[] = {PAPERWASP_RANK_OPERATIONS(PAPERWASP_ARITY)};
constexpr const char* NAMES[] = {PAPERWASP_RANK_OPERATIONS(PAPERWASP_NAME)};
constexpr size_t OPERATIONS = sizeof(ARITIES) / sizeof(ARITIES[0]);

void evaluate(In<int32_t> code, In<double> constants, const std::vector<In<double>>& columns, size_t temporaries, size_t result,
              Out<double> out) {
    const size_t n = out.shape(0);
    const RankProgram program{{code.data(), code.data() + code.shape(0)},
                              {constants.data(), constants.data() + constants.shape(0)},
                              columns.size(),
                              temporaries,
                              result};
    check_program(program);
    std::vector<RankColumn> given;
    for (const auto& column : columns) {
        if (column.shape(0) != n && column.shape(0) != 1) throw std::invalid_argument("a column has another length");
        given.push_back({column.data(), column.shape(0) == 1});
    }
    Clock clock;
    const GilRelease release(is_much(4 * n * (code.shape(0) / WIDTH)));
    run_program(program, given, n, out.data(), clock);
}

std::vector<const char*> operation_names() { return {NAMES, NAMES + OPERATIONS}; }

}  // namespace

void check_program(const RankProgram& program) {
    const std::vector<int32_t>& code = program.code;
    const size_t first_temporary = program.columns + program.constants.size(), operands = first_temporary + program.temporaries;
    if (program.temporaries > code.size()) throw std::invalid_argument("more temporaries than operations");
    if (code.size() % WIDTH != 0) throw std::invalid_argument("code is not a whole number of operations");
    if (program.result >= operands) throw std::invalid_argument("the result is no operand");
    for (size_t at = 0; at < code.size(); at += WIDTH) {
        const int32_t* op = code.data() + at;
        if (op[0] < 0 || static_cast<size_t>(op[0]) >= OPERATIONS) throw std::invalid_argument("unknown opcode");
        if (op[1] < 0 || static_cast<size_t>(op[1]) < first_temporary || static_cast<size_t>(op[1]) >= operands)
            throw std::invalid_argument("a target is no temporary");
        for (int i = 0; i < ARITIES[op[0]]; ++i)
            if (op[2 + i] < 0 || static_cast<size_t>(op[2 + i]) >= operands) throw std::invalid_argument("an argument is no operand");
    }
}

void run_program(const RankProgram& program, const std::vector<RankColumn>& columns, size_t n, double* out, Clock& clock) {
    const std::vector<int32_t>& code = program.code;
    const size_t first_constant = program.columns, first_temporary = first_constant + program.constants.size();
    const size_t operands = first_temporary + program.temporaries, end = code.size(), result = program.result;
    // One block per operand that does not change with the rows or is a temporary; long columns are read in place.
    std::vector<double> registers(operands * BLOCK, 0.0);
    std::vector<const double*> sources(operands);
    for (size_t i = 0; i < operands; ++i) {
        double* block = registers.data() + i * BLOCK;
        sources[i] = block;
        if (i >= first_constant && i < first_temporary) std::fill_n(block, BLOCK, program.constants[i - first_constant]);
        if (i < first_constant && columns[i].is_one) std::fill_n(block, BLOCK, columns[i].values[0]);
    }
    // The last operation writes where the result is wanted.
    const size_t last = end != 0 && static_cast<size_t>(code[end - WIDTH + 1]) == result ? end - WIDTH : NONE;
    for (size_t start = 0; start < n; start += BLOCK) {
        clock.spend(static_cast<int64_t>(end / WIDTH * BLOCK));
        const size_t rows = std::min(BLOCK, n - start);
        for (size_t i = 0; i < first_constant; ++i)
            if (!columns[i].is_one) sources[i] = columns[i].values + start;
        for (size_t at = 0; at < end; at += WIDTH) {
            const int32_t* op = code.data() + at;
            const int arity = ARITIES[op[0]];
            const double* a = sources[static_cast<size_t>(op[2])];
            const double* b = arity > 1 ? sources[static_cast<size_t>(op[3])] : a;
            const double* c = arity > 2 ? sources[static_cast<size_t>(op[4])] : a;
            double* target = at == last ? out + start : registers.data() + static_cast<size_t>(op[1]) * BLOCK;
            RUNNERS[op[0]](target, a, b, c, rows);
        }
        if (last == NONE) std::memcpy(out + start, sources[result], rows * sizeof(double));
    }
}

void bind_rank_program(nb::module_& m) {
    m.def("rank_program_evaluate", &evaluate, nb::arg("code").noconvert(), nb::arg("constants").noconvert(), nb::arg("columns"),
          nb::arg("temporaries"), nb::arg("result"), nb::arg("out").noconvert(),
          "Runs a rank program over its columns into `out`. Twin: tests.oracles.rank_program.evaluate");
    m.def("rank_program_operations", [] {
        nb::list names;
        for (const char* name : operation_names()) names.append(nb::str(name));
        return names;
    });
}

}  // namespace paperwasp
