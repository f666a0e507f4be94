// A file system in memory that knows what was synced, for power cuts: disk MOUNT SOURCE RESULT SEED [CAPACITY]
//
// It begins with a copy of SOURCE, all of it durable. SIGUSR1 is the power cut: nothing is served any more, and what a
// disk could have at that moment is written to RESULT: all that was synced, and by chance nothing, a part, or all of
// the rest. Data is durable after fsync of the file, a name after fsync of its folder; a rename is never done by half.
// What is written to a sector of 512 bytes at once is there or not. Pages of shared writable mappings come as writes.
// CAPACITY bytes are all there is room for. SIGUSR2 lets half of all writes and syncs fail with EIO until the next one;
// data whose sync failed is lost in a cut, as the kernel drops it.
#define FUSE_USE_VERSION 34
#include <fuse3/fuse_lowlevel.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace files = std::filesystem;
constexpr double kForever = 1e6;
constexpr size_t kSector = 512;

struct Write {  // or a new size, where `data` is empty
    uint64_t step;
    size_t offset;
    std::string data;
};

struct Node {
    mode_t mode = 0;
    int links = 0;
    uint64_t known = 0;
    time_t changed = 0;
    std::string content, durable;
    std::vector<Write> unsynced;
    std::map<std::string, fuse_ino_t> names;
    std::map<std::string, std::pair<uint64_t, fuse_ino_t>> durable_names;  // with the step that made it so; 0: removed
    bool is_directory() const { return S_ISDIR(mode); }
};

struct Naming {
    fuse_ino_t directory;
    std::string name;
    fuse_ino_t node;  // 0: removed
};

struct Change {  // of names, all at once
    uint64_t step;
    std::vector<Naming> namings;
};

std::map<fuse_ino_t, Node> nodes;
std::vector<Change> unsynced_names;
uint64_t last_step = 0;
fuse_ino_t last_node = FUSE_ROOT_ID;
size_t capacity = SIZE_MAX, used = 0;
volatile sig_atomic_t is_failing = 0;
fuse_session* session = nullptr;
std::mt19937_64 chance;

bool maybe(double share) { return std::uniform_real_distribution<>()(chance) < share; }
size_t below(size_t end) { return end == 0 ? 0 : chance() % end; }
bool fails() { return is_failing && maybe(0.5); }

fuse_ino_t make(mode_t mode) {
    Node& node = nodes[++last_node];
    node.mode = mode;
    node.changed = time(nullptr);
    return last_node;
}

void put_in(std::string& content, const Write& write, size_t begin = 0, size_t end = SIZE_MAX) {
    if (write.data.empty()) {
        content.resize(write.offset);
        return;
    }
    end = std::min(end, write.data.size());
    if (begin >= end) return;
    if (content.size() < write.offset + end) content.resize(write.offset + end);
    std::memcpy(content.data() + write.offset + begin, write.data.data() + begin, end - begin);
}

void name(std::vector<Naming> namings) {
    for (const Naming& each : namings) {
        Node& directory = nodes[each.directory];
        directory.changed = time(nullptr);
        auto found = directory.names.find(each.name);
        if (found != directory.names.end()) {
            nodes[found->second].links--;
            directory.names.erase(found);
        }
        if (each.node != 0) {
            directory.names[each.name] = each.node;
            nodes[each.node].links++;
        }
    }
    unsynced_names.push_back({++last_step, std::move(namings)});
}

void make_durable(const Change& change) {
    for (const Naming& each : change.namings) {
        auto& known = nodes[each.directory].durable_names[each.name];
        if (known.first <= change.step) known = {change.step, each.node};
    }
}

// What is there of `data` after a cut: all, nothing, or some of its sectors.
void apply_torn(std::string& content, const Write& write, double share) {
    size_t first = write.offset / kSector;
    size_t last = (write.offset + std::max<size_t>(write.data.size(), 1) - 1) / kSector;
    for (size_t sector = first; sector <= last; sector++) {
        if (!maybe(share)) continue;
        size_t begin = sector == first ? 0 : sector * kSector - write.offset;
        put_in(content, write, begin, (sector + 1) * kSector - write.offset);
    }
}

