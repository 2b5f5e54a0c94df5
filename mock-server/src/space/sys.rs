//! The few calls that differ between systems, and a portable reading of file metadata.

use std::{
    ffi::CStr,
    fs::File,
    io::{self, Seek, SeekFrom},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid},
    io::Errno,
    path::Arg,
};

/// Opens a folder as a place to start from; it need not be readable.
#[cfg(target_os = "linux")]
pub(super) const FOLDER: OFlags = OFlags::PATH.union(READ_FOLDER);
/// Opens a folder as a place to start from.
#[cfg(not(target_os = "linux"))]
pub(super) const FOLDER: OFlags = READ_FOLDER;
/// Opens a folder to list or change it.
pub(super) const READ_FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Opens whatever a name stands for, without following it and without waiting for the other end of a pipe.
pub(super) const LEAF: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// What this module needs to know of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meta {
    pub(super) kind: FileType,
    pub(super) mode: Mode,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) size: u64,
    pub(super) allocated: u64,
    pub(super) links: u64,
    pub(super) identity: (u64, u64),
    times: [(i64, i64); 2],
    changed: (i64, i64),
}

impl Meta {
    #[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "the types differ between systems")]
    fn new(stat: &Stat) -> Self {
        Self {
            kind: FileType::from_raw_mode(stat.st_mode as _),
            mode: Mode::from_raw_mode(stat.st_mode as _),
            uid: stat.st_uid,
            gid: stat.st_gid,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            allocated: u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512),
            links: stat.st_nlink as u64,
            identity: (stat.st_dev as u64, stat.st_ino as u64),
            times: [
                (stat.st_atime as i64, stat.st_atime_nsec as i64),
                (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            ],
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }

    pub(super) fn of(fd: impl AsFd) -> Result<Self, Errno> {
        Ok(Self::new(&rustix::fs::fstat(fd)?))
    }

    /// Of the name itself, never of what a link leads to.
    pub(super) fn at(folder: impl AsFd, name: impl Arg) -> Result<Self, Errno> {
        Ok(Self::new(&rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    pub(super) fn is_folder(&self) -> bool {
        self.kind == FileType::Directory
    }

    /// Seconds and nanoseconds since 1970 of the last write, as far as nobody has set another time.
    pub(super) fn modified(&self) -> (i64, i64) {
        self.times[1]
    }

    /// The same of the last change of whatever kind, which nobody can set.
    pub(super) fn changed(&self) -> (i64, i64) {
        self.changed
    }

    /// Whether both are regular files that look the same from outside.
    pub(super) fn looks_like(&self, other: &Self) -> bool {
        let look = |it: &Self| (it.mode, it.uid, it.gid, it.size, it.modified());
        let are_files = [self, other].iter().all(|it| it.kind == FileType::RegularFile);
        are_files && look(self) == look(other)
    }

    #[allow(clippy::useless_conversion, reason = "the types differ between systems")]
    pub(super) fn timestamps(&self) -> Timestamps {
        let [access, change] = self.times.map(|(seconds, nanoseconds)| Timespec {
            tv_sec: seconds.into(),
            tv_nsec: nanoseconds.try_into().unwrap_or_default(),
        });
        Timestamps { last_access: access, last_modification: change }
    }
}

/// Gives an open file to `uid` and `gid` where it is not theirs already.
pub(super) fn give(fd: impl AsFd, uid: u32, gid: u32) -> Result<(), Errno> {
    let now = Meta::of(&fd)?;
    if (now.uid, now.gid) == (uid, gid) {
        return Ok(());
    }
    rustix::fs::fchown(fd, Some(Uid::from_raw_unchecked(uid)), Some(Gid::from_raw_unchecked(gid)))
}

/// Permission bits that were added to a file or folder of ours, for a while.
#[derive(Debug)]
pub(super) struct Granted {
    place: OwnedFd,
    /// The mode that it had before.
    pub(super) before: Mode,
    given: Mode,
}

impl Granted {
    /// Takes them away again, unless somebody has set another mode meanwhile.
    pub(super) fn give_back(self) -> Result<(), Errno> {
        if Meta::of(&self.place)?.mode == self.given {
            set_mode(self.place.as_fd(), self.before)?;
        }
        Ok(())
    }
}

/// Adds permission bits to our own file `name`, whatever it is by now, but never to what a link leads to.
pub(super) fn grant(folder: BorrowedFd<'_>, name: impl Arg + Copy, bits: Mode) -> Result<Granted, Errno> {
    let fd = rustix::fs::openat(folder, name, path_only(), Mode::empty())?;
    let meta = Meta::of(&fd)?;
    if meta.kind == FileType::Symlink {
        return Err(Errno::LOOP);
    }
    set_mode(fd.as_fd(), meta.mode | bits)?;
    Ok(Granted { place: fd, before: meta.mode, given: meta.mode | bits })
}

/// Sets the permission bits of `name`, whatever it is by now, but never of what a link leads to: that is `LOOP`. Tells what
/// it is then.
pub(super) fn change_mode(folder: BorrowedFd<'_>, name: impl Arg, mode: Mode) -> Result<Meta, Errno> {
    let fd = rustix::fs::openat(folder, name, path_only(), Mode::empty())?;
    if Meta::of(&fd)?.kind == FileType::Symlink {
        return Err(Errno::LOOP);
    }
    set_mode(fd.as_fd(), mode)?;
    Meta::of(&fd)
}

/// Gives a file or folder another place, where nothing may be.
pub(super) fn rename_new(
    from: BorrowedFd<'_>,
    name: impl Arg + Copy,
    to: BorrowedFd<'_>,
    new_name: impl Arg + Copy,
) -> Result<(), Errno> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    match rustix::fs::renameat_with(from, name, to, new_name, rustix::fs::RenameFlags::NOREPLACE) {
        // Not every file system has that.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        result => return result,
    }
    match Meta::at(to, new_name) {
        Ok(_) => Err(Errno::EXIST),
        Err(Errno::NOENT) => rustix::fs::renameat(from, name, to, new_name),
        Err(errno) => Err(errno),
    }
}

#[cfg(target_os = "linux")]
fn path_only() -> OFlags {
    OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

#[cfg(not(target_os = "linux"))]
fn path_only() -> OFlags {
    LEAF
}

/// Sets the mode of a file that may be open as a place only.
#[cfg(target_os = "linux")]
pub(super) fn set_mode(fd: BorrowedFd<'_>, mode: Mode) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), mode)
}

/// Sets the mode of an open file.
#[cfg(not(target_os = "linux"))]
pub(super) fn set_mode(fd: BorrowedFd<'_>, mode: Mode) -> Result<(), Errno> {
    rustix::fs::fchmod(fd, mode)
}

/// How many of `names` one call of [`open_below`] takes.
pub(super) fn step_length(names: &[&CStr]) -> usize {
    let mut length = 0;
    let fits = |name: &&&CStr| {
        length += name.count_bytes() + 1;
        length < 4000
    };
    names.iter().take_while(fits).count().max(1)
}

/// Opens the folder that `names` lead to one after the other, following no link.
pub(super) fn open_below(top: BorrowedFd<'_>, names: &[&CStr], flags: OFlags) -> Result<OwnedFd, Errno> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let path = names.iter().map(|name| name.to_bytes()).collect::<Vec<_>>().join(&b'/');
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(top, path, flags, Mode::empty(), resolve) {
            // Old kernels and strict seccomp filters do not have the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            result => return result,
        }
    }
    let mut folder: Option<OwnedFd> = None;
    for (index, name) in names.iter().enumerate() {
        let from = folder.as_ref().map_or(top, AsFd::as_fd);
        let flags = if index + 1 == names.len() { flags } else { FOLDER };
        folder = Some(rustix::fs::openat(from, *name, flags, Mode::empty())?);
    }
    folder.ok_or(Errno::INVAL)
}

/// Opens a regular file for reading, without marking it as read where the system allows that.
pub(super) fn open_quietly(folder: BorrowedFd<'_>, name: impl Arg + Copy) -> Result<OwnedFd, Errno> {
    #[cfg(target_os = "linux")]
    match rustix::fs::openat(folder, name, LEAF | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => {}
        result => return result,
    }
    rustix::fs::openat(folder, name, LEAF, Mode::empty())
}

/// Makes `target` share the blocks of `source`; false where the file system cannot.
#[cfg(target_os = "linux")]
pub(super) fn share_blocks(source: &File, target: &File) -> bool {
    rustix::fs::ioctl_ficlone(target, source).is_ok()
}

/// Makes `target` share the blocks of `source`; false where the file system cannot.
#[cfg(not(target_os = "linux"))]
pub(super) fn share_blocks(_source: &File, _target: &File) -> bool {
    false
}

/// The next stretch of data at or after `from`: its start and end.
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "freebsd"))]
pub(super) fn next_data(file: &File, from: u64, size: u64) -> Option<(u64, u64)> {
    use rustix::fs::{SeekFrom, seek};
    match seek(file, SeekFrom::Data(from)) {
        Ok(start) => Some((start, seek(file, SeekFrom::Hole(start)).unwrap_or(size))),
        Err(Errno::NXIO) => None,
        Err(_) => (from < size).then_some((from, size)),
    }
}

