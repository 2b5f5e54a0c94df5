//! Who calls, for whom, and what they may see.

use http::{HeaderMap, header};

use crate::{
    reply::ApiError,
    store::{Reader, typed},
    world::{
        accounts::{Account, Key, Organisation, Plan},
        ids,
        limits::Wallet,
        sandboxes::{Sandbox, State},
        time::Millis,
    },
};

/// The header that names an organisation.
pub(crate) const ORG_HEADER: &str = "x-sandboxer-org";

/// Who calls.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) account: Account,
    pub(crate) key: Key,
    /// The organisation that the call is for; the account itself if `None`.
    pub(crate) organisation: Option<Organisation>,
}

/// What a caller may do with a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Created it: everything.
    Owner,
    /// Is in the organisation that pays for it: see and stop it.
    View,
}

impl Access {
    /// The access as the service writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Access::Owner => "owner",
            Access::View => "view",
        }
    }
}

/// Finds the key of a request and whose it is.
pub(crate) fn authenticate(
    tx: &dyn Reader,
    headers: &HeaderMap,
    now: Millis,
) -> Result<(Account, Key), ApiError> {
    let refuse = |why: &str| ApiError::new(401, "unauthorized", why);
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().ok_or_else(|| refuse("the Authorization header is missing"))?;
    if values.next().is_some() {
        return Err(refuse("there is more than one Authorization header"));
    }
    let secret = value
        .to_str()
        .ok()
        .and_then(|text| text.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, secret)| secret.trim())
        .filter(|secret| !secret.is_empty())
        .ok_or_else(|| refuse("the Authorization header is not of the form: Bearer KEY"))?;
    let key: Key = typed::get(tx, &ids::digest(secret))?.ok_or_else(|| refuse("the API key is not known"))?;
    if key.expires_at.is_some_and(|at| at <= now) {
        return Err(refuse("the API key has expired"));
    }
    let account = typed::get(tx, &key.account)?.ok_or_else(|| refuse("the API key belongs to no account"))?;
    Ok((account, key))
}

/// Finds the organisation that a text stands for: its id, its name in any case, or `personal`.
pub(crate) fn organisation(
    tx: &dyn Reader,
    account: &Account,
    named: &str,
) -> Result<Option<Organisation>, ApiError> {
    if named.eq_ignore_ascii_case("personal") {
        return Ok(None);
    }
    let mine = typed::with_prefix::<Organisation>(tx, "")?
        .into_iter()
        .filter(|organisation| organisation.members.iter().any(|member| member.account == account.id));
    let mut found: Vec<Organisation> = Vec::new();
    for organisation in mine {
        if organisation.id == named {
            return Ok(Some(organisation));
        }
        if organisation.name.to_lowercase() == named.to_lowercase() {
            found.push(organisation);
        }
    }
    match found.len() {
        // One that exists and one that does not are told apart by members only.
        0 => {
            Err(ApiError::new(403, "not_org_member", "the account is in no organisation of that name or id"))
        }
        1 => Ok(found.pop()),
        _ => Err(ApiError::new(409, "ambiguous_org", "more than one organisation has that name; use the id")
            .retryable(false)),
    }
}

impl Caller {
    /// What the caller may do with a sandbox; `None` if it must seem not to exist.
    pub(crate) fn access(&self, tx: &dyn Reader, sandbox: &Sandbox) -> Result<Option<Access>, ApiError> {
        if !self.key.covers(&sandbox.id) {
            return Ok(None);
        }
        if sandbox.account == self.account.id {
            return Ok(Some(Access::Owner));
        }
        let Some(id) = &sandbox.organisation else { return Ok(None) };
        let pays: Option<Organisation> = typed::get(tx, id)?;
        let is_member =
            pays.is_some_and(|pays| pays.members.iter().any(|member| member.account == self.account.id));
        Ok(is_member.then_some(Access::View))
    }

    /// A sandbox that the caller may see.
    pub(crate) fn see(&self, tx: &dyn Reader, id: &str) -> Result<(Sandbox, Access), ApiError> {
        let not_found = || ApiError::not_found("sandbox");
        let sandbox: Sandbox = typed::get(tx, id)?.ok_or_else(not_found)?;
        let access = self.access(tx, &sandbox)?.ok_or_else(not_found)?;
        Ok((sandbox, access))
    }

    /// A sandbox that the caller may do everything with; a cancelled one is not found.
    pub(crate) fn own(&self, tx: &dyn Reader, id: &str) -> Result<Sandbox, ApiError> {
        match self.see(tx, id)? {
            (sandbox, _) if sandbox.state == State::Cancelled => Err(ApiError::not_found("sandbox")),
            (sandbox, Access::Owner) => Ok(sandbox),
            (_, Access::View) => Err(ApiError::new(
                403,
                "forbidden",
                "another member of the organisation created this sandbox",
            )),
        }
    }

    /// The wallet of the account, or of an organisation it is in.
    pub(crate) fn wallet(
        &self,
        tx: &dyn Reader,
        organisation: Option<Organisation>,
    ) -> Result<Wallet, ApiError> {
        let (key, plan, blocked) = match &organisation {
            Some(pays) => (format!("organisation/{}", pays.id), &pays.plan, pays.blocked),
            None => (format!("account/{}", self.account.id), &self.account.plan, self.account.blocked),
        };
        let plan: Plan =
            typed::get(tx, plan)?.ok_or_else(|| ApiError::internal(format!("there is no plan {plan}")))?;
        Ok(Wallet { key, plan, blocked, account: self.account.clone(), organisation })
    }
}
