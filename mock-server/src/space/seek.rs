//! Looks for names, and for lines in files, in a folder and all below it.

use std::{
    ffi::{CStr, CString, OsStr, OsString},
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Seek as _},
    ops::ControlFlow,
    os::{
        fd::{AsFd as _, BorrowedFd},
        unix::ffi::OsStrExt as _,
    },
};

use rustix::{fs::FileType, io::Errno};

use super::{
    FileError, Files,
    entry::{below, open_folder, there},
    read::regular,
    sys::{self, Meta},
    tree::{Folders, list, vanished},
    walk::Links,
};

/// How many bytes at the beginning of a file say whether it is text.
const SNIFFED: u64 = 32 * 1024;

/// How much of a line is looked at.
const LINE: usize = 1024 * 1024;

/// How many of the things that could not be read are told of.
const PROBLEMS: usize = 100;

/// What was found, and what could not be looked at.
#[derive(Debug)]
pub(crate) struct Found<T> {
    pub(crate) found: Vec<T>,
    /// Whether there is more.
    pub(crate) is_cut: bool,
    pub(crate) problems: Vec<String>,
}

impl<T> Found<T> {
    /// Takes one more, if there may be so many.
    fn add(&mut self, most: usize, one: T) -> ControlFlow<()> {
        self.is_cut = self.found.len() >= most;
        if self.is_cut {
            return ControlFlow::Break(());
        }
        self.found.push(one);
        ControlFlow::Continue(())
    }

    fn problem(&mut self, path: &OsStr, errno: Errno) {
        if self.problems.len() < PROBLEMS {
            self.problems.push(format!("{}: {}", path.to_string_lossy(), io::Error::from(errno)));
        }
    }
}

/// A line that was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FoundLine {
    pub(crate) file: OsString,
    /// Counted from 1.
    pub(crate) number: u64,
    pub(crate) bytes: Vec<u8>,
}

/// A name that is passed on the way.
struct Passed<'a> {
    folder: BorrowedFd<'a>,
    name: &'a CStr,
    path: OsString,
    is_file: bool,
}

impl Files {
    /// The absolute paths below a folder whose last component fits, at most `most`. A path that is no folder is looked at
    /// itself. Ends early once `is_over`.
    ///
    /// # Errors
    /// [`FileError::NotFound`], [`FileError::InvalidPath`], [`FileError::Io`].
    pub(crate) fn search_blocking(
        &self,
        path: impl AsRef<OsStr>,
        most: usize,
        fits: impl Fn(&[u8]) -> bool,
        is_over: impl Fn() -> bool,
    ) -> Result<Found<OsString>, FileError> {
        self.go_through(path.as_ref(), |found, passed| match passed {
            _ if is_over() => ControlFlow::Break(()),
            passed if fits(passed.name.to_bytes()) => found.add(most, passed.path),
            _ => ControlFlow::Continue(()),
        })
    }

    /// The lines that fit in the text files in a folder and below it, at most `most`. Files that are not text are left
    /// out, and of a line no more than 1 MiB is looked at.
    ///
    /// # Errors
    /// Those of [`Self::search_blocking`].
    pub(crate) fn find_blocking(
        &self,
        path: impl AsRef<OsStr>,
        most: usize,
        fits: impl Fn(&[u8]) -> bool,
        is_over: impl Fn() -> bool,
    ) -> Result<Found<FoundLine>, FileError> {
        self.go_through(path.as_ref(), |found, passed| {
            if is_over() {
                return ControlFlow::Break(());
            }
            if !passed.is_file {
                return ControlFlow::Continue(());
            }
            let file = match open_text(passed.folder, passed.name) {
                Ok(Some(file)) => file,
                Ok(None) => return ControlFlow::Continue(()),
                Err(errno) if vanished(errno) => return ControlFlow::Continue(()),
                Err(errno) => {
                    found.problem(&passed.path, errno);
                    return ControlFlow::Continue(());
                }
            };
            let looked = lines(file, |number, line| match line {
                _ if is_over() => ControlFlow::Break(()),
                line if fits(line) => {
                    let line = FoundLine { file: passed.path.clone(), number, bytes: line.to_vec() };
                    found.add(most, line)
                }
                _ => ControlFlow::Continue(()),
            });
            match looked {
                Ok(flow) => flow,
                Err(error) => {
                    found.problem(&passed.path, Errno::from_io_error(&error).unwrap_or(Errno::IO));
                    ControlFlow::Continue(())
                }
            }
        })
    }

