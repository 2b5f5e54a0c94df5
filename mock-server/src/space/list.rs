//! What a folder holds, for people who look.

use std::{
    ffi::{CString, OsStr},
    os::fd::AsFd,
};

use rustix::fs::FileType;

use super::{
    FileError, Files,
    entry::open_folder,
    files::LocatedKind,
    off_thread, sys,
    tree::{entries, vanished},
    walk::Links,
};

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) name: CString,
    pub(crate) kind: LocatedKind,
}

impl Files {
    /// The names in a folder, folders first, each kind by name; at most `most`, and whether there are more. A link is
    /// shown as what it is and not as what it leads to.
    pub(crate) fn list_blocking(
        &self,
        path: impl AsRef<OsStr>,
        most: usize,
    ) -> Result<(Vec<Listed>, bool), FileError> {
        let (folder, _) = open_folder(&mut self.walk(path.as_ref(), Links::Follow)?)?;
        // A folder may hold millions of names: a fixed part of them is looked at.
        let mut found: Vec<(CString, FileType)> = Vec::new();
        let mut has_more = false;
        for entry in entries(folder.as_fd())? {
            let entry = entry?;
            if found.len() >= most.saturating_mul(10) {
                has_more = true;
                break;
            }
            found.push(entry);
        }
        found.sort_by(|(name, kind), (other, other_kind)| {
            (*kind != FileType::Directory, name).cmp(&(*other_kind != FileType::Directory, other))
        });
        has_more |= found.len() > most;
        found.truncate(most);
        let mut listed = Vec::with_capacity(found.len());
        for (name, _) in found {
            let kind = match sys::Meta::at(folder.as_fd(), name.as_c_str()) {
                Ok(meta) => match meta.kind {
                    FileType::RegularFile => LocatedKind::File(meta.size),
                    FileType::Directory => LocatedKind::Folder,
                    _ => LocatedKind::Other,
                },
                Err(errno) if vanished(errno) => continue,
                Err(errno) => return Err(errno.into()),
            };
            listed.push(Listed { name, kind });
        }
        Ok((listed, has_more))
    }

    /// The same, away from the async threads.
    pub(crate) async fn list(
        &self,
        path: impl AsRef<OsStr>,
        most: usize,
    ) -> Result<(Vec<Listed>, bool), FileError> {
        let (files, path) = (self.clone(), path.as_ref().to_owned());
        off_thread(move || files.list_blocking(&path, most)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Owner;

    #[test]
    fn a_part_of_a_folder_is_listed_and_nothing_outside() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home/user");
        std::fs::create_dir_all(home.join("folder")).unwrap();
        std::fs::create_dir_all(root.path().join("tmp")).unwrap();
        std::fs::write(home.join("b"), "12").unwrap();
        std::fs::write(home.join("a"), "").unwrap();
        std::os::unix::fs::symlink("/etc", home.join("link")).unwrap();
        let files = Files::open(root.path(), Owner::current()).unwrap();
        let named = |most| {
            let (listed, has_more) = files.list_blocking("/home/user", most).unwrap();
            let listed: Vec<_> =
                listed.into_iter().map(|entry| (entry.name.into_string().unwrap(), entry.kind)).collect();
            (listed, has_more)
        };
        let all = vec![
            ("folder".to_owned(), LocatedKind::Folder),
            ("a".to_owned(), LocatedKind::File(0)),
            ("b".to_owned(), LocatedKind::File(2)),
            ("link".to_owned(), LocatedKind::Other),
        ];
        assert_eq!(named(100), (all.clone(), false));
        assert_eq!(named(2), (all[..2].to_vec(), true));
        assert_eq!(files.list_blocking("folder", 9).unwrap(), (Vec::new(), false));
        for outside in ["/home/user/link", "/etc", "/", "..", "/home"] {
            let refused = files.list_blocking(outside, 9);
            assert!(matches!(refused, Err(FileError::InvalidPath { .. })), "{outside}: {refused:?}");
        }
        for wrong in ["a", "nothing"] {
            assert!(files.list_blocking(wrong, 9).is_err(), "{wrong}");
        }
    }
}
