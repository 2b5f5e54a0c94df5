//! A tree that nobody changes any more, such as a snapshot: looked at by path, and walked in order.

use std::{
    cmp::Ordering,
    ffi::{CStr, CString, OsStr},
    fs::File,
    io::{self, Read as _},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags},
    io::Errno,
};

use super::{
    copy_file::open_source,
    sys::{self, Granted, Meta},
    tree::{list, vanished},
};

/// The tree. No link in it is ever followed.
pub(crate) struct Frozen {
    root: OwnedFd,
    /// Folders of ours that could not be listed, for as long as somebody looks into them.
    opened_up: Vec<Granted>,
    /// Asked before a folder is listed whether that is still wanted.
    is_wanted: Option<Box<dyn Fn() -> bool + Send>>,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Folder,
    Link,
    Pipe,
}

/// One thing in the tree.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The names that lead to it.
    pub(crate) names: Vec<CString>,
    pub(crate) kind: EntryKind,
    pub(crate) size: u64,
    /// Permission bits.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Seconds and nanoseconds since 1970.
    pub(crate) modified: (i64, i64),
    /// How many names it has, and what tells it from others.
    pub(crate) links: u64,
    pub(crate) identity: (u64, u64),
}

/// What is different in a newer tree.
pub(crate) enum Change<'a> {
    /// It is new, or another than before.
    Put(&'a Entry),
    /// It is gone or is replaced, with all that was below it.
    Gone(&'a [CString]),
}

/// How two files of the same names are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    /// By their sizes, modes and times.
    Look,
    /// By every byte.
    Content,
}

impl Entry {
    #[allow(clippy::useless_conversion, reason = "the types differ between systems")]
    fn new(names: Vec<CString>, meta: &Meta) -> Option<Self> {
        let kind = match meta.kind {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Folder,
            FileType::Symlink => EntryKind::Link,
            FileType::Fifo => EntryKind::Pipe,
            _ => return None,
        };
        Some(Self {
            names,
            kind,
            size: meta.size,
            mode: u32::from(meta.mode.bits()) & 0o7777,
            uid: meta.uid,
            gid: meta.gid,
            modified: meta.modified(),
            links: meta.links,
            identity: meta.identity,
        })
    }

    /// Its path below the top, without a slash in front.
    pub(crate) fn path(&self) -> Vec<u8> {
        path_of(&self.names)
    }

    fn looks_like(&self, other: &Self) -> bool {
        let look = |it: &Self| (it.kind, it.size, it.mode, it.uid, it.gid, it.modified);
        match self.kind {
            // How much room a folder's names take says nothing.
            EntryKind::Folder => {
                look(&Self { size: 0, ..self.clone() }) == look(&Self { size: 0, ..other.clone() })
            }
            _ => look(self) == look(other),
        }
    }
}

/// Names as a path.
pub(crate) fn path_of(names: &[CString]) -> Vec<u8> {
    names.iter().map(|name| name.to_bytes()).collect::<Vec<_>>().join(&b'/')
}

