//! Reading a long list.

use sandboxer::models::{SandboxListResponse, SandboxesParams};

use crate::{
    Effort,
    canned::{Canned, SANDBOXES, list},
    measure::{Lane, print_times, take_turns},
    peers::{Raw, runtime},
};

pub(crate) fn run(effort: Effort) {
    let runtime = runtime();
    let canned = Canned::start();
    let (sdk, raw, values) = (canned.client().api().clone(), Raw::new(canned.url(), "key"), list());
    let body = list();
    let mut lanes = [
        Lane::spawned("SDK call", &runtime, move || {
            let api = sdk.clone();
            async move {
                let page = api.sandboxes(SandboxesParams::new()).await.expect("a page");
                assert_eq!(page.sandboxes.len(), SANDBOXES);
            }
        })
        .against("raw GET and serde_json"),
        Lane::spawned("raw GET and serde_json", &runtime, move || {
            let raw = raw.clone();
            async move {
                let body = raw.get("/sandboxes").await;
                let page: SandboxListResponse = serde_json::from_slice(&body).expect("a page");
                assert_eq!(page.sandboxes.len(), SANDBOXES);
            }
        }),
        Lane::blocking("serde_json alone, same type", || {
            let page: SandboxListResponse = serde_json::from_slice(&body).expect("a page");
            assert_eq!(page.sandboxes.len(), SANDBOXES);
        }),
        Lane::blocking("serde_json alone, `Value`", || {
            let page: serde_json::Value = serde_json::from_slice(&values).expect("a page");
            assert!(page.is_object());
        }),
    ];
    println!("### A list of {SANDBOXES} sandboxes, {} kB of JSON\n", list().len() / 1000);
    print_times(&take_turns(&mut lanes, effort.pick(15, 4), effort.pick(20, 5)));
}