void cut() {
    const double shares[] = {0, 0.1, 0.5, 0.9, 1};
    size_t way = below(5);
    uint64_t until = UINT64_MAX;
    double data_share = shares[below(5)], name_share = shares[below(5)];
    uint64_t earliest = last_step;
    for (const auto& change : unsynced_names) earliest = std::min(earliest, change.step);
    for (const auto& [_, node] : nodes)
        if (!node.unsynced.empty()) earliest = std::min(earliest, node.unsynced.front().step);
    if (way == 0) data_share = name_share = 0;                                                      // nothing but what was synced
    if (way == 1) data_share = 0, name_share = 1;                                                   // names come first
    if (way == 2) until = earliest + below(last_step - earliest + 2), data_share = name_share = 1;  // in order
    if (way == 3) data_share = name_share = 1;  // all but, perhaps, what was written last
    size_t lost = 0, kept = 0;
    for (const Change& change : unsynced_names) {
        bool is_kept = change.step <= until && maybe(name_share);
        (is_kept ? kept : lost)++;
        if (is_kept) make_durable(change);
    }
    for (auto& [_, node] : nodes) {
        for (const Write& write : node.unsynced) {
            if (write.step > until) {
                lost++;
                continue;
            }
            bool is_last = write.step == until || (way == 3 && write.step == last_step);
            double share = is_last ? 0.5 : data_share;
            (share > 0 ? kept : lost)++;
            if (write.data.empty()) {
                if (maybe(share)) put_in(node.durable, write);
            } else if (is_last || (share > 0 && share < 1 && maybe(0.5))) {
                apply_torn(node.durable, write, share);
            } else if (maybe(share)) {
                put_in(node.durable, write);
            }
        }
    }
    std::fprintf(stderr, "cut in way %zu: %zu unsynced changes kept, at least in part, %zu lost\n", way, kept, lost);
}

void save(const files::path& path, fuse_ino_t number, std::map<fuse_ino_t, files::path>& saved) {
    Node& node = nodes[number];
    if (node.is_directory()) {
        files::create_directories(path);
        for (const auto& [each, known] : node.durable_names)
            if (known.second != 0) save(path / each, known.second, saved);
        return;
    }
    if (auto found = saved.find(number); found != saved.end()) {
        files::create_hard_link(found->second, path);
        return;
    }
    saved[number] = path;
    std::ofstream(path, std::ios::binary).write(node.durable.data(), std::streamsize(node.durable.size()));
    files::permissions(path, files::perms(node.mode & 07777));
}

void load(const files::path& path, fuse_ino_t number, std::map<ino_t, fuse_ino_t>& loaded) {
    for (const auto& entry : files::directory_iterator(path)) {
        struct stat found;
        if (stat(entry.path().c_str(), &found) != 0) continue;
        fuse_ino_t child = S_ISREG(found.st_mode) && loaded.count(found.st_ino) ? loaded[found.st_ino] : 0;
        if (child == 0) {
            child = make(found.st_mode);
            loaded[found.st_ino] = child;
            if (S_ISREG(found.st_mode)) {
                std::ostringstream content;
                content << std::ifstream(entry.path(), std::ios::binary).rdbuf();
                nodes[child].content = nodes[child].durable = content.str();
                used += nodes[child].content.size();
            }
        }
        name({{number, entry.path().filename().string(), child}});
        if (S_ISDIR(found.st_mode)) load(entry.path(), child, loaded);
    }
}

// Requests

struct stat status(fuse_ino_t number) {
    const Node& node = nodes[number];
    struct stat found = {};
    found.st_ino = number;
    found.st_mode = node.mode;
    found.st_nlink = nlink_t(node.links + (node.is_directory() ? 2 : 0));
    found.st_size = off_t(node.content.size());
    found.st_blocks = blkcnt_t((node.content.size() + 511) / 512);
    found.st_blksize = 4096;
    found.st_mtime = found.st_ctime = found.st_atime = node.changed;
    return found;
}

fuse_entry_param entry_of(fuse_ino_t number) {
    fuse_entry_param entry = {};
    entry.ino = number;
    entry.attr = status(number);
    entry.attr_timeout = entry.entry_timeout = kForever;
    nodes[number].known++;
    return entry;
}

void drop_if_unused(fuse_ino_t number) {
    Node& node = nodes[number];  // what may come back by a cut stays
    if (node.links == 0 && node.known == 0 && !node.is_directory()) {
        used -= node.content.size();
        node.content.clear();
        node.content.shrink_to_fit();
    }
}

fuse_ino_t child_of(fuse_ino_t parent, const char* text) {
    auto& names = nodes[parent].names;
    auto found = names.find(text);
    return found == names.end() ? 0 : found->second;
}

void lookup(fuse_req_t request, fuse_ino_t parent, const char* text) {
    fuse_ino_t found = child_of(parent, text);
    if (found == 0) {
        fuse_reply_err(request, ENOENT);
        return;
    }
    fuse_entry_param entry = entry_of(found);
    fuse_reply_entry(request, &entry);
}

void forget(fuse_req_t request, fuse_ino_t number, uint64_t count) {
    nodes[number].known -= std::min(count, nodes[number].known);
    drop_if_unused(number);
    fuse_reply_none(request);
}

