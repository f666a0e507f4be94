// The extension module paperwasp.core._core: binds every kernel file.
#include "core.hpp"

// Numbers stand in files and arrays of bytes as the machine has them, and all formats on disk are little-endian.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "paperwasp needs a little-endian machine");

namespace paperwasp {
void bind_clock(nb::module_& m);
void bind_lexicon(nb::module_& m);
void bind_word_set(nb::module_& m);
void bind_term_bits(nb::module_& m);
void bind_reader(nb::module_& m);
void bind_positions(nb::module_& m);
void bind_field_index(nb::module_& m);
void bind_field_index_check(nb::module_& m);
void bind_top_k(nb::module_& m);
void bind_weak_and(nb::module_& m);
void bind_bm25(nb::module_& m);
void bind_attribute(nb::module_& m);
void bind_value_sets(nb::module_& m);
void bind_text_scan(nb::module_& m);
void bind_products(nb::module_& m);
void bind_distances(nb::module_& m);
void bind_hnsw(nb::module_& m);
void bind_nearest_hits(nb::module_& m);
void bind_column_numbers(nb::module_& m);
void bind_dots(nb::module_& m);
void bind_places(nb::module_& m);
void bind_gid_map(nb::module_& m);
void bind_global_id(nb::module_& m);
void bind_rank_program(nb::module_& m);
void bind_native_rank(nb::module_& m);
void bind_native_scores(nb::module_& m);
void bind_field_match(nb::module_& m);
void bind_element_match(nb::module_& m);
void bind_term_order(nb::module_& m);
void bind_forest(nb::module_& m);
void bind_predicate(nb::module_& m);
void bind_sorting(nb::module_& m);
void bind_siphash(nb::module_& m);
void bind_xxh3(nb::module_& m);
void bind_elements(nb::module_& m);
void bind_max_similarity(nb::module_& m);
void bind_members(nb::module_& m);
void bind_json_scan(nb::module_& m);
void bind_list_numbers(nb::module_& m);
void bind_repeated_names(nb::module_& m);
void bind_lz4(nb::module_& m);
void bind_row_files(nb::module_& m);
void bind_page(nb::module_& m);
void bind_vocabulary(nb::module_& m);
void bind_query_parts(nb::module_& m);
void bind_text_marker(nb::module_& m);
void bind_marked_members(nb::module_& m);
void bind_group_rows(nb::module_& m);
void bind_group_values(nb::module_& m);
void bind_group_order(nb::module_& m);
void bind_http2(nb::module_& m);
void bind_http2_client(nb::module_& m);
}  // namespace paperwasp

NB_MODULE(_core, m) {
    // A process that ends while threads or caches still hold objects is no leak worth a page of text.
    nanobind::set_leak_warnings(false);
    m.doc() = "Compiled kernels of paperwasp. Each has a plain NumPy twin in this package.";
    paperwasp::bind_clock(m);
    paperwasp::bind_lexicon(m);
    paperwasp::bind_word_set(m);
    paperwasp::bind_field_index(m);
    paperwasp::bind_field_index_check(m);
    paperwasp::bind_term_bits(m);
    paperwasp::bind_reader(m);
    paperwasp::bind_positions(m);
    paperwasp::bind_top_k(m);
    paperwasp::bind_weak_and(m);
    paperwasp::bind_bm25(m);
    paperwasp::bind_attribute(m);
    paperwasp::bind_value_sets(m);
    paperwasp::bind_text_scan(m);
    paperwasp::bind_products(m);
    paperwasp::bind_distances(m);
    paperwasp::bind_hnsw(m);
    paperwasp::bind_nearest_hits(m);
    paperwasp::bind_column_numbers(m);
    paperwasp::bind_dots(m);
    paperwasp::bind_places(m);
    paperwasp::bind_gid_map(m);
    paperwasp::bind_global_id(m);
    paperwasp::bind_rank_program(m);
    paperwasp::bind_native_rank(m);
    paperwasp::bind_native_scores(m);
    paperwasp::bind_field_match(m);
    paperwasp::bind_element_match(m);
    paperwasp::bind_term_order(m);
    paperwasp::bind_forest(m);
    paperwasp::bind_predicate(m);
    paperwasp::bind_sorting(m);
    paperwasp::bind_siphash(m);
    paperwasp::bind_xxh3(m);
    paperwasp::bind_elements(m);
    paperwasp::bind_max_similarity(m);
    paperwasp::bind_members(m);
    paperwasp::bind_json_scan(m);
    paperwasp::bind_list_numbers(m);
    paperwasp::bind_repeated_names(m);
    paperwasp::bind_lz4(m);
    paperwasp::bind_row_files(m);
    paperwasp::bind_page(m);
    paperwasp::bind_vocabulary(m);
    paperwasp::bind_query_parts(m);
    paperwasp::bind_text_marker(m);
    paperwasp::bind_marked_members(m);
    paperwasp::bind_group_rows(m);
    paperwasp::bind_group_values(m);
    paperwasp::bind_group_order(m);
    paperwasp::bind_http2(m);
    paperwasp::bind_http2_client(m);
}
