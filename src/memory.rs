//! How much memory this process has and may still take, according to the system.

use crate::read;

/// Bytes of tensors that this process may still take: the least of what the machine, its control groups and its own
/// limits leave, without what the allocator will keep of them. `None` if the system says nothing.
pub fn free() -> Option<u128> {
    // One thread for each core, and the main one.
    let threads = std::thread::available_parallelism().map_or(1, usize::from).saturating_add(1);
    free_by(&|path| read::system(path), threads as u128)
}

/// The address space that a thread reserves, of which it uses only some: 8 MiB for its stack and, with glibc,
/// 64 MiB for allocations. If little is left, threads do with less.
const THREAD: u128 = 72 << 20;

/// The memory that the allocator keeps of what was released, at most: glibc gives the end of its heap back in pieces of up
/// to 64 MiB, and threads keep their own. Most of it is used again by what comes, so of little memory only a third.
const KEPT: u128 = 72 << 20;

/// Bytes of memory this process has, if the system says so.
pub fn resident() -> Option<u128> {
    in_kib(&read::system("/proc/self/status")?, "VmRSS:")
}

/// As [`free`] for a process that will have `threads` threads. `read` returns the text of a file of the
/// system, which Linux has. The files of a control group are those of version 1 or 2, and the limit of a
/// group also applies to the groups in it.
pub fn free_by(read: &dyn Fn(&str) -> Option<String>, threads: u128) -> Option<u128> {
    // Available and not free memory: the system gives back cached files when it is asked for memory.
    let machine = read("/proc/meminfo").and_then(|text| in_kib(&text, "MemAvailable:"));
    let status = read("/proc/self/status").unwrap_or_default();
    let limits = read("/proc/self/limits").unwrap_or_default();
    // An unlimited one has the word `unlimited` there, which is no number and so no bound.
    let under = |limit: &str, used: &str| -> Option<u128> {
        let line = limits.lines().find_map(|line| line.strip_prefix(limit))?;
        let most: u128 = line.split_whitespace().next()?.parse().ok()?;
        Some(most.saturating_sub(in_kib(&status, used)?))
    };
    let running = status.lines().find_map(|line| line.strip_prefix("Threads:")?.trim().parse().ok());
    // Threads that have not been started yet reserve address space of their own when they are.
    let to_come = threads.saturating_sub(running.unwrap_or(1)).saturating_mul(THREAD);
    let address =
        under("Max address space", "VmSize:").map(|left| left.saturating_sub(to_come.min(left / 2)));
    let data = under("Max data size", "VmData:");
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let groups = groups.lines().flat_map(|line| group(line, read));
    // The address space has room for what is kept already, in what threads reserve.
    let taken = [machine, data].into_iter().flatten().chain(groups).min();
    let taken = taken.map(|left| left.saturating_sub(KEPT.min(left / 3)));
    [taken, address].into_iter().flatten().min()
}

/// The names of a control group's files for the limit and for what is used of it, and the line of
/// `memory.stat` with the used memory that the system can take back, such as cached files.
type Files = [&'static str; 3];
const VERSION_2: Files = ["memory.max", "memory.current", "inactive_file "];
const VERSION_1: Files = ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "];

/// What each group on the path in a line of `/proc/self/cgroup` leaves.
fn group(line: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<u128> {
    // The path comes last, and may have colons itself.
    let mut words = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (words.next(), words.next()) else { return Vec::new() };
    let (roots, [limit, used, given_back]): (&[&str], Files) = match controllers {
        "" => (&["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], VERSION_2),
        names if names.split(',').any(|name| name == "memory") => (&["/sys/fs/cgroup/memory"], VERSION_1),
        _ => return Vec::new(),
    };
    let path = path.trim().trim_end_matches('/');
    // The root of a container may be mounted where the system has its own root, so a group may be missing.
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    let folders = ends.filter_map(|end| path.get(..end));
    let folders = folders.flat_map(|path| roots.iter().map(move |root| format!("{root}{path}")));
    let left = |folder: String| {
        let number = |file: &str| read(&format!("{folder}/{file}"))?.trim().parse::<u128>().ok();
        let stat = read(&format!("{folder}/memory.stat")).unwrap_or_default();
        let returned = stat.lines().find_map(|line| line.strip_prefix(given_back)?.trim().parse().ok());
        let used = number(used)?.saturating_sub(returned.unwrap_or(0));
        // Without a limit version 2 has the word `max`, which is no number, and version 1 a number beyond
        // any memory.
        Some(number(limit)?.saturating_sub(used))
    };
    folders.filter_map(left).collect()
}

/// The bytes in a line such as `VmSize:    1234 kB`.
fn in_kib(text: &str, key: &str) -> Option<u128> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u128>().ok()?.checked_mul(1024)
}
