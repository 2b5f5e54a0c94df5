//! Copies one file or link of a tree.

use std::{
    ffi::CStr,
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid},
    io::Errno,
};

use super::{
    copy::dress,
    sys::{self, Meta},
};

/// How much of a file is copied before it is asked again whether the copy goes on.
const STRETCH: u64 = 32 << 20;

/// Copies files, remembering whether the file system can share blocks.
pub(super) struct FileCopier<'a> {
    sharing: bool,
    goes_on: &'a dyn Fn() -> bool,
}

impl<'a> FileCopier<'a> {
    pub(super) fn new(goes_on: &'a dyn Fn() -> bool) -> Self {
        Self { sharing: true, goes_on }
    }

    /// Refuses to go on once nobody wants the copy any more.
    pub(super) fn check(&self) -> Result<(), Errno> {
        if (self.goes_on)() { Ok(()) } else { Err(Errno::CANCELED) }
    }

    /// Copies a regular file; tells whether the copy shares its blocks.
    pub(super) fn copy(
        &mut self,
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
        name: &CStr,
    ) -> Result<bool, Errno> {
        let (from, look) = open_source(source, name)?;
        let flags = sys::LEAF | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let into = File::from(rustix::fs::openat(target, name, flags, Mode::RUSR | Mode::WUSR)?);
        // One refusal stands for all: both sides stay on the file systems they are on. An empty file says nothing.
        let shared = self.sharing && look.size > 0 && sys::share_blocks(&from, &into);
        if !shared {
            self.sharing &= look.size == 0;
            self.copy_bytes(&from, &into, &look)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        }
        sys::copy_attributes(from.as_fd(), into.as_fd());
        dress(into.as_fd(), &look)?;
        Ok(shared)
    }

    /// Copies the stretches that hold data; what lies between stays a hole.
    fn copy_bytes(&self, from: &File, into: &File, look: &Meta) -> io::Result<()> {
        if look.allocated >= look.size {
            return self.copy_range(from, into, 0, look.size);
        }
        let mut at = 0;
        while let Some((start, end)) =
            sys::next_data(from, at, look.size).filter(|(start, _)| *start < look.size)
        {
            let end = end.min(look.size);
            if end <= start {
                break;
            }
            self.copy_range(from, into, start, end)?;
            at = end;
        }
        into.set_len(look.size)
    }

    fn copy_range(&self, from: &File, into: &File, start: u64, end: u64) -> io::Result<()> {
        let mut at = start;
        while at < end {
            self.check()?;
            let next = end.min(at.saturating_add(STRETCH));
            // It has become shorter meanwhile.
            if sys::copy_range(from, into, at, next)? < next - at {
                break;
            }
            at = next;
        }
        Ok(())
    }
}

/// Opens a regular file for reading, one of ours also if its mode does not let us.
pub(super) fn open_source(folder: BorrowedFd<'_>, name: &CStr) -> Result<(File, Meta), Errno> {
    let (fd, restore) = match sys::open_quietly(folder, name) {
        // A file of our own that we may not read.
        Err(Errno::ACCESS) => {
            let granted = sys::grant(folder, name, Mode::RUSR)?;
            let mode = granted.before;
            let opened = sys::open_quietly(folder, name);
            granted.give_back()?;
            (opened?, Some(mode))
        }
        result => (result?, None),
    };
    let mut look = Meta::of(&fd)?;
    if look.kind != FileType::RegularFile {
        return Err(Errno::NOENT);
    }
    if let Some(mode) = restore {
        look.mode = mode;
    }
    Ok((OwnedFd::into(fd), look))
}

/// Copies a symbolic link as the text it is.
pub(super) fn copy_link(
    source: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    name: &CStr,
    meta: &Meta,
) -> Result<(), Errno> {
    let text = match rustix::fs::readlinkat(source, name, Vec::new()) {
        Err(Errno::INVAL) => return Err(Errno::NOENT),
        result => result?,
    };
    rustix::fs::symlinkat(text.as_c_str(), target, name)?;
    let (uid, gid) = (Uid::from_raw_unchecked(meta.uid), Gid::from_raw_unchecked(meta.gid));
    match rustix::fs::chownat(target, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(()) | Err(Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    rustix::fs::utimensat(target, name, &meta.timestamps(), AtFlags::SYMLINK_NOFOLLOW)
}