/// The next stretch of data at or after `from`: here always the rest.
#[cfg(not(any(target_os = "linux", target_os = "macos", target_os = "freebsd")))]
pub(super) fn next_data(_file: &File, from: u64, size: u64) -> Option<(u64, u64)> {
    (from < size).then_some((from, size))
}

/// Copies `start..end` of `source` to the same place in `target`.
pub(super) fn copy_range(mut source: &File, mut target: &File, start: u64, end: u64) -> io::Result<u64> {
    source.seek(SeekFrom::Start(start))?;
    target.seek(SeekFrom::Start(start))?;
    io::copy(&mut io::Read::take(&mut source, end - start), &mut target)
}

/// Makes a named pipe.
#[cfg(not(target_vendor = "apple"))]
pub(super) fn make_pipe(folder: BorrowedFd<'_>, name: impl Arg, mode: Mode) -> Result<(), Errno> {
    rustix::fs::mkfifoat(folder, name, mode)
}

/// Makes a named pipe: not offered relative to a folder by this system.
#[cfg(target_vendor = "apple")]
pub(super) fn make_pipe(_folder: BorrowedFd<'_>, _name: impl Arg, _mode: Mode) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Copies the extended attributes that a user may set and the access lists, as far as the file system takes them.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(super) fn copy_attributes(source: BorrowedFd<'_>, target: BorrowedFd<'_>) {
    let Ok(length @ 1..) = rustix::fs::flistxattr_query(source) else { return };
    let mut names = vec![0u8; length];
    let Ok(length) = rustix::fs::flistxattr(source, names.as_mut_slice()) else { return };
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        if cfg!(target_os = "linux") && !name.starts_with(b"user.") && !name.starts_with(b"system.posix_acl_")
        {
            continue;
        }
        let Ok(length) = rustix::fs::fgetxattr_query(source, name) else { continue };
        let mut value = vec![0u8; length];
        if let Ok(length) = rustix::fs::fgetxattr(source, name, value.as_mut_slice()) {
            let _ = rustix::fs::fsetxattr(target, name, &value[..length], rustix::fs::XattrFlags::empty());
        }
    }
}

/// Copies no extended attributes: this system has them in another form.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(super) fn copy_attributes(_source: BorrowedFd<'_>, _target: BorrowedFd<'_>) {}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn a_mode_that_somebody_set_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let set = |mode: u32| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let mode = || fs::metadata(&file).unwrap().permissions().mode() & 0o7777;
        let place = File::open(folder.path()).unwrap();
        for (meanwhile, after) in [(None, 0o200), (Some(0o755), 0o755)] {
            set(0o200);
            let granted = grant(place.as_fd(), "file", Mode::RUSR).unwrap();
            assert_eq!((mode(), granted.before), (0o600, Mode::WUSR));
            meanwhile.into_iter().for_each(set);
            granted.give_back().unwrap();
            assert_eq!(mode(), after);
        }
    }
}