void getattr(fuse_req_t request, fuse_ino_t number, fuse_file_info*) {
    struct stat found = status(number);
    fuse_reply_attr(request, &found, kForever);
}

bool resize(Node& node, size_t size) {
    if (size > node.content.size() && used + size - node.content.size() > capacity) return false;
    used += size - node.content.size();
    node.content.resize(size);
    node.unsynced.push_back({++last_step, size, ""});
    return true;
}

void setattr(fuse_req_t request, fuse_ino_t number, struct stat* wanted, int which, fuse_file_info*) {
    Node& node = nodes[number];
    if (which & FUSE_SET_ATTR_MODE) node.mode = (node.mode & S_IFMT) | (wanted->st_mode & 07777);
    if ((which & FUSE_SET_ATTR_SIZE) && !resize(node, size_t(wanted->st_size))) {
        fuse_reply_err(request, ENOSPC);
        return;
    }
    node.changed = time(nullptr);
    getattr(request, number, nullptr);
}

void mkdir(fuse_req_t request, fuse_ino_t parent, const char* text, mode_t mode) {
    if (child_of(parent, text) != 0) {
        fuse_reply_err(request, EEXIST);
        return;
    }
    fuse_ino_t made = make(S_IFDIR | mode);
    name({{parent, text, made}});
    fuse_entry_param entry = entry_of(made);
    fuse_reply_entry(request, &entry);
}

void create(fuse_req_t request, fuse_ino_t parent, const char* text, mode_t mode, fuse_file_info* file) {
    fuse_ino_t made = child_of(parent, text);
    if (made == 0) {
        if (used + 4096 > capacity) {
            fuse_reply_err(request, ENOSPC);
            return;
        }
        made = make(S_IFREG | mode);
        name({{parent, text, made}});
    }
    fuse_entry_param entry = entry_of(made);
    file->keep_cache = 1;
    fuse_reply_create(request, &entry, file);
}

void unlink(fuse_req_t request, fuse_ino_t parent, const char* text) {
    fuse_ino_t found = child_of(parent, text);
    if (found == 0) {
        fuse_reply_err(request, ENOENT);
        return;
    }
    if (nodes[found].is_directory() && !nodes[found].names.empty()) {
        fuse_reply_err(request, ENOTEMPTY);
        return;
    }
    name({{parent, text, 0}});
    drop_if_unused(found);
    fuse_reply_err(request, 0);
}

void rename(fuse_req_t request, fuse_ino_t from, const char* text, fuse_ino_t to, const char* other, unsigned flags) {
    fuse_ino_t moved = child_of(from, text), replaced = child_of(to, other);
    int error = moved == 0 ? ENOENT : flags != 0 ? EINVAL : 0;
    if (replaced != 0 && nodes[replaced].is_directory() && !nodes[replaced].names.empty()) error = ENOTEMPTY;
    if (error == 0 && moved != replaced) name({{from, text, 0}, {to, other, moved}});
    if (replaced != 0 && error == 0) drop_if_unused(replaced);
    fuse_reply_err(request, error);
}

void link(fuse_req_t request, fuse_ino_t number, fuse_ino_t parent, const char* text) {
    if (child_of(parent, text) != 0) {
        fuse_reply_err(request, EEXIST);
        return;
    }
    name({{parent, text, number}});
    fuse_entry_param entry = entry_of(number);
    fuse_reply_entry(request, &entry);
}

void open(fuse_req_t request, fuse_ino_t number, fuse_file_info* file) {
    if ((file->flags & O_TRUNC) && !nodes[number].content.empty()) resize(nodes[number], 0);
    file->keep_cache = 1;
    fuse_reply_open(request, file);
}

void read(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset, fuse_file_info*) {
    const std::string& content = nodes[number].content;
    size_t begin = std::min(size_t(offset), content.size());
    fuse_reply_buf(request, content.data() + begin, std::min(size, content.size() - begin));
}

void write(fuse_req_t request, fuse_ino_t number, const char* data, size_t size, off_t offset, fuse_file_info*) {
    Node& node = nodes[number];
    size_t end = size_t(offset) + size, grown = end > node.content.size() ? end - node.content.size() : 0;
    if (fails() || used + grown > capacity) {
        fuse_reply_err(request, used + grown > capacity ? ENOSPC : EIO);
        return;
    }
    used += grown;
    node.unsynced.push_back({++last_step, size_t(offset), std::string(data, size)});
    put_in(node.content, node.unsynced.back());
    node.changed = time(nullptr);
    fuse_reply_write(request, size);
}

