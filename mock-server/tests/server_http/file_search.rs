//! Looking for files and for text in them, and replacing text, which the other dialect asks for.

use sandboxer_mock_server::MockServer;
use serde_json::{Value, json};

use crate::http::Api;

async fn set_up(lines: &str) -> (MockServer, Api, String, String) {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    assert_eq!(api.exec(&id, lines).await["exitCode"], 0);
    let path = format!("/sandboxes/{id}/files");
    (server, api, id, path)
}

fn found(answer: &Value) -> Vec<&str> {
    answer["files"].as_array().expect("files").iter().map(|path| path.as_str().expect("a path")).collect()
}

fn matches(answer: &Value) -> Vec<(&str, u64, &str)> {
    let matches = answer["matches"].as_array().expect("matches").iter();
    matches
        .map(|line| {
            let (file, content) = (line["file"].as_str(), line["content"].as_str());
            (file.expect("a file"), line["line"].as_u64().expect("a number"), content.expect("a line"))
        })
        .collect()
}

#[tokio::test]
async fn names_are_found_below_a_folder_and_links_are_not_followed() {
    let lines = "mkdir -p app/sub t && : > app/b.py && : > app/a.py && : > app/sub/c.py && : > app/.d.py && : > x.py \
                 && mkdir app/e.py && ln -s /etc app/etc && ln -s ../t app/f.py && : > t/g.py && : > 'app/[x].txt'";
    let (_server, api, _, path) = set_up(lines).await;
    let search = async |query: &str| api.get(&format!("{path}/search?{query}")).await;
    let all = search("path=app&pattern=*.py").await.succeeds(200, "file.search");
    let expected =
        [".d.py", "a.py", "b.py", "e.py", "f.py", "sub/c.py"].map(|name| format!("/home/user/app/{name}"));
    assert_eq!(found(&all), expected);
    assert_eq!((&all["truncated"], &all["success"], all.get("errors")), (&json!(false), &json!(true), None));
    let home = search("pattern=x.*").await.succeeds(200, "file.search");
    assert_eq!(found(&home), ["/home/user/x.py"]);
    let odd = search("path=app&pattern=%5C%5B?%5D.txt").await.succeeds(200, "file.search");
    assert_eq!(found(&odd), ["/home/user/app/[x].txt"]);
    assert!(found(&search("path=app&pattern=passwd").await.succeeds(200, "file.search")).is_empty());
    let itself = search("path=app/f.py/g.py&pattern=g*").await.succeeds(200, "file.search");
    assert_eq!(found(&itself), ["/home/user/t/g.py"]);
    for bad in ["%5B", "a%5C", "", "%5Bz-a%5D"] {
        search(&format!("path=app&pattern={bad}")).await.fails(400, "invalid_pattern");
    }
    search("path=app").await.fails(400, "invalid_pattern");
    search("path=none&pattern=*").await.fails(404, "path_not_found");
    for outside in ["/", "/etc", "app/etc", ".."] {
        search(&format!("path={outside}&pattern=*")).await.fails(400, "invalid_path");
    }
}

#[tokio::test]
async fn a_search_ends_after_so_many() {
    let lines = "mkdir -p many/one many/two && cd many && seq -w 1 6000 | (cd one && xargs touch) \
                 && seq -w 1 6000 | (cd two && xargs touch); cd .. && seq 1 1001 > numbers";
    let (_server, api, id, path) = set_up(lines).await;
    let all = api.get(&format!("{path}/search?path=many&pattern=*")).await.succeeds(200, "file.search");
    assert_eq!((found(&all).len(), &all["truncated"]), (10_000, &json!(true)));
    assert_eq!(found(&all)[..3], ["/home/user/many/one", "/home/user/many/two", "/home/user/many/one/0001"]);
    let lines = api.get(&format!("{path}/find?path=numbers&pattern=.&regex=true")).await;
    let lines = lines.succeeds(200, "file.find");
    assert_eq!((matches(&lines).len(), &lines["truncated"]), (1000, &json!(true)));
    api.exec(&id, "sed -i 1d numbers").await;
    let lines = api.get(&format!("{path}/find?path=numbers&pattern=.&regex=true")).await;
    assert_eq!(lines.succeeds(200, "file.find")["truncated"], false);
}

