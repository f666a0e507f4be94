// Nearest neighbours by a graph (HNSW), over the vectors of a column: nodes are its rows. The plain twin, which looks at all vectors, is in
// tests/oracles/hnsw.py.
//
// The column's cells are given with each call: (rows, dimensions), of the column's type, bfloat16 as the upper halves of floats; a reader
// gives those of its view, which may be older than the graph: nodes beyond are not looked at. Rows never change while they are in a graph.
// One thread writes at a time; searches take no lock, and may run beside it. How the parts work: hnsw_graph.hpp (memory), hnsw_space.hpp
// (distances), hnsw_search.cpp and hnsw_walk.cpp (searching), hnsw_insert.cpp, hnsw_tree.cpp (what keeps all together), hnsw_mend.cpp
// (removing), hnsw_saved.cpp (arrays for files).
//
// Malkov, Yashunin: Efficient and robust approximate nearest neighbor search using hierarchical navigable small world graphs, 2018.
#include "vectors/hnsw.hpp"
#include "arrays.hpp"
#include "clock.hpp"
#include "core.hpp"
#include "vectors/hnsw_index.hpp"
#include "vectors/hnsw_search.hpp"

#include <nanobind/stl/optional.h>

#include <algorithm>

namespace paperwasp {
namespace {

using namespace hnsw;

using Cells = VectorCells;
using Query = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::dlpack::dtype type_of(uint32_t cell, bool query) {
    switch (cell) {
        case FLOAT64:
            return nb::dtype<double>();
        case FLOAT32:
            return nb::dtype<float>();
        case BFLOAT16:
            return query ? nb::dtype<float>() : nb::dtype<uint16_t>();
        default:
            return nb::dtype<int8_t>();
    }
}

template <typename T>
std::unique_ptr<std::vector<T>> moved(std::vector<T>* values) {
    return std::make_unique<std::vector<T>>(std::move(*values));
}

Shape checked_shape(uint32_t metric, uint32_t cell, size_t dimensions) {
    if (metric >= METRICS) throw std::invalid_argument("no such metric");
    if (cell >= CELLS) throw std::invalid_argument("no such type of cells");
    if (dimensions == 0 || dimensions > (size_t{1} << 24)) throw std::invalid_argument("no vectors of this size");
    if (metric == GEODEGREES && dimensions != 2) throw std::invalid_argument("a place has two cells");
    return {metric, cell, dimensions};
}

void check_threads(size_t threads) {
    if (threads == 0 || threads > 256) throw std::invalid_argument("no such number of threads");
}

class Hnsw {
  public:
    Hnsw(uint32_t metric, uint32_t cell, size_t dimensions, uint32_t max_links, uint32_t explore_at_insert) {
        const Shape shape = checked_shape(metric, cell, dimensions);
        if (max_links < 2 || max_links > MOST_LINKS) throw std::invalid_argument("no graph with so many links");
        index_ = std::make_unique<Index>(shape, max_links, explore_at_insert);
    }
    explicit Hnsw(std::unique_ptr<Index> index) : index_(std::move(index)) {}

    void add(Cells cells, In<uint32_t> nodes, In<uint32_t> owners, size_t threads) {
        const Column of = column(cells);
        if (nodes.size() != owners.size()) throw std::invalid_argument("an owner for each node");
        const Records records = index_->graph().records(MOST_NODES);
        for (size_t i = 0; i < nodes.size(); ++i) {
            const uint32_t node = nodes.data()[i];
            if (node >= of.rows || node >= MOST_NODES) throw std::invalid_argument("no such row");
            if (node < records.limit && load(&records.node(node).state) != ABSENT) throw std::invalid_argument("a node that was there");
            if (i > 0 && node <= nodes.data()[i - 1]) throw std::invalid_argument("nodes are not in order");
        }
        check_threads(threads);
        const Unlocked release;
        index_->add(of, nodes.data(), owners.data(), nodes.size(), threads);
    }

    void remove(Cells cells, In<uint32_t> nodes) {
        const Column of = column(cells);
        if (of.rows < index_->graph().size()) throw std::invalid_argument("fewer rows than nodes");
        const Unlocked release;
        index_->remove(of, nodes.data(), nodes.size());
    }

    nb::tuple search(Cells cells, Query query, size_t count, size_t explore, std::optional<In<uint64_t>> accept, uint32_t limit,
                     double threshold, bool filter_first, double exploration, double slack, int64_t end_ns) const {
        const Column of = column(cells);
        const Shape& shape = index_->shape();
        if (query.dtype() != type_of(shape.cell, true) || query.shape(0) != shape.dimensions)
            throw std::invalid_argument("a query of another type or size");
        Wanted wanted{count, explore, nullptr, 0, limit, threshold, filter_first, exploration, slack, end_ns};
        if (accept) wanted.accept = accept->data(), wanted.accept_words = accept->size();
        std::vector<Hit> hits;
        {
            const GilRelease release(is_much(steps_of(*index_, wanted)));
            hits = find(*index_, of, query.data(), wanted);
        }
        return as_arrays(hits);
    }

