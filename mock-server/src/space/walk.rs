//! Resolves a path of a sandbox component by component, following links itself.

use std::{
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
};

use rustix::{
    fs::{FileType, Mode},
    io::Errno,
};

use super::{FileError, Owner, sys};

/// No path is as long as this, in bytes.
pub(super) const PATH_MAX: usize = 4096;
const NAME_MAX: usize = 255;
const LINKS_MAX: usize = 40;

/// What to do about links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    /// Follow them inside the sandbox.
    Follow,
    /// Refuse the path.
    Refuse,
}

/// A path on its way from the sandbox's root to its last component.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    root: BorrowedFd<'a>,
    links: Links,
    /// Who gets the folders made on the way; none are made without.
    create: Option<Owner>,
    /// The folders passed, by name; `..` goes back here instead of asking the kernel for a parent.
    passed: Vec<(OsString, OwnedFd)>,
    /// What is still to do, last first.
    pending: Vec<OsString>,
    followed: usize,
    folder_wanted: bool,
    /// Whether a link in the last place is taken as it is.
    keeps_link: bool,
    /// Whether it ended where nothing is yet; the name is then the next that is to do.
    is_missing: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        root: BorrowedFd<'a>,
        path: &OsStr,
        links: Links,
        create: Option<Owner>,
    ) -> Result<Self, FileError> {
        let bytes = path.as_bytes();
        if bytes.is_empty() {
            return Err(FileError::InvalidPath { reason: "it is empty" });
        }
        if bytes.contains(&0) {
            return Err(FileError::InvalidPath { reason: "it contains a NUL byte" });
        }
        if bytes.len() >= PATH_MAX || bytes.split(|byte| *byte == b'/').any(|name| name.len() > NAME_MAX) {
            return Err(FileError::TOO_LONG);
        }
        let mut walk = Self {
            root,
            links,
            create,
            passed: Vec::new(),
            pending: Vec::new(),
            followed: 0,
            folder_wanted: bytes.ends_with(b"/") || bytes.ends_with(b"/."),
            keeps_link: false,
            is_missing: false,
        };
        walk.push(bytes);
        if !bytes.starts_with(b"/") {
            walk.push(super::HOME.as_bytes());
        }
        Ok(walk)
    }

    /// Takes a link in the last place as what it is, unless the path asks for a folder.
    pub(super) fn keep_link(mut self) -> Self {
        self.keeps_link = !self.folder_wanted;
        self
    }

    /// The folder reached so far.
    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.passed.last().map_or(self.root, |(_, fd)| fd.as_fd())
    }

    /// Whether the path was written in the way of a folder, with a slash at its end.
    pub(super) fn folder_wanted(&self) -> bool {
        self.folder_wanted
    }

    /// The path reached, as the sandbox sees it, with `leaf` as its last component.
    pub(super) fn canonical(&self, leaf: Option<&OsStr>) -> OsString {
        joined(self.passed.iter().map(|(name, _)| name.as_os_str()).chain(leaf))
    }

    /// Where the path leads once the folders that are missing are made; nothing unless they are why it ended.
    pub(super) fn once_made(&self) -> Option<OsString> {
        if !self.is_missing {
            return None;
        }
        let mut names: Vec<&OsStr> = self.passed.iter().map(|(name, _)| name.as_os_str()).collect();
        for name in self.pending.iter().rev() {
            if name == ".." {
                names.pop();
            } else {
                names.push(name);
            }
        }
        Some(joined(names.into_iter()))
    }

    /// Goes on to the last component: its name in [`folder`](Self::folder), which is there as something other than a link
    /// (but for [`keep_link`](Self::keep_link)) or not there at all; or nothing if the path ends in the folder itself.
    pub(super) fn settle(&mut self) -> Result<Option<OsString>, FileError> {
        while let Some(name) = self.pending.pop() {
            if name == ".." {
                self.passed.pop();
                continue;
            }
            if !allowed(self.passed.iter().map(|(name, _)| name.as_os_str()), &name) {
                return Err(FileError::OUTSIDE);
            }
            if self.pending.is_empty() {
                if !self.inside(Some(&name)) {
                    return Err(FileError::OUTSIDE);
                }
                match sys::Meta::at(self.folder(), &name) {
                    Ok(meta) if meta.kind == FileType::Symlink && !self.keeps_link => self.follow(&name)?,
                    Ok(_) | Err(Errno::NOENT) => return Ok(Some(name)),
                    Err(errno) => return Err(errno.into()),
                }
            } else {
                self.enter(name)?;
            }
        }
        if self.inside(None) { Ok(None) } else { Err(FileError::OUTSIDE) }
    }

    /// Goes back from a folder to its name in the one above.
    pub(super) fn step_back(&mut self) -> Option<OsString> {
        self.passed.pop().map(|(name, _)| name)
    }

    /// Makes a folder in the one reached so far.
    pub(super) fn make(&self, name: &OsStr, mode: Mode) -> Result<(), FileError> {
        let owner = self.create.ok_or(FileError::NotFound)?;
        match make_folder(self.folder(), name, owner, mode)? {
            Some(_) => Ok(()),
            None => Err(FileError::Exists),
        }
    }

    /// Takes up `name` again after it turned out to be a link by now.
    pub(super) fn again(&mut self, name: OsString) -> Result<(), FileError> {
        self.count()?;
        self.pending.push(name);
        Ok(())
    }

    fn enter(&mut self, name: OsString) -> Result<(), FileError> {
        match rustix::fs::openat(self.folder(), &name, sys::FOLDER, Mode::empty()) {
            Ok(fd) => self.passed.push((name, fd)),
            Err(Errno::NOENT) => {
                if !self.rest_stays_inside(&name) {
                    return Err(FileError::OUTSIDE);
                }
                let Some(owner) = self.create.filter(|_| self.inside(Some(&name))) else {
                    self.is_missing = true;
                    self.pending.push(name);
                    return Err(FileError::NotFound);
                };
                let made = make_folder(self.folder(), &name, owner, Mode::from_raw_mode(0o755))?;
                let fd = match made {
                    Some(fd) => fd,
                    // One that appeared at the same moment is taken as it is.
                    None => rustix::fs::openat(self.folder(), &name, sys::FOLDER, Mode::empty())?,
                };
                self.passed.push((name, fd));
            }
            // Which of the two a link gets depends on the system.
            Err(Errno::NOTDIR | Errno::LOOP) => self.follow(&name)?,
            Err(errno) => return Err(errno.into()),
        }
        Ok(())
    }

    fn follow(&mut self, name: &OsStr) -> Result<(), FileError> {
        self.count()?;
        let target = match rustix::fs::readlinkat(self.folder(), name, Vec::new()) {
            Ok(target) => target.into_bytes(),
            // No link, and no folder either, or it would not have come here; or swapped since, then look again.
            Err(Errno::INVAL) => match sys::Meta::at(self.folder(), name)? {
                meta if meta.is_folder() || self.pending.is_empty() => {
                    self.pending.push(name.to_owned());
                    return Ok(());
                }
                _ if self.rest_stays_inside(name) => return Err(FileError::NotFound),
                _ => return Err(FileError::OUTSIDE),
            },
            Err(errno) => return Err(errno.into()),
        };
        if self.links == Links::Refuse {
            return Err(FileError::InvalidPath { reason: "it leads through a link" });
        }
        if target.starts_with(b"/") {
            self.passed.clear();
        }
        if self.pending.is_empty() && target.ends_with(b"/") {
            self.folder_wanted = true;
        }
        self.push(&target);
        Ok(())
    }

    fn push(&mut self, path: &[u8]) {
        let names = path.split(|byte| *byte == b'/').rev().filter(|name| !name.is_empty() && *name != b".");
        self.pending.extend(names.map(|name| OsStr::from_bytes(name).to_owned()));
    }

    fn count(&mut self) -> Result<(), FileError> {
        self.followed += 1;
        if self.followed > LINKS_MAX { Err(FileError::TOO_MANY_LINKS) } else { Ok(()) }
    }

    fn inside(&self, leaf: Option<&OsStr>) -> bool {
        is_inside(self.passed.iter().map(|(name, _)| name.as_os_str()).chain(leaf))
    }

    /// Where nothing exists from `name` on, only `..` can still lead out.
    fn rest_stays_inside(&self, name: &OsStr) -> bool {
        let mut names: Vec<&OsStr> = self.passed.iter().map(|(name, _)| name.as_os_str()).collect();
        for next in std::iter::once(name).chain(self.pending.iter().rev().map(OsString::as_os_str)) {
            if next == ".." {
                names.pop();
            } else if allowed(names.iter().copied(), next) {
                names.push(next);
            } else {
                return false;
            }
        }
        is_inside(names.into_iter())
    }
}