    /// Shows every name below a folder, the names of a folder in their order and then what is below them.
    fn go_through<T>(
        &self,
        path: &OsStr,
        mut show: impl FnMut(&mut Found<T>, Passed<'_>) -> ControlFlow<()>,
    ) -> Result<Found<T>, FileError> {
        let mut found = Found { found: Vec::new(), is_cut: false, problems: Vec::new() };
        let mut walk = self.walk(path, Links::Follow)?;
        let (top, at) = match open_folder(&mut walk) {
            Ok(opened) => opened,
            Err(FileError::NotFolder) => {
                let mut walk = self.walk(path, Links::Follow)?;
                let Some(name) = walk.settle()? else { return Err(FileError::NotFound) };
                let is_file = there(&walk, Some(&name))?.kind == FileType::RegularFile;
                let path = walk.canonical(Some(&name));
                // A name that was found has no NUL in it.
                let name = CString::new(name.as_bytes()).map_err(|_| FileError::NotFound)?;
                let _ = show(&mut found, Passed { folder: walk.folder(), name: &name, path, is_file });
                return Ok(found);
            }
            Err(error) => return Err(error),
        };
        let mut folders = Folders::new();
        let mut next = vec![(0, at)];
        while let Some((index, at)) = next.pop() {
            let listed = folders
                .open(top.as_fd(), index, sys::READ_FOLDER)
                .and_then(|folder| Ok((list(folder.as_fd())?, folder)));
            let (mut names, folder) = match listed {
                Ok(listed) => listed,
                Err(errno) if index > 0 && vanished(errno) => continue,
                Err(errno) => {
                    found.problem(&at, errno);
                    continue;
                }
            };
            names.sort_by(|(name, _), (other, _)| name.cmp(other));
            let before = next.len();
            for (name, kind) in names {
                let kind = match kind {
                    FileType::Unknown => match Meta::at(&folder, name.as_c_str()) {
                        Ok(meta) => meta.kind,
                        Err(_) => continue,
                    },
                    kind => kind,
                };
                let path = below(&at, name.to_bytes());
                let passed = Passed {
                    folder: folder.as_fd(),
                    name: &name,
                    path: path.clone(),
                    is_file: kind == FileType::RegularFile,
                };
                if show(&mut found, passed).is_break() {
                    return Ok(found);
                }
                if kind == FileType::Directory {
                    next.push((folders.len(), path));
                    folders.add(index, name);
                }
            }
            next[before..].reverse();
        }
        Ok(found)
    }
}

/// Opens a file from its beginning, if it is one of text.
fn open_text(folder: BorrowedFd<'_>, name: &CStr) -> Result<Option<File>, Errno> {
    let mut file = File::from(sys::open_quietly(folder, name)?);
    if regular(&Meta::of(&file)?, false).is_err() {
        return Ok(None);
    }
    let io = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let mut start = Vec::new();
    (&file).take(SNIFFED).read_to_end(&mut start).map_err(io)?;
    if start.contains(&0) {
        return Ok(None);
    }
    file.rewind().map_err(io)?;
    Ok(Some(file))
}

/// Shows every line of a file with its number, without what ends it.
fn lines(file: File, mut show: impl FnMut(u64, &[u8]) -> ControlFlow<()>) -> io::Result<ControlFlow<()>> {
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let (mut line, mut number, mut is_open) = (Vec::new(), 1, false);
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(if is_open { show(number, &line) } else { ControlFlow::Continue(()) });
        }
        let end = memchr::memchr(b'\n', bytes);
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        line.extend_from_slice(&piece[..piece.len().min(LINE - line.len())]);
        let used = piece.len() + usize::from(end.is_some());
        is_open = end.is_none();
        if !is_open {
            if show(number, &line).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            number += 1;
            line.clear();
        }
        reader.consume(used);
    }
}
