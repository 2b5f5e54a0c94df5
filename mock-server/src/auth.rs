//! Who calls, for whom, and what they may see.

use http::{HeaderMap, header};

use crate::{
    reply::ApiError,
    store::{Reader, typed},
    world::{
        accounts::{self, Account, Organisation, PERSONAL, Plan},
        ids,
        keys::Key,
        limits::Wallet,
        machine_keys,
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
    /// Whether the call said so.
    pub(crate) has_named_wallet: bool,
}

/// What a caller may do with a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Created it: everything.
    Owner,
    /// Is in the organisation that pays for it, and nothing of its creator's is on it: everything but to change, share,
    /// copy or delete it.
    Use,
    /// Is in the organisation that pays for it: see and stop it.
    View,
}

impl Access {
    /// The access as the service writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Access::Owner => "owner",
            Access::Use => "use",
            Access::View => "view",
        }
    }
}

/// Finds the key of a request and whose it is. `in_query` is what the query gives for one, where the operation takes that.
pub(crate) fn authenticate(
    tx: &dyn Reader,
    headers: &HeaderMap,
    in_query: Option<&str>,
    now: Millis,
) -> Result<(Account, Key), ApiError> {
    let secret = match in_query {
        Some(secret) if !headers.contains_key(header::AUTHORIZATION) => secret,
        _ => bearer(headers)?,
    };
    let key = match typed::get::<Key>(tx, &ids::digest(secret))? {
        Some(key) => Some(key),
        None => machine_keys::of_secret(tx, secret)?,
    };
    check(tx, key, now)
}

/// The account and the key, if there is one and it has not ended.
fn check(tx: &dyn Reader, key: Option<Key>, now: Millis) -> Result<(Account, Key), ApiError> {
    let key = key.ok_or_else(|| refuse("the API key is not known"))?;
    if key.revoked_at.is_some() {
        return Err(refuse("the API key was revoked"));
    }
    if key.has_expired(now) {
        return Err(refuse("the API key has expired"));
    }
    let account = typed::get(tx, &key.account)?.ok_or_else(|| refuse("the API key belongs to no account"))?;
    Ok((account, key))
}

fn refuse(why: &str) -> ApiError {
    ApiError::new(401, "unauthorized", why)
}

/// The key that the header carries.
fn bearer(headers: &HeaderMap) -> Result<&str, ApiError> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().ok_or_else(|| refuse("the Authorization header is missing"))?;
    if values.next().is_some() {
        return Err(refuse("there is more than one Authorization header"));
    }
    value
        .to_str()
        .ok()
        .and_then(|text| text.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, secret)| secret.trim())
        .filter(|secret| !secret.is_empty())
        .ok_or_else(|| refuse("the Authorization header is not of the form: Bearer KEY"))
}

/// Finds the organisation that a text stands for: its id, its name in any case, or `personal`.
pub(crate) fn organisation(
    tx: &dyn Reader,
    account: &Account,
    named: &str,
) -> Result<Option<Organisation>, ApiError> {
    if named.eq_ignore_ascii_case(PERSONAL) {
        return Ok(None);
    }
    let mut found: Vec<Organisation> = Vec::new();
    for organisation in accounts::organisations_of(tx, &account.id)? {
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
    /// The caller as it is now, for answers that take long: its key may have ended since.
    pub(crate) fn again(&self, tx: &dyn Reader, now: Millis) -> Result<Self, ApiError> {
        let key = match machine_keys::sandbox_of(&self.key) {
            Some(_) => machine_keys::by_id(tx, &self.key.id)?.filter(|key| key.digest == self.key.digest),
            None => typed::get(tx, &self.key.digest)?,
        };
        let (account, key) = check(tx, key, now)?;
        Ok(Self { account, key, ..self.clone() })
    }

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
        let is_member = pays.is_some_and(|pays| pays.member(&self.account.id).is_some());
        let access = if sandbox.is_open_to_members() { Access::Use } else { Access::View };
        Ok(is_member.then_some(access))
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
            (_, Access::Use | Access::View) => Err(ApiError::new(
                403,
                "forbidden",
                "another member of the organisation created this sandbox",
            )),
        }
    }

    /// The API key that what the call makes is made with; none if a person is signed in.
    pub(crate) fn made_by(&self) -> Option<String> {
        (!self.key.is_session()).then(|| self.key.id.clone())
    }

    /// The organisation whose wallet the call is about: what it named, or the active one.
    pub(crate) fn payer(&self, tx: &dyn Reader) -> Result<Option<Organisation>, ApiError> {
        match self.has_named_wallet {
            true => Ok(self.organisation.clone()),
            false => Ok(accounts::active_organisation(tx, &self.account)?),
        }
    }

    /// A sandbox that the caller may work in; a cancelled one is not found.
    pub(crate) fn using(&self, tx: &dyn Reader, id: &str) -> Result<Sandbox, ApiError> {
        match self.see(tx, id)? {
            (sandbox, _) if sandbox.state == State::Cancelled => Err(ApiError::not_found("sandbox")),
            (sandbox, Access::Owner | Access::Use) => Ok(sandbox),
            (_, Access::View) => Err(ApiError::new(
                403,
                "forbidden",
                "another member of the organisation created this sandbox and has not shared it",
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
