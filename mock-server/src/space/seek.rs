//! Looks for names, and for lines in files, in a folder and all below it.

use std::{
    ffi::{CStr, CString, OsStr, OsString},
    fmt::Display,
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
    walk::{Links, PATH_MAX},
};

/// How many bytes at the beginning of a file say whether it is text.
const SNIFFED: u64 = 32 * 1024;

/// How much of a line is looked at.
const LINE: usize = 1024 * 1024;

/// How many characters of a line are shown, at most.
pub(crate) const SHOWN: usize = 500;

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
        if self.found.len() >= most {
            return ControlFlow::Break(());
        }
        self.found.push(one);
        ControlFlow::Continue(())
    }

    fn problem(&mut self, path: &OsStr, problem: impl Display) {
        if self.problems.len() < PROBLEMS {
            self.problems.push(format!("{}: {problem}", path.to_string_lossy()));
        }
    }
}

/// A line that was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FoundLine {
    pub(crate) file: OsString,
    /// Counted from 1.
    pub(crate) number: u64,
    /// Its beginning, which [`SHOWN`] characters fit in.
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
    /// out, and of a line no more than 1 MiB is looked at: if that much does not fit, it is told of.
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
                    found.problem(&passed.path, io::Error::from(errno));
                    return ControlFlow::Continue(());
                }
            };
            let looked = lines(file, &is_over, |number, line, is_whole| {
                if fits(line) {
                    // A character takes four bytes at the most.
                    let bytes = line[..line.len().min(4 * SHOWN)].to_vec();
                    return found.add(most, FoundLine { file: passed.path.clone(), number, bytes });
                }
                if !is_whole {
                    let problem = format_args!("of line {number} only the first {LINE} bytes were looked at");
                    found.problem(&passed.path, problem);
                }
                ControlFlow::Continue(())
            });
            match looked {
                Ok(flow) => flow,
                Err(error) => {
                    found.problem(&passed.path, error);
                    ControlFlow::Continue(())
                }
            }
        })
    }

    /// Shows every name below a folder, the names of a folder in their order and then what is below them. What lies so deep
    /// that no path leads to it is told of.
    fn go_through<T>(
        &self,
        path: &OsStr,
        mut show: impl FnMut(&mut Found<T>, Passed<'_>) -> ControlFlow<()>,
    ) -> Result<Found<T>, FileError> {
        let mut found = Found { found: Vec::new(), is_cut: false, problems: Vec::new() };
        let mut walk = self.walk(path, Links::Follow)?;
        let (top, top_path) = match open_folder(&mut walk) {
            Ok(opened) => opened,
            Err(FileError::NotFolder) => {
                let mut walk = self.walk(path, Links::Follow)?;
                let Some(name) = walk.settle()? else { return Err(FileError::NotFound) };
                let is_file = there(&walk, Some(&name))?.kind == FileType::RegularFile;
                let path = walk.canonical(Some(&name));
                // A name that was found has no NUL in it.
                let name = CString::new(name.as_bytes()).map_err(|_| FileError::NotFound)?;
                let passed = Passed { folder: walk.folder(), name: &name, path, is_file };
                found.is_cut = show(&mut found, passed).is_break();
                return Ok(found);
            }
            Err(error) => return Err(error),
        };
        let mut folders = Folders::new();
        let mut next = vec![0];
        while let Some(index) = next.pop() {
            let at = folders.path(&top_path, index);
            let listed = folders
                .open(top.as_fd(), index, sys::READ_FOLDER)
                .and_then(|folder| Ok((list(folder.as_fd())?, folder)));
            let (mut names, folder) = match listed {
                Ok(listed) => listed,
                Err(errno) if index > 0 && vanished(errno) => continue,
                Err(errno) => {
                    found.problem(&at, io::Error::from(errno));
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
                if path.len() >= PATH_MAX {
                    found.problem(&path, io::Error::from(Errno::NAMETOOLONG));
                    continue;
                }
                let is_file = kind == FileType::RegularFile;
                let passed = Passed { folder: folder.as_fd(), name: &name, path, is_file };
                // Whether it is full or nobody waits any more: what comes after is not looked at.
                if show(&mut found, passed).is_break() {
                    found.is_cut = true;
                    return Ok(found);
                }
                if kind == FileType::Directory {
                    next.push(folders.len());
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

/// Shows every line of a file with its number, without what ends it, and whether that is all of it. Ends early once
/// `is_over`, also within a line that does not end.
fn lines(
    file: impl io::Read,
    is_over: impl Fn() -> bool,
    mut show: impl FnMut(u64, &[u8], bool) -> ControlFlow<()>,
) -> io::Result<ControlFlow<()>> {
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let (mut line, mut number, mut is_open, mut is_whole) = (Vec::new(), 1, false, true);
    loop {
        if is_over() {
            return Ok(ControlFlow::Break(()));
        }
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(if is_open { show(number, &line, is_whole) } else { ControlFlow::Continue(()) });
        }
        let end = memchr::memchr(b'\n', bytes);
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        let room = LINE - line.len();
        is_whole &= piece.len() <= room;
        line.extend_from_slice(&piece[..piece.len().min(room)]);
        let used = piece.len() + usize::from(end.is_some());
        is_open = end.is_none();
        if !is_open {
            if show(number, &line, is_whole).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            number += 1;
            line.clear();
            is_whole = true;
        }
        reader.consume(used);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rustix::fs::Mode;

    use super::*;
    use crate::space::Owner;

    fn home() -> (tempfile::TempDir, std::path::PathBuf, Files) {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home/user");
        std::fs::create_dir_all(&home).unwrap();
        let files = Files::open(root.path(), Owner::current()).unwrap();
        (root, home, files)
    }

    #[test]
    fn of_a_long_line_little_is_kept_and_it_is_said_what_was_not_looked_at() {
        let (_root, home, files) = home();
        let long = |end: &str| format!("begin{}{end}\nlast\n", "x".repeat(LINE));
        std::fs::write(home.join("long"), long("end")).unwrap();
        let find = |text: &'static [u8]| {
            let fits = move |line: &[u8]| memchr::memmem::find(line, text).is_some();
            files.find_blocking("/home/user", 10, fits, || false).unwrap()
        };
        let begin = find(b"begin");
        assert_eq!((begin.found[0].number, begin.found[0].bytes.len()), (1, 4 * SHOWN));
        assert!(begin.problems.is_empty());
        for (text, numbers) in [(&b"end"[..], vec![]), (b"last", vec![2])] {
            let found = find(text);
            let found_numbers: Vec<_> = found.found.iter().map(|line| line.number).collect();
            assert_eq!(found_numbers, numbers);
            let problem = format!("/home/user/long: of line 1 only the first {LINE} bytes were looked at");
            assert_eq!(found.problems, [problem]);
        }
    }

    #[test]
    fn a_line_without_an_end_is_left_when_nobody_waits() {
        let left = Cell::new(100);
        let is_over = || {
            left.set(left.get() - 1);
            left.get() == 0
        };
        let never = |_: u64, _: &[u8], _: bool| -> ControlFlow<()> { panic!("it does not end") };
        assert!(lines(io::repeat(b'x'), is_over, never).unwrap().is_break());
    }

    #[test]
    fn what_ends_early_does_not_pass_for_the_whole() {
        let (_root, home, files) = home();
        for name in ["a", "b"] {
            std::fs::write(home.join(name), "text").unwrap();
        }
        for path in ["/home/user", "a"] {
            let over = files.search_blocking(path, 10, |_| true, || true).unwrap();
            assert!(over.is_cut && over.found.is_empty(), "{over:?}");
            let over = files.find_blocking(path, 10, |_| true, || true).unwrap();
            assert!(over.is_cut && over.found.is_empty(), "{over:?}");
        }
        assert!(!files.search_blocking("/home/user", 2, |_| true, || false).unwrap().is_cut);
        assert!(files.search_blocking("/home/user", 1, |_| true, || false).unwrap().is_cut);
    }

    #[test]
    fn what_no_path_leads_to_is_told_of() {
        let (_root, home, files) = home();
        let name = "n".repeat(250);
        let mut folder = rustix::fs::open(&home, sys::FOLDER, Mode::empty()).unwrap();
        for _ in 0..20 {
            rustix::fs::mkdirat(&folder, &name, Mode::RWXU).unwrap();
            folder = rustix::fs::openat(&folder, &name, sys::FOLDER, Mode::empty()).unwrap();
        }
        let found = files.search_blocking("/home/user", 100, |_| true, || false).unwrap();
        let longest = found.found.iter().map(|path| path.len()).max();
        assert!(longest < Some(PATH_MAX) && found.found.len() == (PATH_MAX - 11) / 251, "{longest:?}");
        assert!(found.problems.len() == 1 && !found.is_cut, "{:?}", found.problems);
    }
}