/// The absolute path of these names.
fn joined<'n>(names: impl Iterator<Item = &'n OsStr>) -> OsString {
    let mut path = Vec::new();
    for name in names {
        path.push(b'/');
        path.extend_from_slice(name.as_bytes());
    }
    OsString::from_vec(path)
}

/// Whether `next` is inside one of the two open folders, or on the way to one.
fn allowed<'n>(mut passed: impl Iterator<Item = &'n OsStr>, next: &OsStr) -> bool {
    match (passed.next(), passed.next()) {
        (None, _) => next == "home" || next == "tmp",
        (Some(first), None) => first == "tmp" || next == "user",
        (Some(_), Some(_)) => true,
    }
}

fn is_inside<'n>(mut names: impl Iterator<Item = &'n OsStr>) -> bool {
    match names.next() {
        Some(first) if first == "tmp" => true,
        Some(first) if first == "home" => names.next().is_some_and(|second| second == "user"),
        _ => false,
    }
}

/// Makes a folder for the sandbox; nothing if the name is taken.
fn make_folder(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    owner: Owner,
    mode: Mode,
) -> Result<Option<OwnedFd>, FileError> {
    match rustix::fs::mkdirat(folder, name, Mode::RWXU) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    }
    let fd = rustix::fs::openat(folder, name, sys::READ_FOLDER, Mode::empty())?;
    sys::give(&fd, owner.uid, owner.gid)?;
    // After that, which may take bits away.
    rustix::fs::fchmod(&fd, mode)?;
    Ok(Some(fd))
}
