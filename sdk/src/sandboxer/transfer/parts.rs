//! Uploads where the service takes no more than one small file a call: parts beside the target, put together there.

use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use sha2::{Digest as _, Sha256};

use super::{Meter, source::Source};
use crate::{
    call::{COMMAND_LIMIT_MAX, CallOptions},
    command::Command,
    error::{Delivery, Error, ErrorKind, Result},
    generated::operations::Operation,
    output::Output,
    sandboxer::files::{AsyncFiles, MAX_FILE},
    transport::Tries,
};

/// How long clearing up after a failure may take.
const CLEARING: Duration = Duration::from_secs(30);

/// Arguments: folder of the parts, name of the target, number of parts, size, SHA-256. Nothing but the last rename
/// touches the target, and it stays in one folder, so the target is the old file or the new one at every moment.
/// However it ends, the parts are removed, unless it is killed outright: some shells end at another signal without a word
/// to `EXIT`, so that is caught.
const JOIN: &str = r#"
set -e
parts=$1 target=./$2 count=$3 size=$4 sum=$5
trap 'rm -rf "$parts" || :' EXIT
trap 'exit 1' HUP INT TERM
if [ -L "$target" ] || { [ -e "$target" ] && [ ! -f "$target" ]; }; then exit 43; fi
whole=$parts/whole
: >"$whole"
part=0
while [ "$part" -lt "$count" ]; do
    cat "$parts/$part" >>"$whole"
    rm -f "$parts/$part"
    part=$((part + 1))
done
[ "$(wc -c <"$whole")" -eq "$size" ] || exit 41
if command -v sha256sum >/dev/null; then found=$(sha256sum <"$whole"); else found=$(shasum -a 256 <"$whole"); fi
[ "${found%% *}" = "$sum" ] || exit 42
mode=644
if [ -e "$target" ]; then mode=$(stat -c %a "$target" 2>/dev/null || stat -f %Lp "$target"); fi
chmod "$mode" "$whole"
mv -f "$whole" "$target"
"#;

/// The parts of one upload that were written.
struct Parts {
    count: u64,
    /// The SHA-256 of all of them together.
    sum: String,
}

/// Where the parts of one upload are.
struct Place<'a> {
    /// The folder of the target, as the caller wrote it; nothing for the home folder.
    parent: Option<&'a str>,
    name: &'a str,
    /// The folder of the parts, in the target's.
    folder: String,
}

impl<'a> Place<'a> {
    fn of(path: &'a str) -> Option<Self> {
        let (parent, name) = match path.rsplit_once('/') {
            None => (None, path),
            Some(("", name)) => (Some("/"), name),
            Some((parent, name)) => (Some(parent), name),
        };
        let folder = format!(".upload-{}", uuid::Uuid::new_v4().simple());
        (!matches!(name, "" | "." | "..")).then_some(Self { parent, name, folder })
    }

    fn part(&self, number: u64) -> String {
        let parent = self.parent.map(|parent| format!("{}/", parent.trim_end_matches('/')));
        format!("{}{}/{number}", parent.unwrap_or_default(), self.folder)
    }

    fn command<const N: usize>(&self, words: [&str; N]) -> Command {
        let command = Command::argv(words);
        match self.parent {
            Some(parent) => command.cwd(parent),
            None => command,
        }
    }
}

impl AsyncFiles {
    pub(super) async fn send_in_parts<S>(
        &self,
        path: &str,
        first: Bytes,
        source: Source<S>,
        meter: &mut Meter,
    ) -> Result<u64>
    where
        S: Stream<Item = Result<Bytes>> + Unpin,
    {
        let Some(place) = Place::of(path) else {
            return Err(Error::invalid_input("path", "must name a file, not a folder"));
        };
        let (sent, runs_on) = match self.write_parts(&place, first, source, meter).await {
            Ok(parts) => {
                let tries = Tries::default();
                match self.join(&place, &parts, meter.sent(), &tries).await {
                    Ok(output) => (self.joined(output, meter.sent()), false),
                    Err(error) => (Err(error), tries.may_have_acted()),
                }
            }
            Err(error) => (Err(error), false),
        };
        // A joining command that may run on needs the parts, and clears up by itself.
        if sent.is_err() && !runs_on {
            self.clear(&place).await;
        }
        sent
    }

