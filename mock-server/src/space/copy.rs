//! Copies the tree of a sandbox, also while its commands run.

use std::{
    collections::HashMap,
    ffi::{CStr, CString},
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags},
    io::Errno,
};

use super::{
    copy_file::{FileCopier, copy_link},
    earlier::Earlier,
    off_thread, sys,
    sys::{Granted, Meta},
    tree::{Folders, list, vanished},
};

/// What a copy of a tree did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyReport {
    /// Folders made, the top included.
    pub folders: u64,
    /// Files, links and pipes made.
    pub files: u64,
    /// How many of the files share their blocks with the source until one side changes.
    pub shared: u64,
    /// Sockets and devices, which are not copied.
    pub skipped: u64,
    /// Names that went away or changed their kind between being listed and being copied.
    pub vanished: u64,
}

/// Copies the tree at `source` to `target`, which is made and must not be there or be an empty folder.
///
/// Files share blocks where the file system can (reflink), else their bytes are copied, holes staying holes; hard links
/// inside the tree become hard links between the copies, never to the source. Modes, times, symbolic links, pipes, and
/// as far as the system allows owners and extended attributes come along. No link is followed. The source stays as it
/// is; what changes in it meanwhile is copied in its old or its new form.
///
/// # Errors
/// The first failure that is not a name that vanished; what was copied by then is removed again.
pub async fn copy_tree(source: PathBuf, target: PathBuf) -> io::Result<CopyReport> {
    off_thread(move || copy_tree_blocking(&source, &target)).await
}

/// [`copy_tree`] on this thread.
///
/// # Errors
/// As there.
pub fn copy_tree_blocking(source: &Path, target: &Path) -> io::Result<CopyReport> {
    copy_tree_while(source, target, None, &|| true)
}

/// [`copy_tree_blocking`] that is given up, with an error, once it need not go on. Files that are in an earlier copy, of
/// which nobody changes anything any more, as they are now become further names of those.
///
/// # Errors
/// As there.
pub(crate) fn copy_tree_while(
    source: &Path,
    target: &Path,
    earlier: Option<&Path>,
    goes_on: &dyn Fn() -> bool,
) -> io::Result<CopyReport> {
    let top = rustix::fs::openat(CWD, source, sys::READ_FOLDER, Mode::empty())?;
    let made = match std::fs::create_dir(target) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if std::fs::read_dir(target)?.next().is_some() {
                return Err(error);
            }
            false
        }
        Err(error) => return Err(error),
    };
    let result = rustix::fs::openat(CWD, target, sys::READ_FOLDER, Mode::empty())
        .and_then(|into| TreeCopy::new(top, into, Earlier::open(earlier), goes_on)?.run())
        .map_err(io::Error::from);
    if result.is_err() {
        let _ = super::remove_tree_blocking(target);
        if !made {
            let _ = std::fs::create_dir(target);
        }
    }
    result
}

struct TreeCopy<'a> {
    source: OwnedFd,
    target: OwnedFd,
    target_identity: (u64, u64),
    folders: Folders,
    /// What each folder's copy is to look like, set once its content is complete.
    looks: Vec<Option<Meta>>,
    /// Where the first copy of a file with several names is.
    linked: HashMap<(u64, u64), (usize, CString)>,
    earlier: Earlier,
    files: FileCopier<'a>,
    /// Folders of the source that could not be entered, and are still to be.
    opened_up: Vec<Granted>,
    report: CopyReport,
}

impl<'a> TreeCopy<'a> {
    fn new(
        source: OwnedFd,
        target: OwnedFd,
        earlier: Earlier,
        goes_on: &'a dyn Fn() -> bool,
    ) -> Result<Self, Errno> {
        Ok(Self {
            source,
            target_identity: Meta::of(&target)?.identity,
            target,
            folders: Folders::new(),
            looks: Vec::new(),
            linked: HashMap::new(),
            earlier,
            files: FileCopier::new(goes_on),
            opened_up: Vec::new(),
            report: CopyReport::default(),
        })
    }

    fn run(mut self) -> Result<CopyReport, Errno> {
        let mut index = 0;
        while index < self.folders.len() {
            let look = match self.folder(index) {
                Ok(look) => Some(look),
                Err(errno) if index > 0 && vanished(errno) => None,
                Err(errno) => return Err(errno),
            };
            match look {
                Some(_) => self.report.folders += 1,
                None => self.report.vanished += 1,
            }
            self.looks.push(look);
            index += 1;
        }
        // From the leaves up: a folder's own times must not be touched again, nor its permissions be in the way.
        for index in (0..self.folders.len()).rev() {
            if let Some(look) = self.looks[index] {
                let folder = self.folders.open(self.target.as_fd(), index, sys::READ_FOLDER)?;
                dress(folder.as_fd(), &look)?;
            }
        }
        Ok(self.report)
    }

