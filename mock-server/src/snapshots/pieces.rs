//! What of a snapshot can be downloaded to rebuild it: the archive of what it adds to the one that it builds on, compressed,
//! in pieces.

use std::{
    fs::{self, File},
    io::{self, BufReader, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use ruzstd::encoding::{CompressionLevel, FrameCompressor};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{Shelf, archive};
use crate::{
    app::App,
    space,
    world::{ids, snapshots::Snapshot},
};

/// How long a piece is; the last one is shorter.
const PIECE: u64 = 4 << 20;

/// How much of the archive is compressed at once.
const BLOCK: usize = 128 * 1024;

/// One piece.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Piece {
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

impl Shelf {
    /// The file of a piece.
    pub(crate) fn piece(&self, id: &str, index: usize) -> PathBuf {
        self.folder(id).join("pieces").join(index.to_string())
    }
}

/// The pieces of a snapshot, made the first time that somebody asks for them. Whoever asks keeps the files of the
/// snapshot, and of the one that it builds on, from being removed.
pub(crate) async fn pieces(app: &Arc<App>, snapshot: &Snapshot) -> io::Result<Vec<Piece>> {
    let folder = app.shelf.folder(&snapshot.id);
    let older = snapshot.previous.as_deref().map(|id| app.shelf.disk(id));
    let scratch = app.scratch();
    // Two who come at once make them twice; the second finds the name taken.
    tokio::task::spawn_blocking(move || {
        let done = folder.join("pieces");
        if let Some(known) = read_list(&done)? {
            return Ok(known);
        }
        let draft = scratch.join(format!("pieces-{}", uuid::Uuid::new_v4().simple()));
        let made = make(&folder.join("disk"), older.as_ref(), &draft)
            .and_then(|made| fs::rename(&draft, &done).map(|()| made));
        if made.is_err() {
            space::remove_tree_blocking(&draft)?;
        }
        // Whoever came at the same time may have been first.
        match read_list(&done)? {
            Some(known) => Ok(known),
            None => made,
        }
    })
    .await
    .map_err(io::Error::other)?
}

fn read_list(folder: &Path) -> io::Result<Option<Vec<Piece>>> {
    match fs::read(folder.join("list")) {
        Ok(list) => Ok(Some(serde_json::from_slice(&list)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn make(disk: &Path, older: Option<&PathBuf>, target: &Path) -> io::Result<Vec<Piece>> {
    fs::create_dir(target)?;
    let (reader, writer) = io::pipe()?;
    let (pieces, packed) = std::thread::scope(|scope| {
        let packing = scope.spawn(move || archive::write_disk(disk, older, writer));
        let pieces = compress(BufReader::with_capacity(BLOCK, reader), target);
        let packed = packing.join().unwrap_or_else(|_| Err(io::Error::other("packing panicked")));
        (pieces, packed)
    });
    packed?;
    let pieces = pieces?;
    fs::write(target.join("list"), serde_json::to_vec(&pieces)?)?;
    Ok(pieces)
}

fn compress(reader: impl Read, target: &Path) -> io::Result<Vec<Piece>> {
    let (mut source, mut drain) = (Calm::new(reader), Calm::new(Cutter::new(target)));
    // The compressor takes failures for bugs, so that it must not get to see any.
    let mut compressor = FrameCompressor::new(CompressionLevel::Fastest);
    compressor.set_source(&mut source);
    compressor.set_drain(&mut drain);
    compressor.compress();
    drop(compressor);
    source.end()?;
    drain.end()?.finish()
}

/// A reader or writer that keeps its first failure to itself.
struct Calm<T> {
    inner: T,
    failure: Option<io::Error>,
}

impl<T> Calm<T> {
    fn new(inner: T) -> Self {
        Self { inner, failure: None }
    }

    fn end(self) -> io::Result<T> {
        self.failure.map_or(Ok(self.inner), Err)
    }
}

impl<T: Read> Read for Calm<T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while self.failure.is_none() {
            match self.inner.read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.failure = Some(error),
                read => return read,
            }
        }
        Ok(0)
    }
}

impl<T: Write> Write for Calm<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failure.is_none() {
            self.failure = self.inner.write_all(bytes).err();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Cuts what is written into pieces.
struct Cutter {
    folder: PathBuf,
    pieces: Vec<Piece>,
    open: Option<(File, Sha256, u64)>,
}

impl Cutter {
    fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), pieces: Vec::new(), open: None }
    }

    fn close(&mut self) {
        if let Some((_, hash, bytes)) = self.open.take() {
            self.pieces.push(Piece { bytes, sha256: ids::hex(&hash.finalize()) });
        }
    }

    fn finish(mut self) -> io::Result<Vec<Piece>> {
        self.close();
        Ok(self.pieces)
    }
}

impl Write for Cutter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (file, hash, length) = match &mut self.open {
            Some(open) => open,
            None => {
                let path = self.folder.join(self.pieces.len().to_string());
                self.open.insert((File::create_new(path)?, Sha256::new(), 0))
            }
        };
        let room = usize::try_from(PIECE - *length).unwrap_or(usize::MAX).min(bytes.len());
        file.write_all(&bytes[..room])?;
        hash.update(&bytes[..room]);
        *length += room as u64;
        if *length == PIECE {
            self.close();
        }
        Ok(room)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