impl Frozen {
    /// The tree below a folder.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let root = rustix::fs::openat(CWD, root, sys::READ_FOLDER, Mode::empty())?;
        Ok(Self { root, opened_up: Vec::new(), is_wanted: None })
    }

    /// The same, which ends with an error once a look at it is not wanted any more.
    pub(crate) fn wanted_while(mut self, is_wanted: impl Fn() -> bool + Send + 'static) -> Self {
        self.is_wanted = Some(Box::new(is_wanted));
        self
    }

    /// What the names lead to; the top without any. `None` if there is nothing, or only by way of a link.
    pub(crate) fn find(&mut self, names: &[CString]) -> io::Result<Option<Entry>> {
        let found = match names.split_last() {
            None => Meta::of(&self.root),
            Some((last, before)) => {
                self.within(before, sys::FOLDER, |folder| Meta::at(folder, last.as_c_str()))
            }
        };
        match found {
            Ok(meta) => Ok(Entry::new(names.to_vec(), &meta)),
            Err(errno) if vanished(errno) || errno == Errno::NAMETOOLONG => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// A file's content.
    pub(crate) fn open_file(&mut self, entry: &Entry) -> io::Result<File> {
        let (last, before) = entry.names.split_last().ok_or(Errno::ISDIR)?;
        Ok(self.within(before, sys::FOLDER, |folder| open_source(folder.as_fd(), last))?.0)
    }

    /// A link's text.
    pub(crate) fn read_link(&mut self, entry: &Entry) -> io::Result<CString> {
        let (last, before) = entry.names.split_last().ok_or(Errno::INVAL)?;
        let read = |folder: &OwnedFd| rustix::fs::readlinkat(folder, last.as_c_str(), Vec::new());
        Ok(self.within(before, sys::FOLDER, read)?)
    }

    /// Visits everything below the names in order: a folder before what is in it, names by their bytes.
    pub(crate) fn walk(
        &mut self,
        below: &[CString],
        visit: &mut dyn FnMut(&mut Self, &Entry) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut levels = vec![(below.to_vec(), self.entries(below)?.into_iter())];
        while let Some((_, entries)) = levels.last_mut() {
            let Some(entry) = entries.next() else {
                levels.pop();
                continue;
            };
            visit(self, &entry)?;
            if entry.kind == EntryKind::Folder {
                let below = self.entries(&entry.names)?.into_iter();
                levels.push((entry.names, below));
            }
        }
        Ok(())
    }

    /// Visits what is different here from an older tree, in order. Whatever is gone or replaced is told as gone before what
    /// came in its place; folders that stay are at most put anew.
    pub(crate) fn compare(
        &mut self,
        old: &mut Self,
        compare: Compare,
        visit: &mut dyn FnMut(&mut Self, Change<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut levels = vec![Pair::new(self.entries(&[])?, old.entries(&[])?)];
        while let Some(level) = levels.last_mut() {
            let (now, before) = match level.next() {
                (None, None) => {
                    levels.pop();
                    continue;
                }
                pair => pair,
            };
            let is_same = match (&now, &before) {
                (Some(now), Some(before)) => self.is_same(old, now, before, compare)?,
                _ => false,
            };
            let is_folder =
                |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| entry.kind == EntryKind::Folder);
            let stays_folder = is_folder(&now) && is_folder(&before);
            if let Some(before) = before.filter(|_| !is_same && !stays_folder) {
                visit(self, Change::Gone(&before.names))?;
            }
            let Some(now) = now else { continue };
            if !is_same {
                visit(self, Change::Put(&now))?;
            }
            if stays_folder {
                let (here, there) = (self.entries(&now.names)?, old.entries(&now.names)?);
                levels.push(Pair::new(here, there));
            } else if now.kind == EntryKind::Folder {
                self.walk(&now.names, &mut |tree, entry| visit(tree, Change::Put(entry)))?;
            }
        }
        Ok(())
    }

    fn is_same(&mut self, old: &mut Self, now: &Entry, before: &Entry, compare: Compare) -> io::Result<bool> {
        if !now.looks_like(before) {
            return Ok(false);
        }
        match now.kind {
            EntryKind::Link => Ok(self.read_link(now)? == old.read_link(before)?),
            EntryKind::File if compare == Compare::Content => {
                same_bytes(&self.open_file(now)?, &old.open_file(before)?)
            }
            _ => Ok(true),
        }
    }

    /// What is in a folder, by name.
    fn entries(&mut self, names: &[CString]) -> io::Result<Vec<Entry>> {
        if self.is_wanted.as_ref().is_some_and(|is_wanted| !is_wanted()) {
            return Err(Errno::CANCELED.into());
        }
        let mut found = self.within(names, sys::READ_FOLDER, |folder| {
            let mut found = Vec::new();
            for (name, _) in list(folder.as_fd())? {
                let meta = Meta::at(folder, name.as_c_str())?;
                let mut names = names.to_vec();
                names.push(name);
                found.extend(Entry::new(names, &meta));
            }
            Ok(found)
        })?;
        found.sort_unstable_by(|a, b| a.names.last().cmp(&b.names.last()));
        Ok(found)
    }

    /// Looks into a folder, one of ours also if its mode does not let us.
    fn within<T>(
        &mut self,
        names: &[CString],
        flags: OFlags,
        look: impl FnOnce(&OwnedFd) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let looked = self.folder(names, flags).and_then(|folder| look(&folder));
        self.give_back();
        looked
    }

    fn give_back(&mut self) {
        for granted in self.opened_up.drain(..).rev() {
            let _ = granted.give_back();
        }
    }

    fn folder(&mut self, names: &[CString], flags: OFlags) -> Result<OwnedFd, Errno> {
        match self.open_below(names, flags) {
            Err(Errno::ACCESS) => {}
            result => return result,
        }
        for depth in 1..=names.len() {
            let (before, last) = (&names[..depth - 1], &names[depth - 1]);
            match self.open_below(&names[..depth], sys::READ_FOLDER) {
                Err(Errno::ACCESS) => {}
                Err(errno) => return Err(errno),
                Ok(folder) if Meta::of(&folder)?.mode.contains(Mode::XUSR) => continue,
                Ok(_) => {}
            }
            let parent = self.open_below(before, sys::FOLDER)?;
            self.opened_up.push(sys::grant(parent.as_fd(), last.as_c_str(), Mode::RUSR | Mode::XUSR)?);
        }
        self.open_below(names, flags)
    }

    fn open_below(&self, names: &[CString], flags: OFlags) -> Result<OwnedFd, Errno> {
        let names: Vec<&CStr> = names.iter().map(CString::as_c_str).collect();
        let mut rest = names.as_slice();
        let mut folder: Option<OwnedFd> = None;
        while !rest.is_empty() {
            let (step, later) = rest.split_at(sys::step_length(rest));
            let flags = if later.is_empty() { flags } else { sys::FOLDER };
            folder = Some(sys::open_below(folder.as_ref().unwrap_or(&self.root).as_fd(), step, flags)?);
            rest = later;
        }
        match folder {
            Some(folder) => Ok(folder),
            None => rustix::fs::openat(&self.root, c".", flags, Mode::empty()),
        }
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// The entries of a folder in two trees, side by side.
struct Pair {
    now: std::iter::Peekable<std::vec::IntoIter<Entry>>,
    before: std::iter::Peekable<std::vec::IntoIter<Entry>>,
}

impl Pair {
    fn new(now: Vec<Entry>, before: Vec<Entry>) -> Self {
        Self { now: now.into_iter().peekable(), before: before.into_iter().peekable() }
    }

    /// The entries of the next name.
    fn next(&mut self) -> (Option<Entry>, Option<Entry>) {
        let order = match (self.now.peek(), self.before.peek()) {
            (None, None) => return (None, None),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(now), Some(before)) => now.names.last().cmp(&before.names.last()),
        };
        match order {
            Ordering::Less => (self.now.next(), None),
            Ordering::Equal => (self.now.next(), self.before.next()),
            Ordering::Greater => (None, self.before.next()),
        }
    }
}

fn same_bytes(mut one: &File, mut other: &File) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let read = one.read(&mut left)?;
        if read == 0 {
            return Ok(other.read(&mut right[..1])? == 0);
        }
        match other.read_exact(&mut right[..read]) {
            Ok(()) if left[..read] == right[..read] => {}
            Ok(()) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

/// The names of a path in the tree, with or without a slash in front; `None` if it climbs or is none.
pub(crate) fn names(path: &str) -> Option<Vec<CString>> {
    let names = path.split('/').filter(|name| !name.is_empty() && *name != ".");
    names.map(|name| if name == ".." { None } else { CString::new(name).ok() }).collect()
}

/// A path's bytes, as the system takes them.
pub(crate) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn a_closed_folder_is_open_only_while_somebody_looks_into_it() {
        let folder = tempfile::tempdir().unwrap();
        let (outer, inner) = (folder.path().join("outer"), folder.path().join("outer/inner"));
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("file"), "content").unwrap();
        let set = |path: &Path, mode: u32| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        set(&inner, 0);
        set(&outer, 0);
        let mut tree = Frozen::open(folder.path()).unwrap();
        let mut seen = Vec::new();
        tree.walk(&[], &mut |tree, entry| {
            seen.push((entry.path(), entry.mode, tree.opened_up.len()));
            assert_eq!(fs::metadata(&outer).unwrap().permissions().mode() & 0o7777, 0);
            Ok(())
        })
        .unwrap();
        let file = b"outer/inner/file".to_vec();
        assert_eq!(seen[..2], [(b"outer".to_vec(), 0, 0), (b"outer/inner".to_vec(), 0, 0)]);
        assert_eq!((seen.len(), &seen[2].0), (3, &file));
        let entry = tree.find(&names("outer/inner/file").unwrap()).unwrap().unwrap();
        assert_eq!(io::read_to_string(tree.open_file(&entry).unwrap()).unwrap(), "content");
        set(&outer, 0o700);
        assert_eq!(fs::metadata(&inner).unwrap().permissions().mode() & 0o7777, 0);
        set(&inner, 0o700);
    }
}
