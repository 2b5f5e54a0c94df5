//! The agents that can be prompted, and the models each takes.

use serde_json::{Value, json};

/// A model.
struct Model {
    id: &'static str,
    name: &'static str,
    efforts: &'static [&'static str],
    has_fast_mode: bool,
}

/// An agent.
pub(crate) struct Provider {
    /// What it is asked for by.
    pub(crate) id: &'static str,
    /// Another name that is taken.
    alias: Option<&'static str>,
    name: &'static str,
    /// The program that runs its turns.
    pub(crate) harness: &'static str,
    /// Whether it takes messages into a running turn itself.
    pub(crate) is_steered_natively: bool,
    models: &'static [Model],
}

const EFFORTS: &[&str] = &["low", "medium", "high"];

const fn model(id: &'static str, name: &'static str, has_fast_mode: bool) -> Model {
    Model { id, name, efforts: EFFORTS, has_fast_mode }
}

/// Every agent; an account's own choice is the first that is signed in.
pub(crate) const PROVIDERS: [Provider; 7] = [
    Provider {
        id: "claude-code",
        alias: Some("claude"),
        name: "Claude Code",
        harness: "claude",
        is_steered_natively: true,
        models: &[
            model("claude-sonnet-4-5", "Claude Sonnet 4.5", false),
            model("claude-opus-4-6", "Claude Opus 4.6", true),
        ],
    },
    Provider {
        id: "codex",
        alias: None,
        name: "Codex",
        harness: "codex",
        is_steered_natively: true,
        models: &[model("gpt-5-codex", "GPT-5 Codex", true), model("gpt-5", "GPT-5", false)],
    },
    Provider {
        id: "pi",
        alias: None,
        name: "Pi",
        harness: "pi",
        is_steered_natively: true,
        models: &[model("pi-default", "Pi", false)],
    },
    Provider {
        id: "opencode",
        alias: None,
        name: "OpenCode",
        harness: "opencode",
        is_steered_natively: false,
        models: &[model("opencode-default", "OpenCode", false)],
    },
    Provider {
        id: "prime-agent",
        alias: Some("prime"),
        name: "Prime Agent",
        harness: "prime-agent",
        is_steered_natively: true,
        models: &[model("prime-default", "Prime", false)],
    },
    Provider {
        id: "kimi",
        alias: Some("kimi-code"),
        name: "Kimi",
        harness: "kimi",
        is_steered_natively: false,
        models: &[model("kimi-k2", "Kimi K2", false)],
    },
    Provider {
        id: "mistral",
        alias: None,
        name: "Mistral",
        harness: "mistral",
        is_steered_natively: false,
        models: &[model("devstral", "Devstral", false)],
    },
];

/// The agent of a name.
pub(crate) fn provider(name: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|provider| provider.id == name || provider.alias == Some(name))
}

impl Provider {
    /// The model that it uses when none is named.
    pub(crate) fn default_model(&self) -> &'static str {
        self.models.first().map_or("", |model| model.id)
    }

    /// Whether a model has a fast mode; of one that is not known nothing is said.
    pub(crate) fn has_fast_mode(&self, model: &str) -> Option<bool> {
        self.models.iter().find(|known| known.id == model).map(|known| known.has_fast_mode)
    }

    /// The agent as the service shows it.
    pub(crate) fn view(&self) -> Value {
        let models = self.models.iter().map(|model| {
            json!({
                "id": model.id,
                "name": model.name,
                "reasoningEfforts": model.efforts,
                "fastMode": model.has_fast_mode,
            })
        });
        json!({
            "provider": self.id,
            "name": self.name,
            "defaultModel": self.default_model(),
            "models": models.collect::<Vec<_>>(),
        })
    }
}
