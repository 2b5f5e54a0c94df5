//! What keys can grant: the actions, and the ready-made sets of them.

/// The action that grants every other.
pub(crate) const EVERYTHING: &str = "*";

/// The action of those who run the account; it grants every other too.
pub(crate) const ADMIN: &str = "account.admin";

/// Every action that an operation asks for, in alphabetical order.
pub(crate) const ACTIONS: [&str; 18] = [
    ADMIN,
    "account.read",
    "agent.prompt",
    "desktop",
    "environment.read",
    "exec",
    "file.read",
    "file.write",
    "host",
    "sandbox.create",
    "sandbox.delete-own",
    "sandbox.fork",
    "sandbox.read",
    "sandbox.resume",
    "sandbox.stop",
    "sandbox.update",
    "snapshot.read",
    "snapshot.write",
];

/// The names of the sets, the smallest first.
pub(crate) const PRESETS: [&str; 4] = ["read-only", "ci", "full-sandbox", "admin"];

/// The set of a key of which nothing is said.
pub(crate) const DEFAULT_PRESET: &str = "read-only";

/// Whether there is such an action.
pub(crate) fn is_known(action: &str) -> bool {
    action == EVERYTHING || ACTIONS.contains(&action)
}

/// The actions of a set, by its name.
pub(crate) fn preset(name: &str) -> Option<Vec<String>> {
    const READ_ONLY: &[&str] =
        &["sandbox.read", "file.read", "snapshot.read", "environment.read", "account.read"];
    const CI: &[&str] = &[
        "sandbox.read",
        "sandbox.create",
        "sandbox.stop",
        "sandbox.resume",
        "sandbox.delete-own",
        "exec",
        "file.read",
        "file.write",
        "account.read",
    ];
    const FULL_SANDBOX: &[&str] = &[
        "sandbox.read",
        "sandbox.create",
        "sandbox.update",
        "sandbox.stop",
        "sandbox.resume",
        "sandbox.fork",
        "sandbox.delete-own",
        "exec",
        "file.read",
        "file.write",
        "agent.prompt",
        "desktop",
        "host",
        "snapshot.read",
        "snapshot.write",
        "environment.read",
        "account.read",
    ];
    let actions = match name {
        "read-only" => READ_ONLY,
        "ci" => CI,
        "full-sandbox" => FULL_SANDBOX,
        "admin" => &[EVERYTHING],
        _ => return None,
    };
    Some(actions.iter().map(|action| (*action).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::generated::router::ROUTES;

    #[test]
    fn the_actions_are_those_that_the_operations_ask_for() {
        let asked: BTreeSet<&str> =
            ROUTES.iter().filter_map(|route| route.action).filter(|action| *action != "session").collect();
        assert_eq!(ACTIONS.into_iter().collect::<BTreeSet<_>>(), asked);
        for name in PRESETS {
            let actions = preset(name).unwrap();
            assert!(actions.iter().all(|action| is_known(action)), "{name}");
        }
        assert!(preset("nothing").is_none() && !is_known("session") && !is_known("sandbox.destroy"));
    }
}
