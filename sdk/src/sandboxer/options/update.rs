//! What to change about a sandbox.

use super::Ttl;
use crate::{
    error::{Error, Result},
    models::UpdateSandboxRequest,
};

/// What to change about a sandbox; what is left out stays.
///
/// ```
/// use sandboxer::Update;
/// use std::time::Duration;
///
/// let options = Update::new().name("build").ttl(Duration::from_secs(1800)).subdomain("my-build");
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct Update {
    pub(crate) request: UpdateSandboxRequest,
}

impl Update {
    /// Nothing to change yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The name shown to people: not empty, cut to 120 characters.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.request = self.request.name(name);
        self
    }

    /// When it stops by itself, counted from now.
    pub fn ttl(mut self, ttl: impl Into<Ttl>) -> Self {
        self.request = self.request.ttl_seconds(ttl.into().patch());
        self
    }

    /// The name its hosted ports are reached under: 3 to 40 small letters, digits and single dashes, a letter or digit
    /// at both ends, not ending in `-desktop` or in a dash and a number. The old name's addresses stop working.
    pub fn subdomain(mut self, subdomain: impl Into<String>) -> Self {
        self.request = self.request.subdomain(subdomain);
        self
    }

    /// The request, its subdomain checked for what its pattern cannot say: addresses are made of it by adding such ends.
    pub(crate) fn checked(self) -> Result<UpdateSandboxRequest> {
        if self.request == UpdateSandboxRequest::new() {
            return Err(Error::invalid_input("change", "must change something"));
        }
        let end =
            self.request.subdomain.as_deref().and_then(|name| name.rsplit_once('-')).map(|(_, end)| end);
        if end.is_some_and(|end| end == "desktop" || is_number(end)) {
            return Err(Error::invalid_input(
                "subdomain",
                "must not end in `-desktop` or in a dash and a number",
            ));
        }
        Ok(self.request)
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The check of a name that is set after its sandbox was made: nothing may be made for a name that is refused later.
pub(crate) fn check_name(name: Option<&str>) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    let checked = UpdateSandboxRequest::new().name(name).validate();
    checked.map_err(|bad| Error::invalid_input(&bad.field, bad.problem))
}
