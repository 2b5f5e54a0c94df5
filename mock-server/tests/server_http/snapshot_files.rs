//! What is in a snapshot: its tree, a file, a part of one, a folder as an archive, and all of it to be rebuilt.

use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::Path,
    time::Duration,
};

use bytes::Bytes;
use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, runner::RunnerKind};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::http::{Api, guarded};

/// A server with a stopped clock, and a sandbox in it.
async fn server() -> (MockServer, Api, ManualClock, String) {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    (server, api, clock, id)
}

/// Fetches bytes, with a `Range` or without.
async fn fetch(api: &Api, path: &str, headers: &[(&str, &str)]) -> (u16, BTreeMap<String, String>, Bytes) {
    let mut request = api.request("GET", path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    guarded(async {
        let response = request.send().await.unwrap();
        let text = |value: &reqwest::header::HeaderValue| value.to_str().unwrap().to_owned();
        let headers =
            response.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
        (response.status().as_u16(), headers, response.bytes().await.unwrap())
    })
    .await
}

fn text(bytes: &Bytes) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Bytes that no compressor makes shorter.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u8::try_from(state >> 56).unwrap()
    };
    std::iter::repeat_with(next).take(length).collect()
}

#[tokio::test]
async fn files_folders_and_links_are_found_by_their_paths() {
    let (server, api, _clock, id) = server().await;
    let home = server.world().folder(&id).join("home/user");
    fs::create_dir_all(home.join("app/empty")).unwrap();
    fs::write(home.join("app/log.txt"), "0123456789").unwrap();
    fs::write(home.join("app/none"), "").unwrap();
    symlink("/home/user/app", home.join("link")).unwrap();
    let snapshot = server.world().capture(&id).unwrap();
    fs::write(home.join("app/log.txt"), "changed since").unwrap();

    let tree = api.get(&format!("/snapshots/{snapshot}/tree")).await.succeeds(200, "snapshot.tree");
    let entries = json!([
        {"path": "home/user/app", "kind": "dir"},
        {"path": "home/user/app/empty", "kind": "dir"},
        {"path": "home/user/app/log.txt", "kind": "file", "size": 10},
        {"path": "home/user/app/none", "kind": "file", "size": 0},
        {"path": "home/user/link", "kind": "symlink"},
    ]);
    assert_eq!(tree["entries"], entries);
    assert_eq!((&tree["fileCount"], &tree["totalSizeBytes"]), (&json!(2), &json!(10)));
    assert_eq!((&tree["treeAvailable"], &tree["truncated"]), (&json!(true), &json!(false)));

    let files = format!("/snapshots/{snapshot}/files?path=");
    for path in ["home/user/app/log.txt", "/home/user/app/log.txt", "//home/./user/app/log.txt"] {
        let (status, headers, bytes) = fetch(&api, &format!("{files}{path}"), &[]).await;
        assert_eq!((status, text(&bytes)), (200, "0123456789"));
        assert_eq!((&headers["x-snapshot-entry-kind"][..], &headers["content-length"][..]), ("file", "10"));
        assert_eq!(
            (&headers["content-type"][..], &headers["accept-ranges"][..]),
            ("application/octet-stream", "bytes")
        );
    }
    let missing = [
        "nothing",
        "home/user/app/log.txt/",
        "home/user/app/../app/log.txt",
        "../log.txt",
        "home/user/link/log.txt",
        "usr/no/such",
        "home/user/%00",
        "usr",
    ];
    for path in missing {
        let answer = api.get(&format!("{files}{path}")).await;
        answer.fails(404, "path_not_found");
    }
    api.get(&format!("{files}home/user/link")).await.fails(409, "is_symlink");
    api.get(&format!("{files}/usr/bin/env")).await.fails(409, "base_image_file");
    api.get(&format!("{files}{}", "x".repeat(4097))).await.fails(400, "invalid_request");
}

#[tokio::test]
async fn a_part_of_a_file_is_given_as_it_is_asked_for() {
    let (server, api, _clock, id) = server().await;
    let home = server.world().folder(&id).join("home/user");
    fs::write(home.join("f"), "0123456789").unwrap();
    let path = format!("/snapshots/{}/files?path=home/user/f", server.world().capture(&id).unwrap());
    let tag = fetch(&api, &path, &[]).await.1["etag"].clone();
    assert!(tag.starts_with('"'), "{tag}");
    for (range, part, expected) in [
        ("bytes=0-3", "bytes 0-3/10", "0123"),
        ("bytes=7-", "bytes 7-9/10", "789"),
        ("bytes=-2", "bytes 8-9/10", "89"),
        ("bytes=8-400", "bytes 8-9/10", "89"),
    ] {
        let (status, headers, bytes) = fetch(&api, &path, &[("range", range), ("if-range", &tag)]).await;
        assert_eq!((status, text(&bytes)), (206, expected), "{range}");
        assert_eq!(headers["content-range"], part);
        assert_eq!(headers["content-length"], expected.len().to_string());
        assert_eq!((&headers["x-snapshot-entry-kind"][..], &headers["etag"][..]), ("file", tag.as_str()));
    }
    for range in ["bytes=0-1,4-5", "bytes=5-2", "lines=1-2", "nonsense"] {
        let (status, headers, bytes) = fetch(&api, &path, &[("range", range)]).await;
        assert_eq!((status, text(&bytes)), (200, "0123456789"), "{range}");
        assert!(!headers.contains_key("content-range"));
    }
    let (status, _, bytes) = fetch(&api, &path, &[("range", "bytes=2-"), ("if-range", "\"other\"")]).await;
    assert_eq!((status, bytes.len()), (200, 10));
    for range in ["bytes=10-", "bytes=-0", "bytes=99999999999999999999-"] {
        let answer = api.send(api.request("GET", &path).header("range", range)).await;
        answer.fails(416, "range_not_satisfiable");
        assert_eq!(answer.headers["content-range"], "bytes */10");
    }
    let folder = path.replace("/user/f", "/user");
    let (status, headers, _) = fetch(&api, &folder, &[("range", "bytes=0-3")]).await;
    assert_eq!((status, &headers["x-snapshot-entry-kind"][..]), (200, "dir"));
}

