//! How much can still be written to a folder, according to the system.

use std::path::Path;

/// Bytes that this user may still write to the file system of a folder. `None` if the system says nothing.
#[cfg(unix)]
pub fn free(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    // Not `f_bfree`, of which some is kept for the administrator.
    found.f_bavail.checked_mul(found.f_frsize)
}

/// As on Unix, where the system is asked; here it is not.
#[cfg(not(unix))]
pub fn free(_: &Path) -> Option<u64> {
    None
}