    /// Makes the copy of one folder and of everything in it but its folders, which are noted down.
    fn folder(&mut self, index: usize) -> Result<Meta, Errno> {
        let known = self.folders.len();
        let (source, look, granted) = self.open_source(index)?;
        let copied = self.content(index, source.as_fd());
        match granted {
            // The way to what is in it leads through it once more.
            Some(granted) if self.folders.len() > known && !granted.before.contains(Mode::XUSR) => {
                self.opened_up.push(granted);
            }
            Some(granted) => granted.give_back()?,
            None => {}
        }
        copied.map(|()| look)
    }

    fn content(&mut self, index: usize, source: BorrowedFd<'_>) -> Result<(), Errno> {
        let target = self.make_target(index)?;
        self.earlier.enter(&self.folders, index);
        sys::copy_attributes(source, target.as_fd());
        for (name, _) in list(source)? {
            self.files.check()?;
            match self.entry(index, source, target.as_fd(), &name) {
                Ok(()) => {}
                Err(errno) if vanished(errno) => self.report.vanished += 1,
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    fn open_source(&self, index: usize) -> Result<(OwnedFd, Meta, Option<Granted>), Errno> {
        match self.folders.open(self.source.as_fd(), index, sys::READ_FOLDER) {
            Ok(folder) => {
                let look = Meta::of(&folder)?;
                // A folder of our own that may be listed but not entered.
                if look.mode.contains(Mode::XUSR) || rustix::process::geteuid().is_root() {
                    return Ok((folder, look, None));
                }
            }
            Err(Errno::ACCESS) => {}
            Err(errno) => return Err(errno),
        }
        let (parent, name) = self.folders.entry(index).ok_or(Errno::ACCESS)?;
        let parent = self.folders.open(self.source.as_fd(), parent, sys::FOLDER)?;
        let mut look = Meta::at(&parent, name)?;
        let granted = sys::grant(parent.as_fd(), name, Mode::RUSR | Mode::XUSR)?;
        look.mode = granted.before;
        match rustix::fs::openat(&parent, name, sys::READ_FOLDER, Mode::empty()) {
            Ok(folder) => Ok((folder, look, Some(granted))),
            Err(errno) => {
                granted.give_back()?;
                Err(errno)
            }
        }
    }

    fn make_target(&self, index: usize) -> Result<OwnedFd, Errno> {
        let Some((parent, name)) = self.folders.entry(index) else {
            return self.folders.open(self.target.as_fd(), index, sys::READ_FOLDER);
        };
        let parent = self.folders.open(self.target.as_fd(), parent, sys::FOLDER)?;
        rustix::fs::mkdirat(&parent, name, Mode::RWXU)?;
        rustix::fs::openat(&parent, name, sys::READ_FOLDER, Mode::empty())
    }

    fn entry(
        &mut self,
        index: usize,
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
        name: &CStr,
    ) -> Result<(), Errno> {
        let meta = Meta::at(source, name)?;
        if meta.is_folder() {
            if meta.identity != self.target_identity {
                self.folders.add(index, name.to_owned());
            }
            return Ok(());
        }
        if meta.links > 1 && self.link_again(target, name, &meta)? {
            return Ok(());
        }
        match meta.kind {
            FileType::RegularFile if self.earlier.give(target, name, &meta) => {}
            FileType::RegularFile => {
                if self.files.copy(source, target, name)? {
                    self.report.shared += 1;
                }
            }
            FileType::Symlink => copy_link(source, target, name, &meta)?,
            FileType::Fifo => {
                sys::make_pipe(target, name, Mode::RUSR | Mode::WUSR)?;
                let flags = OFlags::RDONLY | sys::LEAF;
                dress(rustix::fs::openat(target, name, flags, Mode::empty())?.as_fd(), &meta)?;
            }
            _ => {
                self.report.skipped += 1;
                return Ok(());
            }
        }
        self.report.files += 1;
        if meta.links > 1 {
            self.linked.insert(meta.identity, (index, name.to_owned()));
        }
        Ok(())
    }

    /// Gives a file that was copied under another name this one too.
    fn link_again(&mut self, target: BorrowedFd<'_>, name: &CStr, meta: &Meta) -> Result<bool, Errno> {
        let Some((folder, first)) = self.linked.get(&meta.identity) else { return Ok(false) };
        let folder = self.folders.open(self.target.as_fd(), *folder, sys::FOLDER)?;
        rustix::fs::linkat(&folder, first.as_c_str(), target, name, AtFlags::empty())?;
        self.report.files += 1;
        Ok(true)
    }
}

impl Drop for TreeCopy<'_> {
    fn drop(&mut self) {
        for granted in self.opened_up.drain(..).rev() {
            let _ = granted.give_back();
        }
    }
}

/// Gives a copy the owner, mode and times of its source. Only root can give files away; anybody else keeps them.
pub(super) fn dress(copy: BorrowedFd<'_>, look: &Meta) -> Result<(), Errno> {
    match sys::give(copy, look.uid, look.gid) {
        Ok(()) | Err(Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    rustix::fs::fchmod(copy, look.mode)?;
    rustix::fs::futimens(copy, &look.timestamps())
}
