//! Folders of a snapshot, and what is different from one to the next, as tar archives.

use std::{
    collections::HashMap,
    ffi::CString,
    fs::File,
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use axum::body::Body;
use bytes::Bytes;
use tar::{Builder, EntryType, Header};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::Held;
use crate::space::frozen::{Change, Compare, Entry, EntryKind, Frozen, as_path, path_of};

/// How much of an archive may be made ahead of who reads it: this many pieces of this many bytes.
const AHEAD: usize = 8;
const PIECE: usize = 64 * 1024;

/// The longest link that the header of an entry takes.
const SHORT_LINK: usize = 100;

/// The entry of an archive that says what is gone since the one before. A sandbox cannot have a file of this path.
pub(super) const DELETED: &str = ".deleted";

/// What is in a folder.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl Totals {
    /// Counts what is below the names.
    pub(crate) fn below(tree: &mut Frozen, names: &[CString]) -> io::Result<Self> {
        let mut totals = Self::default();
        tree.walk(names, &mut |_, entry| {
            if entry.kind == EntryKind::File {
                totals.files += 1;
                totals.bytes += entry.size;
            }
            Ok(())
        })?;
        Ok(totals)
    }
}

/// The archive of everything below the names, made as it is read; its paths begin there.
pub(crate) fn stream_folder(tasks: &TaskTracker, mut tree: Frozen, below: Vec<CString>, held: Held) -> Body {
    let (sender, mut receiver) = mpsc::channel::<io::Result<Bytes>>(AHEAD);
    tasks.spawn_blocking(move || {
        let _held = held;
        let writer = BufWriter::with_capacity(PIECE, Outlet(sender.clone()));
        let mut archive = Archive::new(writer, below.len());
        let walked = tree.walk(&below, &mut |tree, entry| archive.put(tree, entry));
        if let Err(error) = walked.and_then(|()| archive.finish()) {
            // Nobody is left to hear of it if the reader went away.
            let _ = sender.blocking_send(Err(error));
        }
    });
    Body::from_stream(async_stream::stream! {
        while let Some(piece) = receiver.recv().await {
            yield piece;
        }
    })
}

/// The other end of a body.
struct Outlet(mpsc::Sender<io::Result<Bytes>>);

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a whole disk, or what is different from an older one: first what is gone, then what is new.
pub(super) fn write_disk(disk: &Path, older: Option<&PathBuf>, writer: impl Write) -> io::Result<()> {
    let mut archive = Archive::new(BufWriter::with_capacity(PIECE, writer), 0);
    let mut tree = Frozen::open(disk)?;
    let Some(older) = older else {
        tree.walk(&[], &mut |tree, entry| archive.put(tree, entry))?;
        return archive.finish();
    };
    let mut older = Frozen::open(older)?;
    let mut gone = Vec::new();
    tree.compare(&mut older, Compare::Content, &mut |_, change| {
        if let Change::Gone(names) = change {
            gone.extend_from_slice(&path_of(names));
            gone.push(0);
        }
        Ok(())
    })?;
    archive.put_bytes(DELETED, &gone)?;
    tree.compare(&mut older, Compare::Content, &mut |tree, change| match change {
        Change::Put(entry) => archive.put(tree, entry),
        Change::Gone(_) => Ok(()),
    })?;
    archive.finish()
}

struct Archive<W: Write> {
    builder: Builder<W>,
    /// How many names in front are left out.
    skipped: usize,
    /// Where files with several names are in the archive.
    linked: HashMap<(u64, u64), Vec<u8>>,
}

impl<W: Write> Archive<W> {
    fn new(writer: W, skipped: usize) -> Self {
        Self { builder: Builder::new(writer), skipped, linked: HashMap::new() }
    }

    fn put(&mut self, tree: &mut Frozen, entry: &Entry) -> io::Result<()> {
        let path = path_of(entry.names.get(self.skipped..).unwrap_or_default());
        let mut header = header(entry);
        match entry.kind {
            EntryKind::Folder => {
                header.set_entry_type(EntryType::Directory);
                self.builder.append_data(&mut header, as_path(&[&path, &b"/"[..]].concat()), io::empty())
            }
            EntryKind::Pipe => {
                header.set_entry_type(EntryType::Fifo);
                self.builder.append_data(&mut header, as_path(&path), io::empty())
            }
            EntryKind::Link => {
                header.set_entry_type(EntryType::Symlink);
                let text = tree.read_link(entry)?;
                self.put_link(header, &path, text.to_bytes())
            }
            EntryKind::File => {
                if entry.links > 1 {
                    if let Some(first) = self.linked.get(&entry.identity).cloned() {
                        header.set_entry_type(EntryType::Link);
                        return self.put_link(header, &path, &first);
                    }
                    self.linked.insert(entry.identity, path.clone());
                }
                header.set_entry_type(EntryType::Regular);
                header.set_size(entry.size);
                let file = tree.open_file(entry)?;
                self.builder.append_data(&mut header, as_path(&path), Exactly { file, left: entry.size })
            }
        }
    }

    /// Links are written as they are; the builder would bring them into their shortest form.
    fn put_link(&mut self, mut header: Header, path: &[u8], text: &[u8]) -> io::Result<()> {
        if text.len() > SHORT_LINK {
            let mut long = Header::new_gnu();
            long.set_entry_type(EntryType::GNULongLink);
            long.set_path("././@LongLink")?;
            long.set_mode(0o644);
            long.set_size(text.len() as u64 + 1);
            long.set_cksum();
            self.builder.append(&long, &[text, &b"\0"[..]].concat()[..])?;
        }
        header.set_link_name_literal(&text[..text.len().min(SHORT_LINK)])?;
        self.builder.append_data(&mut header, as_path(path), io::empty())
    }

    fn put_bytes(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_size(bytes.len() as u64);
        self.builder.append_data(&mut header, path, bytes)
    }

    fn finish(self) -> io::Result<()> {
        self.builder.into_inner()?.flush()
    }
}

fn header(entry: &Entry) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(0);
    header.set_mode(entry.mode);
    header.set_uid(entry.uid.into());
    header.set_gid(entry.gid.into());
    header.set_mtime(u64::try_from(entry.modified.0).unwrap_or(0));
    header
}

/// As many bytes of a file as its entry says; fewer would shift everything behind it.
struct Exactly {
    file: File,
    left: u64,
}

impl Read for Exactly {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        let read = self.file.read(&mut bytes[..most])?;
        if read == 0 && most > 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a file of a snapshot shrank"));
        }
        self.left -= read as u64;
        Ok(read)
    }
}