#[tokio::test]
async fn lines_are_found_in_text_files() {
    let lines = "mkdir -p app/sub && printf 'one TODO\\nthree\\nTODO four' > app/a.txt && printf 'TODO\\0' > app/bin \
                 && printf 'x\\n\\ny.TODO*\\n' > app/sub/b && ln -s a.txt app/link && ln -s /etc/passwd app/pw \
                 && { head -c 600 /dev/zero | tr '\\0' x; echo TODO; } > app/long && printf 'caf\\351 TODO\\n' > app/latin \
                 && mkfifo app/pipe && : > app/empty";
    let (_server, api, _, path) = set_up(lines).await;
    let find = async |query: &str| api.get(&format!("{path}/find?{query}")).await;
    let all = find("path=app&pattern=TODO").await.succeeds(200, "file.find");
    let long = "x".repeat(500);
    assert_eq!(
        matches(&all),
        [
            ("/home/user/app/a.txt", 1, "one TODO"),
            ("/home/user/app/a.txt", 3, "TODO four"),
            ("/home/user/app/latin", 1, "caf\u{fffd} TODO"),
            ("/home/user/app/long", 1, long.as_str()),
            ("/home/user/app/sub/b", 3, "y.TODO*"),
        ]
    );
    assert_eq!((&all["truncated"], all.get("errors")), (&json!(false), None));
    // Plain text unless it is said to be an expression.
    let plain = find("path=app/sub&pattern=.TODO*").await.succeeds(200, "file.find");
    assert_eq!(matches(&plain), [("/home/user/app/sub/b", 3, "y.TODO*")]);
    let expression = find("path=app&pattern=%5ETODO%7Ceee?$&regex=true").await.succeeds(200, "file.find");
    assert_eq!(
        matches(&expression),
        [("/home/user/app/a.txt", 2, "three"), ("/home/user/app/a.txt", 3, "TODO four")]
    );
    let through = find("path=app/link&pattern=three").await.succeeds(200, "file.find");
    assert_eq!(matches(&through), [("/home/user/app/a.txt", 2, "three")]);
    assert!(matches(&find("path=app&pattern=root:").await.succeeds(200, "file.find")).is_empty());
    for bad in ["(", "a%7B2%7D%5C", "%5C1", "*"] {
        find(&format!("path=app&pattern={bad}&regex=true")).await.fails(400, "invalid_pattern");
    }
    find("path=app&pattern=").await.fails(400, "invalid_pattern");
    find("path=app&pattern=a&regex=maybe").await.fails(400, "invalid_request");
    find("path=none&pattern=a").await.fails(404, "path_not_found");
    find("path=app/pw&pattern=root").await.fails(400, "invalid_path");
}

#[tokio::test]
async fn text_is_replaced_file_by_file() {
    let lines = "printf 'foo bar foo' > a && chmod 600 a && printf nothing > b && mkdir folder && ln -s a link \
                 && ln -s /etc/passwd pw && head -c 5242881 /dev/zero > big && head -c 5000 /dev/zero | tr '\\0' f > many";
    let (_server, api, id, path) = set_up(lines).await;
    let replace = async |paths: Value, pattern: &str, new: &str| {
        api.post(&format!("{path}/replace"), json!({"paths": paths, "pattern": pattern, "newValue": new}))
            .await
    };
    let paths = json!(["a", "b", "none", "folder", "pw", "big", "../x", "/tmp/none"]);
    let answer = replace(paths.clone(), "foo", "quux").await.succeeds(200, "file.replaced");
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results[0], json!({"file": "a", "success": true, "replacements": 2}));
    assert_eq!(results[1], json!({"file": "b", "success": true, "replacements": 0}));
    let codes: Vec<_> = results[2..]
        .iter()
        .map(|result| {
            assert_eq!((&result["success"], result.get("replacements")), (&json!(false), None));
            result["error"].as_str().unwrap().split(':').next().unwrap()
        })
        .collect();
    let expected = [
        "path_not_found",
        "invalid_path",
        "invalid_path",
        "file_too_large",
        "invalid_path",
        "path_not_found",
    ];
    assert_eq!(codes, expected);
    let files: Vec<_> = results.iter().map(|result| result["file"].clone()).collect();
    assert_eq!(json!(files), paths);
    assert_eq!(api.exec(&id, "cat a; stat -c %a a").await["stdout"], "quux bar quux600\n");
    // A link stays one; what is found twice in a row is not searched again.
    let linked = replace(json!(["link"]), "quux", "uxqu").await.succeeds(200, "file.replaced");
    assert_eq!(linked["results"][0]["replacements"], 2);
    let seen = api.exec(&id, "readlink link && cat a").await;
    assert_eq!(seen["stdout"], "a\nuxqu bar uxqu");
    let removed = replace(json!(["a"]), "u", "").await.succeeds(200, "file.replaced");
    assert_eq!(removed["results"][0]["replacements"], 4);
    // What would grow beyond all bounds is not made.
    let grown = replace(json!(["many", "a"]), "f", &"g".repeat(1 << 20)).await.succeeds(200, "file.replaced");
    assert!(grown["results"][0]["error"].as_str().unwrap().starts_with("file_too_large"));
    assert_eq!(api.exec(&id, "wc -c < many; cat a").await["stdout"], "5000\nxq bar xq");

    for bad in [json!([]), json!(vec!["a"; 101]), json!("a"), json!([""]), json!([1])] {
        replace(bad, "x", "y").await.fails(400, "invalid_request");
    }
    replace(json!(["a"]), "", "y").await.fails(400, "invalid_request");
}
