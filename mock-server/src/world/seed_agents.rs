//! How the agents of a world are set up.

use serde::Deserialize;

use super::{
    providers::provider,
    seed::{WorldError, WorldSeed},
};

/// How the agents are set up.
///
/// In a world file:
///
/// ```
/// # let text = r#"
/// [agents]
/// signed_in = ["codex", "pi"]   # the agents that can be prompted, the account's own choice first; all if left out
/// parallel = 2                  # conversations at work at once in a sandbox; by its memory if left out
/// late_steer_ms = 0             # how long after its end a turn still takes a message, as a turn of its own
/// # "#;
/// # let world = sandboxer_mock_server::WorldSeed::from_toml(text).unwrap();
/// # assert_eq!(world.agents.parallel, Some(2));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AgentsSeed {
    /// The agents that are signed in, the account's own choice first; all of them if `None`. Prompts for others are
    /// answered with `provider_not_configured`.
    #[serde(default)]
    pub signed_in: Option<Vec<String>>,
    /// How many conversations are at work at once in a sandbox, at least one; a half of its memory in GB if `None`.
    #[serde(default)]
    pub parallel: Option<u64>,
    /// Milliseconds after its end in which a turn still takes a steering message: it is carried out as a turn of its own.
    /// After that it is answered with `no_running_turn`.
    #[serde(default)]
    pub late_steer_ms: u64,
}

impl AgentsSeed {
    /// Refuses names that nothing stands for, and makes one of the names that an agent has.
    pub(crate) fn checked(mut self) -> Result<Self, WorldError> {
        for name in self.signed_in.iter_mut().flatten() {
            let known = provider(name)
                .ok_or_else(|| WorldError(format!("agents.signed_in names {name}, which is no agent")))?;
            *name = known.id.to_owned();
        }
        if self.parallel == Some(0) {
            return Err(WorldError("agents.parallel must be at least 1".into()));
        }
        Ok(self)
    }
}

impl WorldSeed {
    /// The same, with the agents checked.
    pub(super) fn with_checked_agents(mut self) -> Result<Self, WorldError> {
        self.agents = self.agents.checked()?;
        Ok(self)
    }
}
