//! What an earlier copy of a tree saves a later one.

use std::{
    ffi::CStr,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::fs::{AtFlags, CWD, Mode};

use super::{
    sys::{self, Meta},
    tree::Folders,
};

/// An earlier copy of the same tree, which nobody changes any more; or none.
pub(super) struct Earlier {
    root: Option<OwnedFd>,
    /// Its folder of the same names as the one that is copied right now.
    folder: Option<OwnedFd>,
}

impl Earlier {
    /// The copy in a folder; one that cannot be opened saves nothing.
    pub(super) fn open(root: Option<&Path>) -> Self {
        let root = root.and_then(|root| rustix::fs::openat(CWD, root, sys::READ_FOLDER, Mode::empty()).ok());
        Self { root, folder: None }
    }

    /// Turns to the folder that is copied now.
    pub(super) fn enter(&mut self, folders: &Folders, index: usize) {
        self.folder = self.root.as_ref().and_then(|root| folders.open(root.as_fd(), index, sys::FOLDER).ok());
    }

    /// Gives the later copy a file of this one under the same name, if the source has not been changed since it was made;
    /// says whether it did.
    pub(super) fn give(&self, target: BorrowedFd<'_>, name: &CStr, source: &Meta) -> bool {
        let Some(folder) = &self.folder else { return false };
        let Ok(copy) = Meta::at(folder, name) else { return false };
        // Anybody can set the time of the last write, but not that of the last change, which comes before that of the copy:
        // the copy's is from when it was made, or was given to a later one.
        if !source.looks_like(&copy) || source.changed() >= copy.changed() {
            return false;
        }
        rustix::fs::linkat(folder, name, target, name, AtFlags::empty()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File, FileTimes},
        os::unix::fs::MetadataExt as _,
    };

    use super::{super::copy_tree_while, *};

    /// Waits until the file system tells a change from those that there were.
    fn tick(probe: &Path) {
        let touch = || {
            fs::write(probe, "x").unwrap();
            let look = fs::metadata(probe).unwrap();
            (look.ctime(), look.ctime_nsec())
        };
        let before = touch();
        while touch() <= before {}
    }

    #[test]
    fn what_has_not_changed_is_in_both_copies_under_one_number() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let source = at("source");
        fs::create_dir_all(source.join("sub")).unwrap();
        for name in ["same", "sub/deep", "rewritten", "set_back", "chmod", "one"] {
            fs::write(source.join(name), "old").unwrap();
        }
        fs::hard_link(source.join("one"), source.join("two")).unwrap();
        tick(&at("probe"));
        copy_tree_while(&source, &at("first"), None, &|| true).unwrap();
        tick(&at("probe"));

        fs::write(source.join("rewritten"), "newer").unwrap();
        // Of the same length, and it looks as old as before.
        let written = fs::metadata(source.join("set_back")).unwrap().modified().unwrap();
        fs::write(source.join("set_back"), "new").unwrap();
        let file = File::options().write(true).open(source.join("set_back")).unwrap();
        file.set_times(FileTimes::new().set_modified(written)).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(source.join("chmod"), mode).unwrap();
        fs::write(source.join("fresh"), "new").unwrap();
        tick(&at("probe"));
        let report = copy_tree_while(&source, &at("second"), Some(&at("first")), &|| true).unwrap();
        assert_eq!((report.files, report.vanished), (8, 0));
        let number = |copy: &str, name: &str| fs::metadata(at(copy).join(name)).unwrap().ino();
        let is_shared = |name: &str| number("first", name) == number("second", name);
        for name in ["same", "sub/deep", "one", "two"] {
            assert!(is_shared(name), "{name}");
            assert_ne!(number("second", name), number("source", name), "{name}");
        }
        assert_eq!(number("second", "one"), number("second", "two"));
        let read = |copy: &str, name: &str| fs::read_to_string(at(copy).join(name)).unwrap();
        for (name, now) in [("rewritten", "newer"), ("set_back", "new"), ("chmod", "old")] {
            assert!(!is_shared(name), "{name}");
            assert_eq!((read("first", name), read("second", name)), ("old".into(), now.into()), "{name}");
        }

        // What the second one was given, it gives to a third; and it stays when those before it go.
        tick(&at("probe"));
        copy_tree_while(&source, &at("third"), Some(&at("second")), &|| true).unwrap();
        assert_eq!(number("third", "same"), number("first", "same"));
        assert_eq!(number("third", "set_back"), number("second", "set_back"));
        fs::remove_dir_all(at("first")).unwrap();
        fs::remove_dir_all(at("second")).unwrap();
        assert_eq!((read("third", "same"), read("third", "sub/deep")), ("old".into(), "old".into()));
    }
}
