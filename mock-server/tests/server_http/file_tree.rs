//! Files and folders as things, which the other dialect asks for.

use sandboxer_mock_server::MockServer;
use serde_json::{Value, json};

use crate::http::Api;

async fn set_up(lines: &str) -> (MockServer, Api, String, String) {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    if !lines.is_empty() {
        assert_eq!(api.exec(&id, lines).await["exitCode"], 0);
    }
    let path = format!("/sandboxes/{id}/files");
    (server, api, id, path)
}

fn names(listed: &Value) -> Vec<&str> {
    let files = listed["files"].as_array().expect("files");
    files.iter().map(|file| file["name"].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn a_folder_is_listed_by_name_and_links_as_links() {
    let lines = "mkdir sub && printf abc > b.txt && chmod 640 b.txt && ln -s /etc/passwd a-link && mkfifo pipe \
                 && ln -s sub c-link && touch -d 2024-05-06T07:08:09.012Z b.txt && : > .hidden && : > sub/deeper";
    let (_server, api, _, path) = set_up(lines).await;
    let listed = api.get(&format!("{path}/list")).await.succeeds(200, "file.list");
    assert_eq!(names(&listed), [".hidden", "a-link", "b.txt", "c-link", "pipe", "sub"]);
    assert_eq!(
        (&listed["path"], &listed["truncated"], &listed["success"]),
        (&json!("/home/user"), &json!(false), &json!(true))
    );
    let expected = json!({"name": "b.txt", "path": "/home/user/b.txt", "isDir": false, "isSymlink": false, "size": 3,
        "mode": "0640", "modifiedAt": "2024-05-06T07:08:09.012Z"});
    assert_eq!(listed["files"][2], expected);
    let link = &listed["files"][1];
    assert_eq!(
        (&link["isSymlink"], &link["isDir"], &link["size"]),
        (&json!(true), &json!(false), &json!(11))
    );
    assert_eq!((&listed["files"][3]["isDir"], &listed["files"][5]["isDir"]), (&json!(false), &json!(true)));
    // Through a link to a folder inside, by the path it leads to.
    let below = api.get(&format!("{path}/list?path=c-link")).await.succeeds(200, "file.list");
    assert_eq!((names(&below), &below["path"]), (vec!["deeper"], &json!("/home/user/sub")));
    let tmp = api.get(&format!("{path}/list?path=/tmp")).await.succeeds(200, "file.list");
    assert_eq!((names(&tmp), &tmp["path"]), (vec![], &json!("/tmp")));

    let info = api.get(&format!("{path}/info?path=sub/../b.txt")).await.succeeds(200, "file.info");
    assert_eq!((&info["path"], &info["mode"]), (&json!("/home/user/b.txt"), &json!("0640")));
    let link = api.get(&format!("{path}/info?path=a-link")).await.succeeds(200, "file.info");
    assert_eq!((&link["isSymlink"], &link["path"]), (&json!(true), &json!("/home/user/a-link")));
    let folder = api.get(&format!("{path}/info?path=c-link/")).await.succeeds(200, "file.info");
    assert_eq!((&folder["isDir"], &folder["name"]), (&json!(true), &json!("sub")));
    let home = api.get(&format!("{path}/info?path=.")).await.succeeds(200, "file.info");
    assert_eq!((&home["name"], &home["path"]), (&json!("user"), &json!("/home/user")));

    api.get(&format!("{path}/list?path=b.txt")).await.fails(400, "not_a_folder");
    api.get(&format!("{path}/list?path=none")).await.fails(404, "path_not_found");
    api.get(&format!("{path}/info?path=none")).await.fails(404, "path_not_found");
    api.get(&format!("{path}/info?path=b.txt/")).await.fails(404, "path_not_found");
    api.get(&format!("{path}/info")).await.fails(400, "invalid_request");
}

#[tokio::test]
async fn a_long_folder_is_listed_in_part() {
    let lines = "mkdir long && cd long && seq -w 1 10001 | xargs touch";
    let (_server, api, id, path) = set_up(lines).await;
    let listed = api.get(&format!("{path}/list?path=long")).await.succeeds(200, "file.list");
    let names = names(&listed);
    assert_eq!((names.len(), names[0], names[9_999]), (10_000, "00001", "10000"));
    assert_eq!(listed["truncated"], true);
    api.exec(&id, "rm long/00042").await;
    let listed = api.get(&format!("{path}/list?path=long")).await.succeeds(200, "file.list");
    assert_eq!(listed["truncated"], false);
}

#[tokio::test]
async fn folders_are_made_with_those_above_them() {
    let (_server, api, id, path) = set_up("echo x > file; ln -s /etc out; ln -s sub link; mkdir sub").await;
    let folder = format!("{path}/folder");
    let made = api.post(&folder, json!({"path": "a/b/c", "mode": "0710"})).await;
    let made = made.succeeds(200, "folder.created");
    assert_eq!((&made["path"], &made["mode"]), (&json!("/home/user/a/b/c"), &json!("0710")));
    // One that is there stays as it is.
    let again = api.post(&folder, json!({"path": "a/b/c", "mode": "700"})).await;
    assert_eq!(again.succeeds(200, "folder.created")["mode"], "0710");
    let plain = api.post(&folder, json!({"path": "/tmp/d/"})).await.succeeds(200, "folder.created");
    assert_eq!((&plain["mode"], &plain["isDir"]), (&json!("0755"), &json!(true)));
    let through = api.post(&folder, json!({"path": "link/inner"})).await.succeeds(200, "folder.created");
    assert_eq!(through["path"], "/home/user/sub/inner");
    let home = api.post(&folder, json!({"path": "/home/user"})).await.succeeds(200, "folder.created");
    assert_eq!(home["name"], "user");
    // They belong to whoever works there.
    let written = api.exec(&id, "echo y > a/b/c/f && stat -c '%a %U' a/b a/b/c && id -un").await;
    let user = written["stdout"].as_str().unwrap().lines().last().unwrap().to_owned();
    assert_eq!(written["stdout"], format!("755 {user}\n710 {user}\n{user}\n"));

    for bad in ["file", "file/inner"] {
        api.post(&folder, json!({"path": bad})).await.fails(400, "not_a_folder");
    }
    for bad in ["/etc/x", "out/x", "../x", "/home", "", "a\0b"] {
        api.post(&folder, json!({"path": bad})).await.fails(400, "invalid_path");
    }
    for bad in ["9", "0800", "rwx", "", "07777"] {
        api.post(&folder, json!({"path": "a", "mode": bad})).await.fails(400, "invalid_mode");
    }
    api.post(&folder, json!({})).await.fails(400, "invalid_path");
}

#[tokio::test]
async fn permissions_are_set_and_never_outside() {
    let lines = "echo x > file; mkdir folder; ln -s file in; ln -s /etc/passwd out; ln -s in twice";
    let (_server, api, id, path) = set_up(lines).await;
    let permissions = format!("{path}/permissions");
    for (name, mode) in [("file", "0600"), ("folder", "711"), ("twice", "4755"), ("/home/user", "0750")] {
        let set = api.post(&permissions, json!({"path": name, "mode": mode})).await;
        let set = set.succeeds(200, "file.permissions_set");
        assert_eq!(set["mode"], format!("{mode:0>4}"), "{name}");
    }
    let seen = api.exec(&id, "stat -c '%a %F' file folder in .").await;
    assert_eq!(seen["stdout"], "4755 regular file\n711 directory\n777 symbolic link\n750 directory\n");
    for bad in ["out", "/etc/passwd", "../.."] {
        api.post(&permissions, json!({"path": bad, "mode": "0777"})).await.fails(400, "invalid_path");
    }
    api.post(&permissions, json!({"path": "none", "mode": "0777"})).await.fails(404, "path_not_found");
    api.post(&permissions, json!({"path": "file", "mode": "888"})).await.fails(400, "invalid_mode");
    api.post(&permissions, json!({"path": "file"})).await.fails(400, "invalid_mode");
}

#[tokio::test]
async fn what_is_deleted_is_gone_and_links_lead_nowhere() {
    let lines = "mkdir -p keep full/deep/er empty && echo x > keep/f && echo y > full/deep/er/f && ln -s ../keep full/link \
                 && ln -s keep link && ln -s /etc/passwd out && echo z > file && chmod 0 full/deep";
    let (_server, api, id, path) = set_up(lines).await;
    let delete = async |query: &str| api.call("DELETE", &format!("{path}?{query}"), json!(null)).await;
    for folder in ["full", "empty", "keep/", "link/"] {
        delete(&format!("path={folder}")).await.fails(400, "folder_not_empty");
    }
    for root in ["/home/user", "/tmp", ".", "keep/..", "/tmp/"] {
        delete(&format!("path={root}&recursive=true")).await.fails(400, "folder_not_empty");
    }
    for outside in ["/etc/passwd", "/home", "/", "..", "out/x"] {
        delete(&format!("path={outside}&recursive=true")).await.fails(400, "invalid_path");
    }
    delete("path=none&recursive=true").await.fails(404, "path_not_found");
    delete("path=file/x").await.fails(404, "path_not_found");
    for gone in ["file", "link", "out", "full", "empty"] {
        let answer = delete(&format!("path={gone}&recursive=true")).await.succeeds(200, "file.deleted");
        assert_eq!(answer["path"], format!("/home/user/{gone}"));
    }
    let left =
        api.exec(&id, "find . -mindepth 1 | sort; cat keep/f; test -e /etc/passwd && echo there").await;
    assert_eq!(left["stdout"], "./keep\n./keep/f\nx\nthere\n");
}

#[tokio::test]
async fn things_are_moved_and_replaced_only_when_that_is_wanted() {
    let lines = "mkdir -p d/in e/full && echo 1 > a && echo 2 > b && echo 3 > d/in/f && echo 4 > e/full/g && ln -s a l \
                 && ln a hard && ln -s /etc out";
    let (_server, api, id, path) = set_up(lines).await;
    let to = format!("{path}/move");
    let go = async |source: &str, destination: &str, overwrite: bool| {
        let body = json!({"source": source, "destination": destination, "overwrite": overwrite});
        api.post(&to, body).await
    };
    let moved = go("l", "/tmp/new/er/l", false).await.succeeds(200, "file.moved");
    assert_eq!((&moved["path"], &moved["destination"]), (&json!("/home/user/l"), &json!("/tmp/new/er/l")));
    go("/tmp/new/er/l", "back", false).await.succeeds(200, "file.moved");
    assert_eq!(api.exec(&id, "readlink back; test -L l || cat a; rm back").await["stdout"], "a\n1\n");
    for taken in ["b", "d", "out"] {
        go("a", taken, false).await.fails(400, "already_exists");
    }
    // Two names of one file: one is left.
    go("hard", "a", true).await.succeeds(200, "file.moved");
    go("a", "a", true).await.succeeds(200, "file.moved");
    go("a", "a", false).await.fails(400, "already_exists");
    go("a", "b", true).await.succeeds(200, "file.moved");
    // A folder takes the place of a full one, and of a file, and a file that of a folder.
    go("d", "e", true).await.succeeds(200, "file.moved");
    assert_eq!(api.exec(&id, "find e | sort; cat b").await["stdout"], "e\ne/in\ne/in/f\n1\n");
    go("e", "b", true).await.succeeds(200, "file.moved");
    api.exec(&id, "echo 5 > c").await;
    go("c", "b", true).await.succeeds(200, "file.moved");
    assert_eq!(api.exec(&id, "ls; cat b").await["stdout"], "b\nout\n5\n");

    api.exec(&id, "mkdir -p p/q/r").await;
    for (source, destination) in [("p", "p/q/x"), ("p", "p/new/x"), ("p", "p/q"), ("p/q", "p")] {
        go(source, destination, true).await.fails(400, "invalid_path");
    }
    for root in ["/home/user", "/tmp", "p/.."] {
        go(root, "/tmp/z", true).await.fails(400, "invalid_path");
        go("p", root, true).await.fails(400, "invalid_path");
    }
    for outside in ["/etc/x", "out/x", "../x"] {
        let wrong = go("p", outside, true).await;
        assert_eq!(wrong.fails(400, "invalid_path")["field"], "destination");
        let wrong = go(outside, "x", true).await;
        assert_eq!(wrong.fails(400, "invalid_path")["field"], "source");
    }
    go("b", "b/x", false).await.fails(400, "invalid_path");
    // No folder is made for a file that cannot be one.
    go("b", "made/x/", false).await.fails(400, "invalid_path");
    go("none", "x", false).await.fails(404, "path_not_found");
    assert_eq!(api.exec(&id, "find p; ls").await["stdout"], "p\np/q\np/q/r\nb\nout\np\n");
}

#[tokio::test]
async fn a_stopped_sandbox_has_none_of_them() {
    let (_server, api, id, path) = set_up("echo x > f").await;
    api.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(&id, "archived").await;
    for query in ["list", "info?path=f", "search?pattern=f", "find?pattern=x"] {
        api.get(&format!("{path}/{query}")).await.fails(409, "machine_not_running");
    }
    api.call("DELETE", &format!("{path}?path=f"), json!(null)).await.fails(409, "machine_not_running");
    for (call, body) in [
        ("folder", json!({"path": "a"})),
        ("move", json!({"source": "f", "destination": "g"})),
        ("permissions", json!({"path": "f", "mode": "0600"})),
        ("replace", json!({"paths": ["f"], "pattern": "x", "newValue": "y"})),
        ("upload-url", json!({"path": "f"})),
        ("download-url", json!({"path": "f"})),
    ] {
        api.post(&format!("{path}/{call}"), body).await.fails(409, "machine_not_running");
    }
    api.get(&format!("{path}/list?path=/etc")).await.fails(400, "invalid_path");
}
