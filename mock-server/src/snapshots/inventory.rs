//! The list of a snapshot's files: an entry a line, in the order of a walk.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, BufWriter, Write as _},
    path::Path,
};

use serde_json::{Value, json};

use super::capture::given_up;
use crate::space::frozen::{EntryKind, Frozen};

/// The most entries that an answer lists.
const SHOWN: usize = 50_000;

/// Snapshots with more entries are not listed at all.
const MOST: usize = 1_000_000;

/// What is in a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// Writes the list of a disk, and counts what is in it.
pub(super) fn write(disk: &Path, target: &Path, goes_on: &dyn Fn() -> bool) -> io::Result<Sizes> {
    let mut sizes = Sizes::default();
    let mut list = BufWriter::new(File::create_new(target)?);
    Frozen::open(disk)?.walk(&[], &mut |_, entry| {
        if !goes_on() {
            return Err(given_up());
        }
        if entry.kind == EntryKind::File {
            sizes.files += 1;
            sizes.bytes += entry.size;
        }
        let path = entry.path();
        // Every machine has these.
        if matches!(path.as_slice(), b"home" | b"home/user" | b"tmp") {
            return Ok(());
        }
        let kind = match entry.kind {
            EntryKind::File => "file",
            EntryKind::Folder => "dir",
            EntryKind::Link => "symlink",
            EntryKind::Pipe => return Ok(()),
        };
        let mut line = json!({"path": String::from_utf8_lossy(&path), "kind": kind});
        if entry.kind == EntryKind::File {
            line["size"] = entry.size.into();
        }
        writeln!(list, "{line}")
    })?;
    list.into_inner()?.sync_all()?;
    Ok(sizes)
}

/// A list as an answer shows it.
pub(crate) enum Listed {
    /// The entries, and whether there are more.
    Entries(Vec<Value>, bool),
    /// There are too many.
    TooMany,
}

/// Reads a list.
pub(crate) fn list(path: &Path) -> io::Result<Listed> {
    read(path, SHOWN, MOST)
}

fn read(path: &Path, shown: usize, most: usize) -> io::Result<Listed> {
    let mut entries = Vec::new();
    let mut count = 0;
    for line in BufReader::new(File::open(path)?).split(b'\n') {
        let line = line?;
        count += 1;
        if count > most {
            return Ok(Listed::TooMany);
        }
        if count <= shown {
            entries.push(serde_json::from_slice(&line)?);
        }
    }
    Ok(Listed::Entries(entries, count > shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_in_order_and_cut_where_it_is_too_long() {
        let folder = tempfile::tempdir().unwrap();
        let disk = folder.path().join("disk");
        std::fs::create_dir_all(disk.join("home/user/b")).unwrap();
        std::fs::create_dir(disk.join("tmp")).unwrap();
        std::fs::write(disk.join("home/user/b/two"), "22").unwrap();
        std::fs::write(disk.join("home/user/a"), "1").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", disk.join("tmp/link")).unwrap();
        let path = folder.path().join("inventory");
        assert_eq!(write(&disk, &path, &|| true).unwrap(), Sizes { files: 2, bytes: 3 });
        let Listed::Entries(all, false) = list(&path).unwrap() else { panic!("cut") };
        let expected = [
            json!({"path": "home/user/a", "kind": "file", "size": 1}),
            json!({"path": "home/user/b", "kind": "dir"}),
            json!({"path": "home/user/b/two", "kind": "file", "size": 2}),
            json!({"path": "tmp/link", "kind": "symlink"}),
        ];
        assert_eq!(all, expected);
        let Listed::Entries(some, true) = read(&path, 3, 4).unwrap() else { panic!("not cut") };
        assert_eq!(some, expected[..3]);
        assert!(matches!(read(&path, 2, 3).unwrap(), Listed::TooMany));
    }
}
