// The extension module paperwasp.core._core: binds every kernel file.
#include "core.hpp"

// Numbers stand in files and arrays of bytes as the machine has them, and all formats on disk are little-endian.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "paperwasp needs a little-endian machine");

// What binds something, by wings: each is a function `bind_…` of a file.
// clang-format off
#define KERNELS(BIND)                                                                                                          \
    /* shared */     BIND(clock) BIND(unlocked) BIND(object_memory) BIND(siphash) BIND(xxh3)                                   \
    /* documents */  BIND(gid_map) BIND(global_id) BIND(members) BIND(operation_records) BIND(log_records) BIND(plain_change)  \
                     BIND(plain_columns) BIND(document_answers) BIND(plain_fields) BIND(json_scan) BIND(list_numbers)          \
                     BIND(repeated_names) BIND(lz4) BIND(row_files) BIND(page)                                                 \
    /* text */       BIND(word_set) BIND(vocabulary) BIND(query_parts) BIND(text_marker) BIND(marked_members)                  \
    /* index */      BIND(lexicon) BIND(field_index) BIND(field_index_check) BIND(term_bits) BIND(reader) BIND(positions)      \
    /* attributes */ BIND(attribute) BIND(value_sets) BIND(text_scan) BIND(products) BIND(column_numbers) BIND(places)         \
                     BIND(predicate) BIND(sorting) BIND(elements) BIND(column_strings) BIND(group_rows) BIND(group_values)     \
                     BIND(group_order)                                                                                         \
    /* vectors */    BIND(distances) BIND(hnsw) BIND(nearest_hits) BIND(nearness) BIND(vector_text) BIND(dots)                 \
                     BIND(max_similarity)                                                                                      \
    /* rank */       BIND(top_k) BIND(weak_and) BIND(bm25) BIND(best_dots) BIND(rank_program) BIND(native_rank) BIND(best_of)  \
                     BIND(native_best) BIND(native_scores) BIND(field_match) BIND(element_match) BIND(term_order) BIND(forest) \
    /* plans */      BIND(snapshot) BIND(plan_records) BIND(plan) BIND(plan_pool)                                              \
    /* http */       BIND(feed_sockets) BIND(answer_socket) BIND(loop_socket) BIND(text_route) BIND(text_routes)               \
                     BIND(watched_sockets) BIND(request_text) BIND(http1_line) BIND(http2) BIND(http2_client)
// clang-format on

namespace paperwasp {
#define DECLARE(name) void bind_##name(nb::module_& m);
KERNELS(DECLARE)
}  // namespace paperwasp

NB_MODULE(_core, m) {
    // A process that ends while threads or caches still hold objects is no leak worth a page of text.
    nanobind::set_leak_warnings(false);
    m.doc() = "Compiled kernels of paperwasp. What each must compute is in tests/oracles.";
#define CALL(name) paperwasp::bind_##name(m);
    KERNELS(CALL)
}