/// What makes two trees the same: kinds, permissions, times of files, content, where links lead, which names are one file.
fn look(root: &Path) -> BTreeMap<String, String> {
    let (mut found, mut first) = (BTreeMap::new(), BTreeMap::new());
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            let meta = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            let mode = meta.permissions().mode() & 0o7777;
            let seen = if meta.is_dir() {
                folders.push(path);
                format!("folder {mode:o}")
            } else if meta.is_symlink() {
                format!("link {}", fs::read_link(&path).unwrap().display())
            } else {
                let hash = Sha256::digest(fs::read(&path).unwrap());
                let same = first.entry(meta.ino()).or_insert_with(|| name.clone());
                let same = if meta.nlink() > 1 { same.as_str() } else { "" };
                format!("file {mode:o} {} {hash:x?} {same}", meta.mtime())
            };
            found.insert(name, seen);
        }
    }
    found
}

/// Unpacks an archive over what is there, as the manifest says.
fn unpack(archive: impl std::io::Read, target: &Path) {
    let mut archive = tar::Archive::new(archive);
    archive.set_preserve_permissions(true);
    archive.set_preserve_mtime(true);
    archive.set_overwrite(true);
    let mut modes = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().into_owned();
        assert!(path.is_relative() && !path.components().any(|part| part.as_os_str() == ".."), "{path:?}");
        if path == Path::new(".deleted") {
            let mut gone = String::new();
            entry.read_to_string(&mut gone).unwrap();
            for path in gone.split_terminator('\0') {
                let path = target.join(path);
                if path.symlink_metadata().unwrap().is_dir() {
                    fs::remove_dir_all(path).unwrap();
                } else {
                    fs::remove_file(path).unwrap();
                }
            }
            continue;
        }
        if entry.header().entry_type().is_dir() {
            modes.push((target.join(&path), entry.header().mode().unwrap()));
        }
        assert!(entry.unpack_in(target).unwrap(), "{path:?}");
    }
    for (path, mode) in modes {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
}