    async fn clear(&self, place: &Place<'_>) {
        let brief = self.sandbox.with(CallOptions::new().retries(0).total(CLEARING));
        // What went wrong is told; that clearing up went wrong too would only hide it.
        if let Err(error) = brief.exec(place.command(["rm", "-rf", &place.folder])).await {
            tracing::warn!(code = error.code(), "the parts of a failed upload were not removed");
        }
    }

    async fn write_parts<S>(
        &self,
        place: &Place<'_>,
        first: Bytes,
        mut source: Source<S>,
        meter: &mut Meter,
    ) -> Result<Parts>
    where
        S: Stream<Item = Result<Bytes>> + Unpin,
    {
        let (mut digest, mut count, mut part) = (Sha256::new(), 0_u64, first);
        while !part.is_empty() {
            digest.update(&part);
            self.write_part(&place.part(count), &part).await?;
            count += 1;
            meter.advance(part.len());
            drop(part);
            part = source.part(MAX_FILE).await?;
        }
        let sum = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Parts { count, sum })
    }

    async fn join(&self, place: &Place<'_>, parts: &Parts, sent: u64, tries: &Tries) -> Result<Output> {
        let (count, size) = (parts.count.to_string(), sent.to_string());
        let words = ["sh", "-c", JOIN, "sh", &place.folder, place.name, &count, &size, &parts.sum];
        self.sandbox.exec_noting(place.command(words).timeout(COMMAND_LIMIT_MAX), tries).await
    }

    /// What a joining command that has ended came to.
    fn joined(&self, output: Output, sent: u64) -> Result<u64> {
        let error = match output.exit_code() {
            Some(0) => return Ok(sent),
            Some(41 | 42) => {
                let message = "the pieces, put together, are not what was sent";
                Error::new(ErrorKind::Unexpected, "upload_damaged", message)
            }
            Some(43) => {
                let message = "the path names a folder, a link or a device, not a plain file";
                Error::new(ErrorKind::BadRequest, "invalid_path", message)
            }
            _ => {
                let error = Error::new(
                    ErrorKind::Unexpected,
                    "upload_failed",
                    "the pieces could not be put together in the sandbox",
                );
                match output.check() {
                    Err(cause) => error.with_source(cause),
                    Ok(_) => error,
                }
            }
        };
        Err(self.label(error.with_delivery(Delivery::Answered), Operation::Command))
    }
}

#[cfg(test)]
mod tests {
    use super::{JOIN, Place};

    /// A service that stops a command signals everything that the command started.
    #[test]
    #[cfg(unix)]
    fn a_joining_command_that_is_stopped_removes_the_parts() {
        use std::{fs, os::unix::process::CommandExt as _, process::Command};

        let there = std::env::temp_dir().join(format!("parts-{}", uuid::Uuid::new_v4().simple()));
        let parts = there.join("parts");
        fs::create_dir_all(&parts).unwrap();
        assert!(Command::new("mkfifo").arg(parts.join("0")).status().unwrap().success());
        let mut join = Command::new("sh")
            .args(["-c", JOIN, "sh", "parts", "target", "1", "1", "0"])
            .current_dir(&there)
            .process_group(0)
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Opened once the command reads the part; it gets no end of it.
        let part = fs::File::options().write(true).open(parts.join("0")).unwrap();
        let group = format!("kill -TERM -{}", join.id());
        assert!(Command::new("sh").args(["-c", &group]).status().unwrap().success());
        assert!(!join.wait().unwrap().success());
        assert!(!parts.exists() && !there.join("target").exists());
        drop(part);
        fs::remove_dir_all(there).unwrap();
    }

    #[test]
    fn parts_are_beside_the_target() {
        for (path, parent, name, part) in [
            ("a", None, "a", ".upload-"),
            ("x/a", Some("x"), "a", "x/.upload-"),
            ("/tmp/a", Some("/tmp"), "a", "/tmp/.upload-"),
            ("/tmp//a", Some("/tmp/"), "a", "/tmp/.upload-"),
            ("/a", Some("/"), "a", "/.upload-"),
            ("x/-a b'", Some("x"), "-a b'", "x/.upload-"),
        ] {
            let place = Place::of(path).unwrap();
            assert_eq!((place.parent, place.name), (parent, name));
            assert!(place.part(7).starts_with(part) && place.part(7).ends_with("/7"), "{}", place.part(7));
        }
        for path in ["x/", ".", "x/.."] {
            assert!(Place::of(path).is_none(), "{path}");
        }
    }
}
