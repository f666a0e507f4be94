// The inner loops of max_similarity.cpp, once for each generation of machine: that file includes this one in a namespace of its own, with
//   LANES_TARGET  the attribute that lets functions use the generation's instructions
//   LANES_BYTES   the size of its vectors; LANES_ROWS how many rows are worked at a time, so that all sums stay in registers
//   LANES_FUSED   its fused multiply-add of vectors, by the type of a cell; where it has none, fma() for one lane after another
// No include guard. The order of all sums is the same in each generation, and so is every number.
//
// Lanes are vectors of the query: a cell of a row is multiplied with all of them at once, so that nothing is added across lanes.

template <typename T>
struct Lanes {
    static constexpr size_t COUNT = LANES_BYTES / sizeof(T);
    typedef T type __attribute__((vector_size(LANES_BYTES)));
};

template <typename T>
PAPERWASP_INLINE LANES_TARGET void add_product(typename Lanes<T>::type& sum, const typename Lanes<T>::type& tokens, T cell) {
#ifdef LANES_FUSED
    sum = LANES_FUSED(T, tokens, cell, sum);
#else
    for (size_t lane = 0; lane < Lanes<T>::COUNT; ++lane) sum[lane] = std::fma(tokens[lane], cell, sum[lane]);
#endif
}

// The greatest of the dot products of some rows and WIDE vectors of tokens, cell by cell: tokens[cell][token].
template <typename T, size_t ROWS, size_t WIDE>
PAPERWASP_INLINE LANES_TARGET void raise_by_rows(const T* tokens, const T* rows, size_t size, T* best) {
    using Vector = typename Lanes<T>::type;
    constexpr size_t LINE = 64 / sizeof(T);
    Vector sums[ROWS][WIDE] = {};
    for (size_t from = 0; from < size; from += LINE) {
        // The rows that follow are on their way while these are worked. Beyond the last there may be nothing, and that is no harm.
        const uintptr_t ahead = reinterpret_cast<uintptr_t>(rows) + (ROWS * size + from) * sizeof(T);
        for (size_t row = 0; row < ROWS; ++row) __builtin_prefetch(reinterpret_cast<const void*>(ahead + row * size * sizeof(T)));
        const size_t to = std::min(size, from + LINE);
        for (size_t cell = from; cell < to; ++cell) {
            Vector given[WIDE];
            for (size_t part = 0; part < WIDE; ++part)
                std::memcpy(&given[part], tokens + (cell * WIDE + part) * Lanes<T>::COUNT, sizeof(Vector));
#pragma GCC unroll 16
            for (size_t row = 0; row < ROWS; ++row)
#pragma GCC unroll 2
                for (size_t part = 0; part < WIDE; ++part) add_product<T>(sums[row][part], given[part], rows[row * size + cell]);
        }
    }
    for (size_t part = 0; part < WIDE; ++part) {
        Vector most;
        std::memcpy(&most, best + part * Lanes<T>::COUNT, sizeof most);
        for (size_t row = 0; row < ROWS; ++row) most = sums[row][part] > most ? sums[row][part] : most;
        std::memcpy(best + part * Lanes<T>::COUNT, &most, sizeof most);
    }
}

template <typename T, size_t WIDE>
PAPERWASP_INLINE LANES_TARGET void raise_by(size_t count, const T* tokens, const T* rows, size_t size, T* best) {
    if (count == LANES_ROWS)
        raise_by_rows<T, LANES_ROWS, WIDE>(tokens, rows, size, best);
    else if (count == 4)
        raise_by_rows<T, 4, WIDE>(tokens, rows, size, best);
    else
        raise_by_rows<T, 1, WIDE>(tokens, rows, size, best);
}

// `tokens`: of each two vectors of tokens (of one, at the end) their cells, as above; `best` is raised to the dot products of all rows.
template <typename T>
LANES_TARGET void raise_by_dots(const T* tokens, size_t token_count, const T* rows, size_t count, size_t size, T* best) {
    constexpr size_t LANES = Lanes<T>::COUNT;
    for (size_t row = 0, step; row < count; row += step) {
        step = count - row >= LANES_ROWS ? LANES_ROWS : count - row >= 4 ? 4 : 1;
        size_t token = 0;
        for (; token + 2 * LANES <= token_count; token += 2 * LANES)
            raise_by<T, 2>(step, tokens + token * size, rows + row * size, size, best + token);
        if (token < token_count) raise_by<T, 1>(step, tokens + token * size, rows + row * size, size, best + token);
    }
}

// The same of rows of bits, the first bit of an octet being its highest. `sums`: for each vector of tokens, each four cells and each choice
// of these, the sum of the chosen ones: sums[token / LANES][cell / 4][choice][token % LANES].
template <typename T, size_t ROWS>
PAPERWASP_INLINE LANES_TARGET void raise_by_chosen(const T* sums, const uint8_t* rows, size_t octets, T* best) {
    using Vector = typename Lanes<T>::type;
    constexpr size_t LANES = Lanes<T>::COUNT;
    Vector totals[ROWS] = {}, high, low, most;
    for (size_t octet = 0; octet < octets; ++octet) {
        const T* here = sums + octet * 32 * LANES;
        for (size_t row = 0; row < ROWS; ++row) {
            const size_t bits = rows[row * octets + octet];
            std::memcpy(&high, here + (bits >> 4) * LANES, sizeof high);
            std::memcpy(&low, here + (16 + (bits & 15)) * LANES, sizeof low);
            totals[row] += high;
            totals[row] += low;
        }
    }
    std::memcpy(&most, best, sizeof most);
    for (size_t row = 0; row < ROWS; ++row) most = totals[row] > most ? totals[row] : most;
    std::memcpy(best, &most, sizeof most);
}

template <typename T>
LANES_TARGET void raise_by_bits(const T* sums, size_t token_count, const uint8_t* rows, size_t count, size_t octets, T* best) {
    constexpr size_t LANES = Lanes<T>::COUNT;
    for (size_t token = 0; token < token_count; token += LANES) {
        const T* here = sums + token * octets * 32;
        size_t row = 0;
        for (; row + 4 <= count; row += 4) raise_by_chosen<T, 4>(here, rows + row * octets, octets, best + token);
        for (; row < count; ++row) raise_by_chosen<T, 1>(here, rows + row * octets, octets, best + token);
    }
}

template <typename T>
constexpr Generation<T> generation() {
    return {Lanes<T>::COUNT, &raise_by_dots<T>, &raise_by_bits<T>};
}
