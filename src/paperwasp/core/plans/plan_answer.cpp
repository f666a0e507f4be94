// The answer of a run of a plan: the JSON of its hits, among which plan_groups.cpp writes the groups. See plan_run.hpp.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "clock.hpp"
#include "documents/json_number.hpp"
#include "plans/column_page.hpp"
#include "plans/plan_run.hpp"

namespace paperwasp {
namespace {

constexpr uint64_t ROOM_OF_HIT = 1024;  // bytes, about

constexpr double RELEVANCE_OF_GROUPS = 1.0;  // among the hits; hits with as much come first

void append_count(const char* form, uint64_t count, std::string& to) {
    char written[160];
    to.append(written, static_cast<size_t>(std::snprintf(written, sizeof written, form, static_cast<unsigned long long>(count))));
}

}  // namespace

// Writes the answer as container/search/rendering.py does. False: groups cannot be written.
bool PlanRun::write_hits(const std::vector<Scored>& hits) {
    Clock clock;
    const size_t end = std::min<size_t>(hits.size(), size_t{offset_} + hits_);
    answer_.reserve(256 + (end > offset_ ? (end - offset_) * ROOM_OF_HIT : 0));
    append_count("{\"root\":{\"id\":\"toplevel\",\"relevance\":1.0,\"fields\":{\"totalCount\":%llu}", total_, answer_);
    append_count(",\"coverage\":{\"coverage\":100,\"documents\":%llu,\"full\":true,\"nodes\":1,\"results\":1,\"resultsFull\":1}",
                 snapshot_.documents, answer_);
    bool needs_groups = !plan_.shown.facets.empty();
    const bool has_children = end > offset_ || needs_groups;
    if (has_children) answer_ += ",\"children\":[";
    bool is_first = true;
    const auto begin_child = [&] {
        if (!is_first) answer_ += ',';
        is_first = false;
    };
    const auto add_groups = [&] {
        if (!std::exchange(needs_groups, false)) return true;
        begin_child();
        return write_groups();
    };
    if (end > offset_) {
        std::optional<Page> page;
        std::optional<ColumnPage> column_page;
        if (!plan_.shown.columns.empty())
            column_page.emplace(*plan_.shown.form, shown_columns_);
        else if (plan_.shown.form)
            page.emplace(rows_, *plan_.shown.form, snapshot_.changed.data(), snapshot_.changed.size(), snapshot_.first_lid);
        const auto append_hit = [&](uint32_t lid, std::string_view relevance) {
            const uint8_t* const gid = snapshot_.gids.data() + lid * GID_BYTES;
            if (column_page) return column_page->append_hit(lid, relevance, gid, answer_, clock);
            return page && page->append_hit(lid, relevance, gid, answer_, clock);
        };
        std::string relevance;
        for (size_t hit = offset_; hit < end; ++hit) {
            if (!(hits[hit].score >= RELEVANCE_OF_GROUPS) && !add_groups()) return false;
            begin_child();
            relevance.clear();
            append_number(hits[hit].score, relevance);
            const size_t place = answer_.size();
            if (!append_hit(hits[hit].lid, relevance)) left_.push_back({place, hits[hit].lid, hits[hit].score});
        }
        shown_ = static_cast<uint32_t>(end - offset_);
    }
    if (!add_groups()) return false;
    answer_ += has_children ? "]}}" : "}}";
    return true;
}

}  // namespace paperwasp