void allocate(fuse_req_t request, fuse_ino_t number, int mode, off_t offset, off_t length, fuse_file_info*) {
    size_t end = size_t(offset) + size_t(length);
    bool grows = mode == 0 && end > nodes[number].content.size();
    fuse_reply_err(request, mode != 0 ? EOPNOTSUPP : grows && !resize(nodes[number], end) ? ENOSPC : 0);
}

void fsync(fuse_req_t request, fuse_ino_t number, int, fuse_file_info*) {
    Node& node = nodes[number];
    bool has_failed = fails();
    if (!has_failed)
        for (const Write& each : node.unsynced) put_in(node.durable, each);
    node.unsynced.clear();
    fuse_reply_err(request, has_failed ? EIO : 0);
}

void fsyncdir(fuse_req_t request, fuse_ino_t number, int, fuse_file_info*) {
    if (fails()) {
        fuse_reply_err(request, EIO);
        return;
    }
    auto concerns = [number](const Change& change) {
        return std::any_of(change.namings.begin(), change.namings.end(), [number](const Naming& each) { return each.directory == number; });
    };
    for (const Change& change : unsynced_names)
        if (concerns(change)) make_durable(change);
    unsynced_names.erase(std::remove_if(unsynced_names.begin(), unsynced_names.end(), concerns), unsynced_names.end());
    fuse_reply_err(request, 0);
}

void readdir(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset, fuse_file_info*) {
    std::vector<char> buffer(size);
    size_t filled = 0;
    off_t place = 0;
    for (const auto& [text, child] : nodes[number].names) {
        if (++place <= offset) continue;
        struct stat found = status(child);
        size_t taken = fuse_add_direntry(request, buffer.data() + filled, size - filled, text.c_str(), &found, place);
        if (taken > size - filled) break;
        filled += taken;
    }
    fuse_reply_buf(request, buffer.data(), filled);
}

void statfs(fuse_req_t request, fuse_ino_t) {
    struct statvfs found = {};
    size_t room = std::min(capacity, size_t(64) << 30);
    found.f_bsize = found.f_frsize = 4096;
    found.f_blocks = room / 4096;
    found.f_bfree = found.f_bavail = (room - std::min(room, used)) / 4096;
    found.f_files = found.f_ffree = found.f_favail = 1 << 20;
    found.f_namemax = 255;
    fuse_reply_statfs(request, &found);
}

void end(int) { fuse_session_exit(session); }
void fail(int) { is_failing = !is_failing; }

}  // namespace

int main(int count, char** arguments) {
    if (count < 5) {
        std::fprintf(stderr, "disk MOUNT SOURCE RESULT SEED [CAPACITY]\n");
        return 2;
    }
    files::path mount = arguments[1], source = arguments[2], result = arguments[3];
    chance.seed(std::strtoull(arguments[4], nullptr, 10));
    nodes[FUSE_ROOT_ID].mode = S_IFDIR | 0755;
    std::map<ino_t, fuse_ino_t> loaded;
    load(source, FUSE_ROOT_ID, loaded);
    for (const Change& change : unsynced_names) make_durable(change);
    unsynced_names.clear();
    if (count > 5) capacity = used + std::strtoull(arguments[5], nullptr, 10);

    fuse_lowlevel_ops operations = {};
    operations.lookup = lookup;
    operations.forget = forget;
    operations.getattr = getattr;
    operations.setattr = setattr;
    operations.mkdir = mkdir;
    operations.create = create;
    operations.unlink = unlink;
    operations.rmdir = unlink;
    operations.rename = rename;
    operations.link = link;
    operations.open = open;
    operations.read = read;
    operations.write = write;
    operations.fsync = fsync;
    operations.fsyncdir = fsyncdir;
    operations.readdir = readdir;
    operations.statfs = statfs;
    operations.fallocate = allocate;
    char program[] = "disk", option[] = "-oallow_other,default_permissions,fsname=cut";
    char* given[] = {program, option, nullptr};
    fuse_args options = FUSE_ARGS_INIT(2, given);
    session = fuse_session_new(&options, &operations, sizeof operations, nullptr);
    if (session == nullptr || fuse_session_mount(session, mount.c_str()) != 0) return 1;
    struct sigaction action = {};
    action.sa_handler = end;
    sigaction(SIGUSR1, &action, nullptr);
    action.sa_handler = fail;
    sigaction(SIGUSR2, &action, nullptr);
    std::puts("ready");
    std::fflush(stdout);
    fuse_session_loop(session);
    cut();
    std::map<fuse_ino_t, files::path> saved;
    save(result, FUSE_ROOT_ID, saved);
    fuse_session_unmount(session);
    return 0;
}