fn fill(home: &Path) {
    fs::create_dir_all(home.join("src/deep")).unwrap();
    fs::write(home.join("src/deep/main.rs"), "fn main() {}\n").unwrap();
    fs::write(home.join("run.sh"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(home.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(home.join("big"), noise(5 << 20, 1)).unwrap();
    fs::write(home.join("same"), "x".repeat(1 << 20)).unwrap();
    fs::hard_link(home.join("same"), home.join("same too")).unwrap();
    symlink("../../etc//passwd", home.join("link")).unwrap();
    symlink("/".repeat(150), home.join("long link")).unwrap();
    fs::write(home.join("n".repeat(240)), "long name").unwrap();
    fs::write(home.join(".wh.x"), "no mark").unwrap();
    fs::create_dir(home.join("closed")).unwrap();
    fs::write(home.join("closed/in"), "in").unwrap();
    fs::set_permissions(home.join("closed"), fs::Permissions::from_mode(0o500)).unwrap();
    fs::create_dir(home.join("turns")).unwrap();
    fs::write(home.join("turns/in"), "").unwrap();
}

fn change(home: &Path) {
    fs::remove_dir_all(home.join("src")).unwrap();
    fs::write(home.join("run.sh"), "#!/bin/sh\necho\n").unwrap();
    fs::write(home.join("same"), "y".repeat(1 << 20)).unwrap();
    fs::remove_file(home.join("link")).unwrap();
    fs::write(home.join("link"), "a file now").unwrap();
    fs::remove_dir_all(home.join("turns")).unwrap();
    symlink("run.sh", home.join("turns")).unwrap();
    // Other content of the same length, with its old time.
    let time = fs::metadata(home.join("big")).unwrap().modified().unwrap();
    let file = fs::File::options().write(true).open(home.join("big")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"another start", 0).unwrap();
    file.set_modified(time).unwrap();
    fs::create_dir_all(home.join("new/folder")).unwrap();
    fs::write(home.join("new/folder/file"), "new").unwrap();
}

#[tokio::test]
async fn a_folder_comes_as_an_archive_of_what_is_in_it() {
    let (server, api, _clock, id) = server().await;
    let home = server.world().folder(&id).join("home/user");
    fill(&home);
    let snapshot = server.world().capture(&id).unwrap();
    let expected = look(&server.world().folder(&id));
    for path in ["", "?path=", "?path=/"] {
        let (status, headers, bytes) = fetch(&api, &format!("/snapshots/{snapshot}/files{path}"), &[]).await;
        assert_eq!((status, &headers["content-type"][..]), (200, "application/x-tar"));
        assert_eq!(headers["x-snapshot-entry-kind"], "dir");
        assert_eq!(
            (&headers["x-snapshot-file-count"][..], &headers["x-snapshot-skipped-base-image-files"][..]),
            ("9", "0")
        );
        let target = tempfile::tempdir().unwrap();
        unpack(&bytes[..], target.path());
        assert_eq!(look(target.path()), expected);
    }
    let (_, headers, bytes) =
        fetch(&api, &format!("/snapshots/{snapshot}/files?path=home/user/src"), &[]).await;
    assert_eq!(
        (&headers["x-snapshot-file-count"][..], &headers["x-snapshot-total-size-bytes"][..]),
        ("1", "13")
    );
    let target = tempfile::tempdir().unwrap();
    unpack(&bytes[..], target.path());
    assert_eq!(fs::read_to_string(target.path().join("deep/main.rs")).unwrap(), "fn main() {}\n");
}

#[tokio::test]
async fn a_disk_is_rebuilt_from_its_pieces() {
    let (server, api, clock, id) = server().await;
    let disk = server.world().folder(&id);
    fill(&disk.join("home/user"));
    server.world().capture(&id).unwrap();
    change(&disk.join("home/user"));
    server.world().capture(&id).unwrap();
    fs::write(disk.join("tmp/last"), "last").unwrap();
    let snapshot = server.world().capture(&id).unwrap();

    let path = format!("/snapshots/{snapshot}/download");
    let manifest = api.get(&path).await.succeeds(200, "snapshot.download");
    assert_eq!((&manifest["kind"], &manifest["generation"]), (&json!("incremental"), &json!(2)));
    assert_eq!(manifest["expiresInSeconds"], 3600);
    let chunks = manifest["chunks"].as_array().unwrap();
    let place =
        |chunk: &Value| (chunk["generation"].as_u64().unwrap(), chunk["chunkIndex"].as_u64().unwrap());
    assert!(chunks.iter().map(place).is_sorted() && chunks.len() == 5, "{chunks:?}");
    assert_eq!(place(chunks.last().unwrap()).0, 2);

    // Whoever has the address needs no key.
    let bare = reqwest::Client::builder().no_proxy().build().unwrap();
    let get = async |url: &str| guarded(async { bare.get(url).send().await.unwrap() }).await;
    let mut generations: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for chunk in chunks {
        let response = get(chunk["signedUrl"].as_str().unwrap()).await;
        assert_eq!(response.status(), 200);
        let bytes = response.bytes().await.unwrap();
        assert_eq!(bytes.len() as u64, chunk["sizeBytes"].as_u64().unwrap());
        let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, chunk["sha256"].as_str().unwrap());
        generations.entry(place(chunk).0).or_default().extend_from_slice(&bytes);
    }
    assert!(generations[&2].len() < 4096, "the last one adds a few bytes");
    let target = tempfile::tempdir().unwrap();
    for packed in generations.values() {
        unpack(ruzstd::decoding::StreamingDecoder::new(&packed[..]).unwrap(), target.path());
    }
    assert_eq!(look(target.path()), look(&disk));

    let inventory = get(manifest["inventory"]["signedUrl"].as_str().unwrap()).await.text().await.unwrap();
    let tree = api.get(&format!("/snapshots/{snapshot}/tree")).await.succeeds(200, "snapshot.tree");
    let lines: Vec<Value> = inventory.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(json!(lines), tree["entries"]);
    let again = api.get(&path).await.succeeds(200, "snapshot.download");
    assert_eq!(again["chunks"], manifest["chunks"]);

    let url = chunks[0]["signedUrl"].as_str().unwrap();
    let part = bare.get(url).header("range", "bytes=0-3").send().await.unwrap();
    assert_eq!(part.status(), 206);
    assert_eq!(&part.bytes().await.unwrap()[..], [0x28, 0xb5, 0x2f, 0xfd]);
    let refused = async |url: &str| get(url).await.status().as_u16();
    assert_eq!(refused(&url.replace("/0.tar.zst", "/1.tar.zst")).await, 403);
    assert_eq!(refused(&url.replace("expires=1", "expires=2")).await, 403);
    assert_eq!(refused(url.split_once('?').unwrap().0).await, 403);
    assert_eq!(refused(&format!("{}&signature=zz", url.split_once("&sig").unwrap().0)).await, 403);
    assert_eq!(bare.post(url).send().await.unwrap().status(), 405);
    clock.advance(Duration::from_secs(3599));
    assert_eq!(refused(url).await, 200);
    clock.advance(Duration::from_secs(1));
    assert_eq!(refused(url).await, 403);
}
