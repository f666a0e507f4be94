// The JSON of hits that show values of attributes alone, read from the columns of a snapshot: as render_values in documents/page.cpp writes
// them.
//
// Threads: any, without the interpreter's lock. Values are read as atomics, since the writer may change them in place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "clock.hpp"
#include "documents/page.hpp"
#include "plans/snapshot.hpp"

namespace paperwasp {

class ColumnPage {
  public:
    // columns: one for each key of the form, which has a prefix of ids.
    ColumnPage(const PageForm& form, const std::vector<const SnapshotColumn*>& columns) : form_(form), columns_(columns) {}

    // Appends the JSON of a hit. False, and nothing is appended: a column has no such row, or
    // its string is not known yet, or no text. Throws OutOfTime.
    bool append_hit(uint32_t lid, std::string_view relevance, const uint8_t* gid, std::string& to, Clock& clock) const;

  private:
    const PageForm& form_;
    const std::vector<const SnapshotColumn*>& columns_;
};

}  // namespace paperwasp