    Hnsw renumbered(Cells cells, In<uint32_t> numbers, In<uint32_t> owners) const {
        const Column of = column(cells);
        if (numbers.size() != owners.size()) throw std::invalid_argument("an owner for each node");
        if (numbers.size() >= MOST_NODES) throw std::invalid_argument("too many nodes");
        const Unlocked release;
        return Hnsw(index_->renumbered(of, numbers.data(), owners.data(), numbers.size()));
    }

    nb::tuple arrays() const {
        Saved saved;
        {
            const Unlocked release;
            saved = index_->saved();
        }
        return nb::make_tuple(own(moved(&saved.header)), own(moved(&saved.levels)), own(moved(&saved.owners)), own(moved(&saved.counts)),
                              own(moved(&saved.links)), own(moved(&saved.parents)));
    }

    static Hnsw from_arrays(uint32_t metric, uint32_t cell, size_t dimensions, uint32_t max_links, uint32_t explore_at_insert, Cells cells,
                            In<uint64_t> header, In<uint8_t> levels, In<uint32_t> owners, In<uint32_t> counts, In<uint32_t> links,
                            In<uint32_t> parents, size_t threads) {
        Hnsw empty(metric, cell, dimensions, max_links, explore_at_insert);
        const Column of = empty.column(cells);
        if (levels.size() != owners.size()) throw std::invalid_argument("an owner for each node");
        check_threads(threads);
        const SavedView saved{header.data(), header.size(), levels.data(), owners.data(),  levels.size(), counts.data(),
                              counts.size(), links.data(),  links.size(),  parents.data(), parents.size()};
        const Unlocked release;
        return Hnsw(Index::load_saved(empty.index_->shape(), max_links, explore_at_insert, of, saved, threads));
    }

    const Index& index() const { return *index_; }
    Column column(const Cells& cells) const {
        const Shape& shape = index_->shape();
        if (cells.dtype() != type_of(shape.cell, false)) throw std::invalid_argument("cells of another type");
        if (cells.shape(1) != shape.dimensions) throw std::invalid_argument("vectors of another size");
        return {static_cast<const char*>(cells.data()), cells.shape(0), shape.dimensions * shape.cell_bytes()};
    }

    uint32_t nodes() const { return index_->live(); }
    size_t size_bytes() const { return index_->graph().size_bytes(); }

  private:
    static nb::tuple as_arrays(const std::vector<Hit>& hits) {
        auto owners = std::make_unique<std::vector<uint32_t>>(), nodes = std::make_unique<std::vector<uint32_t>>();
        auto distances = std::make_unique<std::vector<double>>();
        for (const Hit& hit : hits) {
            owners->push_back(hit.owner);
            distances->push_back(hit.distance);
            nodes->push_back(hit.node);
        }
        return nb::make_tuple(own(std::move(owners)), own(std::move(distances)), own(std::move(nodes)));
    }

    std::unique_ptr<Index> index_;
};

}  // namespace

GraphOfColumn graph_of(nb::handle graph, const VectorCells& cells) {
    const Hnsw& found = nb::cast<const Hnsw&>(graph);
    return {&found.index(), found.column(cells)};
}

void bind_hnsw(nb::module_& m) {
    nb::class_<Hnsw>(m, "Hnsw")
        .def(nb::init<uint32_t, uint32_t, size_t, uint32_t, uint32_t>(), nb::arg("metric"), nb::arg("cell_type"), nb::arg("dimensions"),
             nb::arg("max_links"), nb::arg("explore_at_insert"))
        .def("add", &Hnsw::add, nb::arg("cells").noconvert(), nb::arg("nodes").noconvert(), nb::arg("owners").noconvert(),
             nb::arg("threads") = 1)
        .def("remove", &Hnsw::remove, nb::arg("cells").noconvert(), nb::arg("nodes").noconvert())
        .def("search", &Hnsw::search, nb::arg("cells").noconvert(), nb::arg("query").noconvert(), nb::arg("count"), nb::arg("explore"),
             nb::arg("accept").noconvert().none(), nb::arg("limit"), nb::arg("threshold"), nb::arg("filter_first"), nb::arg("exploration"),
             nb::arg("slack"), nb::arg("end_ns") = 0)
        .def("renumbered", &Hnsw::renumbered, nb::arg("cells").noconvert(), nb::arg("numbers").noconvert(), nb::arg("owners").noconvert())
        .def("arrays", &Hnsw::arrays)
        .def_static("from_arrays", &Hnsw::from_arrays, nb::arg("metric"), nb::arg("cell_type"), nb::arg("dimensions"), nb::arg("max_links"),
                    nb::arg("explore_at_insert"), nb::arg("cells").noconvert(), nb::arg("header").noconvert(),
                    nb::arg("levels").noconvert(), nb::arg("owners").noconvert(), nb::arg("counts").noconvert(),
                    nb::arg("links").noconvert(), nb::arg("parents").noconvert(), nb::arg("threads") = 1)
        .def_prop_ro("nodes", &Hnsw::nodes)
        .def_prop_ro("size_bytes", &Hnsw::size_bytes);
}

}  // namespace paperwasp
