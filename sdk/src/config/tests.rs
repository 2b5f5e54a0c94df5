use crate::{
    AsyncSandboxer,
    error::{Error, ErrorKind},
};

fn refused(builder: super::Builder) -> Error {
    builder.build().map(|_| ()).unwrap_err()
}

#[test]
fn the_key_comes_from_the_argument_then_two_variables() {
    let with =
        |environment| AsyncSandboxer::builder().base_url("http://127.0.0.1:1").environment(environment);
    let key = |builder: super::Builder| builder.build().unwrap().api().shared().key().expose().to_owned();
    let both: fn(&str) -> Option<String> = |name| match name {
        "SANDBOXER_API_KEY" => Some("first".into()),
        "SANDBOXER_TOKEN" => Some("second".into()),
        _ => None,
    };
    assert_eq!(key(with(both)), "first");
    assert_eq!(key(with(both).api_key("own")), "own");
    assert_eq!(key(with(both).api_key("")), "first");
    let empty: fn(&str) -> Option<String> = |name| match name {
        "SANDBOXER_API_KEY" => Some(String::new()),
        "SANDBOXER_TOKEN" => Some("second".into()),
        _ => None,
    };
    assert_eq!(key(with(empty)), "second");
    assert_eq!(refused(with(|_| None)).code(), "missing_api_key");
    assert_eq!(refused(with(both).ignore_env()).kind(), ErrorKind::Config);
}

#[test]
fn the_base_url_comes_from_the_argument_then_a_variable() {
    let environment: fn(&str) -> Option<String> =
        |name| (name == "SANDBOXER_API_URL").then(|| "http://127.0.0.1:2/api/v1/".into());
    let base = |builder: super::Builder| {
        builder.api_key("k").build().unwrap().api().shared().base().as_str().to_owned()
    };
    assert_eq!(base(AsyncSandboxer::builder().environment(environment)), "http://127.0.0.1:2/api/v1");
    assert_eq!(
        base(AsyncSandboxer::builder().environment(environment).base_url("http://127.0.0.1:3")),
        "http://127.0.0.1:3"
    );
}

#[test]
fn refusals_name_the_setting() {
    let good = || AsyncSandboxer::builder().ignore_env().api_key("k").base_url("http://127.0.0.1:1");
    for (builder, setting) in [
        (good().base_url("http://example.com"), "base_url"),
        (good().api_key("a b"), "api_key"),
        (good().default_header("AUTHORIZATION", "x"), "AUTHORIZATION"),
        (good().default_header("x", "\n"), "header"),
        (good().org("\n"), "org"),
        (good().user_agent_suffix("\n"), "user_agent_suffix"),
        (good().add_root_certificate("no certificate"), "add_root_certificate"),
    ] {
        let error = refused(builder);
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.to_string().contains(setting), "{error}");
    }
}

#[test]
fn nothing_secret_is_printed() {
    let builder =
        AsyncSandboxer::builder().ignore_env().api_key("sbx_live_hush").base_url("http://127.0.0.1:1");
    assert!(!format!("{builder:?}").contains("hush"));
    let client = builder.default_header("x-gateway", "hush").build().unwrap();
    assert!(!format!("{client:?} {:?} {:?}", client.api(), client.api().shared()).contains("hush"));
}
